//! /proc/PID/stat, read into a buffer on the stack and taken apart as bytes: the sweep reads thousands.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::os::fd::AsFd;

/// What the tools need of /proc/PID/stat (proc_pid_stat(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub pid: i32,
    /// The executable's name, at most 15 bytes, lossily.
    pub comm: String,
    /// `R`, `S`, `D`, `Z`, `T`, …
    pub state: char,
    /// Its parent.
    pub ppid: i32,
    /// Its process group.
    pub pgid: i32,
    /// Its session.
    pub sid: i32,
    /// User and system time, in clock ticks, of the process alone.
    pub cpu_ticks: u64,
    /// How many threads it has.
    pub threads: i64,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Resident pages.
    pub rss_pages: u64,
}

impl Stat {
    /// Takes the text apart. The name may hold spaces and parentheses: what counts is the last one.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let open = memchr::memchr(b'(', text)?;
        let close = memchr::memrchr(b')', text)?;
        let pid = number(text.get(..open)?.trim_ascii())?;
        let comm = String::from_utf8_lossy(text.get(open + 1..close)?).into_owned();
        let mut fields = text.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
        let state = char::from(*fields.next()?.first()?);
        // Field 3 is the state; from here on field N of the manual page is at index N - 4.
        let mut rest = [0i64; 21];
        for place in &mut rest {
            *place = number(fields.next()?)?;
        }
        let small = |i: usize| i32::try_from(rest[i]).ok();
        let large = |i: usize| u64::try_from(rest[i]).unwrap_or(0);
        Some(Stat {
            pid: i32::try_from(pid).ok()?,
            comm,
            state,
            ppid: small(0)?,
            pgid: small(1)?,
            sid: small(2)?,
            cpu_ticks: large(10) + large(11),
            threads: rest[16],
            start: large(18),
            rss_pages: large(20),
        })
    }

    /// Whether the process runs: not a zombie, or one whose main thread alone has exited.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || has_live_thread(self.pid)
    }

    /// Whether a job-control signal has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T')
    }
}

fn number(text: &[u8]) -> Option<i64> {
    let (digits, sign) = match text.strip_prefix(b"-") {
        Some(rest) => (rest, -1),
        None => (text, 1),
    };
    if digits.is_empty() {
        return None;
    }
    // Some fields are unsigned 64-bit numbers: what does not fit is not one that we read.
    digits
        .iter()
        .try_fold(0i64, |n, b| {
            b.is_ascii_digit().then(|| n.saturating_mul(10).saturating_add(i64::from(b - b'0')))
        })
        .map(|n| n * sign)
}

/// Reads the stat file of a process; `None` where there is none, or it is a thread's id and no process's.
pub fn read_stat(pid: i32) -> Option<Stat> {
    let stat = read_stat_at(CWD, &format!("/proc/{pid}/stat"))?;
    // /proc/TID/stat is readable though not listed; the state of a thread is no answer about a process.
    (stat.pid == pid && is_process(pid)).then_some(stat)
}

pub(super) fn read_stat_at(dir: impl AsFd, path: &str) -> Option<Stat> {
    let fd = openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0u8; 1024];
    let n = rustix::io::read(&fd, &mut buffer).ok()?;
    Stat::parse(buffer.get(..n)?)
}

/// Whether this number is a process's and not a thread's: `kill(TID, 0)` succeeds for both.
fn is_process(pid: i32) -> bool {
    let Some(raw) = rustix::process::Pid::from_raw(pid) else { return false };
    match rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty()) {
        Ok(_) => true,
        // ENOENT (before 6.x: EINVAL) for a thread, ESRCH for nobody; a zombie that was reaped in between.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL | rustix::io::Errno::SRCH) => false,
        // No pidfds here, or no descriptors left: the status file says which it is.
        Err(_) => std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| {
            s.lines().any(|l| l.strip_prefix("Tgid:").is_some_and(|t| t.trim() == pid.to_string()))
        }),
    }
}

/// Whether a process whose main thread is a zombie has another thread that lives.
fn has_live_thread(pid: i32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks.flatten().filter(|t| t.file_name().to_str().is_some_and(|n| n != pid.to_string())).any(|task| {
        std::fs::read(task.path().join("stat"))
            .ok()
            .and_then(|text| Stat::parse(&text))
            .is_some_and(|s| !matches!(s.state, 'Z' | 'X' | 'x'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4242 (a) b (c)) S 17 4242 4240 34816 4242 4194560 1 2 3 4 55 11 7 8 20 0 9 0 7777 111 222 18446744073709551615 1 1 0";

    #[test]
    fn c35_the_name_may_hold_spaces_and_parentheses() {
        let s = Stat::parse(LINE.as_bytes()).unwrap();
        assert_eq!((s.pid, s.comm.as_str(), s.state), (4242, "a) b (c)", 'S'));
        assert_eq!((s.ppid, s.pgid, s.sid), (17, 4242, 4240));
        assert_eq!((s.cpu_ticks, s.threads, s.start, s.rss_pages), (66, 9, 7777, 222));
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        for n in 0..LINE.find(" 222").unwrap() {
            assert_eq!(Stat::parse(&LINE.as_bytes()[..n]), None, "{n}");
        }
    }

    #[test]
    fn this_process_is_alive_and_a_thread_is_no_process() {
        let me = std::process::id().cast_signed();
        assert!(read_stat(me).unwrap().is_alive());
        let (send, get) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = stopped.recv();
        });
        let tid = get.recv().unwrap();
        assert!(std::fs::exists(format!("/proc/{tid}/stat")).unwrap());
        assert_eq!(read_stat(tid), None);
        drop(stop);
        thread.join().unwrap();
    }
}
