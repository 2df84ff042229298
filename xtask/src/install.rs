//! `install` and `dist`: the tools, their man pages and completions, tb.mk.

use crate::run::{self, cargo};
use crate::{Failure, Result, doing, tree};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BUILD: Duration = Duration::from_secs(40 * 60);

/// A file and where below the prefix it goes.
struct Item {
    from: PathBuf,
    to: String,
    mode: u32,
}

/// Installs below a prefix. Every file appears by rename: a tool that runs keeps the file that it was
/// started from, and nobody ever starts half a tool.
pub(crate) fn install(prefix: &Path) -> Result {
    let items = build()?;
    for item in &items {
        put(item, prefix)?;
    }
    println!("Installed {} files below {}", items.len(), prefix.display());
    let bin = prefix.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|dir| dir == bin) {
        println!("  {} is not on your PATH: add it", bin.display());
    }
    Ok(())
}

/// Packs the same files under `target/dist`.
pub(crate) fn dist() -> Result {
    let items = build()?;
    let name = format!("tb-{}-{}-linux", version()?, std::env::consts::ARCH);
    let dir = tree::target()?.join("dist");
    let stage = dir.join(&name);
    tree::remove_dir(&stage)?;
    for item in &items {
        put(item, &stage)?;
    }
    let archive = dir.join(format!("{name}.tar.gz"));
    let mut tar = run::command("tar");
    // The same files give the same archive: no order of the directory, no owner, no clock.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-C"])
        .arg(&dir)
        .arg("-czf");
    run::demand(tar.arg(&archive).arg(&name).env("GZIP", "-n"), Duration::from_secs(300))?;
    println!("{}", archive.display());
    Ok(())
}

/// Builds everything and lists it.
fn build() -> Result<Vec<Item>> {
    let tools = tree::tools()?;
    let built = crate::release::build(&tools)?;
    let docs = tree::target()?.join("docs");
    tree::remove_dir(&docs)?;
    let mut generate = cargo(&["run", "--quiet", "--package", "tb-docs", "--"]);
    run::demand(generate.arg(&docs), BUILD)?;

    let mut items = Vec::new();
    for tool in &tools {
        items.push(Item { from: built.join(tool), to: format!("bin/{tool}"), mode: 0o755 });
        if !docs.join(format!("man/{tool}.1")).is_file() {
            return Err(Failure::new(format!(
                "there is no man page of {tool}: add it to the list in xtask/docs/src/main.rs"
            )));
        }
    }
    let plain = |from: PathBuf, to: String| Item { from, to, mode: 0o644 };
    for (dir, to) in [("man", "share/man/man1"), ("completions", "share/tb/completions")] {
        let dir = docs.join(dir);
        for entry in doing(format!("list {}", dir.display()), fs::read_dir(&dir))?.flatten() {
            items.push(plain(entry.path(), format!("{to}/{}", entry.file_name().to_string_lossy())));
        }
    }
    for from in [
        "scripts/tb.mk",
        "scripts/skill.md",
        "shared/CONTRACT.md",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ] {
        let name = from.rsplit('/').next().unwrap_or(from);
        items.push(plain(tree::root().join(from), format!("share/tb/{name}")));
    }
    items.sort_by(|a, b| a.to.cmp(&b.to));
    Ok(items)
}

fn put(item: &Item, prefix: &Path) -> Result {
    let to = prefix.join(&item.to);
    let dir = to.parent().unwrap_or(prefix);
    tree::make_dir(dir)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let new = dir.join(format!(".{name}.{}.new", std::process::id()));
    let what = format!("install {}", to.display());
    let done = write(item, &new).and_then(|()| fs::rename(&new, &to));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    doing(what, done)
}

fn write(item: &Item, new: &Path) -> std::io::Result<()> {
    let bytes = fs::read(&item.from)?;
    let mut file = File::create(new)?;
    file.write_all(&bytes)?;
    file.set_permissions(fs::Permissions::from_mode(item.mode))?;
    // On disk before its name is: after a power cut there is the old tool or the new one.
    file.sync_all()
}

/// The version that the lock file gives our own crates.
fn version() -> Result<String> {
    let lock = doing("read Cargo.lock", fs::read_to_string(tree::root().join("Cargo.lock")))?;
    let version = |text: &str| {
        let rest = text.split_once("name = \"tb-shared\"\nversion = \"")?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    version(&lock).ok_or_else(|| Failure::new("cannot find the version of tb-shared in Cargo.lock"))
}
