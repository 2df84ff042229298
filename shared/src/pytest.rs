//! The summary line and the progress grammar of pytest's terminal output (3.10 to 9.2, and older where it is
//! the same), as pure functions over bytes: what a log's reader and a look at a log's tail both need.
//!
//! Counts come from this grammar alone. A line that does not match as a whole is not a summary, whatever words
//! and numbers it holds.

use memchr::memmem::find;
use memchr::{memchr, memrchr, memrchr_iter};
use std::borrow::Cow;

/// What a summary line says. Kinds that it does not name are 0: pytest leaves them out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// `N failed`.
    pub failed: u64,
    /// `N passed`.
    pub passed: u64,
    /// `N skipped`.
    pub skipped: u64,
    /// `N deselected`, also in brackets after a collection.
    pub deselected: u64,
    /// `N xfailed`.
    pub xfailed: u64,
    /// `N xpassed`.
    pub xpassed: u64,
    /// `N warning[s]`.
    pub warnings: u64,
    /// `N error[s]`.
    pub errors: u64,
    /// `N rerun`.
    pub reruns: u64,
    /// `N subtests passed`.
    pub subtests_passed: u64,
    /// `N subtests failed`.
    pub subtests_failed: u64,
    /// `N subtests skipped`.
    pub subtests_skipped: u64,
    /// `N tests collected`: nothing was meant to run.
    pub collected: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// The width of the line with its bars, `None` for a quiet run's line without bars.
    pub bars: Option<usize>,
}

impl Summary {
    /// All reports of tests.
    pub fn reports(&self) -> u64 {
        [self.failed, self.passed, self.skipped, self.xfailed, self.xpassed, self.errors]
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Whether it tells of success: nothing failed, no errors, and something ran (or only listing was asked
    /// for). The order of the words and the colour of the line mean nothing.
    pub fn passed(&self) -> bool {
        self.failed == 0
            && self.errors == 0
            && self.subtests_failed == 0
            && (self.reports() > 0 || self.collected.is_some_and(|n| n > 0))
    }
}

/// Reads a line as a summary. The line may be coloured and end in a line end.
pub fn summary(line: &[u8]) -> Option<Summary> {
    // Every summary holds " in " and a digit; the cheap look first.
    let first = *line.first()?;
    if !matches!(first, b'=' | b'n' | b'0'..=b'9' | 0x1b) {
        return None;
    }
    let line = plain(line);
    let line = line.trim_ascii_end();
    let (title, bars) = match rule(line, b'=') {
        Some(title) => (title, Some(line.len())),
        None => (line, None),
    };
    let cut = title.windows(4).rposition(|w| w == b" in ")?;
    let seconds = duration(&title[cut + 4..])?;
    let mut out = Summary { seconds, bars, ..Summary::default() };
    let parts = &title[..cut];
    if parts == b"no tests ran" {
        return Some(out);
    }
    let mut known = false;
    for (i, part) in parts.split(|&b| b == b',').enumerate() {
        let part = if i == 0 { part } else { part.strip_prefix(b" ")? };
        known |= count(part, i == 0, &mut out)?;
    }
    // "3 apples in 2s" is somebody's prose; a bar makes unknown words a plugin's.
    (known || bars.is_some()).then_some(out)
}

/// One `N word` of a summary. `Some(false)`: a word of a plugin's.
fn count(part: &[u8], first: bool, out: &mut Summary) -> Option<bool> {
    if first && let Some(rest) = part.strip_prefix(b"no tests collected") {
        out.collected = Some(0);
        return bracketed_deselected(rest, out).then_some(true);
    }
    let digits = part.iter().take_while(|b| b.is_ascii_digit()).count();
    let n = number(&part[..digits])?;
    let rest = &part[digits..];
    if first {
        // "2/4 tests collected (2 deselected)", "4 tests collected", "1 test collected".
        let listed = match rest.strip_prefix(b"/") {
            Some(of) => {
                let d = of.iter().take_while(|b| b.is_ascii_digit()).count();
                (d > 0).then(|| &of[d..])
            }
            None => Some(rest),
        };
        let listed = listed?;
        for word in [&b" tests collected"[..], b" test collected"] {
            if let Some(more) = listed.strip_prefix(word) {
                out.collected = Some(n);
                return bracketed_deselected(more, out).then_some(true);
            }
        }
        if rest.first() == Some(&b'/') {
            return None;
        }
    }
    let word = rest.strip_prefix(b" ")?;
    let slot = match word {
        b"failed" => &mut out.failed,
        b"passed" => &mut out.passed,
        b"skipped" => &mut out.skipped,
        b"deselected" => &mut out.deselected,
        b"xfailed" => &mut out.xfailed,
        b"xpassed" => &mut out.xpassed,
        b"warning" | b"warnings" | b"pytest-warnings" => &mut out.warnings,
        b"error" | b"errors" => &mut out.errors,
        b"rerun" => &mut out.reruns,
        b"subtests passed" | b"subtest passed" => &mut out.subtests_passed,
        b"subtests failed" | b"subtest failed" => &mut out.subtests_failed,
        b"subtests skipped" | b"subtest skipped" => &mut out.subtests_skipped,
        _ => {
            let plugin = !word.is_empty()
                && word.len() <= 40
                && word.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b' ' | b'_' | b'-'));
            return plugin.then_some(false);
        }
    };
    *slot = n;
    Some(true)
}

fn bracketed_deselected(rest: &[u8], out: &mut Summary) -> bool {
    if rest.is_empty() {
        return true;
    }
    let inside = rest.strip_prefix(b" (").and_then(|r| r.strip_suffix(b" deselected)"));
    match inside.and_then(number) {
        Some(n) => {
            out.deselected = n;
            true
        }
        None => false,
    }
}

/// `12.34s`, `65.12s (0:01:05)`, `90061.50s (1 day, 1:01:01)`, and before 5.1 `0.12 seconds`.
fn duration(text: &[u8]) -> Option<f64> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let seconds: f64 = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    let clock = match &text[digits..] {
        b"s" | b" seconds" => return Some(seconds),
        rest => rest.strip_prefix(b"s (")?.strip_suffix(b")")?,
    };
    let fits = clock
        .iter()
        .all(|b| b.is_ascii_digit() || matches!(b, b':' | b',' | b' ' | b'd' | b'a' | b'y' | b's'));
    (fits && clock.contains(&b':')).then_some(seconds)
}

/// A decimal number of nothing but digits.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0u64, |n, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0'))))
}

/// The title of a rule: `=== title ===` for the character `=`. The line must be nothing else; a bar is at least
/// one character, and the right one may be one longer.
pub fn rule(line: &[u8], c: u8) -> Option<&[u8]> {
    if line.first() != Some(&c) || line.last() != Some(&c) {
        return None;
    }
    let left = line.iter().take_while(|b| **b == c).count();
    let rest = line.get(left..)?.strip_prefix(b" ")?;
    let right = rest.iter().rev().take_while(|b| **b == c).count();
    let title = rest[..rest.len() - right].strip_suffix(b" ")?;
    (!title.is_empty() && (right == left || right == left + 1)).then_some(title)
}

/// The text without escape sequences (colours, cursor movements, titles).
pub fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    if memchr(0x1b, line).is_none() {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len());
    strip_into(line, &mut out);
    Cow::Owned(out)
}

/// Appends the text without escape sequences.
pub fn strip_into(mut line: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(0x1b, line) {
        out.extend_from_slice(&line[..at]);
        line = &line[at + 1..];
        let skip = match line.first() {
            // CSI: parameters, then one final byte. A byte that belongs to neither ends a broken one.
            Some(b'[') => {
                let n = line[1..].iter().take_while(|b| matches!(b, 0x20..=0x3f)).count();
                1 + n + usize::from(matches!(line.get(1 + n), Some(0x40..=0x7e)))
            }
            // OSC and friends: up to BEL or ST.
            Some(b']' | b'P' | b'^' | b'_' | b'X') => match memchr::memchr2(0x07, 0x1b, line) {
                Some(end) if line[end] == 0x07 => end + 1,
                Some(end) => end + 1 + usize::from(line.get(end + 1) == Some(&b'\\')),
                None => 1,
            },
            Some(0x20..=0x2f) => 2.min(line.len()),
            Some(0x30..=0x7e) => 1,
            _ => 0,
        };
        line = &line[skip..];
    }
    out.extend_from_slice(line);
}

/// The last summary in a log's tail, and by [`Summary::passed`] what it means. Text may follow it.
pub fn last_summary(tail: &[u8]) -> Option<Summary> {
    lines_backwards(tail).find_map(|line| summary(last_state(line)))
}

/// What a line that was drawn over and over, after carriage returns, shows in the end.
pub(crate) fn last_state(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    memrchr(b'\r', line).map_or(line, |at| &line[at + 1..])
}

/// The lines of a text, the last one first. No line ends, no empty line after the last.
pub(crate) fn lines_backwards(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut end = text.len();
    memrchr_iter(b'\n', text).map(Some).chain([None]).map(move |at| {
        let start = at.map_or(0, |at| at + 1);
        let line = &text[start..end];
        end = at.unwrap_or(0);
        line
    })
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Collecting.
    Collect,
    /// Running tests.
    Test,
    /// Telling how it went.
    Summary,
}

/// How far a run has come, from the tail of its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub phase: Option<Phase>,
    /// How much of it is done, by pytest's own account.
    pub percent: Option<u8>,
    /// The test that was begun last, or else the last that was reported; for the short form, its file.
    pub last_test: Option<String>,
}

/// Reads how far a run has come from the last lines of its log: the id that pytest writes before a test runs,
/// the percentage it writes behind each result.
pub fn progress(tail: &[u8]) -> Progress {
    let mut out = Progress::default();
    for raw in lines_backwards(tail) {
        let line = plain(raw);
        let line = last_state(&line);
        if out.phase.is_none() && ended(line) {
            out.phase = Some(Phase::Summary);
        }
        if let Some(title) = rule(line.trim_ascii_end(), b'=')
            && title == b"test session starts"
        {
            out.phase.get_or_insert(Phase::Collect);
            break;
        }
        if line.starts_with(b"collecting") || line.starts_with(b"collected ") {
            out.phase.get_or_insert(Phase::Collect);
            continue;
        }
        let Some(step) = step(line) else { continue };
        out.phase.get_or_insert(Phase::Test);
        out.percent = out.percent.or(step.percent);
        if out.last_test.is_none() {
            out.last_test = step.test.map(|t| String::from_utf8_lossy(t).into_owned());
        }
        if out.percent.is_some() && out.last_test.is_some() {
            break;
        }
    }
    out
}

fn ended(line: &[u8]) -> bool {
    let titles: [&[u8]; 3] = [b"ERRORS", b"FAILURES", b"short test summary info"];
    rule(line.trim_ascii_end(), b'=').is_some_and(|t| titles.contains(&t)) || summary(line).is_some()
}

/// What one line of progress says.
struct Step<'a> {
    percent: Option<u8>,
    test: Option<&'a [u8]>,
}

fn step(line: &[u8]) -> Option<Step<'_>> {
    if let Some(result) = xdist_result(line) {
        return Some(Step { percent: result.percent, test: Some(result.id) });
    }
    let (body, percent) = percent(line);
    if let Some((id, _)) = result(body) {
        return Some(Step { percent, test: Some(id) });
    }
    if let Some(id) = started(line) {
        return Some(Step { percent: None, test: Some(id) });
    }
    // A file is announced before its first test, behind which there will be a letter.
    if let Some(path) = line.strip_suffix(b" ").filter(|p| p.ends_with(b".py") && is_path(p))
        && find(path, b": ").is_none()
    {
        return Some(Step { percent: None, test: Some(path) });
    }
    let dots = dots(body)?;
    // Letters alone are too little to go by: "..." stands in many logs.
    (percent.is_some() || !dots.path.is_empty())
        .then_some(Step { percent, test: (!dots.path.is_empty()).then_some(dots.path) })
}

/// A line without the ` [ 12%]` (or ` [ 3/40]`) at its end and the spaces before it, and the percentage.
pub fn percent(line: &[u8]) -> (&[u8], Option<u8>) {
    let Some(inner) = line.strip_suffix(b"]") else { return (untimed(line), None) };
    let (open, percent) = match inner {
        // The usual form has its bracket at a fixed place: no search on the lines that make up a log.
        [.., b'[', a @ (b' ' | b'1'), b @ (b' ' | b'0'..=b'9'), c @ b'0'..=b'9', b'%'] => {
            let digit = |d: u8| if d == b' ' { 0 } else { d - b'0' };
            (inner.len() - 5, u16::from(digit(*a)) * 100 + u16::from(digit(*b)) * 10 + u16::from(digit(*c)))
        }
        _ => match counted(inner) {
            Some(found) => found,
            None => return (line, None),
        },
    };
    let mut end = open;
    while end > 0 && line[end - 1] == b' ' {
        end -= 1;
    }
    match u8::try_from(percent) {
        Ok(percent @ 0..=100) => (&line[..end], Some(percent)),
        _ => (line, None),
    }
}

/// A line without the `   12.3ms` or `   1m 2s` that the style "times" writes in place of the percentage.
fn untimed(line: &[u8]) -> &[u8] {
    let mut rest = line;
    while rest.last() == Some(&b's') || (rest.len() < line.len() && matches!(rest.last(), Some(b'm' | b'h')))
    {
        let Some(space) = memrchr(b' ', rest) else { return line };
        let token = &rest[space + 1..];
        let digits = token.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
        if digits == 0 || !matches!(&token[digits..], b"us" | b"ms" | b"s" | b"m" | b"h") {
            return line;
        }
        rest = rest[..space].trim_ascii_end();
    }
    rest
}

/// The percentage of ` [ 3/40` and of what else stands in brackets, and where the bracket is.
fn counted(inner: &[u8]) -> Option<(usize, u16)> {
    // "[ 12345/123456]": never far away.
    let from = inner.len().saturating_sub(24);
    let open = from + memrchr(b'[', &inner[from..])?;
    let text = inner[open + 1..].trim_ascii_start();
    // "[ 7%]": whoever pasted it has lost a space.
    if let Some(digits) = text.strip_suffix(b"%") {
        return Some((open, u16::try_from(number(digits)?).ok()?));
    }
    let slash = memchr(b'/', text)?;
    let (n, of) = (number(&text[..slash])?, number(&text[slash + 1..])?);
    let percent = (of > 0 && n <= of).then(|| u128::from(n) * 100 / u128::from(of))?;
    Some((open, u16::try_from(percent).ok()?))
}

/// The words that pytest prints for the result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// PASSED
    Passed,
    /// FAILED
    Failed,
    /// ERROR
    Error,
    /// SKIPPED
    Skipped,
    /// XFAIL
    Xfail,
    /// XPASS
    Xpass,
    /// RERUN
    Rerun,
    /// SUBPASSED, SUBPASS
    SubPassed,
    /// SUBFAILED, SUBFAIL
    SubFailed,
    /// SUBSKIPPED, SUBSKIP
    SubSkipped,
}

/// Every word, the longer before its own beginning.
pub const WORDS: [(&[u8], Word); 13] = [
    (b"PASSED", Word::Passed),
    (b"FAILED", Word::Failed),
    (b"ERROR", Word::Error),
    (b"SKIPPED", Word::Skipped),
    (b"XFAIL", Word::Xfail),
    (b"XPASS", Word::Xpass),
    (b"RERUN", Word::Rerun),
    (b"SUBPASSED", Word::SubPassed),
    (b"SUBFAILED", Word::SubFailed),
    (b"SUBSKIPPED", Word::SubSkipped),
    (b"SUBPASS", Word::SubPassed),
    (b"SUBFAIL", Word::SubFailed),
    (b"SUBSKIP", Word::SubSkipped),
];

/// `id WORD`, `id WORD (reason)` and `id SUBFAILED[msg] (k=v)`: the id and the word of a result line whose
/// percentage was taken off.
pub fn result(body: &[u8]) -> Option<(&[u8], Word)> {
    // Almost every line of a long log is one of these; of the others the last byte decides what is looked at.
    if let Some(id) = body.strip_suffix(b" PASSED") {
        return is_id(id).then_some((id, Word::Passed));
    }
    let word = match body.last()? {
        b'D' | b'R' | b'L' | b'S' | b'N' => {
            let at = memrchr(b' ', body)?;
            let word = word(&body[at + 1..])?;
            let mut id = &body[..at];
            // "id [msg] (k=v) SUBFAIL": the subtest stands behind the id.
            if matches!(word, Word::SubPassed | Word::SubFailed | Word::SubSkipped)
                && let Some(end) = id_end(id)
            {
                id = &id[..end];
            }
            return is_id(id).then_some((id, word));
        }
        b')' | b']' | b'.' => b' ',
        _ => return None,
    };
    // A reason, or a subtest's name. Ids may hold such words in brackets: the first that closes an id counts.
    let mut from = 0;
    while let Some(space) = memchr(word, &body[from..]).map(|at| from + at) {
        from = space + 1;
        let rest = &body[from..];
        for (text, word) in WORDS {
            let Some(tail) = rest.strip_prefix(text) else { continue };
            let reason = tail.starts_with(b" (")
                && matches!(word, Word::Skipped | Word::Xfail | Word::Xpass | Word::SubSkipped);
            let named = matches!(tail.first(), Some(b'[' | b'(' | b' '))
                && matches!(word, Word::SubPassed | Word::SubFailed | Word::SubSkipped);
            if (reason || named) && is_id(&body[..space]) && balanced(&body[..space]) {
                return Some((&body[..space], word));
            }
        }
    }
    None
}

/// The word that this text is.
pub fn word(text: &[u8]) -> Option<Word> {
    WORDS.iter().find(|(w, _)| *w == text).map(|(_, word)| *word)
}

/// Whether every bracket that was opened is closed.
pub fn balanced(id: &[u8]) -> bool {
    id.iter().fold(0i64, |depth, b| match b {
        b'[' => depth + 1,
        b']' => depth - 1,
        _ => depth,
    }) <= 0
}

/// Where the id ends that begins a text: at the first space outside of brackets.
pub fn id_end(text: &[u8]) -> Option<usize> {
    let mut depth = 0i64;
    text.iter().position(|b| {
        match b {
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => {}
        }
        *b == b' ' && depth <= 0
    })
}

/// Whether this may be the id of a test: a path, and behind its `::` whatever.
pub fn is_id(text: &[u8]) -> bool {
    // A search for two bytes costs more to set up than a line takes.
    let mut from = 0;
    while let Some(at) = memchr(b':', &text[from..]).map(|at| from + at) {
        if text.get(at + 1) == Some(&b':') {
            return at > 0 && text[0] != b' ' && text[at - 1] != b' ' && text.len() > at + 2;
        }
        from = at + 1;
    }
    false
}

/// `[gw0] [ 12%] PASSED id `: a result under xdist.
pub struct XdistResult<'a> {
    /// `gw0`.
    pub worker: &'a [u8],
    /// How far the run is.
    pub percent: Option<u8>,
    /// The result.
    pub word: Word,
    /// The test.
    pub id: &'a [u8],
}

/// Reads a result under xdist.
pub fn xdist_result(line: &[u8]) -> Option<XdistResult<'_>> {
    let rest = line.strip_prefix(b"[")?;
    if !rest.starts_with(b"gw") {
        return None;
    }
    let close = memchr(b']', rest)?;
    let worker = &rest[..close];
    let mut rest = rest[close + 1..].strip_prefix(b" ")?;
    let mut done = None;
    if rest.first() == Some(&b'[') {
        let close = memchr(b']', rest)?;
        done = percent(&rest[..=close]).1;
        rest = rest[close + 1..].strip_prefix(b" ")?;
    }
    let mut rest = rest.trim_ascii_end();
    // The old subtests plugin writes the subtest's name first.
    if matches!(rest.first(), Some(b'[' | b'(')) {
        let at = find(rest, b" SUB")?;
        rest = &rest[at + 1..];
    }
    let end = rest.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let word = word(&rest[..end])?;
    let id = match &rest[end..] {
        tail if tail.first() == Some(&b' ') && !tail.starts_with(b" (") => &tail[1..],
        tail => &tail[subtest_name(tail)?..],
    };
    is_id(id).then_some(XdistResult { worker, percent: done, word, id })
}

/// The length of a subtest's name, `[msg] (k=v) `, with the space behind it.
pub fn subtest_name(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for (open, close) in [(b'[', b']'), (b'(', b')')] {
        let start = at + usize::from(at > 0 && text.get(at) == Some(&b' '));
        let start = if at == 0 && text.first() == Some(&b' ') { 1 } else { start };
        if text.get(start) != Some(&open) {
            continue;
        }
        let mut depth = 0usize;
        let mut end = None;
        for (i, b) in text[start..].iter().enumerate() {
            if *b == open {
                depth += 1;
            } else if *b == close {
                depth -= 1;
                if depth == 0 {
                    end = Some(start + i + 1);
                    break;
                }
            }
        }
        at = end?;
    }
    (at > 0 && text.get(at) == Some(&b' ')).then_some(at + 1)
}

/// `id `: pytest has begun this test and flushed its name.
pub fn started(line: &[u8]) -> Option<&[u8]> {
    let id = line.strip_suffix(b" ")?;
    (is_id(id) && !id.ends_with(b" ") && is_path(&id[..memchr(b':', id)?])).then_some(id)
}

/// Whether this looks like a test file's path.
pub fn is_path(text: &[u8]) -> bool {
    let name = memrchr(b'/', text).map_or(text, |at| &text[at + 1..]);
    memrchr(b'.', name).is_some_and(|dot| {
        dot > 0
            && matches!(name.len() - dot, 2..=9)
            && name[dot + 1].is_ascii_alphabetic()
            && name[dot + 1..].iter().all(u8::is_ascii_alphanumeric)
    }) && !text.starts_with(b" ")
}

/// A line of the short form: a file, if it is named, and a letter for each result.
pub struct Dots<'a> {
    /// The file, empty where the line has letters only.
    pub path: &'a [u8],
    /// The letters.
    pub letters: &'a [u8],
}

/// Reads a line of the short form, whose percentage was taken off.
pub fn dots(body: &[u8]) -> Option<Dots<'_>> {
    let body = body.trim_ascii_end();
    let letters = body.iter().rev().take_while(|b| b".FEsxXRu,-yYf".contains(b)).count();
    let (path, letters) = body.split_at(body.len() - letters);
    if path.is_empty() {
        return (!letters.is_empty()).then_some(Dots { path, letters });
    }
    match path.strip_suffix(b" ") {
        Some(path) if is_path(path) => Some(Dots { path, letters }),
        // The file was announced, and nothing has been reported yet ("test_a.txt " without its space). A header's line
        // ends like a path ("rootdir: /p, configfile: pytest.ini"), and so does output behind letters ("test_a.py .txt").
        None if letters.is_empty() && is_path(path) && find(path, b": ").or(find(path, b" .")).is_none() => {
            Some(Dots { path, letters })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(line: &str) -> Summary {
        summary(line.as_bytes()).unwrap_or_else(|| panic!("no summary: {line}"))
    }

    #[test]
    fn summaries_of_every_version_are_read() {
        let s = of("===== 25 failed, 30 passed, 3 skipped, 2 xfailed, 1 xpassed, 4 errors in 0.30s =====");
        assert_eq!((s.failed, s.passed, s.skipped, s.xfailed, s.xpassed, s.errors), (25, 30, 3, 2, 1, 4));
        assert_eq!(s.seconds, 0.30);
        // Before 5.3 there is no plural rule, and 5.0 says seconds.
        assert_eq!(of("==== 1 passed, 1 warnings in 0.05 seconds ====").warnings, 1);
        assert_eq!(of("==== 2 error in 4.12 seconds ====").errors, 2);
        assert_eq!(of("1 passed, 2 pytest-warnings in 0.1 seconds").warnings, 2);
        // The clock, from a minute on.
        assert_eq!(of("= 94 failed, 1 passed in 154.56s (0:02:34) =").seconds, 154.56);
        assert_eq!(of("==== 1 passed in 90061.50s (1 day, 1:01:01) ====").seconds, 90061.5);
        assert_eq!(of("==== 1 passed in 190061.50s (2 days, 4:47:41) ====").seconds, 190_061.5);
        // 9.x and plugins.
        let s = of("== 3 failed, 4 passed, 5 subtests passed, 2 subtests skipped, 6 rerun in 0.08s ==");
        assert_eq!((s.subtests_passed, s.subtests_skipped, s.reruns), (5, 2, 6));
        assert_eq!(of("== 4 passed, 2 retried in 0.08s ==").passed, 4);
    }

    #[test]
    fn a_file_that_was_announced_is_told_from_what_ends_like_one() {
        let path = |line: &str| dots(line.as_bytes()).map(|d| String::from_utf8_lossy(d.path).into_owned());
        assert_eq!(path("docs/usage.rst"), Some("docs/usage.rst".to_owned()));
        assert_eq!(path("my tests/test_a.py ..F"), Some("my tests/test_a.py".to_owned()));
        assert_eq!(path("rootdir: /srv/app, configfile: pytest.ini"), None);
        assert_eq!(path("test_a.py .noise.txt"), None);
    }

    #[test]
    fn colours_do_not_matter() {
        let s = of(
            "\x1b[31m=== \x1b[31m\x1b[1m25 failed\x1b[0m, \x1b[32m30 passed\x1b[0m\x1b[31m in 0.45s\x1b[0m\x1b[31m ===\x1b[0m\r\n",
        );
        assert_eq!((s.failed, s.passed, s.seconds), (25, 30, 0.45));
    }

    #[test]
    fn collections_and_empty_runs_are_summaries_too() {
        assert_eq!(of("==== no tests ran in 0.03s ====").reports(), 0);
        assert_eq!(of("4 tests collected in 0.02s").collected, Some(4));
        assert_eq!(of("1 test collected in 0.02s").collected, Some(1));
        let s = of("==== 2/4 tests collected (2 deselected) in 0.07s ====");
        assert_eq!((s.collected, s.deselected), (Some(2), 2));
        let s = of("no tests collected (4 deselected), 3 errors in 0.02s");
        assert_eq!((s.collected, s.deselected, s.errors), (Some(0), 4, 3));
        assert_eq!(of("4 deselected in 0.02s").deselected, 4);
    }

    #[test]
    fn prose_with_numbers_is_no_summary() {
        for line in [
            "port 5555 failed in 3s of trying",
            "10 passed, 3 failed checks in linter",
            "total: 10 passed in 0.1s",
            "3 apples in 2s",
            "E       1 failed in 0.1s",
            "= 1 failed in 0.1s",
            "=== 1 failed, in 0.1s ===",
            "1 failed,2 passed in 0.1s",
            "1 failed in 0.1",
            "1 failed in s",
            "1 failed in 0.1s (soon)",
            "1/2 failed in 0.1s",
            "=== FAILURES ===",
            "",
        ] {
            assert_eq!(summary(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn the_meaning_does_not_hang_on_the_order_of_the_words() {
        assert!(!of("=== 3 passed, 1 error in 0.1s ===").passed());
        assert!(!of("=== 1 failed, 3 passed in 0.1s ===").passed());
        assert!(!of("=== no tests ran in 0.1s ===").passed());
        assert!(!of("=== 4 deselected in 0.1s ===").passed());
        assert!(of("=== 3 passed, 1 warning in 0.1s ===").passed());
        assert!(of("=== 3 skipped in 0.1s ===").passed());
        assert!(of("4 tests collected in 0.1s").passed());
    }

    #[test]
    fn the_last_summary_of_a_tail_counts_and_text_may_follow() {
        let tail =
            b"1 failed in 0.1s\nx\n== 2 passed in 0.2s ==\r\nCoverage XML written to file x\n3 apples\n";
        assert_eq!(last_summary(tail).map(|s| s.passed), Some(2));
        assert_eq!(last_summary(b"nothing\n"), None);
        assert_eq!(last_summary(b""), None);
    }

    #[test]
    fn progress_in_every_form() {
        let p = |tail: &str| {
            let p = progress(tail.as_bytes());
            (p.phase, p.percent, p.last_test)
        };
        let t = |s: &str| Some(s.to_owned());
        let head = "==== test session starts ====\nplatform linux\n";
        assert_eq!(p(head), (Some(Phase::Collect), None, None));
        assert_eq!(p(&format!("{head}collecting ... ")), (Some(Phase::Collect), None, None));
        // The id is written before the test runs.
        let v = format!("{head}collected 2 items\n\na.py::t1 PASSED          [ 50%]\na.py::t2 ");
        assert_eq!(p(&v), (Some(Phase::Test), Some(50), t("a.py::t2")));
        assert_eq!(p("..F. [ 12%]\n...."), (Some(Phase::Test), Some(12), None));
        assert_eq!(p("a.py ..F [ 12%]\nb.py .."), (Some(Phase::Test), Some(12), t("b.py")));
        let announced = format!("{head}collected 2 items\n\ntests/b.py ");
        assert_eq!(p(&announced), (Some(Phase::Test), None, t("tests/b.py")));
        assert_eq!(p("a.py::t [x] SKIPPED (why) [ 3/4]\n"), (Some(Phase::Test), Some(75), t("a.py::t [x]")));
        let xdist = "a.py::t1 \na.py::t2 \n[gw0] [ 25%] PASSED a.py::t1 \na.py::t3 \n";
        assert_eq!(p(xdist), (Some(Phase::Test), Some(25), t("a.py::t3")));
        assert_eq!(p(&format!("{v}\n==== FAILURES ====\n")).0, Some(Phase::Summary));
        assert_eq!(p("just\nsome log...\n"), (None, None, None));
    }

    #[test]
    fn results_with_ids_that_look_like_results() {
        let r = |line: &str| {
            result(percent(line.as_bytes()).0).map(|(id, w)| (String::from_utf8_lossy(id).into_owned(), w))
        };
        let is = |id: &str, w| Some((id.to_owned(), w));
        assert_eq!(r("a.py::t[100%] PASSED     [100%]"), is("a.py::t[100%]", Word::Passed));
        assert_eq!(r("a.py::t[x FAILED] PASSED [ 7%]"), is("a.py::t[x FAILED]", Word::Passed));
        assert_eq!(r("a.py::t[q SKIPPED (x)] PASSED"), is("a.py::t[q SKIPPED (x)]", Word::Passed));
        assert_eq!(
            r("a.py::t[q SKIPPED (x)] SKIPPED (w) [ 7%]"),
            is("a.py::t[q SKIPPED (x)]", Word::Skipped)
        );
        assert_eq!(r("a.py::t XFAIL (known [1] bug) [ 7%]"), is("a.py::t", Word::Xfail));
        assert_eq!(r("a.py::t SUBFAILED[m] (i=1) [ 7%]"), is("a.py::t", Word::SubFailed));
        assert_eq!(r("a.py::t[a b] [m] (i=1) SUBFAIL [ 7%]"), is("a.py::t[a b]", Word::SubFailed));
        assert_eq!(r("d/g.txt::g.txt ERROR [ 7%]"), is("d/g.txt::g.txt", Word::Error));
        assert_eq!(r("FAILED"), None);
        assert_eq!(r("svc ERROR"), None);
        assert_eq!(r(" :: PASSED"), None);
    }

    fn fragments() -> impl Strategy<Value = Vec<u8>> {
        let words = prop::sample::select(vec![
            "=",
            "===",
            " ",
            "1 failed",
            ", ",
            "2 passed",
            " in ",
            "0.1s",
            " (0:01:02)",
            "\n",
            "\r",
            "\x1b[31m",
            "\x1b[0m",
            "a.py::t",
            "[x]",
            "[",
            "]",
            "PASSED",
            "SKIPPED (",
            ")",
            " [ 12%]",
            "[gw0]",
            "..F",
            "no tests ran",
            "SUBFAILED",
            "test session starts",
            "collected 3 items",
            "::",
            "%]",
            "(i=1)",
            "99999999999999999999",
        ]);
        let noise = prop::collection::vec(any::<u8>(), 0..4);
        let one = prop_oneof![4 => words.prop_map(|w| w.as_bytes().to_vec()), 1 => noise];
        prop::collection::vec(one, 0..60).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_grammar_panic(text in fragments()) {
            let _ = last_summary(&text);
            let _ = progress(&text);
            for line in text.split(|b| *b == b'\n') {
                let _ = (summary(line), result(line), xdist_result(line), dots(line), started(line));
                let _ = (percent(line), subtest_name(line), rule(line, b'='), plain(line));
            }
        }

        #[test]
        fn a_summary_that_was_written_is_read(failed in 0u64..9999, passed in 1u64..9999, errors in 0u64..99, cs in 0u64..9_999_999, n in 1usize..40) {
            let mut parts = Vec::new();
            for (count, word) in [(failed, "failed"), (passed, "passed"), (errors, if errors == 1 { "error" } else { "errors" })] {
                if count > 0 { parts.push(format!("{count} {word}")); }
            }
            let bar = "=".repeat(n);
            let seconds = cs as f64 / 100.0;
            let line = format!("{bar} {} in {seconds:.2}s {bar}", parts.join(", "));
            let s = of(&line);
            prop_assert_eq!((s.failed, s.passed, s.errors), (failed, passed, errors));
            prop_assert_eq!(s.bars, Some(line.len()));
        }
    }
}
