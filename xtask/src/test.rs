//! `test` and `lint`: all that must hold.

use crate::run::{self, cargo};
use crate::{Failure, Result, python, tree};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const BUILD: Duration = Duration::from_secs(40 * 60);
const TEST: Duration = Duration::from_secs(60 * 60);

/// Builds, checks the form, and runs every test; cargo's closing lines come last, then their sum.
pub(crate) fn test(args: &[&str]) -> Result {
    let python = python::prepare()?;
    // Tests run the built tools: cargo builds a tool for its own tests only.
    run::demand(&mut cargo(&["build", "--workspace", "--bins"]), BUILD)?;
    form()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let run_mark = format!("{}-{now}", std::process::id());
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command
        .args(args)
        .env("TB_TEST_BIN_DIR", tree::target()?.join("debug"))
        .env("TB_TEST_PYTHON", python)
        .env("TB_TEST_RUN", &run_mark);
    run::show(&command);
    let ended = run::tee(&mut command, TEST);
    let left = run::stop_marked(&format!("TB_TEST_RUN={run_mark}"));
    let (code, text) = ended?;
    if !left.is_empty() {
        return Err(Failure::new(format!("the tests left running (stopped now):\n  {}", left.join("\n  "))));
    }
    let (passed, failed, ignored) = sum(&text);
    if passed + failed > 0 {
        println!("\ntests: {passed} passed, {failed} failed, {ignored} skipped");
    }
    match code {
        0 => Ok(()),
        code => Err(Failure::new(format!("cargo test failed with exit code {code}"))),
    }
}

/// Format, clippy, and what may come in with a dependency.
pub(crate) fn lint() -> Result {
    form()?;
    if tree::on_path("cargo-deny").is_none() {
        eprintln!(
            "xtask: cargo-deny is not installed: licences, advisories and bans (deny.toml) were not checked"
        );
        return Ok(());
    }
    run::demand(&mut cargo(&["deny", "check"]), BUILD)
}

fn form() -> Result {
    run::demand(&mut cargo(&["fmt", "--all", "--check"]), BUILD)
        .map_err(|e| Failure::new(format!("{}\n  cargo fmt --all puts it right", e.message)).code(e.code))?;
    run::demand(
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
        BUILD,
    )
}

/// What cargo's closing lines add up to: passed, failed, ignored.
fn sum(text: &str) -> (u64, u64, u64) {
    let mut total = (0, 0, 0);
    for line in text.lines().filter_map(|l| l.strip_prefix("test result: ")) {
        let count = |what: &str| -> u64 {
            let before = line.split_once(what).map_or("", |(before, _)| before);
            before.trim_end().rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
        };
        total.0 += count("passed;");
        total.1 += count("failed;");
        total.2 += count("ignored;");
    }
    total
}

#[cfg(test)]
mod tests {
    #[test]
    fn closing_lines_are_added_up() {
        let text = "test a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n\
            the words 9 passed; mean nothing elsewhere\n";
        assert_eq!(super::sum(text), (15, 2, 1));
    }
}
