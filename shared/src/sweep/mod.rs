//! The sweep: test processes that nobody owns are found, stopped each with its whole tree, and looked for again
//! until nothing is left.
//!
//! `argv` says what a test process is, `own` who is an orphan, `place` where it works, `jobs` what run directories
//! know of it; `choose` puts these together, as a function of one `sight`; `kill` acts. Nobody is chosen by a word
//! in a command line alone, and nobody is signalled but through a pidfd whose process was identified after it was
//! opened.

pub mod argv;
mod choose;
mod found;
mod jobs;
mod kill;
mod own;
mod place;
mod sight;
#[cfg(test)]
mod tests;

pub use choose::Why;
pub use found::{Done, Found, Swept};
pub use kill::run;
pub use own::Orphan;
pub use place::Place;

use crate::contract::{RunDir, Scope};
use crate::term::{Result, say};
use argv::Kind;
use std::path::PathBuf;
use std::time::Duration;

/// Says of a command line that its process is to be swept, whatever runs it.
pub type Pattern = Box<dyn Fn(&str) -> bool>;

/// What is swept, and how.
pub struct Options {
    /// Where it works.
    pub place: Place,
    /// Whose test processes.
    pub kinds: Vec<Kind>,
    /// What else counts as a test process, by its command line.
    pub pattern: Option<Pattern>,
    /// How old it is at least.
    pub older: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Whether jobs go that run without supervisors, within this scope.
    pub unsupervised: bool,
    /// Whose jobs the caller sees: of unsupervised ones only these go.
    pub scope: Scope,
    /// Whether other users' processes go.
    pub all_users: bool,
    /// Whether it is only said what would go.
    pub dry_run: bool,
    /// The run directory, beside those that processes name and that the work tree holds.
    pub run_dir: PathBuf,
}

/// The sweep before a run: what went is said on standard error, and what could not be stopped is a failure, since a
/// run beside it would not be alone.
///
/// # Errors
/// When the sweep cannot be made, or something is left (7).
pub fn before_a_run(tool: &str, grace: Duration) -> Result<()> {
    let swept = run(&Options::before_a_run(grace)?)?;
    for found in &swept.found {
        say(tool, &format!("swept: {}", found.line()));
    }
    swept.survivors().map_or(Ok(()), Err)
}

impl Options {
    /// What a sweep before a run takes: pytest's orphans in the current work tree.
    ///
    /// # Errors
    /// When there is no current directory.
    pub fn before_a_run(grace: Duration) -> Result<Options> {
        Ok(Options {
            place: Place::current()?,
            kinds: vec![Kind::Pytest],
            pattern: None,
            older: Duration::ZERO,
            grace,
            unsupervised: false,
            scope: Scope::default(),
            all_users: false,
            dry_run: false,
            run_dir: RunDir::resolve(None),
        })
    }
}
