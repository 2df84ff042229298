//! The two files of a job, read: what they say, who wrote them, and whether their locks are held.

use super::dir::OPEN;
use super::lock::{Probe, probe};
use super::name::{LogName, Stem};
use super::records::{Footer, Header, Line, Stopping, TerminalMarker, line_kind};
use super::{Name, RunDir};
use crate::process::FileRef;
use crate::term::{Failure, Result};
use memchr::memmem;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Device, inode, owner, size and age of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// Device and inode.
    pub file: FileRef,
    /// Who owns it.
    pub uid: u32,
    /// Its length in bytes.
    pub size: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

impl FileId {
    fn of(stat: &Stat) -> FileId {
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        FileId {
            file: FileRef { dev: stat.st_dev, ino: stat.st_ino },
            uid: stat.st_uid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos),
        }
    }
}

/// What a PID file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PidContent {
    /// A number that can be a PID.
    Pid(i32),
    /// Anything else, and what is wrong with it.
    Corrupt(String),
}

/// The largest PID file, in bytes: beyond that it is junk.
const PID_FILE_MAX: u64 = 4096;

impl PidContent {
    /// Reads the content: one decimal number that can be another process's PID.
    pub fn parse(bytes: &[u8], pid_max: i32) -> PidContent {
        let text = bytes.trim_ascii();
        let corrupt = |why: String| PidContent::Corrupt(why);
        if text.is_empty() {
            return corrupt("it is empty".to_owned());
        }
        if bytes.len() as u64 > PID_FILE_MAX {
            return corrupt(format!("it has more than {PID_FILE_MAX} bytes"));
        }
        let shown =
            || String::from_utf8_lossy(text).chars().take(40).collect::<String>().escape_debug().to_string();
        if !text.iter().all(u8::is_ascii_digit) {
            return corrupt(format!("'{}' is no PID", shown()));
        }
        match std::str::from_utf8(text).ok().and_then(|t| t.parse::<i64>().ok()) {
            Some(n) if n <= 1 => corrupt(format!("{n} is never a job's PID")),
            Some(n) if n <= i64::from(pid_max) => PidContent::Pid(i32::try_from(n).unwrap_or(0)),
            _ => corrupt(format!("{} is above this system's largest PID {pid_max}", shown())),
        }
    }
}

/// A PID file as it was found.
#[derive(Clone, Debug)]
pub struct PidFile {
    /// Whose file it is.
    pub stem: Stem,
    /// What it says.
    pub content: PidContent,
    /// Whether a supervisor holds its lock.
    pub held: bool,
    /// The file itself.
    pub id: FileId,
}

impl PidFile {
    /// The number it holds, if it holds one.
    pub fn pid(&self) -> Option<i32> {
        match self.content {
            PidContent::Pid(pid) => Some(pid),
            PidContent::Corrupt(_) => None,
        }
    }
}

fn pid_max() -> i32 {
    // 2^22, the kernel's own limit on 64-bit machines, where the file cannot be read.
    std::fs::read_to_string("/proc/sys/kernel/pid_max")
        .ok()
        .and_then(|t| t.trim().parse().ok())
        .unwrap_or(1 << 22)
}

/// Opens a file whose path may be renamed over meanwhile, reads it, and starts over when the path has come
/// to name another file: what was read and what was probed must be the same inode, and the current one.
fn read_current<T>(
    dir: &RunDir,
    file: &str,
    what: &str,
    mut read: impl FnMut(File, &Stat, Probe) -> std::io::Result<T>,
) -> Result<Option<T>> {
    let doing = || format!("read {what} {}", dir.path_of(file).display());
    for _ in 0..100 {
        let Some((open, stat)) = dir.open_file(file, OFlags::RDONLY)? else { return Ok(None) };
        let probed = probe(&open).map_err(|e| Failure::cannot(doing(), e))?;
        let answer = read(open, &stat, probed).map_err(|e| Failure::cannot(doing(), e))?;
        match dir.stat(file) {
            Some(now) if (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino) => return Ok(Some(answer)),
            _ => {}
        }
    }
    Err(Failure::cannot(doing(), "it is being replaced again and again").hint("try again"))
}

/// Reads the PID file of a stem; `None` where there is none.
///
/// # Errors
/// When it cannot be read, or is no plain file with one link.
pub fn read_pid_file(dir: &RunDir, stem: &Stem) -> Result<Option<PidFile>> {
    let file = stem.pid_file();
    let found = read_current(dir, &file, "the PID file", |open, stat, probed| {
        let mut bytes = Vec::new();
        (&open).take(PID_FILE_MAX + 1).read_to_end(&mut bytes)?;
        Ok((PidContent::parse(&bytes, pid_max()), probed, FileId::of(stat), stat.st_nlink))
    })?;
    let Some((content, probed, id, links)) = found else { return Ok(None) };
    if links > 1 {
        let path = dir.path_of(&file);
        return Err(Failure::cannot(
            format!("use {}", path.display()),
            format!("it has {links} links, not one"),
        )
        .hint("the tools leave it alone: remove it yourself, or use another --log-dir"));
    }
    Ok(Some(PidFile { stem: stem.clone(), content, held: probed == Probe::Held, id }))
}

/// How far back a footer is searched, in bytes: the first, cheap look is what nearly every footer fits into, with its
/// header.
const FOOTER_LOOKS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];
/// How far back a headerless log's marker is searched, in bytes.
const MARKER_WINDOW: u64 = 64 << 10;
/// How much is read in search of the header's end: it has at most 16 KiB, but one that makes room for drops is filled
/// up to a block, which may have 64.
const HEADER_LOOKS: [usize; 3] = [2 << 10, 8 << 10, 80 << 10];

/// What the end of a log says.
#[derive(Clone, Debug, Default)]
pub struct LogEnd {
    /// The last footer of this job, and the offset at which its line begins.
    pub footer: Option<(Box<Footer>, u64)>,
    /// The last announcement of a stop of this job.
    pub stopping: Option<Stopping>,
    /// The last phase.
    pub phase: Option<String>,
    /// Whether this job's results were collected.
    pub collected: bool,
    /// The last terminal marker within a headerless log's last 64 KiB.
    pub marker: Option<TerminalMarker>,
    /// What the runner's own summary says, for a headerless log without a marker.
    pub summary: Option<TerminalMarker>,
}

/// How a log is read on.
#[derive(Debug)]
enum Access {
    Open(File),
    /// In this directory, under its name.
    Closed(Arc<OwnedFd>),
}

/// A log's open file, for more reading.
#[derive(Debug)]
pub enum Opened<'a> {
    /// It was open all the time.
    Kept(&'a File),
    /// It was opened again.
    Again(File),
}

impl Deref for Opened<'_> {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Opened::Kept(file) => file,
            Opened::Again(file) => file,
        }
    }
}

/// A log as it was found.
#[derive(Debug)]
pub struct LogFile {
    /// Its name.
    pub name: LogName,
    access: Access,
    /// The file itself.
    pub id: FileId,
    /// Whether a supervisor holds its lock.
    pub held: bool,
    /// How many names it has: one, but for a file that somebody linked.
    pub links: u64,
    /// Its header: the first line, or, where that was cut away, what the footer repeats.
    pub header: Option<Box<Header>>,
    /// The bytes that the header's line takes at the beginning of the file.
    pub header_len: u64,
    /// What its end says.
    pub end: LogEnd,
}

/// Reads a log's header and end, whatever its size; `None` where it is gone.
///
/// # Errors
/// When it cannot be read or is no plain file.
pub fn read_log(dir: &RunDir, name: &LogName) -> Result<Option<LogFile>> {
    read_current(dir, &name.file(), "the log", |file, stat, probed| {
        let id = FileId::of(stat);
        let (header, header_len) = read_header(&file)?;
        let mut log = LogFile {
            name: name.clone(),
            access: Access::Open(file),
            id,
            held: probed == Probe::Held,
            links: stat.st_nlink,
            header: header.map(Box::new),
            header_len,
            end: LogEnd::default(),
        };
        log.read_end()?;
        Ok(log)
    })
}

/// The header line at the beginning of a log and its length.
fn read_header(file: &File) -> std::io::Result<(Option<Header>, u64)> {
    let mut bytes = Vec::new();
    let mut end = None;
    for look in HEADER_LOOKS {
        bytes = read_from(file, 0, look)?;
        // A log that begins otherwise needs no second look.
        if !bytes.starts_with(b"=== GATE LAUNCH: ") {
            return Ok((None, 0));
        }
        end = memchr::memchr(b'\n', &bytes);
        if end.is_some() || bytes.len() < look {
            break;
        }
    }
    let Some(end) = end else { return Ok((None, 0)) };
    match line_kind(&bytes[..end]) {
        Line::Launch(json) => Ok((serde_json::from_slice(json).ok(), end as u64 + 1)),
        _ => Ok((None, 0)),
    }
}

/// Up to `length` bytes of a file from an offset on: fewer where it ends before. Nothing is cleared before it is read
/// into, and a signal in between starts nothing over.
///
/// # Errors
/// As pread(2).
pub(crate) fn read_from(file: &File, from: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = from + bytes.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// The last `window` bytes of a file of `size` bytes, and the offset at which they begin.
fn last_bytes(file: &File, size: u64, window: u64) -> std::io::Result<(Vec<u8>, u64)> {
    let from = size.saturating_sub(window);
    Ok((read_from(file, from, usize::try_from(size - from).unwrap_or(0))?, from))
}

impl LogFile {
    /// The file, for more reading: still open, or, where it was closed, opened again.
    ///
    /// # Errors
    /// When it cannot be opened again; not found is also what is another file by now.
    pub fn file(&self) -> std::io::Result<Opened<'_>> {
        let dir = match &self.access {
            Access::Open(file) => return Ok(Opened::Kept(file)),
            Access::Closed(dir) => dir,
        };
        let file = rustix::fs::openat(dir, self.name.file(), OFlags::RDONLY | OPEN, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if (FileRef { dev: stat.st_dev, ino: stat.st_ino }) != self.id.file {
            return Err(Errno::NOENT.into());
        }
        Ok(Opened::Again(file.into()))
    }

    /// The same log, closed: a descriptor for each log of a large directory would be more than a process may have.
    pub fn closed(self, dir: &RunDir) -> LogFile {
        LogFile { access: Access::Closed(dir.shared()), ..self }
    }

    /// Where output ends: before the footer, and before the newline that it had to add.
    pub fn output_end(&self) -> u64 {
        match &self.end.footer {
            Some((footer, at)) => at - u64::from(footer.added_newline && *at > 0),
            None => self.id.size,
        }
    }

    /// The job's id, where the log has a header.
    pub fn job(&self) -> Option<&str> {
        self.header.as_ref().map(|h| h.job.as_str())
    }

    fn read_end(&mut self) -> std::io::Result<()> {
        for window in FOOTER_LOOKS {
            let (bytes, from) = last_bytes(&*self.file()?, self.id.size, window)?;
            self.end = self.judge_end(&bytes, from);
            if self.end.footer.is_some() || from == 0 {
                break;
            }
        }
        if self.header.is_none() {
            // The header may have been cut away; its copy in the footer stands for it, and says so.
            self.header = self.end.footer.as_ref().and_then(|(f, _)| f.header.read()).map(Box::new);
        }
        if self.header.is_none() && self.end.marker.is_none() {
            let (bytes, _) = last_bytes(&*self.file()?, self.id.size, MARKER_WINDOW)?;
            self.end.summary = crate::pytest::last_summary(&bytes)
                .map(|summary| if summary.passed() { TerminalMarker::Pass } else { TerminalMarker::Fail });
        }
        Ok(())
    }

    fn judge_end(&self, bytes: &[u8], from: u64) -> LogEnd {
        let mut end = LogEnd::default();
        let job = self.job();
        let marker_from = (from + bytes.len() as u64).saturating_sub(MARKER_WINDOW);
        for start in memmem::find_iter(bytes, b"=== GATE") {
            let at = from + start as u64;
            let line_begins = if start == 0 { from == 0 } else { bytes[start - 1] == b'\n' };
            if !line_begins {
                continue;
            }
            let length = memchr::memchr(b'\n', &bytes[start..]);
            let line = &bytes[start..length.map_or(bytes.len(), |n| start + n)];
            match line_kind(line) {
                // A footer is whole: without its newline it was not written to the end.
                Line::Result(json) if length.is_some() => {
                    if let Ok(footer) = serde_json::from_slice::<Footer>(json)
                        && self.is_ours(job, &footer)
                    {
                        end.footer = Some((Box::new(footer), at));
                    }
                }
                Line::Phase(name) => end.phase = Some(name.to_owned()),
                Line::Stopping(json) => {
                    if let Ok(stop) = serde_json::from_slice::<Stopping>(json)
                        && job.is_none_or(|j| j == stop.job)
                    {
                        end.stopping = Some(stop);
                    }
                }
                Line::Collected(id)
                    if job == Some(id) || end.footer.as_ref().is_some_and(|(f, _)| f.job == id) =>
                {
                    end.collected = true;
                }
                Line::Marker(marker) if job.is_none() && at >= marker_from => end.marker = Some(marker),
                _ => {}
            }
        }
        end
    }

    /// Whether a footer is this log's: of the header's job; or, where the log lost its header, one that says
    /// so itself and whose name leads to this log.
    pub(super) fn is_ours(&self, job: Option<&str>, footer: &Footer) -> bool {
        match job {
            Some(job) => footer.job == job,
            None => footer.header.read().is_some_and(|header| {
                footer.truncated
                    && header.job == footer.job
                    && Name::parse(OsStr::new(&header.name))
                        .is_ok_and(|name| name.stems().any(|stem| stem == self.name.stem))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c17_c18_only_a_number_that_can_be_a_pid_is_one() {
        let parse = |text: &str| PidContent::parse(text.as_bytes(), 4_194_304);
        assert_eq!(parse("4242\n"), PidContent::Pid(4242));
        assert_eq!(parse("4242"), PidContent::Pid(4242));
        assert_eq!(parse("4194304\n"), PidContent::Pid(4_194_304));
        for bad in
            ["", "\n", "abc", "-1", "0", "1", "1099511627776", "4194305", "12 13", "+5", "0x10", "12\n13\n"]
        {
            assert!(matches!(parse(bad), PidContent::Corrupt(_)), "{bad:?}");
        }
        assert!(matches!(PidContent::parse(&vec![b'7'; 1 << 20], 4_194_304), PidContent::Corrupt(_)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_pid_or_corrupt(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let PidContent::Pid(n) = PidContent::parse(&bytes, 4_194_304) {
                prop_assert!(n > 1 && n <= 4_194_304);
            }
        }
    }
}
