//! Who holds the lock of a file: read from the holders' own /proc/PID/fdinfo. /proc/locks names the process
//! that took the lock, which for a supervisor is the launcher, long gone.

use super::Snapshot;
use std::os::unix::fs::MetadataExt;

/// A file by device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileRef {
    /// st_dev
    pub dev: u64,
    /// st_ino
    pub ino: u64,
}

/// Whether this process holds an exclusive flock on this file.
pub fn holds_lock(pid: i32, file: FileRef) -> bool {
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    fds.flatten().any(|fd| {
        let same = std::fs::metadata(fd.path()).is_ok_and(|m| m.dev() == file.dev && m.ino() == file.ino);
        same && fd.file_name().to_str().is_some_and(|n| {
            std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{n}")).is_ok_and(|info| {
                info.lines().any(|l| l.starts_with("lock:") && l.contains("FLOCK") && l.contains("WRITE"))
            })
        })
    })
}

/// The supervisors (by name and uid) that hold this file's lock: how a job is found whose header is gone.
pub fn holders(snapshot: &Snapshot, file: FileRef, uid: u32) -> Vec<i32> {
    snapshot
        .rows()
        .filter(|row| row.comm == crate::supervise::COMM)
        .filter(|row| super::real_uid(row.pid) == Some(uid))
        .map(|row| row.pid)
        .filter(|&pid| holds_lock(pid, file))
        .collect()
}
