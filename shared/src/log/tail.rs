//! The last lines of a log, read from its end, whatever its size.

use crate::contract::{Line, LogFile, line_kind, read_from};
use std::io;

/// How far back the last lines are looked for, in bytes: one endless line must not cost its length.
const WINDOW: u64 = 1 << 20;
/// The first, cheap look.
const FIRST_LOOK: u64 = 4 << 10;
/// How much of one line is shown, in bytes.
const LINE_MAX: usize = 4 << 10;

/// The end of a log's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last lines, oldest first, lossily as text; a long one is cut and ends in `…`.
    pub lines: Vec<String>,
    /// The bytes that were looked at, for whoever looks for progress in them.
    pub bytes: Vec<u8>,
}

/// The last `n` lines of a log's output: without the header, the footer and the other lines of the contract
/// (phases are output).
///
/// # Errors
/// When the log cannot be read.
pub fn tail(log: &LogFile, n: usize) -> io::Result<Tail> {
    let file = log.file()?;
    let (from, to) = (log.extent()?.kept_from(), log.output_end());
    let mut window = FIRST_LOOK.max((n as u64).saturating_mul(128)).min(WINDOW);
    loop {
        let begin = to.saturating_sub(window).max(from.min(to));
        let bytes = read_from(&file, begin, usize::try_from(to - begin).unwrap_or(0))?;
        let lines = lines_of(&bytes, n, begin > from);
        if lines.len() >= n || begin <= from || window >= WINDOW {
            return Ok(Tail { lines, bytes });
        }
        window = (window * 8).min(WINDOW);
    }
}

/// The last `n` lines of these bytes; `cut` says that the first of them may be the end of a longer line.
fn lines_of(bytes: &[u8], n: usize, cut: bool) -> Vec<String> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if body.is_empty() {
        return if bytes.is_empty() || n == 0 { vec![] } else { vec![String::new()] };
    }
    let mut found: Vec<String> = Vec::with_capacity(n.min(64));
    let mut end = body.len();
    while found.len() < n {
        let start = memchr::memrchr(b'\n', &body[..end]).map(|at| at + 1);
        let line = &body[start.unwrap_or(0)..end];
        let output = match line_kind(line) {
            Line::Output | Line::Phase(_) | Line::Marker(_) => true,
            Line::Launch(_)
            | Line::Stopping(_)
            | Line::Result(_)
            | Line::Hook(_)
            | Line::Collected(_)
            | Line::Dropped(_) => false,
        };
        match start {
            Some(start) => {
                if output {
                    found.push(shown(line, false));
                }
                end = start - 1;
            }
            None => {
                // A line whose beginning is out of sight is shown only if there is nothing whole to show.
                if output && (!cut || found.is_empty()) {
                    found.push(shown(line, cut));
                }
                break;
            }
        }
    }
    found.reverse();
    found
}

fn shown(line: &[u8], begins_before: bool) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let before = if begins_before { "…" } else { "" };
    if line.len() <= LINE_MAX {
        return format!("{before}{}", String::from_utf8_lossy(line));
    }
    format!("{before}{}…", String::from_utf8_lossy(&line[..LINE_MAX]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g20_the_last_lines_come_oldest_first() {
        assert_eq!(lines_of(b"a\nb\nc\n", 2, false), ["b", "c"]);
        assert_eq!(lines_of(b"a\nb\nc", 5, false), ["a", "b", "c"]);
        assert_eq!(lines_of(b"\n\nx\n", 3, false), ["", "", "x"]);
        assert_eq!(lines_of(b"", 3, false), [""; 0]);
        assert_eq!(lines_of(b"\n", 3, false), [""]);
        assert_eq!(lines_of(b"half a line\nb\n", 2, true), ["b"]);
        assert_eq!(lines_of(b"half a line", 2, true), ["…half a line"]);
    }

    #[test]
    fn contract_lines_are_no_output_but_phases_are() {
        let text = b"a\n=== GATE STOPPING: {} ===\n=== GATE PHASE: lint ===\nb\n";
        assert_eq!(lines_of(text, 5, false), ["a", "=== GATE PHASE: lint ===", "b"]);
    }

    #[test]
    fn bytes_that_are_no_text_and_long_lines_are_shown_all_the_same() {
        assert_eq!(lines_of(b"a\xff\r\n", 1, false), ["a\u{fffd}"]);
        let long = vec![b'x'; 10_000];
        let shown = &lines_of(&long, 1, false)[0];
        assert_eq!(shown.len(), LINE_MAX + "…".len());
    }
}
