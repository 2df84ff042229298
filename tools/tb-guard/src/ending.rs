//! What is said and reported at the end, and the exit code: timeout's rules.

use crate::cli::{Gnu, More};
use crate::quiet::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use tb_shared::contract::{Leaks, Leftover, Reason};
use tb_shared::supervise::GuardEnd;
use tb_shared::sys;
use tb_shared::term::{Code, Failure, Result, cause, say};

/// Everything that the end is told from.
pub(crate) struct Ending<'a> {
    pub(crate) me: &'a str,
    pub(crate) as_timeout: bool,
    pub(crate) gnu: &'a Gnu,
    pub(crate) more: &'a More,
    pub(crate) command: &'a [OsString],
    pub(crate) leaks: Leaks,
    pub(crate) end: &'a GuardEnd,
    /// The file of `--report`.
    pub(crate) report: Option<File>,
}

/// Makes the file of `--report`: an end that cannot be reported is known before anything is started.
pub(crate) fn report_file(more: &More) -> Result<Option<File>> {
    let Some(path) = &more.report else { return Ok(None) };
    let made = File::create(path);
    made.map(Some).map_err(|e| Failure::cannot(format!("write the report {}", path.display()), cause(&e)))
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
    stopped: &'a [Leftover],
    log_file: Option<String>,
}

impl Ending<'_> {
    /// Says what there is to say, writes the report, and gives the exit code (or dies of the command's signal).
    pub(crate) fn tell(&self, output: &Output) -> Result<ExitCode> {
        let program = self.command.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(errno) = self.end.exec_error {
            let cause = cause(&std::io::Error::from_raw_os_error(errno));
            if self.end.monitor_killed {
                return Err(Failure::cannot("start the command", cause));
            }
            let code = if errno == libc::ENOENT { Code::NotFound } else { Code::NotExecutable };
            self.report("error", None, code as u8, output)?;
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
        let own = self.is_fault_of_leaks();
        let reason = if own { Some(Reason::Leaks) } else { self.end.reason };
        let verdict = match reason {
            Some(Reason::Limit | Reason::Stall) => "timeout",
            Some(Reason::Kill | Reason::Outer) => "killed",
            _ if code == 0 => "passed",
            _ => "failed",
        };
        if output.quiet {
            // A reader that went away is nothing to fail for: the command's status stands.
            let _ = self.show(output, code);
        }
        self.report(verdict, reason, code, output)?;
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
            let asked = self.gnu.kill_after.is_some() || self.gnu.signal() == libc::SIGKILL;
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
        Exit::Status(if self.is_fault_of_leaks() { Code::Failed as u8 } else { status })
    }

    /// Whether the command succeeded, and what it left behind makes that a failure.
    fn is_fault_of_leaks(&self) -> bool {
        let end = self.end;
        let passed = end.exit_code == Some(0) && end.reason == Some(Reason::Exit);
        passed && end.leaks && self.leaks == Leaks::Fail
    }

    fn say_what_happened(&self) {
        let end = self.end;
        let list = |what: &str, list: &[Leftover]| {
            for left in list {
                // A list that was cut, or could not be made, ends in an entry that is no process.
                say(
                    self.me,
                    &match left.pid {
                        0 => format!("{what}: {}", left.why),
                        pid => format!("{what}: {pid} {} ({})", left.command, left.why),
                    },
                );
            }
        };
        if end.monitor_killed {
            say(self.me, "the monitor was killed; the command and all below it were stopped");
        }
        if end.timed_out {
            let by = end.by.as_deref().unwrap_or("the limit");
            let with = end.strongest.map(sys::signal_name).unwrap_or_default();
            say(self.me, &format!("time is up ({by}): stopped with {with}"));
            if end.stood {
                say(
                    self.me,
                    "it stood still (state T): a terminal stops who reads or sets it in the background",
                );
            }
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
        let log = output.log.as_ref().map(|p| format!("Log: {}", p.display()));
        if code == 0 {
            let log = log.map(|log| format!(" {log}")).unwrap_or_default();
            return writeln!(out, "PASS: {command}{took}.{log}");
        }
        if self.end.timed_out {
            writeln!(out, "TIMEOUT: {command}{took}, exit {code}")?;
            for line in output.last_lines()? {
                writeln!(out, "  {line}")?;
            }
        } else {
            let failed = output.show(&mut out)?;
            writeln!(out, "FAIL: {command}{took}, exit {code}")?;
            for id in failed {
                writeln!(out, "  {id}")?;
            }
        }
        let Some(log) = log else { return Ok(()) };
        writeln!(out, "{log}\n  tb-results --grep CLASS shows one class of error there, with its context")
    }

    fn report(&self, verdict: &'static str, reason: Option<Reason>, code: u8, output: &Output) -> Result<()> {
        let (Some(path), Some(mut file)) = (&self.more.report, self.report.as_ref()) else { return Ok(()) };
        let end = self.end;
        let report = Report {
            v: 1,
            verdict,
            reason,
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
            stopped: &end.stopped,
            log_file: output.log.as_ref().map(|p| p.to_string_lossy().into_owned()),
        };
        let doing = || format!("write the report {}", path.display());
        let text = serde_json::to_string(&report).map_err(|e| Failure::cannot(doing(), e))?;
        file.write_all((text + "\n").as_bytes()).map_err(|e| Failure::cannot(doing(), cause(&e)))
    }
}
