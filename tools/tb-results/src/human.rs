//! The report for people.

use crate::json::outcome;
use crate::report::{Counts, Failing, JobFacts, Outcome, Report, Verdict};
use std::collections::BTreeMap;
use tb_shared::term::{Out, Result};

/// The usual answer: the counts, a line for each failing test, a line for each fault of the infrastructure.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn summary(out: &mut Out, name: &str, report: &Report) -> Result<()> {
    let name = out.safe(name).into_owned();
    let verdict = report.verdict();
    let color = match verdict {
        Some(Verdict::Pass) => "32",
        Some(Verdict::NoTests | Verdict::Interrupted) => "33",
        _ => "31",
    };
    let text = out.paint(color, &totals(report));
    out.line(&format!("{name}: {text}"))?;
    match report.failing() {
        Some(all) => {
            for failing in all {
                let line = failing_line(failing);
                out.line(&out.safe(&line))?;
            }
        }
        None if !report.sessions.is_empty() => out.line("? the log does not name what failed")?,
        None => {}
    }
    for session in &report.sessions {
        for id in &session.unfinished {
            let line = format!("UNFINISHED {id}");
            out.line(&out.safe(&line))?;
        }
        for fault in &session.faults {
            let line = format!("FAULT {fault}");
            out.line(&out.safe(&line))?;
        }
    }
    if !report.complete() && report.job.as_ref().is_none_or(|j| !j.running) {
        out.line(match report.sessions.is_empty() {
            true => "FAULT no test runner's output was found in it",
            false => "FAULT it ends before the run's own summary",
        })?;
    }
    if let [first, rest @ ..] = &report.sessions[..] {
        if rest.iter().any(|s| s.runner != first.runner) {
            for session in &report.sessions {
                out.line(&format!("NOTE {}: {}", session.runner, words(&session.counts)))?;
            }
        } else if first.runner != "pytest" {
            out.line(&format!("NOTE read as output of {}", first.runner))?;
        }
    }
    if let Some(words) = report.disagreement() {
        out.line(&format!("NOTE {words}"))?;
    }
    for hint in hints(report) {
        out.line(&format!("NOTE {hint}"))?;
    }
    Ok(())
}

/// `847 passed, 1 failed, 2 skipped, 0 errors in 45.7s`; `?` for what the log cannot tell.
pub(crate) fn totals(report: &Report) -> String {
    let counts = report.counts();
    let mut text = words(&counts);
    if let Some(seconds) = report.duration() {
        text.push_str(&format!(" in {seconds:.1}s"));
    }
    if let Some(word) = report.verdict().filter(|v| !matches!(v, Verdict::Pass | Verdict::Fail)) {
        text.push_str(&format!(" [{}]", word.word()));
    }
    text
}

fn words(counts: &Counts) -> String {
    let number = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let always = [
        (counts.passed, "passed"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.errors, "errors"),
    ];
    let rarely = [
        (counts.timed_out, "timed out"),
        (counts.xfailed, "xfailed"),
        (counts.xpassed, "xpassed"),
        (counts.deselected, "deselected"),
        (counts.reruns, "rerun"),
    ];
    let rarely = rarely.into_iter().filter(|(n, _)| n.is_some_and(|n| n > 0));
    let parts: Vec<String> =
        always.into_iter().chain(rarely).map(|(n, word)| format!("{} {word}", number(n))).collect();
    parts.join(", ")
}

fn failing_line(f: &Failing) -> String {
    let word = outcome(f.outcome).to_ascii_uppercase();
    let mut line = format!("{word} {}", f.id);
    if let Some(class) = &f.error_class {
        line.push_str(&format!(" ({class})"));
    }
    if let Some(worker) = f.worker.as_ref().filter(|_| f.outcome == Outcome::Crashed) {
        line.push_str(&format!(" ({worker})"));
    }
    line
}

/// What a person would do next.
fn hints(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    let crashed = report.sessions.iter().any(|s| !s.crashed_workers.is_empty());
    if crashed && let Ok(lines) = crate::rerun::lines(report) {
        out.extend(lines.iter().map(|l| format!("a worker died: run the slice again, serially: {l}")));
    }
    if let Some(looks) = report.failing().unwrap_or_default().into_iter().find_map(infrastructure) {
        out.push(format!("looks like the machine, not the code: {looks}"));
    }
    out
}

/// A failure of a test that the machine may have caused. It stays a failure.
fn infrastructure(f: &Failing) -> Option<String> {
    let message = f.message.as_deref().unwrap_or_default();
    let words =
        ["No space left on device", "Connection refused", "Too many open files", "Cannot allocate memory"];
    let word = words.into_iter().find(|w| message.contains(w));
    let class = f.error_class.as_deref().filter(|c| matches!(*c, "MemoryError" | "ConnectionRefusedError"));
    Some(format!("{} in {}", word.or(class)?, f.id))
}

/// Failures by exception class, the most frequent first.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn errors(out: &mut Out, report: &Report) -> Result<()> {
    let mut classes: BTreeMap<&str, (u64, &Failing)> = BTreeMap::new();
    for f in report.failing().unwrap_or_default() {
        let class = f.error_class.as_deref().unwrap_or("?");
        classes.entry(class).and_modify(|(n, _)| *n += 1).or_insert((1, f));
    }
    let mut all: Vec<_> = classes.into_iter().collect();
    all.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
    for (class, (n, first)) in all {
        let place = match &first.place {
            Some((file, line)) => format!("{file}:{line}"),
            None => first.id.clone(),
        };
        let line = format!("{n:>5} {class}  {place}");
        out.line(&out.safe(&line))?;
    }
    Ok(())
}

/// The four fields of a report: TESTFILE, RESULT, SUMMARY, EVIDENCE.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn four_fields(out: &mut Out, name: &str, report: &Report, tail: &[String]) -> Result<()> {
    let timeout = report.job.as_ref().is_some_and(|j| j.outcome.as_deref() == Some("timeout"));
    let passed = report.verdict() == Some(Verdict::Pass)
        || report.job.as_ref().and_then(JobFacts::passed) == Some(true);
    let result = match (timeout, passed) {
        (true, _) => "TIMEOUT",
        (false, true) => "PASS",
        (false, false) => "FAIL",
    };
    let lines =
        [format!("TESTFILE: {name}"), format!("RESULT: {result}"), format!("SUMMARY: {}", totals(report))];
    for line in lines {
        out.line(&out.safe(&line))?;
    }
    out.line("EVIDENCE:")?;
    for text in tail {
        let line = format!("  {text}");
        out.line(&out.safe(&line))?;
    }
    Ok(())
}

/// Workflow commands of GitHub Actions.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn annotate_github(out: &mut Out, report: &Report) -> Result<()> {
    for f in report.failing().unwrap_or_default() {
        let mut fields = Vec::new();
        if let Some((file, line)) = &f.place {
            fields.push(format!("file={}", property(file)));
            fields.push(format!("line={line}"));
        } else if let Some((file, _)) = f.id.split_once("::") {
            fields.push(format!("file={}", property(file)));
        }
        fields.push(format!("title={}", property(&f.id)));
        let message = f.message.as_deref().or(f.error_class.as_deref()).unwrap_or(outcome(f.outcome));
        out.line(&format!("::error {}::{}", fields.join(","), data(message)))?;
    }
    for fault in report.sessions.iter().flat_map(|s| &s.faults) {
        out.line(&format!("::error title=infrastructure::{}", data(fault)))?;
    }
    Ok(())
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_log_cannot_tell_is_a_question_mark() {
        let counts = Counts { passed: Some(3), failed: Some(0), xfailed: Some(2), ..Counts::default() };
        assert_eq!(words(&counts), "3 passed, 0 failed, ? skipped, ? errors, 2 xfailed");
    }

    #[test]
    fn annotations_are_escaped() {
        assert_eq!(property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
    }
}
