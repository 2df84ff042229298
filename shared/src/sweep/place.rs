//! Where a process works, and whether that is in the work tree that is swept.

use crate::term::{Failure, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the kernel appends to the path of a directory that was removed.
const DELETED: &[u8] = b" (deleted)";

/// Where processes have to work in order to be swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the work tree with this root: not in another work tree below it.
    Tree(PathBuf),
    /// In this directory or anywhere below.
    Below(PathBuf),
    /// Anywhere.
    Anywhere,
}

impl Place {
    /// The work tree of the current directory: the nearest directory above that Git knows, or the directory itself.
    ///
    /// # Errors
    /// When there is no current directory.
    pub fn current() -> Result<Place> {
        let here = std::env::current_dir()
            .and_then(|dir| dir.canonicalize())
            .map_err(|e| Failure::cannot("find the current directory", e))?;
        Ok(Place::Tree(tree_of(&here).unwrap_or(&here).to_owned()))
    }

    /// A directory that a user names.
    ///
    /// # Errors
    /// When it is none.
    pub fn below(dir: &Path) -> Result<Place> {
        let doing = || format!("sweep in {}", dir.display());
        let real = dir.canonicalize().map_err(|e| Failure::usage(doing(), e))?;
        if !real.is_dir() {
            return Err(Failure::usage(doing(), "it is no directory"));
        }
        Ok(Place::Below(real))
    }

    /// The directory at the top, if there is one.
    pub fn root(&self) -> Option<&Path> {
        match self {
            Place::Tree(root) | Place::Below(root) => Some(root),
            Place::Anywhere => None,
        }
    }

    /// Whether a working directory, as the kernel words it, is inside.
    pub fn holds(&self, cwd: &Path) -> bool {
        let path = without_deleted(cwd);
        match self {
            Place::Anywhere => true,
            Place::Below(root) => path.starts_with(root),
            Place::Tree(root) => path.starts_with(root) && tree_of(path).is_none_or(|tree| tree == root),
        }
    }
}

/// The path without the mark of a removed directory. A directory whose own name ends so is what it is called.
pub(super) fn without_deleted(cwd: &Path) -> &Path {
    let bytes = cwd.as_os_str().as_bytes();
    match bytes.strip_suffix(DELETED) {
        Some(path) if !cwd.exists() => Path::new(OsStr::from_bytes(path)),
        _ => cwd,
    }
}

/// The root of the work tree that a directory is in: the nearest above that has a `.git`. A submodule's is part of
/// the tree around it; a linked worktree and a repository of its own are not.
pub(super) fn tree_of(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| match std::fs::symlink_metadata(dir.join(".git")) {
        Err(_) => false,
        Ok(found) if found.is_file() => !is_submodule(&dir.join(".git")),
        Ok(_) => true,
    })
}

/// Whether a `.git` file points into another repository's `modules` (gitrepository-layout(5)).
fn is_submodule(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.strip_prefix("gitdir:")
        .is_some_and(|path| path.contains("/modules/") && !path.contains("/worktrees/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_tree_ends_where_another_begins() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        for dir in ["a/.git", "a/sub/deep", "a/clone/.git", "a/linked/in", "a/module/in", "ab"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        fs::write(top.join("a/linked/.git"), "gitdir: /x/.git/worktrees/linked\n").unwrap();
        fs::write(top.join("a/module/.git"), "gitdir: ../.git/modules/module\n").unwrap();
        let tree = Place::Tree(top.join("a"));
        for (dir, inside) in [
            ("a", true),
            ("a/sub/deep", true),
            ("a/module/in", true),
            ("a/gone (deleted)", true),
            ("a/linked/in", false),
            ("a/linked/gone (deleted)", false),
            ("a/clone", false),
            ("ab", false),
            ("", false),
        ] {
            assert_eq!(tree.holds(&top.join(dir)), inside, "{dir}");
        }
        let below = Place::Below(top.join("a"));
        assert!(below.holds(&top.join("a/linked/in")) && !below.holds(&top.join("ab")));
        assert!(Place::Anywhere.holds(Path::new("/")));
        assert_eq!(tree_of(&top.join("a/module/in")), Some(top.join("a").as_path()));
        assert_eq!(tree_of(&top.join("a/linked/in")), Some(top.join("a/linked").as_path()));
    }

    #[test]
    fn a_directory_may_be_called_deleted() {
        let scratch = tempfile::tempdir().unwrap();
        let odd = scratch.path().join("x (deleted)");
        assert_eq!(without_deleted(&odd), scratch.path().join("x"));
        fs::create_dir(&odd).unwrap();
        assert_eq!(without_deleted(&odd), odd);
    }
}
