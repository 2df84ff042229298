//! JUnit XML as input: what every runner and CI system writes, each a little differently.
//!
//! Counts are of the elements, not of the attributes of their suites: these disagree (pytest with subtests), or are
//! missing. The document is read as it comes, in constant memory, line ends or not.

use crate::report::{Failing, Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Slowest};
use crate::xml::{self, Event, Xml};
use memchr::memmem;

const NAME: &str = "junitxml";
/// Lines of this length may not be whole.
const LONG: usize = 64 << 10;

/// Whether a line opens such a document.
pub(crate) fn opens(line: &[u8]) -> bool {
    line.first() == Some(&b'<') && begins(line)
}

/// Whether these are the first bytes of such a document.
pub(crate) fn begins(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let head = [&b"<testsuites"[..], b"<testsuite "].iter().any(|h| text.starts_with(h));
    head || text.starts_with(b"<?xml ")
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Junit::default())
}

/// The document tells classes and names, but not whose.
pub(crate) fn rerun(_: &Again<'_>) -> Vec<Vec<String>> {
    Vec::new()
}

/// What a `<testcase>` has turned out to be.
#[derive(Default)]
struct Case {
    /// The attributes; of most cases nobody asks the name.
    attributes: Vec<u8>,
    seconds: f64,
    failed: bool,
    error: bool,
    skipped: bool,
    class: Option<String>,
    message: Option<String>,
    place: Option<(String, u64)>,
}

/// A reader of one document or several.
#[derive(Default)]
pub(crate) struct Junit {
    xml: Xml,
    tests: Tests,
}

#[derive(Default)]
struct Tests {
    seen: bool,
    depth: usize,
    root_seconds: Option<f64>,
    suites_seconds: Option<f64>,
    suites: usize,
    closed: bool,
    torn: bool,
    case: Option<Case>,
    /// In a failure's or an error's element: its text is of interest.
    reason: bool,
    counts: [u64; 4],
    reruns: u64,
    failing: Vec<Failing>,
    slowest: Slowest,
    /// The attributes of the last case.
    last: Vec<u8>,
}

impl Runner for Junit {
    fn line(&mut self, line: Line<'_>) {
        // Behind other text the document comes line by line, and the middle of a very long line is lost.
        self.tests.torn |= line.text.len() >= LONG;
        self.block(line.text);
        // Between tags a line end says nothing.
        if !self.xml.is_between_tags() {
            self.block(b"\n");
        }
    }

    fn idle(&self) -> bool {
        !self.tests.seen || self.tests.closed
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        self.sessions()
    }
}

impl Junit {
    /// More of the document.
    pub(crate) fn block(&mut self, bytes: &[u8]) {
        let tests = &mut self.tests;
        self.xml.push(bytes, |event| tests.event(&event));
    }

    /// What it said.
    pub(crate) fn sessions(self) -> Vec<Session> {
        let tests = self.tests;
        if !tests.seen {
            return Vec::new();
        }
        let mut session = Session::at_zero(NAME);
        session.complete = tests.closed && !tests.torn;
        if tests.torn {
            session
                .faults
                .push("a line of it is too long to be read behind other text: save the XML alone".to_owned());
        }
        session.duration = tests.root_seconds.or(tests.suites_seconds);
        let [passed, failed, errors, skipped] = tests.counts;
        session.counts.passed = Some(passed);
        session.counts.failed = Some(failed);
        session.counts.errors = Some(errors);
        session.counts.skipped = Some(skipped);
        session.counts.reruns = Some(tests.reruns);
        session.failing = Some(tests.failing);
        session.last_test = (!tests.last.is_empty()).then(|| id(&tests.last));
        session.slowest = tests.slowest.into_vec();
        vec![session]
    }
}

/// A number of seconds, also with commas between thousands.
fn number(value: &[u8]) -> Option<f64> {
    let commas = || scan::decimal(std::str::from_utf8(value).ok()?.replace(',', "").as_bytes());
    scan::decimal(value).or_else(commas).filter(|n| n.is_finite())
}

/// A test's class and name; bats takes the name alone.
fn id(attributes: &[u8]) -> String {
    let (mut name, mut class) = (None, None);
    for (key, value) in xml::attributes(attributes) {
        match key {
            b"name" => name = name.or(Some(value)),
            b"classname" => class = class.or(Some(value)),
            _ => {}
        }
    }
    let mut out = Vec::with_capacity(attributes.len());
    if let Some(class) = class.filter(|c| !c.ends_with(b".bats")) {
        xml::plain_into(class, &mut out);
        out.extend_from_slice(b"::");
    }
    xml::plain_into(name.unwrap_or_default(), &mut out);
    scan::owned(out)
}

impl Tests {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Open { name, attributes, empty } => {
                self.open(name, attributes);
                if *empty {
                    self.close(name);
                }
            }
            Event::Close(name) => self.close(name),
            Event::Text(text) => self.text(text),
        }
    }

    fn open(&mut self, name: &[u8], attributes: &[u8]) {
        let attribute = |key: &[u8]| xml::attribute(attributes, key);
        let seconds = || attribute(b"time").and_then(|t| number(t.as_bytes()));
        match name {
            b"testsuites" => {
                self.seen = true;
                self.closed = false;
                self.depth += 1;
                self.root_seconds = seconds().or(self.root_seconds);
            }
            b"testsuite" => {
                self.seen = true;
                self.closed = false;
                self.depth += 1;
                self.suites += 1;
                if self.suites == 1
                    && let Some(seconds) = seconds()
                {
                    *self.suites_seconds.get_or_insert(0.0) += seconds;
                }
            }
            b"testcase" => {
                let (mut skipped, mut seconds) = (false, 0.0);
                for (key, value) in xml::attributes(attributes) {
                    match key {
                        b"time" => seconds = number(value).unwrap_or(0.0),
                        b"status" | b"result" => {
                            skipped |= matches!(value, b"notrun" | b"disabled" | b"skipped" | b"suppressed");
                        }
                        _ => {}
                    }
                }
                let mut kept = std::mem::take(&mut self.last);
                kept.clear();
                kept.extend_from_slice(attributes);
                self.case = Some(Case { attributes: kept, seconds, skipped, ..Case::default() });
            }
            b"failure" | b"error" | b"skipped" => {
                let Some(case) = &mut self.case else { return };
                match name {
                    b"failure" => case.failed = true,
                    b"error" => case.error = true,
                    _ => case.skipped = true,
                }
                if name != b"skipped" && case.message.is_none() {
                    let message = attribute(b"message").unwrap_or_default();
                    let first = message.lines().next().unwrap_or_default();
                    case.class = attribute(b"type")
                        .and_then(|t| scan::class(t.as_bytes()))
                        .or_else(|| scan::class(first.as_bytes()));
                    case.message = (!first.is_empty()).then(|| scan::message(first.as_bytes()));
                    self.reason = true;
                }
            }
            b"rerunFailure" | b"rerunError" | b"flakyFailure" | b"flakyError" => self.reruns += 1,
            _ => {}
        }
    }

    fn text(&mut self, text: &[u8]) {
        let Some(case) = self.case.as_mut().filter(|_| self.reason) else { return };
        if case.message.is_none()
            && let Some(first) = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty())
        {
            case.class = case.class.take().or_else(|| scan::class(first));
            case.message = Some(scan::message(&xml::plain(first)));
        }
        // "tests/test_core.py:14: AssertionError" ends pytest's.
        let last = text.rsplit(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty());
        if let Some(last) = last
            && memmem::find(last, b".py:").is_some()
        {
            case.place = scan::place(last).or(case.place.take());
        }
    }

    fn close(&mut self, name: &[u8]) {
        match name {
            b"testsuites" | b"testsuite" => {
                self.depth = self.depth.saturating_sub(1);
                self.suites = self.suites.saturating_sub(usize::from(name == b"testsuite"));
                self.closed = self.depth == 0;
            }
            b"testcase" => {
                if let Some(case) = self.case.take() {
                    self.count(case);
                }
            }
            b"failure" | b"error" => self.reason = false,
            _ => {}
        }
    }

    fn count(&mut self, case: Case) {
        let kind = match (case.failed, case.error, case.skipped) {
            (true, ..) => 1,
            (_, true, _) => 2,
            (.., true) => 3,
            _ => 0,
        };
        self.counts[kind] += 1;
        if case.failed && case.error {
            self.counts[2] += 1;
        }
        self.slowest.add(case.seconds, || id(&case.attributes));
        if (case.failed || case.error) && self.failing.len() < 100_000 {
            let outcome = if case.failed { Outcome::Failed } else { Outcome::Error };
            let mut failing = Failing::new(id(&case.attributes), outcome);
            failing.error_class = case.class;
            failing.message = case.message;
            failing.place = case.place;
            self.failing.push(failing);
        }
        self.last = case.attributes;
    }
}
