//! The lines of unittest, one by one.

use crate::scan;
use memchr::memmem::Finder;
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
    let Some(open) = memchr::memchr(b'(', name) else {
        return (dotted(name) && name.contains(&b'.')).then(|| name.to_vec());
    };
    let rest = behind_test(name)?;
    let (method, inside) = (&name[..open - 1], &name[open + 1..name.len() - rest.len() - 1]);
    let mut id = Vec::with_capacity(name.len());
    id.extend_from_slice(inside);
    if inside.rsplit(|b| *b == b'.').next() != Some(method) {
        id.push(b'.');
        id.extend_from_slice(method);
    }
    id.extend_from_slice(rest);
    Some(id)
}

/// The name of a test that passed, where nothing else is on its line: `test_a (mod.Class.test_a) ... ok`.
pub(super) fn passed(line: &[u8]) -> Option<&[u8]> {
    line.strip_suffix(b" ... ok").filter(|name| behind_test(name).is_some_and(<[u8]>::is_empty))
}

/// Whether this is a test's name with its class in brackets.
fn is_test(name: &[u8]) -> bool {
    behind_test(name).is_some()
}

/// What stands behind a test's name with its class in brackets, if it is one.
fn behind_test(name: &[u8]) -> Option<&[u8]> {
    let name = name.trim_ascii();
    let (method, rest) = name.split_at(memchr::memchr(b'(', name)?);
    let close = memchr::memchr(b')', rest)?;
    (dotted(method.strip_suffix(b" ")?) && dotted(&rest[1..close])).then_some(&rest[close + 1..])
}

pub(super) fn dotted(name: &[u8]) -> bool {
    let begins = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b >= 0x80);
    // Not `all`: what does not stop at the first that fits ill is done for many bytes at once.
    let fits = |b: u8| {
        b.is_ascii_alphanumeric() | (b == b'_') | (b == b'.') | (b == b'<') | (b == b'>') | (b >= 0x80)
    };
    begins && name.chunks(64).all(|part| part.iter().fold(true, |all, b| all & fits(*b)))
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
    let at = ELLIPSIS.find(line)?;
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
