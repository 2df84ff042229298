//! The report for people.

use tb_shared::report::Report;
use tb_shared::term::{Out, Result};

/// The list of jobs. The first three columns are exact: name, state, PID; more may follow.
pub(crate) fn list(out: &mut Out, reports: &[Report]) -> Result<()> {
    out.line(&format!("BACKGROUND TESTS ({} tracked):", reports.len()))?;
    let widest = |column: fn(&Report) -> usize| reports.iter().map(column).max().unwrap_or(0);
    let names = widest(|r| r.name.chars().count()).clamp(28, 60);
    let states = widest(|r| r.headline().chars().count()).clamp(19, 50);
    let pids = widest(|r| pid(r).chars().count());
    for report in reports {
        let name = out.safe(&report.name).into_owned();
        let state = out.safe(&report.headline()).into_owned();
        let gap = " ".repeat(states.saturating_sub(state.chars().count()));
        let line = format!(
            "  {name:<names$}  {}{gap}  {:<pids$}  Started: {}  {}",
            paint(out, report, &state),
            pid(report),
            report.started_local(),
            remarks(report)
        );
        out.line(line.trim_end())?;
    }
    Ok(())
}

/// One job: the headline, the log's path, its last lines.
pub(crate) fn block(out: &mut Out, report: &Report) -> Result<()> {
    let name = out.safe(&report.name).into_owned();
    let state = out.safe(&report.headline()).into_owned();
    let line = format!(
        "{name}  {}  {}  Started: {}  {}",
        paint(out, report, &state),
        pid(report),
        report.started_local(),
        remarks(report)
    );
    out.line(line.trim_end())?;
    for (what, list) in [("leaked", &report.leaked), ("survived", &report.survivors)] {
        for left in list.iter().flatten() {
            let text = format!("  {what}: {} {} ({})", left.pid, left.command, left.why);
            let text = out.safe(&text).into_owned();
            out.line(&text)?;
        }
    }
    if let Some(test) = &report.last_test {
        let text = format!("Last test: {test}");
        let text = out.safe(&text).into_owned();
        out.line(&text)?;
    }
    match &report.log_file {
        Some(log) => {
            let log = out.safe(log).into_owned();
            out.line(&format!("Log: {log}"))?;
        }
        None => out.line("Log: (no log found)")?,
    }
    for line in &report.last_log_lines {
        let line = out.safe(line).into_owned();
        out.line(&line)?;
    }
    Ok(())
}

fn pid(report: &Report) -> String {
    report.pid.map_or_else(|| "PID: -".to_owned(), |pid| format!("PID: {pid}"))
}

fn remarks(report: &Report) -> String {
    let remark = report.remark();
    let notes = report.notes().join("; ");
    match (remark.is_empty(), notes.is_empty()) {
        (_, true) => remark,
        (true, false) => notes,
        (false, false) => format!("{remark}; {notes}"),
    }
}

fn paint(out: &Out, report: &Report, state: &str) -> String {
    out.paint(report.colour(), state)
}
