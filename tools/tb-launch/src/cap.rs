//! The cap on live jobs: refused, or waited for in order of arrival.

use crate::cli::Cli;
use std::time::{Duration, Instant};
use tb_shared::contract::{DirLock, Job, Name, RunDir, Scope, Ticket, is_waited, list};
use tb_shared::process::Here;
use tb_shared::supervise::{Nesting, contains_caller};
use tb_shared::term::{Code, Context, Failure, Result, quoted};
use tb_shared::wait::{Ending, Wait};

/// What a launch may not exceed, and how patient it is.
pub(crate) struct Cap {
    max: Option<u64>,
    queue: bool,
    timeout: Duration,
    scope: Scope,
    /// What leads another tool to the same place, to be put before a name.
    place: String,
}

impl Cap {
    /// What the flag, or TB_MAX_LIVE, says.
    pub(crate) fn of(cli: &Cli, timeout: Duration, owner: Option<String>, place: String) -> Result<Cap> {
        let max = match (cli.max_live, std::env::var_os("TB_MAX_LIVE")) {
            (Some(max), _) => Some(max),
            (None, Some(text)) if !text.is_empty() => {
                let text = text.to_string_lossy();
                let number = text.trim().parse::<u64>().ok().filter(|&n| n > 0);
                Some(number.ok_or_else(|| {
                    Failure::usage("use TB_MAX_LIVE", format!("'{text}' is no number of jobs, 1 or more"))
                })?)
            }
            _ => None,
        };
        let scope = Scope { owner, all: cli.common.all_owners };
        Ok(Cap { max, queue: cli.queue, timeout, scope, place })
    }

    /// Lets the launch pass, with the lock and the place that it had to wait for, or refuses it. The lock is held
    /// whenever the jobs are counted, until the job is published: of any number of launches at an instant no more
    /// pass than there are places.
    pub(crate) fn pass(
        &self,
        dir: &RunDir,
        here: &Here,
        nesting: &Nesting,
        mut lock: DirLock,
    ) -> Result<(DirLock, Option<Ticket>)> {
        let Some(max) = self.max else { return Ok((lock, None)) };
        let live = live(dir, here, nesting)?;
        let full = live.len() as u64 >= max;
        if !self.queue {
            return if full { Err(self.refusal(max, &live)) } else { Ok((lock, None)) };
        }
        if !full && !is_waited(dir, &lock)? {
            return Ok((lock, None));
        }
        let deadline = Instant::now().checked_add(self.timeout);
        let ticket = Ticket::take(dir, &lock)?;
        loop {
            let before = ticket.before()?;
            let live = self::live(dir, here, nesting)?;
            if before.is_none() && (live.len() as u64) < max {
                return Ok((lock, Some(ticket)));
            }
            drop(lock);
            let in_time = match before {
                Some(other) => ticket.await_end_of(other, deadline)?,
                None => await_one(dir, here, &live, deadline)?,
            };
            if !in_time {
                return Err(self.refusal(max, &live).code(Code::TimeUp));
            }
            lock = DirLock::take(dir)?;
        }
    }

    fn refusal(&self, max: u64, live: &[Job]) -> Failure {
        let (mine, others): (Vec<&Job>, Vec<&Job>) =
            live.iter().partition(|job| self.scope.sees(job.owner()));
        let jobs = if live.len() == 1 { "job runs" } else { "jobs run" };
        let mut failure = Failure::new(
            Code::Refused,
            format!("cannot launch: {} {jobs} here, and no more than {max} may", live.len()),
        );
        for job in mine {
            failure = failure.hint(format!("tb-kill {}{}", self.place, quoted(&job.name)));
        }
        if !others.is_empty() {
            failure = failure.hint(format!("and {} of other owners", others.len()));
        }
        if self.queue {
            failure.hint("nothing was launched")
        } else {
            failure.hint("or wait for a place: --queue")
        }
    }
}

/// The jobs that count: every one that runs here, but for those that this launch is part of.
fn live(dir: &RunDir, here: &Here, nesting: &Nesting) -> Result<Vec<Job>> {
    let mut listing = list(dir, here)?;
    listing.jobs.retain(|job| job.state.is_running() && !contains_caller(job, &nesting.line));
    Ok(listing.jobs)
}

/// How often jobs are looked at that cannot be waited for by name.
const LOOK: Duration = Duration::from_secs(1);

/// Sleeps until one of these jobs ends. False when the time was up.
fn await_one(dir: &RunDir, here: &Here, live: &[Job], deadline: Option<Instant>) -> Result<bool> {
    let own = dir.duplicate().map_err(|e| Failure::cannot("wait for a place", e))?;
    let context = Context {
        path: dir.path().to_owned(),
        dir: Some(own),
        scope: Scope { owner: None, all: true },
        here: here.clone(),
    };
    let mut names = Vec::new();
    for job in live {
        // A foreign PID file may be called what no name leads to.
        if let Ok(name) = Name::parse(job.name.as_ref())
            && context.find(&name)?.is_some()
        {
            names.push(name);
        }
    }
    let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
    let is_time_up = || deadline.is_some_and(|d| d <= Instant::now());
    let all = names.len() == live.len();
    let timeout = if all { left } else { Some(left.map_or(LOOK, |l| l.min(LOOK))) };
    if names.is_empty() {
        std::thread::sleep(timeout.unwrap_or(LOOK));
        return Ok(!is_time_up());
    }
    let wait = Wait {
        tool: "tb-launch",
        context: &context,
        any: true,
        timeout,
        heartbeat: Duration::ZERO,
        interrupt: None,
        show: None,
    };
    match wait.run(&names, |_, _| Ok(())) {
        Ok((Ending::TimeUp, _)) => Ok(!is_time_up()),
        Ok(_) => Ok(true),
        // A job that was there is gone with its files: that too is a place.
        Err(failure) if failure.code == Code::NotTracked => Ok(true),
        Err(failure) => Err(failure),
    }
}
