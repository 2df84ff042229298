//! From blocks of bytes to clean lines, in bounded memory.

use crate::prefix::Prefix;
use crate::runner::Line;
use memchr::{memchr, memchr_iter};
use std::io::{self, Read};
use tb_shared::pytest::strip_into;

/// How much is read at once. Big enough that the calls do not show, small enough for the cache.
pub(crate) const BLOCK: usize = 128 << 10;
/// Of a line longer than a block, so much of its beginning and of its end is kept.
const KEPT: usize = 32 << 10;

/// Reads everything and hands on line by line. Each line comes as it was written (without its line end), so that
/// the same reading can serve more than one purpose; [`Cleaner`] does the rest.
///
/// # Errors
/// When reading fails.
pub(crate) fn for_each(mut from: impl Read, mut see: impl FnMut(&Block<'_>)) -> io::Result<()> {
    let mut buffer = vec![0u8; BLOCK];
    let mut len = 0;
    loop {
        let n = match from.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let fresh = len;
        len += n;
        // Only what is new can hold a line end: a long line is not searched again and again.
        match memchr::memrchr(b'\n', &buffer[fresh..len]) {
            Some(at) => {
                let end = fresh + at + 1;
                see(&Block { text: &buffer[..end] });
                buffer.copy_within(end..len, 0);
                len -= end;
            }
            None if len == buffer.len() => {
                buffer.copy_within(len - KEPT..len, KEPT);
                len = 2 * KEPT;
            }
            None => {}
        }
    }
    if len > 0 {
        see(&Block { text: &buffer[..len] });
    }
    Ok(())
}

/// Whole lines of a log; only the last of a log may lack its line feed.
pub(crate) struct Block<'a> {
    /// The lines with their line ends.
    pub(crate) text: &'a [u8],
}

impl<'a> Block<'a> {
    /// Line by line, without the line feed, and whether there was one.
    pub(crate) fn lines(&self, mut see: impl FnMut(&'a [u8], bool)) {
        let mut start = 0;
        for end in memchr_iter(b'\n', self.text) {
            see(&self.text[start..end], true);
            start = end + 1;
        }
        if start < self.text.len() {
            see(&self.text[start..], false);
        }
    }
}

/// What may have to be cleaned from the lines of a block. Most have neither, and one look at the whole is cheaper
/// than one at each line.
#[derive(Clone, Copy)]
pub(crate) struct Dirt {
    escapes: bool,
    returns: bool,
}

impl Dirt {
    /// What a block has of it.
    pub(crate) fn of(block: &Block<'_>) -> Dirt {
        let has = |byte| memchr(byte, block.text).is_some();
        Dirt { escapes: has(0x1b), returns: has(b'\r') }
    }
}

/// Makes lines clean: no escape sequences, no carriage returns, no prefix.
#[derive(Default)]
pub(crate) struct Cleaner {
    /// What stands before the lines.
    pub(crate) prefix: Prefix,
    scratch: Vec<u8>,
}

impl Cleaner {
    /// Every line of a block, clean.
    pub(crate) fn lines(&mut self, block: &Block<'_>, mut see: impl FnMut(Line<'_>)) {
        let dirt = Dirt::of(block);
        if !self.is_needed(dirt) {
            return block.lines(|text, ended| see(Line { text, ended }));
        }
        block.lines(|text, ended| self.line(text, ended, dirt, &mut see));
    }

    /// Whether lines of such a block are not clean as they are.
    pub(crate) fn is_needed(&self, dirt: Dirt) -> bool {
        dirt.escapes || dirt.returns || !self.prefix.is_empty()
    }

    /// One line, clean; several for a line that was drawn over and over.
    pub(crate) fn line(&mut self, text: &[u8], ended: bool, dirt: Dirt, see: &mut impl FnMut(Line<'_>)) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let text = if dirt.escapes {
            scratch.clear();
            strip_into(text, &mut scratch);
            &scratch[..]
        } else {
            text
        };
        let mut text = self.prefix.strip(text);
        while let Some(rest) = text.strip_suffix(b"\r") {
            text = rest;
        }
        while let Some(at) = dirt.returns.then(|| memchr(b'\r', text)).flatten() {
            if at > 0 {
                see(Line { text: &text[..at], ended: false });
            }
            text = &text[at + 1..];
        }
        see(Line { text, ended });
        self.scratch = scratch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(prefix: Prefix, bytes: &[u8]) -> Vec<String> {
        let mut cleaner = Cleaner { prefix, ..Cleaner::default() };
        let mut out = Vec::new();
        for_each(bytes, |block| {
            cleaner.lines(block, |l| {
                out.push(format!("{}{}", String::from_utf8_lossy(l.text), if l.ended { "|" } else { "" }));
            });
        })
        .unwrap();
        out
    }

    #[test]
    fn colours_carriage_returns_and_titles_go() {
        let text = b"\x1b[1mbold\x1b[0m\r\n\x1b]0;title\x07a\x1b[2K\x1b[1Gb\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n";
        assert_eq!(clean(Prefix::default(), text), ["bold|", "ab|", "link|"]);
    }

    #[test]
    fn each_state_of_a_redrawn_line_is_a_line() {
        assert_eq!(
            clean(Prefix::default(), b"collecting ... \rcollected 3 items\nx"),
            ["collecting ... ", "collected 3 items|", "x"]
        );
    }

    #[test]
    fn a_line_without_end_is_kept_at_both_ends_in_bounded_memory() {
        let mut text = b"begin".to_vec();
        text.resize(10 << 20, b'x');
        text.extend_from_slice(b"end\nnext\n");
        let lines = clean(Prefix::default(), &text);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("begin") && lines[0].ends_with("end|") && lines[0].len() <= BLOCK);
        assert_eq!(lines[1], "next|");
    }

    #[test]
    fn broken_escape_sequences_end_with_the_line() {
        for text in [
            &b"\x1b"[..],
            b"\x1b[",
            b"\x1b[31",
            b"\x1b]",
            b"\x1b]0;x",
            b"\x1b\x1b\x1b[",
            b"\x1b(",
            b"\x1b[\xff",
        ] {
            let _ = clean(Prefix::default(), text);
        }
    }
}
