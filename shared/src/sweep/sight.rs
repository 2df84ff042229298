//! The picture that decisions rest on: one pass over /proc, and what else has to be known of the few processes that
//! it leaves over, read when it is asked for.

use super::argv::{self, Test};
use crate::process::{Snapshot, Stat};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What a standard descriptor leads to, when somebody may be reading at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// A pipe, by its inode.
    Pipe(u64),
    /// A terminal, by its name.
    Terminal(String),
}

/// A descriptor that is a pipe or a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// Its number.
    pub(super) number: u32,
    /// What it is.
    pub(super) stream: Stream,
    /// Whether it is closed on exec: then the process made it itself, and did not inherit it under this number.
    pub(super) own: bool,
}

impl Descriptor {
    /// Whether it is what the process was given as its 0, 1 or 2, or a pipe that it made: not one that it inherited by
    /// somebody's oversight. While pytest captures, it keeps its standard descriptors under other numbers.
    pub(super) fn is_meant(&self) -> bool {
        self.number <= 2 || self.own
    }
}

/// Whose a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Its real uid.
    pub uid: u32,
    /// Whether it lives in a PID namespace inside ours: a container's, whose first process has a parent outside.
    pub contained: bool,
}

/// What can be seen of a process beyond its stat file. Decisions are functions of a [`Snapshot`] and of this, so
/// that they can be tested on a written picture.
pub(super) trait Sight {
    /// Its arguments, as /proc/PID/cmdline holds them.
    fn cmdline(&self, row: &Stat) -> Vec<u8>;
    /// Whose it is; `None` when it has gone.
    fn owner(&self, row: &Stat) -> Option<Owner>;
    /// Where it works, as the kernel words it.
    fn cwd(&self, row: &Stat) -> Option<PathBuf>;
    /// The environment that it was started with; empty where it cannot be read.
    fn environ(&self, row: &Stat) -> Vec<u8>;
    /// Its descriptors that are pipes or terminals; `None` when they cannot be read.
    fn streams(&self, pid: i32) -> Option<Vec<Descriptor>>;
    /// Whether it runs: a zombie with another thread alive does.
    fn is_alive(&self, row: &Stat) -> bool;
    /// Whether this number is a process's that the picture does not show (hidepid of proc(5), or just born).
    fn exists(&self, pid: i32) -> bool;
}

/// The real /proc.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proc;

impl Proc {
    /// Reads a file of a process: of its main thread, or, where that has exited and took its memory along, of a
    /// thread that lives.
    fn read(row: &Stat, file: &str) -> Vec<u8> {
        let bytes = std::fs::read(format!("/proc/{}/{file}", row.pid)).unwrap_or_default();
        if !bytes.is_empty() || row.threads < 2 {
            return bytes;
        }
        threads(row.pid)
            .filter_map(|task| std::fs::read(task.join(file)).ok())
            .find(|bytes| !bytes.is_empty())
            .unwrap_or_default()
    }
}

fn threads(pid: i32) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().map(|entry| entry.path())
}

impl Sight for Proc {
    fn cmdline(&self, row: &Stat) -> Vec<u8> {
        Proc::read(row, "cmdline")
    }

    fn owner(&self, row: &Stat) -> Option<Owner> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", row.pid)).ok()?;
        let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name));
        let uid = field("Uid:")?.split_ascii_whitespace().next()?.parse().ok()?;
        let depth = field("NSpid:").map_or(1, |pids| pids.split_ascii_whitespace().count());
        Some(Owner { uid, contained: depth > 1 })
    }

    fn cwd(&self, row: &Stat) -> Option<PathBuf> {
        crate::process::cwd(row.pid)
    }

    fn environ(&self, row: &Stat) -> Vec<u8> {
        Proc::read(row, "environ")
    }

    fn streams(&self, pid: i32) -> Option<Vec<Descriptor>> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        Some(entries.flatten().filter_map(|entry| descriptor(pid, &entry)).collect())
    }

    fn is_alive(&self, row: &Stat) -> bool {
        row.is_alive()
    }

    fn exists(&self, pid: i32) -> bool {
        let Some(pid) = rustix::process::Pid::from_raw(pid) else { return false };
        // EPERM says that there is one.
        rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
    }
}

/// One entry of /proc/PID/fd, if it is a pipe or a terminal.
fn descriptor(pid: i32, entry: &std::fs::DirEntry) -> Option<Descriptor> {
    let number = entry.file_name().to_str()?.parse().ok()?;
    let target = std::fs::read_link(entry.path()).ok()?;
    let target = target.to_str()?;
    let is_master = matches!(target, "/dev/ptmx" | "/dev/pts/ptmx");
    let is_terminal = ["/dev/pts/", "/dev/tty", "/dev/console"].iter().any(|t| target.starts_with(t));
    let pipe = target.strip_prefix("pipe:[");
    if pipe.is_none() && !is_master && !is_terminal {
        return None;
    }
    // What proc_pid_fdinfo(5) tells: the flags in octal, and of a terminal's other side its number.
    let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    let stream = match pipe {
        Some(inode) => Stream::Pipe(inode.strip_suffix(']')?.parse().ok()?),
        None if is_master => Stream::Terminal(format!("/dev/pts/{}", field("tty-index:")?)),
        None => Stream::Terminal(target.to_owned()),
    };
    Some(Descriptor { number, stream, own: flags & libc::O_CLOEXEC != 0 })
}

/// A pass over /proc and what was read on top of it.
pub(super) struct Picture<'a> {
    /// All processes.
    pub all: &'a Snapshot,
    /// The rest, where needed.
    pub sight: &'a dyn Sight,
    tests: RefCell<HashMap<i32, Option<Test>>>,
}

impl<'a> Picture<'a> {
    /// The picture of a pass.
    pub(super) fn new(all: &'a Snapshot, sight: &'a dyn Sight) -> Picture<'a> {
        Picture { all, sight, tests: RefCell::default() }
    }

    /// What a process's arguments say that it is.
    pub(super) fn test(&self, row: &Stat) -> Option<Test> {
        if let Some(&known) = self.tests.borrow().get(&row.pid) {
            return known;
        }
        let cmdline = self.sight.cmdline(row);
        let test = argv::read(&argv::split(&cmdline));
        self.tests.borrow_mut().insert(row.pid, test);
        test
    }

    /// The command line for people and patterns: joined by spaces, lossily; the name in brackets where there is
    /// none.
    pub(super) fn command(&self, row: &Stat) -> String {
        let cmdline = self.sight.cmdline(row);
        let text = String::from_utf8_lossy(&cmdline);
        match text.trim_end_matches('\0') {
            "" => format!("[{}]", row.comm),
            joined => joined.replace('\0', " "),
        }
    }

    /// The process and its ancestors, as far as the picture shows them.
    pub(super) fn line(&self, pid: i32) -> Vec<&'a Stat> {
        let mut line: Vec<&Stat> = Vec::new();
        let mut at = self.all.get(pid);
        while let Some(row) = at.filter(|row| !line.iter().any(|seen| seen.pid == row.pid)) {
            line.push(row);
            at = self.all.get(row.ppid);
        }
        line
    }
}

/// A variable of an environment.
pub(super) fn variable(environ: &[u8], name: &str) -> Option<OsString> {
    environ
        .split(|&b| b == 0)
        .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .map(|value| OsString::from_vec(value.to_vec()))
}
