//! The sections behind the tests: reports, the short summary, durations, totals.

use super::crash;
use super::entries;
use super::names::{Block, hash, message, text};
use super::run::{Phase, Run};
use crate::report::{Outcome, Slow};
use tb_shared::pytest::{self, Summary, rule};

/// More reports than any run has: beyond, headlines are noise, and memory has its bound.
const BLOCKS: usize = 100_000;

impl Run {
    /// A line of ERRORS or FAILURES.
    pub(super) fn report(&mut self, line: &[u8], outcome: Outcome) {
        let Some(&first) = line.first() else { return };
        match first {
            b'_' => {
                if let Some(title) = rule(line.trim_ascii_end(), b'_') {
                    return self.headline(title, outcome);
                }
            }
            b'!' => return self.bang(line),
            b'[' if line.starts_with(b"[gw") => {
                if let Some(block) = self.blocks.last_mut()
                    && block.worker.is_none()
                    && let Some(end) = memchr::memchr(b']', line)
                {
                    block.worker = Some(text(&line[1..end]).into());
                }
                return;
            }
            b'w' | b's' | b'W' | b'S' => {
                // Over it stands the file, and the test is here. Anything else is what a test said.
                if let Some((worker, id)) = crash::crashed_while(line)
                    && self.blocks.last().is_none_or(|b| b.headline == hash(entries::path(id)))
                {
                    self.crash_reports += 1;
                    if let Some(block) = self.blocks.last_mut() {
                        block.headline = hash(&entries::headline(id, None));
                        block.worker = Some(text(worker).into());
                        block.message = Some(message(line));
                        self.block_names.insert(block.headline);
                    }
                    let id = text(id);
                    if !self.crashed_ids.contains(&id) && self.crashed_ids.len() < 10_000 {
                        self.crashed_ids.push(id);
                    }
                    return;
                }
            }
            b'F' | b'T' => self.gate(line),
            _ => {}
        }
        let Some(block) = self.blocks.last_mut() else { return };
        if first == b'E' && line.starts_with(b"E   ") {
            let said = line[1..].trim_ascii();
            // The first line of each group; of a chain of exceptions the last one counts.
            if !std::mem::replace(&mut block.in_error_text, true) {
                if let Some(class) = entries::class_of_message(said) {
                    block.class = Some(class.into());
                }
                block.message = Some(message(said));
            }
            return;
        }
        block.in_error_text = false;
        if first != b' '
            && let Some((file, n, class)) = entries::location(line)
        {
            if let Some(class) = entries::class_of_message(class) {
                block.class = Some(class.into());
                block.place = Some((text(file).into(), n));
            } else if block.place.is_none() || class.starts_with(b"in ") {
                block.place = Some((text(file).into(), n));
            }
        }
    }

    pub(super) fn headline(&mut self, title: &[u8], outcome: Outcome) {
        // "_ _ _ _" between the frames of a traceback is no headline.
        if title.iter().all(|b| matches!(b, b'_' | b' ')) {
            return;
        }
        self.goes_on();
        let mut error = outcome == Outcome::Error;
        let mut name = title;
        if let Some(path) = title.strip_prefix(b"ERROR collecting ") {
            error = true;
            name = path;
            self.named.add(path, Outcome::Error, |_| {});
        } else {
            for words in [&b"ERROR at setup of "[..], b"ERROR at teardown of "] {
                if let Some(rest) = title.strip_prefix(words) {
                    error = true;
                    name = rest;
                }
            }
        }
        if self.blocks.len() == BLOCKS {
            return;
        }
        let name = name.strip_prefix(b"[doctest] ").unwrap_or(name);
        let headline = hash(name);
        self.block_names.insert(headline);
        self.blocks.push(Block { headline, error, ..Block::default() });
    }

    /// A line of the short summary that names a failing test.
    pub(super) fn entry(&mut self, line: &[u8]) -> bool {
        let Some(entry) = entries::entry(line) else { return false };
        let known = |id: &[u8]| {
            self.named.has(id) || self.block_names.contains(&hash(&entries::headline(id, entry.subtest)))
        };
        let (id, said) = entries::split(entry.rest, known);
        let headline = hash(&entries::headline(id, entry.subtest));
        self.short_subtests += u64::from(entry.subtest.is_some());
        self.short.add(id, entry.outcome, |n| {
            n.headline = headline;
            n.message = said.map(message);
        });
        true
    }

    pub(super) fn duration(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        let Some(at) = memchr::memchr(b's', line) else { return };
        let Some(seconds) = std::str::from_utf8(&line[..at]).ok().and_then(|t| t.parse::<f64>().ok()) else {
            return;
        };
        let rest = line[at + 1..].trim_ascii_start();
        let Some(space) = memchr::memchr(b' ', rest) else { return };
        let (phase, id) = (&rest[..space], rest[space..].trim_ascii_start());
        if matches!(phase, b"call" | b"setup" | b"teardown")
            && self.slowest.len() < 100_000
            && seconds.is_finite()
        {
            self.slowest.push(Slow { id: text(id), phase: Some(text(phase)), seconds });
        }
    }

    /// `Results (0.24s):`, and under it a line for each kind.
    pub(super) fn totals(&mut self, line: &[u8]) -> bool {
        // A run that has told of itself, and of neither sugar nor pretty, does not end so.
        let possible = self.totals_expected || self.rootdir.is_none();
        let Some(seconds) = totals_after(line).filter(|_| possible) else {
            return false;
        };
        self.summary = Some(Summary { seconds, ..Summary::default() });
        self.results = true;
        self.at_end = (self.signs, self.faults.len());
        self.ended_in = self.phase;
        self.phase = Phase::Results;
        true
    }

    pub(super) fn result_total(&mut self, line: &[u8]) {
        if !line.starts_with(b" ") {
            if !line.is_empty() {
                self.phase = Phase::After;
                self.line(line);
            }
            return;
        }
        let words = line.trim_ascii();
        if let Some(test) = words.strip_prefix(b"- ") {
            return self.sugar_name(test);
        }
        // The same words as in a summary line.
        let Some(one) = pytest::summary(&[words, b" in 0s"].concat()) else { return };
        // The numbers of sugar end in the eighth column, those of pretty in the tenth.
        self.errors_counted |= line.starts_with(b"         ");
        let Some(all) = &mut self.summary else { return };
        all.failed = all.failed.saturating_add(one.failed);
        all.passed = all.passed.saturating_add(one.passed);
        all.skipped = all.skipped.saturating_add(one.skipped);
        all.deselected = all.deselected.saturating_add(one.deselected);
        all.xfailed = all.xfailed.saturating_add(one.xfailed);
        all.xpassed = all.xpassed.saturating_add(one.xpassed);
        all.errors = all.errors.saturating_add(one.errors);
        all.reruns = all.reruns.saturating_add(one.reruns);
    }

    /// `tests/test_a.py:10 TestX.test_y[a]`, sugar's own list.
    pub(super) fn sugar_name(&mut self, text: &[u8]) {
        let Some(colon) = memchr::memmem::find(text, b".py:").map(|at| at + 3) else { return };
        let rest = &text[colon + 1..];
        let Some(space) = memchr::memchr(b' ', rest) else { return };
        let name = &rest[space + 1..];
        let params = memchr::memchr(b'[', name).unwrap_or(name.len());
        let mut id = text[..colon].to_vec();
        id.extend_from_slice(b"::");
        for b in &name[..params] {
            if *b == b'.' { id.extend_from_slice(b"::") } else { id.push(*b) }
        }
        id.extend_from_slice(&name[params..]);
        self.named.add(&id, Outcome::Failed, |_| {});
    }
}

/// The duration in `Results (0.24s):`, from a minute on `Results (65.12s (0:01:05)):`.
pub(super) fn totals_after(line: &[u8]) -> Option<f64> {
    let duration = line.trim_ascii_end().strip_prefix(b"Results (")?.strip_suffix(b"):")?;
    pytest::summary(&[b"1 passed in ", duration].concat()).map(|s| s.seconds)
}
