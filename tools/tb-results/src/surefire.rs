//! Maven's Surefire and Failsafe: totals under `Results:`, one set for each module. The lines of single classes look
//! like totals but name their class or their time, and what tests print has no level in front.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use memchr::memmem;
use std::collections::BTreeMap;

const NAME: &str = "surefire";

/// Whether a line opens output of Maven's test plugins, or of Maven itself compiling the tests.
pub(crate) fn opens(line: &[u8]) -> bool {
    let Some((_, text)) = level(line) else { return line == b" T E S T S" };
    text == b" T E S T S"
        || text.starts_with(b"COMPILATION ERROR")
        || text.starts_with(b"--- maven-surefire-plugin:")
        || text.starts_with(b"--- surefire:")
        || Totals::of(text).is_some()
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Surefire::default())
}

/// `Class#method+method` for each class.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for id in &again.ids {
        let method =
            id.rsplit_once('.').filter(|(_, m)| m.starts_with(char::is_lowercase) || m.contains(['[', '(']));
        let (class, method) = method.map_or((*id, None), |(c, m)| (c, Some(m)));
        let methods = classes.entry(class).or_default();
        methods.extend(method.map(|m| m.split(['(', '[']).next().unwrap_or(m)));
    }
    let one = |(class, methods): (&str, Vec<&str>)| {
        if methods.is_empty() { class.to_owned() } else { format!("{class}#{}", methods.join("+")) }
    };
    let classes: Vec<String> = classes.into_iter().map(one).collect();
    vec![vec!["mvn".to_owned(), "test".to_owned(), format!("-Dtest={}", classes.join(","))]]
}

#[derive(Clone, Copy, Default)]
struct Totals {
    run: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

#[derive(Default)]
struct Surefire {
    seen: bool,
    /// Totals of the modules that were tested.
    sum: Option<Totals>,
    /// Behind `Results:`.
    results: bool,
    /// Tests named in the results: those of the class that just ended come with package and method.
    names: Names,
    short: Names,
    section: Option<Outcome>,
    classes: Vec<Vec<u8>>,
    running: Vec<Vec<u8>>,
    crashed: bool,
    crashed_list: bool,
    uncompiled: bool,
    flakes: u64,
    message: bool,
    seconds: Option<f64>,
    built: Option<bool>,
    no_tests: bool,
    faults: Vec<String>,
    torn: bool,
}

impl Runner for Surefire {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some((error, text)) = level(line) else {
            // Before 2.19 there was no level.
            if line == b" T E S T S" || line.starts_with(b"Results :") {
                self.seen = true;
                self.results = line.starts_with(b"Results :");
            } else if self.results
                && let Some(totals) = Totals::of(line)
            {
                self.total(totals);
            } else if std::mem::take(&mut self.message) {
                self.said(line);
            } else if let Some(frame) = line.strip_prefix(b"\tat ") {
                self.place(frame);
            }
            self.torn |= scan::torn(line);
            return;
        };
        self.message = false;
        if text == b" T E S T S"
            || text.starts_with(b"--- maven-surefire-plugin:")
            || text.starts_with(b"--- surefire:")
        {
            self.seen = true;
            self.results = false;
        } else if text.starts_with(b"Results:") || text.starts_with(b"Results :") {
            self.results = true;
        } else if let Some(totals) = Totals::of(text) {
            self.seen = true;
            self.total(totals);
        } else if text.starts_with(b"Tests run: ") {
            self.class(text);
        } else if let Some(class) = text.strip_prefix(b"Running ") {
            if self.classes.len() < 100_000 {
                self.classes.push(class.to_vec());
                self.running.push(class.to_vec());
            }
        } else if let Some((id, outcome)) = failed(text) {
            self.seen = true;
            if let Some(failing) = self.names.add(&id, outcome) {
                failing.outcome = outcome;
            }
            self.message = true;
        } else if error {
            self.error(text);
        } else {
            self.info(text);
        }
    }

    fn idle(&self) -> bool {
        self.torn || !self.seen || self.built.is_some()
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        let this = *self;
        if !this.seen && !this.uncompiled {
            return Vec::new();
        }
        let mut session = Session::at_zero(NAME);
        session.duration = this.seconds;
        session.faults = this.faults;
        session.signs.build_error = this.uncompiled;
        session.signs.died = this.crashed;
        session.complete = (this.sum.is_some() || this.uncompiled || this.no_tests) && !this.crashed;
        session.signs.no_tests = this.no_tests && this.sum.is_none();
        let counts = &mut session.counts;
        counts.reruns = Some(this.flakes);
        match this.sum {
            Some(t) => {
                let others = [t.failures, t.errors, t.skipped, this.flakes];
                let known = !(this.crashed && t.run == 0);
                counts.passed = known.then_some(others[..3].iter().fold(t.run, |n, o| n.saturating_sub(*o)));
                counts.failed = known.then_some(t.failures);
                counts.errors = Some(t.errors);
                counts.skipped = Some(t.skipped);
            }
            None if this.no_tests => {}
            None => {
                (counts.passed, counts.failed, counts.skipped) = (None, None, None);
            }
        }
        if this.uncompiled {
            counts.errors = Some(counts.errors.unwrap_or(0) + 1);
        }
        if !session.complete {
            session.unfinished = this.running.iter().map(|c| scan::text(c)).collect();
        }
        session.last_test = this.classes.last().map(|c| scan::text(c));
        let bad = this.sum.map_or(0, |t| t.failures + t.errors);
        let names = if this.names.is_empty() { this.short } else { this.names };
        session.failing = names.if_named(bad);
        vec![session]
    }
}

impl Surefire {
    fn total(&mut self, totals: Totals) {
        let sum = self.sum.get_or_insert_default();
        sum.run += totals.run;
        sum.failures += totals.failures;
        sum.errors += totals.errors;
        sum.skipped += totals.skipped;
        self.results = false;
        self.section = None;
        if !self.crashed {
            self.running.clear();
        }
    }

    /// The line of a class that ended: `Tests run: 5, ..., Time elapsed: 0.07 s <<< FAILURE! - in demo.MixTest`.
    fn class(&mut self, text: &[u8]) {
        let name = [&b" - in "[..], b" -- in "]
            .iter()
            .find_map(|w| Some(&text[memmem::rfind(text, w)? + w.len()..]));
        match name {
            Some(name) => self.running.retain(|c| c != name),
            None => {
                self.running.pop();
            }
        }
    }

    fn error(&mut self, text: &[u8]) {
        match text.trim_ascii_end() {
            b"Failures:" => self.section = Some(Outcome::Failed),
            b"Errors:" => self.section = Some(Outcome::Error),
            b"Crashed tests:" => self.crashed_list = true,
            b"" => {}
            _ if text.starts_with(b"COMPILATION ERROR") => {
                self.uncompiled = true;
                self.built = None;
            }
            _ if memmem::find(text, b"The forked VM terminated without ").is_some()
                || memmem::find(text, b"There was a timeout or other error in the fork").is_some() =>
            {
                if !self.crashed && self.faults.len() < 100 {
                    scan::tell(&mut self.faults, scan::message(text));
                }
                self.crashed = true;
            }
            _ if self.crashed_list && !text.contains(&b' ') => {
                if !self.running.iter().any(|c| c == text) {
                    self.running.push(text.to_vec());
                }
                self.crashed_list = false;
            }
            _ => {
                self.crashed_list = false;
                if let (Some(outcome), Some(rest)) = (self.section, text.strip_prefix(b"  ")) {
                    self.listed(rest, outcome);
                }
            }
        }
    }

    /// `MixTest.fails:5 sum expected`: the class lacks its package, which the line of its start may tell.
    fn listed(&mut self, text: &[u8], outcome: Outcome) {
        let end = text.iter().position(|b| matches!(b, b':' | b' ' | b'>')).unwrap_or(text.len());
        let name = &text[..end];
        let Some(dot) = memchr::memchr(b'.', name) else { return };
        let class = &name[..dot];
        let whole = self
            .classes
            .iter()
            .find(|c| c.ends_with(class) && (c.len() == class.len() || c[c.len() - class.len() - 1] == b'.'));
        let mut id = whole.cloned().unwrap_or_else(|| class.to_vec());
        id.extend_from_slice(&name[dot..]);
        self.short.add(&id, outcome);
    }

    fn info(&mut self, text: &[u8]) {
        if let Some(time) = text.strip_prefix(b"Total time: ") {
            // "2.019 s", "01:02 min", "1:02 h".
            let time = time.trim_ascii();
            self.seconds = scan::seconds(time).or_else(|| clock(time));
        } else if text.starts_with(b"BUILD SUCCESS") || text.starts_with(b"BUILD FAILURE") {
            self.built = Some(text.starts_with(b"BUILD SUCCESS"));
        } else if text.starts_with(b"No tests to run.") {
            self.no_tests = true;
            self.seen = true;
        }
    }

    fn said(&mut self, line: &[u8]) {
        if let Some(failing) = self.names.last().filter(|f| f.error_class.is_none()) {
            failing.error_class = scan::class(line);
            failing.message = memmem::find(line, b": ").map(|at| scan::message(&line[at + 2..]));
        }
    }

    /// `demo.MixTest.errors(MixTest.java:6)`.
    fn place(&mut self, frame: &[u8]) {
        let Some(failing) = self.names.last().filter(|f| f.place.is_none()) else { return };
        let Some(open) = memchr::memchr(b'(', frame) else { return };
        let class = failing.id.rsplit_once('.').map_or("", |(class, _)| class);
        if !class.is_empty() && frame[..open].starts_with(class.as_bytes()) {
            failing.place = scan::place(&frame[open + 1..]);
        }
    }
}

/// `[ERROR] text`: whether it is an error, and the text.
fn level(line: &[u8]) -> Option<(bool, &[u8])> {
    let rest = line.strip_prefix(b"[")?;
    let close = memchr::memchr(b']', rest.get(..8.min(rest.len()))?)?;
    let error = match &rest[..close] {
        b"ERROR" => true,
        b"INFO" | b"WARNING" => false,
        _ => return None,
    };
    Some((error, rest[close + 1..].strip_prefix(b" ").unwrap_or(&rest[close + 1..])))
}

impl Totals {
    /// `Tests run: 7, Failures: 1, Errors: 1, Skipped: 2` and nothing else.
    fn of(text: &[u8]) -> Option<Totals> {
        let (run, rest) = scan::leading(text.strip_prefix(b"Tests run: ")?)?;
        let (failures, rest) = scan::leading(rest.strip_prefix(b", Failures: ")?)?;
        let (errors, rest) = scan::leading(rest.strip_prefix(b", Errors: ")?)?;
        let (skipped, rest) = scan::leading(rest.strip_prefix(b", Skipped: ")?)?;
        let rest = rest.trim_ascii();
        (rest.is_empty() || rest.starts_with(b", Flakes: ")).then_some(Totals {
            run,
            failures,
            errors,
            skipped,
        })
    }
}

/// `errors(demo.MixTest)  Time elapsed: 0.001 s  <<< ERROR!`, since 3.0 `demo.MixTest.errors -- Time elapsed: ...`:
/// class and method.
fn failed(text: &[u8]) -> Option<(Vec<u8>, Outcome)> {
    let (body, outcome) = match text.strip_suffix(b"<<< FAILURE!") {
        Some(body) => (body, Outcome::Failed),
        None => (text.strip_suffix(b"<<< ERROR!")?, Outcome::Error),
    };
    let end = memmem::find(body, b"Time elapsed: ")?;
    let name = body[..end].trim_ascii();
    let name = name.strip_suffix(b"--").unwrap_or(name).trim_ascii();
    let Some(inside) = name.strip_suffix(b")") else { return Some((name.to_vec(), outcome)) };
    let open = memchr::memrchr(b'(', inside)?;
    // "fails()(demo.MixTest)" of early JUnit 5; "fails(int)[1]" keeps its parameters.
    let (method, class) = (&name[..open], &inside[open + 1..]);
    if !class.contains(&b'.') && !class.first().is_some_and(u8::is_ascii_uppercase) {
        return Some((name.to_vec(), outcome));
    }
    let method = method.strip_suffix(b"()").unwrap_or(method);
    Some(([class, method].join(&b'.'), outcome))
}

/// `01:02 min` and `1:02 h`.
fn clock(text: &[u8]) -> Option<f64> {
    let (a, rest) = scan::leading(text)?;
    let (b, rest) = scan::leading(rest.strip_prefix(b":")?)?;
    let (a, b) = (a as f64, b as f64);
    match rest.trim_ascii() {
        b"min" => Some(a * 60.0 + b),
        b"h" => Some(a * 3600.0 + b * 60.0),
        _ => None,
    }
}
