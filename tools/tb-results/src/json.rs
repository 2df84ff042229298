//! The report as JSON: fields and names are fixed, `null` is "the log cannot tell".

use crate::report::{Failing, Outcome, Report, Session};
use serde::Serialize;

/// The object of one job or log.
#[derive(Serialize)]
pub struct Object<'a> {
    v: u8,
    testfile: &'a str,
    runner: Option<&'static str>,
    #[serde(flatten)]
    counts: Counts,
    duration_seconds: Option<f64>,
    verdict: Option<&'static str>,
    complete: bool,
    exit_code: Option<i32>,
    signal: Option<&'a str>,
    disagreement: Option<String>,
    failing: Option<Vec<Test<'a>>>,
    unfinished: Vec<&'a str>,
    crashed_workers: Vec<&'a str>,
    faults: Vec<&'a str>,
    sessions: Vec<One<'a>>,
    last_test: Option<&'a str>,
    slowest: Vec<Slow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_output: Option<String>,
}

#[derive(Serialize)]
struct Counts {
    passed: Option<u64>,
    failed: Option<u64>,
    timed_out: Option<u64>,
    skipped: Option<u64>,
    errors: Option<u64>,
    xfailed: Option<u64>,
    xpassed: Option<u64>,
    deselected: Option<u64>,
    reruns: Option<u64>,
    warnings: Option<u64>,
    subtests_passed: Option<u64>,
    subtests_failed: Option<u64>,
    subtests_skipped: Option<u64>,
}

#[derive(Serialize)]
struct Test<'a> {
    id: &'a str,
    outcome: &'static str,
    error_class: Option<&'a str>,
    message: Option<&'a str>,
    worker: Option<&'a str>,
}

#[derive(Serialize)]
struct Slow<'a> {
    id: &'a str,
    phase: Option<&'a str>,
    seconds: f64,
}

#[derive(Serialize)]
struct One<'a> {
    runner: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u64>,
    verdict: &'static str,
    complete: bool,
    #[serde(flatten)]
    counts: Counts,
    duration_seconds: Option<f64>,
    failing: Option<Vec<&'a str>>,
}

impl<'a> Object<'a> {
    /// The object for a report.
    pub fn new(testfile: &'a str, report: &'a Report, raw: Option<&[u8]>) -> Object<'a> {
        let job = report.job.as_ref();
        let sessions = &report.sessions;
        Object {
            v: 1,
            testfile,
            runner: report.runner(),
            counts: report.counts().into(),
            duration_seconds: report.duration(),
            verdict: report.verdict().map(crate::report::Verdict::word),
            complete: report.complete(),
            exit_code: job.and_then(|j| j.exit_code),
            signal: job.and_then(|j| j.signal.as_deref()),
            disagreement: report.disagreement(),
            failing: report.failing().map(|all| all.into_iter().map(test).collect()),
            unfinished: sessions.iter().flat_map(|s| &s.unfinished).map(String::as_str).collect(),
            crashed_workers: sessions.iter().flat_map(|s| &s.crashed_workers).map(String::as_str).collect(),
            faults: sessions.iter().flat_map(|s| &s.faults).map(String::as_str).collect(),
            sessions: sessions.iter().map(one).collect(),
            last_test: report.last_test(),
            slowest: report.slowest().into_iter().map(slow).collect(),
            raw_output: raw.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        }
    }
}

impl Object<'_> {
    /// Only the slowest so many.
    pub fn limit_slowest(&mut self, n: usize) {
        self.slowest.truncate(n);
    }
}

/// The object of a comparison.
#[derive(Serialize)]
pub(crate) struct Difference<'a> {
    v: u8,
    testfile: &'a str,
    newly_failing: &'a [&'a str],
    fixed: &'a [&'a str],
    still_failing: &'a [&'a str],
    failing_differently: Vec<Changed<'a>>,
}

#[derive(Serialize)]
struct Changed<'a> {
    id: &'a str,
    before: &'a str,
    now: &'a str,
}

impl<'a> Difference<'a> {
    /// The object for a comparison.
    pub(crate) fn new(testfile: &'a str, diff: &'a crate::diff::Diff<'a>) -> Difference<'a> {
        Difference {
            v: 1,
            testfile,
            newly_failing: &diff.newly,
            fixed: &diff.fixed,
            still_failing: &diff.still,
            failing_differently: diff
                .differently
                .iter()
                .map(|(id, before, now)| Changed { id, before, now })
                .collect(),
        }
    }
}

/// The word for how a test is failing.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed => "failed",
        Outcome::Error => "error",
        Outcome::Crashed => "crashed",
        Outcome::TimedOut => "timed_out",
    }
}

fn test(f: &Failing) -> Test<'_> {
    Test {
        id: &f.id,
        outcome: outcome(f.outcome),
        error_class: f.error_class.as_deref(),
        message: f.message.as_deref(),
        worker: f.worker.as_deref(),
    }
}

fn slow(s: &crate::report::Slow) -> Slow<'_> {
    Slow { id: &s.id, phase: s.phase.as_deref(), seconds: s.seconds }
}

fn one(s: &Session) -> One<'_> {
    One {
        runner: s.runner,
        runs: s.gathered.map(|g| g.runs),
        verdict: s.verdict().word(),
        complete: s.complete,
        counts: s.counts.into(),
        duration_seconds: s.duration,
        failing: s.failing.as_ref().map(|all| all.iter().map(|f| f.id.as_str()).collect()),
    }
}

impl From<crate::report::Counts> for Counts {
    fn from(c: crate::report::Counts) -> Counts {
        Counts {
            passed: c.passed,
            failed: c.failed,
            timed_out: c.timed_out,
            skipped: c.skipped,
            errors: c.errors,
            xfailed: c.xfailed,
            xpassed: c.xpassed,
            deselected: c.deselected,
            reruns: c.reruns,
            warnings: c.warnings,
            subtests_passed: c.subtests_passed,
            subtests_failed: c.subtests_failed,
            subtests_skipped: c.subtests_skipped,
        }
    }
}
