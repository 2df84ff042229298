//! Gradle: failed tests by name, and totals only when a test failed; with events logged, every test.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use memchr::memmem;

const NAME: &str = "gradle";

/// Whether a line opens output of Gradle's tests.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b'>' | b':') => task(line).is_some_and(|t| is_test(t) || is_compile(t)),
        Some(b'0'..=b'9') => totals(line).is_some(),
        Some(b' ') => false,
        _ => result(line).is_some(),
    }
}

/// A parser at its start.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Gradle::default())
}

/// A filter for each test.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let wrapper = again.command.and_then(|c| c.first()).filter(|c| c.ends_with("gradlew")).cloned();
    let mut words = vec![wrapper.unwrap_or_else(|| "gradle".to_owned()), "test".to_owned()];
    for id in &again.ids {
        let name = id.replace(" > ", ".");
        words.extend(["--tests".to_owned(), name.trim_end_matches("()").to_owned()]);
    }
    vec![words]
}

#[derive(Default)]
struct Gradle {
    seen: bool,
    /// A task that runs tests was met.
    tested: bool,
    /// Completed, failed, skipped.
    totals: Option<[u64; 3]>,
    /// By events: passed, failed, skipped.
    events: [u64; 3],
    passed_shown: bool,
    names: Names,
    message: bool,
    built: Option<bool>,
    uncompiled: bool,
    crashed: bool,
    seconds: Option<f64>,
    last: Vec<u8>,
    faults: Vec<String>,
    torn: bool,
}

impl Runner for Gradle {
    fn line(&mut self, line: Line<'_>) {
        let line = line.text;
        let Some(&first) = line.first() else { return };
        let message = std::mem::take(&mut self.message);
        match first {
            b'>' if line.starts_with(b"> Process 'Gradle Test Executor ") => {
                self.seen = true;
                self.crashed = true;
                scan::tell(&mut self.faults, scan::message(&line[2..]));
            }
            b'>' | b':' => {
                if let Some(task) = task(line) {
                    self.seen = true;
                    self.tested |= is_test(task);
                    self.uncompiled |= is_compile(task) && line.ends_with(b" FAILED");
                }
            }
            b'0'..=b'9' => {
                if let Some(found) = totals(line) {
                    self.seen = true;
                    let sum = self.totals.get_or_insert_default();
                    for (sum, n) in sum.iter_mut().zip(found) {
                        *sum += n;
                    }
                }
            }
            b'B' => {
                for (words, good) in [(&b"BUILD SUCCESSFUL in "[..], true), (b"BUILD FAILED in ", false)] {
                    if let Some(time) = line.strip_prefix(words) {
                        self.built = Some(good);
                        self.seconds = scan::seconds(time);
                    }
                }
            }
            b' ' if message => {
                // "java.lang.AssertionError at MixTest.java:5", with a full format "java.lang.X: why".
                let text = line.trim_ascii();
                if let Some(failing) = self.names.last() {
                    failing.error_class = scan::class(text);
                    match memmem::find(text, b" at ") {
                        Some(at) => failing.place = scan::place(&text[at + 4..]),
                        None => {
                            failing.message =
                                memmem::find(text, b": ").map(|at| scan::message(&text[at + 2..]));
                        }
                    }
                }
            }
            _ => match result(line) {
                Some((name, word)) => {
                    self.seen = true;
                    self.tested = true;
                    self.last.clear();
                    self.last.extend_from_slice(name);
                    match word {
                        Word::Passed => {
                            self.passed_shown = true;
                            self.events[0] += 1;
                        }
                        Word::Failed => {
                            self.events[1] += 1;
                            self.names.add(name, Outcome::Failed);
                            self.message = true;
                        }
                        Word::Skipped => self.events[2] += 1,
                    }
                }
                None => self.torn |= scan::torn(line),
            },
        }
    }

    fn idle(&self) -> bool {
        self.torn || !self.seen || self.built.is_some()
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        let this = *self;
        // A build without tests is no test run.
        if !this.tested && !this.uncompiled {
            return Vec::new();
        }
        let mut session = Session::at_zero(NAME);
        session.faults = this.faults;
        session.signs.build_error = this.uncompiled;
        session.signs.died = this.crashed;
        session.complete = this.built.is_some() && !this.crashed;
        session.last_test = (!this.last.is_empty()).then(|| scan::text(&this.last));
        session.duration = None;
        let counts = &mut session.counts;
        let mut failed = this.events[1];
        match this.totals {
            Some([all, bad, skipped]) => {
                failed = bad;
                counts.passed = Some(all.saturating_sub(bad).saturating_sub(skipped));
                counts.failed = Some(bad);
                counts.skipped = Some(skipped);
            }
            None if this.passed_shown => {
                counts.passed = Some(this.events[0]);
                counts.failed = Some(this.events[1]);
                counts.skipped = Some(this.events[2]);
            }
            // A green run prints nothing.
            None => {
                counts.passed = None;
                counts.skipped = None;
                counts.failed = (this.built == Some(true) || failed > 0).then_some(failed);
            }
        }
        if this.uncompiled {
            counts.errors = Some(1);
            (counts.passed, counts.failed, counts.skipped) = (None, None, None);
        }
        // A coverage rule or another check may fail the build though no test did.
        session.signs.gate = this.built == Some(false) && failed == 0 && !this.uncompiled && !this.crashed;
        session.failing = this.names.if_named(failed);
        vec![session]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Passed,
    Failed,
    Skipped,
}

/// `> Task :app:test FAILED`, and before Gradle 5 `:app:test FAILED`: the task.
fn task(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"> Task ").unwrap_or(line).strip_prefix(b":")?;
    let end = rest
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b':' | b'_' | b'-')))
        .unwrap_or(rest.len());
    // Old versions leave the line open while the task runs, and output is glued to it.
    rest[..end].rsplit(|b| *b == b':').next().filter(|t| !t.is_empty())
}

fn is_test(task: &[u8]) -> bool {
    task.starts_with(b"test") && !task.ends_with(b"lasses") && !task.ends_with(b"Resources")
        || task.ends_with(b"Test") && !task.starts_with(b"compile")
}

fn is_compile(task: &[u8]) -> bool {
    task.starts_with(b"compile") && memmem::find(task, b"Test").is_some()
}

/// `demo.MixTest > fails FAILED`.
fn result(line: &[u8]) -> Option<(&[u8], Word)> {
    let words = [(&b" PASSED"[..], Word::Passed), (b" FAILED", Word::Failed), (b" SKIPPED", Word::Skipped)];
    if line.last() != Some(&b'D') {
        return None;
    }
    let (name, word) = words.into_iter().find_map(|(w, word)| Some((line.strip_suffix(w)?, word)))?;
    let at = memmem::find(name, b" > ")?;
    let class = at > 0
        && name[..at]
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'$') || *b >= 0x80);
    class.then_some((name, word))
}

/// `7 tests completed, 2 failed, 2 skipped`.
fn totals(line: &[u8]) -> Option<[u64; 3]> {
    let mut parts = line.split(|b| *b == b',');
    let (all, word) = parts.next().and_then(scan::counted)?;
    if !matches!(word, b"test completed" | b"tests completed") {
        return None;
    }
    let mut out = [all, 0, 0];
    for part in parts {
        match scan::counted(part.trim_ascii())? {
            (n, b"failed") => out[1] = n,
            (n, b"skipped") => out[2] = n,
            _ => return None,
        }
    }
    Some(out)
}
