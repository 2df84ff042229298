//! Which processes a sweep takes: a function of one picture, the run directories and what the caller asked for.

use super::argv::{Kind, Test};
use super::jobs::{Book, Verdict};
use super::own::{Orphan, has_new_parent, may_be_orphan, orphaned};
use super::place::tree_of;
use super::sight::Picture;
use super::{Options, Place};
use crate::process::{Ident, Stat};
use crate::supervise::{COMM, Evidence, GUARD_COMM};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

/// On what evidence a process was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its arguments are those of a test process.
    Test(Test),
    /// It belonged to a job that is over, or that nobody supervises.
    Job {
        /// The job's name.
        name: String,
        /// How this is known.
        evidence: Evidence,
    },
    /// Its command line matches the caller's pattern.
    Pattern,
    /// Its parent was chosen.
    Below(i32),
    /// It was born during the sweep, in the session of what was chosen.
    BornIn(i32),
}

impl Why {
    /// Whose test process it is, if its arguments tell.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Why::Test(test) => Some(test.kind),
            _ => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Test(test) if test.xdist_worker => f.write_str("worker of pytest-xdist"),
            Why::Test(test) => f.write_str(test.kind.word()),
            Why::Job { name, evidence } => {
                let how = match evidence {
                    Evidence::Leader => "leader",
                    Evidence::SessionOrGroup => "in the session",
                    Evidence::Cookie => "carries the TB_JOB",
                    Evidence::Descendant => "below a process",
                };
                write!(f, "{how} of job {name}")
            }
            Why::Pattern => f.write_str("matches the pattern"),
            Why::Below(pid) => write!(f, "below {pid}"),
            Why::BornIn(sid) => write!(f, "born in session {sid} meanwhile"),
        }
    }
}

/// A process that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Who it is.
    pub ident: Ident,
    /// Why it was chosen.
    pub why: Why,
    /// Why nobody owns it; `None` for what is below another.
    pub orphan: Option<Orphan>,
    /// Where it works, where that was asked.
    pub(super) cwd: Option<PathBuf>,
}

impl Choice {
    /// A process that goes because of another.
    pub(super) fn of(row: &Stat, why: Why) -> Choice {
        Choice { ident: Ident { pid: row.pid, start: row.start }, why, orphan: None, cwd: None }
    }
}

/// Whether a sweep never touches a process, whatever is above it: itself, its ancestors, supervisors and guards
/// (they end what is theirs), and what was left on purpose.
pub(super) fn is_spared(row: &Stat, never: &HashSet<i32>, book: &Book) -> bool {
    row.pid <= 1
        || never.contains(&row.pid)
        || row.comm == COMM
        || row.comm == GUARD_COMM
        || book.is_left(row)
}

/// Chooses the orphans, each followed by what is below it.
pub(super) fn choose(
    picture: &Picture<'_>,
    options: &Options,
    book: &Book,
    never: &HashSet<i32>,
    uid: u32,
    now_ticks: u64,
) -> Vec<Choice> {
    let leaders = unsupervised_leaders(options, book);
    let is_leader = |row: &Stat| leaders.contains(&Ident { pid: row.pid, start: row.start });
    let mut roots: Vec<Choice> = picture
        .all
        .rows()
        .filter(|row| row.pid > 1 && !never.contains(&row.pid))
        .filter(|row| may_be_orphan(picture, row) || is_leader(row))
        .filter_map(|row| root(picture, options, book, (uid, now_ticks), row, is_leader(row)))
        .collect();
    roots.sort_by_key(|root| (root.ident.start, root.ident.pid));
    let mut chosen: Vec<Choice> = Vec::new();
    let mut seen: HashSet<i32> = roots.iter().map(|root| root.ident.pid).collect();
    for root in roots {
        let pid = root.ident.pid;
        chosen.push(root);
        for row in below(picture, pid, never, book) {
            if seen.insert(row.pid) {
                chosen.push(Choice::of(row, Why::Below(row.ppid)));
            }
        }
    }
    chosen
}

/// The tree below a process, without what is spared and what is below that.
pub(super) fn below<'a>(picture: &Picture<'a>, pid: i32, never: &HashSet<i32>, book: &Book) -> Vec<&'a Stat> {
    let enter = |row: &Stat| !is_spared(row, never, book);
    picture.all.descend(pid, enter).into_iter().filter(|row| enter(row)).collect()
}

/// The leaders of jobs without supervisors, where those are asked for.
fn unsupervised_leaders(options: &Options, book: &Book) -> HashSet<Ident> {
    if options.unsupervised { book.unsupervised(options.place.root()) } else { HashSet::new() }
}

/// One process: the cheap questions first, those that need files last.
fn root(
    picture: &Picture<'_>,
    options: &Options,
    book: &Book,
    (uid, now_ticks): (u32, u64),
    row: &Stat,
    is_leader: bool,
) -> Option<Choice> {
    let wanted = |row: &Stat| picture.test(row).filter(|test| options.kinds.contains(&test.kind));
    let test = wanted(row);
    if test.is_none_or(|t| !t.xdist_worker) && !has_new_parent(picture, row) && !is_leader {
        return None;
    }
    let cwd = picture.sight.cwd(row).filter(|cwd| options.place.holds(cwd))?;
    let line = picture.line(row.pid);
    // A living supervisor or guard, of whatever run directory, answers for all that is below it.
    if line.iter().any(|r| r.comm == COMM || r.comm == GUARD_COMM) || !picture.sight.is_alive(row) {
        return None;
    }
    let owner = picture.sight.owner(row)?;
    if owner.contained || (owner.uid != uid && !options.all_users) {
        return None;
    }
    let age = now_ticks.saturating_sub(row.start);
    if u128::from(age) * 1_000 / u128::from(crate::process::ticks_per_second()) < options.older.as_millis() {
        return None;
    }
    let top = match &options.place {
        Place::Tree(root) | Place::Below(root) => root.clone(),
        Place::Anywhere => tree_of(&cwd).unwrap_or(&cwd).to_owned(),
    };
    let unsupervised = options.unsupervised.then_some(&options.scope);
    let ask = |row: &Stat| book.verdict(picture, row, (&cwd, &top), unsupervised);
    let why = match (ask(row), test) {
        (Verdict::Leave, _) => return None,
        (_, Some(test)) => Why::Test(test),
        (Verdict::Belonged { name, evidence }, None) => Why::Job { name, evidence },
        (Verdict::Nothing, None) => {
            options.pattern.as_ref().filter(|pattern| pattern(&picture.command(row)))?;
            Why::Pattern
        }
    };
    let is_test = |row: &Stat| wanted(row).is_some() || matches!(ask(row), Verdict::Belonged { .. });
    // Who started a job's leader is known: no adopter's name has to be.
    let orphan = orphaned(picture, row, &is_test).or(is_leader.then_some(Orphan::Unsupervised))?;
    let ident = Ident { pid: row.pid, start: row.start };
    Some(Choice { ident, why, orphan: Some(orphan), cwd: Some(cwd) })
}
