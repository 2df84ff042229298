//! What a run comes to: counts, names, completeness, or what is not known of them.

use super::entries;
use super::names::{Block, Named, Names};
use super::run::{Phase, Run};
use crate::report::{Counts, Failing, Outcome, Session};
use std::collections::{HashMap, HashSet, VecDeque};
use tb_shared::pytest::Summary;

impl Run {
    /// The run as it is reported.
    pub(super) fn into_session(mut self) -> Session {
        let mut session = Session::new("pytest");
        session.signs = self.signs;
        if let Some(letter) = self.lone_letter.take().filter(|_| self.tally.reports() == 0) {
            self.tally.letters(&[letter]);
        }
        // A line that looked like a summary but for its form counts if nothing that was counted speaks against it.
        let speaks_against =
            self.tally.reports() > 0 || !self.blocks.is_empty() || !self.short.all.is_empty();
        if self.summary.is_none()
            && (!speaks_against || self.doubtful.as_ref().is_some_and(|d| self.tally.fits(d)))
        {
            self.summary = self.doubtful.take();
        }
        if self.results {
            // sugar says FAILED of a file that could not be collected.
            self.short = std::mem::take(&mut self.short).with_files_as_errors();
        }
        let silent = self.summary.is_none() && self.ends_in_silence();
        // Totals that tell of fewer failures than are listed have not all been written.
        let listed = self.short.lines(Outcome::Failed) + self.short.lines(Outcome::Error);
        let part = self.results
            && self.torn
            && self.summary.as_ref().is_some_and(|s| {
                listed > s.failed.saturating_add(s.errors).saturating_add(self.broken_files())
            });
        session.complete = self.summary.is_some() && !part || silent;
        if silent && !self.block_names.is_empty() {
            self.drop_output();
        }
        let incomplete_subtests = silent && self.short_subtests > 0;
        if self.header
            && !self.xdist
            && self.crash_reports == 0
            && self.blocks.iter().all(|b| b.worker.is_none())
        {
            self.node_downs = 0;
            self.crashed_workers.clear();
            self.faults.retain(|f| !f.starts_with("worker "));
        }
        session.counts = match &self.summary {
            Some(summary) => self.counts_of(summary),
            None if self.muddled && self.named.all.is_empty() => Counts::default(),
            // -qq with -s: what is listed is known, and no more.
            None if silent && self.spoken_between && !self.reached_100 => Counts {
                failed: Some(self.short.lines(Outcome::Failed)),
                errors: Some(self.short.lines(Outcome::Error)),
                ..Counts::default()
            },
            None => self.counts_of_tally(incomplete_subtests),
        };
        // How many failed is not known, but that some did.
        session.signs.gate |= session.counts.failed.is_none() && self.tally.failed + self.tally.errors > 0;
        session.duration = self.summary.as_ref().map(|s| s.seconds);
        session.signs.internal_error |= self.died;
        session.signs.crashes = self.crashes(session.counts.failed.unwrap_or(0));
        session.signs.listed_only = self.summary.as_ref().is_some_and(|s| match s.collected {
            Some(n) => n > 0,
            None => self.listed && s.reports() == 0 && s.deselected == 0,
        });
        session.signs.no_tests = self.summary.as_ref().is_some_and(|s| self.only_modules_skipped(s));
        session.parallel = self.xdist;
        session.last_test = self.last_test();
        if !session.complete {
            session.unfinished = self.unfinished();
        }
        session.failing = self.failing(&session);
        session.crashed_workers = std::mem::take(&mut self.crashed_workers);
        session.slowest = std::mem::take(&mut self.slowest);
        session.faults = std::mem::take(&mut self.faults);
        session
    }

    /// The last line is not whole: an id that it ends in may not be, unless it is known from elsewhere.
    pub(super) fn end_is_cut(&mut self) {
        self.torn = true;
        let unsure =
            self.short.all.last().is_some_and(|n| n.times == 1 && n.message.is_none() && !self.knows(n));
        if self.phase == Phase::Short && unsure {
            self.short.pop();
        }
    }

    /// With -qq there is no summary line. What came before it is all there, or the run did not get so far: each
    /// failure in the short summary, or, before 5.4 showed one, in the reports.
    fn ends_in_silence(&self) -> bool {
        let bad = self.tally.failed + self.tally.errors;
        let listed = self.short.lines(Outcome::Failed) + self.short.lines(Outcome::Error);
        let told = bad == 0
            || self.stopped_collecting
            || listed >= bad
            || (listed == 0 && self.blocks.len() as u64 >= bad);
        !self.header
            && !self.torn
            && !self.signs.internal_error
            && (self.signs.interrupted || self.stopped || told && (listed > 0 || self.reached_100))
            && self.unfinished().is_empty()
    }

    fn counts_of(&self, s: &Summary) -> Counts {
        Counts {
            passed: Some(s.passed),
            failed: Some(s.failed),
            timed_out: Some(0),
            skipped: Some(s.skipped),
            errors: Some(match (self.results, self.errors_counted) {
                (false, _) => s.errors,
                (true, true) => s.errors.max(self.broken_files()),
                (true, false) => s.errors.saturating_add(self.broken_files()),
            }),
            // Nor those that it expected to fail without running them.
            xfailed: Some(if self.results { s.xfailed.max(self.tally.xfailed) } else { s.xfailed }),
            xpassed: Some(s.xpassed),
            deselected: Some(s.deselected),
            // sugar's totals miss reruns of a setup, its bar does not.
            reruns: Some(if self.results { s.reruns.max(self.tally.reruns) } else { s.reruns }),
            // The totals of sugar and pretty have no warnings, and where sugar is at work none said is none known.
            warnings: (!self.results && !self.sugar_loaded || s.warnings > 0).then_some(s.warnings),
            subtests_passed: Some(s.subtests_passed),
            subtests_failed: Some(s.subtests_failed.max(self.short_subtests)),
            subtests_skipped: Some(s.subtests_skipped),
        }
    }

    /// Whole modules that skip themselves are counted as skipped, but no test ran.
    fn only_modules_skipped(&self, s: &Summary) -> bool {
        s.skipped > 0
            && s.reports() == s.skipped
            && self.tally.reports() == 0
            && !self.reached_100
            && self.expected.is_none_or(|n| n == 0)
    }

    /// Files that could not be collected, as far as they are named.
    fn broken_files(&self) -> u64 {
        let is_file = |n: &&Named| memchr::memmem::find(&n.id, b"::").is_none();
        let count = |names: &Names| names.all.iter().filter(is_file).map(|n| n.times).sum();
        u64::max(count(&self.named), count(&self.short))
    }

    /// What the letters and words said by then. Failed subtests may have no letter of their own, so where the
    /// short summary names more failures than there were letters, it is believed.
    fn counts_of_tally(&self, subtests: bool) -> Counts {
        let t = &self.tally;
        let listed = |o| self.short.lines(o);
        // Where tests ran all the same, it was one of several workers' files.
        let uncollected = if self.xdist || t.reports() == 0 { self.broken_files() } else { 0 };
        Counts {
            passed: Some(t.passed),
            failed: self.failed_by_letters(),
            timed_out: Some(0),
            // Nor have skipped ones.
            skipped: (!subtests || t.sub_skipped > 0).then_some(t.skipped),
            // A file that could not be collected has no letter.
            errors: Some((t.errors + uncollected).max(listed(Outcome::Error)).max(self.uncollected)),
            xfailed: Some(t.xfailed),
            xpassed: Some(t.xpassed),
            deselected: None,
            reruns: Some(t.reruns),
            warnings: None,
            subtests_passed: None,
            subtests_failed: None,
            subtests_skipped: None,
        }
    }

    /// A `u` is a failed subtest where passed ones have a comma, and with pytest 9 a failed or a passed one. Then the
    /// reports decide: each failure has one.
    fn failed_by_letters(&self) -> Option<u64> {
        let t = &self.tally;
        let listed = self.short.lines(Outcome::Failed);
        let most = t.failed + t.sub_unclear;
        if t.sub_unclear == 0 || listed > t.failed {
            return Some(t.failed.max(listed));
        }
        let reports = self.blocks.iter().filter(|b| !b.error).count() as u64;
        if t.sub_passed > 0 || self.plugin_subtests {
            return Some(most.max(reports));
        }
        (reports >= t.failed).then_some(reports)
    }

    /// How many of the failures are crashes. Every report says so in its body; where there were no reports, the
    /// news of dead workers stand for them.
    fn crashes(&self, failed: u64) -> u64 {
        let reports = if self.blocks.is_empty() { self.node_downs } else { self.crash_reports };
        reports.min(failed)
    }

    /// The names of what failed, if the log has them all.
    fn failing(&mut self, session: &Session) -> Option<Vec<Failing>> {
        let bad = session.counts.bad();
        if self.summary.is_some()
            && self.short.lines(Outcome::Failed) + self.short.lines(Outcome::Error) > bad
        {
            self.drop_output();
        }
        if session.complete && self.is_foreign() {
            self.short = Names::default();
        }
        let mut names = std::mem::take(&mut self.named);
        if session.complete {
            names.drop_files(bad);
        }
        let short = std::mem::take(&mut self.short);
        let listed = short.lines(Outcome::Failed) + short.lines(Outcome::Error);
        let named: u64 =
            [Outcome::Failed, Outcome::Error].iter().map(|o| names.lines(*o).max(short.lines(*o))).sum();
        // A collection that failed has run no test: an error without a name hides none.
        let no_test = self.stopped_collecting
            && self.summary.as_ref().is_some_and(|s| s.reports() == s.errors + s.skipped)
            && names.all.is_empty()
            && short.all.is_empty();
        // Too few names, or so many that some are a test's own words, and no telling which.
        if session.complete && (named < bad && !no_test || listed > bad && self.summary.is_some()) {
            return None;
        }
        // Where the results have named them all, a list of none of these is a test's output.
        let all_named =
            session.complete && bad > 0 && names.lines(Outcome::Failed) + names.lines(Outcome::Error) >= bad;
        let foreign = all_named && short.all.iter().all(|n| names.find(&n.id, n.outcome).is_none());
        if listed >= bad && session.complete && !foreign {
            // The short summary is pytest's own list; what else looked like a result was not one of these.
            let workers = std::mem::replace(&mut names, short);
            for name in &mut names.all {
                name.worker = workers.find(&name.id, name.outcome).and_then(|n| n.worker.clone());
            }
        } else {
            for name in short.all {
                match names.get(&name.id, name.outcome) {
                    Some(known) => known.message = name.message,
                    None if all_named => {}
                    None => names.push(name),
                }
            }
        }
        let mut blocks: HashMap<(u64, bool), VecDeque<Block>> = HashMap::new();
        for block in self.blocks.drain(..) {
            blocks.entry((block.headline, block.error)).or_default().push_back(block);
        }
        let crashed: HashSet<&str> = self.crashed_ids.iter().map(String::as_str).collect();
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        let all = names.all.into_iter().map(|name| {
            let mut failing = Failing::new(text(&name.id), name.outcome);
            failing.message = name.message.map(Into::into);
            failing.worker = name.worker.map(Into::into);
            failing.error_class = failing
                .message
                .as_deref()
                .and_then(|m| entries::class_of_message(m.as_bytes()))
                .map(str::to_owned);
            let own = blocks
                .get_mut(&(name.headline, name.outcome == Outcome::Error))
                .and_then(VecDeque::pop_front);
            if let Some(block) = own {
                failing.error_class = block.class.map(Into::into).or(failing.error_class);
                failing.message = failing.message.or(block.message.map(Into::into));
                failing.worker = failing.worker.or(block.worker.map(Into::into));
                failing.place = block.place.map(|(file, line)| (file.into(), line));
            }
            if crashed.contains(failing.id.as_str()) {
                failing.outcome = Outcome::Crashed;
                failing.error_class = None;
            }
            failing
        });
        Some(all.collect())
    }

    /// Whether the short summary names nothing but tests of which there is neither a result nor a report: then it
    /// stood in a test's output, and the run has none of its own.
    pub(super) fn is_foreign(&self) -> bool {
        !self.block_names.is_empty() && !self.knows_any(&self.short)
    }

    /// Whether a result or a report tells of one of these.
    pub(super) fn knows_any(&self, names: &Names) -> bool {
        names.all.iter().any(|n| self.knows(n))
    }

    /// Whether they tell of all that the short summary names.
    pub(super) fn knows_all(&self) -> bool {
        self.short.all.iter().all(|n| self.knows(n))
    }

    fn knows(&self, name: &Named) -> bool {
        self.named.has(&name.id) || self.block_names.contains(&name.headline)
    }

    /// Lines of a message that look like entries of the short summary: there are more than failures, and the log
    /// has named them nowhere else.
    fn drop_output(&mut self) {
        if self.named.all.is_empty() && self.block_names.is_empty() {
            return;
        }
        let mut kept = Names::default();
        for name in std::mem::take(&mut self.short.all) {
            if self.named.has(&name.id) || self.block_names.contains(&name.headline) {
                kept.push(name);
            }
        }
        self.short = kept;
    }
}
