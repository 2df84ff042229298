//! `--tag-stderr` and `--pty`: output that goes through the supervisor on its way to the log, by whole lines where
//! another stream goes there as well. Without them nothing stands between a job and its log.
//!
//! The supervisor never waits for an end of file: whoever still holds the other end when the tree is empty is no
//! member of it.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Room in a pipe, so that a supervisor that is late does not hold up the job.
const PIPE: usize = 1 << 20;
/// The longest line that is kept back until it is whole, in bytes.
const LINE_MAX: usize = 64 << 10;
/// What a line of standard error begins with.
const TAG: &[u8] = b"[stderr] ";
/// How much is read at once.
const BLOCK: usize = 64 << 10;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureWish {
    /// Lines of standard error begin with `[stderr] `.
    pub tag_stderr: bool,
    /// Standard output and error are a terminal, so that nothing buffers.
    pub pty: bool,
}

/// The leader's ends: what it gets in place of the log, for 1 and 2.
#[derive(Debug, Default)]
pub(super) struct LeaderEnds {
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
}

/// The supervisor's ends.
#[derive(Debug, Default)]
pub(super) struct Capture {
    streams: Vec<Stream>,
    /// Whether output had to be given up: the log could not take it.
    pub lost: bool,
}

#[derive(Debug)]
struct Stream {
    from: File,
    tag: &'static [u8],
    /// Whether nothing else is written into the log: then nothing is kept back.
    alone: bool,
    partial: Vec<u8>,
    /// Whether the log is in the middle of one of this stream's lines: it was too long to be kept back.
    inside: bool,
    ended: bool,
}

impl CaptureWish {
    /// Opens what is needed.
    ///
    /// # Errors
    /// When the kernel gives no pipe or no terminal.
    pub(super) fn open(self) -> io::Result<(Capture, LeaderEnds)> {
        let mut capture = Capture::default();
        let mut ends = LeaderEnds::default();
        match (self.pty, self.tag_stderr) {
            (false, false) => {}
            (false, true) => ends.stderr = Some(capture.add(pipe()?, TAG, false)?),
            (true, false) => {
                let end = capture.add(terminal()?, b"", true)?;
                ends.stderr = Some(end.try_clone()?);
                ends.stdout = Some(end);
            }
            (true, true) => {
                ends.stdout = Some(capture.add(terminal()?, b"", false)?);
                ends.stderr = Some(capture.add(terminal()?, TAG, false)?);
            }
        }
        Ok((capture, ends))
    }
}

/// The reading and the writing end of a pipe.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // A smaller pipe works as well, only less calmly.
    let _ = fcntl_setpipe_size(&read, PIPE);
    Ok((read, write))
}

/// A terminal's master and its other side, which hands bytes on as they are written.
fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let other = openat(CWD, name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let mut modes = tcgetattr(&other)?;
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&other, OptionalActions::Now, &modes)?;
    let number =
        |name: &str, default: u16| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let size =
        Winsize { ws_row: number("LINES", 24), ws_col: number("COLUMNS", 80), ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&other, size)?;
    Ok((master, other))
}

impl Capture {
    fn add(
        &mut self,
        (ours, theirs): (OwnedFd, OwnedFd),
        tag: &'static [u8],
        alone: bool,
    ) -> io::Result<OwnedFd> {
        rustix::io::ioctl_fionbio(&ours, true)?;
        self.streams.push(Stream {
            from: ours.into(),
            tag,
            alone,
            partial: Vec::new(),
            inside: false,
            ended: false,
        });
        Ok(theirs)
    }

    /// The descriptors that a half keeps.
    pub(super) fn raw_fds(&self) -> Vec<RawFd> {
        self.streams.iter().map(|s| s.from.as_raw_fd()).collect()
    }

    /// What wakes a half.
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.streams.iter().filter(|s| !s.ended).map(|s| s.from.as_fd()).collect()
    }

    /// Takes what has come, and writes the whole lines of it. No more than a pipe holds: whoever writes without end
    /// does not keep a half from anything else.
    pub(super) fn pump(&mut self, log: &File) {
        let mut block = vec![0; if self.streams.is_empty() { 0 } else { BLOCK }];
        for stream in &mut self.streams {
            let mut taken = 0;
            while !stream.ended && taken < PIPE {
                match stream.from.read(&mut block) {
                    // A terminal says EIO when its other side has been closed by everybody.
                    Ok(0) => stream.ended = true,
                    Ok(n) => {
                        taken += n;
                        self.lost |= stream.take(&block[..n], log).is_err();
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(_) => stream.ended = true,
                }
            }
        }
    }

    /// Takes the last that has come, whole line or not: all that was written before this call, which is no more than
    /// one turn takes.
    pub(super) fn finish(&mut self, log: &File) {
        self.pump(log);
        for stream in &mut self.streams {
            if !stream.partial.is_empty() {
                let line = std::mem::take(&mut stream.partial);
                self.lost |= stream.write(&line, log).is_err();
            }
        }
    }
}

impl Stream {
    fn take(&mut self, bytes: &[u8], log: &File) -> io::Result<()> {
        if self.alone {
            return self.write(bytes, log);
        }
        self.partial.extend_from_slice(bytes);
        let whole = match memchr::memrchr(b'\n', &self.partial) {
            Some(at) => at + 1,
            None if self.partial.len() >= LINE_MAX => self.partial.len(),
            None => return Ok(()),
        };
        let rest = self.partial.split_off(whole);
        let lines = std::mem::replace(&mut self.partial, rest);
        self.write(&lines, log)
    }

    /// Writes lines, each with the tag, in one write.
    fn write(&mut self, bytes: &[u8], log: &File) -> io::Result<()> {
        let mut log = log;
        if self.tag.is_empty() {
            return log.write_all(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4);
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            if !self.inside {
                out.extend_from_slice(self.tag);
            }
            out.extend_from_slice(line);
            self.inside = line.last() != Some(&b'\n');
        }
        log.write_all(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    fn text(mut log: File) -> String {
        let mut text = String::new();
        log.rewind().unwrap();
        log.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn t10_lines_of_stderr_are_tagged_whole_however_they_arrive() {
        let (mut capture, ends) = CaptureWish { tag_stderr: true, pty: false }.open().unwrap();
        let log = tempfile::tempfile().unwrap();
        let mut err = File::from(ends.stderr.unwrap());
        for part in ["on", "e\ntw", "o\nthr"] {
            err.write_all(part.as_bytes()).unwrap();
            capture.pump(&log);
        }
        // The other end stays open: nobody waits for it.
        capture.finish(&log);
        assert_eq!(text(log), "[stderr] one\n[stderr] two\n[stderr] thr");
    }

    #[test]
    fn an_escapee_that_writes_without_end_holds_up_nobody() {
        let (mut capture, ends) = CaptureWish { tag_stderr: true, pty: false }.open().unwrap();
        let log = tempfile::tempfile().unwrap();
        let mut err = File::from(ends.stderr.unwrap());
        // Until the other end is closed.
        let writer = std::thread::spawn(move || while err.write_all(b"y\n").is_ok() {});
        for _ in 0..3 {
            capture.pump(&log);
        }
        capture.finish(&log);
        assert!(!writer.is_finished(), "it was over before the writer was");
        drop(capture);
        writer.join().unwrap();
    }

    #[test]
    fn an_endless_line_is_written_in_parts_under_one_tag() {
        let (mut capture, ends) = CaptureWish { tag_stderr: true, pty: false }.open().unwrap();
        let log = tempfile::tempfile().unwrap();
        let mut err = File::from(ends.stderr.unwrap());
        for _ in 0..3 {
            err.write_all(&vec![b'x'; LINE_MAX]).unwrap();
            capture.pump(&log);
        }
        err.write_all(b"\nend\n").unwrap();
        capture.finish(&log);
        let text = text(log);
        assert_eq!(text.matches("[stderr] ").count(), 2);
        assert!(text.ends_with("x\n[stderr] end\n"));
    }

    #[test]
    fn a_terminal_hands_bytes_on_as_they_are_and_its_end_is_seen() {
        use std::io::IsTerminal;
        let (mut capture, ends) = CaptureWish { tag_stderr: false, pty: true }.open().unwrap();
        let log = tempfile::tempfile().unwrap();
        let mut out = File::from(ends.stdout.unwrap());
        assert!(out.is_terminal());
        out.write_all(b"a\r\nb").unwrap();
        capture.pump(&log);
        assert_eq!(text(log.try_clone().unwrap()), "a\r\nb", "there is nobody to keep it back for");
        out.write_all(b"\n").unwrap();
        capture.pump(&log);
        drop((out, ends.stderr));
        capture.pump(&log);
        assert!(capture.fds().is_empty(), "what has ended wakes nobody");
        assert_eq!(text(log), "a\r\nb\n");
    }
}
