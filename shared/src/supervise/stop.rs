//! A job stopped from outside: its supervisor is asked, and only when nobody is left to ask is the tree stopped
//! by evidence (CONTRACT.md §6).

use super::evidence::{Evidence, belongs, cookie};
use super::{BOUND, Request, cannot_record};
use crate::contract::{
    self, Footer, Foreign, Job, LogFile, Name, Outcome, Place, Reason, RunDir, State, Stopping, VERSION, now,
    rfc3339,
};
use crate::poll::sleep_on;
use crate::process::{self, FileRef, Handle, Here, Ident, Snapshot};
use crate::term::{Code, Failure, Result};
use rustix::fs::{OFlags, inotify};
use std::cell::OnceCell;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a supervisor may take to answer before it counts as stuck.
const ANSWER: Duration = Duration::from_secs(2);
/// What an end may take beyond its bound before its supervisor counts as stuck: the record's writing, a busy machine.
const SLACK: Duration = Duration::from_secs(3);
/// How long another tool may take that stops the same unsupervised job, beyond our own bound.
const OTHERS: Duration = Duration::from_secs(10);
/// About what a record takes, in bytes.
const RECORD: u64 = 8 << 10;
/// The longest sleep between two looks where the kernel cannot wake us.
const LOOK: Duration = Duration::from_millis(100);
/// How long a stop may take that is told by its monitor's end alone: most take less, and the kernel takes some 10 ms to
/// take an inotify watch away.
const MOMENT: Duration = Duration::from_millis(25);
/// How long a reader's probe of a lock may take before it is tried again.
const PROBE: Duration = Duration::from_millis(5);

/// What a stop came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// It was over before: how it had ended.
    AlreadyOver(State),
    /// It is over now.
    Now {
        /// How the record says it ended.
        state: State,
        /// The leader.
        pid: i32,
        /// How many processes there were.
        processes: usize,
        /// The strongest signal that was needed.
        signal: String,
        /// Nobody supervised it.
        unsupervised: bool,
    },
    /// Something of it is still there.
    Survivors(Vec<String>),
}

/// The halves of a job's supervisor that live, the monitor first. They are verified: they hold the job's lock.
/// Where the header is gone they are found by that lock.
pub fn supervisors(job: &Job) -> Vec<Ident> {
    let files: Vec<FileRef> = [job.pid_file.as_ref().map(|f| f.id.file), job.log.as_ref().map(|l| l.id.file)]
        .into_iter()
        .flatten()
        .collect();
    let holds = |pid: i32| files.iter().any(|&file| process::holds_lock(pid, file));
    if let Some(header) = job.header() {
        let halves = header.supervisors.iter().rev();
        return halves
            .map(|&(pid, start)| Ident { pid, start })
            .filter(|ident| ident.is_alive() && holds(ident.pid))
            .collect();
    }
    // Between the leader's end and the record the log alone is held.
    let pid_file = job.pid_file.as_ref().filter(|f| f.held).map(|f| f.id);
    let Some(held) = pid_file.or(job.log.as_ref().filter(|l| l.held).map(|l| l.id)) else { return vec![] };
    let Ok(all) = Snapshot::take() else { return vec![] };
    let pids = process::holders(&all, held.file, held.uid);
    let mut halves: Vec<&process::Stat> = pids.iter().filter_map(|&pid| all.get(pid)).collect();
    // The monitor is the one whose parent is the other.
    halves.sort_by_key(|row| !pids.contains(&row.ppid));
    halves.into_iter().map(|row| Ident { pid: row.pid, start: row.start }).collect()
}

/// Whether the caller runs inside this job.
pub fn contains_caller(job: &Job, line: &[i32]) -> bool {
    let mut inside: Vec<i32> =
        job.header().map(|h| h.supervisors.iter().map(|s| s.0).collect()).unwrap_or_default();
    inside.extend(job.pid());
    job.state.is_running() && inside.iter().any(|pid| line.contains(pid))
}

/// Why a foreign run must not be signalled, if it must not: it has to be the file's owner's, in our namespace, and
/// to have to do with this run directory.
pub fn refusal_to_signal(dir: &RunDir, job: &Job) -> Option<String> {
    let file = job.pid_file.as_ref()?;
    let pid = file.pid()?;
    let owner = process::real_uid(pid);
    if owner != Some(file.id.uid) {
        return Some(format!("it is not the process of uid {}, who owns the PID file", file.id.uid));
    }
    let has_log = job.logs.first().is_some_and(|newest| {
        dir.stat(&newest.file()).is_some_and(|s| process::has_open(pid, s.st_dev, s.st_ino))
    });
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    if namespace(&pid.to_string()) != namespace("self") {
        return Some("it runs in another PID namespace".to_owned());
    }
    let place = dir.absolute();
    let near = process::cwd(pid).is_some_and(|cwd| cwd.starts_with(place.parent().unwrap_or(&place)));
    (!has_log && !near).then(|| "it neither has the log open nor works in this tree".to_owned())
}

/// Stops a job and waits until nothing of it is left, at most grace + 5 s and a moment for the record.
///
/// # Errors
/// When the job may not be signalled, or was written by a newer version.
pub fn stop(dir: &RunDir, here: &Here, job: &Job, signal: i32, grace: Duration, by: &str) -> Result<Stopped> {
    let mut answer = None;
    stop_all(dir, here, &[job], signal, grace, by, |_, stopped| {
        answer = Some(stopped);
        Ok(())
    })?;
    answer.unwrap_or(Ok(Stopped::AlreadyOver(job.state)))
}

/// Stops several jobs within the time of one: their supervisors are asked all at once, then each is waited for and
/// `told` of.
///
/// # Errors
/// Those of `told`; what keeps one job from being stopped is told with that job.
pub fn stop_all<'j>(
    dir: &RunDir,
    here: &Here,
    jobs: &[&'j Job],
    signal: i32,
    grace: Duration,
    by: &str,
    mut told: impl FnMut(&'j Job, Result<Stopped>) -> Result<()>,
) -> Result<()> {
    let line = process::self_and_ancestors();
    let begin = |job: &'j Job| -> Result<Begun<'_>> {
        if let Some(stopped) = settled(job, &line)? {
            return Ok(Begun::Settled(stopped));
        }
        if job.is_foreign() {
            return Ok(Begun::Foreign);
        }
        let mut stop = Stop { dir, here, job, signal, grace, by, processes: 0 };
        stop.processes = stop.count();
        if jobs.len() > 1
            && let Some(&half) = supervisors(job).first()
        {
            // Asked again in its turn, it is asked for no more than this.
            stop.ask(half, grace);
        }
        Ok(Begun::Ours(stop))
    };
    let begun: Vec<Result<Begun<'_>>> = jobs.iter().map(|job| begin(job)).collect();
    for (job, begun) in jobs.iter().zip(begun) {
        let stopped = begun.and_then(|begun| match begun {
            Begun::Settled(stopped) => Ok(stopped),
            Begun::Foreign => stop_foreign(dir, here, job, signal, grace),
            Begun::Ours(stop) => stop.run(),
        });
        told(job, stopped)?;
    }
    Ok(())
}

enum Begun<'a> {
    /// There is nothing to do.
    Settled(Stopped),
    /// Somebody else's run.
    Foreign,
    /// A job.
    Ours(Stop<'a>),
}

/// What is to be said of a job that need not be stopped, or must not be.
fn settled(job: &Job, line: &[i32]) -> Result<Option<Stopped>> {
    let name = job.name.as_str();
    if !job.state.is_running() {
        return Ok(Some(Stopped::AlreadyOver(job.state)));
    }
    if job.is_newer() {
        return Err(Failure::cannot(
            format!("stop {name}"),
            "it was launched by a newer version of these tools",
        )
        .hint("use that version's tb-kill"));
    }
    if contains_caller(job, line) {
        return Err(Failure::usage(format!("stop {name}"), "this command runs inside it")
            .hint("exit with the status that you mean, or stop it from outside"));
    }
    let elsewhere =
        matches!(job.facts.header, Some(Place::OtherNamespace | Place::EarlierBoot | Place::OtherMachine));
    if elsewhere && !job.is_foreign() {
        let host = job.header().map(|h| h.host.clone()).unwrap_or_default();
        return Err(Failure::cannot(
            format!("stop {name}"),
            format!("it runs in another namespace or machine ({host})"),
        )
        .hint("run tb-kill there")
        .code(Code::Survivors));
    }
    Ok(None)
}

struct Stop<'a> {
    dir: &'a RunDir,
    here: &'a Here,
    job: &'a Job,
    signal: i32,
    grace: Duration,
    by: &'a str,
    /// How many processes there were before anything was asked.
    processes: usize,
}

impl Stop<'_> {
    fn run(&self) -> Result<Stopped> {
        let watch = Watch::new(self.dir);
        let processes = self.processes;
        let pid = self.job.pid().unwrap_or(0);
        let over = &|state: State, footer: Option<&Footer>| {
            let killed = footer.is_some_and(|f| f.outcome == Outcome::Killed);
            if !killed {
                // It ended by itself while we were asking: it is reported as what it was.
                return Stopped::AlreadyOver(state);
            }
            let signal = footer.and_then(|f| f.stopped_with.clone()).unwrap_or_else(|| "SIGTERM".to_owned());
            let survivors: Vec<String> = footer
                .map(|f| f.survivors.iter().map(|s| format!("{} {}: {}", s.pid, s.command, s.why)).collect())
                .unwrap_or_default();
            if survivors.is_empty() {
                Stopped::Now { state, pid, processes, signal, unsupervised: false }
            } else {
                Stopped::Survivors(survivors)
            }
        };
        let begun = Instant::now();
        let mut removed = false;
        while let Some(&half) = supervisors(self.job).first() {
            // Whoever takes over has what is left of the grace, not another.
            let grace = self.grace.saturating_sub(begun.elapsed());
            self.ask(half, grace);
            let asked = Instant::now();
            let handle = Handle::open(half).ok().flatten();
            loop {
                let look = self.look()?;
                if let Look::Over(state, footer) = look {
                    return Ok(over(state, footer.as_deref()));
                }
                // The supervisor has been told to try again. If the record has room for others and none for it (a limit on
                // file sizes that it inherited), it gives way like one that is stuck.
                if let Some(cause) = cannot_record(half.pid).filter(|_| !self.has_room()) {
                    return Err(Failure::cannot(
                        format!("stop {}", self.job.name),
                        format!("it has ended, but its end cannot be recorded: {cause}"),
                    )
                    .hint("make room there: its supervisor tries again every 5 s, and at each tb-kill"));
                }
                // No answer, or an answer and then nothing: a half that died between the two, or was stopped again.
                let patience = match look {
                    Look::Silent => ANSWER,
                    _ => grace + BOUND + SLACK,
                };
                if !half.is_alive() {
                    break;
                }
                if asked.elapsed() >= patience {
                    if !self.remove_stuck(half) {
                        return Ok(self.survivors("its supervisor neither answers nor dies"));
                    }
                    removed = true;
                    break;
                }
                watch.wait(handle.as_ref().filter(|_| asked.elapsed() < MOMENT), LOOK);
            }
        }
        match self.look()? {
            // Supervisors that were removed have recorded nothing: that is done for them.
            Look::Over(state, footer) if footer.is_some() || !removed => Ok(over(state, footer.as_deref())),
            _ => self.by_evidence(&watch, over),
        }
    }

    /// Whether this process could write a record where the supervisor could not.
    fn has_room(&self) -> bool {
        let stuck = supervisors(self.job).first().is_some_and(|half| cannot_record(half.pid).is_some());
        let Some(log) = self.job.log.as_ref().filter(|_| stuck) else { return true };
        let Ok(Some((file, stat))) = self.dir.open_file(&log.name.file(), OFlags::RDWR) else { return true };
        let end = u64::try_from(stat.st_size).unwrap_or(0);
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, end, RECORD) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => true,
            Err(_) => false,
        }
    }

    /// Asks a half. One that has gone meanwhile, or takes no more requests, does not answer, which is seen.
    fn ask(&self, half: Ident, grace: Duration) {
        if let Ok(Some(handle)) = Handle::open(half) {
            // A stopped half wakes up first.
            let _ = handle.signal(libc::SIGCONT);
            let _ = handle.request(Request { signal: self.signal, grace }.value());
        }
    }

    /// A half that does not answer is in the way: the other takes over with its death. False when it does not die.
    fn remove_stuck(&self, half: Ident) -> bool {
        let Ok(Some(handle)) = Handle::open(half) else { return true };
        let _ = handle.signal(libc::SIGKILL);
        let until = Instant::now() + ANSWER;
        while !handle.has_ended() && Instant::now() < until {
            sleep_on(&[handle.fd()], Some(LOOK));
        }
        handle.has_ended()
    }

    fn count(&self) -> usize {
        let Ok(all) = Snapshot::take() else { return 0 };
        let halves = supervisors(self.job);
        match halves.first() {
            Some(monitor) => {
                all.descendants(monitor.pid).iter().filter(|r| r.is_alive() && r.comm != super::COMM).count()
            }
            None => self.evidence(&all).len(),
        }
    }

    fn evidence(&self, all: &Snapshot) -> Vec<Ident> {
        let Some(header) = self.job.header() else { return vec![] };
        let leader = Ident { pid: header.pid, start: header.start };
        let found = belongs(all, leader, &header.job, &[], cookie);
        found
            .into_iter()
            // Anybody can put a job's id into an environment: that counts among the owner's own processes only.
            .filter(|(i, evidence)| *evidence != Evidence::Cookie || self.is_owners(i.pid))
            .map(|(i, _)| i)
            .filter(|i| all.find(*i).is_some_and(process::Stat::is_alive))
            .collect()
    }

    /// Neither a supervisor nor a header: what is left is a PID file, honoured like anybody's, or a lock that somebody
    /// else holds.
    fn without_header(&self) -> Result<Stopped> {
        match contract::reread(self.dir, self.here, self.job)? {
            Some(now) if now.is_foreign() => stop_foreign(self.dir, self.here, &now, self.signal, self.grace),
            Some(now) if now.state.is_running() => Ok(Stopped::Survivors(self.strangers(&now))),
            Some(now) => Ok(Stopped::AlreadyOver(now.state)),
            None => Ok(Stopped::AlreadyOver(State { status: contract::Status::Finished, ..self.job.state })),
        }
    }

    /// Who holds a lock of the job's files and is no supervisor of it: for a person, who alone may stop them.
    fn strangers(&self, job: &Job) -> Vec<String> {
        let pid_file = job.pid_file.as_ref().filter(|f| f.held).map(|f| (f.stem.pid_file(), f.id.file));
        let log = job.log.as_ref().filter(|l| l.held).map(|l| (l.name.file(), l.id.file));
        let all = Snapshot::take().unwrap_or_default();
        let mut lines = Vec::new();
        for (file, id) in pid_file.into_iter().chain(log) {
            let path = self.dir.path_of(&file);
            let why = format!("it holds the lock of {} and is no supervisor of this job", path.display());
            let before = lines.len();
            let holders = all.rows().map(|row| row.pid).filter(|&pid| process::holds_lock(pid, id));
            lines.extend(holders.map(|pid| format!("{pid} {}: {why}", process::command_line(pid))));
            if lines.len() == before {
                lines.push(format!("somebody who cannot be seen from here: {why}"));
            }
        }
        lines
    }

    fn look(&self) -> Result<Look> {
        // By its files: a job whose header is gone is listed under a name that leads elsewhere.
        let Some(now) = contract::reread(self.dir, self.here, self.job)? else {
            return Ok(Look::Over(State { status: contract::Status::Finished, ..self.job.state }, None));
        };
        if now.is_foreign() {
            // Somebody wrote another number over the job's PID file, which is that one's now: how the job ended is in
            // its log.
            let ours = |log: &LogFile| self.job.header().is_none_or(|h| log.job() == Some(&h.job));
            let mut logs =
                now.logs.iter().filter_map(|name| contract::read_log(self.dir, name).ok().flatten());
            let Some(log) = logs.find(ours).and_then(|log| contract::of_log(self.here, log)) else {
                return Ok(Look::Over(State { status: contract::Status::Finished, ..self.job.state }, None));
            };
            return Ok(Self::seen(log, true));
        }
        let same = match (now.header(), self.job.header()) {
            (Some(a), Some(b)) => a.job == b.job,
            _ => true,
        };
        if now.state.is_running() && now.state.unsupervised && !self.job.state.unsupervised {
            return Ok(Look::Silent);
        }
        Ok(Self::seen(now, same))
    }

    fn seen(now: Job, same: bool) -> Look {
        if !same || !now.state.is_running() {
            let footer = now.log.and_then(|l| l.end.footer).map(|(f, _)| f).filter(|_| same);
            return Look::Over(now.state, footer);
        }
        let announced = now.log.as_ref().is_some_and(|l| l.end.stopping.is_some());
        if announced { Look::Stopping } else { Look::Silent }
    }

    fn survivors(&self, why: &str) -> Stopped {
        let all = Snapshot::take().unwrap_or_default();
        let mut list: Vec<Ident> = self.evidence(&all);
        if list.is_empty() {
            list.extend(self.job.leader().filter(|l| l.is_alive()));
        }
        let lines = list.iter().map(|ident| {
            let facts = process::Facts::read(ident.pid);
            let state = facts.state.map(|s| format!(", state {s}")).unwrap_or_default();
            format!("{} {}: {why}{state}", ident.pid, facts.command)
        });
        Stopped::Survivors(lines.collect())
    }

    /// The supervisors of jobs inside this one, whose own processes are left to them: they inherited its cookie.
    fn nested(&self, all: &Snapshot) -> Vec<Ident> {
        let Some(header) = self.job.header() else { return vec![] };
        let is_supervisor = |row: &process::Stat| row.comm == super::COMM || row.comm == super::GUARD_COMM;
        let own: Vec<i32> = header.supervisors.iter().map(|s| s.0).collect();
        all.rows()
            .filter(|row| is_supervisor(row) && row.start >= header.start && !own.contains(&row.pid))
            .filter(|row| !all.get(row.ppid).is_some_and(is_supervisor))
            .filter(|row| cookie(row.pid).as_ref() == Some(&header.job) && self.is_owners(row.pid))
            .map(|row| Ident { pid: row.pid, start: row.start })
            .collect()
    }

    fn is_owners(&self, pid: i32) -> bool {
        self.job.log.as_ref().is_none_or(|log| process::real_uid(pid) == Some(log.id.uid))
    }

    /// Nobody supervises the job: its processes are found by evidence, and the record is written here.
    fn by_evidence(
        &self,
        watch: &Watch<'_>,
        over: &dyn Fn(State, Option<&Footer>) -> Stopped,
    ) -> Result<Stopped> {
        if self.job.header().is_none() {
            return self.without_header();
        }
        let pid = self.job.pid().unwrap_or(0);
        let log = match self.lock_log(watch)? {
            Locked::Over(state, footer) => return Ok(over(state, footer.as_deref())),
            Locked::Mine(log) => Some(*log),
            Locked::NoLog => None,
        };
        let announce = self.job.header().map(|h| Stopping {
            job: h.job.clone(),
            by: self.by.to_owned(),
            reason: Reason::Kill,
        });
        if let (Some((_, file)), Some(stopping)) = (&log, &announce) {
            let line = [if ends_in_newline(file) { &b""[..] } else { b"\n" }, &stopping.line()].concat();
            let _ = (&*file).write_all(&line);
        }
        let mut hard = false;
        let grace_over = Instant::now() + self.grace;
        let give_up = grace_over + BOUND;
        let mut signalled: Vec<Ident> = Vec::new();
        let mut known: Vec<Ident> = Vec::new();
        let mut empty = 0;
        let left = loop {
            let all = Snapshot::take().map_err(|e| Failure::cannot("read /proc", e))?;
            let nested = self.nested(&all);
            // What was seen once is remembered: when its parent has died before it, nothing tells whose it was.
            let mut found = self.evidence(&all);
            found.extend(&nested);
            if hard {
                let below = known.iter().chain(&nested).filter(|i| all.find(**i).is_some());
                let below = below.flat_map(|i| all.descendants(i.pid));
                found.extend(below.map(|row| Ident { pid: row.pid, start: row.start }));
            }
            found.retain(|ident| !known.contains(ident));
            known.extend(found);
            known.retain(|ident| all.find(*ident).is_some_and(process::Stat::is_alive));
            let living = known.clone();
            empty = if living.is_empty() { empty + 1 } else { 0 };
            // One look that finds nothing proves nothing; two in a row are as much as a scan can say.
            if empty == 2 {
                break vec![];
            }
            if Instant::now() >= give_up {
                break living;
            }
            hard |= Instant::now() >= grace_over;
            for &ident in &living {
                if hard || !signalled.contains(&ident) {
                    signalled.push(ident);
                    let Ok(Some(handle)) = Handle::open(ident) else { continue };
                    if !hard && nested.contains(&ident) {
                        let _ = handle.signal(libc::SIGCONT);
                        let request = Request { signal: libc::SIGTERM, grace: self.grace * 3 / 4 };
                        let _ = handle.request(request.value());
                        continue;
                    }
                    let _ = handle.signal(if hard { libc::SIGKILL } else { self.signal });
                    let _ = handle.signal(libc::SIGCONT);
                }
            }
            let first = living.first().and_then(|&i| Handle::open(i).ok().flatten());
            if let Some(handle) = first {
                sleep_on(&[handle.fd()], Some(LOOK));
            }
        };
        let survivors: Vec<contract::Leftover> = left
            .iter()
            .map(|ident| contract::Leftover {
                pid: ident.pid,
                start: ident.start,
                command: process::command_line(ident.pid),
                why: "still alive after KILL".to_owned(),
            })
            .collect();
        let named = survivors.iter().map(|s| format!("{} {}: {}", s.pid, s.command, s.why)).collect();
        let signal = crate::sys::signal_name(if hard { libc::SIGKILL } else { self.signal });
        if let (Some((log, guard)), Some(header)) = (log, self.job.header()) {
            write_footer(&log, &guard, header, survivors, &signal)?;
            drop(guard);
        }
        if !left.is_empty() {
            return Ok(Stopped::Survivors(named));
        }
        // The number is about to be anybody's: no file may go on naming it.
        if let Ok(lock) = contract::DirLock::take(self.dir) {
            let _ = contract::clear_pid_file(self.dir, &lock, self.job);
        }
        if let Some(now) = contract::reread(self.dir, self.here, self.job)?.filter(|now| now.facts.pid_held) {
            return Ok(Stopped::Survivors(self.strangers(&now)));
        }
        let state = contract::judge(&contract::Facts {
            footer: self.job.header().map(|_| Outcome::Killed),
            pid_held: false,
            log_held: false,
            leader_lives: false,
            foreign: Foreign::None,
            ..self.job.facts.clone()
        })
        .unwrap_or(self.job.state);
        Ok(Stopped::Now { state, pid, processes: self.processes, signal, unsupervised: true })
    }

    /// The log, opened for appending and locked: nobody else writes this job's end.
    fn lock_log(&self, watch: &Watch<'_>) -> Result<Locked> {
        let Some(log) = &self.job.log else { return Ok(Locked::NoLog) };
        let file_name = log.name.file();
        let Some((file, _)) = self.dir.open_file(&file_name, OFlags::RDWR | OFlags::APPEND)? else {
            return Ok(Locked::NoLog);
        };
        let patience = Instant::now() + self.grace + BOUND + OTHERS;
        while Instant::now() < patience {
            match file.try_lock() {
                Ok(()) => {
                    let Some(current) = contract::read_log(self.dir, &log.name)? else {
                        return Ok(Locked::NoLog);
                    };
                    if current.end.footer.is_some() {
                        // Whoever held it has stopped the job.
                        drop(file);
                        if let Look::Over(state, footer) = self.look()? {
                            return Ok(Locked::Over(state, footer));
                        }
                        return Ok(Locked::NoLog);
                    }
                    return Ok(Locked::Mine(Box::new((current, file))));
                }
                // A reader's probe holds a shared lock for an instant; another tb-kill holds it until it is done.
                Err(std::fs::TryLockError::WouldBlock) => watch.wait(None, PROBE),
                Err(std::fs::TryLockError::Error(e)) => return Err(Failure::cannot("lock the log", e)),
            }
        }
        Err(Failure::cannot(format!("stop {}", self.job.name), "somebody else holds its log's lock")
            .hint("try again"))
    }
}

enum Locked {
    /// The log, and the lock on it.
    Mine(Box<(LogFile, std::fs::File)>),
    /// Somebody else was stopping the job, and has done so.
    Over(State, Option<Box<Footer>>),
    /// There is none.
    NoLog,
}

enum Look {
    Over(State, Option<Box<Footer>>),
    Stopping,
    Silent,
}

fn ends_in_newline(file: &std::fs::File) -> bool {
    use std::os::unix::fs::FileExt;
    let size = file.metadata().map_or(0, |m| m.len());
    let mut last = [b'\n'];
    size == 0 || file.read_at(&mut last, size - 1).is_err() || last == *b"\n"
}

fn write_footer(
    log: &LogFile,
    mut file: &std::fs::File,
    header: &contract::Header,
    survivors: Vec<contract::Leftover>,
    signal: &str,
) -> Result<()> {
    let mut footer = Footer {
        v: VERSION,
        job: header.job.clone(),
        outcome: Outcome::Killed,
        exit_code: None,
        signal: None,
        reason: Some(Reason::Kill),
        finished_at: Some(rfc3339(now())),
        elapsed_seconds: header
            .started_at
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|t| now().duration_since(t).as_secs_f64().max(0.0)),
        cpu_seconds: None,
        max_rss_kb: None,
        leaked: vec![],
        nested: vec![],
        survivors,
        truncated: log.header_len == 0,
        added_newline: false,
        overwrote: None,
        stopped_with: Some(signal.to_owned()),
        header: header.into(),
    };
    footer.added_newline = !ends_in_newline(file);
    file.write_all(&footer.lines()).map_err(|e| Failure::cannot("write the log's footer", e))
}

/// A run that somebody else started and whose PID file was honoured: its tree is found by its own session, group
/// and descendants.
fn stop_foreign(dir: &RunDir, here: &Here, job: &Job, signal: i32, grace: Duration) -> Result<Stopped> {
    let name = &job.name;
    let over = || Stopped::AlreadyOver(State { status: contract::Status::Finished, ..job.state });
    let Some((file, pid)) = job.pid_file.as_ref().and_then(|f| f.pid().map(|pid| (f, pid))) else {
        return Ok(over());
    };
    // Who bears the number now is settled first; what is looked at afterwards counts only if it still does.
    let Some(stat) = process::read_stat(pid).filter(process::Stat::is_alive) else { return Ok(over()) };
    let leader = Ident { pid, start: stat.start };
    if !contract::is_meant(file, job.log.as_ref(), &stat) {
        return Ok(over());
    }
    if process::self_and_ancestors().contains(&pid) {
        return Err(Failure::usage(
            format!("stop {name}"),
            format!("PID {pid} is this command's own ancestor"),
        )
        .hint("the PID file names who called this: stop that from outside"));
    }
    if let Some(why) = refusal_to_signal(dir, job) {
        return Err(Failure::cannot(
            format!("stop {name}"),
            format!("PID {pid} is not known to be that run: {why}"),
        )
        .hint(format!("kill it yourself: {pid}, {}", process::command_line(pid)))
        .code(Code::Survivors));
    }
    if !leader.is_alive() {
        return Ok(over());
    }
    let never = process::self_and_ancestors();
    let grace_over = Instant::now() + grace;
    let give_up = grace_over + BOUND;
    let (mut hard, mut empty, mut most) = (false, 0, 0);
    let mut ours: Vec<Ident> = vec![leader];
    let mut signalled: Vec<Ident> = vec![];
    loop {
        let all = Snapshot::take().map_err(|e| Failure::cannot("read /proc", e))?;
        // Descendants are remembered: when their parent dies, the link is gone.
        for known in ours.clone() {
            if all.find(known).is_some() {
                for row in all.descendants(known.pid) {
                    let ident = Ident { pid: row.pid, start: row.start };
                    if !ours.contains(&ident) && !never.contains(&row.pid) {
                        ours.push(ident);
                    }
                }
            }
        }
        let living: Vec<Ident> =
            ours.iter().copied().filter(|i| all.find(*i).is_some_and(process::Stat::is_alive)).collect();
        most = most.max(living.len());
        empty = if living.is_empty() { empty + 1 } else { 0 };
        if empty == 2 {
            break;
        }
        if Instant::now() >= give_up {
            let named = living
                .iter()
                .map(|i| format!("{} {}: still alive after KILL", i.pid, process::command_line(i.pid)));
            return Ok(Stopped::Survivors(named.collect()));
        }
        hard |= Instant::now() >= grace_over;
        for &ident in &living {
            if hard || !signalled.contains(&ident) {
                signalled.push(ident);
                if let Ok(Some(handle)) = Handle::open(ident) {
                    let _ = handle.signal(if hard { libc::SIGKILL } else { signal });
                    let _ = handle.signal(libc::SIGCONT);
                }
            }
        }
        if let Some(handle) = living.first().and_then(|&i| Handle::open(i).ok().flatten()) {
            sleep_on(&[handle.fd()], Some(LOOK));
        }
    }
    let name = Name::parse(std::ffi::OsStr::new(name)).map_err(|e| Failure::cannot("read the name", e))?;
    let state = contract::find(dir, here, &name)?.map_or(job.state, |j| j.state);
    let signal = crate::sys::signal_name(if hard { libc::SIGKILL } else { signal });
    Ok(Stopped::Now { state, pid, processes: most, signal, unsupervised: true })
}

/// Wakes when something in the run directory changes.
struct Watch<'a> {
    dir: &'a RunDir,
    /// The watch, once there is one.
    fd: OnceCell<Option<OwnedFd>>,
}

impl Watch<'_> {
    fn new(dir: &RunDir) -> Watch<'_> {
        Watch { dir, fd: OnceCell::new() }
    }

    /// Sleeps until something changes; for a first moment, until that process ends.
    fn wait(&self, first: Option<&Handle>, at_most: Duration) {
        if let Some(handle) = first {
            return sleep_on(&[handle.fd()], Some(MOMENT));
        }
        let Some(set) = self.fd.get() else {
            // What changed before is not announced: the caller looks once more.
            self.fd.get_or_init(|| self.set());
            return;
        };
        let Some(fd) = set else {
            return sleep_on(&[], Some(at_most));
        };
        sleep_on(&[fd.as_fd()], Some(at_most));
        let mut buffer = [0u8; 4096];
        while rustix::io::read(fd, &mut buffer).is_ok_and(|n| n > 0) {}
    }

    fn set(&self) -> Option<OwnedFd> {
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok()?;
        let what = inotify::WatchFlags::MODIFY | inotify::WatchFlags::DELETE | inotify::WatchFlags::MOVED_TO;
        inotify::add_watch(&fd, self.dir.absolute(), what).ok()?;
        Some(fd)
    }
}
