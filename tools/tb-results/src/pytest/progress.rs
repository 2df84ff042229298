//! The part of a run in which tests run: results, letters, bars, and the signs of a death in their midst.

use super::crash::{self, Sign};
use super::entries;
use super::names::{hash, text};
use super::run::Run;
use crate::report::Outcome;
use crate::scan::leading;
use tb_shared::pytest::{self, Word};

impl Run {
    pub(super) fn progress(&mut self, line: &[u8]) {
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
        self.unusual(line, body, percent);
    }

    /// Whatever is no plain result, apart from the lines of which a long log is made.
    #[inline(never)]
    fn unusual(&mut self, line: &[u8], body: &[u8], percent: Option<u8>) {
        // "rootdir: /srv/app, configfile: pytest.ini" ends as a path does.
        if self.rootdir.is_none() && line.starts_with(b"rootdir: ") {
            return self.odd(line);
        }
        // 3.x writes this word small.
        if let Some(id) = body.strip_suffix(b" xfail")
            && pytest::is_path(entries::path(id))
            && pytest::is_id(id)
        {
            self.current.clear();
            return self.result(id, Word::Xfail, None);
        }
        if self.explained(line, body, percent, false) {
            self.reached_100 |= percent == Some(100);
            return;
        }
        // Words that a plugin says at the end of the tests, glued to the last percentage.
        if let Some(at) = memchr::memmem::find(line, b"%]").map(|at| at + 2)
            && at < line.len()
            && let (body, Some(percent)) = pytest::percent(&line[..at])
            && pytest::dots(body).is_some_and(|d| !d.letters.is_empty())
        {
            self.explained(&line[..at], body, Some(percent), false);
            self.reached_100 |= percent == 100;
            return self.odd(&line[at..]);
        }
        if let [letter] = line
            && !self.header
            && self.tally.reports() == 0
            && b".FEsxX".contains(letter)
        {
            self.lone_letter.get_or_insert(*letter);
        }
        self.odd(line);
    }

    /// The rarer forms of progress. `torn`: a crash cut the line off, so that it lacks its percentage.
    pub(super) fn explained(&mut self, line: &[u8], body: &[u8], percent: Option<u8>, torn: bool) -> bool {
        if let Some(id) = pytest::started(line) {
            if self.xdist {
                // No run has so many workers: lines like these are somebody's output.
                if self.started.len() < 1 << 16 {
                    self.started.insert(hash(id), id.to_vec());
                }
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
            && !(dots.letters.is_empty() && is_muddled(body))
            // "----- generated xml file: /a/j.xml -----"
            && !dots.path.starts_with(b"--")
            && (percent.is_some() || torn || !dots.path.is_empty() || self.plain_letters(dots.letters))
        {
            if !dots.path.is_empty() {
                self.file = dots.path.to_vec();
            }
            self.tests_go_on();
            self.tally.letters(dots.letters);
            return true;
        }
        false
    }

    /// There are results behind what looked like the end.
    #[inline]
    fn tests_go_on(&mut self) {
        if self.before_bang.is_some() || self.signs.internal_error {
            self.ended_too_early();
        }
    }

    #[cold]
    fn ended_too_early(&mut self) {
        self.goes_on();
        // No test runs after an internal error; but the error of one worker is not the others'.
        if self.signs.internal_error && !self.xdist {
            self.signs.internal_error = false;
            self.faults.retain(|f| !f.starts_with("internal error: "));
        }
    }

    /// Letters alone on a line, without a percentage: a run of them, or any within a run that had a header.
    pub(super) fn plain_letters(&self, letters: &[u8]) -> bool {
        // A rule under a table is none, nor is what does not fit into a line.
        (self.header || letters.len() >= 2 || self.tally.reports() > 0)
            && !matches!(letters, b".." | b"...")
            && letters.iter().any(|b| !matches!(b, b'-' | b','))
            && self.width.is_none_or(|w| letters.len() <= w)
    }

    pub(super) fn result(&mut self, id: &[u8], word: Word, worker: Option<&[u8]>) {
        self.tests_go_on();
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

    pub(super) fn xdist_line(&mut self, line: &[u8]) -> bool {
        let Some(mut result) = pytest::xdist_result(line) else { return false };
        self.xdist = true;
        // Its line end comes with the next line: what a worker writes meanwhile is glued to the id. The id that
        // was begun is the id.
        if !self.started.contains_key(&hash(result.id)) {
            let spaces = memchr::memchr_iter(b' ', result.id).take(64);
            let begun = spaces.map(|at| &result.id[..at]).find(|id| self.started.contains_key(&hash(id)));
            // A second result, of a teardown that failed, mostly follows the first.
            let again = result.id.starts_with(&self.last) && result.id.get(self.last.len()) == Some(&b' ');
            result.id = match begun {
                Some(begun) => begun,
                None if again && !self.last.is_empty() => &result.id[..self.last.len()],
                None => result.id,
            };
        }
        self.reached_100 |= result.percent == Some(100);
        // The results of subtests come before their test's own.
        if !matches!(result.word, Word::SubPassed | Word::SubFailed | Word::SubSkipped) {
            self.started.remove(&hash(result.id));
        }
        if !self.current.is_empty() && self.current == result.id {
            self.current.clear();
        }
        self.result(result.id, result.word, Some(result.worker));
        true
    }

    /// A line that no rule of progress explains: output of a test, a plugin's words, or the signs of a death.
    pub(super) fn odd(&mut self, line: &[u8]) {
        match line[0] {
            b'1'..=b'9' if line.trim_ascii_end().ends_with(b" items]") => {
                self.xdist = true;
                self.expect(shared_out(line));
            }
            b'g' if line.starts_with(b"gw") => {
                self.xdist = true;
                self.expect(shared_out(line));
            }
            b'b' if line.starts_with(b"bringing up nodes...") => self.xdist = true,
            b'c' if line.starts_with(b"created: ") => self.xdist = true,
            b'c' => {
                if let Some((tests, uncollected)) = collected(line) {
                    self.expect(Some(tests));
                    self.uncollected = uncollected;
                }
            }
            b's' if line.starts_with(b"scheduling tests via ") => self.xdist = true,
            b'p' if line.starts_with(b"plugins: ") => {
                self.plugin_subtests = memchr::memmem::find(line, b" subtests-").is_some();
                self.sugar_loaded = memchr::memmem::find(line, b" sugar-").is_some();
                let pretty = memchr::memmem::find(line, b" pretty-").is_some();
                self.totals_expected = self.sugar_loaded || pretty;
                self.totals_instead |= pretty;
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
            b'\xe2' => self.sugar_headline(line),
            b'~' if line.starts_with(b"~~~") => self.stack.begin(false),
            _ => {}
        }
        if matches!(line[0], b' ' | b'<') {
            self.stack.line(line);
            let items = [&b"<Function "[..], b"<TestCaseFunction ", b"<DoctestItem "];
            self.listed |= items.iter().any(|i| line.trim_ascii_start().starts_with(i));
        } else if (!self.header || self.totals_instead) && pytest::is_id(line) {
            let colon = memchr::memchr(b':', line).unwrap_or(0);
            self.listed |= pytest::is_path(&line[..colon]) && !line.ends_with(b" ");
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
            if self.xdist && letters > 2 && matches!(line.get(letters), Some(b'/' | b'!')) {
                self.tally.letters(&line[..letters]);
                self.bang(&line[letters..]);
            }
            // A test that writes at once does so behind its own name.
            if self.header && !self.xdist && self.current.is_empty() {
                let id = spoken(line).unwrap_or_default();
                match pytest::WORDS.iter().find(|(w, _)| line.ends_with(w)) {
                    Some((_, word)) if !id.is_empty() => self.result(id, *word, None),
                    _ => self.current = id.to_vec(),
                }
            }
            if let Some(status) = crash::exit_status(line) {
                self.fault(format!("ended with exit status {status}").as_bytes());
            }
            self.muddled |= is_muddled(line);
            self.spoken_between |= !self.header && line[0] == b'.' && line.len() > 1;
            return;
        };
        self.sign(sign);
        // What stood before belongs to the progress that was cut off.
        if at > 0 {
            let before = &line[..at];
            let (body, percent) = pytest::percent(before.trim_ascii_end());
            let result = pytest::result(body).filter(|_| !self.xdist);
            let explained = match result {
                Some((id, word)) => {
                    self.result(id, word, None);
                    true
                }
                None => self.explained(before, body, percent, true),
            };
            let letter =
                b".FEsxXR".contains(&before[0]) && before.get(1).is_none_or(|b| b".FEsxXR".contains(b));
            self.muddled |= !explained && (letter || is_muddled(before));
            // Its line ends when the next test begins: it died in what comes behind the result, the teardown.
            if matches!(sign, Sign::Fatal(_) | Sign::Timeout | Sign::Killed(_))
                && let Some((id, _)) = result
            {
                self.current = own_id(id).to_vec();
            }
        }
    }

    /// The first such word is the run's own, before any test had a chance to speak.
    fn expect(&mut self, tests: Option<u64>) {
        if self.tally.reports() == 0 && self.current.is_empty() {
            self.expected = self.expected.or(tests);
        }
    }

    pub(super) fn sign(&mut self, sign: Sign<'_>) {
        self.torn |= match sign {
            Sign::Fatal(_) | Sign::Timeout | Sign::Killed(_) => !self.xdist,
            // Behind the last test it is the session's own end that failed.
            Sign::Traceback => self.reached_100 || self.signs.interrupted,
            Sign::NodeDown { .. } | Sign::Internal(_) | Sign::SlowDump => false,
        };
        match sign {
            Sign::Fatal(what) => self.fault(&[b"Fatal Python error: ", what].concat()),
            Sign::NodeDown { worker, why } => {
                // A run that began without a word of workers may have none: then a test wrote this.
                self.xdist |= !self.header;
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
    pub(super) fn usage(&mut self, line: &[u8]) -> bool {
        // Behind a header every "ERROR: " at this place is pytest's; elsewhere it may be anybody's.
        let own = self.header && line.starts_with(b"ERROR: ") && !line.starts_with(b"ERROR: Coverage");
        let said = self.tally.reports() == 0 && (own || super::is_usage(line));
        if said {
            self.signs.usage = true;
            self.fault(line.strip_prefix(b"ERROR: ").unwrap_or(line));
        }
        said
    }

    /// `――― ERROR collecting test_a.py ―――`: sugar's report of a file, the moment it is known.
    fn sugar_headline(&mut self, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        let title = line.trim().trim_matches('―').trim();
        if let Some(path) = title.strip_prefix("ERROR collecting ")
            && self.tally.reports() == 0
        {
            self.named.add(path.as_bytes(), Outcome::Error, |_| {});
        }
    }

    /// The bar that sugar draws again after each test: ` test_a.py ✓✓⨯ 8% █▏`.
    pub(super) fn sugar_line(&mut self, line: &[u8]) -> bool {
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
}

/// The id in `tests/test_a.py::test_b some words`.
fn spoken(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memmem::find(line, b"::")?;
    let end = pytest::id_end(line)?;
    (colon < end && line[..colon].ends_with(b".py") && pytest::is_path(&line[..colon]))
        .then_some(&line[..end])
}

/// `tests/test_a.py .x.warning: x`: the letters of a file's tests, and what these wrote between them.
fn is_muddled(line: &[u8]) -> bool {
    let Some(space) = memchr::memchr(b' ', line) else { return false };
    line[..space].ends_with(b".py")
        && pytest::is_path(&line[..space])
        && line.get(space + 1).is_some_and(|b| *b != b' ')
}

/// How many tests are to run, and how many files are errors, of `collected 9 items / 1 error / 2 deselected / 1 skipped / 7 selected`. (What is
/// skipped there are modules, which are none of the items.)
fn collected(line: &[u8]) -> Option<(u64, u64)> {
    let line = line.strip_prefix(b"collecting ... ").unwrap_or(line);
    let (mut tests, rest) = leading(line.strip_prefix(b"collected ")?)?;
    let mut parts = rest.split(|b| *b == b'/').map(<[u8]>::trim_ascii);
    if !matches!(parts.next()?, b"item" | b"items") {
        return None;
    }
    let mut uncollected = 0;
    for part in parts {
        match leading(part) {
            Some((n, b" deselected")) => tests = tests.saturating_sub(n),
            Some((n, b" error" | b" errors")) => uncollected = n,
            _ => {}
        }
    }
    Some((tests, uncollected))
}

/// The same of `2 workers [9 items]` and of `gw0 [9] / gw1 [9]`.
fn shared_out(line: &[u8]) -> Option<u64> {
    let open = memchr::memchr(b'[', line)?;
    let (tests, rest) = leading(&line[open + 1..])?;
    matches!(rest.first()?, b' ' | b']').then_some(tests)
}

/// `-vv` shows where a test is defined, if elsewhere: `id <- other/file.py`.
fn own_id(id: &[u8]) -> &[u8] {
    match memchr::memmem::rfind(id, b" <- ") {
        Some(at) if pytest::balanced(&id[..at]) && pytest::is_path(&id[at + 4..]) => &id[..at],
        _ => id,
    }
}
