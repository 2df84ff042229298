//! What a user may type.

use std::ffi::OsString;
use std::path::PathBuf;
use tb_shared::term::Color;

const EXAMPLES: &str = "\
Examples:
  tb-results tests/unit/test_foo.py          what the job's run said
  tb-results build/test.log ci.log           the same of logs from anywhere
  gh run view --log | tb-results -           and of a pipe
  tb-results --failed job_3 | head           ids of what failed
  eval \"$(tb-results --rerun job_3)\"         run what failed again, serially
  tb-results --grep TimeoutError test.log    every line that names it, with its surroundings
  tb-results --diff old.log new.log          newly failing, fixed, still failing, failing differently

A number is read from the runner's own summary; where the log cannot tell, it says `?` (JSON: null), never 0.
The exit status of a job decides over its text, and where they disagree both are shown.

Exit status: 0 passed; 1 failed; 2 usage; 3 still running; 4 no such job; 5 a log that does not reach its end.";

/// Say what a test run said: counts, what failed and why, what died.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "tb-results", version, after_long_help = EXAMPLES, max_term_width = 110)]
pub struct Args {
    /// A job's name, a log (a file that ends in .log, .xml or .jsonl and is no job's name), or - for standard input
    #[arg(value_name = "NAME|LOG|-")]
    pub targets: Vec<OsString>,

    /// Read this file, whatever its name
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,

    /// Whose output it is; auto finds out: pytest, unittest, cargo-test, nextest, go, jest, vitest, mocha, node-test,
    /// tap, bats, ctest, gtest, rspec, surefire, gradle, or junitxml for a report in XML
    #[arg(long, value_name = "RUNNER", default_value = "auto")]
    pub format: String,

    /// What to print, if not the usual summary
    #[command(flatten)]
    pub mode: ModeArgs,

    /// One JSON object a line for each job or log
    #[arg(long)]
    pub json: bool,

    /// The log's text too: as raw_output with --json, instead of the summary without
    #[arg(long)]
    pub raw: bool,

    /// Do not mark the job as collected
    #[arg(long)]
    pub keep: bool,

    /// Where jobs are recorded
    #[command(flatten)]
    pub scope: ScopeArgs,

    /// Read names from standard input, one a line
    #[arg(long, conflicts_with_all = ["targets", "files"])]
    pub stdin_names: bool,

    /// With --stdin-names: names end in NUL
    #[arg(short = '0', requires = "stdin_names")]
    pub null: bool,

    /// When to colour
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub color: Color,
}

/// The modes; at most one.
#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false)]
pub struct ModeArgs {
    /// Ids of failing tests, one a line
    #[arg(long)]
    pub failed: bool,

    /// Failures by exception class: how many, and the first place
    #[arg(long)]
    pub errors: bool,

    /// The slowest tests
    #[arg(long, value_name = "N")]
    pub slowest: Option<usize>,

    /// A command line that runs what failed again, serially
    #[arg(long)]
    pub rerun: bool,

    /// A JUnit XML document
    #[arg(long)]
    pub junit: bool,

    /// Four fields: TESTFILE, RESULT, SUMMARY, EVIDENCE
    #[arg(long)]
    pub report: bool,

    /// Against the run before (of two logs: the second against the first)
    #[arg(long)]
    pub diff: bool,

    /// Every line that names this exception class, 2 lines before, 10 after
    #[arg(long, value_name = "CLASS")]
    pub grep: Option<String>,

    /// Annotations for a CI system
    #[arg(long, value_name = "SYSTEM", value_enum)]
    pub annotate: Option<Annotate>,
}

/// Systems that annotations can be written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Annotate {
    /// GitHub Actions' workflow commands.
    Github,
}

/// Which jobs are meant.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ScopeArgs {
    /// The run directory
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,

    /// Only this owner's jobs
    #[arg(long, value_name = "NAME", conflicts_with = "all_owners")]
    pub owner: Option<String>,

    /// Everybody's jobs
    #[arg(long)]
    pub all_owners: bool,
}

/// The command, for manual pages and completions.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}
