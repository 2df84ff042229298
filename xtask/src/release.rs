//! The release build: linked statically and at a fixed address where this machine has a static C library, since a fifth of a tool's start is
//! the dynamic linker's; otherwise as cargo links by default.

use crate::Result;
use crate::run::{self, cargo};
use crate::tree;
use std::path::PathBuf;
use std::time::Duration;

/// How long a release build may take.
const BUILD: Duration = Duration::from_secs(40 * 60);

/// Builds these packages; gives the directory that holds their binaries.
pub(crate) fn build(packages: &[String]) -> Result<PathBuf> {
    let host = if has_static_libc() { host()? } else { None };
    let mut words: Vec<String> = vec!["build".into(), "--release".into()];
    for package in packages {
        words.extend(["--package".into(), package.clone()]);
    }
    let mut directory = tree::target()?;
    if let Some(host) = host {
        // Flags for the target alone: with them, build scripts and procedural macros could not be built.
        words.extend(["--target".into(), host.clone(), "--config".into()]);
        words.push(format!(
            r#"target.{host}.rustflags=["-C","target-feature=+crt-static","-C","relocation-model=static"]"#
        ));
        directory = directory.join(host);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run::demand(&mut cargo(&words), BUILD)?;
    Ok(directory.join("release"))
}

/// Whether the C compiler finds a static C library: it answers with a path, or with the bare name.
fn has_static_libc() -> bool {
    let output = run::command("cc").arg("-print-file-name=libc.a").output();
    output.is_ok_and(|o| o.status.success() && String::from_utf8_lossy(&o.stdout).trim().contains('/'))
}

/// The machine's target, as rustc names it.
fn host() -> Result<Option<String>> {
    let output = run::command("rustc").arg("-vV").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let host = text.lines().find_map(|l| l.strip_prefix("host: ")).map(str::to_owned);
    Ok(host.filter(|h| h.ends_with("-linux-gnu")))
}
