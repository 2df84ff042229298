//! Single facts about single processes. One at a time, the procfs crate is the reader of choice: it holds the
//! process's directory open, so that all facts are of one process. Whole passes are `Snapshot`'s.

use procfs::process::Process;
use std::path::PathBuf;

/// What a message or a record says of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its arguments, joined by spaces, lossily, cut to 256 characters; its name in brackets where it has none.
    pub command: String,
    /// Its real uid.
    pub uid: Option<u32>,
    /// `S`, `D`, `Z`, …
    pub state: Option<char>,
    /// Where it waits in the kernel, when that can be seen.
    pub wchan: Option<String>,
}

impl Facts {
    /// Reads what can be seen of a process.
    pub fn read(pid: i32) -> Facts {
        let Ok(process) = Process::new(pid) else { return Facts::default() };
        let stat = process.stat().ok();
        Facts {
            command: command_line(pid),
            uid: process.status().ok().map(|s| s.ruid),
            state: stat.map(|s| s.state),
            wchan: process.wchan().ok().filter(|w| w != "0" && !w.is_empty()),
        }
    }
}

/// The real uid of a process.
pub fn real_uid(pid: i32) -> Option<u32> {
    Process::new(pid).ok()?.status().ok().map(|s| s.ruid)
}

/// Whether a process ignores a signal.
pub fn ignores(pid: i32, signal: i32) -> bool {
    let Ok(bit) = u32::try_from(signal - 1) else { return false };
    let status = Process::new(pid).and_then(|process| process.status());
    status.is_ok_and(|status| status.sigign.checked_shr(bit).is_some_and(|bits| bits & 1 != 0))
}

/// The arguments of a process for a person: joined, lossily, cut to 256 characters; `[comm]` where it has none.
pub fn command_line(pid: i32) -> String {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&arguments);
    let joined = text.trim_end_matches('\0').replace('\0', " ");
    if joined.is_empty() {
        return comm(pid).map_or_else(String::new, |c| format!("[{c}]"));
    }
    joined.chars().take(256).collect()
}

/// The executable's name, at most 15 bytes.
pub fn comm(pid: i32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|s| s.trim_end_matches('\n').to_owned())
}

/// Where a process works: of the process, or, where its main thread has exited, of any live thread.
pub fn cwd(pid: i32) -> Option<PathBuf> {
    if let Ok(path) = std::fs::read_link(format!("/proc/{pid}/cwd")) {
        return Some(path);
    }
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    tasks.flatten().find_map(|t| std::fs::read_link(t.path().join("cwd")).ok())
}

/// Whether a process has this file open.
pub fn has_open(pid: i32, dev: u64, ino: u64) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    fds.flatten().any(|fd| std::fs::metadata(fd.path()).is_ok_and(|m| m.dev() == dev && m.ino() == ino))
}
