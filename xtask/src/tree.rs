//! Where things are, and what the tools are called.

use crate::{Failure, Result, doing};
use std::fs;
use std::path::{Path, PathBuf};

/// The top of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ is in the repository")
}

/// The target directory: the one that we were built in.
pub(crate) fn target() -> Result<PathBuf> {
    let exe = doing("find our own program", std::env::current_exe())?;
    let target = exe.parent().and_then(Path::parent).map(Path::to_owned);
    target.ok_or_else(|| Failure::new("cannot find the target directory: run me by `cargo xtask`"))
}

/// The tools: the packages in `tools/`.
pub(crate) fn tools() -> Result<Vec<String>> {
    let dir = root().join("tools");
    let entries = doing(format!("list {}", dir.display()), fs::read_dir(&dir))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|e| e.path().join("Cargo.toml").is_file())
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// A built binary; the message of the failure says which is missing.
pub(crate) fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let path = target()?.join(profile).join(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Failure::new(format!(
        "cannot use {name}: {} was not built\n  is tools/{name} a member of the workspace?",
        path.display()
    )))
}

/// Makes a directory and its parents.
pub(crate) fn make_dir(path: &Path) -> Result {
    doing(format!("make {}", path.display()), fs::create_dir_all(path))
}

/// Removes a directory with all in it, if it is there.
pub(crate) fn remove_dir(path: &Path) -> Result {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            doing(format!("remove {}", path.display()), Err(e))
        }
        _ => Ok(()),
    }
}

/// Finds a program on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file())
}
