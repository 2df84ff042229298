//! The command line.

use clap::Parser;
use tb_shared::term::{Common, Names, parse_size};

const EXAMPLES: &str = "\
Examples:
  tb-log tests/unit/test_foo.py                   its last 100 lines
  tb-log --all tests/unit/test_foo.py | less      all of them
  tb-log --new tests/unit/test_foo.py             what was written since the last --new
  tb-log --new --cursor me --json a.py b.py       the same for a reader of its own, as objects
  tb-log --follow tests/unit/test_foo.py          as it is written, until the job ends; then its exit status
  tb-log --filter 'Error|FAILED' tests/a.py       the lines in which the pattern is found

--new hands each line out once: the readers of one cursor share the lines between them, whatever they do at the same
time. A cursor is an id (--cursor, else the owner, else `-`) and a run: after a new launch of a name the rest of the
earlier run comes first, then the new one. A last line without its newline waits until it is complete or the job is
over. What could not be written (`| head`) comes again, unless another reader has been given what follows it. A reader
that is killed has had its lines: the log still holds them.

A line is shown whole unless --max-line says otherwise; with --json 64K of it. Lines of the tools themselves (header,
footer) are no output; phases are. What is written after a job's end is shown as such. Memory does not grow with a log
or its lines, but --filter holds a line as a whole. With --json each run is one object, whose lines are written as they
are read; several are then followed one after the other.

A job that opens /dev/stderr or /dev/stdout with `>` cuts its own log: reading begins again at the log's beginning and
says so. It is noticed by the header that is gone or by other bytes where the last line was.

Exit status: 0 done, 2 a bad pattern (nothing is consumed), 4 not tracked; with --follow the job's: 0 passed, 1 failed,
5 no verdict, 130 interrupted (the job goes on).";

/// Read the output of background jobs.
#[derive(Debug, Parser)]
#[command(name = "tb-log", version, about = "Read the output of background jobs", after_long_help = EXAMPLES)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// Which jobs.
    #[command(flatten)]
    pub names: Names,
    /// The last lines; with --filter, of those that match [default: 100; with --filter all]
    #[arg(short = 'n', long, value_name = "LINES", conflicts_with_all = ["all", "new"])]
    pub lines: Option<usize>,
    /// All lines
    #[arg(long, conflicts_with = "new")]
    pub all: bool,
    /// Lines that this cursor has not been given yet
    #[arg(long)]
    pub new: bool,
    /// The cursor [default: the owner, else -]
    #[arg(long, value_name = "ID", requires = "new")]
    pub cursor: Option<String>,
    /// The run with this id, not the latest
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Go on as lines are written, until the job ends
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Show only lines in which this regular expression is found
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Show at most this much of a line; 0 is no limit [default: none; with --json 64K]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub max_line: Option<u64>,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
