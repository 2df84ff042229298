//! The command line.

use clap::Parser;
use std::time::Duration;
use tb_shared::term::{Common, Names, parse_duration};

const EXAMPLES: &str = "\
Examples:
  tb-wait tests/unit/test_foo.py                 until it ends; its verdict is the exit status
  tb-wait --timeout 10m a.py b.py                at most 10 minutes for both; the jobs go on
  tb-wait --any a.py b.py                        until the first of them ends
  tb-wait --timeout 10m --kill-on-timeout a.py   and stop what still runs then

Exit status: 0 passed, 1 failed, 4 not tracked, 5 no verdict, 124 the time is up, 130 interrupted (the jobs go on);
of several the worst.";

/// Wait until background jobs end.
#[derive(Debug, Parser)]
#[command(name = "tb-wait", version, about = "Wait until background jobs end", after_long_help = EXAMPLES)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// Which jobs.
    #[command(flatten)]
    pub names: Names,
    /// End with the first job that ends
    #[arg(long)]
    pub any: bool,
    /// Wait at most this long [default: $TB_WAIT_TIMEOUT or 30m]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Between heartbeat lines on standard error, which a terminal shows as bars; 0 is none [default: $TB_HEARTBEAT or 30s]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub heartbeat: Option<Duration>,
    /// Stop the jobs that still run when the time is up
    #[arg(long)]
    pub kill_on_timeout: bool,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
