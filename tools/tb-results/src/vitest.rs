//! Vitest: a line for each file (or, verbose, each test), headings for what failed, and totals under `Test Files`.

use crate::jest::json;
use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::sessions::Sessions;
use memchr::memmem::{self, Finder};
use std::collections::HashSet;
use std::sync::LazyLock;

const NAME: &str = "vitest";
/// What stands between a file, its suites and a test.
static LEVEL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" > "));

/// Whether a line opens output of Vitest.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b' ') => {
            version(line)
                || line.starts_with(b" Test Files  ") && line.ends_with(b")")
                || file_line(line).is_some()
        }
        Some(b'{') => line.starts_with(b"{\"numTotalTestSuites\":"),
        _ => false,
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Vitest::default())
}

/// A command line for each file.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let mut files: Vec<(&str, Vec<String>)> = Vec::new();
    for id in &again.ids {
        let (file, test) = id.split_once(" > ").unwrap_or((id, ""));
        let at = files.iter().position(|(f, _)| *f == file).unwrap_or_else(|| {
            files.push((file, Vec::new()));
            files.len() - 1
        });
        if !test.is_empty() {
            files[at].1.push(scan::pattern(&test.replace(" > ", " ")));
        }
    }
    let line = |(file, tests): (&str, Vec<String>)| {
        let mut words: Vec<String> =
            ["npx", "vitest", "run", "--no-file-parallelism", file].map(str::to_owned).to_vec();
        if !tests.is_empty() {
            words.extend(["-t".to_owned(), format!("^({})$", tests.join("|"))]);
        }
        words
    };
    files.into_iter().map(line).collect()
}

#[derive(Clone, Copy, Default)]
struct Totals {
    failed: u64,
    passed: u64,
    skipped: u64,
    xfailed: u64,
}

#[derive(Default)]
struct Vitest {
    over: Sessions,
    seen: bool,
    /// Under "Test Files", up to the duration.
    ending: bool,
    totals: Option<Totals>,
    unhandled: u64,
    seconds: Option<f64>,
    none: bool,
    ended: bool,
    names: Names,
    suites: HashSet<Vec<u8>>,
    heading: bool,
    /// What the lines of files and tests said.
    early: Totals,
    json: Option<Box<Session>>,
    died: bool,
    gate: bool,
    last: Vec<u8>,
    faults: Vec<String>,
}

impl Runner for Vitest {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some(&first) = line.first() else { return };
        match first {
            b' ' => self.indented(line),
            b'N' if line.starts_with(b"No test files found, exiting with code ") => {
                self.none = true;
                self.ended = true;
            }
            b'{' if line.starts_with(b"{\"numTotalTestSuites\":") => {
                self.json = json(line, NAME).map(Box::new);
            }
            _ => {
                self.said(line);
                self.ended |= scan::torn(line);
            }
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

impl Vitest {
    fn indented(&mut self, line: &[u8]) {
        if version(line) {
            if self.ended {
                self.close();
            }
            self.seen = true;
            return;
        }
        if line.starts_with(b" Test Files  ") {
            self.seen = true;
            self.ending = true;
            return;
        }
        if let Some(title) = line.strip_prefix(b" FAIL  ") {
            return self.heading(title);
        }
        if self.ending {
            return self.total(line.trim_ascii());
        }
        if let Some((mark, rest)) = file_line(line) {
            self.early_line(mark, rest);
        } else if let Some(place) = line.strip_prefix(" ❯ ".as_bytes())
            && let Some(failing) = self.names.last().filter(|f| f.place.is_none())
        {
            let place = place.rsplit(|b| *b == b' ').next().unwrap_or_default();
            failing.place = scan::place(place).filter(|(f, _)| !f.contains("node_modules"));
        }
    }

    fn total(&mut self, line: &[u8]) {
        if let Some(rest) = line.strip_prefix(b"Tests  ") {
            self.totals = totals(rest).or(self.totals);
        } else if let Some(rest) = line.strip_prefix(b"Errors  ") {
            self.unhandled = scan::leading(rest.trim_ascii()).map_or(0, |(n, _)| n);
        } else if let Some(rest) = line.strip_prefix(b"Duration  ") {
            let end = memchr::memchr(b'(', rest).unwrap_or(rest.len());
            self.seconds = scan::seconds(&rest[..end]);
            self.ended = true;
            self.ending = false;
        }
    }

    fn heading(&mut self, title: &[u8]) {
        self.seen = true;
        // " FAIL  |project| file > test".
        let title = match title.strip_prefix(b"|").and_then(|t| Some(&t[memchr::memchr(b'|', t)? + 1..])) {
            Some(rest) => rest.trim_ascii_start(),
            None => title,
        };
        if memmem::find(title, b" > ").is_some() {
            self.names.add(title, Outcome::Failed);
            self.heading = true;
        } else {
            self.suites.insert(title.to_vec());
            self.heading = false;
        }
    }

    fn said(&mut self, line: &[u8]) {
        if std::mem::take(&mut self.heading) {
            if let Some(failing) = self.names.last() {
                failing.error_class = scan::class(line);
                let at = failing
                    .error_class
                    .as_ref()
                    .and_then(|_| memmem::find(line, b": "))
                    .map_or(0, |at| at + 2);
                failing.message = Some(scan::message(&line[at..]));
            }
        } else if line.starts_with(b"Error: [vitest-pool]: ")
            || line.starts_with(b"Caused by: Error: Worker ")
        {
            self.died = true;
            scan::tell(&mut self.faults, scan::message(line));
        } else if line.starts_with(b"ERROR: Coverage for ") {
            self.gate = true;
            scan::tell(&mut self.faults, scan::message(line));
        }
    }

    fn early_line(&mut self, mark: Mark, rest: &[u8]) {
        self.seen = true;
        if LEVEL.find(rest).is_some() {
            let name = rest.rsplitn(2, |b| *b == b' ').last().unwrap_or(rest);
            self.last.clear();
            self.last.extend_from_slice(name);
            match mark {
                Mark::Passed => self.early.passed += 1,
                Mark::Failed => self.early.failed += 1,
                Mark::Skipped => self.early.skipped += 1,
                Mark::File => {}
            }
            return;
        }
        // "math.test.js (12 tests | 4 failed | 1 skipped | 1 todo) 597ms".
        let Some(open) = memmem::rfind(rest, b" (") else { return };
        let Some(close) = memchr::memchr(b')', &rest[open..]) else { return };
        self.last = rest[..open].to_vec();
        let mut parts = rest[open + 2..open + close].split(|b| *b == b'|').map(<[u8]>::trim_ascii);
        let Some((mut left, _)) = parts.next().and_then(scan::counted) else { return };
        for (n, word) in parts.filter_map(scan::counted) {
            left = left.saturating_sub(n);
            match word {
                b"failed" => self.early.failed += n,
                b"skipped" => self.early.skipped += n,
                _ => {}
            }
        }
        self.early.passed += left;
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
        session.signs.died = was.died;
        session.signs.gate = was.gate;
        session.parallel = true;
        session.last_test = (!was.last.is_empty()).then(|| scan::text(&was.last));
        session.faults = was.faults;
        let t = was.totals.unwrap_or(was.early);
        let counts = &mut session.counts;
        counts.passed = Some(t.passed);
        counts.failed = Some(t.failed);
        counts.skipped = Some(t.skipped);
        counts.xfailed = Some(t.xfailed);
        counts.errors = Some(was.suites.len() as u64 + was.unhandled);
        session.failing = was.names.if_named(t.failed);
        self.over.push(session);
    }
}

#[derive(Clone, Copy)]
enum Mark {
    Passed,
    Failed,
    Skipped,
    /// A file of which something failed.
    File,
}

/// ` RUN  v4.1.12 /srv/app`.
fn version(line: &[u8]) -> bool {
    [&b" RUN  v"[..], b" DEV  v"]
        .iter()
        .any(|p| line.strip_prefix(*p).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit)))
}

/// ` ✓ a.test.js (2 tests) 4ms`, ` × a.test.js > b 1ms`: one space, the mark, and a duration or a count behind it.
fn file_line(line: &[u8]) -> Option<(Mark, &[u8])> {
    let rest = line.strip_prefix(b" ")?;
    let marks = [("✓ ", Mark::Passed), ("× ", Mark::Failed), ("↓ ", Mark::Skipped), ("❯ ", Mark::File)];
    let (mark, rest) =
        marks.into_iter().find_map(|(m, mark)| Some((mark, rest.strip_prefix(m.as_bytes())?)))?;
    let count = || {
        let words: [&[u8]; 4] = [b" test)", b" tests)", b" test | ", b" tests | "];
        words.iter().any(|w| memmem::find(rest, w).is_some())
    };
    (LEVEL.find(rest).is_some() || count()).then_some((mark, rest))
}

/// `4 failed | 7 passed | 1 expected fail | 1 skipped | 1 todo (14)`.
fn totals(line: &[u8]) -> Option<Totals> {
    if line.starts_with(b"no tests") {
        return Some(Totals::default());
    }
    let open = memmem::rfind(line, b" (")?;
    scan::number(line[open + 2..].strip_suffix(b")")?)?;
    let mut out = Totals::default();
    for part in line[..open].split(|b| *b == b'|') {
        let (n, word) = scan::counted(part.trim_ascii())?;
        match word {
            b"failed" => out.failed = n,
            b"passed" => out.passed = n,
            b"skipped" => out.skipped = n,
            b"expected fail" => out.xfailed = n,
            _ => {}
        }
    }
    Some(out)
}
