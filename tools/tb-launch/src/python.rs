//! The interpreter that runs pytest, and whether it can.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tb_shared::term::{Code, Failure, Result};
use wait_timeout::ChildExt;

/// How long an interpreter may take to say whether it can import pytest.
const PATIENCE: Duration = Duration::from_secs(30);

/// `$TB_PYTHON`, `.venv/bin/python`, `$VIRTUAL_ENV/bin/python`, `python3`, `python`: the first there is.
pub(crate) fn find() -> Result<OsString> {
    if let Some(chosen) = std::env::var_os("TB_PYTHON").filter(|v| !v.is_empty()) {
        return match on_path(&chosen) {
            Some(_) => Ok(chosen),
            None => Err(Failure::cannot(
                format!("use TB_PYTHON={}", chosen.to_string_lossy()),
                "there is no such interpreter",
            )
            .hint("unset it, or name an interpreter that has pytest")
            .code(Code::NotFound)),
        };
    }
    let mut candidates: Vec<OsString> = vec![".venv/bin/python".into()];
    if let Some(venv) = std::env::var_os("VIRTUAL_ENV").filter(|v| !v.is_empty()) {
        candidates.push(Path::new(&venv).join("bin/python").into());
    }
    candidates.extend(["python3".into(), "python".into()]);
    candidates.into_iter().find(|c| on_path(c).is_some()).ok_or_else(|| {
        Failure::cannot(
            "find a Python interpreter",
            "no .venv/bin/python here, no python3 and no python on PATH",
        )
        .hint("set TB_PYTHON to the interpreter that has pytest")
        .code(Code::NotFound)
    })
}

/// Where a command would be found: as a path if it has a slash, else along PATH.
fn on_path(command: &OsStr) -> Option<PathBuf> {
    let runs = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let command = Path::new(command);
    if command.components().count() > 1 {
        return runs(command).then(|| command.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(command)).find(|full| runs(full))
}

/// Checks that the interpreter can import pytest: by a look into its site directories, and only where that finds
/// nothing by asking it, which costs its start.
pub(crate) fn check_pytest(python: &OsStr) -> Result<()> {
    let found = on_path(python);
    if found.as_deref().is_some_and(|p| site_directories(p).iter().any(|dir| has_pytest(dir))) {
        return Ok(());
    }
    let shown = python.to_string_lossy().into_owned();
    let failure = |cause: String| {
        Failure::usage(format!("run pytest with {shown}"), cause)
            .hint(format!("install it: {shown} -m pip install pytest"))
            .hint("or choose another interpreter with TB_PYTHON")
    };
    let child = Command::new(python)
        .args(["-c", "import pytest"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.map_err(|e| failure(e.to_string()))?;
    match child.wait_timeout(PATIENCE) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(_)) => Err(failure("it cannot import pytest".to_owned())),
        Ok(None) => {
            // Ours, not yet waited for: the number cannot be another's.
            let _ = child.kill();
            let _ = child.wait();
            Err(failure(format!("it did not answer within {}s", PATIENCE.as_secs())))
        }
        Err(e) => Err(failure(e.to_string())),
    }
}

fn has_pytest(dir: &Path) -> bool {
    dir.join("pytest/__init__.py").is_file() || dir.join("pytest.py").is_file()
}

/// Where this interpreter looks for packages, as far as its place tells: its own environment's, and PYTHONPATH. A
/// directory that is missed costs only the interpreter's start.
fn site_directories(python: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> =
        std::env::var_os("PYTHONPATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
    let Some(prefix) = python.parent().and_then(Path::parent) else { return dirs };
    // A virtual environment has its packages beside its own bin; only an isolated one hides the system's.
    let is_environment = prefix.join("pyvenv.cfg").is_file();
    let real = if is_environment { None } else { std::fs::canonicalize(python).ok() };
    let prefixes = [Some(prefix.to_owned()), real.and_then(|p| Some(p.parent()?.parent()?.to_owned()))];
    // Which of several lib/pythonX.Y is this interpreter's is told by its real name; without it nothing is guessed.
    let version = std::fs::canonicalize(python)
        .ok()
        .and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()))
        .filter(|n| n.starts_with("python3."));
    for prefix in prefixes.into_iter().flatten() {
        for lib in ["lib", "lib64"] {
            if let Some(version) = &version {
                dirs.push(prefix.join(lib).join(version).join("site-packages"));
                dirs.push(prefix.join("local").join(lib).join(version).join("dist-packages"));
            }
            if !is_environment {
                dirs.push(prefix.join(lib).join("python3/dist-packages"));
            }
        }
    }
    dirs
}
