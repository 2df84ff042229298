//! Signs that a process died: of the interpreter, of xdist, of pytest-timeout, of the shell around it.

use memchr::memmem::{self, Finder};
use std::sync::LazyLock;
use tb_shared::pytest;

/// What is looked for in every line that progress does not explain: made once, a search for each is cheap.
struct Finders {
    fatal: Finder<'static>,
    node_down: Finder<'static>,
    timeout: Finder<'static>,
    internal: Finder<'static>,
    traceback: Finder<'static>,
    slow: Finder<'static>,
    line: Finder<'static>,
}

static FIND: LazyLock<Finders> = LazyLock::new(|| Finders {
    fatal: Finder::new("Fatal Python error: "),
    node_down: Finder::new("] node down: "),
    timeout: Finder::new("+ Timeout +"),
    internal: Finder::new("INTERNALERROR> "),
    traceback: Finder::new("Traceback (most recent call last):"),
    slow: Finder::new("Timeout (0:"),
    line: Finder::new(": line "),
});

/// Where in a line somebody else's words begin: a crash writes into the middle of what pytest was writing.
pub(super) fn cut(line: &[u8]) -> Option<(usize, Sign<'_>)> {
    if let Some(at) = FIND.fatal.find(line) {
        return Some((at, Sign::Fatal(&line[at + 20..])));
    }
    if let Some(at) = FIND.node_down.find(line) {
        let open = memchr::memrchr(b'[', &line[..at])?;
        return Some((open, Sign::NodeDown { worker: &line[open + 1..at], why: &line[at + 13..] }));
    }
    if let Some(at) = FIND.timeout.find(line) {
        let start = line[..at].iter().rposition(|b| *b != b'+').map_or(0, |i| i + 1);
        return Some((start, Sign::Timeout));
    }
    if let Some(at) = FIND.internal.find(line) {
        return Some((at, Sign::Internal(&line[at + 15..])));
    }
    if let Some(at) = FIND.traceback.find(line) {
        return Some((at, Sign::Traceback));
    }
    if let Some(at) = FIND.slow.find(line) {
        return Some((at, Sign::SlowDump));
    }
    shell(line).map(|(at, what)| (at, Sign::Killed(what)))
}

/// What a line holds before the last words of the interpreter, of pytest-timeout or of a session that failed.
pub(super) fn before_last_words(line: &[u8]) -> Option<&[u8]> {
    let (at, sign) = cut(line)?;
    let last = match sign {
        Sign::Fatal(_) => true,
        Sign::Timeout => line.ends_with(b"+"),
        Sign::Traceback | Sign::Killed(_) => at > 0,
        _ => false,
    };
    last.then_some(&line[..at])
}

/// A sign, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign<'a> {
    /// The interpreter's last words.
    Fatal(&'a [u8]),
    /// A worker of xdist's is gone.
    NodeDown { worker: &'a [u8], why: &'a [u8] },
    /// pytest-timeout ends the process.
    Timeout,
    /// A line of the runner's own failure.
    Internal(&'a [u8]),
    /// A traceback outside of any report.
    Traceback,
    /// A dump of all threads because a test is slow: no failure.
    SlowDump,
    /// A shell tells of a signal.
    Killed(&'static str),
}

/// What shells say of a child that a signal ended, and the signal.
const DEATHS: [(&[u8], &str); 7] = [
    (b"Segmentation fault", "SIGSEGV"),
    (b"Killed", "SIGKILL"),
    (b"Aborted", "SIGABRT"),
    (b"Terminated", "SIGTERM"),
    (b"Bus error", "SIGBUS"),
    (b"Illegal instruction", "SIGILL"),
    (b"Floating point exception", "SIGFPE"),
];

/// `/path/x.sh: line 1:  2930 Killed   pytest` somewhere in the line, or the bare words as the whole of it.
fn shell(line: &[u8]) -> Option<(usize, &'static str)> {
    if let Some(found) = DEATHS.iter().find(|(word, _)| is_death(line, word)) {
        return Some((0, found.1));
    }
    if let Some(found) = glued_death(line) {
        return Some(found);
    }
    let at = FIND.line.find(line)?;
    let rest = &line[at + 7..];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(b":")?;
    let (_, signal) = DEATHS.iter().find(|(word, _)| memmem::find(rest, word).is_some())?;
    let mut start = memchr::memrchr(b' ', &line[..at]).map_or(0, |i| i + 1);
    // "x..F/tmp/x.sh: line 1": the script's path behind letters.
    let letters = line[start..at].iter().take_while(|b| b".FEsxXR".contains(b)).count();
    if line.get(start + letters) == Some(&b'/') {
        start += letters;
    } else if let Some(percent) = memmem::find(&line[start..at], b"%]/") {
        start += percent + 2;
    }
    (digits > 0).then_some((start, signal))
}

/// The bare words behind what pytest was writing: its percentage, its letters, the test that it began.
fn glued_death(line: &[u8]) -> Option<(usize, &'static str)> {
    let line = line.trim_ascii_end();
    let line = line.strip_suffix(b" (core dumped)").unwrap_or(line);
    let (word, signal) = DEATHS.iter().find(|(word, _)| line.ends_with(word))?;
    let before = &line[..line.len() - word.len()];
    let progress = pytest::percent(before).1.is_some()
        || pytest::started(before).is_some()
        || pytest::dots(before).is_some_and(|d| !d.letters.is_empty());
    progress.then_some((before.len(), signal))
}

fn is_death(line: &[u8], word: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(word) else { return false };
    matches!(rest.trim_ascii(), b"" | b"(core dumped)")
}

/// An exit status of 128 and more that whoever ran the tests tells of: `exit code 137`, `exited with code 139.`
pub(super) fn exit_status(line: &[u8]) -> Option<u16> {
    // "…137", "…137.", "…137)": a line that does not end so is not looked through.
    if !line.trim_ascii_end().iter().rev().take(2).any(u8::is_ascii_digit) {
        return None;
    }
    let at = [&b"exit code "[..], b"exited with code ", b"exited with ", b"exit status "]
        .iter()
        .find_map(|words| memmem::rfind(line, words).map(|at| at + words.len()))?;
    let digits = line[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let code: u16 = std::str::from_utf8(&line[at..at + digits]).ok()?.parse().ok()?;
    let tail = line[at + digits..].trim_ascii();
    ((128..256).contains(&code) && matches!(tail, b"" | b"." | b")" | b"!")).then_some(code)
}

/// `worker 'gw1' crashed while running 'id'`.
pub(super) fn crashed_while(line: &[u8]) -> Option<(&[u8], &[u8])> {
    // xdist 1 begins with a capital.
    let words: [&[u8]; 4] = [b"worker '", b"slave '", b"Worker '", b"Slave '"];
    let rest = words.iter().find_map(|w| line.strip_prefix(*w))?;
    let at = memmem::find(rest, b"' crashed while running ")?;
    let id = rest[at + 24..].trim_ascii_end();
    let id = id.strip_prefix(b"'").or_else(|| id.strip_prefix(b"\""))?;
    Some((&rest[..at], id.strip_suffix(b"'").or_else(|| id.strip_suffix(b"\""))?))
}

/// Finds in a dump of a thread's stack the function that pytest was calling as the test.
#[derive(Default)]
pub(super) struct Stack {
    /// Frames come innermost first (faulthandler) or outermost first (pytest-timeout).
    innermost_first: bool,
    previous: Option<(Vec<u8>, Vec<u8>)>,
    expecting: bool,
    found: Option<(Vec<u8>, Vec<u8>)>,
}

impl Stack {
    /// A dump begins.
    pub(super) fn begin(&mut self, innermost_first: bool) {
        self.innermost_first = innermost_first;
        self.previous = None;
        self.expecting = false;
    }

    /// A line of it.
    pub(super) fn line(&mut self, line: &[u8]) {
        let Some((file, function)) = frame(line) else { return };
        let calls_test = file.ends_with(b"_pytest/python.py") && function == b"pytest_pyfunc_call";
        if self.innermost_first {
            if calls_test && self.found.is_none() {
                self.found = self.previous.take();
            }
            self.previous = Some((file.to_vec(), function.to_vec()));
        } else if std::mem::take(&mut self.expecting) && self.found.is_none() {
            self.found = Some((file.to_vec(), function.to_vec()));
        } else {
            self.expecting = calls_test;
        }
    }

    /// File and function of the test.
    pub(super) fn test(&self) -> Option<(&[u8], &[u8])> {
        self.found.as_ref().map(|(file, function)| (&file[..], &function[..]))
    }
}

/// Whether this is a frame as faulthandler writes it: `  File "/a/b.py", line 6 in f`, without a second comma.
pub(super) fn dumped(line: &[u8]) -> bool {
    let Some(at) = memmem::find(line, b"\", line ") else { return false };
    let rest = &line[at + 8..];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(b" in ")
}

/// `  File "/a/test_x.py", line 6 in test_y`, with a comma before `in` where Python's traceback wrote it.
fn frame(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.trim_ascii().strip_prefix(b"File \"")?;
    let close = memchr::memchr(b'"', rest)?;
    let at = memmem::find(&rest[close..], b" in ")?;
    Some((&rest[..close], &rest[close + at + 4..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_words_glued_to_progress_are_cut_off() {
        let at = |l: &str| cut(l.as_bytes()).map(|(at, _)| l[..at].to_owned());
        assert_eq!(at("......FFatal Python error: Aborted").as_deref(), Some("......F"));
        assert_eq!(at("..[gw0] node down: Not properly terminated").as_deref(), Some(".."));
        assert_eq!(at("t.py::t ++++++ Timeout ++++++").as_deref(), Some("t.py::t "));
        assert_eq!(
            at("t.py::t /a/f.sh: line 109:  6316 Segmentation fault      (core dumped) x").as_deref(),
            Some("t.py::t ")
        );
        assert_eq!(at("t.py Timeout (0:00:02)!").as_deref(), Some("t.py "));
        assert_eq!(at("nothing: line x: Killed"), None);
        assert_eq!(at("Killed").as_deref(), Some(""));
        assert_eq!(at("Killed by whom"), None);
        assert_eq!(at("t.py::t PASSED    [ 50%]Terminated").as_deref(), Some("t.py::t PASSED    [ 50%]"));
        assert_eq!(at("t.py ..FAborted (core dumped)").as_deref(), Some("t.py ..F"));
        assert_eq!(at("t.py::t Killed").as_deref(), Some("t.py::t "));
        assert_eq!(at("the child was Killed"), None);
    }

    #[test]
    fn exit_codes_of_signals() {
        assert_eq!(exit_status(b"##[error]Process completed with exit code 137."), Some(137));
        assert_eq!(exit_status(b"The command \"pytest\" exited with 139."), Some(139));
        assert_eq!(exit_status(b"Process completed with exit code 1."), None);
        assert_eq!(exit_status(b"expects exit code 137 from child"), None);
    }

    #[test]
    fn the_stack_names_the_test_in_both_orders() {
        let mut stack = Stack::default();
        stack.begin(true);
        for line in [
            "  File \"/p/test_a.py\", line 6 in helper",
            "  File \"/p/test_a.py\", line 9 in test_x",
            "  File \"/v/_pytest/python.py\", line 159 in pytest_pyfunc_call",
        ] {
            stack.line(line.as_bytes());
        }
        assert_eq!(stack.test(), Some((&b"/p/test_a.py"[..], &b"test_x"[..])));
        let mut stack = Stack::default();
        stack.begin(false);
        for line in [
            "  File \"/v/_pytest/python.py\", line 187, in pytest_pyfunc_call",
            "    result = testfunction(**testargs)",
            "  File \"/p/test_t.py\", line 6, in test_hang",
            "    time.sleep(30)",
        ] {
            stack.line(line.as_bytes());
        }
        assert_eq!(stack.test(), Some((&b"/p/test_t.py"[..], &b"test_hang"[..])));
    }
}
