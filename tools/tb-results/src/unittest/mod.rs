//! `python -m unittest`, Django's test runner and nose: dots or a line for each test, the reports of failures, and
//! a trailer of two lines behind a rule of dashes.
//!
//! Messages of failures hold such trailers too. A trailer counts if the rule stands before it, and if what it says
//! agrees with the reports above it; the last one wins. Passed tests are not counted by the runner: they are what
//! is left of those that ran, a test with several reports (subtests, a failing teardown) being one.

mod lines;

use crate::report::{Failing, Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::sessions::Sessions;
use lines::{Trailer, Word, head, id, is_fixture, passed, ran, verbose, verdict, word};
use memchr::memmem;
use std::collections::HashSet;

const NAME: &str = "unittest";
const DASHES: &[u8] = &[b'-'; 70];
const RULE: &[u8] = &[b'='; 70];

/// Whether a line opens output of unittest.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'R') => ran(line).is_some(),
        Some(b'F' | b'E') => {
            head(line).is_some_and(|(_, name)| memmem::find(name, b" (").is_some() && id(name).is_some())
        }
        Some(b'S') => line.starts_with(b"System check identified no issues"),
        // Output of other runners' mostly has not one full stop: a byte is found faster than a word.
        _ => memchr::memchr(b'.', line)
            .and_then(|_| verbose(line))
            .is_some_and(|v| !matches!(v.word, Word::None) || v.rest.is_empty() && v.dotted),
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Unittest::default())
}

/// The tests by their dotted names, as far as `test` or `unittest` of what was called.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let called = again.command.and_then(|words| {
        let at = words.iter().position(|w| matches!(w.as_str(), "unittest" | "test" | "nosetests"))?;
        Some(words[..=at].to_vec())
    });
    let mut words = called.unwrap_or_else(|| ["python", "-m", "unittest"].map(str::to_owned).to_vec());
    for id in &again.ids {
        // "setUpClass (mod.Class)" is the class's; a subtest cannot be run without its test.
        let name = match id.split_once(" (") {
            Some((method, rest)) if method.starts_with("setUp") || method.starts_with("tearDown") => {
                rest.strip_suffix(')').unwrap_or(rest)
            }
            _ => id.split(' ').next().unwrap_or(id),
        };
        if !words.iter().any(|w| w == name) {
            words.push(name.to_owned());
        }
    }
    vec![words]
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Tests run.
    #[default]
    Progress,
    /// Behind a rule: the head of a report.
    Head,
    /// In a report.
    Report,
    /// Behind a trailer.
    After,
}

#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    errors: u64,
    skipped: u64,
    xfailed: u64,
    xpassed: u64,
}

#[derive(Default)]
struct Unittest {
    over: Sessions,
    phase: Phase,
    before: Vec<u8>,
    tally: Tally,
    seen: bool,
    names: Names,
    /// Names of unexpected successes; up to 3.10 only -v tells them.
    lucky: Vec<Vec<u8>>,
    heads: u64,
    /// A `Ran` line, and the line after it.
    pending: Option<(u64, f64)>,
    trailer: Option<Trailer>,
    current: Option<Vec<u8>>,
    docs: Option<Vec<u8>>,
    last: Vec<u8>,
    /// The last test as its line has it, if that is newer.
    raw: Vec<u8>,
    /// The test whose report is being read.
    reporting: Vec<u8>,
    trace: Option<(String, u64)>,
    faults: Vec<String>,
    torn: bool,
}

impl Runner for Unittest {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let fresh = self.take(line);
        if !fresh {
            self.before.clear();
            self.before.extend_from_slice(&line[..line.len().min(100)]);
        }
    }

    fn idle(&self) -> bool {
        self.torn || !self.seen || self.trailer.is_some() && matches!(self.phase, Phase::After)
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        self.close();
        self.over.into_vec()
    }
}

impl Unittest {
    /// Takes a line; true for an empty one, which does not stand between a rule and what follows it.
    fn take(&mut self, line: &[u8]) -> bool {
        if line.is_empty() {
            return true;
        }
        if let Some((ran, seconds)) = self.pending.take()
            && let Some(trailer) = verdict(line, ran, seconds)
        {
            self.end(trailer);
            return false;
        }
        if line.first() == Some(&b'R')
            && let Some(found) = ran(line)
            && self.before == DASHES
        {
            self.seen = true;
            self.pending = Some(found);
            return false;
        }
        if line == RULE {
            if self.phase != Phase::After {
                self.phase = Phase::Head;
            }
            return false;
        }
        match self.phase {
            Phase::Head => {
                self.phase = Phase::Report;
                self.head(line);
            }
            Phase::Report => self.report(line),
            Phase::Progress => self.progress(line),
            Phase::After => {
                self.torn |= scan::torn(line);
                if line.starts_with(b"Found ") && line.ends_with(b" test(s).") || verbose(line).is_some() {
                    self.close();
                    self.progress(line);
                }
            }
        }
        false
    }

    fn end(&mut self, trailer: Trailer) {
        let reported = trailer.failures + trailer.errors;
        let agrees = self.heads == reported;
        match &self.trailer {
            // Another run behind the first: reports or results came in between, or there were none to come.
            Some(_) if self.phase == Phase::After && self.before != DASHES => self.close(),
            Some(_) if self.phase == Phase::After => self.close(),
            Some(old) if !agrees && self.agreed(old) => return,
            _ => {}
        }
        self.seen = true;
        self.trailer = Some(trailer);
        // A fake in a report is followed by the rest of the report, a real one only by other words.
        if agrees || self.phase != Phase::Report || self.heads == 0 {
            self.phase = Phase::After;
        }
    }

    fn agreed(&self, trailer: &Trailer) -> bool {
        self.heads == trailer.failures + trailer.errors
    }

    fn head(&mut self, line: &[u8]) {
        let Some((word, name)) = head(line) else {
            self.phase = Phase::Progress;
            return;
        };
        let Some(id) = id(name) else { return };
        self.seen = true;
        self.trace = None;
        let outcome = match word {
            Word::Fail => Outcome::Failed,
            Word::Error => Outcome::Error,
            _ => {
                self.lucky.push(id);
                return;
            }
        };
        self.heads += 1;
        self.names.add(&id, outcome);
        self.reporting = id;
    }

    fn report(&mut self, line: &[u8]) {
        // A frame, or the class and the message; the last of them is the failure's own.
        if let Some(frame) = line.strip_prefix(b"  File \"") {
            let Some(quote) = memchr::memchr(b'"', frame) else { return };
            let rest = frame[quote + 1..].strip_prefix(b", line ");
            self.trace = rest.and_then(scan::leading).map(|(n, _)| (scan::text(&frame[..quote]), n));
        } else if let Some(class) = line.first().filter(|b| b.is_ascii_alphabetic()).and(scan::class(line)) {
            let place = self.trace.clone();
            let Some(failing) = self.names.get(&self.reporting) else { return };
            if failing.error_class.is_none() {
                let said = memmem::find(line, b": ").map(|at| scan::message(&line[at + 2..]));
                failing.error_class = Some(class);
                failing.message = said;
                failing.place = place;
            }
        }
    }

    fn progress(&mut self, line: &[u8]) {
        // Most lines are these, and what they are of is asked of the last alone.
        if let Some(name) = passed(line) {
            self.seen = true;
            self.docs = None;
            self.current = None;
            self.tally.passed += 1;
            self.raw.clear();
            self.raw.extend_from_slice(name);
            return;
        }
        if let Some(found) = verbose(line) {
            self.seen = true;
            let mut id = id(found.name);
            // A docstring stands on a line of its own between the name and the word.
            if !found.dotted {
                id = self.docs.take();
            }
            self.docs = None;
            if let Some(id) = id {
                if found.begun && line.first() != Some(&b' ') {
                    self.current = Some(id.clone());
                }
                self.last.clone_from(&id);
                self.raw.clear();
                if found.word != Word::None {
                    self.word(found.word, Some(id));
                }
            }
            if let Some(at) = memmem::find(found.rest, b"Fatal Python error: ") {
                scan::tell(&mut self.faults, scan::message(&found.rest[at..]));
            }
            return;
        }
        if line.ends_with(b")")
            && let Some(known) = id(line)
        {
            self.docs = Some(known);
            return;
        }
        let word = word(line);
        if word != Word::None && self.current.is_some() {
            let id = self.current.clone();
            return self.word(word, id);
        }
        if line.starts_with(b"Fatal Python error: ") {
            scan::tell(&mut self.faults, scan::message(line));
        }
        self.torn |= scan::torn(line);
        if line.iter().all(|b| matches!(b, b'.' | b'F' | b'E' | b's' | b'x' | b'u')) {
            for letter in line {
                match letter {
                    b'.' => self.tally.passed += 1,
                    b'F' => self.tally.failed += 1,
                    b'E' => self.tally.errors += 1,
                    b's' => self.tally.skipped += 1,
                    b'x' => self.tally.xfailed += 1,
                    _ => self.tally.xpassed += 1,
                }
            }
        }
    }

    fn word(&mut self, word: Word, id: Option<Vec<u8>>) {
        self.current = None;
        let t = &mut self.tally;
        match word {
            Word::Ok => t.passed += 1,
            Word::Skipped => t.skipped += 1,
            Word::Xfail => t.xfailed += 1,
            Word::Xpass => {
                t.xpassed += 1;
                self.lucky.extend(id);
            }
            Word::Fail | Word::Error => {
                let failed = word == Word::Fail;
                t.failed += u64::from(failed);
                t.errors += u64::from(!failed);
                let outcome = if failed { Outcome::Failed } else { Outcome::Error };
                if let Some(id) = id {
                    self.names.add(&id, outcome);
                }
            }
            Word::None => {}
        }
    }

    fn close(&mut self) {
        let was = std::mem::take(self);
        self.over = was.over;
        self.before = was.before;
        let letters = [was.tally.passed, was.tally.failed, was.tally.errors, was.tally.skipped];
        if !was.seen && letters == [0; 4] {
            return;
        }
        let mut session = Session::at_zero(NAME);
        session.complete = was.trailer.is_some();
        let last = id(&was.raw).filter(|_| !was.raw.is_empty()).unwrap_or(was.last);
        session.last_test = (!last.is_empty()).then(|| scan::text(&last));
        session.faults = was.faults;
        let mut names = was.names.into_vec();
        let counts = &mut session.counts;
        match was.trailer {
            Some(t) => {
                counts.failed = Some(t.failures);
                counts.errors = Some(t.errors);
                counts.skipped = Some(t.skipped);
                counts.xfailed = Some(t.xfailed);
                counts.xpassed = Some(t.xpassed);
                let bad =
                    if was.heads == t.failures + t.errors { tests(&names) } else { t.failures + t.errors };
                let others = [bad, t.skipped, t.xfailed, t.xpassed];
                counts.passed = Some(others.iter().fold(t.ran, |n, o| n.saturating_sub(*o)));
                session.duration = Some(t.seconds);
                session.signs.gate = !t.good && t.failures + t.errors == 0;
            }
            None => {
                counts.passed = Some(was.tally.passed);
                counts.failed = Some(was.tally.failed);
                counts.errors = Some(was.tally.errors);
                counts.skipped = Some(was.tally.skipped);
                counts.xfailed = Some(was.tally.xfailed);
                counts.xpassed = Some(was.tally.xpassed);
                session.unfinished = was.current.iter().map(|id| scan::text(id)).collect();
            }
        }
        let mut lucky = was.lucky;
        lucky.sort();
        lucky.dedup();
        let unnamed = (lucky.len() as u64) < counts.xpassed.unwrap_or(0);
        names.extend(lucky.iter().map(|id| Failing::new(scan::text(id), Outcome::Failed)));
        let unnamed = unnamed || names.is_empty() && counts.bad() > 0;
        session.failing = (!unnamed || !session.complete).then_some(names);
        self.over.push(session);
    }
}

/// How many tests the names are of: subtests are of one, and what happened outside of tests is of none.
fn tests(names: &[Failing]) -> u64 {
    let of: HashSet<&str> = names
        .iter()
        .map(|f| f.id.as_str())
        .filter(|id| !is_fixture(id.as_bytes()))
        .map(|id| id.split([' ']).next().unwrap_or(id))
        .collect();
    of.len() as u64
}
