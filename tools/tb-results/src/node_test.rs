//! Node's own runner: its `spec` and `dot` output here, its TAP in [`crate::tap`].
//!
//! Suites are no tests and are not counted, but look like them. The stack of a failure inside tells which its parent
//! is; where none does, a list of names is known only if its length is that of the trailer. `dot` prints one dot for passed and skipped alike and has no trailer.

use crate::report::{Outcome, Session};
use crate::rerun::Again;
use crate::runner::{Line, Runner};
use crate::scan::{self, Names};
use crate::tap::{self, Trailer};
use memchr::memmem;
use std::collections::HashSet;

/// Whether a line opens output of Node's runner.
pub(crate) fn opens(line: &[u8]) -> bool {
    match line.first() {
        Some(0xe2 | 0xef) => {
            Mark::of(line).is_some_and(|(_, name)| timed(name).is_some())
                || info(line).is_some_and(|text| text.starts_with(b"tests ") && Trailer::default().line(text))
        }
        _ => false,
    }
}

/// A parser at its start: of both forms, of which one will find nothing.
pub(crate) fn start() -> Box<dyn Runner> {
    Box::new(Node { tap: tap::start(), ..Node::default() })
}

/// A pattern for each name.
pub(crate) fn rerun(again: &Again<'_>) -> Vec<Vec<String>> {
    let mut words: Vec<String> = ["node", "--test", "--test-concurrency=1"].map(str::to_owned).to_vec();
    words.extend(again.ids.iter().map(|id| format!("--test-name-pattern=^{}$", scan::pattern(id))));
    vec![words]
}

struct Node {
    tap: Box<dyn Runner>,
    seen: bool,
    trailer: Option<Trailer>,
    /// Behind the trailer failures are listed again.
    listing: bool,
    dots: bool,
    /// The tests and suites that are open, each with its indentation.
    open: Vec<(usize, Vec<u8>)>,
    /// Parents that the stack of a failure inside shows to be suites.
    suites: HashSet<Vec<u8>>,
    /// The parent of the last failure, until its stack has told what it is.
    parent: Option<Vec<u8>>,
    leaves: Names,
    failed_parents: Names,
    early: [u64; 3],
    heading: bool,
    last: Vec<u8>,
    torn: bool,
}

impl Default for Node {
    fn default() -> Node {
        Node {
            tap: tap::start(),
            seen: false,
            trailer: None,
            listing: false,
            dots: false,
            open: Vec::new(),
            suites: HashSet::new(),
            parent: None,
            leaves: Names::default(),
            failed_parents: Names::default(),
            early: [0; 3],
            heading: false,
            last: Vec::new(),
            torn: false,
        }
    }
}

impl Runner for Node {
    fn line(&mut self, line: Line<'_>) {
        let text = line.text;
        if !self.seen {
            self.tap.line(line);
        }
        if text == b"Failed tests:" {
            self.dots = self.trailer.is_none() && self.early == [0; 3];
            return;
        }
        if let Some(words) = info(text) {
            let mut trailer = self.trailer.unwrap_or_default();
            if trailer.line(words) {
                self.seen = true;
                self.trailer = Some(trailer);
            }
            return;
        }
        let body = text.trim_ascii_start();
        if let Some((mark, rest)) = Mark::of(body) {
            return self.mark(mark, rest, text.len() - body.len());
        }
        if let Some(parent) = self.parent.take() {
            let has = |words: &[u8]| memmem::find(body, words).is_some();
            if has(b" Suite.") {
                self.suites.insert(parent);
            } else if !has(b"TestContext.test ") {
                self.parent = Some(parent);
            }
        }
        if std::mem::take(&mut self.heading)
            && let Some(failing) = self.leaves.last()
        {
            failing.error_class = scan::class(body);
            let at =
                failing.error_class.as_ref().and_then(|_| memmem::find(body, b": ")).map_or(0, |at| at + 2);
            failing.message = Some(scan::message(&body[at..]));
        }
        self.torn |= scan::torn(text);
    }

    fn idle(&self) -> bool {
        self.torn || if self.seen { self.trailer.is_some() } else { self.tap.idle() }
    }

    fn finish(self: Box<Self>) -> Vec<Session> {
        if !self.seen {
            return self.tap.finish();
        }
        let mut session = match self.trailer {
            Some(trailer) => trailer.session(),
            None => Session::at_zero("node-test"),
        };
        session.last_test = (!self.last.is_empty()).then(|| scan::text(&self.last));
        match self.trailer {
            Some(trailer) => {
                let bad = trailer.fail + trailer.cancelled;
                let mut all = self.leaves.into_vec();
                if bad > all.len() as u64 {
                    let tests = self.failed_parents.into_vec().into_iter();
                    all.extend(tests.filter(|t| !self.suites.contains(t.id.as_bytes())));
                }
                session.failing = (bad == all.len() as u64).then_some(all);
            }
            None if self.dots => {
                session.complete = true;
                session.signs.gate = self.early[1] > 0;
                session.counts.passed = None;
                session.counts.failed = None;
                session.counts.skipped = None;
                session.failing = None;
            }
            None => {
                session.counts.passed = Some(self.early[0]);
                session.counts.failed = Some(self.early[1]);
                session.counts.skipped = Some(self.early[2]);
                session.failing = Some(self.leaves.into_vec());
            }
        }
        vec![session]
    }
}

impl Node {
    fn mark(&mut self, mark: Mark, rest: &[u8], indent: usize) {
        if mark == Mark::Failed && rest == b"failing tests:" {
            self.listing = true;
            return;
        }
        if mark == Mark::Parent {
            self.seen = true;
            // Older versions close a parent with the same mark, and a duration.
            self.close(indent);
            if timed(rest).is_none() && self.open.len() < 1000 {
                self.open.push((indent, rest.to_vec()));
            }
            return;
        }
        let Some((name, todo)) = timed(rest) else { return };
        self.seen = true;
        if self.listing {
            return;
        }
        self.last.clear();
        self.last.extend_from_slice(name);
        self.parent = None;
        let own = self.open.last().is_some_and(|(at, open)| *at == indent && open == name);
        self.close(indent);
        match mark {
            Mark::Passed => self.early[0] += u64::from(!todo),
            Mark::Skipped => self.early[2] += 1,
            Mark::Failed if !todo => {
                self.early[1] += 1;
                if own {
                    self.failed_parents.add(name, Outcome::Failed);
                } else {
                    self.parent = self.open.last().map(|(_, parent)| parent.clone());
                    self.leaves.add(name, Outcome::Failed);
                    self.heading = true;
                }
            }
            Mark::Failed | Mark::Parent => {}
        }
    }

    /// What is indented as far or further is over.
    fn close(&mut self, indent: usize) {
        while self.open.last().is_some_and(|(at, _)| *at >= indent) {
            self.open.pop();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Passed,
    Failed,
    Skipped,
    Parent,
}

impl Mark {
    fn of(text: &[u8]) -> Option<(Mark, &[u8])> {
        if !matches!(text.first(), Some(0xe2 | 0xef)) {
            return None;
        }
        let marks =
            [("✔ ", Mark::Passed), ("✖ ", Mark::Failed), ("﹣ ", Mark::Skipped), ("▶ ", Mark::Parent)];
        marks.into_iter().find_map(|(m, mark)| Some((mark, text.strip_prefix(m.as_bytes())?)))
    }
}

/// `ℹ pass 3`.
fn info(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix("ℹ ".as_bytes())
}

/// `name (1.3ms)`, `name (0.1ms) # TODO`: the name, and whether it is still to be done.
fn timed(text: &[u8]) -> Option<(&[u8], bool)> {
    // Few lines have a directive, and a byte is found faster than a word.
    let directive = memchr::memchr(b'#', text).and_then(|_| memmem::rfind(text, b"ms) # "));
    let (body, todo) = match directive {
        Some(at) => (&text[..at + 3], text[at + 6..].starts_with(b"TODO")),
        None => (text, false),
    };
    let body = body.strip_suffix(b"ms)")?;
    let (name, time) = body.split_at(body.iter().rposition(|b| *b == b'(')?);
    let fits = time.len() > 1 && time[1..].iter().all(|b| b.is_ascii_digit() || *b == b'.');
    name.strip_suffix(b" ").filter(|_| fits).map(|name| (name, todo))
}
