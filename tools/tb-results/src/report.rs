//! What a reader of logs found out: the types that every runner's parser fills, and what follows from them.
//!
//! A number that the log cannot tell is `None`, never 0; an answer about several runs in one log is the sum of
//! their answers, and `None` as soon as one of them does not know.

use std::collections::HashSet;

/// How many of each. `None`: the log does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests (reports) that passed.
    pub passed: Option<u64>,
    /// Tests that failed, crashed or timed out.
    pub failed: Option<u64>,
    /// Tests that ran out of their own time, where the runner counts them apart and not among the failed.
    pub timed_out: Option<u64>,
    /// Tests that were skipped or ignored.
    pub skipped: Option<u64>,
    /// Errors outside of a test's own body: setup, teardown, collection.
    pub errors: Option<u64>,
    /// Failures that were expected.
    pub xfailed: Option<u64>,
    /// Passes that were not expected.
    pub xpassed: Option<u64>,
    /// Tests that were selected out.
    pub deselected: Option<u64>,
    /// Runs of tests that were tried again.
    pub reruns: Option<u64>,
    /// Warnings, as the runner counts them.
    pub warnings: Option<u64>,
    /// Subtests that passed, where the runner counts them apart.
    pub subtests_passed: Option<u64>,
    /// Subtests that failed, where the runner counts them apart.
    pub subtests_failed: Option<u64>,
    /// Subtests that were skipped, where the runner counts them apart.
    pub subtests_skipped: Option<u64>,
}

impl Counts {
    /// Every kind known, and none of it there.
    pub fn zero() -> Counts {
        Counts::default().fields(|_| Some(0))
    }

    /// Kind by kind, the sum; unknown where either is.
    pub fn plus(&self, other: &Counts) -> Counts {
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Counts {
            passed: add(self.passed, other.passed),
            failed: add(self.failed, other.failed),
            timed_out: add(self.timed_out, other.timed_out),
            skipped: add(self.skipped, other.skipped),
            errors: add(self.errors, other.errors),
            xfailed: add(self.xfailed, other.xfailed),
            xpassed: add(self.xpassed, other.xpassed),
            deselected: add(self.deselected, other.deselected),
            reruns: add(self.reruns, other.reruns),
            warnings: add(self.warnings, other.warnings),
            subtests_passed: add(self.subtests_passed, other.subtests_passed),
            subtests_failed: add(self.subtests_failed, other.subtests_failed),
            subtests_skipped: add(self.subtests_skipped, other.subtests_skipped),
        }
    }

    fn fields(self, f: impl Fn(Option<u64>) -> Option<u64>) -> Counts {
        Counts {
            passed: f(self.passed),
            failed: f(self.failed),
            timed_out: f(self.timed_out),
            skipped: f(self.skipped),
            errors: f(self.errors),
            xfailed: f(self.xfailed),
            xpassed: f(self.xpassed),
            deselected: f(self.deselected),
            reruns: f(self.reruns),
            warnings: f(self.warnings),
            subtests_passed: f(self.subtests_passed),
            subtests_failed: f(self.subtests_failed),
            subtests_skipped: f(self.subtests_skipped),
        }
    }

    /// Whether anything is known to have run, skipped tests included.
    pub fn any_ran(&self) -> bool {
        self.kinds().iter().any(|n| n.is_some_and(|n| n > 0)) || self.errors.is_some_and(|n| n > 0)
    }

    /// Whether any test is known to have come to a result of its own; what did not build is not one.
    fn any_result(&self) -> bool {
        self.kinds().iter().any(|n| n.is_some_and(|n| n > 0))
    }

    /// Whether all that would have run is known to be nothing.
    pub fn nothing_ran(&self) -> bool {
        self.kinds().iter().all(|n| *n == Some(0)) && self.errors == Some(0)
    }

    fn kinds(&self) -> [Option<u64>; 5] {
        [self.passed, self.failed, self.skipped, self.xfailed, self.xpassed]
    }

    /// Failed and errors together, as far as they are known.
    pub fn bad(&self) -> u64 {
        [self.failed, self.timed_out, self.errors]
            .into_iter()
            .fold(0, |sum, n| u64::saturating_add(sum, n.unwrap_or(0)))
    }
}

/// In what way a test is failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Its body failed.
    Failed,
    /// Its setup, teardown or collection failed.
    Error,
    /// The process that ran it died.
    Crashed,
    /// It ran out of its own time, where the runner says so apart.
    TimedOut,
}

/// A test that is failing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// As the runner takes it to run the test again.
    pub id: String,
    /// In what way.
    pub outcome: Outcome,
    /// The exception's class without its module, where the log shows it.
    pub error_class: Option<String>,
    /// The first line of what was said, where the log shows it.
    pub message: Option<String>,
    /// The worker that ran it.
    pub worker: Option<String>,
    /// The first place that the log names for it: a file and a line.
    pub place: Option<(String, u64)>,
}

impl Failing {
    /// A failing test of which no more is known.
    pub fn new(id: impl Into<String>, outcome: Outcome) -> Failing {
        Failing { id: id.into(), outcome, error_class: None, message: None, worker: None, place: None }
    }
}

/// One of the slowest tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// The test.
    pub id: String,
    /// `call`, `setup`, `teardown`, where the runner tells them apart.
    pub phase: Option<String>,
    /// How long.
    pub seconds: f64,
}

/// The one word about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing failed.
    Pass,
    /// Tests failed.
    Fail,
    /// A worker crashed, a signal, an internal error, no end.
    Infra,
    /// Tests failed, and the infrastructure did too.
    Mixed,
    /// Somebody stopped it.
    Interrupted,
    /// There was nothing to run.
    NoTests,
    /// The command line or the configuration was wrong.
    Usage,
    /// It did not build.
    BuildError,
}

impl Verdict {
    /// The word of the output.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Infra => "infra",
            Verdict::Mixed => "mixed",
            Verdict::Interrupted => "interrupted",
            Verdict::NoTests => "no_tests",
            Verdict::Usage => "usage",
            Verdict::BuildError => "build_error",
        }
    }

    /// The verdict about two runs together.
    pub(crate) fn and(self, other: Verdict) -> Verdict {
        use Verdict::{BuildError, Fail, Infra, Interrupted, Mixed, NoTests, Pass, Usage};
        match (self, other) {
            (a, b) if a == b => a,
            (Mixed, _) | (_, Mixed) | (Infra, Fail) | (Fail, Infra) => Mixed,
            (Infra, _) | (_, Infra) => Infra,
            (Interrupted, _) | (_, Interrupted) => Interrupted,
            (BuildError, _) | (_, BuildError) => BuildError,
            (Fail, _) | (_, Fail) => Fail,
            (Usage, _) | (_, Usage) => Usage,
            (Pass, NoTests) | (NoTests, Pass) => Pass,
            (Pass | NoTests, _) => other,
        }
    }
}

/// Signs in the text, from which the verdict follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The runner itself failed.
    pub internal_error: bool,
    /// Ctrl-C, `pytest.exit`, a limit on the whole run.
    pub interrupted: bool,
    /// A wrong command line or configuration.
    pub usage: bool,
    /// It did not build.
    pub build_error: bool,
    /// A gate beside the tests was not met: coverage, the number of warnings.
    pub gate: bool,
    /// Tests were only listed.
    pub listed_only: bool,
    /// A process that ran tests died, or was ended.
    pub died: bool,
    /// It says that there was nothing to run.
    pub no_tests: bool,
    /// It ran nothing, and says why that is well: a file of tests that skips itself.
    pub excused: bool,
    /// Failures among [`Counts::failed`] that are crashes of the process that ran the test.
    pub crashes: u64,
}

/// What several runs that were gathered into one session were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// How many.
    pub runs: u64,
    /// The verdict about all of them.
    pub verdict: Verdict,
    /// Whether tests were failing in any of them.
    pub real: bool,
}

/// One run of one runner in a log.
#[derive(Clone, Debug)]
pub struct Session {
    /// The name in the table of runners.
    pub runner: &'static str,
    /// What was counted.
    pub counts: Counts,
    /// How long it took, by its own account.
    pub duration: Option<f64>,
    /// What failed. `None`: tests failed that the log does not name. Where the run did not come to its end:
    /// those it had named by then.
    pub failing: Option<Vec<Failing>>,
    /// What was running when it died.
    pub unfinished: Vec<String>,
    /// Workers that died.
    pub crashed_workers: Vec<String>,
    /// Whether several workers ran the tests.
    pub parallel: bool,
    /// The last test that was started or reported.
    pub last_test: Option<String>,
    /// The slowest tests, where the log lists them.
    pub slowest: Vec<Slow>,
    /// Whether its own summary was reached.
    pub complete: bool,
    /// The signs found.
    pub signs: Signs,
    /// What went wrong outside of the tests, for people: one sentence each.
    pub faults: Vec<String>,
    /// In a log of very many runs: this is several of them, and what they were.
    pub gathered: Option<Gathered>,
}

impl Session {
    /// A session of which nothing is known yet.
    pub fn new(runner: &'static str) -> Session {
        Session {
            runner,
            counts: Counts::default(),
            duration: None,
            failing: Some(Vec::new()),
            unfinished: Vec::new(),
            crashed_workers: Vec::new(),
            parallel: false,
            last_test: None,
            slowest: Vec::new(),
            complete: false,
            signs: Signs::default(),
            faults: Vec::new(),
            gathered: None,
        }
    }

    /// A session of a runner that counts no warnings, no subtests of its own, and in which nothing has happened
    /// yet.
    pub(crate) fn at_zero(runner: &'static str) -> Session {
        let zero = Counts::zero();
        let counts = Counts {
            warnings: None,
            subtests_passed: None,
            subtests_failed: None,
            subtests_skipped: None,
            ..zero
        };
        Session { counts, ..Session::new(runner) }
    }

    /// How many runs this is.
    pub fn runs(&self) -> u64 {
        self.gathered.map_or(1, |g| g.runs)
    }

    /// Whether tests are failing, not only what runs them.
    pub(crate) fn is_real(&self) -> bool {
        self.gathered.map_or_else(|| matches!(self.verdict(), Verdict::Fail | Verdict::Mixed), |g| g.real)
    }

    /// The verdict that follows from the text alone.
    pub fn verdict(&self) -> Verdict {
        if let Some(gathered) = self.gathered {
            return gathered.verdict;
        }
        let signs = &self.signs;
        if signs.build_error && !self.counts.any_result() {
            return Verdict::BuildError;
        }
        if signs.usage && !signs.internal_error && !self.counts.any_ran() {
            return Verdict::Usage;
        }
        let real = self.counts.bad() > signs.crashes || signs.gate || signs.build_error;
        let infra = signs.internal_error
            || signs.died
            || signs.crashes > 0
            || !self.crashed_workers.is_empty()
            || !self.complete;
        match (infra, real) {
            (true, true) => Verdict::Mixed,
            (true, false) => Verdict::Infra,
            (false, _) if signs.interrupted => Verdict::Interrupted,
            (false, true) => Verdict::Fail,
            (false, false) if signs.listed_only || signs.excused => Verdict::Pass,
            (false, false) if signs.no_tests => Verdict::NoTests,
            (false, false) if self.counts.nothing_ran() => Verdict::NoTests,
            (false, false) => Verdict::Pass,
        }
    }
}

/// What is known of a job beside its output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFacts {
    /// Whether it still runs.
    pub running: bool,
    /// Its exit status.
    pub exit_code: Option<i32>,
    /// The signal that ended it, `SIGKILL`.
    pub signal: Option<String>,
    /// `passed`, `failed`, `killed`, `timeout`, `crashed`.
    pub outcome: Option<String>,
    /// What was run.
    pub command: Option<Vec<String>>,
}

impl JobFacts {
    /// What a job's footer says.
    pub fn of_footer(footer: &tb_shared::contract::Footer) -> JobFacts {
        JobFacts {
            running: false,
            exit_code: footer.exit_code,
            signal: footer.signal.clone(),
            outcome: Some(footer.outcome.word().to_owned()),
            command: footer.header.read().map(|header| header.command),
        }
    }

    /// Whether the exit status says that all is well. `None`: it did not end by itself, or not yet.
    pub fn passed(&self) -> Option<bool> {
        match (self.running, &self.outcome, self.exit_code) {
            (true, ..) | (_, None, None) => None,
            (_, Some(outcome), _) => Some(outcome == "passed"),
            (_, None, Some(code)) => Some(code == 0 && self.signal.is_none()),
        }
    }
}

/// All that a log said.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The runs, in the log's order. Empty: the log is no test runner's.
    pub sessions: Vec<Session>,
    /// What is known of the job.
    pub job: Option<JobFacts>,
}

impl Report {
    /// The runner, or `mixed` for several.
    pub fn runner(&self) -> Option<&'static str> {
        let first = self.sessions.first()?.runner;
        Some(if self.sessions.iter().all(|s| s.runner == first) { first } else { "mixed" })
    }

    /// The counts of all runs.
    pub fn counts(&self) -> Counts {
        let Some((first, rest)) = self.sessions.split_first() else { return Counts::default() };
        rest.iter().fold(first.counts, |sum, s| sum.plus(&s.counts))
    }

    /// How long all runs took.
    pub fn duration(&self) -> Option<f64> {
        let (first, rest) = self.sessions.split_first()?;
        rest.iter().try_fold(first.duration?, |sum, s| Some(sum + s.duration?))
    }

    /// What failed in any run, each test once for each way.
    pub fn failing(&self) -> Option<Vec<&Failing>> {
        if self.sessions.is_empty() {
            return None;
        }
        let most = self.sessions.iter().flat_map(|s| &s.failing).map(Vec::len).sum();
        let mut seen = HashSet::with_capacity(most);
        let mut all = Vec::with_capacity(most);
        for session in &self.sessions {
            all.extend(session.failing.as_ref()?.iter().filter(|f| seen.insert((f.id.as_str(), f.outcome))));
        }
        Some(all)
    }

    /// Whether every run reached its end. A log that is no test runner's is complete when its job is over.
    pub fn complete(&self) -> bool {
        match (&self.job, self.sessions.is_empty()) {
            (job, true) => job.as_ref().is_some_and(|j| !j.running),
            (_, false) => self.sessions.iter().all(|s| s.complete),
        }
    }

    /// What the text alone says.
    pub fn verdict_of_text(&self) -> Option<Verdict> {
        self.sessions.iter().map(Session::verdict).reduce(Verdict::and)
    }

    /// The verdict: the exit status decides where it is known.
    pub fn verdict(&self) -> Option<Verdict> {
        let text = self.verdict_of_text();
        let Some(job) = &self.job else { return text };
        let Some(passed) = job.passed() else { return text };
        let real = self.sessions.iter().any(Session::is_real);
        let torn = job.signal.is_some()
            || job.exit_code.is_some_and(|c| c >= 128)
            || matches!(job.outcome.as_deref(), Some("killed" | "timeout" | "crashed"));
        Some(match (passed, torn, text) {
            (true, _, Some(Verdict::NoTests)) => Verdict::NoTests,
            (true, ..) => Verdict::Pass,
            (false, true, _) if real => Verdict::Mixed,
            (false, true, _) => Verdict::Infra,
            (false, false, None | Some(Verdict::Pass)) => Verdict::Fail,
            (false, false, Some(text)) => text,
        })
    }

    /// Where the exit status and the text say different things, in words.
    pub fn disagreement(&self) -> Option<String> {
        let (job, text) = (self.job.as_ref()?, self.verdict_of_text()?);
        let passed = job.passed()?;
        let text_passed = matches!(text, Verdict::Pass);
        // Nothing ran, and a job that was allowed to run nothing: no contradiction.
        if passed == text_passed || (passed && text == Verdict::NoTests) {
            return None;
        }
        let status = match (&job.signal, job.exit_code) {
            (Some(signal), _) => format!("ended by {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => job.outcome.clone().unwrap_or_default(),
        };
        Some(format!("{status}, but its output says {}", text.word()))
    }

    /// The slowest tests of all runs, the slowest first.
    pub fn slowest(&self) -> Vec<&Slow> {
        let mut all: Vec<&Slow> = self.sessions.iter().flat_map(|s| &s.slowest).collect();
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all
    }

    /// The last test that was started or reported.
    pub fn last_test(&self) -> Option<&str> {
        self.sessions.iter().rev().find_map(|s| s.last_test.as_deref())
    }
}
