//! The command line: timeout(1)'s, and what tb-guard adds.

use crate::interval;
use clap::Parser;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;
use tb_shared::contract::Leaks;
use tb_shared::term::parse_duration;

const EXAMPLES: &str = "\
Examples:
  tb-guard 10m pytest -x                      at most ten minutes; then all of it goes, workers and servers too
  tb-guard -k 30 10m make test                TERM, and KILL after 30 s
  tb-guard --stall 3m --dump 20m pytest       also when nothing happens for 3 min; say where it hung
  tb-guard --quiet-success --log out.log 8m pytest
                                              one line when all is well, the log when not
  out=$(tb-guard 5 ./server --daemonize)      returns when the time is up, whoever holds the pipe

DURATION is a number with s, m, h or d; 0 sets no limit. Time is the monotonic clock's: it stands still while the
machine is suspended.

When the time is up every process below COMMAND gets the signal, in whatever session or group it is, and KILL after
the grace; what ignores the signal (INT does not reach what a shell has put into the background) gets TERM when COMMAND
is gone. A second INT, TERM, HUP or QUIT at least half a second after the first means KILL now. What outlives a normal
end is stopped too, unless --leaks allow or --keep says otherwise. With -f only COMMAND is timed out; what it leaves is
what outlives an end. If tb-guard itself is killed, the tree goes with it. What cannot be killed (a process in state D,
another user's) is named, after the grace and 5 s at most.
Work that another daemon does for the command (docker, systemd-run, at, a tmux server) is not below it.

Signals that are blocked or ignored are so for COMMAND too, and one that was ignored is not handed on; but the one that
-s names arrives. In a script COMMAND is in a background group, as under timeout: Ctrl-C does not reach it, and a
terminal that it reads stops it until its time is up; -f leaves it in the caller's group.

--stall sees output as growth of the files that stdout and stderr are, and, where one of them is none, as bytes that the
tree's processes write anywhere (wchar of /proc/PID/io); it sees progress as CPU time above 1 % of one CPU. A busy silent
run is no stall; a spinning one is caught by DURATION, or by --stall-output, which ignores CPU time.

--dump writes, before the first signal, what each process does, the last test named in the output and for how long
nothing followed, and py-spy's stacks where that is on PATH; Pythons that handle ABRT (pytest's do) write their own.

Called under the name timeout it has timeout's options alone, and leaves what outlives a normal end.

Exit status: COMMAND's; 124 the time was up; 137 it was and KILL was needed and asked for (-k, -s KILL); 125 tb-guard
itself failed; 126 COMMAND cannot be executed; 127 it was not found; 1 with --leaks fail if something outlived a success.";

/// timeout(1)'s options.
#[derive(Clone, Debug, clap::Args)]
pub struct Gnu {
    /// Leave COMMAND in the caller's process group, and signal it alone
    #[arg(short = 'f', long)]
    pub foreground: bool,
    /// Send KILL this long after the first signal [default: $TB_KILL_GRACE or 5s]
    #[arg(short = 'k', long, value_name = "DURATION", value_parser = Interval)]
    pub kill_after: Option<Duration>,
    /// When the time is up, exit with COMMAND's own status
    #[arg(short = 'p', long)]
    pub preserve_status: bool,
    /// The signal when the time is up, by name or number [default: TERM]
    #[arg(short = 's', long, value_name = "SIGNAL", value_parser = signal, allow_hyphen_values = true)]
    pub signal: Option<i32>,
    /// Say each signal that is sent on standard error
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// DURATION COMMAND [ARG...]
    #[arg(value_name = "DURATION COMMAND [ARG]", trailing_var_arg = true)]
    pub operands: Vec<OsString>,
}

impl Gnu {
    /// The signal when the time is up.
    pub fn signal(&self) -> i32 {
        self.signal.unwrap_or(libc::SIGTERM)
    }
}

/// Under the name timeout.
#[derive(Debug, Parser)]
#[command(
    name = "timeout",
    version,
    about = "Run a command with a time limit",
    override_usage = "timeout [OPTION]... DURATION COMMAND [ARG]...",
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true
)]
pub struct Timeout {
    /// timeout's options.
    #[command(flatten)]
    pub gnu: Gnu,
    /// Print help
    #[arg(long, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
    /// Print version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Under its own name.
#[derive(Debug, Parser)]
#[command(
    name = "tb-guard",
    version,
    about = "timeout(1) that means it: when time is up the whole tree goes",
    override_usage = "tb-guard [OPTIONS] DURATION COMMAND [ARG...]",
    after_long_help = EXAMPLES,
    args_override_self = true
)]
pub struct Cli {
    /// timeout's options.
    #[command(flatten)]
    pub gnu: Gnu,
    /// What tb-guard adds.
    #[command(flatten)]
    pub more: More,
}

/// What tb-guard adds to timeout.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct More {
    /// Between the first signal and KILL, without -k's exit status
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// Also stop it when it makes neither output nor CPU progress for this long
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub stall: Option<Duration>,
    /// Also stop it when it makes no output for this long, busy or not
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub stall_output: Option<Duration>,
    /// Before it is stopped for time: say what runs, which test, and Python's tracebacks
    #[arg(long)]
    pub dump: bool,
    /// Its output goes straight to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// One line when all is well; the output, without progress, when not
    #[arg(long)]
    pub quiet_success: bool,
    /// First stop test processes in this work tree that nobody owns (tb-reap-orphans)
    #[arg(long)]
    pub sweep: bool,
    /// A line on standard error this often
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub heartbeat: Option<Duration>,
    /// Write what happened to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// What happens to processes that outlive it: stopped, that and a success becomes 1, left
    #[arg(long, value_enum, value_name = "kill|fail|allow", hide_possible_values = true)]
    pub leaks: Option<Leaks>,
    /// Spare processes whose command line matches: build daemons
    #[arg(long, value_name = "REGEX")]
    pub keep: Option<String>,
}

/// The command, for documentation.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Reads a duration as timeout does.
#[derive(Clone)]
struct Interval;

impl clap::builder::TypedValueParser for Interval {
    type Value = Duration;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        _: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Duration, clap::Error> {
        interval::parse(value)
            .map_err(|why| clap::Error::raw(clap::error::ErrorKind::InvalidValue, why).with_cmd(cmd))
    }
}

/// A signal as timeout takes it: a name, a number, a shell's status (137 is KILL), or 0 for none at all.
fn signal(text: &str) -> Result<i32, String> {
    if text.eq_ignore_ascii_case("EXIT") || text == "0" {
        return Ok(0);
    }
    let number = text.parse::<i32>().ok().map(|n| if n >= 128 { n - 128 } else { n });
    let text = number.map_or_else(|| text.to_owned(), |n| n.to_string());
    tb_shared::term::parse_signal(&text).map_err(|_| format!("invalid signal '{text}'"))
}

/// timeout's long options, among which an abbreviation is looked for first.
const GNU: [&str; 7] =
    ["foreground", "kill-after", "preserve-status", "signal", "verbose", "help", "version"];
/// tb-guard's own.
const OWN: [&str; 11] = [
    "grace",
    "stall",
    "stall-output",
    "dump",
    "log",
    "quiet-success",
    "heartbeat",
    "report",
    "leaks",
    "keep",
    "sweep",
];

/// Writes abbreviated long options out, as getopt_long(3) takes them, up to the first operand, and says where that is.
///
/// # Errors
/// `option '--s' is ambiguous`.
pub fn spelled_out(args: Vec<OsString>, own: bool) -> Result<Vec<OsString>, String> {
    let takes_value = |name: &str| {
        !["foreground", "preserve-status", "verbose", "help", "version", "dump", "quiet-success", "sweep"]
            .contains(&name)
    };
    let mut out = Vec::with_capacity(args.len() + 1);
    let mut args = args.into_iter();
    out.extend(args.next());
    while let Some(arg) = args.next() {
        let bytes = arg.as_bytes();
        if let Some(long) = bytes.strip_prefix(b"--").filter(|l| !l.is_empty()) {
            let end = long.iter().position(|&b| b == b'=').unwrap_or(long.len());
            let (name, value) = long.split_at(end);
            let name = String::from_utf8_lossy(name);
            let full = full_name(&name, own)?;
            let mut whole = OsString::from(format!("--{full}"));
            whole.push(OsStr::from_bytes(value));
            out.push(whole);
            if value.is_empty() && takes_value(full) {
                out.extend(args.next());
            }
        } else if bytes.len() > 1 && bytes[0] == b'-' && bytes != b"--" {
            // The letter that takes a value takes the rest of the word, or the next word.
            let at = bytes.iter().position(|b| b"ks".contains(b));
            let next_is_value = at.is_some_and(|at| at + 1 == bytes.len());
            out.push(arg);
            if next_is_value {
                out.extend(args.next());
            }
        } else {
            out.push("--".into());
            out.extend((bytes != b"--").then_some(arg));
            break;
        }
    }
    out.extend(args);
    Ok(out)
}

fn full_name(name: &str, own: bool) -> Result<&str, String> {
    for list in [&GNU[..], if own { &OWN[..] } else { &[] }] {
        if let Some(exact) = list.iter().find(|n| **n == name) {
            return Ok(exact);
        }
    }
    for list in [&GNU[..], if own { &OWN[..] } else { &[] }] {
        let mut fits = list.iter().filter(|n| n.starts_with(name));
        match (fits.next(), fits.next()) {
            (Some(one), None) => return Ok(one),
            (Some(_), Some(_)) => return Err(format!("option '--{name}' is ambiguous")),
            (None, _) => {}
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn spelled(args: &[&str], own: bool) -> Result<Vec<String>, String> {
        let args = std::iter::once("x").chain(args.iter().copied()).map(OsString::from).collect();
        spelled_out(args, own).map(|a| a.iter().skip(1).map(|s| s.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn abbreviations_are_looked_for_among_timeouts_options_first() {
        assert_eq!(spelled(&["--sig=KILL", "1", "x"], true).unwrap(), ["--signal=KILL", "--", "1", "x"]);
        assert_eq!(spelled(&["--s", "KILL", "1"], true).unwrap(), ["--signal", "KILL", "--", "1"]);
        assert_eq!(spelled(&["--st", "2s", "1"], true), Err("option '--st' is ambiguous".into()));
        assert_eq!(spelled(&["--stall", "2s", "1"], true).unwrap(), ["--stall", "2s", "--", "1"]);
        assert_eq!(spelled(&["--ve", "1"], true), Err("option '--ve' is ambiguous".into()));
        assert_eq!(spelled(&["--hea", "1"], true).unwrap()[0], "--heartbeat");
        assert_eq!(spelled(&["--he"], true).unwrap()[0], "--help");
        assert_eq!(spelled(&["--gr", "1", "1"], false).unwrap()[0], "--gr");
    }

    #[test]
    fn nothing_is_touched_after_the_first_operand() {
        assert_eq!(spelled(&["1", "--sig", "x"], true).unwrap(), ["--", "1", "--sig", "x"]);
        assert_eq!(spelled(&["-k", "1", "5", "cmd", "--fore"], true).unwrap()[5], "--fore");
        assert_eq!(spelled(&["-fk1", "5", "--fore"], true).unwrap(), ["-fk1", "--", "5", "--fore"]);
        assert_eq!(spelled(&["-vs", "9", "5", "-s"], true).unwrap(), ["-vs", "9", "--", "5", "-s"]);
        assert_eq!(spelled(&["--", "5", "cmd", "--fore"], true).unwrap(), ["--", "5", "cmd", "--fore"]);
        assert_eq!(spelled(&["5", "--", "cmd"], true).unwrap(), ["--", "5", "--", "cmd"]);
        assert_eq!(spelled(&["-", "x"], true).unwrap(), ["--", "-", "x"]);
    }

    #[test]
    fn values_that_are_not_utf_8_pass_through() {
        let bytes = |b: &[u8]| OsString::from_vec(b.to_vec());
        let args = vec!["x".into(), bytes(b"--lo=\xff"), "1".into(), bytes(b"\xfe")];
        let want = vec!["x".into(), bytes(b"--log=\xff"), "--".into(), "1".into(), bytes(b"\xfe")];
        assert_eq!(spelled_out(args, true), Ok(want));
    }

    #[test]
    fn signals_as_timeout_takes_them() {
        assert_eq!(signal("KILL"), Ok(9));
        assert_eq!(signal("137"), Ok(9));
        assert_eq!(signal("sigterm"), Ok(15));
        assert_eq!(signal("0"), Ok(0));
        assert_eq!(signal("EXIT"), Ok(0));
        assert_eq!(signal("RTMIN+1"), Ok(35));
        for bad in ["65", "99999", "invalid", ""] {
            assert!(signal(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_command_lines_are_sound() {
        command().debug_assert();
        <Timeout as clap::CommandFactory>::command().debug_assert();
    }
}
