//! The object of a run, in two parts: before its lines and behind them.

use crate::printer::Counts;
use serde::Serialize;
use tb_shared::contract::{Job, Outcome, RunDir};

/// What is known before the lines.
#[derive(Debug, Serialize)]
pub(crate) struct Head<'a> {
    v: u32,
    name: &'a str,
    job: Option<&'a str>,
}

/// What is known once the lines were read.
#[derive(Debug, Serialize)]
pub(crate) struct Rest {
    new_line_count: u64,
    dropped_lines: u64,
    clipped_lines: u64,
    /// How many of the lines were written after the job's end: the last ones.
    late_lines: u64,
    truncated: bool,
    status: &'static str,
    outcome: Option<&'static str>,
    exit_code: Option<i32>,
    signal: Option<String>,
    log_file: Option<String>,
}

pub(crate) fn head(job: &Job) -> Head<'_> {
    Head { v: 1, name: &job.name, job: job.header().map(|h| h.job.as_str()) }
}

pub(crate) fn rest(dir: &RunDir, job: &Job, counts: Counts) -> Rest {
    let running = job.state.is_running();
    let footer = job.log.as_ref().and_then(|l| l.end.footer.as_ref()).map(|(f, _)| f).filter(|_| !running);
    let lost_header = job.facts.pid_held && job.log.is_some() && job.header().is_none();
    Rest {
        new_line_count: counts.lines,
        dropped_lines: counts.dropped,
        clipped_lines: counts.clipped,
        late_lines: counts.late,
        truncated: counts.truncated || lost_header || footer.is_some_and(|f| f.truncated),
        status: if running { "RUNNING" } else { "FINISHED" },
        outcome: job.state.outcome.map(Outcome::word),
        exit_code: footer.and_then(|f| f.exit_code),
        signal: footer.and_then(|f| f.signal.clone()),
        log_file: job.log.as_ref().map(|l| dir.path_of(&l.name.file()).to_string_lossy().into_owned()),
    }
}
