//! Mocha: the spec reporter's list, the totals, and the numbered failures under them, whose names are spread over
//! several lines. Hooks that fail count as failures. The JSON reporter's object is read line by line, as it is laid out.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use memchr::memmem;

const NAME: &str = "mocha";
const STATS: &[u8] = b"  \"stats\": {";

/// Whether a line opens output of Mocha.
pub(crate) fn opens(line: &[u8]) -> bool {
    line.starts_with(b"  ") && (passing(line).is_some() || mark(line) == Some(true) || line == STATS)
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Mocha::default())
}

/// The whole names as a pattern.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    // A hook's failure is run again by the tests of its suite.
    let name = |id: &&str| match id.find(" \"before ").or(id.find(" \"after ")) {
        Some(at) => scan::pattern(&id[..at]),
        None => format!("{}$", scan::pattern(id)),
    };
    let names: Vec<String> = again.ids.iter().map(name).collect();
    vec![vec!["npx".into(), "mocha".into(), "-g".into(), format!("^({})", names.join("|"))]]
}

#[derive(Default)]
struct Mocha {
    seen: bool,
    passed: Option<u64>,
    pending: u64,
    failed: u64,
    seconds: Option<f64>,
    names: Names,
    /// The parts of a name that is not yet whole, and how far the last was indented.
    title: Vec<Vec<u8>>,
    /// Whether the message of the last failure is still to come.
    heading: bool,
    early: [u64; 3],
    last: Vec<u8>,
    torn: bool,
    in_failures: bool,
    json: Json,
}

/// Where in the JSON reporter's object its last line was.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Json {
    #[default]
    No,
    Stats,
    Failures,
    Other,
}

impl Runner for Mocha {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        if self.json != Json::No || line == STATS {
            return self.object(line);
        }
        if let Some((n, seconds)) = passing(line) {
            // What a test printed in this form is followed by the real one.
            self.seen = true;
            self.passed = Some(n);
            self.seconds = Some(seconds);
            (self.pending, self.failed) = (0, 0);
            self.names = Names::default();
            self.in_failures = false;
            return;
        }
        if self.passed.is_some() {
            if let Some((n, word)) = line.strip_prefix(b"  ").and_then(scan::counted) {
                match word {
                    b"pending" => self.pending = n,
                    b"failing" => self.failed = n,
                    _ => {}
                }
                self.in_failures |= word == b"failing";
            }
            if self.in_failures {
                self.failure(line);
            }
        }
        match mark(line) {
            Some(_) => {
                let name = line.trim_ascii_start().strip_prefix("✔ ".as_bytes()).unwrap_or_default();
                self.seen = true;
                self.early[0] += 1;
                self.last.clear();
                self.last.extend_from_slice(name);
            }
            None => self.list(line),
        }
        self.torn |= scan::torn(line);
    }

    fn idle(&self) -> bool {
        self.torn || !self.seen || self.passed.is_some()
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        if !self.seen {
            return Vec::new();
        }
        let mut session = Session::at_zero(NAME);
        session.complete = self.passed.is_some();
        session.duration = self.seconds;
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        let counts = &mut session.counts;
        let (passed, failed, skipped) = match self.passed {
            Some(passed) => (passed, self.failed, self.pending),
            None => (self.early[0], self.early[1], self.early[2]),
        };
        counts.passed = Some(passed);
        counts.failed = Some(failed);
        counts.skipped = Some(skipped);
        session.failing = self.names.if_named(failed);
        vec![session]
    }
}

impl Mocha {
    /// A line of the JSON reporter's object.
    fn object(&mut self, line: &[u8]) {
        self.seen = true;
        let text = line.trim_ascii();
        match (line.len() - line.trim_ascii_start().len(), text) {
            (0, b"}") => self.json = Json::No,
            (2, _) => {
                self.json = match text {
                    b"\"stats\": {" => Json::Stats,
                    b"\"failures\": [" => Json::Failures,
                    _ => Json::Other,
                };
            }
            (4, _) if self.json == Json::Stats => {
                let text = text.strip_suffix(b",").unwrap_or(text);
                let n = |key: &[u8]| text.strip_prefix(key).and_then(scan::number);
                self.passed = n(b"\"passes\": ").or(self.passed);
                self.pending = n(b"\"pending\": ").unwrap_or(self.pending);
                self.failed = n(b"\"failures\": ").unwrap_or(self.failed);
                self.seconds = n(b"\"duration\": ").map(|ms| ms as f64 / 1000.0).or(self.seconds);
            }
            (6, _) if self.json == Json::Failures => {
                let title = text.strip_prefix(b"\"fullTitle\": ").map(|t| t.strip_suffix(b",").unwrap_or(t));
                if let Some(title) = title.and_then(|t| serde_json::from_slice::<String>(t).ok()) {
                    self.names.add(title.as_bytes(), Outcome::Failed);
                }
            }
            _ => {}
        }
    }

    /// `    2) totals` and `    - later` in the list of a run that has not come to its end.
    fn list(&mut self, line: &[u8]) {
        if self.passed.is_some() || !line.starts_with(b"  ") {
            return;
        }
        let text = line.trim_ascii_start();
        if text.starts_with(b"- ") {
            self.early[2] += 1;
        } else if let Some((n, rest)) = scan::leading(text)
            && let Some(name) = rest.strip_prefix(b") ")
            && n == self.early[1] + 1
        {
            self.early[1] += 1;
            self.last.clear();
            self.last.extend_from_slice(name);
        }
    }

    /// `  1) math` / `       nested` / `         fails equal:`, two further in for each level, a colon at the end.
    fn failure(&mut self, line: &[u8]) {
        if self.title.is_empty() {
            let numbered = line.strip_prefix(b"  ").map(<[u8]>::trim_ascii_start).and_then(scan::leading);
            if let Some((n, rest)) = numbered
                && n == self.names.len() + 1
                && line.len() - rest.len() < 8
                && let Some(name) = rest.strip_prefix(b") ")
            {
                self.part(name);
                return;
            }
            self.message(line);
            return;
        }
        let indent = line.len() - line.trim_ascii_start().len();
        if indent == 5 + 2 * self.title.len() && self.title.len() < 64 {
            self.part(&line[indent..]);
        } else {
            self.title.clear();
        }
    }

    fn part(&mut self, text: &[u8]) {
        self.title.push(text.to_vec());
        if let Some(whole) = text.strip_suffix(b":") {
            if let Some(last) = self.title.last_mut() {
                *last = whole.to_vec();
            }
            let id = self.title.join(&b' ');
            self.title.clear();
            self.names.add(&id, Outcome::Failed);
            self.heading = true;
        }
    }

    fn message(&mut self, line: &[u8]) {
        let text = line.trim_ascii();
        if text.is_empty() {
            return;
        }
        let Some(failing) = self.names.last() else { return };
        if std::mem::take(&mut self.heading) {
            failing.error_class = scan::class(text);
            let at =
                failing.error_class.as_ref().and_then(|_| memmem::find(text, b": ")).map_or(0, |at| at + 2);
            failing.message = Some(scan::message(&text[at..]));
        } else if let Some(frame) = text.strip_prefix(b"at ").filter(|_| failing.place.is_none()) {
            let inside = memchr::memchr(b'(', frame).map_or(frame, |at| &frame[at + 1..]);
            failing.place =
                scan::place(inside).filter(|(f, _)| !f.contains("node_modules") && !f.starts_with("node:"));
        }
    }
}

/// `  4 passing (265ms)`.
fn passing(line: &[u8]) -> Option<(u64, f64)> {
    let (n, rest) = scan::leading(line.strip_prefix(b"  ")?)?;
    Some((n, scan::seconds(scan::between(rest, b" passing (", b")")?)?))
}

/// `    ✔ adds (12ms)`; true if it can be nobody else's: indented, and without the fractions of node's own runner.
fn mark(line: &[u8]) -> Option<bool> {
    let text = line.strip_prefix(b"  ")?.trim_ascii_start();
    let rest = text.strip_prefix("✔ ".as_bytes())?;
    let nodes =
        rest.ends_with(b"ms)") && memmem::rfind(rest, b" (").is_some_and(|at| rest[at..].contains(&b'.'));
    Some(!nodes)
}
