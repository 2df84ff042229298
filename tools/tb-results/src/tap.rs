//! TAP, from whomever: Perl's tests, `prove`, bats, Node's runner.
//!
//! A document is a plan and as many results; what is indented belongs to a subtest and is no result of its own but
//! for Node, which counts every level and says so in a trailer. `prove` without -v shows no results, only its
//! summary: the numbers of the failed, not how many were skipped.

use crate::report::{Failing, Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

const NAME: &str = "tap";
static WSTAT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" (Wstat: "));
/// What prove says when a test bails out.
const STOPPED: &[u8] = b"FAILED--Further testing stopped";

/// Whether a line opens output in TAP.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'T') => line.starts_with(b"TAP version 1"),
        Some(b'1') => plan(line).is_some(),
        Some(b'o' | b'n') => Point::of(line).is_some_and(|p| p.number.is_some()),
        Some(b'F') => totals(line).is_some() || line.starts_with(STOPPED),
        Some(b'B') => line.starts_with(b"Bail out!"),
        _ => false,
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Tap::default())
}

/// TAP is a format: whoever wrote it may have no way to run one test.
pub(crate) fn rerun(_: &Again<'_>) -> Vec<Vec<String>> {
    Vec::new()
}

/// The counts of Node's trailer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Trailer {
    pub(crate) pass: u64,
    pub(crate) fail: u64,
    pub(crate) cancelled: u64,
    pub(crate) skipped: u64,
    pub(crate) tests: u64,
    pub(crate) seconds: Option<f64>,
}

impl Trailer {
    /// `tests 10`, `duration_ms 605.4`, without the mark in front. True if it is a line of the trailer.
    pub(crate) fn line(&mut self, text: &[u8]) -> bool {
        let Some(space) = memchr::memchr(b' ', text) else { return false };
        let (word, value) = (&text[..space], &text[space + 1..]);
        if word == b"duration_ms" {
            let ms: Option<f64> = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            self.seconds = ms.map(|ms| ms / 1000.0);
            return ms.is_some();
        }
        let Some(n) = scan::number(value) else { return false };
        match word {
            b"tests" => *self = Trailer { tests: n, ..Trailer::default() },
            b"pass" => self.pass = n,
            b"fail" => self.fail = n,
            b"cancelled" => self.cancelled = n,
            b"skipped" => self.skipped = n,
            b"suites" | b"todo" => {}
            _ => return false,
        }
        true
    }

    /// A session with these counts.
    pub(crate) fn session(&self) -> Session {
        let mut session = Session::at_zero("node-test");
        session.complete = true;
        session.duration = self.seconds;
        session.counts.passed = Some(self.pass);
        session.counts.failed = Some(self.fail);
        session.counts.timed_out = Some(self.cancelled);
        session.counts.skipped = Some(self.skipped);
        session.signs.no_tests = self.tests == 0;
        session
    }
}

/// Counts of documents that are over.
#[derive(Clone, Copy, Default)]
struct Sum {
    passed: u64,
    failed: u64,
    skipped: u64,
    points: u64,
}

#[derive(Default)]
struct Tap {
    seen: bool,
    sum: Sum,
    /// Of the document that is open.
    planned: Option<u64>,
    points: u64,
    /// Plans of nothing, with a reason.
    excused: bool,
    empty: bool,
    short: bool,
    bail: bool,
    /// prove bailed out: it has no summary then.
    stopped: bool,
    names: Names,
    /// Failing tests of every level, and whether they are suites, for Node.
    deep: Vec<(Failing, bool)>,
    /// Where the block about the last of them is indented; `None` if another point came.
    block: Option<usize>,
    trailer: Option<Trailer>,
    bats: bool,
    prove: Option<Prove>,
    /// Names that Perl's diagnostics give.
    diagnosed: Names,
    /// In prove's summary.
    report: Prove,
    last: Vec<u8>,
    faults: Vec<String>,
    torn: bool,
}

/// What prove sums up.
#[derive(Clone, Copy, Default)]
struct Prove {
    failed: u64,
    bad_plans: u64,
    exits: u64,
    seconds: Option<f64>,
    tests: u64,
    result: Option<bool>,
}

impl Runner for Tap {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some(&first) = line.first() else { return };
        match first {
            b'o' | b'n' => {
                if let Some(point) = Point::of(line) {
                    self.point(&point, 0);
                }
            }
            b'1' => {
                if let Some((n, skip)) = plan(line) {
                    self.plan(n, skip);
                }
            }
            b'#' => self.comment(line),
            b'B' if line.starts_with(b"Bail out!") => {
                self.seen = true;
                self.bail = true;
                scan::tell(&mut self.faults, scan::message(line));
            }
            b'T' if line.starts_with(b"TAP version 1") => self.seen = true,
            b' ' | b'\t' => self.indented(line),
            b'F' if totals(line).is_some() => {
                self.seen = true;
                let (tests, seconds) = totals(line).unwrap_or_default();
                self.report.tests = tests;
                self.report.seconds = seconds;
                self.prove = Some(self.report);
            }
            b'R' if line.starts_with(b"Result: ") => {
                if let Some(prove) = &mut self.prove {
                    prove.result = Some(&line[8..] == b"PASS");
                }
            }
            _ => self.prove_line(line),
        }
    }

    fn idle(&self) -> bool {
        let whole = self.planned.is_some_and(|n| n <= self.points) && self.points > 0;
        self.torn || !self.seen || self.prove.is_some_and(|p| p.result.is_some()) || whole
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        if !self.seen {
            return Vec::new();
        }
        if let Some(trailer) = self.trailer.filter(|t| t.seconds.is_some()) {
            return vec![self.node(trailer)];
        }
        self.close();
        let mut session = Session::at_zero(if self.bats { "bats" } else { NAME });
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        session.signs.died = self.bail || self.short;
        session.complete = !self.bail && !self.short;
        session.signs.excused = self.excused;
        session.signs.no_tests = self.empty;
        let counts = &mut session.counts;
        let shown = self.sum.points > 0 || self.prove.is_none() && !self.stopped;
        counts.passed = shown.then_some(self.sum.passed);
        counts.failed = Some(self.sum.failed);
        counts.skipped = shown.then_some(self.sum.skipped);
        if let Some(prove) = self.prove {
            session.duration = prove.seconds;
            session.complete = !self.bail;
            session.signs.no_tests = prove.tests == 0 && prove.result != Some(false);
            let failed = self.sum.failed.max(prove.failed);
            counts.failed = Some(failed);
            session.signs.died = self.bail || prove.bad_plans > 0;
            session.signs.gate = prove.result == Some(false) && failed == 0 && prove.bad_plans == 0;
            if !shown && self.diagnosed.len() == failed {
                self.names = self.diagnosed;
            }
        }
        session.failing = self.names.if_named(counts.failed.unwrap_or(0));
        session.faults = self.faults;
        vec![session]
    }
}

impl Tap {
    fn node(self, trailer: Trailer) -> Session {
        let mut session = trailer.session();
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        let tests = self.deep.into_iter().filter(|(_, suite)| !suite).map(|(failing, _)| failing);
        let mut names = Names::default();
        for failing in tests {
            if let Some(known) = names.add(failing.id.as_bytes(), failing.outcome) {
                *known = failing;
            }
        }
        session.failing = names.if_named(trailer.fail + trailer.cancelled);
        session
    }

    fn plan(&mut self, n: u64, skip: bool) {
        self.seen = true;
        if self.planned.is_some() {
            self.close();
        }
        self.excused |= n == 0 && skip;
        self.empty |= n == 0 && !skip;
        self.planned = Some(n);
    }

    fn point(&mut self, point: &Point<'_>, indent: usize) {
        self.seen = true;
        self.block = None;
        if indent == 0 {
            // Numbers that begin again are another document's.
            if point.number == Some(1) && self.points > 0 {
                self.close();
            }
            self.points += 1;
        }
        self.last.clear();
        self.last.extend_from_slice(point.text);
        let sum = &mut self.sum;
        if indent == 0 {
            sum.points += 1;
            match (point.skip, point.todo, point.ok) {
                (true, ..) => sum.skipped += 1,
                (_, _, true) => sum.passed += 1,
                (_, true, false) => {}
                (_, false, false) => sum.failed += 1,
            }
        }
        if point.ok || point.skip || point.todo {
            return;
        }
        let name = point.name();
        if indent == 0 {
            self.names.add(&name, Outcome::Failed);
        }
        if self.deep.len() < 100_000 {
            self.deep.push((Failing::new(scan::text(&name), Outcome::Failed), false));
            self.block = Some(indent);
        }
    }

    fn close(&mut self) {
        let planned = self.planned.take();
        let points = std::mem::take(&mut self.points);
        if planned != Some(points) && (points > 0 || planned.is_some()) {
            self.short = true;
            if !self.bail && self.faults.len() < 100 {
                let of = planned.map_or("no plan".to_owned(), |n| n.to_string());
                scan::tell(&mut self.faults, format!("{points} results, planned: {of}"));
            }
        }
    }

    fn comment(&mut self, line: &[u8]) {
        let text = line[1..].trim_ascii();
        self.bats |= text.starts_with(b"(in test file ") || text.starts_with(b"(from function `");
        let mut trailer = self.trailer.unwrap_or_default();
        // Mocha and others end in "# tests", "# pass", "# fail"; only Node goes on.
        if (text.starts_with(b"tests ") || self.trailer.is_some()) && trailer.line(text) {
            self.trailer = Some(trailer);
        }
        if let Some(name) = scan::between(text, b"Failed test '", b"'")
            && line.starts_with(b"#   ")
        {
            self.diagnosed.add(name, Outcome::Failed);
        }
        if text.starts_with(b"Looks like your test exited with ") {
            scan::tell(&mut self.faults, scan::message(text));
        }
    }

    fn indented(&mut self, line: &[u8]) {
        let text = line.trim_ascii_start();
        let indent = line.len() - text.len();
        if let Some(point) = Point::of(text).filter(|p| p.number.is_some() && indent.is_multiple_of(4)) {
            return self.point(&point, indent);
        }
        self.bats |= text.starts_with(b"(in test file ");
        if self.block.is_some_and(|at| indent == at + 2)
            && let Some((failing, suite)) = self.deep.last_mut()
        {
            let value = |key: &[u8]| {
                let quoted = text.strip_prefix(key)?;
                scan::between(quoted, b"'", b"'").or_else(|| scan::between(quoted, b"\"", b"\""))
            };
            *suite |= value(b"type: ") == Some(b"suite");
            if let Some(place) = value(b"location: ") {
                failing.place = scan::place(place);
            } else if let Some(said) = value(b"error: ") {
                failing.message = Some(scan::message(said));
            } else if let Some(class) = value(b"name: ") {
                failing.error_class = Some(scan::text(class));
            } else if value(b"failureType: ").is_some_and(|t| t == b"testTimeoutFailure") {
                failing.outcome = Outcome::TimedOut;
            }
        }
        self.prove_line(line);
    }

    /// `a.t (Wstat: 512 (exited 2) Tests: 6 Failed: 2)` and what stands under it.
    fn prove_line(&mut self, line: &[u8]) {
        if WSTAT.find(line).is_some()
            && let Some(at) = memmem::find(line, b" Failed: ")
        {
            self.report.failed += scan::leading(&line[at + 9..]).map_or(0, |(n, _)| n);
        } else if let Some(why) = line.strip_prefix(b"  Parse errors: ") {
            self.report.bad_plans += 1;
            if self.faults.len() < 100 {
                scan::tell(&mut self.faults, scan::message(why));
            }
        } else if line.starts_with(b"  Non-zero exit status: ") {
            self.report.exits += 1;
        } else if line.starts_with(STOPPED) {
            self.bail = true;
            self.stopped = true;
            self.seen = true;
            scan::tell(&mut self.faults, scan::message(line));
        }
        self.torn |= scan::torn(line);
    }
}

/// A result: `not ok 2 - name # TODO why`.
struct Point<'l> {
    ok: bool,
    number: Option<u64>,
    text: &'l [u8],
    skip: bool,
    todo: bool,
    dash: bool,
}

impl Point<'_> {
    fn of(line: &[u8]) -> Option<Point<'_>> {
        let (ok, rest) = match line.strip_prefix(b"not ok") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix(b"ok")?),
        };
        if rest.is_empty() {
            return None;
        }
        let rest = rest.strip_prefix(b" ")?;
        let (number, rest) = match scan::leading(rest) {
            Some((n, rest)) if rest.is_empty() || rest.starts_with(b" ") => {
                (Some(n), rest.trim_ascii_start())
            }
            _ => (None, rest),
        };
        let dash = rest.starts_with(b"- ");
        let rest = if dash { &rest[2..] } else { rest };
        let mut text = rest;
        let (mut skip, mut todo) = (false, false);
        for at in memchr::memchr_iter(b'#', rest) {
            if at > 0 && rest[at - 1] == b'\\' {
                continue;
            }
            let words = rest[at + 1..].trim_ascii_start();
            let is =
                |word: &[u8]| words.len() >= word.len() && words[..word.len()].eq_ignore_ascii_case(word);
            (skip, todo) = (is(b"skip"), is(b"todo"));
            if skip || todo || words.starts_with(b"time=") {
                text = &rest[..at];
                break;
            }
        }
        Some(Point { ok, number, text: text.trim_ascii(), skip, todo, dash })
    }

    /// Its name, else its number.
    fn name(&self) -> Vec<u8> {
        let mut text = self.text;
        // bats -T.
        if !self.dash
            && let Some(body) = text.strip_suffix(b"ms")
            && let Some(at) = memmem::rfind(body, b" in ")
            && scan::number(&body[at + 4..]).is_some()
        {
            text = &text[..at];
        }
        if text.is_empty() {
            return self.number.map_or_else(Vec::new, |n| n.to_string().into_bytes());
        }
        if memchr::memchr(b'\\', text).is_none() {
            return text.to_vec();
        }
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            out.extend_from_slice(&rest[..at]);
            let next = rest.get(at + 1).copied();
            if !matches!(next, Some(b'#' | b'\\')) {
                out.push(b'\\');
            }
            out.extend(next);
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
        out
    }
}

/// `1..6`, `1..0 # SKIP why`: how many, and whether there is a reason.
fn plan(line: &[u8]) -> Option<(u64, bool)> {
    let (n, rest) = scan::leading(line.strip_prefix(b"1..")?)?;
    let rest = rest.trim_ascii();
    let skip = rest.strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
    let skip = skip.is_some_and(|r| r.get(..4).is_some_and(|w| w.eq_ignore_ascii_case(b"skip")));
    (rest.is_empty() || rest.starts_with(b"#")).then_some((n, skip))
}

/// `Files=2, Tests=9,  1 wallclock secs ( 0.02 usr ...)`.
fn totals(line: &[u8]) -> Option<(u64, Option<f64>)> {
    let (_, rest) = scan::leading(line.strip_prefix(b"Files=")?)?;
    let (tests, rest) = scan::leading(rest.strip_prefix(b", Tests=")?)?;
    let rest = rest.strip_prefix(b",")?.trim_ascii_start();
    let len = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let seconds = std::str::from_utf8(&rest[..len]).ok().and_then(|s| s.parse().ok());
    rest[len..].starts_with(b" wallclock secs").then_some((tests, seconds))
}
