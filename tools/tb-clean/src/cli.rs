//! The command line.

use clap::Parser;
use std::time::Duration;
use tb_shared::term::{Common, Names, parse_duration};

const EXAMPLES: &str = "\
Examples:
  tb-clean                            all finished jobs leave the list; stale PID files go
  tb-clean tests/unit/test_foo.py     that one
  tb-clean --logs --keep 20           and of all logs only the 20 that ended last are kept
  tb-clean --logs --older 7d          and those go that ended more than a week ago

Nothing that runs is touched. Given its name, every tool works on a collected job as before. Logs go only with --logs,
in the order in which their jobs ended (one without a record: by its file's name), each with its cursors; a running
job's stays, and so does the newest of each name.

Exit status: 0 done, 3 the named job runs, 4 not tracked.";

/// Forget finished jobs.
#[derive(Debug, Parser)]
#[command(name = "tb-clean", version, about = "Forget finished jobs", after_long_help = EXAMPLES)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// Which jobs.
    #[command(flatten)]
    pub names: Names,
    /// Remove logs, too: --keep or --older says which
    #[arg(long, requires = "which")]
    pub logs: bool,
    /// Keep the logs that ended last, this many
    #[arg(long, value_name = "N", group = "which", requires = "logs")]
    pub keep: Option<usize>,
    /// Remove logs that ended longer ago than this
    #[arg(long, value_name = "DUR", group = "which", requires = "logs", value_parser = parse_duration)]
    pub older: Option<Duration>,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
