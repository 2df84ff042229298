//! Waiting until jobs end, woken by the kernel: pidfds of leaders and supervisors while they live, inotify on the
//! log between a leader's end and its record. Every wake reads the state anew.

use crate::contract::{Job, Name, RunDir};
use crate::poll::timespec;
use crate::process::{Handle, Here, Ident};
use crate::report::{Depth, Report};
use crate::supervise;
use crate::term::{Code, Context, Failure, Out, Result, human_duration, say, say_plain};
use jiff::{Timestamp, tz::TimeZone};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How often a job is looked at whose end no descriptor here announces: one of another namespace or machine.
const LOOK: Duration = Duration::from_secs(1);
/// How long the monitor's own end is waited for, which follows the record: a descriptor that watches files is not free,
/// since the kernel takes some 10 ms to take it away.
const MOMENT: Duration = Duration::from_millis(25);
/// How many descriptors a wait leaves for the files of the jobs that it looks at.
const SPARE: u64 = 12;

/// What a wait is to do.
pub struct Wait<'a> {
    /// The tool's name, for lines to people.
    pub tool: &'static str,
    /// Where.
    pub context: &'a Context,
    /// End with the first job that ends.
    pub any: bool,
    /// How long at most; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// Between heartbeat lines; zero is none.
    pub heartbeat: Duration,
    /// A descriptor that ends the wait when it becomes readable (Ctrl-C).
    pub interrupt: Option<BorrowedFd<'a>>,
    /// Takes the heartbeats in place of the lines on standard error.
    pub show: Option<&'a dyn Show>,
}

/// What shows jobs on a terminal while they are waited for.
pub trait Show {
    /// A job that still runs, so long after its start.
    fn beat(&self, name: &Name, report: &Report, elapsed: Duration);
    /// Has a line written where it does not run into what is shown.
    fn aside(&self, write: &mut dyn FnMut());
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The jobs that were waited for are over.
    Over,
    /// The time was up.
    TimeUp,
    /// Somebody interrupted.
    Interrupted,
}

struct Pending {
    name: Name,
    /// The job that was found at first: a later run of the name is another.
    id: Option<String>,
    handles: Vec<Handle>,
    /// The leader's number among them.
    leader: Option<i32>,
    watched: bool,
    /// When it was seen that the leader had ended and the record was not there yet.
    leader_gone: Option<Instant>,
    said_unsupervised: bool,
    started: Instant,
}

impl Pending {
    /// Whether nothing has happened but the leader's end, just now. Its monitor has been woken by that too, and a look
    /// would only take the CPU that it needs for the record, which there is nothing to be read before.
    fn is_left_to_its_monitor(&mut self) -> bool {
        let Some(at) = self.handles.iter().position(|h| Some(h.ident().pid) == self.leader) else {
            return false;
        };
        let left = self.leader_gone.is_none()
            && self.handles.len() > 1
            && self.handles.iter().enumerate().all(|(i, handle)| handle.has_ended() == (i == at));
        if left {
            self.handles.remove(at);
            self.leader_gone = Some(Instant::now());
        }
        left
    }
}

impl Wait<'_> {
    /// Waits for jobs that were found tracked, telling each that ends. Returns why it stopped, and the names of those
    /// that still run.
    ///
    /// # Errors
    /// When a job's files cannot be read, or `over` fails.
    pub fn run(
        &self,
        names: &[Name],
        mut over: impl FnMut(&Report, &Job) -> Result<()>,
    ) -> Result<(Ending, Vec<Name>)> {
        let begun = Instant::now();
        let deadline = self.timeout.and_then(|t| begun.checked_add(t));
        let mut beat = (!self.heartbeat.is_zero()).then(|| begun + self.heartbeat);
        let mut inotify: Option<OwnedFd> = None;
        let mut pending: Vec<Pending> = Vec::new();
        for name in names {
            if !pending.iter().any(|p| p.name == *name) {
                pending.push(Pending {
                    name: name.clone(),
                    id: None,
                    handles: vec![],
                    leader: None,
                    watched: false,
                    leader_gone: None,
                    said_unsupervised: false,
                    started: begun,
                });
            }
        }
        loop {
            let mut again = false;
            let mut ended = false;
            let mut still = Vec::new();
            for mut job in pending {
                if job.is_left_to_its_monitor() {
                    still.push(job);
                } else if self.look(&mut job, &mut inotify, &mut again, &mut over)? {
                    ended = true;
                } else {
                    still.push(job);
                }
            }
            pending = still;
            let left = |pending: &[Pending]| pending.iter().map(|p| p.name.clone()).collect();
            if pending.is_empty() || (self.any && ended) {
                return Ok((Ending::Over, left(&pending)));
            }
            if again {
                // A watch was set or a process had gone: what happened before that is not announced again.
                continue;
            }
            let now = Instant::now();
            if deadline.is_some_and(|d| d <= now) {
                return Ok((Ending::TimeUp, left(&pending)));
            }
            if beat.is_some_and(|b| b <= now) {
                self.heartbeat(&pending)?;
                beat = Some(now + self.heartbeat);
            }
            if self.sleep(&pending, inotify.as_ref(), deadline, beat) {
                return Ok((Ending::Interrupted, left(&pending)));
            }
        }
    }

    /// Reads a job's state. True when it is over (and was told).
    fn look(
        &self,
        job: &mut Pending,
        inotify: &mut Option<OwnedFd>,
        again: &mut bool,
        over: &mut impl FnMut(&Report, &Job) -> Result<()>,
    ) -> Result<bool> {
        let Some(dir) = &self.context.dir else { return Err(self.context.not_tracked(&job.name)) };
        let supervised = job.handles.iter().any(|h| !h.has_ended());
        let found = match self.context.find(&job.name)? {
            Some(found) => found,
            // Its files were deleted under it; those who will write its end again still live.
            None if supervised => {
                job.handles.retain(|h| !h.has_ended());
                return Ok(false);
            }
            None => return Err(self.context.not_tracked(&job.name)),
        };
        let id = found.header().map(|h| h.job.clone());
        // Somebody else's run under a PID file that was written over is another one, too.
        let another = job.id.is_some() && (found.is_foreign() || (id.is_some() && job.id != id));
        if another && supervised {
            job.handles.retain(|h| !h.has_ended());
            return Ok(false);
        }
        if job.id.is_none() {
            job.id = id;
        }
        if !found.state.is_running() || another {
            // A new run of the name is no longer the one that was waited for; its log tells how that ended.
            let found =
                if another { earlier(dir, &self.context.here, &found, job)?.unwrap_or(found) } else { found };
            let report = Report::of(dir, &self.context.here, &found, Depth { lines: 0, processes: false })?;
            over(&report, &found)?;
            return Ok(true);
        }
        job.started = Instant::now() - elapsed(&found);
        if found.state.unsupervised && !job.said_unsupervised {
            job.said_unsupervised = true;
            let text = format!(
                "{} runs unsupervised: its supervisors were killed; how it ends will not be known",
                job.name
            );
            match self.show {
                Some(show) => show.aside(&mut || say(self.tool, &text)),
                None => say(self.tool, &text),
            }
        }
        let before = job.handles.len();
        job.handles.retain(|h| !h.has_ended());
        let has_waited = job.leader_gone.is_some_and(|gone| !job.watched && gone.elapsed() >= MOMENT);
        if job.handles.len() != before || (job.handles.is_empty() && !job.watched) || has_waited {
            let had = job.handles.len();
            job.handles.clear();
            job.leader = found.pid();
            for ident in announcers(&found) {
                let handle = Handle::open(ident).ok().flatten();
                job.handles.extend(handle.filter(|h| !h.has_ended() && spares_enough(h)));
            }
            *again |= before == 0 && !job.handles.is_empty();
            let leader_lives =
                found.pid().is_some_and(|pid| job.handles.iter().any(|h| h.ident().pid == pid));
            if leader_lives && had >= before {
                return Ok(false);
            }
            let gone = *job.leader_gone.get_or_insert_with(Instant::now);
            let may_announce = !job.handles.is_empty() && gone.elapsed() < MOMENT;
            if !may_announce && !job.watched {
                // Between its leader's end and its record a job announces itself by its log alone.
                job.watched = true;
                *again = true;
                watch(inotify, dir, &found);
            }
        }
        Ok(false)
    }

    /// Sleeps until something may have changed. True when the wait was interrupted.
    fn sleep(
        &self,
        pending: &[Pending],
        inotify: Option<&OwnedFd>,
        deadline: Option<Instant>,
        beat: Option<Instant>,
    ) -> bool {
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let interrupt = self.interrupt;
        if let Some(fd) = &interrupt {
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        if let Some(fd) = inotify {
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        let handles: Vec<BorrowedFd<'_>> = pending.iter().flat_map(|p| &p.handles).map(Handle::fd).collect();
        fds.extend(handles.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let mut until = deadline.into_iter().chain(beat).min();
        let moments = pending.iter().filter(|p| !p.watched).filter_map(|p| p.leader_gone);
        until = until.into_iter().chain(moments.map(|gone| gone + MOMENT)).min();
        if pending.iter().any(|p| p.watched || p.handles.is_empty()) {
            let look = Instant::now() + LOOK;
            until = Some(until.map_or(look, |u| u.min(look)));
        }
        let timeout = until.map(|u| timespec(u.saturating_duration_since(Instant::now())));
        // EINTR is as good a reason to look again as any.
        let _ = poll(&mut fds, timeout.as_ref());
        let interrupted =
            interrupt.is_some() && fds.first().is_some_and(|f| f.revents().contains(PollFlags::IN));
        if let Some(fd) = inotify {
            let mut buffer = [0u8; 4096];
            while rustix::io::read(fd.as_fd(), &mut buffer).is_ok_and(|n| n > 0) {}
        }
        interrupted
    }

    fn heartbeat(&self, pending: &[Pending]) -> Result<()> {
        let clock = Timestamp::now().to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string();
        let Some(dir) = &self.context.dir else { return Ok(()) };
        for job in pending {
            let Some(found) = self.context.find(&job.name)? else { continue };
            let report = Report::of(dir, &self.context.here, &found, Depth { lines: 15, processes: false })?;
            if let Some(show) = self.show {
                show.beat(&job.name, &report, job.started.elapsed());
                continue;
            }
            let elapsed = job.started.elapsed().as_secs();
            let outlook = report.outlook().map(|o| format!(", {o}")).unwrap_or_default();
            say_plain(&format!(
                "[{clock}] {}: {} [{elapsed}s elapsed]{outlook}",
                job.name,
                report.headline()
            ));
        }
        Ok(())
    }
}

/// The processes whose end may be the job's: its supervisors and its leader.
pub(crate) fn announcers(job: &Job) -> Vec<Ident> {
    let mut idents = supervise::supervisors(job);
    if !job.is_foreign() {
        idents.extend(job.leader());
    } else if let Some(pid) = job.pid() {
        idents.extend(crate::process::read_stat(pid).map(|s| Ident { pid, start: s.start }));
    }
    idents
}

/// Whether enough descriptors are left to read jobs with, once this one is kept: who waits for many jobs at once may
/// have fewer than one for each of their processes. A job without a handle is watched by its log.
fn spares_enough(handle: &Handle) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    // The kernel gives the lowest number that is free.
    let number = u64::try_from(handle.fd().as_raw_fd()).unwrap_or(0);
    limit.is_none_or(|limit| number + SPARE < limit)
}

/// Has the kernel say when a job's log or its directory changes.
fn watch(inotify: &mut Option<OwnedFd>, dir: &RunDir, job: &Job) {
    use inotify::{CreateFlags, WatchFlags};
    let Some(fd) =
        inotify.take().or_else(|| inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok())
    else {
        // Then the job is looked at once a second.
        return;
    };
    if let Some(log) = &job.log {
        let path = dir.absolute().join(log.name.file());
        let _ = inotify::add_watch(&fd, path, WatchFlags::MODIFY | WatchFlags::DELETE_SELF);
    }
    let changes = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO;
    let _ = inotify::add_watch(&fd, dir.absolute(), changes);
    *inotify = Some(fd);
}

fn elapsed(job: &Job) -> Duration {
    let started = job.header().and_then(|h| h.started_at.parse::<Timestamp>().ok());
    started.and_then(|t| Duration::try_from(Timestamp::now().duration_since(t)).ok()).unwrap_or_default()
}

/// The run that was waited for, from its own log, where a newer run has taken the name meanwhile.
fn earlier(dir: &RunDir, here: &Here, newer: &Job, waited: &Pending) -> Result<Option<Job>> {
    let Some(id) = &waited.id else { return Ok(None) };
    for name in &newer.logs {
        if let Some(log) = crate::contract::read_log(dir, name)?
            && log.job() == Some(id)
        {
            return Ok(crate::contract::of_log(here, log));
        }
    }
    Err(Failure::cannot(format!("wait for {}", waited.name), "a newer run took its name and its log is gone")
        .code(crate::term::Code::NoVerdict))
}

/// Signals that end a wait (Ctrl-C) instead of the process, readable from a descriptor.
pub struct Interrupt {
    read: std::os::unix::net::UnixStream,
    ids: Vec<signal_hook::SigId>,
}

impl Interrupt {
    /// Hears Ctrl-C from now on.
    ///
    /// # Errors
    /// When it cannot be heard.
    pub fn ctrl_c() -> Result<Interrupt> {
        Interrupt::on(&[libc::SIGINT])
    }

    /// Hears these signals from now on.
    ///
    /// # Errors
    /// When they cannot be heard.
    pub fn on(signals: &[i32]) -> Result<Interrupt> {
        let doing = "listen for Ctrl-C";
        let (read, write) = std::os::unix::net::UnixStream::pair().map_err(|e| Failure::cannot(doing, e))?;
        let mut ids = Vec::new();
        for &signal in signals {
            let write = write.try_clone().map_err(|e| Failure::cannot(doing, e))?;
            ids.push(
                signal_hook::low_level::pipe::register(signal, write)
                    .map_err(|e| Failure::cannot(doing, e))?,
            );
        }
        Ok(Interrupt { read, ids })
    }

    /// Readable once a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// One line (or object) for a job that has ended.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_result(out: &mut Out, report: &Report, json: bool) -> Result<()> {
    if json {
        out.json(report)?;
    } else {
        let name = out.safe(&report.name).into_owned();
        let headline = out.paint(report.colour(), &report.headline());
        let remark = report.remark();
        let line = format!("{name}: {headline} {remark}");
        out.line(line.trim_end())?;
    }
    out.flush()
}

/// What is said, and done if a grace is given, when the time is up: the codes that follow.
pub fn time_up(
    tool: &'static str,
    context: &Context,
    left: &[Name],
    timeout: Duration,
    kill: Option<Duration>,
) -> Vec<Code> {
    let mut codes = vec![Code::TimeUp];
    let after = |name: &str| format!("{name} still runs after {}", human_duration(timeout));
    let (Some(grace), Some(dir)) = (kill, &context.dir) else {
        left.iter().for_each(|name| say(tool, &format!("{}; it goes on", after(name.as_str()))));
        return codes;
    };
    let mut jobs = Vec::new();
    for name in left {
        match context.need(name) {
            Ok(job) => jobs.push(job),
            Err(failure) => {
                failure.print(tool);
                codes.push(failure.code);
            }
        }
    }
    let jobs: Vec<&Job> = jobs.iter().collect();
    let told = supervise::stop_all(dir, &context.here, &jobs, libc::SIGTERM, grace, tool, |job, stopped| {
        let after = after(&job.name);
        match stopped {
            Ok(supervise::Stopped::Survivors(list)) => {
                let what = format!("{after}; cannot stop all of it: {}", list.join("; "));
                Failure::new(Code::Survivors, what).print(tool);
                codes.push(Code::Survivors);
            }
            Ok(_) => say(tool, &format!("{after}; stopped")),
            Err(failure) => {
                failure.print(tool);
                codes.push(failure.code);
            }
        }
        Ok(())
    });
    if let Err(failure) = told {
        codes.push(failure.code);
    }
    codes
}
