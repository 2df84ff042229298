//! `cargo nextest run`: a line for each test, a summary, and the failures listed once more behind it. The output of
//! the tests, which holds libtest's own reports, is never read.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use memchr::memmem;
use std::collections::HashSet;

const NAME: &str = "nextest";

/// Whether a line opens output of nextest.
pub(crate) fn opens(line: &[u8]) -> bool {
    line.first() == Some(&b' ')
        && (line.starts_with(b" Nextest run ID ")
            || starting(line).is_some()
            || Status::of(line).is_some()
            || summary(line).is_some())
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Nextest::default())
}

/// A filter expression that names each binary and test.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let one = |id: &&str| match id.rsplit_once(' ') {
        Some((binary, test)) => format!("(binary_id(={}) & test(={test}))", binary.trim()),
        None => format!("test(={id})"),
    };
    let expression: Vec<String> = again.ids.iter().map(one).collect();
    let words = ["cargo", "nextest", "run", "--no-fail-fast", "-j1", "-E"].map(str::to_owned);
    vec![words.into_iter().chain([expression.join(" + ")]).collect()]
}

#[derive(Default)]
struct Nextest {
    seen: bool,
    summary: Option<Summary>,
    passed: u64,
    skipped: u64,
    reruns: u64,
    timed_out: u64,
    /// Failures while tests ran.
    early: Names,
    /// Failures behind the summary.
    late: Names,
    running: Vec<Vec<u8>>,
    retried: HashSet<Vec<u8>>,
    last: Vec<u8>,
    interrupted: bool,
    over: bool,
}

impl Runner for Nextest {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        if line.first() != Some(&b' ') && !line.starts_with(b"TRY ") {
            self.over |= scan::torn(line) || line.starts_with(b"error: ");
            return;
        }
        if let Some(skipped) = starting(line) {
            self.seen = true;
            self.skipped = skipped;
        } else if let Some(status) = Status::of(line) {
            self.seen = true;
            self.status(&status);
        } else if let Some(summary) = summary(line) {
            self.seen = true;
            self.over = true;
            self.running.clear();
            self.summary = Some(summary);
        } else if let Some(rest) = line.trim_ascii_start().strip_prefix(b"Cancel") {
            // "Canceling" and "Cancelling".
            self.interrupted |=
                [&b"due to interrupt"[..], b"due to signal"].iter().any(|w| memmem::find(rest, w).is_some());
        }
    }

    fn idle(&self) -> bool {
        self.over || !self.seen
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        if !self.seen {
            return Vec::new();
        }
        let mut session = Session::at_zero(NAME);
        session.complete = self.summary.is_some();
        session.signs.interrupted = self.interrupted;
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        session.parallel = true;
        session.unfinished = self.running.iter().map(|id| scan::text(id)).collect();
        let early = self.early.len();
        let names = if self.late.is_empty() { self.early } else { self.late };
        let counts = &mut session.counts;
        counts.reruns = Some(self.reruns);
        match &self.summary {
            Some(s) => {
                counts.passed = Some(s.passed);
                counts.failed = Some(s.failed);
                counts.timed_out = Some(s.timed_out);
                counts.skipped = Some(s.skipped);
                session.duration = Some(s.seconds);
                session.signs.no_tests = s.run == 0;
            }
            None => {
                counts.passed = Some(self.passed);
                counts.failed = Some(early.saturating_sub(self.timed_out));
                counts.timed_out = Some(self.timed_out);
                counts.skipped = Some(self.skipped);
            }
        }
        let bad = counts.bad();
        session.failing = names.if_named(bad);
        let died = session.failing.iter().flatten().filter(|f| f.outcome == Outcome::Crashed).count() as u64;
        session.signs.crashes = died.min(bad);
        if let Some(named) = session.failing.as_ref().filter(|f| (f.len() as u64) < bad) {
            session.faults.push(format!("the log names {} of the {bad} tests that failed", named.len()));
        }
        vec![session]
    }
}

impl Nextest {
    fn status(&mut self, status: &Status<'_>) {
        let id = status.id;
        if self.summary.is_some() {
            if let Some(outcome) = status.outcome {
                self.late.add(id, outcome);
            }
            return;
        }
        self.last.clear();
        self.last.extend_from_slice(id);
        if status.goes_on {
            if !self.running.iter().any(|r| r == id) && self.running.len() < 10_000 {
                self.running.push(id.to_vec());
            }
            return;
        }
        self.running.retain(|r| r != id);
        self.reruns += u64::from(status.attempt > 1);
        match status.outcome {
            None if status.word == b"SKIP" => {}
            None => self.passed += 1,
            // Of several attempts, only the last is the test's result, and only old versions do not mark it.
            Some(_) if status.another => {
                if self.retried.len() < 100_000 {
                    self.retried.insert(id.to_vec());
                }
            }
            Some(outcome) => {
                self.timed_out += u64::from(outcome == Outcome::TimedOut);
                self.early.add(id, outcome);
            }
        }
    }
}

/// A line about one test: `        FAIL [   0.011s] ( 2/14) demo tests::a`.
struct Status<'l> {
    word: &'l [u8],
    /// Which attempt, from 1; 0 if there was only one.
    attempt: u64,
    /// There will be another attempt.
    another: bool,
    /// It still runs.
    goes_on: bool,
    /// How it failed, if it did.
    outcome: Option<Outcome>,
    id: &'l [u8],
}

impl Status<'_> {
    fn of(line: &[u8]) -> Option<Status<'_>> {
        let text = line.trim_ascii_start();
        // Whoever is not indented is no line of nextest's, and the word is set flush right at column 12.
        if text.len() == line.len() && !line.starts_with(b"TRY ") || !text.first()?.is_ascii_uppercase() {
            return None;
        }
        let open = memchr::memchr(b'[', text.get(..40.min(text.len()))?)?;
        let mut word = text[..open].strip_suffix(b" ")?;
        if line.len() - text.len() + word.len() != 12 && word.len() < 12 {
            return None;
        }
        let close = open + memchr::memchr(b']', &text[open..])?;
        let time = &text[open + 1..close];
        if !time.iter().all(|b| b.is_ascii_digit() || matches!(b, b' ' | b'.' | b's' | b'>')) {
            return None;
        }
        let mut id = text[close + 1..].strip_prefix(b" ")?;
        let mut counter = None;
        if let Some(inside) = id.strip_prefix(b"(") {
            let end = memchr::memchr(b')', inside)?;
            counter = Some(&inside[..end]);
            id = &inside[end + 1..];
        }
        let id = id.trim_ascii();
        memchr::memchr(b' ', id)?;
        let mut attempt = 0;
        if let Some(rest) = word.strip_prefix(b"TRY ") {
            (attempt, word) = scan::leading(rest).and_then(|(n, w)| Some((n, w.strip_prefix(b" ")?)))?;
        }
        // An attempt that is not the last has no number among the tests.
        let another = attempt > 0 && counter.is_some_and(|c| !c.iter().any(u8::is_ascii_digit));
        let goes_on =
            matches!(word, b"START" | b"SLOW" | b"TERMINATING" | b"TRMNTG") || word.ends_with(b"START");
        let outcome = match word {
            b"PASS" | b"LEAK" | b"SKIP" | b"START" | b"SLOW" | b"TERMINATING" | b"TRMNTG" => None,
            b"FAIL" | b"LEAK-FAIL" | b"LKFAIL" | b"FAIL + LEAK" | b"FL+LK" | b"XFAIL" => {
                Some(Outcome::Failed)
            }
            b"TIMEOUT" | b"TMT" => Some(Outcome::TimedOut),
            // One of several attempts is told in fewer letters.
            b"ABRT" | b"SEGV" | b"BUS" | b"ILL" | b"FPE" | b"TRAP" | b"KILL" | b"TERM" | b"INT" | b"QUIT"
            | b"HUP" | b"SYS" | b"PIPE" | b"ALRM" | b"USR1" | b"USR2" => Some(Outcome::Crashed),
            b"TMPASS" | b"TMT-PASS" => None,
            _ if word.starts_with(b"SIG") || word.starts_with(b"ABORT") => Some(Outcome::Crashed),
            _ if word.starts_with(b"FLAKY") || word.starts_with(b"TIMEOUT-PASS") || word == b"DELAY" => None,
            _ => return None,
        };
        Some(Status { word, attempt, another, goes_on, outcome, id })
    }
}

/// `    Starting 14 tests across 3 binaries (3 tests skipped)`: how many are skipped.
fn starting(line: &[u8]) -> Option<u64> {
    let (_, rest) = scan::leading(line.strip_prefix(b"    Starting ")?)?;
    let rest = rest.strip_prefix(b" tests across ").or_else(|| rest.strip_prefix(b" test across "))?;
    let skipped = memchr::memchr(b'(', rest).and_then(|at| scan::leading(&rest[at + 1..]));
    Some(skipped.map_or(0, |(n, _)| n))
}

struct Summary {
    run: u64,
    passed: u64,
    failed: u64,
    timed_out: u64,
    skipped: u64,
    seconds: f64,
}

/// `     Summary [   1.543s] 5 tests run: 4 passed (1 flaky), 1 failed, 1 timed out, 1 skipped`; `2/5 tests run` when
/// it stopped early.
fn summary(line: &[u8]) -> Option<Summary> {
    let rest = line.strip_prefix(b"     Summary [")?;
    let close = memchr::memchr(b']', rest)?;
    let seconds = scan::seconds(&rest[..close])?;
    let (run, mut rest) = scan::leading(rest[close + 1..].trim_ascii_start())?;
    if let Some(of) = rest.strip_prefix(b"/") {
        rest = scan::leading(of)?.1;
    }
    let rest = rest.strip_prefix(b" tests run: ").or_else(|| rest.strip_prefix(b" test run: "))?;
    let mut out = Summary { run, passed: 0, failed: 0, timed_out: 0, skipped: 0, seconds };
    let mut depth = 0usize;
    for part in rest.split(|b| {
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *b == b',' && depth == 0
    }) {
        let (n, words) = scan::counted(part.trim_ascii())?;
        let words = words.split(|b| *b == b'(').next().unwrap_or_default().trim_ascii_end();
        match words {
            b"passed" => out.passed = n,
            b"failed" | b"exec failed" => out.failed = out.failed.saturating_add(n),
            b"timed out" => out.timed_out = n,
            b"skipped" => out.skipped = n,
            _ => {}
        }
    }
    Some(out)
}
