//! Jest: a line for each file, headings for what failed, totals at the left edge (what tests print is indented);
//! also `--json`. A run that died has no totals.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::sessions::Sessions;
use memchr::memmem;
use serde_json::Value;
use std::collections::HashSet;

const NAME: &str = "jest";
const NO_TESTS: &[u8] = b"No tests found, exiting with code ";

/// Whether a line opens output of Jest.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'P' | b'F') => file(line).is_some(),
        Some(b'T') => line.starts_with(b"Test Suites: ") && line.ends_with(b" total"),
        Some(b'N') => line.starts_with(NO_TESTS),
        Some(b'{') => line.starts_with(b"{\"numFailedTestSuites\":"),
        _ => false,
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Jest::default())
}

/// One process, the whole names as a pattern; the log does not tell which file each is in.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let names: Vec<String> = again.ids.iter().map(|id| scan::pattern(&id.replace(" › ", " "))).collect();
    vec![vec![
        "npx".into(),
        "jest".into(),
        "--runInBand".into(),
        "-t".into(),
        format!("^({})$", names.join("|")),
    ]]
}

/// The line of totals.
#[derive(Clone, Copy, Default)]
struct Totals {
    failed: u64,
    skipped: u64,
    passed: u64,
}

#[derive(Default)]
struct Jest {
    over: Sessions,
    seen: bool,
    in_failed_file: bool,
    file: Vec<u8>,
    suites_failed: HashSet<Vec<u8>>,
    /// The line above was "Test Suites: ".
    suites: bool,
    totals: Option<Totals>,
    seconds: Option<f64>,
    none: bool,
    ended: bool,
    names: Names,
    /// A heading whose message has not come yet.
    heading: bool,
    suite_heading: bool,
    /// Results test by test (--verbose).
    verbose: Totals,
    json: Option<Box<Session>>,
    gate: bool,
    died: bool,
    last: Vec<u8>,
    faults: Vec<String>,
}

impl Runner for Jest {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let suites = std::mem::take(&mut self.suites);
        let Some(&first) = line.first() else { return };
        match first {
            b'P' | b'F' => {
                if let Some((name, failed)) = file(line) {
                    if self.ended {
                        self.close();
                    }
                    self.seen = true;
                    self.in_failed_file = failed;
                    self.file = name.to_vec();
                }
            }
            b'T' if line.starts_with(b"Test Suites: ") => self.suites = true,
            b'T' if suites && line.starts_with(b"Tests: ") => {
                self.seen = true;
                self.totals = totals(&line[7..]).or(self.totals);
            }
            b'T' if self.totals.is_some() && line.starts_with(b"Time: ") => {
                let time = &line[5..];
                let end = memchr::memchr(b',', time).unwrap_or(time.len());
                self.seconds = scan::seconds(&time[..end]);
                self.ended = true;
            }
            b'N' if line.starts_with(NO_TESTS) => {
                self.seen = true;
                self.none = true;
                self.ended = true;
            }
            b'J' if line.starts_with(b"Jest: ") && memmem::find(line, b"threshold").is_some() => {
                self.gate = true;
                scan::tell(&mut self.faults, scan::message(line));
            }
            b'{' if line.starts_with(b"{\"numFailedTestSuites\":") => {
                self.json = json(line, NAME).map(Box::new);
            }
            b' ' => self.indented(line),
            _ => self.ended |= scan::torn(line),
        }
    }

    fn idle(&self) -> bool {
        self.ended || !self.seen
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        self.close();
        self.over.into_vec()
    }
}

impl Jest {
    fn indented(&mut self, line: &[u8]) {
        if let Some(title) = line.strip_prefix("  ● ".as_bytes()) {
            return self.heading(title);
        }
        let text = line.trim_ascii_start();
        if text.is_empty() {
            return;
        }
        if self.heading || self.suite_heading {
            // The first words under the heading.
            if std::mem::take(&mut self.suite_heading) {
                if text.starts_with(b"A jest worker process ")
                    || text.starts_with(b"Jest worker encountered ")
                {
                    self.died = true;
                    scan::tell(&mut self.faults, scan::message(text));
                }
            } else if let Some(failing) = self.names.last() {
                failing.error_class = scan::class(text);
                let at = failing
                    .error_class
                    .as_ref()
                    .and_then(|_| memmem::find(text, b": "))
                    .map_or(0, |at| at + 2);
                failing.message = Some(scan::message(&text[at..]));
            }
            self.heading = false;
            return;
        }
        if let Some(frame) = text.strip_prefix(b"at ") {
            if let Some(failing) = self.names.last().filter(|f| f.place.is_none()) {
                let inside = memchr::memchr(b'(', frame).map_or(frame, |at| &frame[at + 1..]);
                failing.place = scan::place(inside)
                    .filter(|(f, _)| !f.contains("node_modules") && !f.starts_with("node:"));
            }
            return;
        }
        let mark = |m: &str| text.strip_prefix(m.as_bytes());
        let (slot, name) = if let Some(name) = mark("✓ ") {
            (&mut self.verbose.passed, name)
        } else if let Some(name) = mark("✕ ") {
            (&mut self.verbose.failed, name)
        } else if let Some(name) = mark("○ skipped ") {
            (&mut self.verbose.skipped, name)
        } else {
            return;
        };
        *slot += 1;
        self.last = name.to_vec();
    }

    fn heading(&mut self, title: &[u8]) {
        (self.heading, self.suite_heading) = (false, false);
        if title == b"Test suite failed to run" {
            self.suite_heading = true;
            self.suites_failed.insert(self.file.clone());
        } else if title.trim_ascii_start().starts_with(b"process.exit called with ") {
            self.seen = true;
            self.died = true;
            scan::tell(&mut self.faults, scan::message(title.trim_ascii()));
        } else if self.in_failed_file && !is_notice(title) {
            self.heading = true;
            self.last = title.to_vec();
            self.names.add(title, Outcome::Failed);
        }
    }

    fn close(&mut self) {
        let was = std::mem::take(self);
        self.over = was.over;
        if let (None, Some(session)) = (was.totals, was.json) {
            self.over.push(*session);
            return;
        }
        if !was.seen {
            return;
        }
        let mut session = Session::at_zero(NAME);
        session.complete = was.totals.is_some() || was.none;
        session.duration = was.seconds;
        session.signs.no_tests = was.none;
        session.signs.gate = was.gate;
        session.signs.died = was.died;
        session.parallel = true;
        session.last_test = (!was.last.is_empty()).then(|| scan::text(&was.last));
        session.faults = was.faults;
        let counts = &mut session.counts;
        let verbose = was.verbose.passed + was.verbose.failed + was.verbose.skipped > 0;
        match was.totals {
            Some(t) => {
                counts.passed = Some(t.passed);
                counts.failed = Some(t.failed);
                counts.skipped = Some(t.skipped);
            }
            None if was.none => {}
            // Without --verbose nobody was told of the tests that passed.
            None => {
                counts.passed = verbose.then_some(was.verbose.passed);
                counts.skipped = verbose.then_some(was.verbose.skipped);
                counts.failed = Some(was.names.len());
            }
        }
        counts.errors = Some(was.suites_failed.len() as u64);
        session.failing = was.names.if_named(counts.failed.unwrap_or(0));
        self.over.push(session);
    }
}

/// Headings that are no failures.
fn is_notice(title: &[u8]) -> bool {
    let notices: [&[u8]; 6] = [
        b"Console",
        b"Validation ",
        b"Deprecation ",
        b"Cannot log after tests are done",
        b"Multiple configurations",
        b"Duplicated ",
    ];
    notices.iter().any(|n| title.starts_with(n))
}

/// `FAIL ./math.test.js (5.2 s)`: the file, and whether it failed.
fn file(line: &[u8]) -> Option<(&[u8], bool)> {
    let failed = line.starts_with(b"FAIL ");
    let rest = if failed { &line[5..] } else { line.strip_prefix(b"PASS ")? };
    let rest = rest.trim_ascii_end();
    let name = match memmem::rfind(rest, b" (") {
        Some(at) if rest.ends_with(b")") => &rest[..at],
        _ => rest,
    };
    let last = name.rsplit(|b| *b == b' ').next()?;
    let endings: [&[u8]; 9] = [b".js", b".ts", b".jsx", b".tsx", b".mjs", b".cjs", b".mts", b".cts", b".vue"];
    endings.iter().any(|e| last.ends_with(e)).then_some((name, failed))
}

/// `       5 failed, 1 skipped, 1 todo, 7 passed, 14 total`.
fn totals(line: &[u8]) -> Option<Totals> {
    let mut out = Totals::default();
    let mut total = false;
    for part in line.trim_ascii().split(|b| *b == b',') {
        let (n, word) = scan::counted(part.trim_ascii())?;
        match word {
            b"failed" => out.failed = n,
            b"skipped" => out.skipped = n,
            b"passed" => out.passed = n,
            b"total" => total = true,
            b"todo" => {}
            _ => return None,
        }
    }
    total.then_some(out)
}

/// The object of `--json`, which vitest writes too.
pub(crate) fn json(line: &[u8], runner: &'static str) -> Option<Session> {
    let mut session = Session::at_zero(runner);
    session.complete = true;
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        // Too long to be kept whole: the counts stand in front.
        let n = |key: &[u8]| Some(scan::leading(&line[memmem::find(line, key)? + key.len()..])?.0);
        session.counts.passed = Some(n(b"\"numPassedTests\":")?);
        session.counts.failed = Some(n(b"\"numFailedTests\":")?);
        session.counts.skipped = Some(n(b"\"numPendingTests\":")?);
        session.counts.errors = n(b"\"numRuntimeErrorTestSuites\":");
        session.failing = (session.counts.failed == Some(0)).then(Vec::new);
        return Some(session);
    };
    let n = |key: &str| value[key].as_u64().unwrap_or(0);
    session.counts.passed = Some(n("numPassedTests"));
    session.counts.failed = Some(n("numFailedTests"));
    session.counts.skipped = Some(n("numPendingTests"));
    let mut broken = 0;
    let mut end: Option<f64> = None;
    let mut names = Names::default();
    for file in value["testResults"].as_array()? {
        let results = file["assertionResults"].as_array().map_or(&[][..], Vec::as_slice);
        broken += u64::from(results.is_empty() && file["status"] == "failed");
        end = file["endTime"].as_f64().into_iter().chain(end).reduce(f64::max);
        for result in results.iter().filter(|r| r["status"] == "failed") {
            let titles = result["ancestorTitles"].as_array().into_iter().flatten();
            let titles: Vec<&str> = titles.chain([&result["title"]]).filter_map(Value::as_str).collect();
            let id = match runner {
                NAME => titles.join(" › "),
                _ => format!("{} > {}", file["name"].as_str().unwrap_or_default(), titles.join(" > ")),
            };
            if let Some(failing) = names.add(id.as_bytes(), Outcome::Failed) {
                let said =
                    result["failureMessages"][0].as_str().and_then(|m| m.lines().next()).unwrap_or_default();
                failing.error_class = scan::class(said.as_bytes());
                failing.message = Some(scan::message(said.as_bytes()));
            }
        }
    }
    session.counts.errors = Some(broken);
    session.signs.no_tests = n("numTotalTests") == 0 && broken == 0;
    let start = value["startTime"].as_f64();
    session.duration = end.zip(start).map(|(end, start)| (end - start) / 1000.0);
    session.failing = names.if_named(n("numFailedTests"));
    Some(session)
}
