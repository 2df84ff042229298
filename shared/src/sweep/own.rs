//! Who owns a process: whether somebody is left who started it and may still want it.
//!
//! That the parent is PID 1 is neither necessary nor sufficient: under a subreaper orphans go elsewhere, and what
//! PID 1 started itself is no orphan. What counts is the session. Its members inherit it from the process that
//! started them, so a parent in another session has adopted them, whatever its name.

use super::sight::{Descriptor, Picture, Stream, variable};
use crate::process::Stat;
use std::fmt;

/// Inits that run as an ordinary process and adopt what is orphaned below them. What runs as PID 1 needs no name.
const ADOPTERS: [&str; 8] =
    ["systemd", "tini", "docker-init", "catatonit", "containerd-shim", "dumb-init", "conmon", "s6-svscan"];
/// Further programs that do an init's work as PID 1 (`podman run --init` mounts its own as `podman-init`): they start
/// nothing that somebody reads.
const INITS: [&str; 12] = [
    "init",
    "podman-init",
    "runit",
    "openrc-init",
    "dinit",
    "finit",
    "procd",
    "shepherd",
    "sinit",
    "upstart",
    "launchd",
    "minit",
];

/// Why nobody owns a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// A worker of pytest-xdist whose controller is gone.
    NoController,
    /// Its session's leader is gone, and it was adopted.
    LeaderGone {
        /// The leader's PID, which is the session's id.
        leader: i32,
    },
    /// Its session's leader is an orphan itself, and it was adopted.
    LeaderOrphan {
        /// The leader's PID.
        leader: i32,
    },
    /// It leads its session, and an init is its parent.
    Adopted,
    /// It is the leader of a job, and the supervisors that started it are gone.
    Unsupervised,
}

impl fmt::Display for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Orphan::NoController => f.write_str("its controller is gone"),
            Orphan::LeaderGone { leader } => write!(f, "its session's leader {leader} is gone"),
            Orphan::LeaderOrphan { leader } => write!(f, "its session's leader {leader} is an orphan"),
            Orphan::Adopted => f.write_str("it leads its session"),
            Orphan::Unsupervised => f.write_str("its supervisors are gone"),
        }
    }
}

/// Whether a process can be an orphan by what its stat file alone says: the few for which more is read.
pub(super) fn may_be_orphan(picture: &Picture<'_>, row: &Stat) -> bool {
    if has_new_parent(picture, row) {
        return true;
    }
    // A worker of xdist may have been adopted by a process of its own session.
    let name = row.comm.as_bytes();
    name.starts_with(b"py") || name.starts_with(b"Py") || name.starts_with(b"[pytest-xdist")
}

/// Whether a process is where orphans are found: below an init, or below a parent that cannot have started it.
pub(super) fn has_new_parent(picture: &Picture<'_>, row: &Stat) -> bool {
    is_inits_child(picture, row) || is_adopted(picture, row)
}

/// Whether nobody owns a process, and why. `is_test` says what counts as a test process besides what arguments show.
pub(super) fn orphaned(picture: &Picture<'_>, row: &Stat, is_test: &dyn Fn(&Stat) -> bool) -> Option<Orphan> {
    let parent = picture.all.get(row.ppid);
    if picture.test(row).is_some_and(|t| t.xdist_worker)
        && parent.is_some_and(|p| picture.test(p).is_none() && !feeds(picture, p, row))
    {
        return Some(Orphan::NoController);
    }
    // A parent or a session's leader outside our PID namespace is somebody who lives.
    let is_outside = row.ppid == 0 || row.sid == 0;
    if is_outside || is_started_by_systemd(picture, row) || is_read_by_pid_1(picture, row) {
        return None;
    }
    let inits_child = is_inits_child(picture, row);
    if row.sid == row.pid {
        return inits_child.then_some(Orphan::Adopted);
    }
    if !inits_child && !is_adopted(picture, row) {
        return None;
    }
    let leader = row.sid;
    match picture.all.get(leader) {
        None if picture.sight.exists(leader) => None,
        None => Some(Orphan::LeaderGone { leader }),
        Some(found) if !picture.sight.is_alive(found) => Some(Orphan::LeaderGone { leader }),
        Some(found) => {
            let orphan =
                is_test(found) && found.sid == found.pid && orphaned(picture, found, is_test).is_some();
            orphan.then_some(Orphan::LeaderOrphan { leader })
        }
    }
}

/// Whether the parent is in another session, for a process that does not lead its own: then it is not the one that
/// started it.
fn is_adopted(picture: &Picture<'_>, row: &Stat) -> bool {
    row.sid != row.pid && picture.all.get(row.ppid).is_some_and(|parent| parent.sid != row.sid)
}

fn is_inits_child(picture: &Picture<'_>, row: &Stat) -> bool {
    let named = |pid| picture.all.get(pid).is_some_and(|parent| ADOPTERS.contains(&parent.comm.as_str()));
    row.ppid == 1 || named(row.ppid)
}

/// Whether systemd started this very process as a service (SYSTEMD_EXEC_PID of systemd.exec(5)): it owns it.
fn is_started_by_systemd(picture: &Picture<'_>, row: &Stat) -> bool {
    picture.all.get(row.ppid).is_some_and(|parent| parent.comm == "systemd")
        && variable(&picture.sight.environ(row), "SYSTEMD_EXEC_PID")
            .is_some_and(|pid| pid.to_str() == Some(&row.pid.to_string()))
}

/// Whether PID 1 is a container's agent or shell, and holds a pipe or terminal that is one of the process's standard
/// descriptors: somebody living reads it.
fn is_read_by_pid_1(picture: &Picture<'_>, row: &Stat) -> bool {
    if row.ppid != 1 {
        return false;
    }
    let is_init = picture
        .all
        .get(1)
        .is_none_or(|first| ADOPTERS.contains(&first.comm.as_str()) || INITS.contains(&first.comm.as_str()));
    if is_init {
        return false;
    }
    let mut given = picture.sight.streams(row.pid).unwrap_or_default();
    given.retain(Descriptor::is_meant);
    match picture.sight.streams(1) {
        Some(held) => given.iter().any(|d| held.iter().any(|h| h.stream == d.stream)),
        // What cannot be seen may be held.
        None => !given.is_empty(),
    }
}

/// Whether a parent that does not look like a test process feeds this worker nevertheless: execnet speaks with its
/// workers over pipes of its own, and a script that calls pytest has any name.
fn feeds(picture: &Picture<'_>, parent: &Stat, worker: &Stat) -> bool {
    let (Some(streams), Some(held)) = (picture.sight.streams(worker.pid), picture.sight.streams(parent.pid))
    else {
        // What cannot be seen may be so.
        return true;
    };
    // The output that both inherited says nothing.
    let output: Vec<&Stream> = streams.iter().filter(|d| d.number == 2).map(|d| &d.stream).collect();
    let mut pipes = streams.iter().filter(|d| d.is_meant()).map(|d| &d.stream);
    pipes.any(|pipe| {
        matches!(pipe, Stream::Pipe(_)) && !output.contains(&pipe) && held.iter().any(|h| h.stream == *pipe)
    })
}
