//! What run directories say of a process: that it belongs to a job that runs, that it belonged to one that is over
//! (CONTRACT.md §7), or that it was left on purpose.

use super::place::without_deleted;
use super::sight::{Picture, variable};
use crate::contract::{self, Footer, Header, Leaks, LogFile, RunDir, Scope};
use crate::process::{Here, Ident, Stat};
use crate::supervise::Evidence;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where jobs live by default, below the directory that they were launched in.
const DEFAULT: &str = ".gate-logs";

/// How it stands with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It runs.
    Running,
    /// It runs without supervisors.
    Unsupervised,
    /// It is over.
    Over,
}

/// A job, as far as its processes are concerned.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Its random id.
    pub job: String,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Option<String>,
    /// Its leader.
    pub leader: Ident,
    /// Whether the leader's PID and start mean something here: this boot, these namespaces.
    pub local: bool,
    /// How it stands.
    pub life: Life,
    /// Whether whatever it left was to be left.
    pub allows: bool,
    /// What it left on purpose: PID and start.
    pub left: Vec<(i32, u64)>,
}

impl Record {
    fn of(here: &Here, header: &Header, footer: Option<&Footer>, life: Life) -> Record {
        let left = footer.map(|f| &f.leaked[..]).unwrap_or_default();
        Record {
            job: header.job.clone(),
            name: header.name.clone(),
            owner: header.owner.clone(),
            leader: Ident { pid: header.pid, start: header.start },
            local: header.boot == here.boot && header.pidns == here.pidns && header.timens == here.timens,
            life,
            // The list of a footer is cut: what such a job left is left as a whole.
            allows: header.leaks == Leaks::Allow && footer.is_some(),
            left: left.iter().map(|l| (l.pid, l.start)).collect(),
        }
    }

    /// Whether a process belongs or belonged to the job, and by what this is known. `cookie` is its TB_JOB.
    fn evidence(&self, picture: &Picture<'_>, row: &Stat, cookie: Option<&str>) -> Option<Evidence> {
        let old_enough = row.start >= self.leader.start;
        if self.local && (row.pid, row.start) == (self.leader.pid, self.leader.start) {
            return Some(Evidence::Leader);
        }
        // The number is the leader's as long as nobody else bears it.
        let number_is_free = picture.all.get(self.leader.pid).is_none_or(|r| r.start == self.leader.start);
        let shares = row.sid == self.leader.pid || row.pgid == self.leader.pid;
        if self.local && number_is_free && shares && old_enough {
            return Some(Evidence::SessionOrGroup);
        }
        (cookie == Some(&self.job) && (old_enough || self.life != Life::Over)).then_some(Evidence::Cookie)
    }
}

/// What a run directory holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    /// Its jobs, earlier runs included.
    pub records: Vec<Record>,
    /// The processes of live PID files that somebody else wrote.
    pub foreign: Vec<i32>,
    /// Whether something in it could not be read.
    pub unclear: bool,
}

impl Shelf {
    /// Reads a run directory; one that is not there holds nothing.
    fn read(path: &Path, here: &Here) -> Shelf {
        let unclear = Shelf { unclear: true, ..Shelf::default() };
        let dir = match RunDir::open(path) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Shelf::default(),
            Err(_) => return unclear,
        };
        let Ok(listing) = contract::list(&dir, here) else { return unclear };
        let mut shelf = Shelf { unclear: !listing.problems.is_empty(), ..Shelf::default() };
        for job in &listing.jobs {
            if job.is_foreign() {
                shelf.foreign.extend(job.pid());
            }
            if let Some(header) = job.header() {
                let life = match (job.state.is_running(), job.state.unsupervised) {
                    (true, true) => Life::Unsupervised,
                    (true, false) => Life::Running,
                    _ => Life::Over,
                };
                let footer = job.log.as_ref().and_then(footer);
                shelf.records.push(Record::of(here, header, footer, life));
            }
            // What an earlier run left on purpose is named in that run's log alone.
            let newest = job.log.as_ref().map(|log| &log.name);
            for name in job.logs.iter().filter(|name| Some(*name) != newest) {
                match contract::read_log(&dir, name) {
                    Ok(Some(log)) => {
                        let life = if log.held { Life::Running } else { Life::Over };
                        if let Some(header) = &log.header {
                            shelf.records.push(Record::of(here, header, footer(&log), life));
                        }
                    }
                    Ok(None) => {}
                    Err(_) => shelf.unclear = true,
                }
            }
        }
        shelf
    }
}

fn footer(log: &LogFile) -> Option<&Footer> {
    log.end.footer.as_ref().map(|(footer, _)| &**footer)
}

/// What the run directories say of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is to be left alone.
    Leave,
    /// It belonged to this job.
    Belonged {
        /// The job's name.
        name: String,
        /// How this is known.
        evidence: Evidence,
    },
    /// Nothing.
    Nothing,
}

/// The run directories that have been looked into, each once in a sweep: a job that begins meanwhile is known by
/// its living supervisor, and one that ends keeps its protection.
pub(super) struct Book {
    here: Here,
    run_dir: PathBuf,
    shelves: RefCell<BTreeMap<PathBuf, Rc<Shelf>>>,
}

impl Book {
    /// A book that begins with this run directory.
    pub(super) fn new(here: Here, run_dir: PathBuf) -> Book {
        let run_dir = std::path::absolute(&run_dir).unwrap_or(run_dir);
        Book { here, run_dir, shelves: RefCell::default() }
    }

    /// The leaders of this machine's unsupervised jobs, in the run directory and the one at the top of the tree.
    pub(super) fn unsupervised(&self, top: Option<&Path>) -> HashSet<Ident> {
        let mut shelves = vec![self.shelf(&self.run_dir)];
        shelves.extend(top.map(|top| self.shelf(&top.join(DEFAULT))));
        let records = shelves.iter().flat_map(|shelf| &shelf.records);
        records.filter(|r| r.local && r.life == Life::Unsupervised).map(|r| r.leader).collect()
    }

    fn shelf(&self, path: &Path) -> Rc<Shelf> {
        if let Some(shelf) = self.shelves.borrow().get(path) {
            return Rc::clone(shelf);
        }
        let shelf = Rc::new(Shelf::read(path, &self.here));
        self.shelves.borrow_mut().insert(path.to_owned(), Rc::clone(&shelf));
        shelf
    }

    /// What is known of a process that works in `cwd`, in a work tree with root `top`. `unsupervised` are the jobs
    /// that may be taken although they run.
    pub(super) fn verdict(
        &self,
        picture: &Picture<'_>,
        row: &Stat,
        (cwd, top): (&Path, &Path),
        unsupervised: Option<&Scope>,
    ) -> Verdict {
        let environ = picture.sight.environ(row);
        let cookie = variable(&environ, "TB_JOB").and_then(|v| v.into_string().ok());
        let mut shelves = vec![self.shelf(&self.run_dir)];
        let above = without_deleted(cwd).ancestors().take_while(|dir| dir.starts_with(top));
        shelves.extend(above.map(|dir| self.shelf(&dir.join(DEFAULT))));
        if let Some(dir) = variable(&environ, "TB_LOG_DIR") {
            shelves.push(self.shelf(&cwd.join(dir)));
        }
        judge(picture, row, &shelves, cookie.as_deref(), unsupervised)
    }

    /// Whether a process is named as left on purpose, or by a live PID file, in any directory looked into.
    pub(super) fn is_left(&self, row: &Stat) -> bool {
        self.shelves.borrow().values().any(|shelf| {
            shelf.foreign.contains(&row.pid)
                || shelf.records.iter().any(|r| r.local && r.left.contains(&(row.pid, row.start)))
        })
    }
}

/// The verdict, from what directories hold.
pub(super) fn judge(
    picture: &Picture<'_>,
    row: &Stat,
    shelves: &[Rc<Shelf>],
    cookie: Option<&str>,
    unsupervised: Option<&Scope>,
) -> Verdict {
    let line = picture.line(row.pid);
    let mut found = Verdict::Nothing;
    let mut cookie_known = cookie.is_none();
    for shelf in shelves {
        if line.iter().any(|r| shelf.foreign.contains(&r.pid)) {
            return Verdict::Leave;
        }
        for record in &shelf.records {
            if record.local && record.left.contains(&(row.pid, row.start)) {
                return Verdict::Leave;
            }
            cookie_known |= cookie == Some(&record.job);
            let Some(evidence) = record.evidence(picture, row, cookie) else { continue };
            let may_go = match record.life {
                Life::Running => false,
                Life::Unsupervised => unsupervised.is_some_and(|scope| scope.sees(record.owner.as_deref())),
                Life::Over => !record.allows,
            };
            if !may_go {
                return Verdict::Leave;
            }
            found = Verdict::Belonged { name: record.name.clone(), evidence };
        }
    }
    if !cookie_known && shelves.iter().any(|shelf| shelf.unclear) {
        // Its job may run: what cannot be read cannot be denied.
        return Verdict::Leave;
    }
    found
}
