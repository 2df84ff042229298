//! What the benchmarks start as jobs and as the barest of waiters: `xtask peer …`.

use super::measure::clock;
use crate::{Failure, Result, doing};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::time::Duration;

/// `stamp FILE`: the time, now. `stamp-after MS FILE`: after that many milliseconds. `wait PID`: until that
/// process has ended, by its pidfd and nothing else.
pub(crate) fn peer(words: &[&str]) -> Result {
    match words {
        ["stamp", file] => stamp(file),
        ["stamp-after", ms, file] => {
            std::thread::sleep(Duration::from_millis(doing(format!("read {ms}"), ms.parse())?));
            stamp(file)
        }
        ["wait", pid] => {
            let pid = pid.parse().ok().and_then(Pid::from_raw);
            let pid = pid.ok_or_else(|| Failure::new("cannot wait: that is no PID").code(2))?;
            let pidfd = doing("open its pidfd", pidfd_open(pid, PidfdFlags::empty()))?;
            doing("wait", poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None)).map(drop)
        }
        _ => Err(Failure::new("peers are what `bench` starts: stamp, stamp-after, wait").code(2)),
    }
}

fn stamp(file: &str) -> Result {
    doing(format!("write {file}"), fs::write(file, format!("{}\n", clock())))
}
