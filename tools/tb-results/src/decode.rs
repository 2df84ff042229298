//! Bytes of a log as UTF-8, or as near to it as they were written: UTF-16 (PowerShell's `>`) is converted, a
//! byte order mark dropped, everything else passes as it is.

use std::io::{self, Read};

/// The reader, converted if its first bytes say that it is UTF-16.
///
/// # Errors
/// When the first bytes cannot be read.
pub(crate) fn utf8<'r>(mut inner: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut head = [0u8; 4];
    let mut len = 0;
    while len < head.len() {
        match inner.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let (skip, wide) = match &head[..len] {
        [0xff, 0xfe, ..] => (2, Some(u16::from_le_bytes as fn([u8; 2]) -> u16)),
        [0xfe, 0xff, ..] => (2, Some(u16::from_be_bytes as fn([u8; 2]) -> u16)),
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        // No mark, but two ASCII characters of two bytes each.
        [1..=0x7f, 0, 1..=0x7f, 0] => (0, Some(u16::from_le_bytes as fn([u8; 2]) -> u16)),
        _ => (0, None),
    };
    let rest = io::Cursor::new(head).take(len as u64);
    let mut rest = rest.chain(inner);
    io::copy(&mut (&mut rest).take(skip), &mut io::sink())?;
    Ok(match wide {
        Some(unit) => Box::new(Utf16 { inner: rest, unit, odd: None, high: None, out: Vec::new(), at: 0 }),
        None => Box::new(rest),
    })
}

struct Utf16<R> {
    inner: R,
    unit: fn([u8; 2]) -> u16,
    /// The first half of a unit whose second has not been read.
    odd: Option<u8>,
    /// A high surrogate whose low one has not been read.
    high: Option<u16>,
    out: Vec<u8>,
    at: usize,
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            let mut block = [0u8; 8192];
            let n = self.inner.read(&mut block)?;
            self.out.clear();
            self.at = 0;
            if n == 0 {
                return Ok(0);
            }
            let units: Vec<u16> = {
                let bytes = self.odd.take().into_iter().chain(block[..n].iter().copied());
                let bytes: Vec<u8> = bytes.collect();
                if bytes.len() % 2 == 1 {
                    self.odd = bytes.last().copied();
                }
                bytes.chunks_exact(2).map(|c| (self.unit)([c[0], c[1]])).collect()
            };
            let mut units: Vec<u16> = self.high.take().into_iter().chain(units).collect();
            if units.last().is_some_and(|u| (0xd800..0xdc00).contains(u)) {
                self.high = units.pop();
            }
            for c in char::decode_utf16(units) {
                let mut buffer = [0u8; 4];
                let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                self.out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            }
        }
        let n = to.len().min(self.out.len() - self.at);
        to[..n].copy_from_slice(&self.out[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> String {
        let mut text = Vec::new();
        utf8(bytes).unwrap().read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn wide(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn utf16_with_and_without_a_mark_is_converted() {
        let text = "é = 1 passed 😀\r\n".repeat(3000);
        assert_eq!(all(&wide(&format!("\u{feff}{text}"), u16::to_le_bytes)), text);
        assert_eq!(all(&wide(&format!("\u{feff}{text}"), u16::to_be_bytes)), text);
        assert_eq!(all(&wide("== 1 passed", u16::to_le_bytes)), "== 1 passed");
    }

    #[test]
    fn everything_else_passes_as_it_is() {
        assert_eq!(all("\u{feff}abc".as_bytes()), "abc");
        for text in ["", "a", "ab", "abc", "abcd", "abcdé"] {
            assert_eq!(all(text.as_bytes()), text);
        }
    }
}
