//! The command line.

use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tb_shared::contract::Leaks;
use tb_shared::term::{Common, parse_duration};

const EXAMPLES: &str = "\
Examples:
  tb-launch tests/unit/test_foo.py                     python -m pytest tests/unit/test_foo.py -v
  tb-launch tests/unit/test_foo.py -- -x -k fast       with pytest's own arguments
  tb-launch --name gate -- make gate                   any command
  tb-launch -- ./long-check.sh                         under the next handle: job_1, job_2, …
  tb-launch --wait --timeout 10m tests/a.py            and wait: its verdict is the exit status
  tb-launch --max-live 2 --queue tests/a.py            when fewer than two jobs run here
  tb-launch --limit 8m --leaks fail tests/a.py         at most 8 minutes, and nothing may be left running

The interpreter is $TB_PYTHON, .venv/bin/python, $VIRTUAL_ENV/bin/python, python3 or python, the first there is.

The job goes on when the terminal closes and when the caller's process group is killed. Runners that kill whatever
outlives a command, or its whole cgroup (CI steps, agents' sandboxes, systemd units), kill a background job too: use
--foreground there, which stays attached, prints heartbeats, and treats INT, TERM and HUP as tb-kill.

A job must not open /dev/stderr or /dev/stdout with `>`: that cuts its log. `>&2` and `>>` do not.

Exit status: 0 launched, 2 bad usage or no such test file, 3 the name already runs, 6 too many jobs run, 124 no place
in the queue became free in time (nothing was launched), 125 the tool failed, 126 not
executable, 127 not found; with --wait and --foreground the job's: 0 passed, 1 failed, 5 no verdict, 124, 130.";

/// Start a test run in the background.
#[derive(Debug, Parser)]
#[command(
    name = "tb-launch",
    version,
    about = "Start a test run in the background",
    override_usage = "tb-launch [OPTIONS] TESTFILE [-- PYTEST_ARG...]\n       tb-launch [OPTIONS] [--name NAME] -- COMMAND [ARG...]",
    after_long_help = EXAMPLES
)]
pub struct Cli {
    /// What every tool takes.
    #[command(flatten)]
    pub common: Common,
    /// The test file, as pytest is to be given it
    #[arg(value_name = "TESTFILE")]
    pub testfile: Option<OsString>,
    /// pytest's arguments, or the command
    #[arg(last = true, value_name = "ARG")]
    pub rest: Vec<OsString>,
    /// The job's name [default: the test file, or the next handle]
    #[arg(long, value_name = "NAME")]
    pub name: Option<OsString>,
    /// Wait until it ends; Ctrl-C detaches, the job goes on
    #[arg(long)]
    pub wait: bool,
    /// With --wait: at most this long, the job goes on; with --queue: for a place [default: $TB_WAIT_TIMEOUT or 30m]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Stay attached with heartbeats until it ends; INT, TERM and HUP stop it
    #[arg(long, conflicts_with = "wait")]
    pub foreground: bool,
    /// Stop it after this long: outcome timeout
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// Stop it when it makes neither output nor CPU progress for this long: outcome timeout
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub stall: Option<Duration>,
    /// Before a limit or a stall stops it: write what runs and Python's tracebacks into the log
    #[arg(long)]
    pub dump: bool,
    /// Between TERM and KILL [default: $TB_KILL_GRACE or 5s]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// What happens to processes that outlive it: stopped and named, that and a pass becomes a fail, left
    #[arg(
        long,
        value_enum,
        value_name = "kill|fail|allow",
        default_value = "kill",
        hide_possible_values = true
    )]
    pub leaks: Leaks,
    /// Spare processes whose command line matches: build daemons
    #[arg(long, value_name = "REGEX")]
    pub keep: Option<String>,
    /// Set a variable in its environment (repeatable)
    #[arg(long, value_name = "K=V")]
    pub env: Vec<OsString>,
    /// Run it in this directory, as `cd DIR &&` would
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Let it use make's jobserver (with --wait or --foreground)
    #[arg(long)]
    pub jobserver: bool,
    /// Refuse while this many jobs run in the run directory [default: $TB_MAX_LIVE or no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_live: Option<u64>,
    /// Wait for a place instead, in order of arrival, at most as long as --timeout says
    #[arg(long)]
    pub queue: bool,
    /// pytest's exit status 5, nothing collected, is a pass
    #[arg(long)]
    pub allow_empty: bool,
    /// Keep about this much of its output, the newest, and give the oldest back to the disk (64K, 10M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = log_size)]
    pub max_log: Option<u64>,
    /// Begin lines of standard error with `[stderr] `; their order to standard output is then approximate, and all
    /// passes through the supervisor: if that is killed, the job's next line meets SIGPIPE
    #[arg(long)]
    pub tag_stderr: bool,
    /// Give it a terminal for standard output and error, so that it does not buffer; it is the supervisor's: if that
    /// is killed, the job is hung up
    #[arg(long)]
    pub pty: bool,
    /// Call `sh -c CMD` after its end, for at most 30 s, if it passed, failed or timed out: with TB_NAME, TB_OUTCOME,
    /// TB_EXIT_CODE, TB_SIGNAL, TB_LOG, TB_UNREAD_LINES, TB_LOG_DIR and TB_OWNER set; jobs that it launches stay
    #[arg(long, value_name = "CMD")]
    pub on_exit: Option<OsString>,
    /// First stop test processes in this work tree that nobody owns (tb-reap-orphans)
    #[arg(long)]
    pub sweep: bool,
    /// Create files by the umask, for others to read
    #[arg(long)]
    pub shared: bool,
}

/// A size that something fits into.
fn log_size(text: &str) -> Result<u64, String> {
    let size = tb_shared::term::parse_size(text)?;
    if size == 0 { Err("a log of no bytes holds nothing".to_owned()) } else { Ok(size) }
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}
