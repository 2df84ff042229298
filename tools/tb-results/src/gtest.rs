//! GoogleTest: `[ RUN      ]` and its ends, and the trailer that lists skipped and failed tests once more.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names, Slowest};
use crate::sessions::Sessions;
use memchr::memmem;

const NAME: &str = "gtest";

/// Whether a line opens output of GoogleTest.
pub(crate) fn opens(line: &[u8]) -> bool {
    line.first() == Some(&b'[')
        && (line.starts_with(b"[==========] Running ")
            || line.starts_with(b"[ RUN      ] ")
            || ended(line).is_some())
        || line.starts_with(b"Running main() from ") && memmem::find(line, b"gtest_main.cc").is_some()
        || line.starts_with(b"Note: Google Test filter = ")
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Gtest::default())
}

/// The binary that was called, with a filter; the log does not name it.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let binary = again.command.and_then(|c| c.first());
    binary.map(|b| vec![b.clone(), format!("--gtest_filter={}", again.ids.join(":"))]).into_iter().collect()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Listing {
    #[default]
    No,
    Skipped,
    Failed,
}

#[derive(Default)]
struct Gtest {
    over: Sessions,
    seen: bool,
    /// The tests that ran, and how long, from the line at the end.
    ran: Option<(u64, Option<f64>)>,
    passed: Option<u64>,
    skipped: Option<u64>,
    failed: Option<u64>,
    listing: Listing,
    listed: Names,
    /// Results line by line.
    results: [u64; 3],
    /// Failures by those lines, and whether a report of a failed check came before.
    early: Vec<(Vec<u8>, bool)>,
    checked: Option<(String, u64)>,
    places: Names,
    /// The last test has begun and not ended.
    running: bool,
    announced: bool,
    last: Vec<u8>,
    slowest: Slowest,
    faults: Vec<String>,
    torn: bool,
}

impl Runner for Gtest {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some(at) = memchr::memchr(b'[', line) else { return self.other(line) };
        if at > 0 && !self.glued(&line[at..]) {
            // A test's output without line end may stand before the result.
            let Some(found) = line
                .windows(13)
                .position(|w| w == b"[       OK ] " || w == b"[  FAILED  ] " || w == b"[  SKIPPED ] ")
            else {
                return self.other(line);
            };
            return self.mark(&line[found..]);
        }
        self.mark(&line[at..]);
    }

    fn idle(&self) -> bool {
        self.torn || !self.seen || self.passed.is_some()
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        self.close();
        self.over.into_vec()
    }
}

impl Gtest {
    fn glued(&self, rest: &[u8]) -> bool {
        rest.starts_with(b"[       OK ] ")
            || rest.starts_with(b"[  FAILED  ] ")
            || rest.starts_with(b"[  SKIPPED ] ")
    }

    fn other(&mut self, line: &[u8]) {
        if let Some(said) = line.strip_suffix(b": Failure") {
            self.checked = Some(scan::place(said).unwrap_or_default());
        } else if scan::torn(line) {
            self.torn = true;
        } else if line.starts_with(b"Running main() from ") {
            self.seen = true;
        }
    }

    fn mark(&mut self, line: &[u8]) {
        let (Some(mark), Some(rest)) = (line.get(..12), line.get(13..)) else { return self.other(line) };
        match mark {
            b"[==========]" => self.frame(rest),
            b"[ RUN      ]" => {
                self.seen = true;
                self.announced = true;
                self.checked = None;
                self.last.clear();
                self.last.extend_from_slice(rest);
                self.running = true;
            }
            b"[       OK ]" => self.result(rest, 0),
            b"[  PASSED  ]" if self.ran.is_some() => {
                self.passed = number_of_tests(rest).or(self.passed);
                self.listing = Listing::No;
            }
            b"[  SKIPPED ]" if self.ran.is_some() && self.passed.is_some() => {
                if let Some(n) = number_of_tests(rest) {
                    self.skipped = Some(n);
                    self.listing = Listing::Skipped;
                }
            }
            b"[  FAILED  ]" if self.ran.is_some() && self.passed.is_some() => match number_of_tests(rest) {
                Some(n) => {
                    self.failed = Some(n);
                    self.listing = Listing::Failed;
                }
                None if self.listing == Listing::Failed => {
                    self.listed.add(own(rest), Outcome::Failed);
                }
                None => {}
            },
            b"[  SKIPPED ]" => self.result(rest, 2),
            b"[  FAILED  ]" => self.result(rest, 1),
            _ => self.other(line),
        }
    }

    fn frame(&mut self, rest: &[u8]) {
        if rest.starts_with(b"Running ") {
            self.close();
            self.seen = true;
        } else if let Some(found) = ended_at(rest) {
            self.seen = true;
            self.ran = Some(found);
            self.running = false;
        }
    }

    fn result(&mut self, rest: &[u8], kind: usize) {
        let Some((name, seconds)) = timed(rest) else { return };
        // What a test prints in this form names another test than the one that runs.
        if self.announced && !(self.running && self.last == name) {
            return;
        }
        self.seen = true;
        self.running = false;
        self.results[kind] += 1;
        self.last.clear();
        self.last.extend_from_slice(name);
        self.slowest.add(seconds, || scan::text(name));
        let checked = self.checked.take();
        if kind == 1 && self.early.len() < 100_000 {
            self.early.push((name.to_vec(), checked.is_some()));
            if let Some(known) = self.places.add(name, Outcome::Failed) {
                known.place = checked.filter(|(file, _)| !file.is_empty());
            }
        }
    }

    fn close(&mut self) {
        let was = std::mem::take(self);
        self.over = was.over;
        if !was.seen || was.ran.is_none() && !was.announced && was.results == [0; 3] {
            return;
        }
        let mut session = Session::at_zero(NAME);
        session.complete = was.passed.is_some();
        session.duration = was.ran.and_then(|(_, seconds)| seconds);
        session.last_test = (!was.last.is_empty()).then(|| scan::text(&was.last));
        session.unfinished = was.running.then(|| scan::text(&was.last)).into_iter().collect();
        session.slowest = was.slowest.into_vec();
        let skipped = was.skipped.unwrap_or(if was.passed.is_some() { 0 } else { was.results[2] });
        let (passed, failed) = match (was.passed, was.ran) {
            // With --gtest_brief failed tests are not counted.
            (Some(passed), Some((ran, _))) => {
                (passed, was.failed.unwrap_or_else(|| ran.saturating_sub(passed).saturating_sub(skipped)))
            }
            _ => (was.results[0], was.results[1]),
        };
        session.counts.passed = Some(passed);
        session.counts.failed = Some(failed);
        session.counts.skipped = Some(skipped);
        let names = if was.listed.is_empty() { early(was.early, failed) } else { Some(was.listed) };
        let mut places = was.places;
        session.failing = names.map(|names| {
            let mut all = names.into_vec();
            for failing in &mut all {
                failing.place = places.get(failing.id.as_bytes()).and_then(|p| p.place.clone());
            }
            all
        });
        session.faults = was.faults;
        self.over.push(session);
    }
}

/// The failures that the lines named: all of them, or those behind a failed check, if that makes the number.
fn early(all: Vec<(Vec<u8>, bool)>, failed: u64) -> Option<Names> {
    let of = |checked: bool| {
        let mut names = Names::default();
        for (name, has) in &all {
            if *has || !checked {
                names.add(name, Outcome::Failed);
            }
        }
        names
    };
    [of(false), of(true)].into_iter().find(|names| names.len() == failed)
}

/// `8 tests from 3 test suites ran. (12 ms total)`.
fn ended_at(rest: &[u8]) -> Option<(u64, Option<f64>)> {
    let (n, rest) = scan::leading(rest)?;
    let at = memmem::find(rest, b" ran.")?;
    let known = rest.starts_with(b" tests from ") || rest.starts_with(b" test from ");
    let total = scan::between(rest[at + 5..].trim_ascii(), b"(", b" total)");
    known.then(|| (n, total.and_then(scan::seconds)))
}

fn ended(line: &[u8]) -> Option<(u64, Option<f64>)> {
    ended_at(line.strip_prefix(b"[==========] ")?)
}

/// `4 tests.`, `1 test, listed below:`.
fn number_of_tests(rest: &[u8]) -> Option<u64> {
    let (n, rest) = scan::leading(rest)?;
    let rest = rest.strip_prefix(b" test")?;
    let rest = rest.strip_prefix(b"s").unwrap_or(rest);
    (rest == b"." || rest == b", listed below:").then_some(n)
}

/// `A.B, where GetParam() = 3 (0 ms)`: the name and how long.
fn timed(rest: &[u8]) -> Option<(&[u8], f64)> {
    let body = rest.strip_suffix(b")")?;
    let (name, time) = body.split_at(body.iter().rposition(|b| *b == b'(')?);
    Some((own(name.strip_suffix(b" ")?), scan::seconds(&time[1..])?))
}

/// The name without the value of its parameter.
fn own(name: &[u8]) -> &[u8] {
    if !name.contains(&b' ') {
        return name;
    }
    let cut = [&b", where "[..], b" ("].iter().filter_map(|w| memmem::find(name, w)).min();
    &name[..cut.unwrap_or(name.len())]
}
