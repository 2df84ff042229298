//! How far a run has come, from the tail of its log, whichever runner it is: pytest by [`crate::pytest`], and the
//! lines that cargo test, nextest, `go test -v`, Jest and Vitest write into a file while tests run.

use crate::pytest::{self, Phase, Progress, last_state, lines_backwards, plain};
use memchr::memmem;

/// Lines that are looked at, from the end: a run that has been silent about tests for longer is not told.
const LINES: usize = 4096;

/// Reads how far a run has come. pytest's own percentage or a Python file decides for pytest; a percentage of
/// another runner is known where it numbers its tests.
pub fn progress(tail: &[u8]) -> Progress {
    let found = pytest::progress(tail);
    let sure = found.percent.is_some() || found.last_test.as_deref().is_some_and(|t| t.contains(".py"));
    if sure {
        return found;
    }
    others(tail).unwrap_or(found)
}

fn others(tail: &[u8]) -> Option<Progress> {
    // Results of libtest, whose number is known once the line is met that announces how many there are.
    let mut results = 0u64;
    let mut out: Option<Progress> = None;
    let mut libtest = false;
    for raw in lines_backwards(tail).take(LINES) {
        let line = plain(raw);
        let line = last_state(&line);
        let Some(step) = step(line) else { continue };
        match (step, &mut out) {
            (Step::Ended, None) => {
                return Some(Progress { phase: Some(Phase::Summary), ..Progress::default() });
            }
            (Step::Ended, Some(_)) => break,
            (Step::Test { name, percent }, None) => {
                out = Some(at(name, percent));
                libtest = line.starts_with(b"test ");
                if !libtest {
                    break;
                }
                results += u64::from(!line.ends_with(b" ... "));
            }
            (Step::Counted(percent), None) => {
                return Some(Progress { phase: Some(Phase::Test), percent, last_test: None });
            }
            (Step::Test { .. }, Some(_)) => results += u64::from(line.starts_with(b"test ")),
            (Step::Announced(n), Some(found)) if libtest => {
                found.percent = share(results, n);
                break;
            }
            (Step::Announced(_), None) => {
                return Some(Progress { phase: Some(Phase::Test), percent: Some(0), last_test: None });
            }
            (Step::Announced(_) | Step::Counted(_), Some(_)) => {}
        }
    }
    out
}

fn at(name: &[u8], percent: Option<u8>) -> Progress {
    let name = String::from_utf8_lossy(name).into_owned();
    Progress { phase: Some(Phase::Test), percent, last_test: Some(name) }
}

/// What one line says.
enum Step<'l> {
    /// A test was begun or has ended.
    Test {
        /// Its name.
        name: &'l [u8],
        /// How much is done, where the line says so.
        percent: Option<u8>,
    },
    /// So many tests will run.
    Announced(u64),
    /// libtest's dots.
    Counted(Option<u8>),
    /// A summary.
    Ended,
}

fn step(line: &[u8]) -> Option<Step<'_>> {
    match line.first()? {
        b't' => cargo(line),
        b'r' => announced(line).map(Step::Announced),
        b'.' | b'i' | b'F' => counted(line).map(Step::Counted).or_else(|| jest(line)),
        b'P' | b'T' => jest(line),
        b'=' | b'-' => go(line),
        b' ' => nextest(line).or_else(|| vitest(line)).or_else(|| go(line)),
        _ => None,
    }
}

/// `test a::b ... ok`, and `test result: `.
fn cargo(line: &[u8]) -> Option<Step<'_>> {
    let rest = line.strip_prefix(b"test ")?;
    if rest.starts_with(b"result: ") {
        return Some(Step::Ended);
    }
    let name = &rest[..memmem::find(rest, b" ... ")?];
    Some(Step::Test { name, percent: None })
}

/// `running 12 tests`.
fn announced(line: &[u8]) -> Option<u64> {
    let (n, rest) = number(line.strip_prefix(b"running ")?)?;
    matches!(rest, b" test" | b" tests").then_some(n)
}

/// `....i... 88/120` of a quiet run.
fn counted(line: &[u8]) -> Option<Option<u8>> {
    let letters = line.iter().take_while(|b| matches!(b, b'.' | b'i' | b'F')).count();
    let (done, rest) = number(line[letters..].strip_prefix(b" ")?)?;
    let (all, rest) = number(rest.strip_prefix(b"/")?)?;
    rest.is_empty().then(|| share(done, all))
}

/// `        PASS [   0.008s] ( 7/14) demo tests::a`, and the summary.
fn nextest(line: &[u8]) -> Option<Step<'_>> {
    if line.starts_with(b"     Summary [") {
        return Some(Step::Ended);
    }
    let open = memchr::memchr(b'[', line).filter(|at| (10..20).contains(at))?;
    let word = line[..open].trim_ascii();
    if !word.first()?.is_ascii_uppercase() || !line[..open].ends_with(b" ") {
        return None;
    }
    let rest = &line[open + memchr::memchr(b']', &line[open..])? + 1..];
    let mut name = rest.strip_prefix(b" ")?;
    let mut percent = None;
    if let Some(inside) = name.strip_prefix(b"(") {
        let close = memchr::memchr(b')', inside)?;
        let counter = number(inside[..close].trim_ascii());
        let all = counter.and_then(|(n, rest)| Some((n, number(rest.strip_prefix(b"/")?)?.0)));
        percent = all.and_then(|(n, all)| share(n, all));
        name = inside[close + 1..].trim_ascii_start();
    }
    memchr::memchr(b' ', name).map(|_| Step::Test { name, percent })
}

/// `=== RUN   TestA`, `--- PASS: TestA (0.00s)`, indented for subtests.
fn go(line: &[u8]) -> Option<Step<'_>> {
    let text = line.trim_ascii_start();
    let name = match text.strip_prefix(b"=== RUN   ") {
        Some(name) => name,
        None => {
            let marks: [&[u8]; 3] = [b"--- PASS: ", b"--- FAIL: ", b"--- SKIP: "];
            let rest = marks.iter().find_map(|m| text.strip_prefix(*m))?;
            &rest[..memmem::find(rest, b" (")?]
        }
    };
    (!name.contains(&b' ')).then_some(Step::Test { name, percent: None })
}

/// `PASS ./a.test.js`, and the summary.
fn jest(line: &[u8]) -> Option<Step<'_>> {
    if line.starts_with(b"Test Suites: ") {
        return Some(Step::Ended);
    }
    let rest = line.strip_prefix(b"PASS ").or_else(|| line.strip_prefix(b"FAIL "))?;
    let name = rest.split(|b| *b == b' ').next().filter(|n| is_script(n))?;
    Some(Step::Test { name, percent: None })
}

fn is_script(name: &[u8]) -> bool {
    let endings: [&[u8]; 8] = [b".js", b".ts", b".jsx", b".tsx", b".mjs", b".cjs", b".mts", b".cts"];
    endings.iter().any(|e| name.ends_with(e))
}

/// ` ✓ a.test.js > cart > adds 11ms`, ` ✓ a.test.js (2 tests) 4ms`, and the summary.
fn vitest(line: &[u8]) -> Option<Step<'_>> {
    if line.starts_with(b" Test Files  ") {
        return Some(Step::Ended);
    }
    let rest = line.strip_prefix(b" ")?;
    let rest = ["✓ ", "× ", "❯ "].iter().find_map(|m| rest.strip_prefix(m.as_bytes()))?;
    let file = rest.split(|b| *b == b' ').next().filter(|n| is_script(n))?;
    let name = match memmem::rfind(rest, b" ") {
        Some(end) if rest[file.len()..].starts_with(b" > ") => &rest[..end],
        _ => file,
    };
    Some(Step::Test { name, percent: None })
}

fn share(done: u64, all: u64) -> Option<u8> {
    let percent = done.min(all).checked_mul(100)?.checked_div(all)?;
    u8::try_from(percent).ok()
}

/// The number that a text begins with, and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let n = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((n, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(tail: &str, percent: Option<u8>, test: Option<&str>) {
        let found = progress(tail.as_bytes());
        assert_eq!((found.percent, found.last_test.as_deref()), (percent, test));
        assert_eq!(found.phase, Some(Phase::Test));
    }

    #[test]
    fn pytest_comes_first() {
        says("a.py::test_b PASSED [ 40%]\na.py::test_c ", Some(40), Some("a.py::test_c"));
    }

    #[test]
    fn cargo_counts_what_it_announced() {
        says("running 4 tests\ntest a::b ... ok\ntest a::c ... FAILED\n", Some(50), Some("a::c"));
        says("running 4 tests\ntest a::b ... ok\ntest a::c ... ", Some(25), Some("a::c"));
        says("test a::b ... ok\n", None, Some("a::b"));
        says("running 120 tests\n....i... 88/120\n", Some(73), None);
        says("running 4 tests\n", Some(0), None);
    }

    #[test]
    fn nextest_numbers_its_tests() {
        says("        PASS [   0.008s] ( 7/14) demo tests::a\n", Some(50), Some("demo tests::a"));
        says("        SLOW [> 60.000s] demo tests::a\n", None, Some("demo tests::a"));
        says("  TRY 1 FAIL [   0.015s] (───) demo tests::b\n", None, Some("demo tests::b"));
    }

    #[test]
    fn go_jest_and_vitest_name_the_last() {
        says("=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n", None, Some("TestB"));
        says("=== RUN   TestB/x\n    --- PASS: TestB/x (0.00s)\n", None, Some("TestB/x"));
        says("PASS ./a.test.js (5.1 s)\n", None, Some("./a.test.js"));
        says(" \u{1b}[32m✓\u{1b}[39m a.test.js > cart > adds 11ms\n", None, Some("a.test.js > cart > adds"));
        says(" ✓ a.test.js (2 tests) 4ms\n", None, Some("a.test.js"));
    }

    #[test]
    fn a_summary_is_no_test() {
        for tail in [
            "test a ... ok\n\ntest result: ok. 1 passed; 0 failed\n",
            "     Summary [   0.060s] 14 tests run: 14 passed\n",
            "PASS ./a.test.js\n\nTest Suites: 1 passed, 1 total\n",
            " ✓ a.test.js (2 tests) 4ms\n\n Test Files  1 passed (1)\n",
        ] {
            let found = progress(tail.as_bytes());
            assert_eq!((found.phase, found.last_test), (Some(Phase::Summary), None), "{tail}");
        }
    }

    #[test]
    fn prose_says_nothing() {
        for tail in [
            "",
            "test the ... thing",
            "running late\n",
            "PASS the salt\n",
            " ✓ done\n",
            "--- a/x.rs\n",
            "[x]\n",
        ] {
            let found = progress(tail.as_bytes());
            assert!(found.percent.is_none(), "{tail}");
        }
    }
}
