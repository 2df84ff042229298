//! The command line.

use clap::Parser;
use std::time::Duration;
use tb_shared::term::{Common, Names, parse_duration};

const EXAMPLES: &str = "\
Examples:
  tb-status                                  all jobs that were not collected
  tb-status tests/unit/test_foo.py           one job, with its last 15 lines
  tb-status -n 50 tests/unit/test_foo.py     the same with 50
  tb-status --failed --print0 | xargs -0 tb-results --failed --
  tb-status --json tests/unit/test_foo.py    one object, for programs
  tb-status --watch                          the list, as it changes

Exit status: of one name 0 passed, 1 failed, 3 running, 4 not tracked, 5 no verdict; of several the worst; of a
list 0.

A job that opens /dev/stderr or /dev/stdout with `>` cuts its own log: its header is then said to be lost.";

/// Look at background jobs, without waiting.
#[derive(Debug, Parser)]
#[command(name = "tb-status", version, about = "Look at background jobs, without waiting", after_long_help = EXAMPLES)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// Which jobs.
    #[command(flatten)]
    pub names: Names,
    /// How many of a job's last lines
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 15)]
    pub lines: usize,
    /// Only jobs that run
    #[arg(long, conflicts_with = "finished")]
    pub running: bool,
    /// Only jobs that are over
    #[arg(long)]
    pub finished: bool,
    /// Only jobs that passed
    #[arg(long, conflicts_with = "running")]
    pub passed: bool,
    /// Only jobs that are over and did not pass
    #[arg(long, conflicts_with_all = ["running", "passed"])]
    pub failed: bool,
    /// Only jobs launched within this time
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub since: Option<Duration>,
    /// Also jobs whose results were collected
    #[arg(long)]
    pub all: bool,
    /// Look again and again: redrawn every second on a terminal, elsewhere a line for each change; until Ctrl-C, or
    /// until the named jobs are over
    #[arg(short = 'w', long, conflicts_with_all = ["names_only", "print0"])]
    pub watch: bool,
    /// Print names only, one a line
    #[arg(long = "names", conflicts_with = "print0")]
    pub names_only: bool,
    /// Print names only, each ended by NUL
    #[arg(long)]
    pub print0: bool,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
