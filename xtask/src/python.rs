//! The Python environment of the tests and the demonstration, made once for each list of requirements.

use crate::{Failure, Result, doing, run, tree};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

const REQUIREMENTS: &str = "tests/python/requirements.txt";

/// Returns the environment's interpreter, having made the environment if it is not the one that the
/// requirements ask for.
pub(crate) fn prepare() -> Result<PathBuf> {
    let target = tree::target()?;
    let dir = target.join("py");
    let python = dir.join("bin/python");
    let wanted = doing(format!("read {REQUIREMENTS}"), fs::read_to_string(tree::root().join(REQUIREMENTS)))?;
    let stamp = dir.join("requirements.stamp");
    // Two chores at once must not build it together; the lock goes with the descriptor.
    let lock = doing("make a lock for the Python environment", File::create(target.join("py.lock")))?;
    doing("wait for the lock of the Python environment", lock.lock())?;
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && works(&python) {
        return Ok(python);
    }
    tree::remove_dir(&dir)?;
    make(&dir, &python)?;
    // Last: an environment that was left half made has no stamp.
    doing(format!("write {}", stamp.display()), fs::write(&stamp, wanted))?;
    Ok(python)
}

/// The interpreter that the environment was made from may be gone.
fn works(python: &Path) -> bool {
    let mut command = run::command(python);
    run::output(command.args(["-c", "import pytest, xdist, junitparser"]), Duration::from_secs(60))
        .is_ok_and(|(code, _)| code == 0)
}

fn make(dir: &Path, python: &Path) -> Result {
    let base = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    run::demand(run::command(base).args(["-m", "venv"]).arg(dir), Duration::from_secs(180)).map_err(|e| {
        Failure::new(format!(
            "cannot make a Python environment in {}: {}\n  it needs python3 with its venv module (Debian: apt-get install python3-venv);\n  another interpreter: PYTHON=/path/to/python3 cargo xtask ...",
            dir.display(),
            e.message
        ))
        .code(e.code)
    })?;
    let install =
        ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "-r", REQUIREMENTS];
    run::demand(run::command(python).args(install), Duration::from_secs(600)).map_err(|e| {
        Failure::new(format!(
            "cannot install {REQUIREMENTS}: {}\n  run it again: what was there is made anew",
            e.message
        ))
        .code(e.code)
    })
}
