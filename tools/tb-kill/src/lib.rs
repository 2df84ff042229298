//! `tb-kill`: stop jobs, all of each.

pub mod cli;

use cli::Cli;
use std::ffi::OsString;
use tb_shared::contract::{Job, RunDir, TerminalMarker};
use tb_shared::process;
use tb_shared::report::{Depth, Report};
use tb_shared::supervise::{Stopped, contains_caller, stop_all};
use tb_shared::term::{self, Code, Context, Failure, Out, Result};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    let grace = term::kill_grace(cli.grace)?;
    let context = cli.common.context()?;
    let mut out = Out::new(cli.common.color);
    let mut codes = Vec::new();
    let mut jobs = Vec::new();
    if cli.all {
        let listing = context.list()?;
        for problem in &listing.problems {
            problem.print("tb-kill");
            codes.push(problem.code);
        }
        let line = process::self_and_ancestors();
        for job in listing.jobs.into_iter().filter(|j| j.state.is_running()) {
            if contains_caller(&job, &line) {
                term::say("tb-kill", &format!("{} is left alone: this command runs inside it", job.name));
            } else {
                jobs.push(job);
            }
        }
    } else {
        if !cli.names.given() {
            return Err(Failure::usage("stop a job", "none was named")
                .hint("name one, or --all for every running job; tb-status lists them"));
        }
        for name in cli.names.get()? {
            match context.need(&name) {
                Ok(job) => jobs.push(job),
                Err(failure) => {
                    failure.print("tb-kill");
                    codes.push(failure.code);
                }
            }
        }
    }
    if let Some(dir) = &context.dir {
        let me = format!("tb-kill[{}]", std::process::id());
        let jobs: Vec<&Job> = jobs.iter().collect();
        stop_all(dir, &context.here, &jobs, cli.signal, grace, &me, |job, stopped| {
            codes.push(tell(&cli, &context, dir, job, stopped, &mut out)?);
            Ok(())
        })?;
    }
    out.flush()?;
    Ok(term::worst(codes))
}

/// Says what a stop came to, and its code.
fn tell(
    cli: &Cli,
    context: &Context,
    dir: &RunDir,
    job: &Job,
    stopped: Result<Stopped>,
    out: &mut Out,
) -> Result<Code> {
    let stopped = match stopped {
        Ok(stopped) => stopped,
        Err(failure) => {
            failure.print("tb-kill");
            return Ok(failure.code);
        }
    };
    let code = if matches!(stopped, Stopped::Survivors(_)) { Code::Survivors } else { Code::Ok };
    let name = out.safe(&job.name).into_owned();
    if cli.common.json {
        let parsed = tb_shared::contract::Name::parse(std::ffi::OsStr::new(&job.name));
        if let Some(now) = parsed.ok().map(|n| context.find(&n)).transpose()?.flatten() {
            let report = Report::of(dir, &context.here, &now, Depth { lines: 15, processes: false })?;
            out.json(&report)?;
        }
    } else {
        match &stopped {
            Stopped::AlreadyOver(state) => {
                let how = match state.marker {
                    Some(TerminalMarker::Pass) => "PASS",
                    Some(TerminalMarker::Fail) => "FAIL",
                    None => "no marker",
                };
                out.line(&format!("{name} already finished ({how})"))?;
            }
            Stopped::Now { pid, processes, signal, unsupervised, .. } => {
                let signal = signal.strip_prefix("SIG").unwrap_or(signal);
                let many = if *processes == 1 { "process" } else { "processes" };
                let how = if *unsupervised { ", unsupervised: found by evidence" } else { "" };
                out.line(&format!("Killed {name} [PID: {pid}] ({processes} {many}, {signal}{how})"))?;
            }
            Stopped::Survivors(_) => {}
        }
    }
    if let Stopped::Survivors(list) = &stopped {
        let mut failure =
            Failure::new(Code::Survivors, format!("cannot stop all of {}: {} left", job.name, list.len()));
        for line in list {
            failure = failure.hint(line.clone());
        }
        failure.print("tb-kill");
    }
    out.flush()?;
    Ok(code)
}
