//! The command line that runs what failed again, serially.

use crate::report::{Report, Session};
use crate::runner;
use std::collections::HashSet;
use tb_shared::term::{Code, Failure, Result};

/// What a runner needs to know to write its command line.
#[derive(Debug)]
pub struct Again<'a> {
    /// The tests, each once.
    pub ids: Vec<&'a str>,
    /// What was run, where that is known.
    pub command: Option<&'a [String]>,
    /// Whether the run was spread over several workers.
    pub parallel: bool,
}

/// A shell-quoted command line for each runner that has something to run again.
///
/// # Errors
/// When tests failed that the log does not name.
pub fn lines(report: &Report) -> Result<Vec<String>> {
    let mut runners: Vec<&'static str> = Vec::new();
    for session in &report.sessions {
        if session.failing.is_none() {
            return Err(Failure::new(
                Code::NoVerdict,
                "cannot write a command line: tests failed that the log does not name",
            )
            .hint(hint(session.runner)));
        }
        if !runners.contains(&session.runner) {
            runners.push(session.runner);
        }
    }
    let command = report.job.as_ref().and_then(|j| j.command.as_deref());
    let mut out = Vec::new();
    for name in runners {
        let of: Vec<&Session> = report.sessions.iter().filter(|s| s.runner == name).collect();
        let mut seen = HashSet::new();
        let ids = of
            .iter()
            .flat_map(|s| {
                s.failing
                    .iter()
                    .flatten()
                    .map(|f| f.id.as_str())
                    .chain(s.unfinished.iter().map(String::as_str))
            })
            .filter(|id| seen.insert(*id))
            .collect();
        let again = Again { ids, command, parallel: of.iter().any(|s| s.parallel) };
        if again.ids.is_empty() {
            continue;
        }
        let Some(format) = runner::by_name(name) else { continue };
        let commands = (format.rerun)(&again);
        if commands.is_empty() {
            let cause = format!("the log does not tell how to run one test of {name}");
            return Err(
                Failure::cannot("write a command line", cause).hint("what failed is listed by --failed")
            );
        }
        for words in commands {
            let line = shlex::try_join(words.iter().map(String::as_str))
                .map_err(|_| Failure::cannot("quote a command line", "a test's name holds a NUL byte"))?;
            out.push(line);
        }
    }
    Ok(out)
}

/// How to make a runner name what failed.
fn hint(runner: &str) -> &'static str {
    match runner {
        "pytest" => "pytest names them in its short summary: run it without -rN, --no-summary",
        "tap" => "prove names them with -v",
        _ => "run it without the options that make it quiet",
    }
}
