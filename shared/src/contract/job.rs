//! A job read from its two files: found by name, or all that a run directory holds.

use super::RunDir;
use super::dir::DirEntry;
use super::files::{LogFile, PidContent, PidFile, read_log, read_pid_file};
use super::name::{LogName, Name, Stem};
use super::records::{Header, VERSION};
use super::state::{Facts, Foreign, Place, State, judge};
use crate::process::{self, Here, Ident, Snapshot};
use crate::supervise::{COMM, environment, is_recording};
use crate::term::{Failure, Result};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// How much later than its PID file was written a foreign process may have started: file times are coarse.
const SLACK: Duration = Duration::from_secs(2);
/// How far a file's time lags behind the clock: it is the kernel's last tick.
const GRAIN: Duration = Duration::from_millis(20);

/// What a listing of the directory says of a stem.
#[derive(Clone, Debug, Default)]
struct Listed {
    logs: Vec<LogName>,
    /// Whether there was a PID file.
    pid: bool,
}

impl Listed {
    fn of(entries: &[DirEntry], stem: &Stem) -> Listed {
        let mut listed = Listed::default();
        for entry in entries {
            match entry {
                DirEntry::Log(log) if log.stem == *stem => listed.logs.push(log.clone()),
                DirEntry::Pid(found) if found == stem => listed.pid = true,
                _ => {}
            }
        }
        listed
    }

    fn now(dir: &RunDir, stem: &Stem) -> Result<Listed> {
        Ok(Listed::of(&dir.entries()?, stem))
    }
}

/// Whose jobs a caller sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The caller's owner: only that owner's jobs; without one, only jobs that have none.
    pub owner: Option<String>,
    /// Everybody's.
    pub all: bool,
}

impl Scope {
    /// Whether a job with this owner is inside.
    pub fn sees(&self, owner: Option<&str>) -> bool {
        self.all || self.owner.as_deref() == owner
    }
}

/// A job, as its files, their locks and /proc tell.
#[derive(Debug)]
pub struct Job {
    /// Its name: the header's, or, where there is none, the stem.
    pub name: String,
    /// The stem of its files.
    pub stem: Stem,
    /// Its PID file.
    pub pid_file: Option<PidFile>,
    /// Its log.
    pub log: Option<LogFile>,
    /// All logs of the stem, the newest first.
    pub logs: Vec<LogName>,
    /// What it rests on.
    pub facts: Facts,
    /// What follows.
    pub state: State,
    /// What its processes say of it, where it runs and its log lost the header.
    pub recovered: Option<Recovered>,
}

/// A running job whose header is gone (`> /dev/stderr` cuts a log): known by its supervisors, who hold the PID file's
/// lock, and by the environment that its leader was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The leader: the supervisor's child that leads its own session.
    pub leader: Ident,
    /// Whose job it is.
    pub owner: Option<String>,
}

impl Recovered {
    /// The leader is the child that leads a session, of those that hold the PID file's lock. What was orphaned below may
    /// lead a session too: the leader is the eldest.
    fn of(file: &PidFile) -> Option<Recovered> {
        let all = Snapshot::take().ok()?;
        let halves = process::holders(&all, file.id.file, file.id.uid);
        let leads = |row: &&process::Stat| halves.contains(&row.ppid) && row.sid == row.pid;
        let leaders = all.rows().filter(leads).filter(|row| row.comm != COMM);
        let leader = leaders.min_by_key(|row| (row.start, row.pid))?;
        let owner = environment(leader.pid, "TB_OWNER");
        Some(Recovered { leader: Ident { pid: leader.pid, start: leader.start }, owner })
    }
}

impl Job {
    /// The header, where there is one.
    pub fn header(&self) -> Option<&Header> {
        self.log.as_ref().and_then(|l| l.header.as_deref())
    }

    /// Whose it is.
    pub fn owner(&self) -> Option<&str> {
        match self.header() {
            Some(header) => header.owner.as_deref(),
            None => self.recovered.as_ref()?.owner.as_deref(),
        }
    }

    /// Whether it was written by a newer version of the contract: it is shown, never signalled or changed.
    pub fn is_newer(&self) -> bool {
        self.header().is_some_and(|h| h.v > VERSION)
    }

    /// The leader as the header names it, whether it lives or not.
    pub fn leader(&self) -> Option<Ident> {
        self.header()
            .map(|h| Ident { pid: h.pid, start: h.start })
            .or(self.recovered.as_ref().map(|r| r.leader))
    }

    /// The PID to show: the leader's.
    pub fn pid(&self) -> Option<i32> {
        if self.is_foreign() {
            return self.pid_file.as_ref().and_then(PidFile::pid);
        }
        self.leader().map(|l| l.pid).or_else(|| self.pid_file.as_ref().and_then(PidFile::pid))
    }

    /// Whether the job runs under a PID file that somebody else wrote.
    pub fn is_foreign(&self) -> bool {
        self.facts.foreign_runs()
    }

    /// The number that somebody wrote over the live PID file, if anybody did.
    pub fn overwritten_by(&self) -> Option<&PidContent> {
        let file = self.pid_file.as_ref().filter(|f| f.held)?;
        let pid = self.leader()?.pid;
        (file.content != PidContent::Pid(pid)).then_some(&file.content)
    }

    /// Whether its results were collected: it is over and left out of the list.
    pub fn is_collected(&self) -> bool {
        !self.state.is_running() && self.log.as_ref().is_some_and(|l| l.end.collected)
    }
}

/// What a run directory holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// Its jobs, by stem, with closed logs.
    pub jobs: Vec<Job>,
    /// Files that could not be read, each named.
    pub problems: Vec<Failure>,
}

/// What one look into a run directory says of a name.
#[derive(Debug)]
pub struct Survey {
    /// The job of that name, whatever its owner; `None` is "not tracked".
    pub job: Option<Job>,
    /// Whether the plain stem's files belong, by their header, to another name.
    pub plain_is_anothers: bool,
    /// All that the directory holds.
    pub entries: Vec<DirEntry>,
}

impl Survey {
    fn listed(&self, stem: &Stem) -> Listed {
        Listed::of(&self.entries, stem)
    }

    /// The newest log of a stem.
    pub fn newest(&self, stem: &Stem) -> Option<LogName> {
        self.listed(stem).logs.into_iter().max_by(|a, b| a.order().cmp(&b.order()))
    }

    /// Whether any file has this stem.
    pub fn has(&self, stem: &Stem) -> bool {
        self.entries.iter().any(|entry| match entry {
            DirEntry::Pid(found) => found == stem,
            DirEntry::Log(log) => log.stem == *stem,
            DirEntry::New(_) | DirEntry::Cursor(_) => false,
        })
    }
}

/// Looks for a name under both of its stems, in one listing of the directory.
///
/// # Errors
/// When one of its files is no plain file or cannot be read.
pub fn survey(dir: &RunDir, here: &Here, name: &Name) -> Result<Survey> {
    let mut survey = Survey { job: None, plain_is_anothers: false, entries: dir.entries()? };
    let plain = name.plain_stem();
    for stem in name.stems() {
        let job = read_stem(dir, here, &stem, survey.listed(&stem))?;
        let Some(job) = again_if_torn(dir, here, &stem, job)? else { continue };
        // A header that names another job says that this stem is the other's.
        if job.header().is_some_and(|h| h.name != name.as_str()) {
            survey.plain_is_anothers |= Some(&stem) == plain.as_ref();
        } else if survey.job.as_ref().is_none_or(|best| is_newer_than(&job, best)) {
            survey.job = Some(Job { name: name.as_str().to_owned(), ..job });
        }
    }
    Ok(survey)
}

/// Finds a job by name, whatever its owner; `None` is "not tracked".
///
/// # Errors
/// As [`survey`].
pub fn find(dir: &RunDir, here: &Here, name: &Name) -> Result<Option<Job>> {
    Ok(survey(dir, here, name)?.job)
}

/// The same job as it is now, by its stem: its name may have been lost with its header.
///
/// # Errors
/// When one of its files is no plain file or cannot be read.
pub fn reread(dir: &RunDir, here: &Here, job: &Job) -> Result<Option<Job>> {
    let now = read_stem(dir, here, &job.stem, Listed::now(dir, &job.stem)?)?;
    again_if_torn(dir, here, &job.stem, now)
}

/// All jobs of the directory, whatever their owner.
///
/// # Errors
/// When the directory cannot be read; a single file that cannot be is a problem in the listing.
pub fn list(dir: &RunDir, here: &Here) -> Result<Listing> {
    let mut stems: BTreeMap<Stem, Listed> = BTreeMap::new();
    for entry in dir.entries()? {
        match entry {
            DirEntry::Pid(stem) => stems.entry(stem).or_default().pid = true,
            DirEntry::Log(log) => stems.entry(log.stem.clone()).or_default().logs.push(log),
            DirEntry::New(_) | DirEntry::Cursor(_) => {}
        }
    }
    let mut listing = Listing::default();
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for (stem, listed) in stems {
        match read_stem(dir, here, &stem, listed).and_then(|job| again_if_torn(dir, here, &stem, job)) {
            Ok(None) => {}
            Ok(Some(job)) => {
                // There may be more logs than a process may have open.
                let job = Job { log: job.log.map(|log| log.closed(dir)), ..job };
                match by_name.get(&job.name) {
                    // One name under both of its stems: the newer is the job.
                    Some(&at) if is_newer_than(&job, &listing.jobs[at]) => listing.jobs[at] = job,
                    Some(_) => {}
                    None => {
                        by_name.insert(job.name.clone(), listing.jobs.len());
                        listing.jobs.push(job);
                    }
                }
            }
            Err(problem) => listing.problems.push(problem),
        }
    }
    Ok(listing)
}

fn is_newer_than(job: &Job, other: &Job) -> bool {
    let age =
        |j: &Job| (j.state.is_running(), j.log.as_ref().map(|l| (l.name.stamp.clone(), l.name.sequence)));
    age(job) > age(other)
}

/// Between the end of a lock and a footer, or a launch and its log, a reader may see neither: it looks once
/// more before it says that a job crashed, or that a live PID file has no log.
fn again_if_torn(dir: &RunDir, here: &Here, stem: &Stem, job: Option<Job>) -> Result<Option<Job>> {
    let again = job.as_ref().is_some_and(|j| {
        let neither =
            !j.facts.pid_held && !j.facts.log_held && j.facts.footer.is_none() && j.facts.header.is_some();
        neither || (j.facts.pid_held && !j.facts.log_held)
    });
    if again { read_stem(dir, here, stem, Listed::now(dir, stem)?) } else { Ok(job) }
}

/// Reads what has this stem; `listed` is what a listing of the directory said, which may be older than what is read.
fn read_stem(dir: &RunDir, here: &Here, stem: &Stem, listed: Listed) -> Result<Option<Job>> {
    let pid_file = if listed.pid { read_pid_file(dir, stem)? } else { None };
    // A PID file that has gone since may have left a log behind that the listing does not know: a job whose log was
    // deleted gets another before its PID file goes.
    let mut logs = if listed.pid && pid_file.is_none() { Listed::now(dir, stem)?.logs } else { listed.logs };
    logs.sort_by(|a, b| b.order().cmp(&a.order()));
    // The run before may still hold its log when the next one runs: its record is written, it only syncs.
    let is_live = |log: &LogFile| {
        let before = |h: &Header| pid_file.as_ref().and_then(PidFile::pid) != Some(h.pid);
        log.held && !(log.end.footer.is_some() && log.header.as_deref().is_some_and(before))
    };
    let mut log = None;
    for name in &logs {
        let Some(found) = read_log(dir, name)? else { continue };
        let live = is_live(&found);
        if log.is_none() || live {
            log = Some(found);
        }
        // A live job's log is the one that is locked, even if somebody put a newer one beside it.
        if live || !pid_file.as_ref().is_some_and(|p| p.held) {
            break;
        }
    }
    if let (Some(pid), Some(found)) = (&pid_file, &log)
        && pid.held
        && !is_live(found)
    {
        // The job's own log is gone: what is there belongs to an earlier run.
        log = None;
    }
    let foreign = match (&pid_file, &log) {
        (Some(file), log) if !file.held => foreign(file, log.as_ref(), here),
        _ => Foreign::None,
    };
    let over = |l: &LogFile| l.header.is_some() && (!l.held || l.end.footer.is_some());
    if foreign == Foreign::Alive && log.as_ref().is_some_and(over) {
        log = None;
    }
    let facts = facts(here, pid_file.as_ref(), log.as_ref(), foreign);
    let header = log.as_ref().and_then(|l| l.header.as_deref());
    let name = header.map_or_else(|| stem.as_str().to_owned(), |h| h.name.clone());
    let held = pid_file.as_ref().filter(|file| file.held && header.is_none());
    let recovered = held.and_then(Recovered::of);
    Ok(judge(&facts).map(|state| Job {
        name,
        stem: stem.clone(),
        pid_file,
        log,
        logs,
        facts,
        state,
        recovered,
    }))
}

/// A job by one of its logs alone: an earlier run of a name.
pub fn of_log(here: &Here, log: LogFile) -> Option<Job> {
    let stem = log.name.stem.clone();
    let logs = vec![log.name.clone()];
    let name = log.header.as_deref().map_or_else(|| stem.as_str().to_owned(), |h| h.name.clone());
    let facts = facts(here, None, Some(&log), Foreign::None);
    judge(&facts).map(|state| Job {
        name,
        stem,
        pid_file: None,
        log: Some(log),
        logs,
        facts,
        state,
        recovered: None,
    })
}

fn facts(here: &Here, pid_file: Option<&PidFile>, log: Option<&LogFile>, foreign: Foreign) -> Facts {
    let header = log.and_then(|l| l.header.as_deref());
    let place = header.map(|h| place(h, here));
    let headerless = log.filter(|l| l.header.is_none());
    let footer = log
        .filter(|l| !(l.held && place == Some(Place::Here) && l.header.as_deref().is_some_and(is_unrecorded)))
        .and_then(|l| l.end.footer.as_ref())
        .map(|(f, _)| f.outcome);
    Facts {
        pid_file: pid_file.is_some(),
        pid_held: pid_file.is_some_and(|p| p.held),
        log: log.is_some(),
        log_held: log.is_some_and(|l| l.held),
        header: place,
        leader_lives: footer.is_none()
            && place == Some(Place::Here)
            && header.is_some_and(|h| Ident { pid: h.pid, start: h.start }.is_alive()),
        footer,
        foreign,
        marker: headerless.and_then(|l| l.end.marker),
        summary: headerless.and_then(|l| l.end.summary),
    }
}

/// Whether a job's monitor lives and has not come to its record: a footer that is there all the same is one that the job
/// printed of itself.
fn is_unrecorded(header: &Header) -> bool {
    header
        .supervisors
        .last()
        .is_some_and(|&(pid, start)| Ident { pid, start }.is_alive() && !is_recording(pid))
}

/// Where a header points, seen from here.
fn place(header: &Header, here: &Here) -> Place {
    if header.boot == here.boot {
        let same = header.pidns == here.pidns && header.timens == here.timens;
        if same { Place::Here } else { Place::OtherNamespace }
    } else if header.host == here.host {
        Place::EarlierBoot
    } else {
        Place::OtherMachine
    }
}

/// Whether the process of an unlocked PID file is the one that was meant.
fn foreign(file: &PidFile, log: Option<&LogFile>, here: &Here) -> Foreign {
    let Some(pid) = file.pid() else { return Foreign::None };
    if let Some(header) = log.and_then(|l| l.header.as_deref()) {
        // Our own PID file, left behind by supervisors that were killed: the header says all about it. So it does
        // while the leader lives, whatever somebody wrote over the file.
        let leader_lives =
            place(header, here) == Place::Here && Ident { pid: header.pid, start: header.start }.is_alive();
        if header.pid == pid || leader_lives {
            return Foreign::None;
        }
    }
    // What was written over the file of a job that ran then is no run of its own: the footer tells how it ended.
    let ended = log.and_then(|l| l.end.footer.as_ref()).and_then(|(f, _)| f.finished_at.as_deref());
    let ended = ended.and_then(|t| t.parse::<jiff::Timestamp>().ok()).map(SystemTime::from);
    if ended.is_some_and(|ended| file.id.modified + GRAIN < ended) {
        return Foreign::None;
    }
    let Some(stat) = process::read_stat(pid).filter(process::Stat::is_alive) else { return Foreign::Gone };
    if is_meant(file, log, &stat) { Foreign::Alive } else { Foreign::Gone }
}

/// Whether this process can be the one that whoever wrote the PID file meant: no younger than the file.
pub fn is_meant(file: &PidFile, log: Option<&LogFile>, stat: &process::Stat) -> bool {
    let old_enough = process::started_at(stat.start) <= file.id.modified + SLACK;
    // A stepped clock makes a run look younger than its file: having the log open proves it all the same.
    let has_log = || log.is_some_and(|l| process::has_open(stat.pid, l.id.file.dev, l.id.file.ino));
    old_enough || has_log()
}
