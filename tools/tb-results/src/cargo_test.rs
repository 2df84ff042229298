//! `cargo test`: libtest's usual, quiet and JSON output, target by target.
//!
//! A target announces how many tests it runs and ends in a `test result:` line. Tests print such lines too, so a
//! result counts if its numbers make up what was announced, and the last such one wins. A target without a result
//! has died.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use memchr::memmem::{self, Finder};
use std::borrow::Cow;
use std::sync::LazyLock;

const NAME: &str = "cargo-test";
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("error: "));
static DOTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" ... "));

/// Whether a line opens output of `cargo test`.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'r') => announced(line).is_some(),
        Some(b't') => outcome_line(line).is_some_and(|(_, o)| o != Word::Running) || result(line).is_some(),
        Some(b' ') => {
            line.starts_with(b"     Running ") && line.ends_with(b")") || line.starts_with(b"   Doc-tests ")
        }
        Some(b'e') => line.starts_with(b"error: could not compile `") || is_cargos_end(line),
        Some(b'{') => line.starts_with(br#"{ "type": "suite", "event": "started""#),
        _ => false,
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Cargo::default())
}

/// One command line: names are given whole, and doc-tests' names are no names of other tests.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let mut words: Vec<String> = ["cargo", "test", "--no-fail-fast", "--"].map(str::to_owned).to_vec();
    words.extend(again.ids.iter().map(|id| (*id).to_owned()));
    words.extend(["--exact", "--test-threads=1"].map(str::to_owned));
    vec![words]
}

/// Where in a target its last line was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Tests run.
    #[default]
    Tests,
    /// What they wrote.
    Output,
    /// Under `failures:`.
    Names,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    filtered: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.ignored = self.ignored.saturating_add(other.ignored);
        self.filtered = self.filtered.saturating_add(other.filtered);
    }
}

/// One test binary.
#[derive(Default)]
struct Target {
    announced: u64,
    phase: Phase,
    /// What the lines of the tests said so far.
    tally: Tally,
    /// Failing tests by those lines.
    failed: Vec<Vec<u8>>,
    /// Failing tests by the last list of failures.
    listed: Vec<Vec<u8>>,
    result: Option<Tally>,
    current: Option<Vec<u8>>,
    last: Vec<u8>,
}

#[derive(Default)]
struct Cargo {
    target: Option<Target>,
    sum: Tally,
    targets: u64,
    dead: u64,
    names: Names,
    /// Where threads panicked and what they said: it comes before the list of names.
    panics: Names,
    panicking: Option<Vec<u8>>,
    uncompiled: u64,
    /// Something was said that only cargo or libtest says.
    sure: bool,
    nextest: bool,
    over: bool,
    unfinished: Vec<String>,
    last: Vec<u8>,
    faults: Vec<String>,
}

impl Runner for Cargo {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some(&first) = line.first() else { return };
        if let Some(name) = self.panicking.take()
            && let Some(known) = self.panics.get(&name)
        {
            known.message.get_or_insert_with(|| scan::message(line));
        }
        match first {
            b'r' if announced(line).is_some() => return self.announce(line),
            b'{' if line.starts_with(br#"{ "type": ""#) => {
                self.sure = true;
                return self.event(line);
            }
            b' ' if line.starts_with(b"     Running ") || line.starts_with(b"   Doc-tests ") => {
                self.sure = true;
                if self.target.as_ref().is_some_and(|t| t.result.is_some()) {
                    self.close();
                }
            }
            b'e' if line.starts_with(b"error: could not compile `") => {
                self.uncompiled += 1;
                self.sure = true;
                self.over = true;
                return;
            }
            // nextest has cargo build the tests.
            b'e' if line.starts_with(b"error: command `")
                && memmem::find(line, b" test --no-run ").is_some() =>
            {
                self.nextest = self.uncompiled > 0;
            }
            b't' if line.starts_with(b"thread '") => self.panicked(line),
            b' ' if self.dead > 0 && memmem::find(line, b" (signal: ").is_some() => self.death(line),
            _ => {}
        }
        if let Some(at) = cut(line) {
            self.sure = true;
            if let Some(target) = &mut self.target {
                target.line(&line[..at]);
            }
            self.close();
            if memmem::find(&line[at..], b" (signal: ").is_some() {
                self.death(line);
            }
            self.over = true;
            return;
        }
        self.over |= scan::torn(line);
        if let Some(target) = &mut self.target {
            target.line(line);
        }
    }

    fn idle(&self) -> bool {
        self.over || self.target.as_ref().is_none_or(|t| t.result.is_some())
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        self.close();
        // "running 3 tests" alone may be anybody's.
        let nothing = !self.sure && self.sum == Tally::default();
        if self.targets == 0 && self.uncompiled == 0 || nothing {
            return Vec::new();
        }
        let mut session = Session::at_zero(if self.nextest { "nextest" } else { NAME });
        let counts = &mut session.counts;
        let ran = (self.targets > 0).then_some(self.sum);
        counts.passed = ran.map(|s| s.passed);
        counts.failed = ran.map(|s| s.failed);
        counts.skipped = ran.map(|s| s.ignored);
        counts.deselected = Some(self.sum.filtered);
        counts.errors = Some(self.uncompiled);
        session.signs.build_error = self.uncompiled > 0;
        session.signs.died = self.dead > 0;
        session.complete = self.dead == 0 && !self.nextest;
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        session.unfinished = self.unfinished;
        session.faults = self.faults;
        session.failing = self.names.if_named(self.sum.failed);
        vec![session]
    }
}

impl Cargo {
    fn announce(&mut self, line: &[u8]) {
        // A test may print this too; its own target has no result yet.
        if self.target.as_ref().is_some_and(|t| t.result.is_none()) {
            return;
        }
        self.close();
        self.over = false;
        self.target = Some(Target { announced: announced(line).unwrap_or(0), ..Target::default() });
    }

    fn close(&mut self) {
        let Some(target) = self.target.take() else { return };
        self.targets += 1;
        let names =
            if target.result.is_some() && !target.listed.is_empty() { target.listed } else { target.failed };
        for name in names {
            let Some(failing) = self.names.add(&name, Outcome::Failed) else { continue };
            if let Some(said) = self.panics.get(&name) {
                failing.place = said.place.clone();
                failing.message = said.message.clone();
            }
        }
        if !target.last.is_empty() {
            self.last = target.last;
        }
        if target.result.is_none() {
            self.dead += 1;
            target.current.iter().for_each(|name| scan::tell(&mut self.unfinished, scan::text(name)));
        }
        self.sum.add(target.result.unwrap_or(target.tally));
    }

    /// `thread 'tests::a' (7) panicked at src/lib.rs:3:5:`, and before 1.73 `panicked at 'why', src/lib.rs:3:5`.
    fn panicked(&mut self, line: &[u8]) {
        let Some(end) = memmem::find(line, b"' ") else { return };
        let Some(at) = memmem::find(line, b" panicked at ") else { return };
        let (Some(name), rest) = (line.get(8..end), &line[at + 13..]) else { return };
        let Some(known) = self.panics.add(name, Outcome::Failed) else { return };
        if known.place.is_some() {
            return;
        }
        match rest.strip_prefix(b"'").and_then(|r| Some((r, memmem::rfind(r, b"', ")?))) {
            Some((said, end)) => {
                known.message = Some(scan::message(&said[..end]));
                known.place = scan::place(&said[end + 3..]);
            }
            None => {
                known.place = scan::place(rest);
                self.panicking = Some(name.to_vec());
            }
        }
    }

    fn death(&mut self, line: &[u8]) {
        let Some(at) = memmem::rfind(line, b" (signal: ") else { return };
        if self.faults.len() < 20 {
            let what = line[at + 10..].strip_suffix(b")").unwrap_or(&line[at + 10..]);
            scan::tell(&mut self.faults, format!("a test binary was ended by signal {}", scan::text(what)));
        }
    }

    /// A line of libtest's JSON.
    fn event(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(line) else { return };
        if event.kind == "suite" {
            if event.event == "started" {
                if self.target.as_ref().is_none_or(|t| t.result.is_some()) {
                    self.close();
                    self.target = Some(Target { announced: event.test_count, ..Target::default() });
                }
            } else if let Some(target) = &mut self.target {
                target.result = Some(Tally {
                    passed: event.passed,
                    failed: event.failed,
                    ignored: event.ignored,
                    filtered: event.filtered_out,
                });
            }
            return;
        }
        let Some(target) = self.target.as_mut().filter(|_| !event.name.is_empty()) else { return };
        let word = match &event.event[..] {
            "ok" => Word::Ok,
            "failed" => Word::Failed,
            "ignored" => Word::Ignored,
            "started" => Word::Running,
            _ => return,
        };
        target.test(event.name.as_bytes(), word);
        if let Some(said) = event.stdout {
            for line in said.lines().map(str::as_bytes).filter(|l| l.starts_with(b"thread '")) {
                self.panicked(line);
            }
            self.panicking = None;
        }
    }
}

/// A line of libtest's JSON.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Event<'e> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'e, str>,
    #[serde(borrow)]
    event: Cow<'e, str>,
    #[serde(borrow)]
    name: Cow<'e, str>,
    stdout: Option<String>,
    test_count: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
    filtered_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Ok,
    Failed,
    Ignored,
    /// Nothing yet, or what the test wrote.
    Running,
}

impl Target {
    fn line(&mut self, line: &[u8]) {
        match line {
            b"failures:" => {
                self.phase = Phase::Names;
                self.listed.clear();
                return;
            }
            b"successes:" => self.phase = Phase::Output,
            _ => {}
        }
        if line.first() == Some(&b't')
            && let Some((result, measured)) = result(line)
        {
            let all = [result.passed, result.failed, result.ignored, measured];
            if all.iter().fold(0, |sum, n| u64::saturating_add(sum, *n)) == self.announced {
                self.result = Some(result);
            }
            return;
        }
        match self.phase {
            Phase::Names => match line.strip_prefix(b"    ") {
                Some(name) if !name.starts_with(b" ") => {
                    if self.listed.len() < 100_000 {
                        self.listed.push(name.to_vec());
                    }
                }
                _ if line.is_empty() => {}
                _ => self.phase = Phase::Output,
            },
            Phase::Tests => self.progress(line),
            Phase::Output => {}
        }
    }

    fn progress(&mut self, line: &[u8]) {
        if let Some((name, word)) = outcome_line(line) {
            return self.test(name, word);
        }
        let word = match line {
            b"ok" => Word::Ok,
            b"FAILED" => Word::Failed,
            b"ignored" => Word::Ignored,
            _ => {
                if let Some(name) = line.strip_suffix(b" --- FAILED") {
                    self.test(own(name), Word::Failed);
                } else {
                    self.letters(line);
                }
                return;
            }
        };
        if let Some(name) = self.current.take() {
            self.test(&name, word);
        }
    }

    fn test(&mut self, name: &[u8], word: Word) {
        self.last.clear();
        self.last.extend_from_slice(name);
        if word == Word::Running {
            self.current = Some(name.to_vec());
            return;
        }
        if self.current.as_deref() == Some(name) {
            self.current = None;
        }
        match word {
            Word::Ok => self.tally.passed += 1,
            Word::Ignored => self.tally.ignored += 1,
            Word::Failed | Word::Running => {
                self.tally.failed += 1;
                if self.failed.len() < 100_000 {
                    self.failed.push(name.to_vec());
                }
            }
        }
    }

    /// `..i.F` and `..i. 8/12` of a quiet run.
    fn letters(&mut self, line: &[u8]) {
        let letters = line.iter().take_while(|b| matches!(b, b'.' | b'i' | b'F')).count();
        let rest = &line[letters..];
        let counter =
            rest.strip_prefix(b" ").and_then(scan::leading).is_some_and(|(_, of)| of.starts_with(b"/"));
        if letters == 0 || !(rest.is_empty() || counter) {
            return;
        }
        for letter in &line[..letters] {
            match letter {
                b'.' => self.tally.passed += 1,
                b'i' => self.tally.ignored += 1,
                _ => self.tally.failed += 1,
            }
        }
    }
}

/// `running 12 tests`.
fn announced(line: &[u8]) -> Option<u64> {
    let (n, rest) = scan::leading(line.strip_prefix(b"running ")?)?;
    matches!(rest, b" test" | b" tests").then_some(n)
}

/// `test a::b ... ok`, `test a - should panic ... FAILED`, `test a ... ignored, why`, `test a ... `.
fn outcome_line(line: &[u8]) -> Option<(&[u8], Word)> {
    let rest = line.strip_prefix(b"test ")?;
    let at = DOTS.find(rest)?;
    let word = match &rest[at + 5..] {
        b"ok" => Word::Ok,
        b"FAILED" => Word::Failed,
        b"ignored" => Word::Ignored,
        word if word.starts_with(b"ignored, ") => Word::Ignored,
        // `--report-time`, and the time limit of old versions.
        word if word.starts_with(b"ok <") => Word::Ok,
        word if word.starts_with(b"FAILED <") => Word::Failed,
        _ => Word::Running,
    };
    Some((own(&rest[..at]), word))
}

/// A test's name without what libtest adds about its kind.
fn own(name: &[u8]) -> &[u8] {
    let kinds: [&[u8]; 3] = [b" - should panic", b" - compile fail", b" - compile"];
    kinds.iter().find_map(|kind| name.strip_suffix(*kind)).unwrap_or(name)
}

/// `test result: ok. 4 passed; 6 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s`, and how many
/// were measured.
fn result(line: &[u8]) -> Option<(Tally, u64)> {
    let rest = line.strip_prefix(b"test result: ")?;
    let mut rest = rest.strip_prefix(b"ok. ").or_else(|| rest.strip_prefix(b"FAILED. "))?;
    let mut numbers = [0; 5];
    let words: [&[u8]; 5] = [b" passed", b" failed", b" ignored", b" measured", b" filtered out"];
    for (number, word) in numbers.iter_mut().zip(words) {
        let (n, more) = scan::leading(rest)?;
        *number = n;
        rest = more.strip_prefix(word)?;
        rest = rest.strip_prefix(b"; ").unwrap_or(rest);
    }
    let [passed, failed, ignored, measured, filtered] = numbers;
    Some((Tally { passed, failed, ignored, filtered }, measured))
}

/// Where cargo's own last words about a target begin: behind whatever the target was writing.
fn cut(line: &[u8]) -> Option<usize> {
    let at = ERROR.find(line)?;
    is_cargos_end(&line[at..]).then_some(at)
}

fn is_cargos_end(line: &[u8]) -> bool {
    let ends: [&[u8]; 4] = [
        b"error: test failed, to rerun pass ",
        b"error: doctest failed, to rerun pass ",
        b"error: test failed, to rerun",
        b"error: process didn't exit successfully: `",
    ];
    ends.iter().any(|end| line.starts_with(end))
}
