//! A job brought into being (CONTRACT.md §6): the forked copies' part. Nothing here returns to the launcher's code.
//!
//! What has to be done before the leader executes comes first; what makes a half a good resident (no title, no
//! descriptors, no directory of the caller's) comes while others are at work.

use super::COMM;
use super::acting::{HEARD, Known};
use super::capture::{Capture, LeaderEnds};
use super::halves::{self, Files};
use super::hook::Hook;
use super::machine::Policy;
use super::record::{Record, new_log, new_pid, publish_log};
use super::stall::Stall;
use super::tree::{Spare, Tree};
use super::words::Word;
use crate::contract::LogName;
use crate::process::{self, Ident};
use crate::sys::{self, Side, SignalFd};
use jiff::Timestamp;
use nix::sys::signal::Signal;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// From the monitor to the launcher, one line. A failed exec follows it as errno, 4 bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The job is published, and the leader is let go.
    Released { pid: i32, log: String },
    /// The supervisor could not do its part.
    Failed { what: String, why: String },
}

/// What the forked copies have.
pub(super) struct Start {
    pub record: Record,
    /// The leader's stdout and stderr.
    pub leader_log: File,
    /// What goes through the supervisor.
    pub capture: Capture,
    pub ends: LeaderEnds,
    /// The leader's stdin.
    pub null: File,
    pub command: sys::Command,
    pub policy: Policy,
    pub spare: Option<Spare>,
    pub limit: Option<Duration>,
    pub stall: Option<Stall>,
    pub hook: Option<Hook>,
    /// To the launcher.
    pub reply: OwnedFd,
    /// The directory's lock: held by the monitor until the job is published, even if the launcher dies.
    pub lock: RawFd,
    pub started_at: Timestamp,
    pub newest: Option<LogName>,
}

impl Start {
    /// Tells the launcher why, and ends. The barrier's end goes with this process, and the leader with that.
    fn fail(&self, what: &str, why: &io::Error) -> ! {
        self.record.abandon();
        let _ = self.post(&Reply::Failed { what: what.to_owned(), why: why.to_string() });
        sys::exit_now(1)
    }

    fn or_fail<T>(&self, what: &str, result: io::Result<T>) -> T {
        match result {
            Ok(value) => value,
            Err(e) => self.fail(what, &e),
        }
    }

    /// What a half goes on with, and what it has no more use for.
    fn into_known(
        self,
        leader: Ident,
        started: Instant,
    ) -> (Known, Files, (LeaderEnds, File, File, OwnedFd, sys::Command)) {
        let known = Known {
            policy: self.policy,
            tree: Tree::new(self.spare),
            leader,
            limit: self.limit,
            signal: libc::SIGTERM,
            leader_only: false,
            stall: self.stall,
            started,
        };
        (
            known,
            Files { record: self.record, hook: self.hook, capture: self.capture },
            (self.ends, self.leader_log, self.null, self.reply, self.command),
        )
    }

    fn post(&self, reply: &Reply) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply).map_err(io::Error::other)?;
        line.push(b'\n');
        rustix::io::write(&self.reply, &line)?;
        Ok(())
    }

    /// Writes the header and the PID, and gives both files their names.
    fn publish(&mut self, leader: Ident, front: Ident) -> io::Result<()> {
        let me = Ident::me();
        let header = &mut self.record.header;
        (header.pid, header.start) = (leader.pid, leader.start);
        header.supervisors = vec![(front.pid, front.start), (me.pid, me.start)];
        self.record.begin()?;
        (&self.record.pid_file).write_all(format!("{}\n", leader.pid).as_bytes())?;
        let (job, stem) = (&self.record.header.job, &self.record.stem);
        let log = publish_log(&self.record.dir, &new_log(job), stem, self.started_at, self.newest.as_ref())?;
        self.record.dir.rename(&new_pid(job), &stem.pid_file(), true)?;
        self.record.log_name = log;
        Ok(())
    }
}

/// Out of the caller's session, and the parent of whatever is orphaned below.
fn leave_the_caller() -> io::Result<()> {
    nix::unistd::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// What makes a half a good resident: the caller's descriptors but for `keep` are closed, its terminal, directory,
/// name and soft limits given up. The leader, forked before, has them as the caller has them.
fn settle(keep: &[RawFd]) {
    sys::close_all_except(keep);
    // None of it is worth ending a job for.
    let _ = sys::null_stdio();
    sys::set_title(COMM);
    let _ = rustix::thread::set_name(c"tb-supervise");
    let _ = std::env::set_current_dir("/");
    raise_limits();
}

/// Requests and children are read; what else could end a half is ignored.
fn listen() -> io::Result<SignalFd> {
    let ignored = [
        Signal::SIGXFSZ,
        Signal::SIGPIPE,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGQUIT,
        Signal::SIGALRM,
    ];
    ignored.into_iter().for_each(sys::ignore);
    let signals = SignalFd::block(&HEARD)?;
    sys::set_signal_mask(sys::set_of(&HEARD));
    Ok(signals)
}

/// The record must fit where the job's own limit ends.
fn raise_limits() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    for resource in [Resource::RLIMIT_FSIZE, Resource::RLIMIT_NOFILE] {
        if let Ok((soft, hard)) = getrlimit(resource)
            && soft != hard
        {
            // A limit that stays as it was is no worse than before.
            let _ = setrlimit(resource, hard, hard);
        }
    }
}

/// The front: forks the monitor at once and settles afterwards.
pub(super) fn become_front(start: Start) -> ! {
    start.or_fail("start a supervisor", leave_the_caller());
    let (words, tell) =
        start.or_fail("start a supervisor", pipe_with(PipeFlags::CLOEXEC).map_err(Into::into));
    let started = Instant::now();
    let monitor = match start.or_fail("start a supervisor", sys::fork()) {
        Side::Child => {
            drop(words);
            become_monitor(start, tell)
        }
        Side::Parent(pid) => pid,
    };
    let signals = start.or_fail("start a supervisor", listen());
    let words = File::from(words);
    let mut keep = start.record.fds();
    keep.extend([words.as_raw_fd(), signals.fd().as_raw_fd()]);
    keep.extend(start.stall.iter().flat_map(Stall::fds));
    keep.extend(start.capture.raw_fds());
    settle(&keep);
    let nobody = Ident { pid: 0, start: 0 };
    let (known, files, rest) = start.into_known(nobody, started);
    // Closed above, all at once: nobody may close the numbers again.
    std::mem::forget((rest, tell));
    halves::front(known, files, signals, &words, monitor)
}

/// The monitor: forks the leader, publishes the job, answers, lets the leader go, and settles.
fn become_monitor(mut start: Start, tell: OwnedFd) -> ! {
    const DOING: &str = "start a supervisor";
    let front = nix::unistd::getppid().as_raw();
    start.or_fail(DOING, leave_the_caller());
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
    let (barrier, release) = start.or_fail(DOING, pipe());
    let (exec_error, report) = start.or_fail(DOING, pipe());
    start.command.barrier = Some(barrier.as_raw_fd());
    start.command.close_first = vec![release.as_raw_fd(), start.lock];
    let spawned = start.command.spawn(&[start.reply.as_raw_fd(), report.as_raw_fd()]);
    let pid = start.or_fail("start the command", spawned);
    drop((barrier, report));
    let identified = |pid| process::read_stat(pid).map(|s| Ident { pid, start: s.start });
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let leader = start.or_fail("identify the command", identified(pid).ok_or_else(gone));
    let front = start.or_fail("identify the supervisor", identified(front).ok_or_else(gone));
    let signals = start.or_fail(DOING, listen());
    // From here on a failure ends this process, and with it the barrier's other end: the leader vanishes.
    let published = start.publish(leader, front);
    let doing = format!("write in {}", start.record.dir.path().display());
    start.or_fail(&doing, published);
    let tell = File::from(tell);
    // A front that is stopped must not hold up the monitor.
    let _ = rustix::io::ioctl_fionbio(&tell, true);
    let log = start.record.log_name.file();
    Word::Begin { header: Box::new(start.record.header.clone()), log: log.clone() }.tell(&tell);
    if start.post(&Reply::Released { pid, log }).is_err() {
        // The launcher is dead: nobody will ever have heard of this job.
        start.record.abandon();
        Word::Recorded.tell(&tell);
        sys::exit_now(1)
    }
    let started = Instant::now();
    let released = File::from(release).write_all(b"g");
    start.or_fail("start the command", released);
    let exec_error = File::from(exec_error);
    let mut keep = start.record.fds();
    keep.extend([tell.as_raw_fd(), signals.fd().as_raw_fd(), exec_error.as_raw_fd()]);
    keep.extend(start.stall.iter().flat_map(Stall::fds));
    keep.extend(start.capture.raw_fds());
    settle(&keep);
    let (known, files, rest) = start.into_known(leader, started);
    std::mem::forget(rest);
    halves::monitor(known, files, signals, tell, exec_error)
}
