//! `tb-launch`: start a job in the background.

mod attached;
mod cap;
pub mod cli;
mod command;
mod environment;
mod python;

use cli::Cli;
use std::ffi::OsString;
use tb_shared::contract::{DirLock, Job, Name, RunDir, Scope, Stem, Survey, find, survey};
use tb_shared::process::Here;
use tb_shared::report::{Depth, Report};
use tb_shared::supervise::{self, CaptureWish, Hook, Launched, Plan, Policy, Spare, StallLimits};
use tb_shared::sys;
use tb_shared::term::{self, Code, Context, Failure, Out, Result, quoted};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the job from being launched, as a message for a person; then nothing was launched.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    // A file size limit is an error that is told, not a signal; the job gets its default disposition back.
    sys::ignore_file_size_signal();
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
    let environment = environment::of(&cli)?;
    if cli.sweep {
        tb_shared::sweep::before_a_run("tb-launch", settings.grace)?;
    }
    let dir = RunDir::create(&path)?;
    let here = Here::read();
    let nesting = supervise::nesting();
    let mut lock = DirLock::take(&dir)?;
    lock.check_that_locks_work(&dir)?;
    let chosen = settings.name.clone().or(command.name.clone());
    if let Some(name) = chosen.clone().filter(|_| cli.queue) {
        // A name that runs is refused at once, not after a wait.
        place(&dir, &here, &mut lock, Some(name), &settings)?;
    }
    let (mut lock, ticket) = settings.cap.pass(&dir, &here, &nesting, lock)?;
    let (name, stem, survey) = place(&dir, &here, &mut lock, chosen, &settings)?;
    let policy =
        Policy { grace: settings.grace, leaks: cli.leaks, allow_empty: cli.allow_empty, dump: cli.dump };
    let plan = Plan {
        name: name.clone(),
        newest: survey.newest(&stem),
        stem,
        owner: settings.owner.clone(),
        command: command.argv,
        hook: cli.on_exit.clone().map(|command| Hook {
            command,
            environment: environment.clone(),
            cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
        }),
        environment,
        keep_fds: if cli.jobserver { environment::jobserver_fds() } else { vec![] },
        nested_in: nesting.outer.clone(),
        policy,
        spare: settings.spare,
        limit: cli.limit,
        stall: StallLimits { any: cli.stall, output: None },
        capture: CaptureWish { tag_stderr: cli.tag_stderr, pty: cli.pty },
        max_log: cli.max_log,
        shared: cli.shared,
    };
    let interrupt = attached::interrupt(&cli)?;
    let launched = supervise::launch(&dir, &survey, plan, &lock, &here)?;
    drop((lock, ticket));
    let context = Context {
        path: path.clone(),
        dir: Some(dir),
        scope: Scope { owner: settings.owner.clone(), all: cli.common.all_owners },
        here,
    };
    tell(&cli, &context, &name, &launched)?;
    if let Some(outer) = &nesting.outer {
        term::say("tb-launch", &format!("{name} runs inside {outer} and ends with it"));
    }
    match &interrupt {
        Some(interrupt) if cli.foreground => {
            attached::foreground(&cli, &context, &name, &settings.waiting, interrupt)
        }
        Some(interrupt) => attached::wait(&cli, &context, &name, &settings.waiting, interrupt),
        None => Ok(Code::Ok),
    }
}

/// What the options say, checked.
struct Settings {
    name: Option<Name>,
    owner: Option<String>,
    grace: std::time::Duration,
    spare: Option<Spare>,
    waiting: attached::Waiting,
    cap: cap::Cap,
    /// What leads another tool to the same place, to be put before a name.
    place: String,
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
        let owner = term::owner(cli.common.owner.as_deref())?;
        let timeout = term::wait_timeout(cli.timeout)?;
        Ok(Settings {
            name,
            cap: cap::Cap::of(cli, timeout, owner.clone(), place_flags(cli))?,
            owner,
            grace,
            spare,
            place: place_flags(cli),
            waiting: attached::Waiting { timeout, heartbeat: term::heartbeat(None)?, grace },
        })
    }
}

/// The name that the job gets, its stem, and what the directory holds; refused while the name runs.
fn place(
    dir: &RunDir,
    here: &Here,
    lock: &mut DirLock,
    chosen: Option<Name>,
    settings: &Settings,
) -> Result<(Name, Stem, Survey)> {
    let (name, survey) = match chosen {
        Some(name) => {
            let survey = survey(dir, here, &name)?;
            (name, survey)
        }
        None => loop {
            let number = lock.next_number().map_err(|e| Failure::cannot("write the last job number", e))?;
            let name = Name::handle(number);
            let survey = survey(dir, here, &name)?;
            // A handle that somebody's file already bears is passed over.
            if !name.plain_stem().is_some_and(|stem| survey.has(&stem)) {
                break (name, survey);
            }
        },
    };
    // What another machine alone can tell stands in the way until somebody who knows has it forgotten by name.
    let in_the_way = |job: &&Job| job.state.is_running() || (job.state.elsewhere && !job.is_collected());
    if let Some(job) = survey.job.as_ref().filter(in_the_way) {
        return Err(already_running(job, &name, settings));
    }
    let plain = name.plain_stem().filter(|_| !survey.plain_is_anothers);
    let stem = plain.unwrap_or_else(|| name.hashed_stem());
    Ok((name, stem, survey))
}

/// The flags with which another tool sees what this launch sees: what the environment says, it says to both.
fn place_flags(cli: &Cli) -> String {
    let mut flags = String::new();
    if let Some(dir) = &cli.common.log_dir {
        flags.push_str(&format!("--log-dir {} ", quoted(&dir.to_string_lossy())));
    }
    if let Some(owner) = &cli.common.owner {
        flags.push_str(&format!("--owner {} ", quoted(owner)));
    }
    if cli.common.all_owners {
        flags.push_str("--all-owners ");
    }
    flags
}

fn already_running(job: &Job, name: &Name, settings: &Settings) -> Failure {
    let pid = job.pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    if job.state.elsewhere {
        let host = job.header().map(|h| h.host.clone()).unwrap_or_default();
        return Failure::new(
            Code::Running,
            format!("cannot launch {name}: recorded as running on {host}, which alone can tell"),
        )
        .hint(format!(
            "look there, or forget it: tb-clean {}{}",
            settings.place,
            quoted(name.as_str())
        ));
    }
    if job.owner() != settings.owner.as_deref() {
        return Failure::new(
            Code::Running,
            format!("cannot launch {name}: already running [PID: {pid}], held by another owner"),
        )
        .hint("use another --name");
    }
    let word = format!("{}{}", settings.place, quoted(name.as_str()));
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
        let job = find(dir, &context.here, name)?.ok_or_else(|| context.not_tracked(name))?;
        out.json(&Report::of(dir, &context.here, &job, Depth { lines: 15, processes: true })?)?;
    } else {
        let shown = out.safe(name.as_str()).into_owned();
        out.line(&format!("Launched {shown} [PID: {}]", launched.pid))?;
        let log = format!("Log: {}", log.display());
        let log = out.safe(&log).into_owned();
        out.line(&log)?;
    }
    out.flush()
}
