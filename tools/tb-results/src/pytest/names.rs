//! Failing tests as lines and reports name them.

use super::entries;
use crate::report::Outcome;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// A headline in ERRORS or FAILURES, and what stands under it.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) headline: u64,
    pub(super) error: bool,
    pub(super) class: Option<Box<str>>,
    pub(super) message: Option<Box<str>>,
    pub(super) place: Option<(Box<str>, u64)>,
    pub(super) worker: Option<Box<str>>,
    pub(super) in_error_text: bool,
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

    /// Where more names than failures were seen, headlines of files that could not be collected may have been a
    /// test's output: without them, if there are enough names still.
    pub(super) fn drop_files(&mut self, bad: u64) {
        let is_file = |n: &&Named| memchr::memmem::find(&n.id, b"::").is_none();
        let all: u64 = self.all.iter().map(|n| n.times).sum();
        let files: u64 = self.all.iter().filter(is_file).map(|n| n.times).sum();
        if files > 0 && all > bad && all - files >= bad {
            let all = std::mem::take(self).all;
            all.into_iter().filter(|n| !is_file(&n)).for_each(|n| self.push(n));
        }
    }

    /// With what is no test but a file as an error.
    pub(super) fn with_files_as_errors(self) -> Names {
        let mut out = Names::default();
        for mut name in self.all {
            if memchr::memmem::find(&name.id, b"::").is_none() {
                name.outcome = Outcome::Error;
            }
            out.push(name);
        }
        out
    }

    pub(super) fn find(&self, id: &[u8], outcome: Outcome) -> Option<&Named> {
        self.all.get(*self.index.get(&Names::key(id, outcome))?)
    }

    pub(super) fn pop(&mut self) {
        if let Some(named) = self.all.pop() {
            self.index.remove(&Names::key(&named.id, named.outcome));
        }
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

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn message(bytes: &[u8]) -> Box<str> {
    text(&bytes[..bytes.len().min(MESSAGE)]).into()
}
