//! The command line.

use clap::Parser;
use tb_shared::term::{Common, Names};

const EXAMPLES: &str = "\
Examples:
  tb-clean                            all finished jobs leave the list; stale PID files go
  tb-clean tests/unit/test_foo.py     that one

Nothing that runs is touched, and no log is removed. Given its name, every tool works on a collected job as before.

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
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
