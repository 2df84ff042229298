//! What is said and reported at the end, and the exit code: timeout's rules.

use crate::cli::{Gnu, More};
use crate::quiet::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use tb_shared::contract::{Leaks, Leftover, Reason};
use tb_shared::supervise::GuardEnd;
use tb_shared::sys;
use tb_shared::term::{Code, Failure, Result, say};

/// Everything that the end is told from.
pub(crate) struct Ending<'a> {
    pub(crate) me: &'a str,
    pub(crate) as_timeout: bool,
    pub(crate) gnu: &'a Gnu,
    pub(crate) more: &'a More,
    pub(crate) command: &'a [OsString],
    pub(crate) leaks: Leaks,
    pub(crate) end: &'a GuardEnd,
}

/// How the guard itself ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// With this status.
    Status(u8),
    /// Of the signal that the command died of.
    Signal(i32),
}

/// `--report`.
#[derive(Serialize)]
struct Report<'a> {
    v: u32,
    verdict: &'static str,
    reason: Option<Reason>,
    by: Option<&'a str>,
    command: Vec<String>,
    code: u8,
    exit_code: Option<i32>,
    signal: Option<String>,
    stopped_with: Option<String>,
    elapsed_seconds: Option<f64>,
    cpu_seconds: Option<f64>,
    max_rss_kb: Option<u64>,
    leaked: &'a [Leftover],
    nested: &'a [Leftover],
    survivors: &'a [Leftover],
    log_file: Option<String>,
}

impl Ending<'_> {
    /// Says what there is to say, writes the report, and gives the exit code (or dies of the command's signal).
    pub(crate) fn tell(&self, output: &Output) -> Result<ExitCode> {
        let program = self.command.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(errno) = self.end.exec_error {
            let cause = std::io::Error::from_raw_os_error(errno);
            if self.end.monitor_killed {
                return Err(Failure::cannot("start the command's monitor", cause));
            }
            let code = if errno == libc::ENOENT { Code::NotFound } else { Code::NotExecutable };
            self.report("error", code as u8, output)?;
            return Err(Failure::new(code, format!("failed to run command '{program}': {cause}")));
        }
        let exit = self.exit();
        let code = match exit {
            Exit::Status(code) => code,
            Exit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(255),
        };
        if self.end.core {
            say(self.me, "the monitored command dumped core");
        }
        if !self.as_timeout {
            self.say_what_happened();
        }
        let verdict = match (self.end.timed_out, code, exit) {
            (true, ..) => "timeout",
            (_, 0, _) => "passed",
            _ if matches!(self.end.reason, Some(Reason::Kill | Reason::Outer)) => "killed",
            _ => "failed",
        };
        self.report(verdict, code, output)?;
        if output.quiet {
            // A reader that went away is nothing to fail for: the command's status stands.
            let _ = self.show(output, code);
        }
        if let Exit::Signal(signal) = exit {
            sys::die_of(signal);
        }
        Ok(ExitCode::from(code))
    }

    /// timeout's table of exit statuses.
    fn exit(&self) -> Exit {
        let end = self.end;
        if end.monitor_killed {
            return Exit::Status(Code::Broken as u8);
        }
        let status = match (end.exit_code, end.signal) {
            (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(255),
            (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(255),
            // It could not be stopped: whatever it will say is not known.
            (None, None) => Code::TimeUp as u8,
        };
        if end.timed_out {
            let asked = self.gnu.kill_after.is_some() || self.gnu.signal == libc::SIGKILL;
            let killed = end.signal == Some(libc::SIGKILL) && asked;
            return Exit::Status(if self.gnu.preserve_status || killed {
                status
            } else {
                Code::TimeUp as u8
            });
        }
        if let (None, Some(signal)) = (end.exit_code, end.signal) {
            return Exit::Signal(signal);
        }
        if status == 0 && end.leaks && self.leaks == Leaks::Fail {
            return Exit::Status(Code::Failed as u8);
        }
        Exit::Status(status)
    }

    fn say_what_happened(&self) {
        let end = self.end;
        let list = |what: &str, list: &[Leftover]| {
            for left in list {
                say(self.me, &format!("{what}: {} {} ({})", left.pid, left.command, left.why));
            }
        };
        if end.monitor_killed {
            say(self.me, "the monitor was killed; the command and all below it were stopped");
        }
        if end.timed_out {
            let by = end.by.as_deref().unwrap_or("the limit");
            let with = end.strongest.map(sys::signal_name).unwrap_or_default();
            say(self.me, &format!("time is up ({by}): stopped with {with}"));
        }
        let left = if self.leaks == Leaks::Allow { "left" } else { "stopped" };
        list(left, &end.leaked);
        list("nested", &end.nested);
        list("cannot stop", &end.survivors);
    }

    /// `--quiet-success`: one line when all is well, the rest when not.
    fn show(&self, output: &Output, code: u8) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        let command: Vec<String> = self.command.iter().map(|c| c.to_string_lossy().into_owned()).collect();
        let command = command.join(" ");
        let took = self.end.elapsed.map(|s| format!(" in {s:.1}s")).unwrap_or_default();
        let log = output.log.as_ref().map(|p| format!(" Log: {}", p.display())).unwrap_or_default();
        if code == 0 {
            return writeln!(out, "PASS: {command}{took}.{log}");
        }
        if self.end.timed_out {
            for line in output.last_lines()? {
                writeln!(out, "  {line}")?;
            }
            return writeln!(out, "TIMEOUT: {command}{took}, exit {code}.{log}");
        }
        output.show(&mut out)?;
        writeln!(out, "FAIL: {command}{took}, exit {code}.{log}")
    }

    fn report(&self, verdict: &'static str, code: u8, output: &Output) -> Result<()> {
        let Some(path) = &self.more.report else { return Ok(()) };
        let end = self.end;
        let report = Report {
            v: 1,
            verdict,
            reason: end.reason,
            by: end.by.as_deref(),
            command: self.command.iter().map(|c| c.to_string_lossy().into_owned()).collect(),
            code,
            exit_code: end.exit_code,
            signal: end.signal.map(sys::signal_name),
            stopped_with: end.strongest.map(sys::signal_name),
            elapsed_seconds: end.elapsed,
            cpu_seconds: end.cpu,
            max_rss_kb: end.max_rss_kb,
            leaked: &end.leaked,
            nested: &end.nested,
            survivors: &end.survivors,
            log_file: output.log.as_ref().map(|p| p.to_string_lossy().into_owned()),
        };
        let doing = || format!("write the report {}", path.display());
        let text = serde_json::to_string(&report).map_err(|e| Failure::cannot(doing(), e))?;
        std::fs::write(path, text + "\n").map_err(|e| Failure::cannot(doing(), e))?;
        Ok(())
    }
}
