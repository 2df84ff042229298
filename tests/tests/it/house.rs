//! The repository keeps its own rules.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the repository")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn tools() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("tools"))
        .expect("the repository has tools")
        .flatten()
        .filter(|e| e.path().join("Cargo.toml").is_file())
        .map(|e| e.file_name().into_string().expect("plain names"))
        .collect();
    names.sort();
    names
}

/// Every file of ours with one of these endings; what is built is not ours.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![root().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("our own directories").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                let foreign = ["target", ".git", ".gate-logs", "__pycache__"].contains(&name.as_str())
                    || path.join("CACHEDIR.TAG").exists();
                if !foreign {
                    dirs.push(path);
                }
            } else if endings.iter().any(|e| name.ends_with(e)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn every_tool_has_its_man_page() {
    let list = read("xtask/docs/src/main.rs");
    for tool in tools() {
        if root().join("tools").join(&tool).join("src/cli.rs").is_file() {
            let line = format!("(\"{tool}\", {}::cli::command)", tool.replace('-', "_"));
            assert!(
                list.contains(&line),
                "{tool} has no man page: add `{line}` to TOOLS in xtask/docs/src/main.rs"
            );
        }
    }
}

#[test]
fn every_tool_is_in_the_readme() {
    let readme = read("README.md");
    for tool in tools() {
        assert!(readme.contains(&format!("`{tool}`")), "{tool} is not in README.md");
    }
}

#[test]
fn mains_are_thin() {
    for tool in tools() {
        let lines = read(format!("tools/{tool}/src/main.rs")).lines().count();
        assert!(lines <= 12, "tools/{tool}/src/main.rs has {lines} lines: what it does belongs into lib.rs");
    }
}

#[test]
fn lints_are_the_workspaces_and_exceptions_give_a_reason() {
    for path in files(&["Cargo.toml"]).iter().filter(|p| p.parent() != Some(root())) {
        let text = read(path);
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{}: no `[lints] workspace = true`",
            path.display()
        );
    }
    // In pieces, so that this file does not find itself.
    let allow = ["#[", "#!["].map(|start| format!("{start}{}(", "allow"));
    for path in files(&[".rs"]) {
        let text = read(&path);
        assert!(!allow.iter().any(|a| text.contains(a)), "{}: say `expect` with a reason", path.display());
    }
}

#[test]
fn unsafe_code_is_in_two_modules() {
    let allowed = ["shared/src/sys.rs", "tests/src/bin/tb-fixture/sys.rs"].map(|p| root().join(p));
    let mark = format!("expect({}", "unsafe_code");
    for path in files(&[".rs"]) {
        let text = read(&path);
        assert!(
            allowed.contains(&path) || !text.contains(&mark),
            "{}: unsafe code belongs into sys.rs",
            path.display()
        );
    }
}

#[test]
fn tests_end_processes_by_identity_never_by_name() {
    let ours = |path: &Path| path.starts_with(root().join("tests")) || path.starts_with(root().join("xtask"));
    for path in files(&[".rs", ".py"]) {
        // This file names what it forbids.
        if !ours(&path) || path.ends_with(file!()) {
            continue;
        }
        let text = read(&path);
        for word in ["pkill ", "killall "] {
            assert!(!text.contains(word), "{}: signals go to a process, not to a name", path.display());
        }
    }
}

#[test]
fn the_licence_is_the_one_that_is_named() {
    for file in ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(root().join(file).is_file(), "{file} is missing");
    }
    assert!(read("Cargo.toml").contains("license = \"MIT OR Apache-2.0\""));
    assert!(read("LICENSE").contains("MIT OR Apache-2.0"));
}
