//! RSpec: the totals, and the list of failed examples by place, which is what RSpec takes to run them again; also
//! its JSON.

use crate::report::{Failing, Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::sessions::Sessions;
use memchr::memmem;
use serde_json::Value;

const NAME: &str = "rspec";
const JSON: &[u8] = b"\"summary_line\":\"";

/// Whether a line opens output of RSpec.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'r') => example(line).is_some(),
        Some(b'F') => finished(line).is_some(),
        Some(b'A') => line.starts_with(b"An error occurred while loading ./"),
        Some(b'{') => line.starts_with(b"{\"version\":\"") && memmem::find(line, JSON).is_some(),
        _ => false,
    }
}

/// Whether a whole log is that of a run that died before its totals: letters, of which one is RSpec's alone.
pub(crate) fn may_be(lines: &[&[u8]]) -> bool {
    let mut full = lines.iter().map(|l| l.trim_ascii_end()).filter(|l| !l.is_empty()).peekable();
    full.peek().is_some()
        && lines.iter().any(|l| l.contains(&b'*'))
        && full.all(|l| letters(l).is_some() && l.contains(&b'.'))
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Rspec::default())
}

/// The places, as RSpec prints them.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let ids = again.ids.iter().map(|id| (*id).to_owned());
    vec![["rspec".to_owned()].into_iter().chain(ids).collect()]
}

#[derive(Clone, Copy, Default)]
struct Totals {
    examples: u64,
    failures: u64,
    pending: u64,
    errors: u64,
}

#[derive(Default)]
struct Rspec {
    over: Sessions,
    seen: bool,
    totals: Option<Totals>,
    seconds: Option<f64>,
    names: Names,
    /// Between the line of the time and the list of examples, where the totals stand.
    ending: bool,
    /// Classes and messages of the numbered failures, in their order.
    said: Vec<Failing>,
    in_failures: bool,
    /// By letters: passed, failed, pending.
    early: [u64; 3],
    json: Option<Box<Session>>,
    faults: Vec<String>,
    torn: bool,
}

impl Runner for Rspec {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some(&first) = line.first() else { return };
        match first {
            b'F' => {
                if let Some(seconds) = finished(line) {
                    if self.totals.is_some() {
                        self.close();
                    }
                    self.seen = true;
                    self.ending = true;
                    self.in_failures = false;
                    self.seconds = Some(seconds);
                } else if line == b"Failures:" {
                    self.in_failures = true;
                } else {
                    self.letters(line);
                }
            }
            b'0'..=b'9' if self.ending => self.totals = totals(line).or(self.totals),
            b'r' => {
                if let Some(id) = example(line) {
                    self.seen = true;
                    self.names.add(id, Outcome::Failed);
                }
            }
            b'A' if line.starts_with(b"An error occurred ") => {
                self.seen = true;
                scan::tell(&mut self.faults, scan::message(line));
            }
            b'{' if memmem::find(line, JSON).is_some() => {
                self.json = json(line).map(Box::new);
                self.seen |= self.json.is_some();
            }
            b' ' if self.in_failures => self.failure(line),
            b'.' | b'*' => self.letters(line),
            _ => self.torn |= scan::torn(line),
        }
    }

    fn idle(&self) -> bool {
        self.torn || !self.seen || self.totals.is_some() || self.json.is_some()
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        self.close();
        self.over.into_vec()
    }
}

impl Rspec {
    fn letters(&mut self, line: &[u8]) {
        if let Some(more) = letters(line).filter(|_| !self.ending) {
            self.early.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        }
    }

    fn failure(&mut self, line: &[u8]) {
        let text = line.trim_ascii();
        let indent = line.len() - line.trim_ascii_start().len();
        if indent < 5
            && let Some((n, rest)) = scan::leading(text)
            && rest.starts_with(b") ")
            && n == self.said.len() as u64 + 1
            && n < 100_000
        {
            self.said.push(Failing::new("", Outcome::Failed));
            return;
        }
        let Some(failing) = self.said.last_mut() else { return };
        if let Some(place) = text.strip_prefix(b"# ") {
            if failing.place.is_none() {
                failing.place = scan::place(place).filter(|(file, _)| file.starts_with("./"));
            }
        } else if text.starts_with(b"Failure/Error: ") {
            failing.message = None;
        } else if !text.is_empty() && failing.message.is_none() {
            // "ArgumentError:", and what it says on the next line; a failed expectation has no class.
            match text.strip_suffix(b":").and_then(scan::class) {
                Some(class) if failing.error_class.is_none() => failing.error_class = Some(class),
                _ => failing.message = Some(scan::message(text)),
            }
        }
    }

    fn close(&mut self) {
        let was = std::mem::take(self);
        self.over = was.over;
        if !was.seen && was.early == [0; 3] {
            return;
        }
        if let (None, Some(session)) = (was.totals, was.json) {
            self.over.push(*session);
            return;
        }
        let mut session = Session::at_zero(NAME);
        session.complete = was.totals.is_some();
        session.duration = was.seconds;
        session.faults = was.faults;
        let [passed, failed, pending] = was.early;
        let early = Totals { examples: passed + failed + pending, failures: failed, pending, errors: 0 };
        let t = was.totals.unwrap_or(early);
        count(&mut session, t);
        session.failing = was.names.if_named(t.failures).map(|mut names| {
            if names.len() == was.said.len() {
                for (failing, said) in names.iter_mut().zip(was.said) {
                    failing.error_class = said.error_class;
                    failing.message = said.message;
                    failing.place = said.place;
                }
            }
            names
        });
        self.over.push(session);
    }
}

/// `.FF*.`: passed, failed, pending.
fn letters(line: &[u8]) -> Option<[u64; 3]> {
    let mut out = [0; 3];
    for letter in line {
        match letter {
            b'.' => out[0] += 1,
            b'F' => out[1] += 1,
            b'*' => out[2] += 1,
            _ => return None,
        }
    }
    Some(out)
}

fn count(session: &mut Session, t: Totals) {
    session.counts.passed = Some(t.examples.saturating_sub(t.failures).saturating_sub(t.pending));
    session.counts.failed = Some(t.failures);
    session.counts.skipped = Some(t.pending);
    session.counts.errors = Some(t.errors);
}

/// `rspec ./x_spec.rb:3 # Math fails`, `rspec './x_spec.rb[1:2]' # Math fails`: the place.
fn example(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"rspec ")?;
    let rest = &rest[..memmem::find(rest, b" # ")?];
    let rest = scan::between(rest, b"'", b"'").unwrap_or(rest);
    let place = rest.starts_with(b"./") || rest.starts_with(b"/") || memmem::find(rest, b".rb").is_some();
    (place && matches!(rest.last(), Some(b'0'..=b'9' | b']'))).then_some(rest)
}

/// `Finished in 1 minute 0.5 seconds (files took 0.1 seconds to load)`.
fn finished(line: &[u8]) -> Option<f64> {
    let rest = line.strip_prefix(b"Finished in ")?;
    scan::seconds(&rest[..memmem::find(rest, b" (files took ")?])
}

/// `10 examples, 4 failures, 3 pending, 1 error occurred outside of examples`.
fn totals(line: &[u8]) -> Option<Totals> {
    let mut out = Totals::default();
    for (i, part) in line.split(|b| *b == b',').enumerate() {
        let (n, word) = scan::counted(part.trim_ascii())?;
        match word {
            b"example" | b"examples" if i == 0 => out.examples = n,
            b"failure" | b"failures" if i == 1 => out.failures = n,
            b"pending" => out.pending = n,
            _ if word.ends_with(b" occurred outside of examples") => out.errors = n,
            _ => return None,
        }
    }
    Some(out)
}

/// The object of `--format json`. Of one too long to be kept whole, the totals stand at its end.
fn json(line: &[u8]) -> Option<Session> {
    let mut session = Session::at_zero(NAME);
    session.complete = true;
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        let at = memmem::rfind(line, JSON)? + JSON.len();
        let t = totals(&line[at..at + memchr::memchr(b'"', &line[at..])?])?;
        count(&mut session, t);
        session.failing = (t.failures == 0).then(Vec::new);
        return Some(session);
    };
    let summary = &value["summary"];
    let n = |key: &str| summary[key].as_u64().unwrap_or(0);
    let t = Totals {
        examples: n("example_count"),
        failures: n("failure_count"),
        pending: n("pending_count"),
        errors: n("errors_outside_of_examples_count"),
    };
    count(&mut session, t);
    session.duration = summary["duration"].as_f64();
    let mut names = Names::default();
    for example in value["examples"].as_array()?.iter().filter(|e| e["status"] == "failed") {
        let (file, line) =
            (example["file_path"].as_str().unwrap_or_default(), example["line_number"].as_u64());
        let id = format!("{file}:{}", line.unwrap_or(0));
        if let Some(failing) = names.add(id.as_bytes(), Outcome::Failed) {
            let said = &example["exception"];
            failing.error_class =
                said["class"].as_str().map(|c| c.rsplit("::").next().unwrap_or(c).to_owned());
            failing.message = said["message"].as_str().and_then(|m| m.lines().next()).map(str::to_owned);
            failing.place = line.map(|n| (file.to_owned(), n));
        }
    }
    session.failing = names.if_named(t.failures);
    Some(session)
}
