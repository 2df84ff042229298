//! `tb-status`: one look at background jobs, never waiting.

pub mod cli;
mod human;
mod watch;

use cli::Cli;
use std::ffi::OsString;
use std::time::Duration;
use tb_shared::contract::{Job, Listing, Outcome};
use tb_shared::report::{Depth, Report};
use tb_shared::term::{self, Code, Context, Out, Result};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    if cli.watch {
        return watch::watch(&cli);
    }
    let context = cli.common.context()?;
    let mut out = Out::new(cli.common.color);
    let code =
        if cli.names.given() { named(&cli, &context, &mut out)? } else { listed(&cli, &context, &mut out)? };
    out.flush()?;
    Ok(code)
}

/// A block, an object or a line for each name.
fn named(cli: &Cli, context: &Context, out: &mut Out) -> Result<Code> {
    let mut codes = Vec::new();
    let mut first = true;
    for name in cli.names.get()? {
        let job = match context.need(&name) {
            Ok(job) => job,
            Err(failure) => {
                failure.print("tb-status");
                codes.push(failure.code);
                continue;
            }
        };
        codes.push(job.state.code());
        if !wanted(cli, &job) {
            continue;
        }
        let report = report(cli, context, &job)?;
        if names_only(cli, out, &report.name)? {
            continue;
        }
        if cli.common.json {
            out.json(&report)?;
        } else {
            if !std::mem::take(&mut first) {
                out.line("")?;
            }
            human::block(out, &report)?;
        }
    }
    Ok(term::worst(codes))
}

/// All jobs of the scope: those that run first, then by start, the newest last.
fn listed(cli: &Cli, context: &Context, out: &mut Out) -> Result<Code> {
    let listing = context.list()?;
    let reports = reports(cli, context, &listing)?;
    if cli.names_only || cli.print0 {
        for report in &reports {
            names_only(cli, out, &report.name)?;
        }
    } else if cli.common.json {
        for report in &reports {
            out.json(report)?;
        }
    } else {
        human::list(out, &reports)?;
    }
    out.flush()?;
    for problem in &listing.problems {
        problem.print("tb-status");
    }
    Ok(term::worst(listing.problems.iter().map(|p| p.code)))
}

/// The reports of a listing's jobs that are wanted, in the order in which they are shown.
fn reports(cli: &Cli, context: &Context, listing: &Listing) -> Result<Vec<Report>> {
    let mut reports = Vec::with_capacity(listing.jobs.len());
    for job in listing.jobs.iter().filter(|job| (cli.all || !job.is_collected()) && wanted(cli, job)) {
        reports.push(report(cli, context, job)?);
    }
    reports.sort_by(|a, b| {
        let key = |r: &Report| (r.status == "FINISHED", r.started());
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(reports)
}

fn names_only(cli: &Cli, out: &mut Out, name: &str) -> Result<bool> {
    if cli.print0 {
        out.bytes(name.as_bytes())?;
        out.bytes(b"\0")?;
    } else if cli.names_only {
        let name = out.safe(name).into_owned();
        out.line(&name)?;
    }
    Ok(cli.print0 || cli.names_only)
}

fn wanted(cli: &Cli, job: &Job) -> bool {
    let running = job.state.is_running();
    let passed = job.state.outcome == Some(Outcome::Passed);
    let recent = |within: Duration| {
        let started = job.header().and_then(|h| h.started_at.parse::<jiff::Timestamp>().ok());
        started.is_none_or(|t| jiff::Timestamp::now().duration_since(t).unsigned_abs() <= within)
    };
    (!cli.running || running)
        && (!cli.finished || !running)
        && (!cli.passed || (!running && passed))
        && (!cli.failed || (!running && !passed))
        && cli.since.is_none_or(recent)
}

fn report(cli: &Cli, context: &Context, job: &Job) -> Result<Report> {
    let Some(dir) = &context.dir else {
        // A job was read from the directory, so there is one.
        return Err(term::Failure::cannot("read the run directory", "it is gone"));
    };
    let names = cli.names_only || cli.print0;
    let lines = if names || (!cli.common.json && !cli.names.given()) { 0 } else { cli.lines };
    Report::of(dir, &context.here, job, Depth { lines, processes: cli.common.json && !names })
}
