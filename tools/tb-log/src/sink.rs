//! Output that knows how much of a log has gone out: what a failed write did not deliver can be given back.

use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use tb_shared::log::Place;
use tb_shared::term::{Failure, Result};

/// How much is collected before it is written, in bytes.
const BUFFER: usize = 64 << 10;

/// A buffer before a writer, and which of the log's places stand where in it.
#[derive(Debug)]
pub struct Sink<W> {
    to: W,
    buffer: Vec<u8>,
    /// How many bytes have gone out.
    written: u64,
    /// Where a line ends in what goes out, and in the log.
    marks: VecDeque<(u64, Place)>,
    delivered: Place,
    closed: bool,
}

impl<W: Write> Sink<W> {
    /// Output to this writer; `closed` says that nobody reads it.
    pub fn new(to: W, closed: bool) -> Sink<W> {
        Sink { to, buffer: vec![], written: 0, marks: VecDeque::new(), delivered: Place::default(), closed }
    }

    /// Whether the reader has gone away: quietly, and nothing more is delivered.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether nothing has been written at all.
    pub fn is_fresh(&self) -> bool {
        self.written == 0 && self.buffer.is_empty()
    }

    /// Begins a stretch of the log at this place.
    pub fn begin(&mut self, from: Place) {
        self.marks.clear();
        self.delivered = from;
    }

    /// What was put here so far is all of the log up to this place.
    pub fn mark(&mut self, place: Place) {
        if self.closed {
            return;
        }
        let end = self.written + self.buffer.len() as u64;
        match self.marks.back_mut() {
            Some(last) if last.0 == end => last.1 = place,
            _ => self.marks.push_back((end, place)),
        }
        self.settle();
    }

    /// The place up to which the log has gone out since [`Sink::begin`].
    pub fn delivered(&self) -> Place {
        self.delivered
    }

    /// What has gone out counts, even if no more will.
    fn settle(&mut self) {
        while let Some(&(end, place)) = self.marks.front()
            && end <= self.written
        {
            self.delivered = place;
            self.marks.pop_front();
        }
    }

    /// Puts bytes here.
    ///
    /// # Errors
    /// When they cannot be written, for another reason than a reader that went away.
    pub fn bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !self.closed && !bytes.is_empty() {
            let n = bytes.len().min(BUFFER - self.buffer.len());
            self.buffer.extend(&bytes[..n]);
            bytes = &bytes[n..];
            if self.buffer.len() == BUFFER {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Everything goes out.
    ///
    /// # Errors
    /// As [`Sink::bytes`].
    pub fn flush(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let mut done = 0;
        let mut failed = None;
        while done < self.buffer.len() {
            match self.to.write(&self.buffer[done..]) {
                Ok(0) => failed = Some(ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => failed = Some(e),
            }
            if let Some(e) = failed.take() {
                self.closed = true;
                self.written += done as u64;
                self.buffer.clear();
                self.settle();
                return quiet_or(e);
            }
        }
        self.written += done as u64;
        self.buffer.clear();
        self.settle();
        Ok(())
    }
}

/// A reader that went away, or an output that the caller closed (`>&-`), is no failure.
fn quiet_or(e: io::Error) -> Result<()> {
    if e.kind() == ErrorKind::BrokenPipe || e.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) {
        return Ok(());
    }
    Err(Failure::cannot("write standard output", e))
}

/// Standard output without a buffer; one that was made non-blocking by somebody else is waited for.
#[derive(Debug)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let out = rustix::stdio::stdout();
            match rustix::io::write(out, bytes) {
                Err(rustix::io::Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&out, PollFlags::OUT)], None)?;
                }
                other => return Ok(other?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
