//! bats: its `pretty` output here, which draws each line twice; its TAP in [`crate::tap`].

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::tap;
use memchr::memmem;

const NAME: &str = "bats";

/// Whether a line opens pretty output of bats.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(b' ') => drawn(line).is_some(),
        Some(b'0'..=b'9') => totals(line).is_some(),
        _ => false,
    }
}

/// A parser at its start: of both forms, of which one will find nothing.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Bats {
        tap: tap::start(),
        names: Names::default(),
        tally: [0; 3],
        totals: None,
        seen: false,
        torn: false,
        last: Vec::new(),
    })
}

/// A pattern of the whole names; which files they are in, the log does not tell.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let files = again.command.into_iter().flatten().filter(|w| w.ends_with(".bats")).cloned();
    let mut files: Vec<String> = files.collect();
    if files.is_empty() {
        files.push(".".to_owned());
    }
    let names: Vec<String> = again.ids.iter().map(|id| scan::pattern(id)).collect();
    let words = ["bats".to_owned(), "-f".to_owned(), format!("^({})$", names.join("|"))];
    vec![words.into_iter().chain(files).collect()]
}

struct Bats {
    tap: Box<dyn Runner>,
    names: Names,
    tally: [u64; 3],
    /// Tests, failures, skipped.
    totals: Option<[u64; 3]>,
    seen: bool,
    torn: bool,
    last: Vec<u8>,
}

impl Runner for Bats {
    fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        if !self.seen {
            self.tap.line(line);
        }
        let first = text.first().copied().unwrap_or_default();
        if let Some(found) = first.is_ascii_digit().then(|| totals(text)).flatten() {
            self.seen = true;
            self.totals = Some(found);
        } else if let Some((kind, name)) = drawn(text) {
            self.seen = true;
            self.tally[kind] += 1;
            self.last.clear();
            self.last.extend_from_slice(name);
            if kind == 1 {
                self.names.add(name, Outcome::Failed);
            }
        } else if let Some(why) = text.strip_prefix(b"   ") {
            // The place comes first under the name, then what was said.
            if let Some(failing) = self.names.last().filter(|f| f.place.is_none())
                && let Some(at) = memmem::find(why, b"in test file ")
            {
                let mut parts = why[at + 13..].splitn(2, |b| *b == b',');
                let file = parts.next().unwrap_or_default();
                let line = parts.next().and_then(|l| l.strip_prefix(b" line ")).and_then(scan::leading);
                failing.place = line.map(|(n, _)| (scan::text(file), n));
            }
        }
        self.torn |= scan::torn(text);
    }

    fn idle(&self) -> bool {
        self.torn || if self.seen { self.totals.is_some() } else { self.tap.idle() }
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        if !self.seen {
            return self.tap.finish();
        }
        let mut session = Session::at_zero(NAME);
        session.complete = self.totals.is_some();
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        let [passed, failed, skipped] = match self.totals {
            Some([tests, failed, skipped]) => {
                [tests.saturating_sub(failed).saturating_sub(skipped), failed, skipped]
            }
            None => self.tally,
        };
        session.counts.passed = Some(passed);
        session.counts.failed = Some(failed);
        session.counts.skipped = Some(skipped);
        session.failing = self.names.if_named(failed);
        vec![session]
    }
}

/// `   adds1/6 ✓ adds`, with -T `   adds1/6 in 0 sec ✓ adds [12]`: passed, failed or skipped, and the name.
fn drawn(line: &[u8]) -> Option<(usize, &[u8])> {
    let rest = line.strip_prefix(b"   ")?;
    let slash = memchr::memchr_iter(b'/', rest).take(64);
    for at in slash {
        let start = rest[..at].iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |i| i + 1);
        let Some((_, mut after)) = scan::leading(&rest[at + 1..]).filter(|_| start < at) else { continue };
        let mut timed = false;
        if let Some(more) =
            after.strip_prefix(b" in ").and_then(scan::leading).and_then(|(_, m)| m.strip_prefix(b" sec"))
        {
            after = more;
            timed = true;
        }
        let marks = [" ✓ ", " ✗ ", " - "];
        let Some((kind, name)) =
            marks.iter().enumerate().find_map(|(kind, m)| Some((kind, after.strip_prefix(m.as_bytes())?)))
        else {
            continue;
        };
        let mut name = name;
        if timed && let Some(open) = memmem::rfind(name, b" [") {
            name = &name[..open];
        }
        if kind == 2 {
            name = &name[..memmem::rfind(name, b" (skipped").unwrap_or(name.len())];
        }
        // The digits of the counter may belong to the name.
        if rest[..at].starts_with(name) {
            return Some((kind, name));
        }
    }
    None
}

/// `6 tests, 3 failures, 1 skipped`, with -T ` in 1 seconds`.
fn totals(line: &[u8]) -> Option<[u64; 3]> {
    let mut parts = line.split(|b| *b == b',');
    let mut out = [0; 3];
    let (n, word) = parts.next().and_then(scan::counted)?;
    if !matches!(word, b"test" | b"tests") {
        return None;
    }
    out[0] = n;
    let mut failures = false;
    for part in parts {
        let (n, word) = scan::counted(part.trim_ascii())?;
        let word = &word[..memmem::find(word, b" in ").unwrap_or(word.len())];
        match word {
            b"failure" | b"failures" => {
                failures = true;
                out[1] = n;
            }
            b"skipped" => out[2] = n,
            b"not run" => {}
            _ => return None,
        }
    }
    failures.then_some(out)
}
