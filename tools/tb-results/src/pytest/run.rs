//! One run of pytest: what its lines say, from the header to the summary and beyond.
//!
//! Which run a line belongs to is decided elsewhere (`pytest/mod.rs`); this file reads the line.

use super::crash::{self, Sign, Stack};
use super::entries;
use super::tally::Tally;
use crate::report::{Outcome, Signs, Slow};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use tb_shared::pytest::{self, Summary, Word, rule};

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

/// A headline in ERRORS or FAILURES, and what stands under it.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) headline: u64,
    pub(super) error: bool,
    pub(super) class: Option<Box<str>>,
    pub(super) message: Option<Box<str>>,
    pub(super) place: Option<(Box<str>, u64)>,
    pub(super) worker: Option<Box<str>>,
    in_error_text: bool,
}

/// A failing test that a line named.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) id: Box<[u8]>,
    pub(super) outcome: Outcome,
    pub(super) headline: u64,
    pub(super) message: Option<Box<str>>,
    pub(super) worker: Option<Box<str>>,
    /// How many lines named it in this way.
    pub(super) times: u64,
}

/// Failing tests in the log's order, each once for each outcome.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) all: Vec<Named>,
    index: HashMap<u64, usize, BuildHasherDefault<DefaultHasher>>,
}

impl Names {
    /// How many lines named a test that is failing in this way.
    pub(super) fn lines(&self, outcome: Outcome) -> u64 {
        self.all.iter().filter(|n| n.outcome == outcome).map(|n| n.times).sum()
    }

    fn key(id: &[u8], outcome: Outcome) -> u64 {
        hash(id) ^ (outcome as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub(super) fn has(&self, id: &[u8]) -> bool {
        [Outcome::Failed, Outcome::Error].iter().any(|o| self.index.contains_key(&Names::key(id, *o)))
    }

    pub(super) fn add(&mut self, id: &[u8], outcome: Outcome, fill: impl FnOnce(&mut Named)) {
        if let Some(known) = self.get(id, outcome) {
            known.times += 1;
            return;
        }
        let headline = hash(&entries::headline(id, None));
        let mut named = Named { id: id.into(), outcome, headline, message: None, worker: None, times: 1 };
        fill(&mut named);
        self.push(named);
    }

    pub(super) fn get(&mut self, id: &[u8], outcome: Outcome) -> Option<&mut Named> {
        let at = *self.index.get(&Names::key(id, outcome))?;
        self.all.get_mut(at)
    }

    pub(super) fn find(&self, id: &[u8], outcome: Outcome) -> Option<&Named> {
        self.all.get(*self.index.get(&Names::key(id, outcome))?)
    }

    pub(super) fn push(&mut self, named: Named) {
        self.index.insert(Names::key(&named.id, named.outcome), self.all.len());
        self.all.push(named);
    }
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes)
}

/// Of a message, not more than this is kept.
const MESSAGE: usize = 400;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn message(bytes: &[u8]) -> Box<str> {
    text(&bytes[..bytes.len().min(MESSAGE)]).into()
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
    /// sugar is among the plugins, and it counts no warnings.
    pub(super) sugar_loaded: bool,
    pub(super) tally: Tally,
    pub(super) named: Names,
    pub(super) short: Names,
    /// Failed subtests that the short summary names.
    pub(super) short_subtests: u64,
    reruns: bool,
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
    /// A sign that the process itself died.
    pub(super) died: bool,
    /// A test that was begun and of which nothing else was heard.
    current: Vec<u8>,
    /// The same for each worker of xdist.
    started: HashMap<u64, Vec<u8>, BuildHasherDefault<DefaultHasher>>,
    pub(super) xdist: bool,
    last: Vec<u8>,
    file: Vec<u8>,
    rootdir: Option<Vec<u8>>,
    stack: Stack,
    pub(super) reached_100: bool,
    pub(super) slowest: Vec<Slow>,
    sugar: Vec<u8>,
    /// Runs that ended while this one was open: of tests that run pytest themselves, or, if this one proves to
    /// be dead, the runs after it.
    pub(super) children: Vec<Run>,
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
            sugar_loaded: false,
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
            went_on: false,
        }
    }

    /// A line between rules: the title of a section.
    pub(super) fn section(&mut self, title: &[u8]) {
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
        if line.first() == Some(&b'I') && line.starts_with(b"INTERNALERROR> ") {
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
                if let Some(status) = crash::exit_status(line) {
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

    fn other(&mut self, line: &[u8]) {
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

    fn internal(&mut self, rest: &[u8]) {
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
    fn bang(&mut self, line: &[u8]) {
        let Some(title) = rule(line.trim_ascii_end(), b'!') else { return };
        self.stopped_collecting |=
            title.starts_with(b"Interrupted: ") && title.ends_with(b" during collection");
        let exit = title.starts_with(b"_pytest.outcomes.Exit: ") || title.starts_with(b"Exit: ");
        let limit = title.starts_with(b"session-timeout: ");
        if title == b"KeyboardInterrupt" || exit || limit {
            self.signs.interrupted = true;
            self.fault(title);
        } else if memchr::memmem::find(title, b"received keyboard-interrupt").is_some() {
            self.fault(title);
        }
    }

    /// A demand beside the tests that was not met.
    fn gate(&mut self, line: &[u8]) {
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

    // ---- progress -------------------------------------------------------------------------------------------

    fn progress(&mut self, line: &[u8]) {
        let Some(&first) = line.first() else { return };
        if first == b'[' && line.starts_with(b"[gw") && self.xdist_line(line) {
            return;
        }
        let (body, percent) = pytest::percent(line);
        if let Some((id, word)) = pytest::result(body)
            && (percent.is_some() || pytest::is_path(&id[..memchr::memchr(b':', id).unwrap_or(0)]))
        {
            self.reached_100 |= percent == Some(100);
            self.current.clear();
            return self.result(id, word, None);
        }
        if self.explained(line, body, percent, false) {
            self.reached_100 |= percent == Some(100);
            return;
        }
        self.odd(line);
    }

    /// The rarer forms of progress. `torn`: a crash cut the line off, so that it lacks its percentage.
    fn explained(&mut self, line: &[u8], body: &[u8], percent: Option<u8>, torn: bool) -> bool {
        if let Some(id) = pytest::started(line) {
            if self.xdist {
                self.started.insert(hash(id), id.to_vec());
            } else {
                self.current = id.to_vec();
            }
            self.last = id.to_vec();
            return true;
        }
        // A test that wrote something: its word comes alone, or behind what it wrote.
        if !self.current.is_empty() || pytest::is_id(body) {
            let found = pytest::WORDS.iter().find(|(w, _)| body.ends_with(w));
            if let Some((text, word)) = found
                && (body.len() == text.len() || !self.current.is_empty() || percent.is_some())
            {
                let mut id = std::mem::take(&mut self.current);
                if id.is_empty() {
                    id = body[..pytest::id_end(body).unwrap_or(body.len() - text.len())].to_vec();
                }
                self.result(&id, *word, None);
                return true;
            }
        }
        if let Some(dots) = pytest::dots(body)
            && (percent.is_some() || torn || !dots.path.is_empty() || self.plain_letters(dots.letters))
        {
            if !dots.path.is_empty() {
                self.file = dots.path.to_vec();
            }
            self.tally.letters(dots.letters);
            return true;
        }
        false
    }

    /// Letters alone on a line, without a percentage: a run of them, or any within a run that had a header.
    fn plain_letters(&self, letters: &[u8]) -> bool {
        (self.header || letters.len() >= 2 || self.tally.reports() > 0) && !matches!(letters, b".." | b"...")
    }

    fn result(&mut self, id: &[u8], word: Word, worker: Option<&[u8]>) {
        self.tally.add(word);
        self.last.clear();
        self.last.extend_from_slice(id);
        let outcome = match word {
            Word::Failed | Word::SubFailed => Outcome::Failed,
            Word::Error => Outcome::Error,
            _ => return,
        };
        self.named.add(own_id(id), outcome, |n| n.worker = worker.map(|w| text(w).into()));
    }

    fn xdist_line(&mut self, line: &[u8]) -> bool {
        let Some(result) = pytest::xdist_result(line) else { return false };
        self.xdist = true;
        self.reached_100 |= result.percent == Some(100);
        self.started.remove(&hash(result.id));
        if !self.current.is_empty() && self.current == result.id {
            self.current.clear();
        }
        self.result(result.id, result.word, Some(result.worker));
        true
    }

    /// A line that no rule of progress explains: output of a test, a plugin's words, or the signs of a death.
    fn odd(&mut self, line: &[u8]) {
        match line[0] {
            b'2'..=b'9' | b'1' if line.ends_with(b" items]") => self.xdist = true,
            b'g' if line.starts_with(b"gw") => self.xdist = true,
            b'b' if line.starts_with(b"bringing up nodes...") => self.xdist = true,
            b'c' if line.starts_with(b"created: ") => self.xdist = true,
            b's' if line.starts_with(b"scheduling tests via ") => self.xdist = true,
            b'p' if line.starts_with(b"plugins: ") => {
                self.sugar_loaded = memchr::memmem::find(line, b" sugar-").is_some();
            }
            b'r' => {
                if let Some(dir) = line.strip_prefix(b"rootdir: ") {
                    let end = memchr::memchr(b',', dir).unwrap_or(dir.len());
                    self.rootdir = Some(dir[..end].trim_ascii_end().to_vec());
                }
            }
            b'f' if line.starts_with(b"fReplacing crashed") || line.starts_with(b"fMaximum crashed") => {
                // Before xdist 2 a crashed test's letter was a small f, glued to the news.
                self.tally.failed += 1;
            }
            b'm' if line.starts_with(b"maximum crashed workers reached") => self.fault(line),
            b'!' => self.bang(line),
            b' ' if self.sugar_line(line) => return,
            b'~' if line.starts_with(b"~~~") => self.stack.begin(false),
            _ => {}
        }
        if line[0] == b' ' {
            self.stack.line(line);
        }
        if line.starts_with(b"Current thread 0x") {
            self.stack.begin(true);
        }
        self.gate(line);
        if self.usage(line) {
            return;
        }
        let Some((at, sign)) = crash::cut(line) else {
            // A worker's words to stderr, glued to the letters: "...../venv/lib/x.py:368: SomeWarning".
            let letters = line.iter().take_while(|b| b".FEsxXR".contains(b)).count();
            if self.xdist && letters > 2 && line[letters..].starts_with(b"/") {
                self.tally.letters(&line[..letters]);
            }
            if let Some(status) = crash::exit_status(line) {
                self.fault(format!("ended with exit status {status}").as_bytes());
            }
            return;
        };
        self.sign(sign);
        // What stood before belongs to the progress that was cut off.
        if at > 0 {
            let before = &line[..at];
            let (body, percent) = pytest::percent(before.trim_ascii_end());
            self.explained(before, body, percent, true);
        }
    }

    fn sign(&mut self, sign: Sign<'_>) {
        match sign {
            Sign::Fatal(what) => self.fault(&[b"Fatal Python error: ", what].concat()),
            Sign::NodeDown { worker, why } => {
                self.xdist = true;
                self.node_downs += 1;
                let worker = text(worker);
                self.fault(format!("worker {worker} died: {}", text(why)).as_bytes());
                if !self.crashed_workers.contains(&worker) && self.crashed_workers.len() < 10_000 {
                    self.crashed_workers.push(worker);
                }
            }
            Sign::Timeout => {
                self.stack.begin(false);
                self.fault(b"pytest-timeout ended the whole process");
            }
            Sign::Internal(rest) => self.internal(rest),
            Sign::Killed(signal) => self.fault(format!("ended by {signal}").as_bytes()),
            Sign::Traceback | Sign::SlowDump => {}
        }
    }

    /// What pytest says of its command line and configuration.
    fn usage(&mut self, line: &[u8]) -> bool {
        if self.tally.reports() > 0 || self.signs.usage && !line.starts_with(b"ERROR: ") {
            return false;
        }
        let said = line.starts_with(b"ERROR: ") && !line.starts_with(b"ERROR: Coverage")
            || line.starts_with(b"ImportError while loading conftest ")
            || line.starts_with(b"ConftestImportFailure: ");
        if said {
            self.signs.usage = true;
            self.fault(line.strip_prefix(b"ERROR: ").unwrap_or(line));
        }
        said
    }

    /// The bar that sugar draws again after each test: ` test_a.py ✓✓⨯ 8% █▏`.
    fn sugar_line(&mut self, line: &[u8]) -> bool {
        let Some(words) = std::str::from_utf8(line).ok().map(str::trim) else { return false };
        let Some((place, rest)) = words.split_once(['✓', '⨯']).map(|(p, _)| words.split_at(p.len()))
        else {
            // Letters alone are not told from a name's.
            return false;
        };
        let symbols = rest.split(' ').next().unwrap_or_default();
        if !place.ends_with(' ') {
            return false;
        }
        let state = format!("{place}{symbols}").into_bytes();
        let fresh = match state.strip_prefix(&self.sugar[..]) {
            Some(more) if !self.sugar.is_empty() => text(more),
            _ => symbols.to_owned(),
        };
        for symbol in fresh.chars() {
            match symbol {
                '✓' => self.tally.passed += 1,
                '⨯' => self.tally.failed += 1,
                c => self.tally.letters(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.sugar = state;
        true
    }

    // ---- sections -------------------------------------------------------------------------------------------

    /// A line of ERRORS or FAILURES.
    fn report(&mut self, line: &[u8], outcome: Outcome) {
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
            b'w' | b's' => {
                if let Some((worker, id)) = crash::crashed_while(line) {
                    self.crash_reports += 1;
                    if let Some(block) = self.blocks.last_mut() {
                        // Over it stands the file; the test is here.
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

    fn headline(&mut self, title: &[u8], outcome: Outcome) {
        // "_ _ _ _" between the frames of a traceback is no headline.
        if title.iter().all(|b| matches!(b, b'_' | b' ')) {
            return;
        }
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
        let name = name.strip_prefix(b"[doctest] ").unwrap_or(name);
        let headline = hash(name);
        self.block_names.insert(headline);
        self.blocks.push(Block { headline, error, ..Block::default() });
    }

    /// A line of the short summary that names a failing test.
    fn entry(&mut self, line: &[u8]) -> bool {
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

    fn duration(&mut self, line: &[u8]) {
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
    fn totals(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        let seconds = line.strip_prefix(b"Results (").and_then(|l| l.strip_suffix(b"s):"));
        let Some(seconds) = seconds.and_then(|t| std::str::from_utf8(t).ok()).and_then(|t| t.parse().ok())
        else {
            return false;
        };
        self.summary = Some(Summary { seconds, ..Summary::default() });
        self.results = true;
        self.phase = Phase::Results;
        true
    }

    fn result_total(&mut self, line: &[u8]) {
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
        let Some(all) = &mut self.summary else { return };
        all.failed += one.failed;
        all.passed += one.passed;
        all.skipped += one.skipped;
        all.deselected += one.deselected;
        all.xfailed += one.xfailed;
        all.xpassed += one.xpassed;
        all.errors += one.errors;
        all.reruns += one.reruns;
    }

    /// `tests/test_a.py:10 TestX.test_y[a]`, sugar's own list.
    fn sugar_name(&mut self, text: &[u8]) {
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

    // ---- what is left at the end ----------------------------------------------------------------------------

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
    fn relative(&self, file: &[u8]) -> String {
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

/// `-vv` shows where a test is defined, if elsewhere: `id <- other/file.py`.
fn own_id(id: &[u8]) -> &[u8] {
    match memchr::memmem::rfind(id, b" <- ") {
        Some(at) if pytest::balanced(&id[..at]) && pytest::is_path(&id[at + 4..]) => &id[..at],
        _ => id,
    }
}
