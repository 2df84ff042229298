//! The command line.

use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;
use tb_shared::sweep::argv::Kind;
use tb_shared::term::{Common, parse_duration};

const EXAMPLES: &str = "\
Examples:
  tb-reap-orphans                          stop pytest's orphans of this work tree
  tb-reap-orphans --dry-run                only say what would be stopped, and why
  tb-reap-orphans --kind pytest --kind cargo --older 30m
  tb-reap-orphans --match 'temporal-sdk'   also orphans whose command line matches
  tb-reap-orphans --cwd ../other-tree      in another directory and below

Taken is a test process that nobody owns and that works in this work tree: its session's leader is gone, or it was
adopted by an init, or it is a worker of pytest-xdist without its controller. What counts is how its arguments are
read, not that they mention a runner: an editor, a grep, a shell with `-c pytest` are none. Evidence that a process
belonged to a job of these tools which is over counts as well. With each goes all that is below it, by TERM and, after
the grace, by KILL; then it is looked again until two looks find nothing.

Never taken: this command and what it runs under; the processes of running jobs, of whatever run directory; what a job
left on purpose (tb-launch --leaks allow, --keep); what a live PID file names; supervisors; other users' processes.
A job whose supervisors were killed runs unsupervised, and is taken with --unsupervised only.

Exit status: 0 none is left, 7 some are (uninterruptible, another user's: named); with --dry-run 1 if something was
found; 2 usage.";

/// Stop test processes that nobody owns.
#[derive(Debug, Parser)]
#[command(name = "tb-reap-orphans", version, about = "Stop test processes that nobody owns", after_long_help = EXAMPLES)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// Only say what would be stopped; exit 1 if there is something
    #[arg(long)]
    pub dry_run: bool,
    /// Whose test processes: may be repeated
    #[arg(long = "kind", value_enum, value_name = "KIND", default_value = "pytest", value_delimiter = ',')]
    pub kinds: Vec<Kind>,
    /// Also orphans whose command line (joined by spaces) matches
    #[arg(long = "match", value_name = "REGEX")]
    pub pattern: Option<String>,
    /// In this directory and below instead of the current work tree
    #[arg(long, value_name = "DIR", conflicts_with = "any_cwd")]
    pub cwd: Option<PathBuf>,
    /// Wherever they work
    #[arg(long)]
    pub any_cwd: bool,
    /// Only what is at least this old
    #[arg(long, value_name = "DUR", value_parser = parse_duration, default_value = "0")]
    pub older: Duration,
    /// Between TERM and KILL [default: $TB_KILL_GRACE or 5s]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// Also jobs that run without supervisors, in this scope
    #[arg(long)]
    pub unsupervised: bool,
    /// Also other users' processes: for root
    #[arg(long)]
    pub all_users: bool,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
