//! `tb-clean`: forget finished jobs.

pub mod cli;
mod logs;

use cli::Cli;
use std::ffi::OsString;
use tb_shared::contract::{DirLock, Job, Name, clear_pid_file, collect};
use tb_shared::report::{Depth, Report};
use tb_shared::term::{self, Code, Context, Failure, Out, Result};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    let names = cli.names.get()?;
    let context = cli.common.context()?;
    let mut out = Out::new(cli.common.color);
    let Some(dir) = &context.dir else {
        for name in &names {
            context.not_tracked(name).print("tb-clean");
        }
        return Ok(if names.is_empty() { Code::Ok } else { Code::NotTracked });
    };
    // Launches wait: between a look at a PID file and its removal nobody puts another there.
    let lock = DirLock::take(dir)?;
    let mut codes = Vec::new();
    if cli.names.given() {
        for name in &names {
            codes.push(
                match context.need(name).and_then(|job| forget(&cli, &context, &lock, &job, true, &mut out)) {
                    Ok(code) => code,
                    Err(failure) => {
                        failure.print("tb-clean");
                        failure.code
                    }
                },
            );
        }
    } else {
        let listing = context.list()?;
        for problem in &listing.problems {
            problem.print("tb-clean");
            codes.push(problem.code);
        }
        for job in &listing.jobs {
            codes.push(forget(&cli, &context, &lock, job, false, &mut out)?);
        }
    }
    if cli.logs {
        codes.extend(logs::remove(&cli, &context, dir, &lock, &names, &mut out)?);
    }
    out.flush()?;
    Ok(term::worst(codes))
}

/// Forgets one job, if it is over. `named` says that the user named it: then a running one is an error, and one
/// of another machine is forgotten too.
fn forget(
    cli: &Cli,
    context: &Context,
    lock: &DirLock,
    job: &Job,
    named: bool,
    out: &mut Out,
) -> Result<Code> {
    let Some(dir) = &context.dir else { return Ok(Code::Ok) };
    if job.state.is_running() {
        if !named {
            return Ok(Code::Ok);
        }
        return Err(Failure::new(Code::Running, format!("cannot forget {}: it is running", job.name))
            .hint(format!("tb-kill {}", term::quoted(&job.name))));
    }
    if job.is_newer() || (job.state.elsewhere && !named) {
        return Ok(Code::Ok);
    }
    let cleared = clear_pid_file(dir, lock, job)?;
    let collected = collect(dir, job)?;
    if cli.common.json {
        let name = Name::parse(std::ffi::OsStr::new(&job.name)).ok();
        if let Some(now) = name.map(|n| context.find(&n)).transpose()?.flatten() {
            out.json(&Report::of(dir, &context.here, &now, Depth { lines: 0, processes: false })?)?;
        }
    } else if cleared || collected {
        let name = out.safe(&job.name).into_owned();
        let what = match (cleared, collected) {
            (true, true) => "removed its stale PID file, collected",
            (true, false) => "removed its stale PID file",
            _ => "collected",
        };
        out.line(&format!("{name}: {what}"))?;
    }
    Ok(Code::Ok)
}
