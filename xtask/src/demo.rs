//! `demo`: a real pytest suite in the background, watched from outside.

use crate::run::{self, cargo};
use crate::{Failure, Result, doing, python, tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// For each command of the demonstration, and for what is awaited between two of them.
const LIMIT: Duration = Duration::from_secs(60);
/// The job that is watched: a directory, as pytest takes it.
const JOB: &str = "tests";
/// What the suite is made to give: see tests/python/demo.
const COUNTS: &str = "11 passed, 1 failed, 1 skipped";

/// Launches the suite, looks twice while it runs, waits, reads the results, and checks all of it.
pub(crate) fn demo() -> Result {
    run::demand(&mut cargo(&["build", "--quiet", "--workspace", "--bins"]), Duration::from_secs(40 * 60))?;
    let python = python::prepare()?;
    for tool in ["tb-launch", "tb-status", "tb-wait", "tb-results", "tb-kill"] {
        tree::built("debug", tool)?;
    }
    let stage = Stage { dir: tree::target()?.join("demo"), python };
    // An earlier demonstration may have been killed before it could clear up.
    stage.stop()?;
    tree::remove_dir(&stage.dir)?;
    copy(&tree::root().join("tests/python/demo"), &stage.dir)?;
    let told = stage.tell();
    // Nothing is left running, whatever went wrong above.
    let stopped = stage.stop();
    told.and(stopped)?;
    println!("\nAll of it behaved as it should: the suite's one failure was meant.");
    Ok(())
}

struct Stage {
    dir: PathBuf,
    python: PathBuf,
}

impl Stage {
    fn tell(&self) -> Result {
        println!("\nA pytest suite is started in the background; the call returns at once.");
        let launched = self.step("tb-launch", &[JOB], &[0])?;
        let log = launched.lines().find_map(|l| l.strip_prefix("Log: "));
        let log = log.ok_or_else(|| Failure::new("tb-launch did not say where the log is"))?;
        let log = self.dir.join(log.trim());

        println!("\nWhat is tracked here, asked in the next instant:");
        let status = self.step("tb-status", &[], &[0])?;
        expect("tb-status", &status, "RUNNING")?;
        println!("\nA moment later it is in its slow test (exit code 3: it runs):");
        self.until_in(&log, "test_slow")?;
        let status = self.step("tb-status", &[JOB], &[3])?;
        expect("tb-status", &status, "RUNNING")?;

        println!("\nUntil it ends (exit code 1: it failed, as it was meant to):");
        self.step("tb-wait", &["--timeout", "50s", JOB], &[1])?;
        println!("\nWhat the run said:");
        let results = self.step("tb-results", &["--keep", JOB], &[1])?;
        expect("tb-results", &results, COUNTS)?;
        expect("tb-results", &results, "test_failure.py::test_a_sum_that_is_wrong")?;
        println!("\nAnd its state from now on:");
        let status = self.step("tb-status", &["-n", "3", JOB], &[1])?;
        expect("tb-status", &status, "FINISHED (FAIL)")
    }

    fn tool(&self, name: &str) -> Result<Command> {
        let mut command = run::command(tree::built("debug", name)?);
        command.current_dir(&self.dir).env("TB_PYTHON", &self.python).env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }

    /// Shows a command and what it prints; its exit code must be one of those expected.
    fn step(&self, name: &str, args: &[&str], codes: &[i32]) -> Result<String> {
        println!("\n$ {}", std::iter::once(&name).chain(args).copied().collect::<Vec<_>>().join(" "));
        let (code, text) = run::tee(self.tool(name)?.args(args), LIMIT)?;
        println!("(exit code {code})");
        if codes.contains(&code) {
            return Ok(text);
        }
        Err(Failure::new(format!(
            "{name} gave exit code {code} where {codes:?} was expected\n  its files are in {}",
            self.dir.display()
        )))
    }

    fn until_in(&self, log: &Path, text: &str) -> Result {
        let start = Instant::now();
        loop {
            run::check_interrupt()?;
            if fs::read_to_string(log).is_ok_and(|t| t.contains(text)) {
                return Ok(());
            }
            if start.elapsed() > LIMIT {
                return Err(Failure::new(format!(
                    "{} did not get to {text} within {} s",
                    log.display(),
                    LIMIT.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(&self) -> Result {
        if !self.dir.join(".gate-logs").is_dir() {
            return Ok(());
        }
        // Not by run(): after an interrupt that would start nothing, and this must be done all the same.
        let mut kill = self.tool("tb-kill")?;
        let output = doing("start tb-kill", kill.args(["--all", "--all-owners"]).output())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Failure::new(format!(
            "tb-kill could not stop the demonstration's job ({}):\n{said}",
            output.status
        )))
    }
}

fn expect(name: &str, said: &str, text: &str) -> Result {
    if said.contains(text) {
        return Ok(());
    }
    Err(Failure::new(format!("{name} did not say {text:?}, which was expected")))
}

/// Copies a directory of plain files and directories.
fn copy(from: &Path, to: &Path) -> Result {
    tree::make_dir(to)?;
    for entry in doing(format!("list {}", from.display()), fs::read_dir(from))?.flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == "__pycache__" {
            continue;
        }
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            doing(format!("copy {}", from.display()), fs::copy(&from, &to))?;
        }
    }
    Ok(())
}
