//! Reads a log: finds out whose output it is, hands the lines to that runner's parser, changes parsers where
//! another runner's output begins, and keeps the contract's own lines to itself.

use crate::contract::Lines as ContractLines;
use crate::decode;
use crate::junitxml::{self, Junit};
use crate::lines::{self, Cleaner, Dirt};
use crate::prefix::Prefix;
use crate::report::Report;
use crate::runner::{self, Format, Line, Runner, TABLE};
use crate::sessions::Sessions;
use std::collections::VecDeque;
use std::io::{self, Read};

/// Lines before the opening of a run that its parser is shown too: what was said before the first sign of a
/// runner may belong to it (a usage error, a shell's "Killed").
const BEFORE: usize = 64;
/// And not more of a line than this.
const BEFORE_LINE: usize = 512;

/// Reads a log to its end. `also` sees every block as it was written.
///
/// # Errors
/// When reading fails.
pub fn read(
    from: impl Read,
    format: Option<&'static Format>,
    mut also: impl FnMut(&[u8]),
) -> io::Result<Report> {
    let mut from = decode::utf8(from)?;
    let head = head(&mut from)?;
    if junitxml::begins(&head) && format.is_none_or(|f| f.name == "junitxml") {
        return read_xml((&head[..]).chain(from), also);
    }
    let from = (&head[..]).chain(from);
    let mut reader = Reader::new(format);
    let mut cleaner = Cleaner::default();
    let mut first = true;
    lines::for_each(from, |block| {
        if std::mem::take(&mut first) {
            cleaner.prefix = Prefix::of_sample(block.text);
        }
        if reader.active.is_some() {
            cleaner.lines(block, |line| {
                reader.line(line);
            });
        } else {
            let dirt = Dirt::of(block);
            // Each line may be the one that shows what stands before all of them.
            block.lines(|text, ended| {
                let mut learnt = None;
                if cleaner.is_needed(dirt) {
                    cleaner.line(text, ended, dirt, &mut |line| learnt = reader.line(line).or(learnt.take()));
                } else {
                    learnt = reader.line(Line { text, ended });
                }
                if let Some(prefix) = learnt {
                    cleaner.prefix = prefix;
                    cleaner.line(text, ended, dirt, &mut |line| {
                        reader.line(line);
                    });
                }
            });
        }
        also(block.text);
    })?;
    Ok(reader.finish())
}

/// The first bytes, as many as make a block: from them a prefix is learnt.
fn head(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    from.take(lines::BLOCK as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// A document of XML has no lines worth the name: it is read block by block.
fn read_xml(mut from: impl Read, mut also: impl FnMut(&[u8])) -> io::Result<Report> {
    let mut junit = Junit::default();
    let mut buffer = vec![0; lines::BLOCK];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(Report { sessions: junit.sessions(), job: None }),
            Ok(n) => {
                junit.block(&buffer[..n]);
                also(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The parser at work, and what has been found so far.
struct Reader {
    /// Every line is this runner's: the user said so.
    fixed: Option<&'static Format>,
    active: Option<(&'static Format, Box<dyn Runner>)>,
    sessions: Sessions,
    /// The runner that the job's command starts.
    hinted: Option<&'static Format>,
    before: VecDeque<Vec<u8>>,
    /// Lines were seen that `before` has no room for.
    dropped: bool,
    contract: ContractLines,
}

impl Reader {
    fn new(fixed: Option<&'static Format>) -> Reader {
        let active = fixed.map(|f| (f, (f.start)()));
        Reader {
            fixed,
            active,
            sessions: Sessions::default(),
            hinted: None,
            before: VecDeque::new(),
            dropped: false,
            contract: ContractLines::default(),
        }
    }

    /// The next line. The answer is a prefix that this line shows all lines to have.
    fn line(&mut self, line: Line<'_>) -> Option<Prefix> {
        if line.text.starts_with(b"=== GATE") && self.contract.line(line.text) {
            self.hinted = self.contract.command().and_then(runner::by_command);
            return None;
        }
        match &mut self.active {
            Some((format, runner)) => {
                if self.fixed.is_none() && TABLE.len() > 1 && runner.idle() {
                    let other = runner::opened(line.text, Some(format));
                    if let Some(other) = other {
                        self.change(other);
                    }
                }
                if let Some((_, runner)) = &mut self.active {
                    runner.line(line);
                }
                None
            }
            None => self.look(line),
        }
    }

    /// A line while no parser is at work.
    fn look(&mut self, line: Line<'_>) -> Option<Prefix> {
        let hinted = self.hinted.filter(|f| (f.opens)(line.text));
        if let Some(format) = hinted.or_else(|| runner::opened(line.text, None)) {
            self.change(format);
            if let Some((_, runner)) = &mut self.active {
                for text in self.before.drain(..) {
                    runner.line(Line { text: &text, ended: true });
                }
                runner.line(line);
            }
            return None;
        }
        let prefix = Prefix::of_header(line.text);
        if prefix.is_some() {
            return prefix;
        }
        let mut text = if self.before.len() == BEFORE {
            self.dropped = true;
            self.before.pop_front().unwrap_or_default()
        } else {
            Vec::new()
        };
        text.clear();
        text.extend_from_slice(&line.text[..line.text.len().min(BEFORE_LINE)]);
        self.before.push_back(text);
        None
    }

    fn change(&mut self, to: &'static Format) {
        if let Some((_, runner)) = self.active.take() {
            self.sessions.extend(runner.finish());
        }
        self.active = Some((to, (to.start)()));
    }

    fn finish(mut self) -> Report {
        // The whole log is still here, and no line of it was a sign: the least that a runner prints.
        if self.active.is_none() && self.sessions.is_empty() && !self.dropped {
            let lines: Vec<&[u8]> = self.before.iter().map(Vec::as_slice).collect();
            let likely = TABLE.iter().find(|f| (f.may_be)(&lines));
            // What the job was started as comes first.
            for format in self.hinted.into_iter().chain(likely) {
                let mut runner = (format.start)();
                for text in &lines {
                    runner.line(Line { text, ended: true });
                }
                self.sessions.extend(runner.finish());
                if !self.sessions.is_empty() {
                    break;
                }
            }
        }
        if let Some((_, runner)) = self.active.take() {
            self.sessions.extend(runner.finish());
        }
        let job = self.contract.finish(!self.sessions.is_empty());
        Report { sessions: self.sessions.into_vec(), job }
    }
}
