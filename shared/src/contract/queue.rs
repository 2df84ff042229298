//! Launchers that wait for a place, in order of arrival (CONTRACT.md §1, `.queue`).
//!
//! The file holds the last ticket. A waiting launcher holds a lock on the byte of its ticket through a description of its
//! own (fcntl(2), open file description locks): the kernel drops it when the launcher launches, gives up or is
//! killed, and wakes whoever waits for that byte.

use super::{DirLock, RunDir};
use crate::sys;
use crate::term::{Failure, Result};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

const FILE: &str = ".queue";

/// A place in the queue, given up when this is dropped.
#[derive(Debug)]
pub struct Ticket {
    file: File,
    number: i64,
}

fn byte(kind: i32, from: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: from,
        l_len: length,
        l_pid: 0,
    }
}

fn open(dir: &RunDir) -> Result<File> {
    match dir.open_file(FILE, OFlags::RDWR | OFlags::CREATE)? {
        Some((file, _)) => Ok(file),
        None => Err(Failure::cannot("wait in the queue", "the run directory is gone")),
    }
}

/// Whether anybody waits.
///
/// # Errors
/// When the queue cannot be read.
pub fn is_waited(dir: &RunDir, _lock: &DirLock) -> Result<bool> {
    Ok(last_holder(&open(dir)?, i64::MAX)?.is_some())
}

impl Ticket {
    /// Takes a place behind everybody who waits; under the directory's lock, so that numbers are handed out in order.
    ///
    /// # Errors
    /// When the queue cannot be written or locked.
    pub fn take(dir: &RunDir, _lock: &DirLock) -> Result<Ticket> {
        let doing = "wait in the queue";
        let mut file = open(dir)?;
        let mut text = String::new();
        let number = (|| {
            (&file).take(32).read_to_string(&mut text)?;
            let number = text.trim().parse::<i64>().unwrap_or(0).max(0) + 1;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(format!("{number}\n").as_bytes())?;
            Ok(number)
        })()
        .map_err(|e: std::io::Error| Failure::cannot(doing, e))?;
        fcntl(&file, FcntlArg::F_OFD_SETLK(&byte(libc::F_WRLCK, number, 1)))
            .map_err(|e| Failure::cannot(doing, e.desc()))?;
        Ok(Ticket { file, number })
    }

    /// The nearest launcher before this one that still waits.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub fn before(&self) -> Result<Option<i64>> {
        last_holder(&self.file, self.number)
    }

    /// Sleeps until that launcher waits no more, at most until `deadline`. False when the time was up.
    ///
    /// # Errors
    /// When the queue cannot be locked.
    pub fn await_end_of(&self, other: i64, deadline: Option<Instant>) -> Result<bool> {
        let left = |d: Instant| d.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // The alarm ends a sleep in the kernel when the time is up, and again should it have come too early.
        let _alarm = deadline.map(|d| sys::Alarm::every(left(d).min(Duration::from_secs(3600))));
        loop {
            match fcntl(&self.file, FcntlArg::F_OFD_SETLKW(&byte(libc::F_RDLCK, other, 1))) {
                Ok(_) => {
                    // A description of our own, which nobody shares: unlocking it frees nobody else's.
                    let _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&byte(libc::F_UNLCK, other, 1)));
                    return Ok(true);
                }
                Err(Errno::EINTR) if deadline.is_some_and(|d| d <= Instant::now()) => return Ok(false),
                Err(Errno::EINTR) => {}
                Err(e) => return Err(Failure::cannot("wait in the queue", e.desc())),
            }
        }
    }
}

/// The highest ticket below `number` that somebody else holds.
fn last_holder(file: &File, number: i64) -> Result<Option<i64>> {
    let mut found = None;
    let mut from = 1;
    while from < number {
        let mut probe = byte(libc::F_WRLCK, from, number - from);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut probe))
            .map_err(|e| Failure::cannot("read the queue", e.desc()))?;
        if i32::from(probe.l_type) == libc::F_UNLCK {
            break;
        }
        found = Some(probe.l_start);
        from = probe.l_start + 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> (tempfile::TempDir, RunDir, DirLock) {
        let place = tempfile::tempdir().unwrap();
        let dir = RunDir::open(place.path()).unwrap().unwrap();
        let lock = DirLock::take(&dir).unwrap();
        (place, dir, lock)
    }

    #[test]
    fn places_are_in_order_and_given_up_with_their_holder() {
        let (_place, dir, lock) = queue();
        assert!(!is_waited(&dir, &lock).unwrap());
        let a = Ticket::take(&dir, &lock).unwrap();
        let b = Ticket::take(&dir, &lock).unwrap();
        let c = Ticket::take(&dir, &lock).unwrap();
        assert!(is_waited(&dir, &lock).unwrap());
        assert_eq!(a.before().unwrap(), None);
        assert_eq!(b.before().unwrap(), Some(a.number));
        assert_eq!(c.before().unwrap(), Some(b.number));
        drop(b);
        assert_eq!(c.before().unwrap(), Some(a.number));
        drop(a);
        assert_eq!(c.before().unwrap(), None);
        assert!(c.await_end_of(1, None).unwrap());
    }

    // That a wait ends with its time is tested with the tool: the alarm is the process's, and a test's thread may not
    // be the one that it interrupts.
    #[test]
    fn a_wait_ends_when_the_other_waits_no_more() {
        let (_place, dir, lock) = queue();
        let a = Ticket::take(&dir, &lock).unwrap();
        let b = Ticket::take(&dir, &lock).unwrap();
        let number = a.number;
        let waiter = std::thread::spawn(move || b.await_end_of(number, None).unwrap());
        drop(a);
        assert!(waiter.join().unwrap());
    }
}
