//! `--max-log`: the newest output stays, the oldest goes back to the disk by hole punching (fallocate(2)). Offsets stay
//! as they are, whole lines go, and what went is said in the DROPPED line before the hole is there.

use crate::contract::{Dropped, Line, line_kind};
use rustix::fs::{FallocateFlags, fallocate, fstat, inotify};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the log is looked at while it grows.
const EVERY: Duration = Duration::from_millis(100);
/// How often, where the kernel cannot say that it grows.
const SELDOM: Duration = Duration::from_secs(1);
/// How much is read at once.
const READ: usize = 64 << 10;
/// How much goes at once.
const STEP: u64 = 8 << 20;

/// How long a log may become, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trim {
    /// What is kept at least, in bytes: whole blocks.
    size: u64,
    block: u64,
    /// The offset at which the output begins: behind the DROPPED line, at a block.
    start: u64,
}

impl Trim {
    /// A limit for a log whose header and DROPPED line take `start` bytes.
    pub(super) fn new(size: u64, block: u64, start: u64) -> Trim {
        Trim { size: size.max(1).next_multiple_of(block), block, start }
    }

    /// Whether this file system can punch holes, tried on an empty file.
    ///
    /// # Errors
    /// EOPNOTSUPP where it cannot.
    pub(super) fn try_on(file: &File, block: u64) -> io::Result<()> {
        Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, block)?)
    }

    /// The offset of the DROPPED line.
    fn line_at(&self) -> u64 {
        self.start - Dropped::LEN as u64
    }

    /// What the log says was dropped; `None` where it has lost its beginning.
    fn dropped(&self, log: &File) -> Option<Dropped> {
        let mut line = [0; Dropped::LEN];
        log.read_exact_at(&mut line, self.line_at()).ok()?;
        match line_kind(line.strip_suffix(b"\n")?) {
            Line::Dropped(json) => Dropped::parse(json),
            _ => None,
        }
    }

    /// Gives the oldest output back, if there is twice as much as is to be kept. A newest line that is whole stays
    /// whole, however long it is; one without an end is cut `within`, if that is wished. Returns whether that is
    /// all that can still go.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub(super) fn cut(&self, log: &File, within: bool) -> io::Result<bool> {
        let end = size(log);
        let Some(mut dropped) = self.dropped(log) else { return Ok(false) };
        let mut from = dropped.until.max(self.start);
        let is_too_long = |from| end.saturating_sub(from) >= 2 * self.size;
        if !is_too_long(from) {
            return Ok(false);
        }
        let goal = end - self.size;
        let file = writable(log)?;
        // The room of the first comes back before the last has been read.
        while from < goal {
            let until = match whole_line(log, from, goal.min(from + STEP), end)? {
                Some(until) => until,
                None if !is_too_long(from) || ends_in_newline(log, end)? => return Ok(false),
                None if within => goal,
                None => return Ok(true),
            };
            dropped.lines += newlines(log, from, until)?;
            dropped.bytes += until - from;
            dropped.until = until;
            file.write_all_at(&dropped.line(), self.line_at())?;
            self.punch(&file, from, until)?;
            from = until;
        }
        Ok(false)
    }

    /// Makes a hole of what was said to be dropped: whoever said so may have died before it was there.
    fn punch_again(&self, log: &File) -> io::Result<()> {
        match self.dropped(log) {
            Some(dropped) => self.punch(&writable(log)?, self.start, dropped.until),
            None => Ok(()),
        }
    }

    /// Makes a hole of the blocks that end in this range.
    fn punch(&self, file: &File, from: u64, until: u64) -> io::Result<()> {
        let hole = (from / self.block * self.block).max(self.start);
        let hole_end = until / self.block * self.block;
        if hole_end > hole {
            let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(file, how, hole, hole_end - hole)?;
        }
        Ok(())
    }
}

/// The same file through a description without O_APPEND: with it, pwrite appends all the same (pwrite(2), "Bugs").
fn writable(log: &File) -> io::Result<File> {
    File::options().write(true).open(format!("/proc/self/fd/{}", log.as_raw_fd()))
}

fn ends_in_newline(log: &File, end: u64) -> io::Result<bool> {
    let mut last = [0];
    log.read_exact_at(&mut last, end.saturating_sub(1))?;
    Ok(last == *b"\n")
}

/// Where the first line begins of what is kept when about everything before `target` goes: at a line's beginning
/// behind it, or before it where a line reaches to the end; `None` if that one line is all there is.
fn whole_line(log: &File, from: u64, target: u64, end: u64) -> io::Result<Option<u64>> {
    let mut block = vec![0; READ];
    let mut at = target;
    while at < end {
        let n = log.read_at(&mut block, at)?;
        if n == 0 {
            break;
        }
        if let Some(newline) = memchr::memchr(b'\n', &block[..n]) {
            let next = at + newline as u64 + 1;
            if next < end {
                return Ok(Some(next));
            }
        }
        at += n as u64;
    }
    let mut to = target;
    while to > from {
        let begin = to.saturating_sub(READ as u64).max(from);
        let want = usize::try_from(to - begin).unwrap_or(READ);
        log.read_exact_at(&mut block[..want], begin)?;
        if let Some(newline) = memchr::memrchr(b'\n', &block[..want]) {
            return Ok(Some(begin + newline as u64 + 1));
        }
        to = begin;
    }
    Ok(None)
}

fn newlines(log: &File, from: u64, to: u64) -> io::Result<u64> {
    let mut block = vec![0; READ];
    let (mut at, mut count) = (from, 0);
    while at < to {
        let want = usize::try_from(to - at).unwrap_or(READ).min(READ);
        let n = log.read_at(&mut block[..want], at)?;
        if n == 0 {
            break;
        }
        count += memchr::memchr_iter(b'\n', &block[..n]).count() as u64;
        at += n as u64;
    }
    Ok(count)
}

fn size(log: &File) -> u64 {
    fstat(log).map_or(0, |s| u64::try_from(s.st_size).unwrap_or(0))
}

/// When to look: at once when the log begins to grow, which the kernel says, and then regularly until it stands still.
#[derive(Debug)]
pub(super) struct Watch {
    trim: Trim,
    path: PathBuf,
    inotify: Option<OwnedFd>,
    begun: bool,
    /// When the next look is due; `None` while the log stands still.
    due: Option<Instant>,
    seen: u64,
    /// Whether the last look found a line without an end, too long, and nothing before it: it may have been in the
    /// middle of being written.
    endless: bool,
}

impl Watch {
    pub(super) fn new(trim: Trim, path: PathBuf) -> Watch {
        Watch { trim, path, inotify: None, begun: false, due: Some(Instant::now()), seen: 0, endless: false }
    }

    /// What wakes a half while the log stands still.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().filter(|_| self.due.is_none()).map(AsFd::as_fd)
    }

    /// When a half is to wake while it grows.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Looks, if a look is due.
    pub(super) fn look(&mut self, log: &File) {
        if !self.begun {
            self.begun = true;
            // The half before this one may have said what it then had no time to do.
            let _ = self.trim.punch_again(log);
            let made = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
            self.inotify = made.filter(|fd| {
                inotify::add_watch(fd, self.path.as_path(), inotify::WatchFlags::MODIFY).is_ok()
            });
        }
        let woken = self.due.is_none() && self.drain();
        if !woken && self.due.is_none_or(|at| at > Instant::now()) {
            return;
        }
        // What cannot be cut now is cut later, or the disk is full: the job's output comes first.
        let before = size(log);
        self.endless = self.trim.cut(log, self.endless).unwrap_or(false);
        let size = size(log);
        let still = size == self.seen && !woken && !self.endless;
        self.seen = size;
        self.due = match (&self.inotify, still) {
            // It has grown faster than it is looked at.
            _ if size.saturating_sub(before) > self.trim.size => Some(Instant::now()),
            (Some(_), true) => None,
            (Some(_), false) => Some(Instant::now() + EVERY),
            (None, _) => Some(Instant::now() + SELDOM),
        };
        if still {
            // What has been said of it is old; a write after this wakes again, and one before it is seen.
            self.drain();
            if self::size(log) != size {
                self.due = Some(Instant::now() + EVERY);
            }
        }
    }

    /// The last look, at the job's end: nobody is in the middle of a line any more.
    pub(super) fn finish(&self, log: &File) {
        let _ = self.trim.cut(log, true);
    }

    fn drain(&self) -> bool {
        let mut buffer = [0u8; 4096];
        let mut any = false;
        while let Some(fd) = &self.inotify
            && rustix::io::read(fd, &mut buffer).is_ok_and(|n| n > 0)
        {
            any = true;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A log with a first block and these lines.
    fn log(lines: &[&str]) -> (File, Trim) {
        let mut file = tempfile::tempfile().unwrap();
        let mut head = vec![b'h'; 4096 - Dropped::LEN - 1];
        head.push(b'\n');
        head.extend(Dropped::default().line());
        file.write_all(&head).unwrap();
        for line in lines {
            file.write_all(line.as_bytes()).unwrap();
        }
        (file, Trim::new(1, 4096, 4096))
    }

    fn rest(file: &File, from: u64) -> String {
        let mut text = vec![0; usize::try_from(size(file) - from).unwrap()];
        file.read_exact_at(&mut text, from).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn t20_the_oldest_whole_lines_go_and_the_newest_stay_where_they_are() {
        let lines: Vec<String> = (0..200).map(|n| format!("{n:0>99}\n")).collect();
        let (file, trim) = log(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let before = size(&file);
        assert!(!trim.cut(&file, false).unwrap());
        let dropped = trim.dropped(&file).unwrap();
        assert_eq!(size(&file), before, "offsets stay");
        assert_eq!(dropped.bytes, dropped.lines * 100);
        assert_eq!(dropped.until, 4096 + dropped.bytes);
        assert!(before - dropped.until <= 4096 && before - dropped.until > 4096 - 200);
        assert!(
            rest(&file, dropped.until).starts_with(lines[usize::try_from(dropped.lines).unwrap()].as_str())
        );
        trim.cut(&file, false).unwrap();
        assert_eq!(trim.dropped(&file), Some(dropped), "until there is twice as much again");
    }

    #[test]
    fn t63_an_oversized_newest_line_is_kept_whole_until_the_next() {
        let long = format!("{}\n", "y".repeat(10_000));
        let (file, trim) = log(&["a\nb\n", &long]);
        for within in [false, true, true] {
            assert!(!trim.cut(&file, within).unwrap());
            let dropped = trim.dropped(&file).unwrap();
            assert_eq!((dropped.lines, dropped.bytes), (2, 4));
            assert_eq!(rest(&file, dropped.until), long);
        }
        (&file).write_all(b"c\n").unwrap();
        trim.cut(&file, false).unwrap();
        assert_eq!(rest(&file, trim.dropped(&file).unwrap().until), "c\n");
    }

    #[test]
    fn more_goes_than_one_step() {
        let lines = "0123456789\n".repeat(2 * usize::try_from(STEP).unwrap() / 11);
        let (file, trim) = log(&[&lines]);
        trim.cut(&file, false).unwrap();
        let dropped = trim.dropped(&file).unwrap();
        assert_eq!(dropped.bytes, dropped.lines * 11);
        let kept = rest(&file, dropped.until);
        assert!(kept.len() <= 4096 && kept.len() > 4096 - 11 && kept.starts_with("0123456789\n"));
    }

    #[test]
    fn one_endless_line_is_cut_within() {
        let (file, trim) = log(&[&"z".repeat(50_000)]);
        // It may just be being written.
        assert!(trim.cut(&file, false).unwrap());
        assert_eq!(trim.dropped(&file).unwrap().bytes, 0);
        assert!(!trim.cut(&file, true).unwrap());
        let dropped = trim.dropped(&file).unwrap();
        assert_eq!((dropped.lines, size(&file) - dropped.until), (0, 4096));
    }

    #[test]
    fn what_was_said_to_be_dropped_goes_even_if_whoever_said_it_died() {
        use std::os::unix::fs::MetadataExt;
        let (file, trim) = log(&[&format!("{}\n", "y".repeat(100_000)), "z\n"]);
        let dropped = Dropped { lines: 1, bytes: 100_001, until: 4096 + 100_001 };
        file.write_all_at(&dropped.line(), trim.line_at()).unwrap();
        Watch::new(trim, PathBuf::from("/nowhere")).look(&file);
        assert!(file.metadata().unwrap().blocks() * 512 <= 3 * 4096);
        assert_eq!(rest(&file, dropped.until), "z\n");
    }

    #[test]
    fn a_log_that_lost_its_beginning_is_left_alone() {
        let (file, trim) = log(&["a\n"]);
        file.set_len(0).unwrap();
        (&file).write_all(&[b'x'; 100_000]).unwrap();
        assert!(!trim.cut(&file, true).unwrap());
        assert!(trim.dropped(&file).is_none());
    }
}
