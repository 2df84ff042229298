//! The last lines of a log, found from its end backwards: exactly, whatever their length.

use super::lines::{CHUNK, RECORD_MAX, read_full};
use crate::contract::{LogFile, Role};
use std::collections::VecDeque;
use std::io;

/// Where the last `n` lines of a log's output begin, looked for from its end backwards.
///
/// # Errors
/// When the log cannot be read.
pub fn last_lines(log: &LogFile, n: usize) -> io::Result<u64> {
    let first = log.extent()?.kept_from();
    let size = log.file()?.metadata()?.len();
    if n == 0 {
        return Ok(size);
    }
    let footer_at = log.end.footer.as_ref().map(|(_, at)| *at);
    let (mut found, mut line_end, mut at) = (0, size, size);
    let mut buffer = vec![0; CHUNK];
    while at > first {
        let want = usize::try_from(at - first).unwrap_or(usize::MAX).min(CHUNK);
        let base = at - want as u64;
        let have = read_full(log, &mut buffer[..want], base)?;
        for newline in memchr::memrchr_iter(b'\n', &buffer[..have]) {
            let begin = base + newline as u64 + 1;
            // A newline at the very end ends the last line and begins no other.
            if begin < size {
                found += usize::from(is_output(log, begin, line_end, footer_at)?);
                if found == n {
                    return Ok(begin);
                }
            }
            line_end = begin - 1;
        }
        at = base;
    }
    Ok(first.min(size))
}

/// Whether the line between these offsets is output.
fn is_output(log: &LogFile, begin: u64, end: u64, footer_at: Option<u64>) -> io::Result<bool> {
    let mut line = vec![0; usize::try_from(end - begin).unwrap_or(usize::MAX).min(8)];
    read_full(log, &mut line, begin)?;
    if line != b"=== GATE" || end - begin > RECORD_MAX as u64 {
        return Ok(true);
    }
    line.resize(usize::try_from(end - begin).unwrap_or(0), 0);
    read_full(log, &mut line, begin)?;
    Ok(log.role(&line, footer_at.is_some_and(|at| begin > at)) == Role::Output)
}

/// Recalls the offsets of the last lines that were shown: `n` of them, whatever the log's size.
#[derive(Debug)]
pub struct LastOffsets {
    n: usize,
    offsets: VecDeque<u64>,
}

impl LastOffsets {
    /// Recalls this many.
    pub fn new(n: usize) -> LastOffsets {
        LastOffsets { n, offsets: VecDeque::new() }
    }

    /// Takes the next offset in.
    pub fn push(&mut self, offset: u64) {
        if self.offsets.len() == self.n {
            self.offsets.pop_front();
        }
        if self.n > 0 {
            self.offsets.push_back(offset);
        }
    }

    /// The oldest of those that are recalled.
    pub fn first(&self) -> Option<u64> {
        self.offsets.front().copied()
    }
}
