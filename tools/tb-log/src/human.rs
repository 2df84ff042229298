//! What people are told beside the lines.

use crate::printer::Counts;
use tb_shared::contract::{Job, TerminalMarker};
use tb_shared::term::say;

const TOOL: &str = "tb-log";

/// The head of a run; of one that a newer run of its name has followed, with when it was launched.
pub(crate) fn head(job: &Job, earlier: bool) -> String {
    if !earlier {
        return job.name.clone();
    }
    let launched = job.header().map(|h| h.started_at.clone());
    let launched = launched.or_else(|| job.log.as_ref().map(|l| l.name.stamp.clone())).unwrap_or_default();
    format!("{}: the rest of the run of {launched}", job.name)
}

/// Gaps and truncations between two counts: told as soon as they are found.
pub(crate) fn gaps(job: &Job, before: Counts, now: Counts) {
    let name = &job.name;
    if now.truncated && !before.truncated {
        say(TOOL, &format!("{name}: its log was truncated; reading began again at its beginning"));
        say(TOOL, "  a job that opens /dev/stderr or /dev/stdout with `>` does that");
    }
    if now.dropped > before.dropped {
        let were = lines(now.dropped - before.dropped);
        say(TOOL, &format!("{name}: {were} dropped (--max-log) before this reader came to them"));
    }
}

/// How many lines were shown in part only.
pub(crate) fn clipped(job: &Job, counts: Counts, max_line: Option<usize>) {
    if let Some(max) = max_line
        && counts.clipped > 0
    {
        say(TOOL, &format!("{}: {} clipped to {max} bytes", job.name, lines(counts.clipped)));
    }
}

fn lines(n: u64) -> String {
    if n == 1 { "1 line was".to_owned() } else { format!("{n} lines were") }
}

/// For a read that found nothing: how the job stands.
pub(crate) fn nothing_new(job: &Job) {
    let state = job.state;
    let footer = job.log.as_ref().and_then(|l| l.end.footer.as_ref()).map(|(f, _)| f);
    let how = match (state.is_running(), state.marker) {
        (true, _) => "RUNNING".to_owned(),
        (false, Some(TerminalMarker::Pass)) => "FINISHED (PASS)".to_owned(),
        (false, Some(TerminalMarker::Fail)) => "FINISHED (FAIL)".to_owned(),
        (false, None) => "FINISHED (no marker)".to_owned(),
    };
    let code = footer.filter(|_| !state.is_running()).and_then(|f| {
        let signal = f.signal.as_ref().map(|s| format!(", {s}"));
        signal.or_else(|| f.exit_code.map(|code| format!(", exit {code}")))
    });
    say(TOOL, &format!("{}: no new lines; {how}{}", job.name, code.unwrap_or_default()));
}
