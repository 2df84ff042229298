//! `tb-guard`: timeout(1) that means it.

pub mod cli;
mod ending;
pub mod interval;
mod quiet;

use cli::{Cli, Gnu, More, Timeout};
use ending::Ending;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tb_shared::contract::Leaks;
use tb_shared::supervise::{GuardPlan, Heartbeat, Spare, StallLimits, guard};
use tb_shared::term::{self, Code, Failure, Result};

/// Runs the tool. Its exit code is the command's own, or one of timeout's.
///
/// # Errors
/// None: failures are said under the name that the tool was called by.
pub fn run(args: Vec<OsString>) -> Result<ExitCode> {
    let me = args
        .first()
        .and_then(|a| Path::new(a).file_name())
        .map_or_else(|| "tb-guard".to_owned(), |name| name.to_string_lossy().into_owned());
    match guarded(&me, args) {
        Ok(code) => Ok(code),
        Err(mut failure) => {
            if failure.code == Code::Usage {
                // One pointer to the help is enough.
                failure.hints.retain(|hint| !hint.contains("--help") && !hint.starts_with("tip:"));
                failure = failure.hint(format!("Try '{me} --help' for more information."));
            }
            failure.print(&me);
            // timeout's usage errors are 125, like its other failures.
            let code = if failure.code == Code::Usage { Code::Broken } else { failure.code };
            Ok(code.into())
        }
    }
}

fn guarded(me: &str, args: Vec<OsString>) -> Result<ExitCode> {
    let as_timeout = me == "timeout";
    let args =
        cli::spelled_out(args, !as_timeout).map_err(|why| Failure::usage("read the arguments", why))?;
    let (gnu, more) = if as_timeout {
        let Some(parsed) = term::parse::<Timeout>(&args)? else { return Ok(ExitCode::SUCCESS) };
        (parsed.gnu, More::default())
    } else {
        let Some(parsed) = term::parse::<Cli>(&args)? else { return Ok(ExitCode::SUCCESS) };
        (parsed.gnu, parsed.more)
    };
    let [duration, command @ ..] = gnu.operands.as_slice() else {
        return Err(missing("DURATION", me));
    };
    if command.is_empty() {
        return Err(missing("COMMAND", me));
    }
    let limit = interval::parse(duration).map_err(|why| Failure::usage("read the duration", why))?;
    if more.sweep {
        tb_shared::sweep::before_a_run(me, term::kill_grace(more.grace)?)
            .map_err(|failure| failure.code(Code::Broken))?;
    }
    let output = quiet::Output::of(&more)?;
    let report = ending::report_file(&more)?;
    let plan = plan(me, as_timeout, &gnu, &more, command, limit, &output)?;
    let leaks = plan.leaks;
    let end = guard(plan)?;
    let ending = Ending { me, as_timeout, gnu: &gnu, more: &more, command, leaks, end: &end, report };
    ending.tell(&output)
}

fn missing(what: &str, me: &str) -> Failure {
    Failure::usage("read the arguments", format!("{what} is missing"))
        .hint(format!("{me} [OPTION]... DURATION COMMAND [ARG]..."))
}

fn plan(
    me: &str,
    as_timeout: bool,
    gnu: &Gnu,
    more: &More,
    command: &[OsString],
    limit: Duration,
    output: &quiet::Output,
) -> Result<GuardPlan> {
    let spare = match &more.keep {
        None => None,
        Some(pattern) => {
            let regex = regex::Regex::new(pattern).map_err(|e| Failure::usage("use --keep", e))?;
            Some(Box::new(move |command: &str| regex.is_match(command)) as Spare)
        }
    };
    let grace = match gnu.kill_after {
        // timeout's -k 0 switches KILL off.
        Some(Duration::ZERO) => Duration::MAX,
        Some(after) => after,
        None => term::kill_grace(more.grace)?,
    };
    let heartbeat = more.heartbeat.filter(|every| !every.is_zero()).map(|every| Heartbeat {
        every,
        beat: beat(command.first().map_or(OsStr::new(""), OsString::as_os_str)),
    });
    Ok(GuardPlan {
        command: command.to_vec(),
        limit: (!limit.is_zero()).then_some(limit),
        signal: gnu.signal(),
        signal_named: gnu.signal.is_some(),
        grace,
        kill_after: gnu.kill_after.is_some_and(|k| !k.is_zero()),
        foreground: gnu.foreground,
        leaks: more.leaks.unwrap_or(if as_timeout { Leaks::Allow } else { Leaks::Kill }),
        spare,
        stall: StallLimits { any: more.stall, output: more.stall_output },
        dump: more.dump,
        output: output.for_command()?,
        list_stopped: more.report.is_some(),
        verbose: gnu.verbose.then(|| me.to_owned()),
        heartbeat,
    })
}

/// A line a beat, so that a hung run does not look like a dead terminal.
fn beat(program: &OsStr) -> Box<dyn FnMut(Duration)> {
    let program = program.to_string_lossy().into_owned();
    Box::new(move |passed| {
        let clock = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
        let line = format!("[{clock}] {program}: still running [{}s elapsed]\n", passed.as_secs());
        // Nobody may be reading: the guard goes on.
        term::say_within(line.as_bytes(), Duration::ZERO);
    })
}
