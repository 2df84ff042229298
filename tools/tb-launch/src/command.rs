//! What is to be run: pytest on a test file, or a command as it is.

use crate::cli::Cli;
use crate::python;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tb_shared::contract::Name;
use tb_shared::term::{Failure, Result};

/// A command and the name that follows from it.
#[derive(Debug)]
pub(crate) struct Command {
    /// The arguments.
    pub(crate) argv: Vec<OsString>,
    /// The test file's name; a command has none of its own.
    pub(crate) name: Option<Name>,
}

impl Command {
    /// Settles what is run, and that it can be.
    pub(crate) fn of(cli: &Cli) -> Result<Command> {
        let Some(testfile) = &cli.testfile else {
            if cli.rest.is_empty() {
                return Err(Failure::usage("launch", "TESTFILE is required")
                    .hint("tb-launch TESTFILE [-- PYTEST_ARG...]")
                    .hint("tb-launch [--name NAME] -- COMMAND [ARG...]"));
            }
            return Ok(Command { argv: cli.rest.clone(), name: None });
        };
        let name = Name::parse(testfile).map_err(|why| Failure::usage("use the test file as a name", why))?;
        if name.is_handle() && cli.name.is_none() {
            return Err(Failure::usage(
                format!("use {name} as a name"),
                "names of this form are given by tb-launch itself",
            )
            .hint("give the job another with --name"));
        }
        check_exists(testfile)?;
        let python = python::find()?;
        python::check_pytest(&python)?;
        let mut argv: Vec<OsString> =
            vec![python, "-m".into(), "pytest".into(), testfile.clone(), "-v".into()];
        argv.extend(cli.rest.iter().cloned());
        Ok(Command { argv, name: Some(name) })
    }
}

/// The part before `::` is a file or a directory here.
fn check_exists(testfile: &OsStr) -> Result<()> {
    let bytes = testfile.as_bytes();
    let end = bytes.windows(2).position(|w| w == b"::").unwrap_or(bytes.len());
    let path = Path::new(OsStr::from_bytes(&bytes[..end]));
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(e) => {
            let here = std::env::current_dir().map_or_else(|_| "?".to_owned(), |d| d.display().to_string());
            Err(Failure::usage(format!("launch {}", path.display()), format!("{e} (in {here})"))
                .hint("give the test file as seen from that directory, or change it with --cwd DIR")
                .hint("to run a command instead: tb-launch -- COMMAND"))
        }
    }
}
