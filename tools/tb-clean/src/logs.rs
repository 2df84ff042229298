//! `--logs`: logs of runs that are over, in the order in which they ended.

use crate::cli::Cli;
use std::collections::HashMap;
use tb_shared::contract::{
    DirEntry, DirLock, Job, LogName, Name, RunDir, TerminalMarker, ended_at, of_log, read_log,
};
use tb_shared::log::forget_cursors;
use tb_shared::report::{Depth, Report};
use tb_shared::term::{Code, Context, Failure, Out, Result};

/// Removes what `--keep` or `--older` do not spare, with its cursors. Never a running job's log, a name's newest, or
/// one that a newer version of the contract or another machine has still to say something of. The codes of what could
/// not be done, each of which is told.
pub(crate) fn remove(
    cli: &Cli,
    context: &Context,
    dir: &RunDir,
    _lock: &DirLock,
    names: &[Name],
    out: &mut Out,
) -> Result<Vec<Code>> {
    let mut codes = Vec::new();
    let mut tell = |failure: Failure| {
        failure.print("tb-clean");
        codes.push(failure.code);
    };
    let mut runs: Vec<Job> = Vec::new();
    for entry in dir.entries()? {
        let DirEntry::Log(log) = entry else { continue };
        match read_log(dir, &log) {
            Ok(found) => runs.extend(found.and_then(|log| of_log(&context.here, log.closed(dir)))),
            Err(failure) => tell(failure),
        }
    }
    let newest = newest_of_each(&runs);
    let mut over: Vec<&Job> = runs
        .iter()
        .filter(|run| !is_live(run) && context.scope.sees(run.owner()))
        .filter(|run| !cli.names.given() || names.iter().any(|name| name.as_str() == run.name))
        .collect();
    over.sort_by(|a, b| {
        let name = |run: &Job| run.log.as_ref().map(|l| (l.name.stamp.clone(), l.name.sequence));
        ended_at(b).cmp(&ended_at(a)).then_with(|| name(b).cmp(&name(a)))
    });
    let spare = cli.keep.unwrap_or(0);
    let before = cli.older.map(|age| jiff::Timestamp::now() - age);
    let may_go = |run: &Job| {
        let log = run.log.as_ref().map(|l| &l.name);
        log != newest.get(run.name.as_str()).copied() && !run.is_newer() && !run.state.elsewhere
    };
    let aged = |run: &Job| before.is_none_or(|before| ended_at(run).is_some_and(|ended| ended < before));
    // The first to have ended goes first: whatever interrupts this leaves the newer ones.
    for run in over.into_iter().skip(spare).filter(|run| may_go(run) && aged(run)).rev() {
        let Some(log) = &run.log else { continue };
        let file = log.name.file();
        let report = Report::of(dir, &context.here, run, Depth { lines: 0, processes: false })?;
        if let Err(e) = dir.remove(&file) {
            tell(Failure::cannot(format!("remove {}", dir.path_of(&file).display()), e));
            continue;
        }
        if cli.common.json {
            out.json(&report)?;
        } else {
            let verdict = match run.state.marker {
                Some(TerminalMarker::Pass) => "PASS",
                Some(TerminalMarker::Fail) => "FAIL",
                None => "no marker",
            };
            let line = format!("Removed {} ({verdict})", dir.path_of(&file).display());
            let line = out.safe(&line).into_owned();
            out.line(&line)?;
        }
    }
    if let Err(failure) = forget_cursors(dir) {
        tell(failure);
    }
    Ok(codes)
}

/// Whether anybody may still write a run's log.
fn is_live(run: &Job) -> bool {
    run.state.is_running() || run.log.as_ref().is_some_and(|log| log.held)
}

fn newest_of_each(runs: &[Job]) -> HashMap<&str, &LogName> {
    let mut newest: HashMap<&str, &LogName> = HashMap::new();
    for run in runs {
        let Some(log) = run.log.as_ref().map(|l| &l.name) else { continue };
        let known = newest.entry(&run.name).or_insert(log);
        if log.order() > known.order() {
            *known = log;
        }
    }
    newest
}
