//! What `tb-results` says of logs written for these tests, each after the grammar of the version it names.

mod died;
mod golang;
mod grammars;
mod javascript;
mod junitxml;
mod jvm;
mod lies;
mod mixed;
mod modes;
mod names;
mod native;
mod plugins;
mod properties;
mod ruby;
mod runs;
mod rust;
mod tap;
mod text;
mod unittest;
mod verdicts;

use tb_results::report::{Counts, Report, Verdict};

/// The report about a log.
fn of(log: impl AsRef<[u8]>) -> Report {
    tb_results::read(log.as_ref(), None, |_| {}).expect("a slice can be read")
}

/// The ids of what failed, in the log's order.
fn failing(report: &Report) -> Option<Vec<&str>> {
    Some(report.failing()?.into_iter().map(|f| f.id.as_str()).collect())
}

/// passed, failed, skipped, errors.
fn four(counts: &Counts) -> [Option<u64>; 4] {
    [counts.passed, counts.failed, counts.skipped, counts.errors]
}

/// The header of a run that is not quiet.
const HEAD: &str = "\
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-8.3.5, pluggy-1.7.0
rootdir: /srv/app
collected 4 items

";

const FAILURES: &str = "=================================== FAILURES ===================================\n";
const SHORT: &str = "=========================== short test summary info ============================\n";

/// A section's or a summary's line, 80 wide.
fn bar(title: &str) -> String {
    let n = ((80 - title.len() - 2) / 2).max(1);
    let mut line = format!("{} {title} {}", "=".repeat(n), "=".repeat(n));
    if line.len() < 80 {
        line.push('=');
    }
    line.push('\n');
    line
}

/// What a log of one runner is expected to say.
struct Want<'w> {
    runner: &'w str,
    /// passed, failed, skipped, errors.
    counts: [Option<u64>; 4],
    failing: Option<&'w [&'w str]>,
    verdict: Verdict,
    complete: bool,
}

/// Counts that are all known.
fn known(counts: [u64; 4]) -> [Option<u64>; 4] {
    counts.map(Some)
}

impl Want<'_> {
    #[track_caller]
    fn of(&self, log: impl AsRef<[u8]>) -> Report {
        let report = of(log);
        assert_eq!(report.runner(), Some(self.runner));
        assert_eq!(four(&report.counts()), self.counts);
        assert_eq!(failing(&report), self.failing.map(<[&str]>::to_vec));
        assert_eq!((report.verdict(), report.complete()), (Some(self.verdict), self.complete));
        report
    }
}

/// The command lines that run again what failed.
fn rerun(report: &Report) -> Vec<String> {
    tb_results::rerun::lines(report).expect("there is a way")
}
