//! The lines of `go test`, one by one.

use crate::scan;
use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

pub(super) static ACTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"Action\":\""));
pub(super) static OUTPUT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"Output\":\""));
pub(super) static PACKAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"Package\":\""));

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Pass,
    Fail,
    Skip,
}

/// How a package ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    Failed,
    /// It has no tests, or none were selected.
    Nothing,
    Unbuilt,
}

/// `ok  \tpkg\t0.1s`, `FAIL\tpkg\t0.1s`, `FAIL\tpkg [build failed]`, `?   \tpkg\t[no test files]`.
pub(super) fn package(line: &[u8]) -> Option<(&[u8], Ended)> {
    if let Some(rest) = line.strip_prefix(b"?   \t") {
        let (path, rest) = split(rest, b'\t')?;
        return (rest == b"[no test files]").then_some((path, Ended::Nothing));
    }
    if let Some(rest) = line.strip_prefix(b"ok  \t") {
        let (path, rest) = split(rest, b'\t')?;
        let timed = rest.starts_with(b"(cached)") || scan::leading(rest).is_some();
        let nothing = memmem::find(rest, b"[no tests to run]").is_some();
        return timed.then_some((path, if nothing { Ended::Nothing } else { Ended::Ok }));
    }
    let rest = line.strip_prefix(b"FAIL\t")?;
    for why in [&b" [build failed]"[..], b" [setup failed]"] {
        if let Some(path) = rest.strip_suffix(why) {
            return Some((path, Ended::Unbuilt));
        }
    }
    let (path, rest) = split(rest, b'\t')?;
    let known = rest.last() == Some(&b's') && scan::leading(rest).is_some();
    known.then_some((path, Ended::Failed))
}

pub(super) fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(at, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// `=== RUN   TestSubs/bad_one` at the end of a line: the name. Names hold no spaces, so what is looked for is known
/// from the last one.
pub(super) fn announced(line: &[u8]) -> Option<&[u8]> {
    let (before, name) = line.split_at(memchr::memrchr(b' ', line)? + 1);
    (before.ends_with(b"=== RUN   ") && !name.is_empty() && name.len() < 4096).then_some(name)
}

/// `--- FAIL: TestSubs/bad_one (0.00s)` at the end of a line, from there on backwards.
pub(super) fn result(line: &[u8]) -> Option<(&[u8], Word, f64)> {
    let body = line.strip_suffix(b"s)")?;
    // Nearer than a search is worth.
    let (body, seconds) = body.split_at(body.iter().rposition(|b| *b == b'(')?);
    let body = body.strip_suffix(b" ")?;
    let seconds = scan::decimal(&seconds[1..])?;
    let (body, name) = body.split_at(memchr::memrchr(b' ', body)? + 1);
    let word = match body.last_chunk()? {
        b"--- PASS: " => Word::Pass,
        b"--- FAIL: " => Word::Fail,
        b"--- SKIP: " => Word::Skip,
        _ => return None,
    };
    (!name.is_empty()).then_some((name, word, seconds))
}

/// The raw value of a member of a JSON object on one line, up to its closing quotation mark.
pub(super) fn field<'l>(line: &'l [u8], key: &Finder<'_>) -> Option<&'l [u8]> {
    let start = key.find(line)? + key.needle().len();
    let mut end = start;
    loop {
        end += memchr::memchr2(b'"', b'\\', line.get(end..)?)?;
        if line[end] == b'"' {
            return Some(&line[start..end]);
        }
        end += 2;
    }
}

/// Whether a piece of output, still encoded, may be one of the lines that are read.
pub(super) fn worth(raw: &[u8]) -> bool {
    let starts: [&[u8]; 9] = [
        b"ok ",
        b"FAIL",
        b"?  ",
        b"panic: ",
        b"signal: ",
        b"running tests:",
        b"\\trunning tests:",
        b"\\t\\tTest",
        b"\\tTest",
    ];
    starts.iter().any(|s| raw.starts_with(s))
        || raw.starts_with(b"    ") && memmem::find(raw, b".go:").is_some()
}
