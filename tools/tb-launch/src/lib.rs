//! `tb-launch`: start a job in the background.

mod attached;
pub mod cli;
mod command;
mod environment;
mod python;

use cli::Cli;
use std::ffi::OsString;
use tb_shared::contract::{DirLock, Job, LogName, Name, RunDir, Stem, find, list, read_pid_file};
use tb_shared::process::Here;
use tb_shared::report::{Depth, Report};
use tb_shared::supervise::{self, Launched, Plan, Policy, Spare};
use tb_shared::term::{self, Code, Context, Failure, Out, Result, quoted};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the job from being launched, as a message for a person; then nothing was launched.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    // Everything that can be refused without a trace is refused before the first file is made.
    let settings = Settings::of(&cli)?;
    let path = RunDir::resolve(cli.common.log_dir.as_deref());
    let path = std::path::absolute(&path)
        .map(|absolute| if cli.cwd.is_some() { absolute } else { path })
        .map_err(|e| Failure::cannot("find the run directory", e))?;
    if let Some(dir) = &cli.cwd {
        std::env::set_current_dir(dir)
            .map_err(|e| Failure::usage(format!("change to {}", dir.display()), e))?;
    }
    let command = command::Command::of(&cli)?;
    let dir = RunDir::create(&path)?;
    let here = Here::read();
    let nesting = supervise::nesting();
    let mut lock = DirLock::take(&dir)?;
    lock.check_that_locks_work(&dir)?;
    let name = match settings.name.clone().or(command.name.clone()) {
        Some(name) => name,
        None => next_handle(&dir, &mut lock)?,
    };
    let (stem, newest) = free_stem(&dir, &here, &name, &settings)?;
    let policy = Policy { grace: settings.grace, leaks: cli.leaks, allow_empty: cli.allow_empty };
    let plan = Plan {
        dir: RunDir::create(&path)?,
        name: name.clone(),
        stem,
        newest,
        owner: settings.owner.clone(),
        command: command.argv,
        environment: environment::of(&cli)?,
        keep_fds: if cli.jobserver { environment::jobserver_fds() } else { vec![] },
        nested_in: nesting.outer.clone(),
        policy,
        spare: settings.spare,
        limit: cli.limit,
        shared: cli.shared,
    };
    let launched = supervise::launch(plan, &lock, &here)?;
    drop(lock);
    let context = Context {
        path: path.clone(),
        dir: Some(dir),
        scope: tb_shared::contract::Scope { owner: settings.owner.clone(), all: cli.common.all_owners },
        here,
    };
    tell(&cli, &context, &name, &launched)?;
    if let Some(outer) = &nesting.outer {
        term::say("tb-launch", &format!("{name} runs inside {outer} and ends with it"));
    }
    if cli.wait {
        attached::wait(&cli, &context, &name, &settings.waiting)
    } else if cli.foreground {
        attached::foreground(&cli, &context, &name, &settings.waiting)
    } else {
        Ok(Code::Ok)
    }
}

/// What the options say, checked.
struct Settings {
    name: Option<Name>,
    owner: Option<String>,
    grace: std::time::Duration,
    spare: Option<Spare>,
    waiting: attached::Waiting,
}

impl Settings {
    fn of(cli: &Cli) -> Result<Settings> {
        let name = cli.name.as_deref().map(Name::parse).transpose();
        let name = name.map_err(|why| Failure::usage("use --name", why))?;
        if let Some(name) = name.as_ref().filter(|n| n.is_handle()) {
            return Err(Failure::usage(
                format!("use --name {name}"),
                "names of this form are given by tb-launch itself",
            )
            .hint("leave out --name, or choose another"));
        }
        if cli.jobserver && !(cli.wait || cli.foreground) {
            return Err(Failure::usage("use --jobserver", "it goes with --wait or --foreground")
                .hint("a job that outlives its recipe would keep make's tokens"));
        }
        let spare = match &cli.keep {
            None => None,
            Some(pattern) => {
                let regex = regex::Regex::new(pattern).map_err(|e| Failure::usage("use --keep", e))?;
                Some(Box::new(move |command: &str| regex.is_match(command)) as Spare)
            }
        };
        let grace = term::kill_grace(cli.grace)?;
        Ok(Settings {
            name,
            owner: term::owner(cli.common.owner.as_deref())?,
            grace,
            spare,
            waiting: attached::Waiting {
                timeout: term::wait_timeout(cli.timeout)?,
                heartbeat: term::heartbeat(None)?,
                grace,
            },
        })
    }
}

/// The next automatic handle; one that somebody's file already bears is passed over.
fn next_handle(dir: &RunDir, lock: &mut DirLock) -> Result<Name> {
    let taken = dir.entries()?;
    loop {
        let number = lock.next_number().map_err(|e| Failure::cannot("write the last job number", e))?;
        let name = Name::handle(number);
        let stem = name.plain_stem();
        let is_taken = taken.iter().any(|entry| match entry {
            tb_shared::contract::DirEntry::Pid(found) => Some(found) == stem.as_ref(),
            tb_shared::contract::DirEntry::Log(log) => Some(&log.stem) == stem.as_ref(),
            _ => false,
        });
        if !is_taken {
            return Ok(name);
        }
    }
}

/// The stem that the name gets, and its newest log; refused while the name runs.
fn free_stem(dir: &RunDir, here: &Here, name: &Name, settings: &Settings) -> Result<(Stem, Option<LogName>)> {
    if let Some(job) = find(dir, here, name)?
        && (job.state.is_running() || job.state.elsewhere)
    {
        return Err(already_running(&job, name, settings));
    }
    // The plain stem, unless its files belong, by their header, to another name.
    let hashed = name.hashed_stem();
    let stem = match name.plain_stem() {
        None => hashed,
        Some(plain) => {
            let other = list_stem(dir, here, &plain)?
                .is_some_and(|job| job.header().is_some_and(|h| h.name != name.as_str()));
            if other { hashed } else { plain }
        }
    };
    // What is no plain file in the PID file's place is named here, before anything is made.
    read_pid_file(dir, &stem)?;
    let newest = dir
        .entries()?
        .into_iter()
        .filter_map(|entry| match entry {
            tb_shared::contract::DirEntry::Log(log) if log.stem == stem => Some(log),
            _ => None,
        })
        .max_by(|a, b| a.order().cmp(&b.order()));
    Ok((stem, newest))
}

/// The job whose files have this stem, whatever its name.
fn list_stem(dir: &RunDir, here: &Here, stem: &Stem) -> Result<Option<Job>> {
    Ok(list(dir, here)?.jobs.into_iter().find(|job| job.stem == *stem))
}

fn already_running(job: &Job, name: &Name, settings: &Settings) -> Failure {
    let pid = job.pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    if job.state.elsewhere {
        let host = job.header().map(|h| h.host.clone()).unwrap_or_default();
        return Failure::new(
            Code::Running,
            format!("cannot launch {name}: recorded as running on {host}, which alone can tell"),
        )
        .hint(format!("look there, or forget it: tb-clean {}", quoted(name.as_str())));
    }
    if job.owner() != settings.owner.as_deref() {
        return Failure::new(
            Code::Running,
            format!("cannot launch {name}: already running [PID: {pid}], held by another owner"),
        )
        .hint("use another --name");
    }
    let word = quoted(name.as_str());
    Failure::new(Code::Running, format!("cannot launch {name}: already running [PID: {pid}]"))
        .hint(format!("wait for it:  tb-wait {word}"))
        .hint(format!("stop it:      tb-kill {word}"))
}

/// Two lines for people, or tb-status's object.
fn tell(cli: &Cli, context: &Context, name: &Name, launched: &Launched) -> Result<()> {
    let mut out = Out::new(cli.common.color);
    let log = context.path.join(launched.log.file());
    if cli.common.json {
        let Some(dir) = &context.dir else { return Ok(()) };
        let all = Context {
            scope: tb_shared::contract::Scope { owner: None, all: true },
            path: context.path.clone(),
            dir: None,
            here: context.here.clone(),
        };
        let job = find(dir, &all.here, name)?.ok_or_else(|| context.not_tracked(name))?;
        out.json(&Report::of(dir, &context.here, &job, Depth { lines: 15, processes: true })?)?;
    } else {
        let shown = out.safe(name.as_str()).into_owned();
        out.line(&format!("Launched {shown} [PID: {}]", launched.pid))?;
        out.line(&format!("Log: {}", log.display()))?;
    }
    out.flush()
}
