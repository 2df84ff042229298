//! The lines of a stretch of a log, in pieces of bounded size: one endless line costs no more memory than any other.

use super::position::Place;
use crate::contract::{LogFile, Role};
use std::io;
use std::os::unix::fs::FileExt;

/// How much is read at once, in bytes.
pub(super) const CHUNK: usize = 128 << 10;
/// How much of a line that begins like a record is kept until it is known whether it is one, in bytes.
pub(super) const RECORD_MAX: usize = 1 << 20;
/// How much of a log is recalled to notice that it was truncated and written anew, in bytes.
const MARK: u64 = 32;

/// The bytes before an offset of a log, by which it is recognised later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark(pub(super) Vec<u8>);

impl Mark {
    /// The bytes before this offset, none from before the output's start.
    pub(super) fn at(log: &LogFile, start: u64, offset: u64) -> io::Result<Mark> {
        let mut bytes = vec![0; usize::try_from(offset.saturating_sub(start).min(MARK)).unwrap_or(0)];
        let from = offset - bytes.len() as u64;
        let have = read_full(log, &mut bytes, from)?;
        bytes.truncate(have);
        Ok(Mark(bytes))
    }

    /// Whether those bytes are still there; what was dropped meanwhile cannot tell.
    pub(super) fn holds(&self, log: &LogFile, offset: u64, kept_from: u64) -> io::Result<bool> {
        let Some(from) = offset.checked_sub(self.0.len() as u64) else { return Ok(false) };
        let gone = usize::try_from(kept_from.saturating_sub(from)).unwrap_or(usize::MAX).min(self.0.len());
        let known = &self.0[gone..];
        let mut now = vec![0; known.len()];
        Ok(read_full(log, &mut now, from + gone as u64)? == now.len() && now == known)
    }
}

/// Reads until the buffer is full or the file ends; says how much there was.
pub(super) fn read_full(log: &LogFile, buffer: &mut [u8], from: u64) -> io::Result<usize> {
    let file = log.file()?;
    let mut have = 0;
    while have < buffer.len() {
        match file.read_at(&mut buffer[have..], from + have as u64) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}

/// A stretch of a log: whole lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// What the log has before `to`.
    pub mark: Mark,
}

/// A line, or a part of a long one.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its bytes, without the newline.
    pub bytes: &'a [u8],
    /// Whether the line begins here.
    pub begins: bool,
    /// Whether it ends here.
    pub ends: bool,
    /// Whether it was written after the footer.
    pub late: bool,
    /// The offset at which the line begins.
    pub line_at: u64,
    /// The place behind the piece, and its newline.
    pub after: Place,
}

/// Reads a stretch. What is dropped from the log meanwhile is skipped and counted: nothing that a hole has touched is
/// ever handed out.
pub struct Reader<'a> {
    log: &'a LogFile,
    buffer: Vec<u8>,
    /// Where in the buffer begins what was not handed out, and up to where it has no newline.
    pos: usize,
    searched: usize,
    /// The offset in the log of `pos`.
    at: u64,
    line_at: u64,
    to: u64,
    /// Where the stretch was to end.
    end: Place,
    number: u64,
    hold: usize,
    mark: Mark,
    droppable: bool,
    within: bool,
    broken: bool,
    /// Whether output is late here.
    late: bool,
    /// How many lines were dropped before they could be read.
    pub gap: u64,
    /// The log was truncated while it was read: the rest is not what was promised.
    pub cut: bool,
    /// The job's footer has been read.
    pub saw_footer: bool,
}

impl<'a> Reader<'a> {
    /// A reader of this stretch. `hold` bounds a piece, in bytes.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn new(log: &'a LogFile, stretch: &Stretch, hold: usize) -> io::Result<Reader<'a>> {
        let late = log.end.footer.as_ref().is_some_and(|(_, at)| stretch.from.offset > *at);
        Ok(Reader {
            log,
            buffer: Vec::new(),
            pos: 0,
            searched: 0,
            at: stretch.from.offset,
            line_at: stretch.from.offset,
            to: stretch.to.offset,
            end: stretch.to,
            number: stretch.from.lines,
            hold: hold.max(4),
            mark: stretch.mark.clone(),
            droppable: log.extent()?.dropped.is_some(),
            within: false,
            broken: false,
            late,
            gap: 0,
            cut: false,
            saw_footer: late,
        })
    }

    /// The next piece of output; `None` at the end of the stretch.
    ///
    /// # Errors
    /// When the log cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "a piece borrows from its reader, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            if std::mem::take(&mut self.broken) {
                // The rest of a line that was handed out in part is gone.
                return Ok(Some(self.piece(0..0, false, true)));
            }
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let line = self.pos..self.searched + found;
                self.advance(line.len() + 1);
                self.number += 1;
                if let Some((line, begins)) = self.line(line) {
                    return Ok(Some(self.piece(line, begins, true)));
                }
                continue;
            }
            self.searched = self.buffer.len();
            let held = self.buffer.len() - self.pos;
            let like_record = !self.within && self.buffer[self.pos..].starts_with(b"=== GATE");
            let hold = if like_record { self.hold.max(RECORD_MAX) } else { self.hold };
            if held > hold {
                let part = self.pos..self.pos + char_floor(&self.buffer[self.pos..], hold);
                let begins = !std::mem::replace(&mut self.within, true);
                self.advance(part.len());
                return Ok(Some(self.piece(part, begins, false)));
            }
            if self.fill()? || self.broken {
                continue;
            }
            let rest = self.pos..self.buffer.len();
            if rest.is_empty() && !self.within {
                return Ok(None);
            }
            self.advance(rest.len());
            if let Some((line, begins)) = self.line(rest) {
                return Ok(Some(self.piece(line, begins, true)));
            }
        }
    }

    fn advance(&mut self, n: usize) {
        self.pos += n;
        self.searched = self.pos;
        self.at += n as u64;
    }

    /// A line that has ended, unless it is the contract's; and whether it begins here.
    fn line(&mut self, line: std::ops::Range<usize>) -> Option<(std::ops::Range<usize>, bool)> {
        let begins = !std::mem::take(&mut self.within);
        match if begins { self.log.role(&self.buffer[line.clone()], self.late) } else { Role::Output } {
            Role::Output => return Some((line, begins)),
            Role::Record => {}
            Role::Footer => (self.late, self.saw_footer) = (true, true),
        }
        self.line_at = self.at;
        None
    }

    fn piece(&mut self, range: std::ops::Range<usize>, begins: bool, ends: bool) -> Piece<'_> {
        let line_at = self.line_at;
        if ends {
            self.line_at = self.at;
        }
        let after = Place { offset: self.at, lines: self.number };
        Piece { bytes: &self.buffer[range], begins, ends, late: self.late, line_at, after }
    }

    /// Reads more of the stretch behind what is held. False at its end.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.pos);
        (self.pos, self.searched) = (0, self.buffer.len());
        let held = self.buffer.len();
        let from = self.at + held as u64;
        let want = usize::try_from(self.to.saturating_sub(from)).unwrap_or(usize::MAX).min(CHUNK);
        if want == 0 {
            return Ok(false);
        }
        self.buffer.resize(held + want, 0);
        let have = read_full(self.log, &mut self.buffer[held..], from)?;
        self.buffer.truncate(held + have);
        self.cut |= have < want;
        let mut kept_from = 0;
        if self.droppable {
            // The line that tells of a hole is written before the hole: looked at after the reading, it tells of all
            // that may have been read of one.
            let extent = self.log.extent()?;
            kept_from = extent.kept_from();
            self.cut |= extent.dropped.is_none();
            if kept_from > self.at && !self.cut {
                self.skip(kept_from, extent.lines_gone());
            }
        }
        self.cut = self.cut || !self.mark.holds(self.log, self.end.offset, kept_from)?;
        if self.cut {
            self.buffer.clear();
            self.searched = 0;
            self.to = self.at;
            self.broken = std::mem::take(&mut self.within);
            return Ok(false);
        }
        Ok(true)
    }

    /// What lies before this offset is gone: `lines` lines from the beginning.
    fn skip(&mut self, until: u64, lines: u64) {
        let gone = usize::try_from(until - self.at).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.drain(..gone);
        self.searched = 0;
        // What was dropped behind the stretch is no gap in it.
        let lines = lines.min(self.end.lines).max(self.number);
        self.gap += lines - self.number;
        self.number = lines;
        self.at = until;
        self.line_at = until;
        self.broken = std::mem::take(&mut self.within);
    }
}

/// The largest length up to `n` that does not cut a UTF-8 character in two, where the bytes are UTF-8 there.
pub fn char_floor(bytes: &[u8], n: usize) -> usize {
    let n = n.min(bytes.len());
    if n == bytes.len() {
        return n;
    }
    let begin = (1..=3.min(n)).map(|back| n - back).find(|&i| bytes[i] & 0xc0 != 0x80);
    match begin {
        // A character that began within reach and is continued behind the cut.
        Some(i) if i > 0 && bytes[i] >= 0xc0 && bytes[n] & 0xc0 == 0x80 => i,
        _ => n,
    }
}

#[cfg(test)]
mod tests {
    use super::char_floor;
    use proptest::prelude::*;

    #[test]
    fn a_cut_moves_before_a_character_that_it_would_divide() {
        let text = "aé€😀z".as_bytes();
        let cuts: Vec<usize> = (1..=text.len()).map(|n| char_floor(text, n)).collect();
        assert_eq!(cuts, [1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11]);
        // What is no text is cut anywhere, and something always is.
        assert_eq!(char_floor(b"\x80\x80\x80\x80\x80", 3), 3);
        assert_eq!(char_floor("€".as_bytes(), 1), 1);
    }

    proptest! {
        #[test]
        fn parts_of_text_are_text(text in "\\PC{0,40}", n in 4..20usize) {
            let mut rest = text.as_bytes();
            let mut parts = String::new();
            while !rest.is_empty() {
                let (part, next) = rest.split_at(char_floor(rest, n));
                prop_assert!(!part.is_empty());
                parts.push_str(std::str::from_utf8(part).expect("whole characters"));
                rest = next;
            }
            prop_assert_eq!(parts, text);
        }
    }
}
