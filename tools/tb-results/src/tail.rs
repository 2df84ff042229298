//! The last lines of a log that is read block by block.

/// How many bytes of the end are kept: enough for the lines that are asked for, unless they are very long.
const KEPT: usize = 16 << 10;

/// The end of what was read so far.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    /// More of the log.
    pub(crate) fn block(&mut self, text: &[u8]) {
        let text = &text[text.len().saturating_sub(KEPT)..];
        let over = (self.bytes.len() + text.len()).saturating_sub(KEPT);
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend_from_slice(text);
    }

    /// The last `n` lines.
    pub(crate) fn lines(&self, n: usize) -> Vec<String> {
        let text = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        if text.is_empty() {
            return Vec::new();
        }
        let mut lines: Vec<String> = text
            .rsplit(|b| *b == b'\n')
            .take(n)
            .map(|l| String::from_utf8_lossy(l.strip_suffix(b"\r").unwrap_or(l)).into_owned())
            .collect();
        lines.reverse();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn the_last_lines_over_block_ends() {
        let mut tail = Tail::default();
        for i in 0..10_000 {
            tail.block(format!("line {i}\r\n").as_bytes());
        }
        tail.block(b"no end");
        assert_eq!(tail.lines(3), ["line 9998", "line 9999", "no end"]);
        assert_eq!(Tail::default().lines(3), [""; 0]);
    }
}
