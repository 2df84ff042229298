//! A live job's two files in its supervisor's hands: the PID file that goes before the leader is waited for, the
//! log's last lines, whatever has become of the log and of the disk.

use super::hook::Trouble;
use super::trim::{self, Trim};
use crate::contract::{
    DirEntry, Dropped, Footer, Header, LogName, RunDir, Stem, Stopping, hook_line, now, read_log, stamp,
};
use crate::log::unread_lines;
use crate::process::FileRef;
use jiff::Timestamp;
use rustix::fs::{OFlags, fstat};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The files of the job that this process supervises. Both are locked through descriptions that the two halves
/// share and nobody else has.
pub(super) struct Record {
    pub dir: RunDir,
    pub header: Header,
    pub stem: Stem,
    /// The log's present name.
    pub log_name: LogName,
    /// Read, append; holds the lock.
    pub log: File,
    /// Holds the lock.
    pub pid_file: File,
    /// Whether new files follow the umask.
    pub shared: bool,
    /// How much of the output is kept, in bytes, and the block size of the file system.
    pub max_log: Option<(u64, u64)>,
    /// The log is not the one that the job began with.
    pub replaced: bool,
}

fn file_ref(file: &File) -> io::Result<FileRef> {
    let stat = fstat(file)?;
    Ok(FileRef { dev: stat.st_dev, ino: stat.st_ino })
}

impl Record {
    /// The descriptors that a half keeps.
    pub(super) fn fds(&self) -> Vec<RawFd> {
        vec![self.dir.fd().as_raw_fd(), self.log.as_raw_fd(), self.pid_file.as_raw_fd()]
    }

    /// Whether a path names this open file.
    fn names(&self, path: &str, file: &File) -> bool {
        match (self.dir.stat(path), file_ref(file)) {
            (Some(there), Ok(ours)) => (there.st_dev, there.st_ino) == (ours.dev, ours.ino),
            _ => false,
        }
    }

    /// Removes the PID file, if the path still names ours and it still says what we wrote: a shell's
    /// `echo $! > FILE` made it that shell's.
    pub(super) fn unpublish(&self) {
        let path = self.stem.pid_file();
        let mut content = [0u8; 32];
        let n = self.pid_file.read_at(&mut content, 0).unwrap_or(0);
        let ours = content[..n] == *format!("{}\n", self.header.pid).as_bytes();
        if ours && self.names(&path, &self.pid_file) {
            // Nothing more can be done about a directory that became read-only; the freed lock says the same.
            let _ = self.dir.remove(&path);
        }
    }

    /// Removes both files of a launch that did not come to be, under whatever name they are.
    pub(super) fn abandon(&self) {
        let ours: Vec<FileRef> =
            [&self.log, &self.pid_file].into_iter().filter_map(|f| file_ref(f).ok()).collect();
        let mut names = vec![new_log(&self.header.job), new_pid(&self.header.job), self.stem.pid_file()];
        // The launcher may have died after it had given the log its name: only the inode tells which.
        let logs = self.dir.entries().unwrap_or_default().into_iter();
        names.extend(logs.filter_map(|entry| match entry {
            DirEntry::Log(log) if log.stem == self.stem => Some(log.file()),
            _ => None,
        }));
        for name in names {
            if let Some(there) = self.dir.stat(&name)
                && ours.contains(&FileRef { dev: there.st_dev, ino: there.st_ino })
            {
                let _ = self.dir.remove(&name);
            }
        }
    }

    /// What a log begins with: the header, and, where its oldest output may go, the DROPPED line.
    fn first_bytes(&self) -> Vec<u8> {
        match self.max_log {
            Some((_, block)) => self.header.block(usize::try_from(block).unwrap_or(1), &Dropped::default()),
            None => self.header.line(),
        }
    }

    /// What keeps the log from growing, if anything is to.
    pub(super) fn trim(&self) -> Option<trim::Watch> {
        let (size, block) = self.max_log?;
        let trim = Trim::new(size, block, self.first_bytes().len() as u64);
        Some(trim::Watch::new(trim, self.dir.absolute().join(self.log_name.file())))
    }

    /// Writes the header: one write, the first of the file.
    ///
    /// # Errors
    /// When it cannot be written whole.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let line = self.first_bytes();
        match self.log.write(&line)? {
            n if n == line.len() => Ok(()),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Says that a stop begins, on a line of its own.
    pub(super) fn announce(&mut self, stop: &Stopping) {
        self.rehome();
        let mut line = stop.line();
        if !self.ends_in_newline() {
            line.insert(0, b'\n');
        }
        // A full disk does not keep a stop from happening; whoever asked sees the lock go.
        let _ = self.log.write_all(&line);
    }

    /// Adds text to the log, on lines of its own.
    pub(super) fn add(&mut self, text: &[u8]) {
        let mut lines = if self.ends_in_newline() { vec![] } else { vec![b'\n'] };
        lines.extend(text);
        // What a full disk keeps from being said is lost; the record's own words are more careful.
        let _ = self.log.write_all(&lines);
    }

    /// The end of the output so far.
    pub(super) fn tail(&self) -> Vec<u8> {
        tail(&self.log)
    }

    /// How long ago the log was last written to.
    pub(super) fn age(&self) -> Option<Duration> {
        age(&self.log)
    }

    fn size(&self) -> u64 {
        fstat(&self.log).map_or(0, |s| u64::try_from(s.st_size).unwrap_or(0))
    }

    fn ends_in_newline(&self) -> bool {
        let size = self.size();
        let mut last = [b'\n'];
        size == 0 || self.log.read_at(&mut last, size - 1).is_err() || last == *b"\n"
    }

    /// Whether the log still begins with our header.
    fn begins_with_header(&self) -> bool {
        let mut line = self.first_bytes();
        if self.max_log.is_some() {
            // The numbers behind it change.
            line.truncate(line.len() - Dropped::LEN);
        }
        let mut have = vec![0; line.len()];
        self.log.read_exact_at(&mut have, 0).is_ok_and(|()| have == line)
    }

    /// If the log's path is gone or names another file, what is still to be written goes to a new log.
    pub(super) fn rehome(&mut self) {
        if self.names(&self.log_name.file(), &self.log) {
            return;
        }
        // The old log stays open and locked until the end: what still writes to it is not disturbed.
        let Ok(log) = self.new_log() else { return };
        self.log = log;
        self.replaced = true;
        // The new log holds what is still to be said, no output.
        self.max_log = None;
    }

    fn new_log(&mut self) -> io::Result<File> {
        let temporary = new_log(&self.header.job);
        self.dir.remove(&temporary)?;
        let mut log = self.dir.create_file(&temporary, OFlags::RDWR | OFlags::APPEND, self.shared)?;
        log.try_lock().map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        log.write_all(&self.header.line())?;
        // Not older than what is there: it would not be the job's newest, whatever the clock says.
        let logs = self.dir.entries().unwrap_or_default().into_iter();
        let newest = logs
            .filter_map(|entry| match entry {
                DirEntry::Log(log) if log.stem == self.stem => Some(log),
                _ => None,
            })
            .max_by(|a, b| a.order().cmp(&b.order()));
        match publish_log(&self.dir, &temporary, &self.stem, now(), newest.as_ref()) {
            Ok(name) => {
                self.log_name = name;
                Ok(log)
            }
            Err(e) => {
                let _ = self.dir.remove(&temporary);
                Err(e)
            }
        }
    }

    /// Whether the log's end already holds this job's whole footer: then only tidying up is left.
    pub(super) fn is_finished(&self) -> bool {
        read_log(&self.dir, &self.log_name)
            .ok()
            .flatten()
            .is_some_and(|log| log.end.footer.is_some_and(|(footer, _)| footer.job == self.header.job))
    }

    /// Whether the log's end holds the announcement of a stop of this job.
    pub(super) fn is_announced(&self) -> bool {
        read_log(&self.dir, &self.log_name)
            .ok()
            .flatten()
            .is_some_and(|log| log.end.stopping.is_some_and(|stop| stop.job == self.header.job))
    }

    /// Writes the footer and the marker: appended in one write; if the disk is full, over the last bytes of the
    /// output.
    ///
    /// # Errors
    /// When even that fails: to be tried again.
    pub(super) fn finish(&mut self, footer: &mut Footer) -> io::Result<()> {
        self.rehome();
        footer.truncated = self.replaced || !self.begins_with_header();
        footer.overwrote = None;
        let mut last = None;
        for _ in 0..2 {
            let size = self.size();
            footer.added_newline = !self.ends_in_newline();
            let lines = footer.lines();
            match self.log.write(&lines) {
                Ok(n) if n == lines.len() => return Ok(()),
                Ok(n) => {
                    // What stopped it is said when the rest is tried.
                    let more = self.log.write(&lines[n..]);
                    let torn = n + more.as_ref().copied().unwrap_or(0);
                    last = more.err();
                    // A torn footer must not stay; if somebody has written behind it, it must.
                    if self.size() == size + torn as u64 {
                        let _ = self.log.set_len(size);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => last = Some(e),
            }
        }
        self.overwrite(footer).map_err(|e| last.unwrap_or(e))
    }

    /// Writes the footer over the end of the output, through a description without O_APPEND (with it, pwrite
    /// appends all the same: pwrite(2), "Bugs").
    fn overwrite(&self, footer: &mut Footer) -> io::Result<()> {
        let file = File::options().write(true).open(format!("/proc/self/fd/{}", self.log.as_raw_fd()))?;
        let size = self.size();
        footer.added_newline = true;
        let header_len = self.first_bytes().len() as u64;
        // The footer's length depends on numbers in it: a few turns settle it.
        let mut lines = footer.lines();
        for _ in 0..4 {
            let at = size.saturating_sub(lines.len() as u64);
            footer.overwrote = Some(size - at);
            footer.truncated |= at < header_len;
            let next = footer.lines();
            if next.len() == lines.len() {
                lines = next;
                break;
            }
            lines = next;
        }
        // Only what is there already is sure to be writable: a footer that begins where the file began but ends
        // beyond it would be torn, and would have taken the header with it.
        let at =
            size.checked_sub(lines.len() as u64).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSPC))?;
        let mut done = 0;
        while done < lines.len() {
            match file.write_at(&lines[done..], at + done as u64) {
                Ok(0) => return Err(io::ErrorKind::StorageFull.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Gives the files up: their locks are free when this returns, as far as this process holds them.
    pub(super) fn close(self) -> Closed {
        Closed { dir: self.dir, log_name: self.log_name, owner: self.header.owner }
    }

    /// Makes the record last: after waiters were woken, not before.
    pub(super) fn sync(&self) {
        // The record is written; that it may not survive a power cut is nothing anybody could act on now.
        let _ = self.log.sync_data();
    }
}

/// The last 64 KiB of a file.
pub(super) fn tail(file: &File) -> Vec<u8> {
    let size = fstat(file).map_or(0, |s| u64::try_from(s.st_size).unwrap_or(0));
    let from = size.saturating_sub(64 << 10);
    let mut bytes = vec![0; usize::try_from(size - from).unwrap_or(0)];
    let n = file.read_at(&mut bytes, from).unwrap_or(0);
    bytes.truncate(n);
    bytes
}

/// How long ago a file was last written to.
pub(super) fn age(file: &File) -> Option<Duration> {
    file.metadata().ok()?.modified().ok()?.elapsed().ok()
}

/// `.new-<job>.log`
pub(super) fn new_log(job: &str) -> String {
    format!(".new-{job}.log")
}

/// `.new-<job>.pid`
pub(super) fn new_pid(job: &str) -> String {
    format!(".new-{job}.pid")
}

/// A finished job's log, no longer held.
pub(super) struct Closed {
    dir: RunDir,
    log_name: LogName,
    owner: Option<String>,
}

impl Closed {
    /// The log's path, absolute.
    pub(super) fn log_path(&self) -> OsString {
        self.dir.absolute().join(self.log_name.file()).into()
    }

    /// How many lines of its output the usual readers of this job have not been given, where that can be told.
    pub(super) fn unread(&self) -> Option<u64> {
        let log = read_log(&self.dir, &self.log_name).ok().flatten()?;
        unread_lines(&self.dir, &log, self.owner.as_deref().unwrap_or("-")).ok()
    }

    /// Says what became of the hook, in one line behind the record.
    pub(super) fn add_hook_line(&self, trouble: &Trouble) {
        if let Ok(Some((mut log, _))) =
            self.dir.open_file(&self.log_name.file(), OFlags::WRONLY | OFlags::APPEND)
        {
            // The job's end stands without it.
            let _ = log.write_all(&hook_line(trouble));
        }
    }
}

/// Gives a new log its name: stamped with this time, or with the newest log's of the stem if the clock stands
/// before it, and numbered where that second has one.
pub(super) fn publish_log(
    dir: &RunDir,
    temporary: &str,
    stem: &Stem,
    time: Timestamp,
    newest: Option<&LogName>,
) -> io::Result<LogName> {
    let mut name = LogName { stem: stem.clone(), stamp: stamp(time), sequence: 1 };
    if let Some(newest) = newest
        && newest.order() >= name.order()
    {
        name.stamp.clone_from(&newest.stamp);
        name.sequence = newest.sequence + 1;
    }
    loop {
        match dir.rename(temporary, &name.file(), false) {
            Ok(()) => return Ok(name),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => name.sequence += 1,
            Err(e) => return Err(e),
        }
    }
}
