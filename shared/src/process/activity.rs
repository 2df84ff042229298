//! What a tree is doing: how many processes, their CPU time and memory, and when any of them last ran.

use super::{Snapshot, Stat, ticks_per_second};
use std::time::Duration;

/// A tree's use of the machine, at one look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// Living processes.
    pub processes: usize,
    /// CPU time they have used so far, in seconds; what already ended is not in it.
    pub cpu_seconds: f64,
    /// Resident memory, in KiB; shared pages count once a process.
    pub rss_kb: u64,
}

/// Sums up living processes.
pub fn activity<'a>(rows: impl IntoIterator<Item = &'a Stat>) -> Activity {
    let page_kb = rustix::param::page_size() as u64 / 1024;
    let mut sum = Activity::default();
    let mut ticks = 0;
    for row in rows {
        sum.processes += 1;
        ticks += row.cpu_ticks;
        sum.rss_kb += row.rss_pages * page_kb;
    }
    #[expect(clippy::cast_precision_loss, reason = "a sum of CPU ticks is far below 2^52")]
    let seconds = ticks as f64 / ticks_per_second() as f64;
    sum.cpu_seconds = seconds;
    sum
}

/// How long ago any thread of these processes last ran on a CPU; `None` where the kernel does not tell
/// (/proc/PID/sched needs CONFIG_SCHED_DEBUG) or none could be read.
pub fn since_last_ran(pids: &[i32]) -> Option<Duration> {
    // The scheduler's clock has no name in user space: this process, which runs now, tells what it shows.
    let now = exec_start("/proc/thread-self/sched")?;
    let mut last: Option<f64> = None;
    for pid in pids {
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            if let Some(at) = task.path().join("sched").to_str().and_then(exec_start) {
                last = Some(last.map_or(at, |l| l.max(at)));
            }
        }
    }
    Duration::try_from_secs_f64(((now - last?) / 1000.0).max(0.0)).ok()
}

/// `se.exec_start` in milliseconds.
fn exec_start(path: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix("se.exec_start")?.rsplit(':').next()?.trim().parse().ok())
}

/// The living processes of a job: below its supervisors, or, without them, the leader and what is below it.
pub fn members<'a>(all: &'a Snapshot, supervisors: &[i32], leader: Option<i32>) -> Vec<&'a Stat> {
    let root = supervisors.iter().copied().find(|&pid| all.get(pid).is_some());
    let rows: Vec<&Stat> = match (root, leader) {
        (Some(root), _) => all.descendants(root),
        (None, Some(leader)) => all.get(leader).into_iter().chain(all.descendants(leader)).collect(),
        (None, None) => vec![],
    };
    rows.into_iter().filter(|r| r.comm != crate::supervise::COMM && r.is_alive()).collect()
}
