//! The trait that a test runner's parser implements, and the table of those there are.
//!
//! # Adding a runner
//!
//! 1. Write one file with a type that implements [`Runner`]. It is handed the log's lines one by one, in order,
//!    already cleaned (see [`Line`]), and gives its [`Session`]s at the end. It keeps what it must report and
//!    nothing else: logs of many gigabytes are read in constant memory.
//! 2. Write `fn opens(line: &[u8]) -> bool`: whether this line, alone, can only come from this runner. It decides
//!    which parser reads the log, and where a second runner's output begins in a log of several. Say no when in
//!    doubt: the lines before the opening are not lost, the parser gets the last of them again (see
//!    [`crate::read`]). It is called on every line while no parser is at work, so look at what is cheap first.
//! 3. Write `fn rerun(&Again) -> Vec<Vec<String>>`: the words of the command lines that select those tests, mostly
//!    one; none where the runner cannot select. Quoting is done by the caller.
//! 4. Add a row to [`TABLE`], with the first bytes, behind any blanks, that a line which opens a run can have:
//!    other lines are not shown to `opens`. Its `may_be` is `|_| false` but for a runner whose shortest output has
//!    no line of its own kind. Order matters only for a line that two runners claim: the first wins.
//!
//! Counts come from the runner's own summary, read by its grammar on whole lines, never from counting words;
//! what the log cannot tell stays `None`. Parsers are pure: bytes in, sessions out, no files, no clock, and no
//! bytes that make them panic or slow (the property tests run over every row of the table).

use crate::report::Session;
use crate::rerun::Again;
use std::sync::LazyLock;

/// A line of the log: without its line end, escape sequences, carriage returns and the prefix that a CI system
/// put before every line; otherwise the bytes that were written, so not always UTF-8. Of a line too long to be
/// kept, the beginning and the end.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The text.
    pub text: &'a [u8],
    /// Whether a line feed ended it: not for the last line of a log that was cut, nor for the states of a line
    /// that was drawn again and again after a carriage return (each comes as a line of its own).
    pub ended: bool,
}

/// A parser of one runner's output.
pub trait Runner {
    /// The next line.
    fn line(&mut self, line: Line<'_>);

    /// Whether no run is open: then the opening line of another runner ends this parser's turn.
    fn idle(&self) -> bool;

    /// The end of the log, or of this runner's part of it.
    fn finish(self: Box<Self>) -> Vec<Session>;
}

/// A row of the table.
pub struct Format {
    /// The name in `--format` and in the output.
    pub name: &'static str,
    /// Whether a line may open output of this runner whose first byte is this, blanks aside.
    pub begins: fn(u8) -> bool,
    /// Whether this line opens output of this runner.
    pub opens: fn(&[u8]) -> bool,
    /// Whether a log of just these lines, none of which opens a run, is this runner's for want of a better one.
    pub may_be: fn(&[&[u8]]) -> bool,
    /// A parser at its start.
    pub start: fn() -> Box<dyn Runner>,
    /// The words of the command lines that run these tests again, one after the other. None: the runner has no way
    /// to select them.
    pub rerun: fn(&Again<'_>) -> Vec<Vec<String>>,
}

/// A row whose parser lives in the module `$module` and whose opening lines begin, behind blanks, with `$first`;
/// `$may_be` if its shortest output has no line of its own kind.
macro_rules! row {
    ($name:literal, $module:ident, $first:pat) => {
        row!($name, $module, $first, |_| false)
    };
    ($name:literal, $module:ident, $first:pat, $may_be:expr) => {
        Format {
            name: $name,
            begins: |byte| matches!(byte, $first),
            opens: crate::$module::opens,
            may_be: $may_be,
            start: crate::$module::start,
            rerun: crate::$module::rerun,
        }
    };
}

/// Every runner whose output is understood.
pub static TABLE: &[Format] = &[
    // "4 tests, 1 failure, 1 skipped in 1 seconds" would do for a summary of pytest's.
    row!("bats", bats, _),
    row!("pytest", pytest, _, crate::pytest::may_be),
    row!("nextest", nextest, b'A'..=b'Z'),
    row!("cargo-test", cargo_test, b'r' | b't' | b'R' | b'D' | b'e' | b'{'),
    row!("go", go, b'=' | b'-' | b'o' | b'F' | b'?' | b'p' | b'{'),
    row!("unittest", unittest, _),
    row!("ctest", ctest, b'T' | b'N' | b'S' | b'0'..=b'9'),
    row!("gtest", gtest, b'[' | b'R' | b'N'),
    row!("jest", jest, b'P' | b'F' | b'T' | b'N' | b'{'),
    row!("vitest", vitest, b'R' | b'D' | b'T' | b'{' | 0x80..),
    row!("node-test", node_test, 0x80..),
    row!("mocha", mocha, b'0'..=b'9' | b'"' | 0x80..),
    row!("tap", tap, b'T' | b'1' | b'o' | b'n' | b'F' | b'B'),
    row!("rspec", rspec, b'r' | b'F' | b'A' | b'{', crate::rspec::may_be),
    row!("surefire", surefire, b'[' | b'T'),
    row!("gradle", gradle, b'>' | b':' | b'.' | b'_' | b'$' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | 0x80..),
    row!("junitxml", junitxml, b'<'),
];

/// The rows that a line may open, by its first byte behind blanks: a bit for each, in the order of the table.
static BEGINS: LazyLock<[u32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let byte = u8::try_from(byte).unwrap_or_default();
        let bits = TABLE.iter().enumerate().map(|(i, f)| u32::from((f.begins)(byte)) << i);
        bits.fold(0, |all, bit| all | bit)
    })
});

/// The row of the runner whose output this line opens; not that of `except`, who reads it already.
pub(crate) fn opened(line: &[u8], except: Option<&Format>) -> Option<&'static Format> {
    // While no parser is at work this is asked of every line, and the first byte rules most rows out.
    let mut bits = BEGINS[usize::from(*line.trim_ascii_start().first()?)];
    while bits != 0 {
        let format = &TABLE[bits.trailing_zeros() as usize];
        if except.is_none_or(|e| !std::ptr::eq(e, format)) && (format.opens)(line) {
            return Some(format);
        }
        bits &= bits - 1;
    }
    None
}

/// The row of the runner that a command line starts, if it says so.
pub(crate) fn by_command(command: &[String]) -> Option<&'static Format> {
    let words: Vec<&str> = command.iter().take(8).map(|w| w.rsplit('/').next().unwrap_or(w)).collect();
    let has = |word: &str| words.contains(&word);
    let starts = |program: &str| words.iter().position(|w| *w == program);
    let follows =
        |program: &str, word: &str| starts(program).is_some_and(|at| words[at + 1..].contains(&word));
    let name = match () {
        () if has("pytest") || has("py.test") => "pytest",
        () if follows("cargo", "nextest") => "nextest",
        () if follows("cargo", "test") => "cargo-test",
        () if follows("go", "test") => "go",
        () if has("unittest") || has("nosetests") || follows("manage.py", "test") => "unittest",
        () if has("jest") => "jest",
        () if has("vitest") => "vitest",
        () if has("mocha") => "mocha",
        () if follows("node", "--test") => "node-test",
        () if has("bats") => "bats",
        () if has("prove") => "tap",
        () if has("ctest") => "ctest",
        () if has("rspec") => "rspec",
        () if has("mvn") || has("mvnw") => "surefire",
        () if has("gradle") || has("gradlew") => "gradle",
        () if command.iter().any(|w| w.starts_with("--gtest_")) => "gtest",
        () => return None,
    };
    by_name(name)
}

/// The row of that name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    TABLE.iter().find(|f| f.name == name)
}
