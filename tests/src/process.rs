//! Who a process is, whether it lives, and how it is stopped without ever hitting another.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;

/// A process: a number is reused, a number with its start time is not (within one boot).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proc {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
}

/// What these tests need of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `T`, `Z`, …
    pub state: char,
    /// Parent.
    pub ppid: u32,
    /// Process group.
    pub pgid: u32,
    /// Session.
    pub sid: u32,
    /// Start time.
    pub start: u64,
}

/// What `/proc/PID/stat` says, `None` when there is no such process.
pub fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(text: &str) -> Option<Stat> {
    // The command's name may hold anything, parentheses and spaces too: what counts is after the last one.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(Stat {
        state: fields.next()?.chars().next()?,
        ppid: fields.next()?.parse().ok()?,
        pgid: fields.next()?.parse().ok()?,
        sid: fields.next()?.parse().ok()?,
        start: fields.nth(15)?.parse().ok()?,
    })
}

/// Every process that can be seen, by number.
pub fn processes() -> Vec<(Proc, Stat)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut all: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| stat(pid).map(|stat| (Proc { pid, start: stat.start }, stat)))
        .collect();
    all.sort_by_key(|(proc, _)| *proc);
    all
}

impl Proc {
    /// The process that bears this number now.
    pub fn of(pid: u32) -> Option<Proc> {
        stat(pid).map(|stat| Proc { pid, start: stat.start })
    }

    /// What `/proc` says of it, `None` when it is gone or its number is somebody else's by now.
    pub fn stat(self) -> Option<Stat> {
        stat(self.pid).filter(|stat| stat.start == self.start)
    }

    /// Whether it runs. A process in state Z is dead only when none of its other threads lives: one whose
    /// main thread has exited shows Z as well, and an empty environment, and goes on running.
    pub fn alive(self) -> bool {
        match self.stat() {
            None => false,
            Some(Stat { state: 'Z' | 'X', .. }) => self.threads().any(|state| !matches!(state, 'Z' | 'X')),
            Some(_) => true,
        }
    }

    fn threads(self) -> impl Iterator<Item = char> {
        fs::read_dir(format!("/proc/{}/task", self.pid))
            .into_iter()
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
            .filter_map(|text| parse(&text).map(|stat| stat.state))
    }

    /// Its argument vector, joined by spaces; for messages.
    pub fn command(self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', " ")
    }

    /// Whether `NAME=VALUE` is in its environment, as far as that can be read. It is looked for in every
    /// thread: that of an exited main thread is empty.
    pub fn has_env(self, entry: &str) -> bool {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return false };
        tasks.flatten().any(|task| {
            fs::read(task.path().join("environ"))
                .is_ok_and(|bytes| bytes.split(|b| *b == 0).any(|e| e == entry.as_bytes()))
        })
    }

    /// Waits out the moment of an exec in which a process has neither arguments nor environment: who looked
    /// then would take it for somebody else's. (Kernel threads never have any.)
    pub fn settle(self) {
        for _ in 0..50 {
            let passing =
                self.stat().is_some_and(|s| !matches!(s.state, 'Z' | 'X') && s.ppid != 2 && s.ppid != 0)
                    && fs::read(format!("/proc/{}/cmdline", self.pid)).is_ok_and(|bytes| bytes.is_empty());
            if !passing {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Sends a signal to this process and no other: the pidfd is opened before the start time is compared.
    /// Whether it was sent.
    pub fn signal(self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        self.stat().is_some() && pidfd_send_signal(&fd, signal).is_ok()
    }

    /// Sends SIGKILL, as [`Proc::signal`] does.
    pub fn kill(self) -> bool {
        self.signal(Signal::KILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_after_the_last_parenthesis() {
        let text = "7 (a) R 1 (b) S 11 22 33 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9999 0 0";
        assert_eq!(parse(text), Some(Stat { state: 'S', ppid: 11, pgid: 22, sid: 33, start: 9999 }));
        assert_eq!(parse("7 (cut"), None);
        assert_eq!(parse("7 (cut) S 1 2"), None);
    }

    #[test]
    fn we_ourselves_live_and_our_number_with_another_start_does_not() {
        let me = Proc::of(std::process::id()).expect("our own stat can be read");
        assert!(me.alive());
        let other = Proc { start: me.start + 1, ..me };
        assert!(!other.alive());
        assert!(!other.kill(), "a signal to a number that is somebody else's is not sent");
    }
}
