//! CTest: a line for each test, the share that passed, and the lists of what did not run and what failed.

use crate::report::{Outcome, Session, Slow};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::sessions::Sessions;
use memchr::memmem;

const NAME: &str = "ctest";

/// Whether a line opens output of CTest.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'T') => line.starts_with(b"Test project /"),
        Some(b'N') => line == b"No tests were found!!!",
        Some(b' ') => {
            line.starts_with(b"    Start ") && memmem::find(line, b": ").is_some() && started(line).is_some()
        }
        Some(b'0'..=b'9') => total(line).is_some() || Result::of(line).is_some(),
        _ => false,
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Ctest::default())
}

/// A pattern of the whole names.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let names: Vec<String> = again.ids.iter().map(|id| scan::pattern(id)).collect();
    let words = ["ctest", "-j1", "--output-on-failure", "-R"].map(str::to_owned);
    vec![words.into_iter().chain([format!("^({})$", names.join("|"))]).collect()]
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Listing {
    #[default]
    No,
    NotRun,
    Failed,
}

#[derive(Default)]
struct Ctest {
    over: Sessions,
    seen: bool,
    /// Failed, and out of how many.
    total: Option<(u64, u64)>,
    none: bool,
    seconds: Option<f64>,
    listing: Listing,
    listed: Names,
    skipped: u64,
    disabled: u64,
    early: Names,
    passed: u64,
    early_skipped: u64,
    running: Vec<(u64, Vec<u8>)>,
    last: Vec<u8>,
    slowest: Vec<Slow>,
    over_now: bool,
}

impl Runner for Ctest {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        match line.first() {
            Some(b'T') if line.starts_with(b"Test project /") => {
                if self.total.is_some() || self.none {
                    self.close();
                }
                self.seen = true;
            }
            Some(b'T') if line.starts_with(b"The following tests did not run:") => {
                self.listing = Listing::NotRun;
            }
            Some(b'T') if line.starts_with(b"The following tests FAILED:") => self.listing = Listing::Failed,
            Some(b'T') if line.starts_with(b"Total Test time (real) =") => {
                self.seconds = scan::seconds(&line[24..]);
            }
            Some(b'N') if line == b"No tests were found!!!" => {
                self.seen = true;
                self.none = true;
            }
            Some(b'E') if line.starts_with(b"Errors while running CTest") => self.listing = Listing::No,
            Some(b'\t') if self.listing != Listing::No => self.list(line),
            Some(b' ' | b'0'..=b'9') => self.test(line),
            _ => self.over_now |= scan::torn(line),
        }
    }

    fn idle(&self) -> bool {
        self.over_now || !self.seen || self.none || self.seconds.is_some()
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        self.close();
        self.over.into_vec()
    }
}

impl Ctest {
    fn test(&mut self, line: &[u8]) {
        if let Some(found) = total(line) {
            self.seen = true;
            self.total = Some(found);
        } else if let Some((n, name)) = started(line) {
            self.seen = true;
            if self.running.len() < 10_000 {
                self.running.push((n, name.to_vec()));
            }
            self.last.clear();
            self.last.extend_from_slice(name);
        } else if let Some(result) = Result::of(line) {
            self.seen = true;
            self.running.retain(|(n, _)| *n != result.number);
            self.last.clear();
            self.last.extend_from_slice(result.name);
            match result.how {
                How::Passed => self.passed += 1,
                How::Skipped => self.early_skipped += 1,
                How::Disabled => {}
                How::Failed(outcome) => {
                    self.early.add(result.name, outcome);
                }
            }
            if result.seconds > 0.0 && self.slowest.len() < 10_000 {
                self.slowest.push(Slow { id: scan::text(result.name), phase: None, seconds: result.seconds });
            }
        }
    }

    /// `1 - unit.mix (Failed)` behind a tab; labels, where there are any, stand behind.
    fn list(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        let Some(rest) = scan::leading(line).and_then(|(_, r)| r.strip_prefix(b" - ")) else { return };
        let Some(open) = memmem::rfind(rest, b" (") else { return };
        let why = &rest[open + 2..];
        let why = &why[..memchr::memchr(b')', why).unwrap_or(why.len())];
        match self.listing {
            Listing::NotRun => match why {
                b"Disabled" => self.disabled += 1,
                _ => self.skipped += 1,
            },
            Listing::Failed => {
                let name = rest[..open].trim_ascii_end();
                if let Some(failing) = self.listed.add(name, outcome(why)) {
                    failing.message = Some(scan::text(why));
                }
            }
            Listing::No => {}
        }
    }

    fn close(&mut self) {
        let was = std::mem::take(self);
        self.over = was.over;
        if !was.seen {
            return;
        }
        let mut session = Session::at_zero(NAME);
        session.complete = was.total.is_some() || was.none;
        // Nothing was run, and that took no time.
        session.duration = was.seconds.or(was.none.then_some(0.0));
        session.signs.no_tests = was.none;
        session.last_test = (!was.last.is_empty()).then(|| scan::text(&was.last));
        let counts = &mut session.counts;
        let mut failed = was.early.len();
        match was.total {
            Some((bad, all)) => {
                failed = bad;
                counts.passed = Some(all.saturating_sub(bad).saturating_sub(was.skipped));
                counts.skipped = Some(was.skipped);
            }
            None => {
                counts.passed = Some(was.passed);
                counts.skipped = Some(was.early_skipped);
                session.unfinished = was.running.iter().map(|(_, name)| scan::text(name)).collect();
            }
        }
        counts.failed = Some(failed);
        let names = if was.listed.is_empty() { was.early } else { was.listed };
        session.failing = names.if_named(failed);
        let mut slowest = was.slowest;
        slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        slowest.truncate(100);
        session.slowest = slowest;
        self.over.push(session);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Passed,
    Skipped,
    Disabled,
    Failed(Outcome),
}

fn outcome(why: &[u8]) -> Outcome {
    match why {
        b"Timeout" => Outcome::TimedOut,
        b"Subprocess aborted" | b"SEGFAULT" | b"ILLEGAL" | b"NUMERICAL" | b"INTERRUPT" | b"BUS ERROR" => {
            Outcome::Crashed
        }
        b"Not Run" => Outcome::Error,
        _ => Outcome::Failed,
    }
}

struct Result<'l> {
    number: u64,
    name: &'l [u8],
    how: How,
    seconds: f64,
}

impl Result<'_> {
    /// `3/9 Test #9: missing ..........................***Not Run   0.00 sec`.
    fn of(line: &[u8]) -> Option<Result<'_>> {
        let (_, rest) = scan::leading(line.trim_ascii_start())?;
        let (_, rest) = scan::leading(rest.strip_prefix(b"/")?)?;
        let (number, rest) =
            scan::leading(rest.strip_prefix(b" Test ")?.trim_ascii_start().strip_prefix(b"#")?)?;
        let body = rest.strip_prefix(b": ")?.strip_suffix(b" sec")?;
        let space = memchr::memrchr(b' ', body)?;
        let seconds = std::str::from_utf8(&body[space + 1..]).ok()?.parse().ok()?;
        let body = body[..space].trim_ascii_end();
        // "name .....   Passed", "name ...***Failed", "name ...Subprocess aborted***Exception: ": dots lead to the word.
        let dots = memmem::rfind(body, b"..").map(|at| at + 2)?;
        let name = body[..dots].trim_ascii_end();
        let dot = name.iter().rposition(|b| *b != b'.').map_or(0, |at| at + 1);
        let (name, word) = (name[..dot].trim_ascii_end(), body[dots..].trim_ascii());
        let how = match word {
            b"Passed" => How::Passed,
            b"***Skipped" => How::Skipped,
            b"***Not Run (Disabled)" => How::Disabled,
            b"***Timeout" => How::Failed(Outcome::TimedOut),
            b"***Not Run" => How::Failed(Outcome::Error),
            _ if memmem::find(word, b"***Exception").is_some() => How::Failed(Outcome::Crashed),
            _ => How::Failed(Outcome::Failed),
        };
        (!name.is_empty()).then_some(Result { number, name, how, seconds })
    }
}

/// `    Start 3: unit.crash`.
fn started(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.trim_ascii_start().strip_prefix(b"Start ")?;
    let (n, rest) = scan::leading(rest.trim_ascii_start())?;
    Some((n, rest.strip_prefix(b": ")?))
}

/// `50% tests passed, 4 tests failed out of 8`: failed, and all.
fn total(line: &[u8]) -> Option<(u64, u64)> {
    let (_, rest) = scan::leading(line)?;
    let (failed, rest) = scan::leading(rest.strip_prefix(b"% tests passed, ")?)?;
    let rest =
        rest.strip_prefix(b" tests failed out of ").or_else(|| rest.strip_prefix(b" test failed out of "))?;
    Some((failed, scan::number(rest.trim_ascii_end())?))
}
