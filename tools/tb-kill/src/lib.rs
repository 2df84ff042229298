//! `tb-kill`: stop jobs, all of each.

pub mod cli;

use cli::Cli;
use std::ffi::OsString;
use std::time::Duration;
use tb_shared::contract::{Job, TerminalMarker};
use tb_shared::process;
use tb_shared::report::{Depth, Report};
use tb_shared::supervise::{Stopped, contains_caller, stop};
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
    if cli.all {
        let listing = context.list()?;
        for problem in &listing.problems {
            problem.print("tb-kill");
            codes.push(problem.code);
        }
        let line = process::self_and_ancestors();
        for job in listing.jobs.iter().filter(|j| j.state.is_running()) {
            if contains_caller(job, &line) {
                term::say("tb-kill", &format!("{} is left alone: this command runs inside it", job.name));
                continue;
            }
            codes.push(kill(&cli, &context, job, grace, &mut out)?);
        }
    } else {
        if !cli.names.given() {
            return Err(Failure::usage("stop a job", "none was named")
                .hint("name one, or --all for every running job; tb-status lists them"));
        }
        for name in cli.names.get()? {
            match context.need(&name) {
                Ok(job) => codes.push(kill(&cli, &context, &job, grace, &mut out)?),
                Err(failure) => {
                    failure.print("tb-kill");
                    codes.push(failure.code);
                }
            }
        }
    }
    out.flush()?;
    Ok(term::worst(codes))
}

fn kill(cli: &Cli, context: &Context, job: &Job, grace: Duration, out: &mut Out) -> Result<Code> {
    let Some(dir) = &context.dir else { return Ok(Code::NotTracked) };
    let me = format!("tb-kill[{}]", std::process::id());
    let stopped = match stop(dir, &context.here, job, cli.signal, grace, &me) {
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
