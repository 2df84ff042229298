//! One run of pytest: what its lines say, from the header to the summary and beyond.
//!
//! Which run a line belongs to is decided elsewhere (`pytest/mod.rs`); this file reads the line.

use super::crash::{self, Sign, Stack};
use super::entries;
use super::names::{Block, Names, text};
use super::tally::Tally;
use crate::report::{Outcome, Signs, Slow};
use crate::scan::leading;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};
use tb_shared::pytest::{Summary, rule};

/// Where in a run its last line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Header, collection, and the tests themselves.
    Progress,
    /// The section of that kind of report.
    Reports(Outcome),
    /// "short test summary info", or rerunfailures' own.
    Short,
    /// "slowest durations".
    Durations,
    /// The block of totals that sugar and pretty print instead of a summary line.
    Results,
    /// Another section: warnings, the output of passed tests, coverage.
    Other,
    /// Behind the summary.
    After,
}

/// A run in the making.
pub(super) struct Run {
    /// Its header was seen: it is not a quiet run.
    pub(super) header: bool,
    /// The terminal's width, from the header.
    pub(super) width: Option<usize>,
    pub(super) phase: Phase,
    /// Where its summary came.
    pub(super) ended_in: Phase,
    pub(super) summary: Option<Summary>,
    /// A summary line that does not look like this run's own (its bars are of another width).
    pub(super) doubtful: Option<Summary>,
    /// The totals of sugar and pretty; they do not count warnings.
    pub(super) results: bool,
    /// pretty's totals, which have the files that could not be collected among the errors.
    pub(super) errors_counted: bool,
    /// sugar is among the plugins, and it counts no warnings.
    pub(super) sugar_loaded: bool,
    /// sugar or pretty is: it ends in their totals.
    pub(super) totals_expected: bool,
    /// It has these and no summary line.
    pub(super) totals_instead: bool,
    /// It had no header, and its first line was one letter: of a test, if more is heard of it.
    pub(super) lone_letter: Option<u8>,
    pub(super) tally: Tally,
    pub(super) named: Names,
    pub(super) short: Names,
    /// Failed subtests that the short summary names.
    pub(super) short_subtests: u64,
    pub(super) reruns: bool,
    pub(super) blocks: Vec<Block>,
    pub(super) block_names: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
    pub(super) signs: Signs,
    /// Collection failed, and so nothing was run.
    pub(super) stopped_collecting: bool,
    pub(super) crash_reports: u64,
    pub(super) node_downs: u64,
    pub(super) crashed_ids: Vec<String>,
    pub(super) crashed_workers: Vec<String>,
    pub(super) faults: Vec<String>,
    /// Tests were listed: before 5.5, `--collect-only` ends in "no tests ran" all the same.
    pub(super) listed: bool,
    /// Its process died before the sections: a run without a summary line has not reached its end.
    pub(super) torn: bool,
    /// Tests wrote between their letters: how many there were is not known.
    pub(super) muddled: bool,
    /// The same of a run without a header: a line began with a letter and went on in words.
    pub(super) spoken_between: bool,
    /// A sign that the process itself died behind its summary.
    pub(super) died: bool,
    /// A test that was begun and of which nothing else was heard.
    pub(super) current: Vec<u8>,
    /// The same for each worker of xdist.
    pub(super) started: HashMap<u64, Vec<u8>, BuildHasherDefault<DefaultHasher>>,
    pub(super) xdist: bool,
    pub(super) last: Vec<u8>,
    pub(super) file: Vec<u8>,
    pub(super) rootdir: Option<Vec<u8>>,
    pub(super) stack: Stack,
    pub(super) reached_100: bool,
    pub(super) slowest: Vec<Slow>,
    pub(super) sugar: Vec<u8>,
    /// Runs that ended while this one was open: of tests that run pytest themselves, or, if this one proves to
    /// be dead, the runs after it.
    pub(super) children: Vec<Run>,
    /// Signs, faults, and whether it stopped, as they were before the first line that says why it ends.
    pub(super) before_bang: Option<(Signs, usize, bool, bool)>,
    /// Signs and faults as they were when its summary came: what came behind is not its own if it goes on.
    pub(super) at_end: (Signs, usize),
    /// How many files could not be collected, as the line says that ends such a run.
    pub(super) uncollected: u64,
    /// Its subtests are those of the plugin before pytest 9.
    pub(super) plugin_subtests: bool,
    /// How many tests it set out to run, by its own account.
    pub(super) expected: Option<u64>,
    /// It said that it stops before all of them have run.
    pub(super) stopped: bool,
    /// It said something of its own after the last of its children had ended.
    pub(super) went_on: bool,
}

impl Run {
    pub(super) fn new(width: Option<usize>, header: bool) -> Run {
        Run {
            header,
            width,
            phase: Phase::Progress,
            ended_in: Phase::Progress,
            summary: None,
            doubtful: None,
            results: false,
            errors_counted: false,
            sugar_loaded: false,
            totals_expected: false,
            totals_instead: false,
            lone_letter: None,
            tally: Tally::default(),
            named: Names::default(),
            short: Names::default(),
            short_subtests: 0,
            reruns: false,
            blocks: Vec::new(),
            block_names: HashSet::default(),
            signs: Signs::default(),
            stopped_collecting: false,
            crash_reports: 0,
            node_downs: 0,
            crashed_ids: Vec::new(),
            crashed_workers: Vec::new(),
            faults: Vec::new(),
            listed: false,
            torn: false,
            muddled: false,
            spoken_between: false,
            died: false,
            current: Vec::new(),
            started: HashMap::default(),
            xdist: false,
            last: Vec::new(),
            file: Vec::new(),
            rootdir: None,
            stack: Stack::default(),
            reached_100: false,
            slowest: Vec::new(),
            sugar: Vec::new(),
            children: Vec::new(),
            uncollected: 0,
            plugin_subtests: false,
            before_bang: None,
            at_end: Default::default(),
            expected: None,
            stopped: false,
            went_on: false,
        }
    }

    /// A line between rules: the title of a section.
    pub(super) fn section(&mut self, title: &[u8]) {
        self.goes_on();
        if let Some(letter) = self.lone_letter.take().filter(|_| self.tally.reports() == 0) {
            self.tally.letters(&[letter]);
        }
        self.phase = match title {
            b"ERRORS" => Phase::Reports(Outcome::Error),
            b"FAILURES" => Phase::Reports(Outcome::Failed),
            b"short test summary info" => {
                // What came before under the same title was somebody's output.
                if !self.reruns {
                    self.short = Names::default();
                    self.short_subtests = 0;
                }
                self.reruns = false;
                Phase::Short
            }
            b"rerun test summary info" => {
                self.short = Names::default();
                self.reruns = true;
                Phase::Short
            }
            _ if title.starts_with(b"slowest ") => {
                self.slowest.clear();
                Phase::Durations
            }
            _ => {
                if let Some(fault) = title.strip_prefix(b"xdist: ") {
                    self.fault(fault);
                }
                Phase::Other
            }
        };
    }

    /// Whether the title is one of pytest's own sections, between the tests and the summary.
    pub(super) fn is_section(title: &[u8]) -> bool {
        let titles: [&[u8]; 8] = [
            b"ERRORS",
            b"FAILURES",
            b"short test summary info",
            b"rerun test summary info",
            b"PASSES",
            b"XFAILURES",
            b"XPASSES",
            b"warnings summary",
        ];
        titles.contains(&title)
            || [&b"slowest "[..], b"xdist: ", b"warnings summary"].iter().any(|t| title.starts_with(t))
    }

    /// Any other line.
    pub(super) fn line(&mut self, line: &[u8]) {
        // An internal error comes before the sections, if not behind the end; in a report it is a test's output.
        if line.first() == Some(&b'I')
            && matches!(self.phase, Phase::Progress | Phase::After)
            && line.starts_with(b"INTERNALERROR> ")
        {
            return self.internal(&line[15..]);
        }
        if line.first() == Some(&b'R') && line.starts_with(b"Results (") && self.totals(line) {
            return;
        }
        match self.phase {
            Phase::Progress => self.progress(line),
            Phase::Reports(outcome) => self.report(line, outcome),
            Phase::Short => {
                if line.first() == Some(&b'!') {
                    self.bang(line);
                } else if !self.entry(line) {
                    self.gate(line);
                    // A nested run's short summary stood in a report: the reports go on.
                    if line.first() == Some(&b'_') && !self.blocks.is_empty() {
                        self.report(line, Outcome::Failed);
                    }
                }
            }
            Phase::Durations => {
                self.duration(line);
                self.other(line);
            }
            Phase::Results => self.result_total(line),
            Phase::Other => self.other(line),
            Phase::After => {
                // The reason for "no tests ran": stderr may come behind stdout.
                if self.ran_nothing() && super::is_usage(line) {
                    self.usage(line);
                } else if let Some(status) = crash::exit_status(line) {
                    self.died = true;
                    self.fault(format!("ended with exit status {status} after its summary").as_bytes());
                } else if let Some((0, Sign::Killed(signal))) = crash::cut(line) {
                    self.died = true;
                    self.fault(format!("ended by {signal} after its summary").as_bytes());
                } else if let Some((_, Sign::Fatal(what))) = crash::cut(line) {
                    self.died = true;
                    self.fault(&[b"Fatal Python error: ", what].concat());
                }
                // pytest.exit() with a status of its own says so behind the summary.
                self.other(line);
            }
        }
    }

    pub(super) fn other(&mut self, line: &[u8]) {
        match line.first() {
            Some(b'!') => self.bang(line),
            Some(b'E' | b'F' | b'T') => self.gate(line),
            _ => {}
        }
    }

    pub(super) fn fault(&mut self, what: &[u8]) {
        let what = text(what.trim_ascii());
        if self.faults.len() < 100 && !self.faults.contains(&what) {
            self.faults.push(what);
        }
    }

    pub(super) fn internal(&mut self, rest: &[u8]) {
        self.signs.internal_error = true;
        // The last words are the cause, but the frame that ends the traceback is not.
        let rest = rest.strip_prefix(b"E ").unwrap_or(rest).trim_ascii();
        if !rest.starts_with(b"assert ")
            && entries::class_of_message(rest)
                .is_some_and(|c| c.ends_with("Error") || c.ends_with("Exception"))
        {
            let fault = [b"internal error: ", rest].concat();
            self.faults.retain(|f| !f.starts_with("internal error: "));
            self.fault(&fault);
        }
    }

    /// `!!! title !!!`
    pub(super) fn bang(&mut self, line: &[u8]) {
        let Some(title) = rule(line.trim_ascii_end(), b'!') else { return };
        self.before_bang.get_or_insert((
            self.signs,
            self.faults.len(),
            self.stopped,
            self.stopped_collecting,
        ));
        self.stopped = true;
        self.xdist |= title.starts_with(b"xdist.");
        if let Some(rest) = title.strip_prefix(b"Interrupted: ")
            && rest.ends_with(b" during collection")
        {
            self.stopped_collecting = true;
            self.uncollected = leading(rest).map_or(0, |(n, _)| n);
        }
        let exit = title.starts_with(b"_pytest.outcomes.Exit: ") || title.starts_with(b"Exit: ");
        let limit = title.starts_with(b"session-timeout: ");
        if title == b"KeyboardInterrupt" || exit || limit {
            self.signs.interrupted = true;
            self.fault(title);
        } else if memchr::memmem::find(title, b"received keyboard-interrupt").is_some() {
            self.fault(title);
        }
    }

    /// Tests or reports go on behind such a line: it was a test's output, for nothing but the end follows one.
    pub(super) fn goes_on(&mut self) {
        if let Some((signs, faults, stopped, stopped_collecting)) = self.before_bang.take() {
            self.signs = signs;
            self.faults.truncate(faults);
            self.stopped = stopped;
            self.stopped_collecting = stopped_collecting;
            self.uncollected = 0;
        }
    }

    /// A demand beside the tests that was not met.
    pub(super) fn gate(&mut self, line: &[u8]) {
        let gates: [&[u8]; 5] = [
            b"FAIL Required test coverage of ",
            b"FAIL coverage: ",
            b"ERROR: Coverage failure: ",
            b"Coverage failure: ",
            b"Tests pass, but maximum allowed warnings exceeded: ",
        ];
        if gates.iter().any(|g| line.starts_with(g)) {
            self.signs.gate = true;
            self.fault(line);
        }
    }

    /// What was running when it died.
    pub(super) fn unfinished(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.started.values().map(|id| text(id)).collect();
        if !self.current.is_empty() {
            ids.push(text(&self.current));
        }
        if ids.is_empty()
            && let Some((file, function)) = self.stack.test()
        {
            ids.push(format!("{}::{}", self.relative(file), text(function)));
        }
        ids.sort();
        ids
    }

    /// A file of a stack as pytest would name it, as far as the log tells where it ran.
    pub(super) fn relative(&self, file: &[u8]) -> String {
        if !self.file.is_empty() && file.ends_with(&self.file) {
            return text(&self.file);
        }
        let inside = self.rootdir.as_ref().and_then(|root| file.strip_prefix(&root[..]));
        text(inside.and_then(|rest| rest.strip_prefix(b"/")).unwrap_or(file))
    }

    pub(super) fn last_test(&self) -> Option<String> {
        (!self.last.is_empty()).then(|| text(&self.last))
    }
}
