//! A finished job marked as collected: it leaves the list, nothing else.

use super::{DirLock, Job, RunDir, collected_line, read_pid_file};
use crate::term::{Failure, Result};
use rustix::fs::OFlags;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// Writes the line that marks a finished job as collected, once. A log without a header is somebody else's: it is
/// never written. Says whether it was written.
///
/// # Errors
/// When the log cannot be written.
pub fn collect(dir: &RunDir, job: &Job) -> Result<bool> {
    let Some(log) = &job.log else { return Ok(false) };
    let Some(id) = log.job() else { return Ok(false) };
    if job.state.is_running() || log.end.collected || job.is_newer() {
        return Ok(false);
    }
    let file_name = log.name.file();
    let doing = || format!("mark {} as collected", dir.path_of(&file_name).display());
    if log.links != 1 {
        return Err(Failure::cannot(doing(), format!("the log has {} links, not one", log.links)));
    }
    let Some((mut file, stat)) = dir.open_file(&file_name, OFlags::RDWR | OFlags::APPEND)? else {
        return Ok(false);
    };
    if (stat.st_dev, stat.st_ino) != (log.id.file.dev, log.id.file.ino) {
        return Ok(false);
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let mut last = [b'\n'];
    let mut line = collected_line(id);
    if size > 0 && file.read_at(&mut last, size - 1).is_ok() && last != *b"\n" {
        line.insert(0, b'\n');
    }
    file.write_all(&line).map_err(|e| Failure::cannot(doing(), e))?;
    Ok(true)
}

/// Removes the PID file of a job that is over, if it still is the one that was read; under the directory's lock, so
/// that no launch replaces it meanwhile. Says whether there was one.
///
/// # Errors
/// When it cannot be removed.
pub fn clear_pid_file(dir: &RunDir, _lock: &DirLock, job: &Job) -> Result<bool> {
    let Some(seen) = &job.pid_file else { return Ok(false) };
    let file_name = seen.stem.pid_file();
    match read_pid_file(dir, &seen.stem)? {
        Some(now) if !now.held && now.id.file == seen.id.file && now.content == seen.content => {
            dir.remove(&file_name)
                .map_err(|e| Failure::cannot(format!("remove {}", dir.path_of(&file_name).display()), e))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}
