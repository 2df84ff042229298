//! What stands around every tool's `run`: arguments in, exit code out, no panic before a person.

use super::{Code, Failure, Result};
use crate::sys;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs a tool: resets SIGCHLD (a parent may have it ignored, and every wait would say ECHILD), prints a
/// failure in the common form, and turns a panic into a message and 125.
pub fn main<C: Into<ExitCode>>(tool: &'static str, run: fn(Vec<OsString>) -> Result<C>) -> ExitCode {
    sys::default_sigchld();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(|l| format!("{}:{}", l.file(), l.line())).unwrap_or_default();
        let what = info
            .payload()
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| info.payload().downcast_ref::<String>().cloned())
            .unwrap_or_default();
        super::say(tool, &format!("cannot go on: a fault in {tool} itself at {place}: {what}"));
    }));
    let outcome = std::panic::catch_unwind(|| run(std::env::args_os().collect()));
    match outcome {
        Ok(Ok(code)) => code.into(),
        Ok(Err(failure)) => {
            failure.print(tool);
            failure.code.into()
        }
        Err(_) => Code::Broken.into(),
    }
}

/// Parses arguments without any effect but the printing of `--help` and `--version`, for which the answer
/// is `None`: the tool is done.
///
/// # Errors
/// A usage failure that carries clap's own words and the usage line.
pub fn parse<C: clap::Parser>(args: &[OsString]) -> Result<Option<C>> {
    let error = match C::try_parse_from(args) {
        Ok(config) => return Ok(Some(config)),
        Err(error) => error,
    };
    if !error.use_stderr() {
        let mut out = std::io::stdout().lock();
        return match out.write_all(error.render().to_string().as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::cannot("write standard output", e))
            }
            _ => Ok(None),
        };
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim_end).filter(|l| !l.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut failure = Failure::usage("read the arguments", first.strip_prefix("error: ").unwrap_or(first));
    for line in lines {
        failure = failure.hint(line.trim_start());
    }
    Err(failure)
}
