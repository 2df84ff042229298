//! The lines of unittest, one by one.

use crate::scan;
use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

static ELLIPSIS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" ..."));

/// What a test's line ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Ok,
    Fail,
    Error,
    Skipped,
    Xfail,
    Xpass,
    None,
}

/// The trailer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trailer {
    pub(super) ran: u64,
    pub(super) seconds: f64,
    pub(super) failures: u64,
    pub(super) errors: u64,
    pub(super) skipped: u64,
    pub(super) xfailed: u64,
    pub(super) xpassed: u64,
    pub(super) good: bool,
}

pub(super) fn is_fixture(name: &[u8]) -> bool {
    let kinds: [&[u8]; 4] = [b"setUpClass (", b"tearDownClass (", b"setUpModule (", b"tearDownModule ("];
    kinds.iter().any(|k| name.starts_with(k))
}

/// `FAIL: test_a (mod.Class.test_a) (i=1)`.
pub(super) fn head(line: &[u8]) -> Option<(Word, &[u8])> {
    [(&b"FAIL: "[..], Word::Fail), (b"ERROR: ", Word::Error), (b"UNEXPECTED SUCCESS: ", Word::Xpass)]
        .into_iter()
        .find_map(|(mark, word)| Some((word, line.strip_prefix(mark)?)))
}

/// The dotted name of `test_a (mod.Class.test_a)`, before 3.11 of `test_a (mod.Class)`, with what stands behind it.
pub(super) fn id(name: &[u8]) -> Option<Vec<u8>> {
    let name = name.trim_ascii();
    if is_fixture(name) {
        return Some(name.to_vec());
    }
    let Some(open) = memmem::find(name, b" (") else {
        return (dotted(name) && name.contains(&b'.')).then(|| name.to_vec());
    };
    let method = &name[..open];
    let close = open + memchr::memchr(b')', &name[open..])?;
    let inside = &name[open + 2..close];
    let whole = inside.rsplit(|b| *b == b'.').next() == Some(method);
    if !dotted(method) || !dotted(inside) {
        return None;
    }
    let mut id = inside.to_vec();
    if !whole {
        id.push(b'.');
        id.extend_from_slice(method);
    }
    id.extend_from_slice(&name[close + 1..]);
    Some(id)
}

/// Whether this is a test's name with its class in brackets.
pub(super) fn is_test(name: &[u8]) -> bool {
    let name = name.trim_ascii();
    let Some(open) = memchr::memchr(b'(', name).filter(|at| *at > 0 && name[at - 1] == b' ') else {
        return false;
    };
    let Some(close) = memchr::memchr(b')', &name[open..]) else { return false };
    dotted(&name[..open - 1]) && dotted(&name[open + 1..open + close])
}

pub(super) fn dotted(name: &[u8]) -> bool {
    let begins = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b >= 0x80);
    begins
        && name
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'<' | b'>') || *b >= 0x80)
}

pub(super) struct Verbose<'l> {
    pub(super) name: &'l [u8],
    /// The name is a test's, not a docstring.
    pub(super) dotted: bool,
    /// The word is missing, or hidden behind what the test wrote.
    pub(super) begun: bool,
    pub(super) word: Word,
    pub(super) rest: &'l [u8],
}

/// `test_a (mod.Class.test_a) ... ok`.
pub(super) fn verbose(line: &[u8]) -> Option<Verbose<'_>> {
    // Output of tests mostly has not one full stop: a byte is found faster than a word.
    let at = memchr::memchr(b'.', line).and_then(|_| ELLIPSIS.find(line))?;
    let name = &line[..at];
    let rest = line[at + 4..].trim_ascii_start();
    let word = word(rest);
    // Most lines are of tests that passed, and count as such whatever the name.
    let dotted = if word == Word::Ok && name.last() == Some(&b')') { true } else { is_test(name) };
    let known = dotted || word != Word::None;
    (known && !name.is_empty()).then_some(Verbose { name, dotted, begun: word == Word::None, word, rest })
}

pub(super) fn word(text: &[u8]) -> Word {
    match text {
        b"ok" => Word::Ok,
        b"FAIL" => Word::Fail,
        b"ERROR" => Word::Error,
        b"expected failure" => Word::Xfail,
        b"unexpected success" => Word::Xpass,
        _ if text.starts_with(b"skipped '")
            || text.starts_with(b"skipped \"")
            || text.starts_with(b"SKIP") =>
        {
            Word::Skipped
        }
        _ => Word::None,
    }
}

/// `Ran 10 tests in 0.030s`.
pub(super) fn ran(line: &[u8]) -> Option<(u64, f64)> {
    let (n, rest) = scan::leading(line.strip_prefix(b"Ran ")?)?;
    let rest = rest.strip_prefix(b" tests in ").or_else(|| rest.strip_prefix(b" test in "))?;
    Some((n, scan::seconds(rest)?))
}

/// `OK (skipped=1)`, `FAILED (failures=3, errors=4)`, `NO TESTS RAN`.
pub(super) fn verdict(line: &[u8], ran: u64, seconds: f64) -> Option<Trailer> {
    let mut out = Trailer { ran, seconds, good: true, ..Trailer::default() };
    let rest = match line {
        b"OK" => return Some(out),
        _ if line.starts_with(b"NO TESTS RAN") => &line[12..],
        _ if line.starts_with(b"OK (") => &line[2..],
        _ => {
            out.good = false;
            line.strip_prefix(b"FAILED")?
        }
    };
    if rest.is_empty() {
        return Some(out);
    }
    for part in scan::between(rest, b" (", b")")?.split(|b| *b == b',') {
        let part = part.trim_ascii();
        let at = memchr::memchr(b'=', part)?;
        let n = scan::number(&part[at + 1..])?;
        match &part[..at] {
            b"failures" => out.failures = n,
            b"errors" => out.errors = n,
            b"skipped" | b"SKIP" => out.skipped = n,
            b"expected failures" => out.xfailed = n,
            b"unexpected successes" => out.xpassed = n,
            _ => {}
        }
    }
    Some(out)
}
