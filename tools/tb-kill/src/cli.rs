//! The command line.

use clap::Parser;
use std::time::Duration;
use tb_shared::term::{Common, Names, parse_duration};

const EXAMPLES: &str = "\
Examples:
  tb-kill tests/unit/test_foo.py           TERM to all of it, KILL to what is left after 5 s
  tb-kill --grace 30s tests/slow.py        with more time for fixtures to clean up
  tb-kill --signal INT tests/a.py          INT first: pytest prints what it has
  tb-kill --all                            every running job of this scope

What is stopped is the job's whole tree, in whatever session or group, and nothing else. Output up to the kill stays
in the log. A job that had ended by itself is reported as what it was.

Exit status: 0 none of them runs any more, 4 not tracked, 7 something is left (named).";

/// Stop background jobs, all of each.
#[derive(Debug, Parser)]
#[command(name = "tb-kill", version, about = "Stop background jobs, all of each", after_long_help = EXAMPLES)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// Which jobs.
    #[command(flatten)]
    pub names: Names,
    /// Between the first signal and KILL [default: $TB_KILL_GRACE or 5s]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// The first signal
    #[arg(long, value_name = "SIG", default_value = "TERM", value_parser = tb_shared::term::parse_signal)]
    pub signal: i32,
    /// Every running job of the scope; one that contains this command is skipped
    #[arg(long, conflicts_with_all = ["names", "stdin_names"])]
    pub all: bool,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
