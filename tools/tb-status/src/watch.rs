//! `--watch`: looks that follow one another.

use crate::cli::Cli;
use jiff::{Timestamp, tz::TimeZone};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tb_shared::contract::Job;
use tb_shared::log::{Watch, Woken};
use tb_shared::report::Report;
use tb_shared::term::{self, Code, Context, Out, Result};
use tb_shared::wait::Interrupt;

/// Between two looks when nothing is heard of the jobs.
const TICK: Duration = Duration::from_secs(1);
/// Cursor to the top left, and everything behind it erased.
const REDRAW: &[u8] = b"\x1b[H\x1b[J";

/// Looks until Ctrl-C, until the named jobs are over, or until nobody reads any more; then gives the code of the last
/// look.
pub(crate) fn watch(cli: &Cli) -> Result<Code> {
    let names = cli.names.get()?;
    let interrupt = Interrupt::ctrl_c()?;
    let context = cli.common.context()?;
    // A name that is not tracked is refused before anything is watched.
    for name in &names {
        context.need(name)?;
    }
    let mut out = Out::new(cli.common.color);
    let mut told = BTreeMap::new();
    let mut kept: Option<Watch> = None;
    loop {
        // The directory may come, or be replaced, while its jobs are watched.
        let context = cli.common.context()?;
        if kept.is_none() {
            kept = context.dir.as_ref().map(Watch::new);
        }
        let mut jobs = Vec::new();
        if cli.names.given() {
            for name in &names {
                jobs.extend(context.find(name)?);
            }
        } else {
            jobs = context.list()?.jobs;
        }
        let running: Vec<&Job> = jobs.iter().filter(|job| job.state.is_running()).collect();
        if let Some(watch) = &mut kept {
            running.iter().for_each(|job| watch.processes(job));
        }
        let code = if out.is_terminal() && !cli.common.json {
            out.bytes(REDRAW)?;
            if cli.names.given() {
                crate::named(cli, &context, &mut out)?
            } else {
                crate::listed(cli, &context, &mut out)?
            }
        } else {
            changes(cli, &context, &jobs, &mut told, &mut out)?
        };
        out.flush()?;
        if out.is_closed() || (cli.names.given() && running.is_empty()) {
            return Ok(code);
        }
        let until = Instant::now() + TICK;
        let reader = rustix::stdio::stdout();
        let woken = match &mut kept {
            Some(watch) => watch.sleep(Some(interrupt.fd()), Some(reader), Some(until)),
            None => Watch::of_nothing().sleep(Some(interrupt.fd()), Some(reader), Some(until)),
        };
        if matches!(woken, Woken::Interrupted | Woken::Closed) {
            return Ok(code);
        }
    }
}

/// A line (or object) for each job of which there is something new to say.
fn changes(
    cli: &Cli,
    context: &Context,
    jobs: &[Job],
    told: &mut BTreeMap<String, String>,
    out: &mut Out,
) -> Result<Code> {
    let mut codes = Vec::new();
    let clock = Timestamp::now().to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string();
    for job in jobs.iter().filter(|job| (cli.all || !job.is_collected()) && crate::wanted(cli, job)) {
        if cli.names.given() {
            codes.push(job.state.code());
        }
        let report: Report = crate::report(cli, context, job)?;
        let headline = report.headline();
        // For how long a job has been idle changes with every look: that it is idle is said once.
        let news = headline.split_once(" (idle ").map_or(headline.as_str(), |(state, _)| state).to_owned();
        if told.get(&report.name) == Some(&news) {
            continue;
        }
        if cli.common.json {
            out.json(&report)?;
        } else {
            let name = out.safe(&report.name).into_owned();
            let line =
                format!("[{clock}] {name}: {} {}", out.paint(report.colour(), &headline), report.remark());
            out.line(line.trim_end())?;
        }
        told.insert(report.name, news);
    }
    Ok(term::worst(codes))
}
