//! The project's own chores: `cargo xtask demo | test | lint | bench | install | dist`.
//!
//! It depends on nothing of ours and compiles in seconds. Every child has a limit and a process group of
//! its own, which an interrupt reaches and which is gone when we are (`run`).

mod bench;
mod demo;
mod install;
mod python;
mod release;
mod run;
mod test;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask CHORE

  demo                      launch a real pytest suite in the background and watch it: under a minute
  test [TEST-ARG...]        all that must hold: builds, fmt, clippy, every test (arguments go to cargo test)
  lint                      fmt, clippy, and cargo deny where it is installed
  bench [-n ROUNDS] [CASE...]
                            ratios against the usual tools: launch wait status list guard sweep results
  install [--prefix DIR]    the tools, man pages, completions, tb.mk (default: ~/.local)
  dist                      the same as target/dist/tb-VERSION-ARCH-linux.tar.gz
";

/// Why a chore failed: `cannot VERB OBJECT: cause`, then what to do.
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 1 }
    }

    pub(crate) fn code(mut self, code: u8) -> Failure {
        self.code = code;
        self
    }
}

pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// Says what was being done when something failed.
pub(crate) fn doing<T, E: std::fmt::Display>(
    what: impl std::fmt::Display,
    result: std::result::Result<T, E>,
) -> Result<T> {
    result.map_err(|e| Failure::new(format!("cannot {what}: {e}")))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["-h" | "--help" | "help", ..] => {
            print!("{HELP}");
            Ok(())
        }
        ["demo"] => demo::demo(),
        ["test", rest @ ..] => test::test(rest),
        ["lint"] => test::lint(),
        ["bench", rest @ ..] => bench::bench(rest),
        ["install"] => home().and_then(|home| install::install(&home.join(".local"))),
        ["install", "--prefix", dir] => install::install(&PathBuf::from(dir)),
        ["install", flag] if flag.starts_with("--prefix=") => {
            install::install(&PathBuf::from(&flag["--prefix=".len()..]))
        }
        ["dist"] => install::dist(),
        // What the benchmarks start as jobs and as peers.
        ["peer", rest @ ..] => bench::peer(rest),
        other => Err(Failure::new(format!("there is no chore `{}`\n\n{HELP}", other.join(" "))).code(2)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn home() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").filter(|h| !h.is_empty()).map(PathBuf::from);
    home.ok_or_else(|| {
        Failure::new("cannot install: HOME is not set\n  name a place: cargo xtask install --prefix DIR")
            .code(2)
    })
}
