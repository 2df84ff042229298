//! pytest, 3.10 to 9.2, with xdist, timeout, rerunfailures, subtests, sugar, pretty and instafail.
//!
//! The hard part of such a log is not to read a line but to know whose line it is: tests print whole reports of
//! other runs, fail with them as their message, run pytest themselves; and several runs may stand one after the
//! other, of which one has died without a word. Three rules decide:
//!
//! - A header opens a run inside the open one, a summary closes one. What was opened inside a run that comes to
//!   its own summary was output of its tests, and is forgotten. What was opened inside a run that said nothing
//!   more came after it: that run is dead.
//! - A summary belongs to the run whose form it has (bars of the terminal's width, or none) and, among those, to
//!   the one whose counted results it tells of. The last one wins: a line that only looked like a summary is
//!   corrected by what follows.
//! - A run says how many tests it has, before they run. As long as results are missing, and it has not said that
//!   it stops, what looks like its end is output.

mod crash;
mod entries;
mod names;
mod progress;
mod run;
mod sections;
mod session;
mod tally;

use crate::report::Session;
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::sessions::Sessions;
use run::{Phase, Run};
use tally::Tally;
use tb_shared::pytest::{self, Summary, rule};

/// How deep runs may stand inside each other before the log is taken for noise.
const DEPTH: usize = 16;
/// How many ended runs are kept inside an open one.
const CHILDREN: usize = 1000;

/// How many letters behind the end of a run are kept.
const STRAY: usize = 1 << 16;

const HEADER: &[u8] = b"test session starts";
const SUGAR_HEADER: &[u8] = b"Test session starts (platform: ";

/// Whether a line opens output of pytest.
pub fn opens(line: &[u8]) -> bool {
    let Some(&first) = line.first() else { return false };
    match first {
        b'=' => {
            let titles: [&[u8]; 4] = [HEADER, b"ERRORS", b"FAILURES", b"short test summary info"];
            match rule(line.trim_ascii_end(), b'=') {
                Some(title) => titles.contains(&title) || pytest::summary(line).is_some(),
                None => is_torn_header(line),
            }
        }
        b'!' => rule(line.trim_ascii_end(), b'!')
            .is_some_and(|t| t == b"KeyboardInterrupt" || t.starts_with(b"_pytest.outcomes.Exit: ")),
        b'T' if line.starts_with(SUGAR_HEADER) => true,
        // The dump of a dying interpreter that was at work for pytest.
        b' ' if line.starts_with(b"  File \"") => {
            memchr::memmem::find(line, b"/_pytest/").is_some() && crash::dumped(line)
        }
        b'+' => line.ends_with(b"+") && memchr::memmem::find(line, b"+ Timeout +").is_some(),
        b'R' if line.starts_with(b"Results (") => sections::totals_after(line).is_some(),
        b'I' if line.starts_with(b"INTERNALERROR> ") => true,
        b'I' | b'E' | b'u' if is_usage(line) => true,
        b'[' if line.starts_with(b"[gw") => {
            pytest::xdist_result(line).is_some() || memchr::memmem::find(line, b"] node down: ").is_some()
        }
        b'g' if line.starts_with(b"gw0 ") => line[4..].starts_with(b"[") || line[4..].starts_with(b"I / "),
        b'b' if line.starts_with(b"bringing up nodes...") => true,
        b'n' | b'0'..=b'9' if pytest::summary(line).is_some() => true,
        // No id, no path and no letters begin so, but many lines of others do.
        b' ' => false,
        _ => {
            let (body, percent) = pytest::percent(line);
            // Most lines that this is asked of are other runners': those without an id are soon told.
            if pytest::is_id(body)
                && let Some((id, _)) = pytest::result(body)
            {
                let colon = memchr::memchr(b':', id).unwrap_or(0);
                return percent.is_some() || id[..colon].ends_with(b".py");
            }
            // Letters end a line of the short form, or begin one that somebody's last words are glued to.
            let letter = |b: &u8| b".FEsxXRu,-yYf".contains(b);
            let dots = body.trim_ascii_end().last().filter(|b| letter(b)).and_then(|_| pytest::dots(body));
            let Some(dots) = dots else {
                let behind = line.iter().find(|b| !letter(b));
                return letter(&first)
                    && matches!(behind, Some(b' ' | b'[' | b'+' | b'T' | b'a'))
                    && crash::before_last_words(line).is_some_and(|before| {
                        let (body, _) = pytest::percent(before.trim_ascii_end());
                        pytest::dots(body).is_some_and(|d| d.path.is_empty())
                    });
            };
            percent.is_some() && !dots.letters.is_empty()
                || dots.path.ends_with(b".py") && !dots.letters.is_empty()
        }
    }
}

/// What only pytest says of its command line and configuration.
fn is_usage(line: &[u8]) -> bool {
    let words: [&[u8]; 6] = [
        b"ERROR: file or directory not found: ",
        b"ERROR: file not found: ",
        b"ImportError: Error importing plugin \"",
        b"ERROR: not found: ",
        b"ERROR: Error importing plugin \"",
        b"ImportError while loading conftest '",
    ];
    // Before 4.0 argparse speaks for itself.
    let said = line.strip_prefix(b"ERROR: ").unwrap_or(line);
    let usage = said.starts_with(b"usage: ") && memchr::memmem::find(said, b" [file_or_dir] ").is_some();
    usage || words.iter().any(|w| line.starts_with(w))
}

/// Whether a whole log, of which no line opens a run, is that of a quiet run that died before its first
/// percentage: letters, and nothing else.
pub fn may_be(lines: &[&[u8]]) -> bool {
    let mut full = lines.iter().map(|l| l.trim_ascii_end()).filter(|l| !l.is_empty()).peekable();
    full.peek().is_some()
        && full.all(|l| {
            pytest::dots(l)
                .is_some_and(|d| d.path.is_empty() && d.letters.len() == l.len() && l.contains(&b'.'))
                && l != b"..."
        })
}

/// A header that lost its line end when it was pasted.
fn is_torn_header(line: &[u8]) -> bool {
    line.starts_with(b"==") && memchr::memmem::find(line, b"= test session starts =").is_some()
}

/// A parser at its start.
pub fn start() -> Box<dyn Runner> {
    Box::new(Pytest::default())
}

/// The command line that selects these tests. Under xdist `-n0`: what a crowd of workers broke may pass alone.
pub fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    // "python -m pytest", "/venv/bin/pytest": as it was called, without its selection.
    let called = again.command.and_then(|words| {
        let at =
            words.iter().take(4).position(|w| matches!(w.rsplit('/').next(), Some("pytest" | "py.test")))?;
        Some(words[..=at].to_vec())
    });
    let mut words = called.unwrap_or_else(|| vec!["pytest".to_owned()]);
    if again.parallel {
        words.push("-n0".to_owned());
    }
    words.extend(again.ids.iter().map(|id| (*id).to_owned()));
    vec![words]
}

/// The runs that are over, and those that are open, the outermost first.
#[derive(Default)]
struct Pytest {
    over: Sessions,
    open: Vec<Run>,
    /// Lines of nothing but letters behind the end of the only run: a quiet one's, if more is heard of it.
    stray: Vec<u8>,
    /// The last line lacks its end: somebody cut it off.
    cut: bool,
}

impl Runner for Pytest {
    fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        self.cut = !line.ended;
        let Some(&first) = text.first() else { return };
        match first {
            b'=' => {
                let trimmed = text.trim_ascii_end();
                match rule(trimmed, b'=') {
                    Some(HEADER) => return self.header(Some(trimmed.len())),
                    Some(title) => match pytest::summary(trimmed) {
                        Some(summary) => return self.summary(summary),
                        None if Run::is_section(title) => return self.section(title, trimmed.len()),
                        None => {}
                    },
                    None if is_torn_header(text) => return self.header(None),
                    None => {}
                }
            }
            b'0'..=b'9' | b'n' => {
                if let Some(summary) = pytest::summary(text) {
                    return self.summary(summary);
                }
            }
            b'T' if text.starts_with(SUGAR_HEADER) => return self.sugar_header(),
            b'R' if self.open.len() > 1 && text.starts_with(b"Results (") => self.totals(),
            // A test that prints a report at once does so behind its own name.
            _ if text.last() == Some(&b'=')
                && self.open.last().is_some_and(|r| r.phase == Phase::Progress) =>
            {
                if let Some(at) = memchr::memmem::find(text, b"= test session starts =") {
                    let start = text[..at].iter().rposition(|b| *b != b'=').map_or(0, |i| i + 1);
                    if let Some(run) = self.open.last_mut() {
                        run.line(&text[..start]);
                    }
                    return self.header(Some(text.len() - start));
                }
            }
            _ => {}
        }
        match self.open.last_mut() {
            Some(run) if run.phase != Phase::After => {
                run.line(text);
                if !run.children.is_empty() && !run.went_on {
                    run.went_on = pytest::percent(text).1.is_some();
                }
            }
            _ => self.outside(text),
        }
    }

    fn idle(&self) -> bool {
        match &self.open[..] {
            [] => true,
            [run] => run.phase == Phase::After && run.credible(),
            _ => false,
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Session> {
        if let Some(run) = self.open.last_mut().filter(|_| self.cut) {
            run.end_is_cut();
        }
        // A run that ends without a summary has a short summary nevertheless: if that of a run inside names its
        // failures, it is its own, and what looked like a run was in the reports.
        let lists = |outer: &Run, inner: &Run| inner.summary.is_none() && outer.knows_any(&inner.short);
        if let Some(at) = (0..self.open.len())
            .find(|at| self.open[at + 1..].iter().any(|inner| lists(&self.open[*at], inner)))
        {
            while self.open.len() > at + 1 {
                let Some(inner) = self.open.pop() else { break };
                self.open[at].adopt(inner);
            }
        }
        for mut run in std::mem::take(&mut self.open) {
            let children = std::mem::take(&mut run.children);
            let doubtful = run.doubtful.as_ref().is_some_and(|s| run.covers(s));
            let own = run.summary.is_some() || doubtful || run.went_on;
            self.over.push(run.into_session());
            if !own {
                self.over.extend(children.into_iter().map(Run::into_session));
            }
        }
        self.over.into_vec()
    }
}

impl Pytest {
    /// A line while no run is open, or behind the summary of the only one.
    fn outside(&mut self, text: &[u8]) {
        let begins = self.open.is_empty() || {
            let (body, percent) = pytest::percent(text);
            percent.is_some() && (pytest::dots(body).is_some() || pytest::result(body).is_some())
                || text.starts_with(b"bringing up nodes...")
                || is_usage(text) && self.open.last().is_some_and(|r| !r.ran_nothing())
        };
        if let Some(run) = self.open.last_mut()
            && text.first() == Some(&b'_')
            && run.phase == Phase::After
            && run.reports_go_on(text)
        {
            return run.line(text);
        }
        if begins
            && let Some(run) = self.open.last_mut()
            && run.header
            && run.summary.as_ref().is_some_and(|s| !run.covers(s))
        {
            // Tests are still missing, and here they come: the summary was a test's output.
            run.reopen();
            return run.line(text);
        }
        if begins {
            self.close_ended();
            self.stray.clear();
            self.open.push(Run::new(None, false));
        } else if self.stray.len() < STRAY
            && text.first().is_some_and(|b| b".FEsxX".contains(b))
            && pytest::dots(text).is_some_and(|d| d.letters.len() == text.trim_ascii_end().len())
        {
            self.stray.extend_from_slice(text.trim_ascii_end());
        }
        if let Some(run) = self.open.last_mut() {
            run.line(text);
        }
    }

    /// The quiet run whose letters stood behind the end of another.
    fn quiet_behind(&mut self) {
        self.close_ended();
        let mut run = Run::new(None, false);
        run.tally.letters(&std::mem::take(&mut self.stray));
        self.open.push(run);
    }

    fn stray_tally(&self) -> Tally {
        let mut tally = Tally::default();
        tally.letters(&self.stray);
        tally
    }

    /// A run behind whose summary another begins is over.
    fn close_ended(&mut self) {
        while self.open.last().is_some_and(|r| r.phase == Phase::After) {
            let Some(run) = self.open.pop() else { break };
            self.put_away(run);
        }
    }

    fn put_away(&mut self, mut run: Run) {
        run.children.clear();
        match self.open.last_mut() {
            None => self.over.push(run.into_session()),
            Some(outer) if outer.children.len() < CHILDREN => {
                outer.went_on = false;
                outer.children.push(run);
            }
            Some(_) => {}
        }
    }

    fn header(&mut self, width: Option<usize>) {
        if let Some(run) = self.open.last_mut()
            && run.phase == Phase::Results
        {
            run.phase = Phase::After;
        }
        // In the midst of its reports, and tests are missing still: what ended was output, and this is more of it.
        if let Some(run) = self.open.last_mut()
            && run.phase == Phase::After
            && run.header
            && matches!(run.ended_in, Phase::Reports(_))
            && run.summary.as_ref().is_some_and(|s| !run.covers(s))
        {
            run.reopen();
        }
        self.close_ended();
        // Lines before a header open a run by mistake only if they were noise; a run that has said nothing yet
        // and this header are one.
        if let [run] = &mut self.open[..]
            && !run.header
            && run.phase == Phase::Progress
            && run.tally.reports() == 0
            && run.lone_letter.is_none()
            && !run.signs.internal_error
        {
            *run = Run::new(width, true);
            return;
        }
        if self.open.len() == DEPTH {
            self.open.pop();
        }
        self.stray.clear();
        self.open.push(Run::new(width, true));
    }

    #[cold]
    fn sugar_header(&mut self) {
        self.header(None);
        if let Some(run) = self.open.last_mut() {
            run.totals_instead = true;
        }
    }

    /// Totals are those of the run whose plugin writes them; what was opened in it was output.
    #[cold]
    fn totals(&mut self) {
        let ended = |r: &Run| matches!(r.phase, Phase::After | Phase::Results);
        let Some(at) = self.open.iter().rposition(|r| r.totals_expected && !ended(r)) else { return };
        while self.open.len() > at + 1 {
            let Some(inner) = self.open.pop() else { break };
            if !ended(&inner) {
                self.open[at].adopt(inner);
            }
        }
    }

    fn section(&mut self, title: &[u8], width: usize) {
        if self.open.is_empty() {
            self.open.push(Run::new(Some(width), false));
        }
        let ended = self.open.last().is_some_and(|r| r.phase == Phase::After);
        if ended && self.open.len() > 1 {
            // The inner run is over; this is the outer one's.
            self.close_ended();
            return self.section(title, width);
        }
        if ended && matches!(title, b"ERRORS" | b"FAILURES") {
            // Letters of failures without a run, or a run that had a result for each of its tests: these are the
            // reports of a quiet one behind it.
            let stray = self.stray_tally();
            let whole = |r: &Run| r.header && r.has_all();
            let letters = stray.failed + stray.errors > 0 && self.open.last().is_some_and(Run::is_over);
            if letters || self.open.last().is_some_and(whole) {
                self.quiet_behind();
                return self.section(title, width);
            }
        }
        let Some(run) = self.open.last_mut() else { return };
        if ended {
            run.reopen();
        }
        run.width.get_or_insert(width);
        run.went_on = true;
        run.section(title);
    }

    fn summary(&mut self, summary: Summary) {
        if self.open.is_empty() {
            self.open.push(Run::new(None, false));
        }
        if self.open.len() > 1 && self.open.last().is_some_and(|r| r.phase == Phase::After) {
            self.close_ended();
            if self.open.is_empty() {
                self.open.push(Run::new(None, false));
            }
        }
        if let [run] = &self.open[..]
            && run.phase == Phase::After
            && summary.bars.is_none()
            && run.is_over()
            && self.stray_tally().fits(&summary)
        {
            self.quiet_behind();
        }
        let top = self.open.len() - 1;
        // Whose is it? The innermost whose form it has, unless an outer one's results are just these.
        let own = (0..=top).rev().find(|i| self.open[*i].admits(&summary));
        let fits =
            (0..=top).rev().find(|i| self.open[*i].admits(&summary) && self.open[*i].tally.fits(&summary));
        // A run that said how many tests it has ends when there are as many results.
        let whole =
            (0..=top).rev().find(|i| self.open[*i].admits(&summary) && self.open[*i].is_whole(&summary));
        let Some(at) = fits.or(whole).or(own) else {
            let run = &mut self.open[top];
            if run.phase != Phase::After {
                run.doubtful = Some(summary);
            }
            return;
        };
        // Runs inside that never ended were output; what they seemed to list is this run's own.
        while self.open.len() > at + 1 {
            let Some(inner) = self.open.pop() else { break };
            self.open[at].adopt(inner);
        }
        let run = &mut self.open[at];
        if run.phase == Phase::After {
            let another =
                run.summary.as_ref().is_some_and(|old| run.tally.fits(old)) && !run.tally.fits(&summary);
            let replaces = match &run.summary {
                // A run without bars does not end in a line with bars, as long as there is one without.
                Some(old) => !another && (summary.bars.is_none() || old.bars.is_some()),
                None => true,
            };
            if another && !run.header && summary.bars.is_none() {
                self.close_ended();
                let mut next = Run::new(None, false);
                next.end(summary);
                self.open.push(next);
            } else if replaces {
                run.end(summary);
            }
            return;
        }
        run.end(summary);
        if at > 0 {
            self.close_ended();
        } else {
            run.children.clear();
        }
    }
}

impl Run {
    /// Whether a summary of this form can be this run's.
    fn admits(&self, summary: &Summary) -> bool {
        // Less than half a terminal, and no telling how wide it was: a test wrote it.
        const NARROW: usize = 40;
        if self.totals_instead {
            return false;
        }
        match (summary.bars, self.width) {
            (None, _) => !self.header,
            (Some(bars), None) if !self.header => bars >= NARROW,
            (Some(bars), Some(width)) => bars == width || bars + 1 == width || bars > width,
            (Some(_), None) => true,
        }
    }

    /// Whether its summary says that no tests ran.
    fn ran_nothing(&self) -> bool {
        self.summary.as_ref().is_some_and(|s| s.reports() == 0)
    }

    /// Whether so many results are all that the run can have had: it said how many tests it has, or that it
    /// stops before they have all run.
    fn covers(&self, summary: &Summary) -> bool {
        self.stopped
            || self.signs.internal_error
            || summary.collected.is_some()
            || self.expected.is_none_or(|n| summary.reports() >= n)
    }

    /// Whether there is a result for each of its tests, no fewer and no more. (Modules are skipped as well, and
    /// errors may come on top.)
    fn is_whole(&self, summary: &Summary) -> bool {
        let of_tests = [summary.failed, summary.passed, summary.xfailed, summary.xpassed]
            .iter()
            .fold(0u64, |sum, n| sum.saturating_add(*n));
        self.expected.is_some_and(|n| n > 0 && of_tests <= n && n <= summary.reports())
    }

    /// Whether its summary has a result for each of its tests.
    fn has_all(&self) -> bool {
        self.summary.as_ref().is_some_and(|s| self.expected.is_some_and(|n| s.reports() >= n))
    }

    /// Whether all speaks for its having ended in its summary: it tells of all the tests, or of all the letters.
    fn is_over(&self) -> bool {
        self.summary.as_ref().is_some_and(|s| self.has_all() || self.tally.fits(s))
    }

    /// Whether its summary can be its own: tests are missing, and it knows less than was seen already, if not.
    fn credible(&self) -> bool {
        self.summary.as_ref().is_none_or(|s| {
            let known = self.expected.is_some() || self.blocks.is_empty();
            self.covers(s) && known || self.tally.reports() <= s.reports()
        })
    }

    fn end(&mut self, summary: Summary) {
        self.summary = Some(summary);
        self.results = false;
        if self.phase == Phase::After {
            self.forget_what_followed();
        } else {
            self.ended_in = std::mem::replace(&mut self.phase, Phase::After);
            self.at_end = (self.signs, self.faults.len());
        }
    }

    /// The summary was none: what seemed to come behind the end came before it, in a test's output.
    fn forget_what_followed(&mut self) {
        self.signs = self.at_end.0;
        self.faults.truncate(self.at_end.1);
        self.died = false;
    }

    /// What looked like the summary was none: the run goes on where it was.
    fn reopen(&mut self) {
        self.doubtful = self.summary.take();
        self.forget_what_followed();
        self.phase = self.ended_in;
    }

    /// Behind a summary, the headline of another failure: the summary was in a test's output.
    fn reports_go_on(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        let in_reports = match self.ended_in {
            Phase::Reports(_) => true,
            // The sections before the summary were output as well.
            _ => !self.blocks.is_empty() && (!self.credible() || !self.knows_all()),
        };
        let goes_on = in_reports
            && rule(line, b'_').is_some()
            && self.width.is_none_or(|w| line.len() == w || line.len() + 1 == w || line.len() > w);
        if goes_on {
            self.reopen();
        }
        goes_on
    }

    fn adopt(&mut self, inner: Run) {
        if inner.phase == Phase::Short || !inner.short.all.is_empty() {
            self.short = inner.short;
            self.short_subtests = inner.short_subtests;
        }
        for block in inner.blocks {
            self.block_names.insert(block.headline);
            self.blocks.push(block);
        }
        self.signs.interrupted |= inner.signs.interrupted;
        self.slowest.extend(inner.slowest);
    }
}
