//! `go test`, its text and its JSON, package by package.
//!
//! Results are read from the text in both: before Go 1.20 the JSON's own results are fooled by what tests print.
//! Without -v passing tests are not named, so that nobody can count them. A result may stand behind output that
//! had no line end; where tests were announced (`=== RUN`), only announced ones have results, and a package that
//! is `ok` has no failures.

mod lines;

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Hashes, Names, Slowest};
use lines::{ACTION, Ended, OUTPUT, PACKAGE, Word, announced, field, package, result, worth};
use memchr::memmem::{self, Finder};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

const NAME: &str = "go";

static GO: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(".go:"));

/// Whether a line opens output of `go test`.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'=') => line.starts_with(b"=== RUN   "),
        Some(b'-') => result(line).is_some(),
        Some(b'o' | b'F' | b'?') => package(line).is_some(),
        Some(b'p') => line.starts_with(b"panic: test timed out after "),
        Some(b'{') => {
            line.starts_with(b"{\"Time\":\"") && memmem::find(line, b"\"Action\":\"").is_some()
                || line.starts_with(b"{\"ImportPath\":\"")
                    && memmem::find(line, b"\"Action\":\"build-").is_some()
        }
        _ => false,
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Go::default())
}

/// A command line for each package, the selection level by level.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for id in &again.ids {
        let (package, test) = test_dot(id).map_or(("./...", *id), |at| (&id[..at], &id[at + 1..]));
        packages.entry(package).or_default().push(test);
    }
    let mut out = Vec::new();
    for (package, tests) in packages {
        // A parent runs all its subtests; one that failed only through a subtest need not be run for itself.
        let leaves: Vec<&str> = tests
            .iter()
            .copied()
            .filter(|t| !tests.iter().any(|o| o.strip_prefix(t).is_some_and(|rest| rest.starts_with('/'))))
            .collect();
        let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for leaf in leaves {
            groups.entry(leaf.split('/').count()).or_default().push(leaf);
        }
        for (levels, tests) in groups {
            let level = |i: usize| {
                let mut names: Vec<String> =
                    tests.iter().filter_map(|t| t.split('/').nth(i)).map(scan::pattern).collect();
                names.dedup();
                if names.len() == 1 { format!("^{}$", names[0]) } else { format!("^({})$", names.join("|")) }
            };
            let pattern: Vec<String> = (0..levels).map(level).collect();
            let words = ["go", "test", "-count=1", "-p=1", "-parallel=1", "-run"].map(str::to_owned);
            out.push(words.into_iter().chain([pattern.join("/"), package.to_owned()]).collect());
        }
    }
    out
}

/// Where the name of the test begins in `example.com/mix/calc.TestSubs/a.b`: behind a dot that Test, Example,
/// Fuzz or Benchmark follows.
fn test_dot(id: &str) -> Option<usize> {
    let kinds = ["Test", "Example", "Fuzz", "Benchmark"];
    id.match_indices('.').map(|(at, _)| at).find(|at| kinds.iter().any(|k| id[at + 1..].starts_with(k)))
}

/// What was heard of a package that has not ended.
#[derive(Default)]
struct Package {
    announced: Hashes,
    running: Vec<Vec<u8>>,
    /// The names of those that run no more: room for the next.
    spare: Vec<Vec<u8>>,
    passed: u64,
    skipped: u64,
    failures: Vec<Vec<u8>>,
    /// The first line with a place that each test logged, since the last test that is no subtest began.
    notes: Vec<(u64, Vec<u8>)>,
    /// The place and the words of those that failed.
    said: HashMap<u64, (String, u64, String)>,
    panic: Option<String>,
    timed_out: bool,
    /// The last line was the result of a test that failed: a panic behind it is that test's.
    just_failed: bool,
    /// A panic that is no test's.
    crashed: bool,
    /// The tests listed under `running tests:`.
    listing: bool,
    stuck: Vec<Vec<u8>>,
}

impl Package {
    fn is_new(&self) -> bool {
        self.announced.is_empty() && self.failures.is_empty() && self.panic.is_none()
    }

    /// `    calc_test.go:4: why` under a failure.
    fn explain(&mut self, test: u64, line: &[u8]) {
        let said = line.trim_ascii_start();
        let Some((file, n)) = scan::place(said).filter(|(file, _)| file.ends_with(".go")) else { return };
        let at = memmem::find(said, b": ").map_or(said.len(), |at| at + 2);
        self.said.entry(test).or_insert_with(|| (file, n, scan::message(&said[at..])));
    }

    /// A test runs no more. Mostly it is the one that was begun last. False if it did not run.
    fn ended(&mut self, name: &[u8]) -> bool {
        let at = self.running.iter().rposition(|r| r == name);
        self.spare.extend(at.map(|at| self.running.remove(at)));
        at.is_some()
    }

    /// A test was announced.
    fn began(&mut self, name: &[u8]) {
        self.announced.insert(scan::hash(name));
        if !self.notes.is_empty() && !name.contains(&b'/') {
            self.notes.clear();
        }
        self.ended(name);
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(name);
        self.running.push(kept);
    }
}

#[derive(Default)]
struct Go {
    seen: bool,
    /// Text has one package at a time.
    text: Package,
    /// JSON has them side by side.
    open: BTreeMap<String, Package>,
    names: Names,
    passed: u64,
    skipped: u64,
    failed: u64,
    /// Packages whose tests were not announced one by one.
    silent: u64,
    ran: u64,
    unbuilt: u64,
    died: bool,
    ended: bool,
    unfinished: Vec<String>,
    last: Vec<u8>,
    faults: Vec<String>,
    slowest: Slowest,
}

impl Runner for Go {
    fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        if text.starts_with(b"{\"") && self.event(text) {
            return;
        }
        self.text(text, "");
    }

    fn idle(&self) -> bool {
        self.ended && self.text.is_new() && self.open.values().all(Package::is_new)
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        let text = std::mem::take(&mut self.text);
        let left = std::mem::take(&mut self.open).into_values().chain([text]);
        let left: Vec<Package> = left.filter(|p| !p.is_new()).collect();
        let torn = !left.is_empty();
        for mut package in left {
            self.silent += u64::from(package.announced.is_empty());
            self.unfinished.extend(package.running.iter().map(|t| scan::text(t)));
            self.count(&mut package, "");
        }
        if !self.seen {
            return Vec::new();
        }
        let mut session = Session::at_zero(NAME);
        let named = self.silent == 0 && (self.ran > 0 || torn);
        let counts = &mut session.counts;
        counts.passed = named.then_some(self.passed);
        counts.skipped = named.then_some(self.skipped);
        counts.failed = Some(self.failed);
        counts.errors = Some(self.unbuilt);
        session.complete = !torn;
        session.signs.died = self.died;
        session.signs.build_error = self.unbuilt > 0 && self.ran == 0;
        session.signs.no_tests = self.ran == 0 && self.unbuilt == 0 && !torn;
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        session.unfinished = self.unfinished;
        session.faults = self.faults;
        session.slowest = self.slowest.into_vec();
        session.failing = self.names.if_named(self.failed);
        vec![session]
    }
}

impl Go {
    /// An event of `go test -json`; false if it is none.
    fn event(&mut self, line: &[u8]) -> bool {
        let Some(action) = field(line, &ACTION) else { return false };
        self.seen = true;
        match action {
            b"output" => {
                // Most output is of no interest, and need not be decoded to know that.
                let Some(raw) = field(line, &OUTPUT) else { return true };
                let said = raw.strip_suffix(b"\\n").unwrap_or(raw);
                if !said.ends_with(b"s)") && announced(said).is_none() && !worth(raw) {
                    return true;
                }
            }
            b"start" | b"run" | b"pause" | b"cont" => return true,
            b"pass" | b"fail" | b"skip" => {
                if memmem::find(line, b"\"Test\":").is_some() {
                    return true;
                }
            }
            b"build-output" => return true,
            b"build-fail" => {
                self.ended = true;
                return true;
            }
            _ => return true,
        }
        let package = field(line, &PACKAGE).and_then(|p| std::str::from_utf8(p).ok()).unwrap_or_default();
        match field(line, &OUTPUT) {
            Some(raw) => {
                let raw = raw.strip_suffix(b"\\n").unwrap_or(raw);
                if memchr::memchr(b'\\', raw).is_none() {
                    self.text(raw, package);
                } else if let Ok(output) = serde_json::from_slice::<String>(&[b"\"", raw, b"\""].concat()) {
                    self.text(output.as_bytes(), package);
                }
            }
            // The end of the package, if its text has not said so before.
            None => {
                let failed = action == b"fail";
                if self.known(package).is_some_and(|p| !p.is_new()) {
                    self.end(package, package.as_bytes(), if failed { Ended::Failed } else { Ended::Ok });
                }
            }
        }
        true
    }

    fn text(&mut self, line: &[u8], key: &str) {
        let Some(&first) = line.first() else { return };
        match first {
            b'o' | b'F' | b'?' => {
                if let Some((path, how)) = package(line) {
                    return self.end(key, path, how);
                }
                if line == b"FAIL" {
                    self.ended = true;
                }
            }
            b'm' | b'K' | b'S' | b'A' => self.ended |= scan::torn(line),
            _ => {}
        }
        if let Some((name, word, seconds)) = result(line) {
            return self.result(key, name, word, seconds);
        }
        if let Some(name) = announced(line) {
            return self.package(key).began(name);
        }
        match first {
            b'p' if line.starts_with(b"panic: ") => {
                let open = self.package(key);
                open.crashed |= !open.just_failed;
                open.timed_out |= line.starts_with(b"panic: test timed out after ");
                open.panic.get_or_insert_with(|| scan::message(line));
            }
            b'r' | b'\t' => {
                let Some(open) = self.known(key) else { return };
                if line.trim_ascii_start() == b"running tests:" {
                    open.listing = open.timed_out;
                } else if open.listing {
                    let name = line.trim_ascii_start().split(|b| *b == b' ').next().unwrap_or_default();
                    open.stuck.push(name.to_vec());
                }
            }
            b's' if line.starts_with(b"signal: ") => {
                self.package(key).panic.get_or_insert_with(|| scan::message(line));
            }
            b'g' => {
                if let Some(open) = self.known(key) {
                    open.listing = false;
                }
            }
            b' ' => {
                // "    calc_test.go:4: why" belongs to the failure above or to the test that runs.
                let Some(open) = self.known(key) else { return };
                if GO.find(line).is_none() {
                    return;
                }
                match (open.running.last(), open.failures.last()) {
                    (Some(test), _) => {
                        let test = scan::hash(test);
                        if open.notes.last().is_none_or(|(t, _)| *t != test) && open.notes.len() < 10_000 {
                            open.notes.push((test, line.to_vec()));
                        }
                    }
                    (None, Some(test)) => open.explain(scan::hash(test), line),
                    (None, None) => {}
                }
            }
            _ => {}
        }
    }

    fn package(&mut self, key: &str) -> &mut Package {
        self.seen = true;
        self.ended = false;
        match key {
            "" => &mut self.text,
            _ => self.open.entry(key.to_owned()).or_default(),
        }
    }

    /// A package of which something was heard.
    fn known(&mut self, key: &str) -> Option<&mut Package> {
        match key {
            "" => Some(&mut self.text),
            _ => self.open.get_mut(key),
        }
    }

    fn result(&mut self, key: &str, name: &[u8], word: Word, seconds: f64) {
        let open = self.package(key);
        // What ran was announced.
        if !open.ended(name) && !open.announced.is_empty() && !open.announced.contains(&scan::hash(name)) {
            return;
        }
        open.just_failed = word == Word::Fail;
        match word {
            Word::Pass => open.passed += 1,
            Word::Skip => open.skipped += 1,
            Word::Fail => {
                open.failures.push(name.to_vec());
                let test = scan::hash(name);
                if let Some(at) = open.notes.iter().position(|(t, _)| *t == test) {
                    let (_, line) = open.notes.swap_remove(at);
                    open.explain(test, &line);
                }
            }
        }
        self.last.clear();
        self.last.extend_from_slice(name);
        self.slowest.add(seconds, || scan::text(name));
    }

    /// The line of a package that ended.
    fn end(&mut self, key: &str, path: &[u8], how: Ended) {
        self.seen = true;
        self.ended = true;
        let mut package = match key {
            "" => std::mem::take(&mut self.text),
            _ => self.open.remove(key).unwrap_or_default(),
        };
        match how {
            Ended::Nothing => return,
            Ended::Unbuilt => {
                self.unbuilt += 1;
                return;
            }
            Ended::Ok | Ended::Failed => {}
        }
        self.ran += 1;
        self.silent += u64::from(package.announced.is_empty());
        if how == Ended::Ok && package.announced.is_empty() {
            // What looked like failures was output.
            package.failures.clear();
        }
        if how == Ended::Failed {
            let stuck = if package.stuck.is_empty() { &package.running } else { &package.stuck };
            // os.Exit in a test leaves it without a result, and so does a panic in another goroutine.
            let cut = !package.running.is_empty() && (package.panic.is_none() || package.crashed);
            if package.failures.is_empty() || package.timed_out || cut {
                self.died = true;
                let said =
                    package.panic.clone().unwrap_or_else(|| "it ended without a failing test".to_owned());
                if self.faults.len() < 100 {
                    scan::tell(&mut self.faults, format!("{}: {said}", scan::text(path)));
                }
                self.unfinished
                    .extend(stuck.iter().map(|t| format!("{}.{}", scan::text(path), scan::text(t))));
            }
        }
        self.count(&mut package, &scan::text(path));
        // Text has the next package behind this one, and most are of a size: its room is used again.
        if key.is_empty() && package.announced.capacity() < 10_000 {
            package.announced.clear();
            package.failures.clear();
            package.running.clear();
            let Package { announced, failures, running, spare, .. } = package;
            self.text = Package { announced, failures, running, spare, ..Package::default() };
        }
    }

    fn count(&mut self, package: &mut Package, path: &str) {
        self.passed += package.passed;
        self.skipped += package.skipped;
        self.failed += package.failures.len() as u64;
        let mut id = path.as_bytes().to_vec();
        if !id.is_empty() {
            id.push(b'.');
        }
        let before = id.len();
        for name in &package.failures {
            id.truncate(before);
            id.extend_from_slice(name);
            let Some(failing) = self.names.add(&id, Outcome::Failed) else { continue };
            if let Some((file, line, said)) = package.said.remove(&scan::hash(name)) {
                failing.place = Some((file, line));
                failing.message = Some(said);
            }
        }
    }
}
