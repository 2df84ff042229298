//! The lines of "short test summary info": ids, messages, exception classes.

use crate::report::Outcome;
use memchr::memmem;
use tb_shared::pytest::{balanced, is_id, is_path, subtest_name};

/// `FAILED id - message` and its relatives, taken apart as far as the line alone allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) outcome: Outcome,
    /// `[msg] (k=v)` of a subtest.
    pub(super) subtest: Option<&'a [u8]>,
    /// The id, and behind it perhaps ` - message`.
    pub(super) rest: &'a [u8],
}

/// Reads a line that names a failing test.
pub(super) fn entry(line: &[u8]) -> Option<Entry<'_>> {
    let line = line.trim_ascii_end();
    let plain = |outcome, rest| Some(Entry { outcome, subtest: None, rest }).filter(|e| names_a_test(e.rest));
    if let Some(rest) = line.strip_prefix(b"FAILED ") {
        return plain(Outcome::Failed, rest);
    }
    if let Some(rest) = line.strip_prefix(b"ERROR ") {
        return plain(Outcome::Error, rest);
    }
    let (subtest, rest) = if let Some(rest) = line.strip_prefix(b"SUBFAILED") {
        // 9.x: the word, the subtest, the test.
        let end = subtest_name(rest).unwrap_or(1);
        (rest.get(..end)?, rest.get(end..)?)
    } else if matches!(line.first(), Some(b'[' | b'(')) {
        // The plugin before: the subtest, the word, the test.
        let end = subtest_name(line)?;
        (&line[..end], line[end..].strip_prefix(b"SUBFAIL ")?)
    } else {
        return None;
    };
    let subtest = Some(subtest.trim_ascii());
    names_a_test(rest).then_some(Entry { outcome: Outcome::Failed, subtest, rest })
}

/// Whether a test's id or, for a collection error, a file's or a directory's path begins here.
fn names_a_test(rest: &[u8]) -> bool {
    if is_id(rest) {
        return true;
    }
    let path = memmem::find(rest, b" - ").map_or(rest, |at| &rest[..at]);
    !path.is_empty() && (is_path(path) || !path.contains(&b' ')) && !path.ends_with(b":")
}

/// The id and the message. `known` says whether the log has named this very test elsewhere, which is the best
/// proof; without any, the message begins behind the bracket that closes the id.
pub(super) fn split(rest: &[u8], known: impl Fn(&[u8]) -> bool) -> (&[u8], Option<&[u8]>) {
    let mut by_brackets = None;
    for at in memmem::find_iter(rest, b" - ") {
        let id = &rest[..at];
        if known(id) {
            return (id, Some(&rest[at + 3..]));
        }
        if by_brackets.is_none() && balanced(id) {
            by_brackets = Some(at);
        }
    }
    if known(rest) {
        return (rest, None);
    }
    // Brackets that never close: the last that could be the id's.
    let at = by_brackets.or_else(|| memmem::rfind(rest, b"] - ").map(|at| at + 1));
    match at {
        Some(at) => (&rest[..at], Some(&rest[at + 3..])),
        None => (rest, None),
    }
}

/// The file of a test.
pub(super) fn path(id: &[u8]) -> &[u8] {
    memmem::find(id, b"::").map_or(id, |at| &id[..at])
}

/// The headline of a test's failure: its id without the path, `TestGroup.test_x[a]`.
pub(super) fn headline(id: &[u8], subtest: Option<&[u8]>) -> Vec<u8> {
    let mut name = match memmem::find(id, b"::") {
        Some(at) => dotted(&id[at + 2..]),
        None => id.to_vec(),
    };
    if let Some(subtest) = subtest.filter(|s| !s.is_empty()) {
        name.push(b' ');
        name.extend_from_slice(subtest);
    }
    name
}

/// `A::b[x::y]` as `A.b[x::y]`: what is in brackets is the parameter's own.
fn dotted(name: &[u8]) -> Vec<u8> {
    let params = memchr::memchr(b'[', name).unwrap_or(name.len());
    let mut out = Vec::with_capacity(name.len());
    let mut rest = &name[..params];
    while let Some(at) = memmem::find(rest, b"::") {
        out.extend_from_slice(&rest[..at]);
        out.push(b'.');
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&name[params..]);
    out
}

/// The exception's class that a message begins with, without its module. Messages that pytest trimmed to the
/// width of the terminal may have lost the end of the class itself: then it is unknown.
pub(super) fn class_of_message(message: &[u8]) -> Option<&str> {
    if message.starts_with(b"assert ") || message == b"assert" {
        return Some("AssertionError");
    }
    let end = message.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')).count();
    let (name, rest) = message.split_at(end);
    if name.ends_with(b".") || !(rest.is_empty() || rest.starts_with(b":") || rest.starts_with(b" (")) {
        return None;
    }
    let class = name.rsplit(|b| *b == b'.').next()?;
    if !class.first()?.is_ascii_uppercase() {
        return None;
    }
    std::str::from_utf8(class).ok()
}

/// `tests/test_a.py:14: AssertionError`, the last line of a failure: file, line and class.
pub(super) fn location(line: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    // "C:\a.py:14: X" has a colon of its own, so from the back.
    let sep = memmem::rfind(line, b": ")?;
    let colon = memchr::memrchr(b':', &line[..sep])?;
    let digits = &line[colon + 1..sep];
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n = digits.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0'));
    let path = &line[..colon];
    (colon > 0 && path[0] != b' ').then_some((path, n, &line[sep + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (String, Option<String>) {
        let entry = entry(line.as_bytes()).unwrap();
        let (id, message) = split(entry.rest, |_| false);
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (text(id), message.map(text))
    }

    #[test]
    fn the_message_begins_behind_the_bracket_that_closes_the_id() {
        for id in [
            "t.py::t",
            "t.py::T::t",
            "t.py::t[a b]",
            "t.py::t[tail - dash]",
            "t.py::t[br[ack]et]",
            "t.py::t[a]b[c]",
            "t.py::t[3 - 5 in 1.00s]",
            "t.py::t[a::b FAILED 100%]",
            "t.py",
        ] {
            assert_eq!(of(&format!("FAILED {id}")), (id.to_owned(), None));
            assert_eq!(of(&format!("FAILED {id} - E: a - b")), (id.to_owned(), Some("E: a - b".to_owned())));
        }
    }

    #[test]
    fn what_the_log_named_elsewhere_beats_the_brackets() {
        let rest = b"t.py::t[x] - y] - E: a";
        let (id, message) = split(rest, |id| id == b"t.py::t[x] - y]");
        assert_eq!((id, message), (&b"t.py::t[x] - y]"[..], Some(&b"E: a"[..])));
        let rest = b"t.py::t[a[b] - E: a - b";
        assert_eq!(split(rest, |_| false), (&b"t.py::t[a[b]"[..], Some(&b"E: a - b"[..])));
    }

    #[test]
    fn subtests_of_both_kinds_name_their_test() {
        for line in [
            "SUBFAILED[val [x]] (i='2') t.py::t - assert 2 != 2",
            "[val [x]] (i=2) SUBFAIL t.py::t - assert 2 != 2",
            "SUBFAILED(k='c - d') t.py::t - assert 2 != 2",
            "(k='c - d') SUBFAIL t.py::t - assert 2 != 2",
        ] {
            assert_eq!(of(line), ("t.py::t".to_owned(), Some("assert 2 != 2".to_owned())), "{line}");
        }
        assert_eq!(headline(b"t.py::A::t[x::y]", Some(b"[m] (i=2)")), b"A.t[x::y] [m] (i=2)");
    }

    #[test]
    fn prose_is_no_entry() {
        for line in
            ["FAILED to connect", "ERROR    svc:test.py:6 odd", "ERROR: usage", "FAILED", "ERROR in x - y"]
        {
            assert_eq!(entry(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn classes_of_messages() {
        let class = |m: &str| class_of_message(m.as_bytes()).map(str::to_owned);
        assert_eq!(class("assert 1 == 2").as_deref(), Some("AssertionError"));
        assert_eq!(class("pkg.errors.BoomError: x").as_deref(), Some("BoomError"));
        assert_eq!(class("NotImplementedError").as_deref(), Some("NotImplementedError"));
        assert_eq!(class("Failed: Timeout (>1.0s)").as_deref(), Some("Failed"));
        assert_eq!(class("ExceptionGroup: several (2 sub-exceptions)").as_deref(), Some("ExceptionGroup"));
        for none in
            ["NotImplemen...", "[XPASS(strict)] x", "worker 'gw0' crashed", "contains 1 failed subtest", ""]
        {
            assert_eq!(class(none), None, "{none}");
        }
    }

    #[test]
    fn places_of_failures() {
        assert_eq!(location(b"a/b.py:14: KeyError"), Some((&b"a/b.py"[..], 14, &b"KeyError"[..])));
        assert_eq!(location(b"C:\\a.py:3: X"), Some((&b"C:\\a.py"[..], 3, &b"X"[..])));
        assert_eq!(location(b"    x = {1: 2}"), None);
        assert_eq!(location(b"a.py: 3: X"), None);
    }
}
