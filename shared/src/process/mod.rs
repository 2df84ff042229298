//! Who a process is, and how it is signalled without ever meeting another (CONTRACT.md §7).
//!
//! A process is (boot, PID namespace, time namespace, PID, start). A bare number is never signalled: signals go
//! through a pidfd that was opened before the identity was checked.

mod activity;
mod clock;
mod facts;
mod handle;
mod here;
mod locks;
mod snapshot;
mod stat;

pub use activity::{Activity, activity, members, since_last_ran};
pub use clock::{boottime, boottime_ticks, started_at, ticks_per_second};
pub use facts::{Facts, comm, command_line, cwd, has_open, ignores, real_uid};
pub use handle::Handle;
pub use here::Here;
pub use locks::{FileRef, holders, holds_lock};
pub use snapshot::Snapshot;
pub use stat::{Stat, read_stat};

/// A process by number and start time in clock ticks since boot: unique within a boot and its namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ident {
    /// Its PID.
    pub pid: i32,
    /// When it started, in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start: u64,
}

impl Ident {
    /// This process.
    pub fn me() -> Ident {
        let pid = std::process::id().cast_signed();
        Ident { pid, start: read_stat(pid).map_or(0, |s| s.start) }
    }

    /// Whether exactly this process lives: a zombie is dead, unless another of its threads still runs.
    pub fn is_alive(self) -> bool {
        read_stat(self.pid).is_some_and(|s| s.start == self.start && s.is_alive())
    }
}

/// This process and its ancestors, nearest first, as far as /proc shows them. Each is one file: a parent's number is a
/// process's, never a thread's.
pub fn lineage() -> Vec<Stat> {
    let mut line: Vec<Stat> = Vec::new();
    let mut pid = std::process::id().cast_signed();
    while pid > 0 && !line.iter().any(|s| s.pid == pid) {
        let Some(stat) = stat::read_stat_at(rustix::fs::CWD, &format!("/proc/{pid}/stat")) else { break };
        pid = stat.ppid;
        line.push(stat);
    }
    line
}

/// The PIDs of this process and of its ancestors.
pub fn self_and_ancestors() -> Vec<i32> {
    lineage().into_iter().map(|s| s.pid).collect()
}
