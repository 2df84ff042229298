//! Locks: the directory's, which serialises launches, and the probe of a job's (CONTRACT.md §1, §3).
//!
//! All locks are flock(2)'s: they belong to an open file description, so that the halves of a supervisor
//! share one, and the kernel drops it with the last descriptor. Nobody calls LOCK_UN on a lock that a child shares.

use super::RunDir;
use crate::sys;
use crate::term::{Failure, Result};
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

const LOCK_FILE: &str = ".lock";
const PATIENCE: Duration = Duration::from_secs(10);

/// The run directory's lock, held until this is dropped.
#[derive(Debug)]
pub struct DirLock {
    file: File,
}

/// What a look at a lock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Somebody holds it: alive.
    Held,
    /// Nobody holds it.
    Free,
}

/// Whether somebody holds an exclusive lock on this open file, which must be the caller's own description. The shared
/// lock that tells is given back at once and not when the file is closed: a reader that keeps its log open must not
/// keep others (a tb-kill that has to write the end) from locking it.
///
/// # Errors
/// When the file system does not lock.
pub fn probe(file: &File) -> std::io::Result<Probe> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| Probe::Free),
        Err(TryLockError::WouldBlock) => Ok(Probe::Held),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Takes the exclusive lock of an open file, asleep in the kernel; false when it could not be had in this time.
///
/// # Errors
/// When the file system does not lock.
pub fn lock_within(file: &File, patience: Duration) -> std::io::Result<bool> {
    match file.try_lock() {
        Ok(()) => return Ok(true),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(e)) => return Err(e),
    }
    let started = Instant::now();
    // The alarm interrupts the blocking call; it repeats, so that one that fires before the call has begun does not
    // leave it asleep for ever.
    let _alarm = sys::Alarm::every(Duration::from_millis(250));
    loop {
        match file.lock() {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == ErrorKind::Interrupted => {
                if started.elapsed() >= patience {
                    return Ok(false);
                }
            }
            Err(e) => return Err(e),
        }
    }
}

impl DirLock {
    /// Takes the lock, waiting at most 10 s, asleep in the kernel.
    ///
    /// # Errors
    /// When it cannot be had in that time, or the directory cannot be written.
    pub fn take(dir: &RunDir) -> Result<DirLock> {
        let path = dir.path_of(LOCK_FILE);
        let doing = format!("lock {}", path.display());
        let Some((file, _)) = dir.open_file(LOCK_FILE, OFlags::RDWR | OFlags::CREATE)? else {
            return Err(Failure::cannot(doing, "the run directory is gone"));
        };
        match lock_within(&file, PATIENCE) {
            Ok(true) => Ok(DirLock { file }),
            Ok(false) => Err(Failure::cannot(doing, "another tool has held it for 10 s")
                .hint(format!("see who: fuser {}", path.display()))),
            Err(e) => Err(Failure::cannot(doing, e).hint(NO_LOCKS)),
        }
    }

    /// The descriptor, for a supervisor that holds the lock until its job is published.
    pub fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.file.as_fd()
    }

    /// Checks that a lock taken through one description is seen through another: some network file
    /// systems say yes to everybody.
    ///
    /// # Errors
    /// When it is not seen.
    pub fn check_that_locks_work(&self, dir: &RunDir) -> Result<()> {
        let fails = || {
            Failure::cannot(
                format!("use the run directory {}", dir.path().display()),
                "this file system does not lock: use --log-dir",
            )
        };
        let (other, _) = dir.open_file(LOCK_FILE, OFlags::RDWR)?.ok_or_else(fails)?;
        match probe(&other) {
            Ok(Probe::Held) => Ok(()),
            _ => Err(fails()),
        }
    }

    /// The next job number, recorded before it is used: a handle is never handed out twice.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn next_number(&mut self) -> std::io::Result<u64> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(32).read_to_string(&mut text).or_else(|e| match e.kind() {
            ErrorKind::InvalidData => Ok(0),
            _ => Err(e),
        })?;
        let next = text.trim().parse::<u64>().unwrap_or(0).saturating_add(1);
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(format!("{next}\n").as_bytes())?;
        Ok(next)
    }
}

const NO_LOCKS: &str = "this file system does not lock: use --log-dir";
