//! What a sweep found, and what became of it.

use super::choose::Why;
use super::own::Orphan;
use crate::process::Ident;
use crate::term::{Code, Failure, human_duration, visible};
use std::path::PathBuf;
use std::time::Duration;

/// What became of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was only looked at.
    Nothing,
    /// It had ended before it was signalled.
    Gone,
    /// It ended after TERM.
    Term,
    /// It ended after KILL.
    Kill,
    /// It is dead, and its parent has not waited for it.
    Zombie,
    /// It is still there, and why.
    Left(String),
}

/// A process that a sweep found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Who it is.
    pub ident: Ident,
    /// Its parent when it was found.
    pub parent: i32,
    /// Its parent's command line.
    pub parent_command: String,
    /// Its state when it was last seen: `S`, `D`, `Z`, …
    pub state: char,
    /// How old it was.
    pub age: Duration,
    /// Where it works.
    pub cwd: Option<PathBuf>,
    /// Its command line, cut to 256 characters.
    pub command: String,
    /// On what evidence it was chosen.
    pub why: Why,
    /// Why nobody owns it; `None` for what is below another.
    pub orphan: Option<Orphan>,
    /// What became of it.
    pub done: Done,
}

impl Found {
    /// Whether it had to go and is there.
    pub fn is_left(&self) -> bool {
        matches!(self.done, Done::Nothing | Done::Left(_))
    }

    /// What became of it, in words.
    pub fn outcome(&self) -> String {
        match &self.done {
            Done::Nothing if self.state == 'D' => {
                "would be stopped, but is uninterruptible (state D)".to_owned()
            }
            Done::Nothing => "would be stopped".to_owned(),
            Done::Gone => "had ended".to_owned(),
            Done::Term => "stopped by TERM".to_owned(),
            Done::Kill => "stopped by KILL".to_owned(),
            Done::Zombie => {
                format!("a zombie: {} ({}) has to wait for it", self.parent, self.parent_command)
            }
            Done::Left(why) => format!("left: {why}"),
        }
    }

    /// The evidence, in words.
    pub fn evidence(&self) -> String {
        match &self.orphan {
            Some(orphan) => {
                format!("{}; {orphan}; parent {} ({})", self.why, self.parent, self.parent_command)
            }
            None => self.why.to_string(),
        }
    }

    /// One line for a person: PID, age, directory, command, evidence, what was done. A process may call itself
    /// anything: control characters are made visible, wherever the line goes.
    pub fn line(&self) -> String {
        let line = format!(
            "{}  {}  {}  {}  [{}]  {}",
            self.ident.pid,
            human_duration(self.age),
            self.cwd.as_ref().map_or_else(|| "?".into(), |cwd| cwd.display().to_string()),
            self.command,
            self.evidence(),
            self.outcome()
        );
        visible(&line).into_owned()
    }
}

/// What a sweep came to.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// The processes that were found, each orphan followed by what was below it.
    pub found: Vec<Found>,
    /// Whether it only looked.
    pub dry_run: bool,
}

impl Swept {
    /// How many that had to go are there.
    pub fn left(&self) -> usize {
        self.found.iter().filter(|f| f.is_left()).count()
    }

    /// The message about what could not be stopped, if anything could not be.
    pub fn survivors(&self) -> Option<Failure> {
        if self.code() != Code::Survivors {
            return None;
        }
        let failure = Failure::new(Code::Survivors, format!("cannot stop all orphans: {} left", self.left()));
        Some(self.found.iter().fold(failure, |failure, found| match &found.done {
            Done::Left(why) => {
                failure.hint(format!("{} {}: {why}", found.ident.pid, visible(&found.command)))
            }
            _ => failure,
        }))
    }

    /// The exit code.
    pub fn code(&self) -> Code {
        match (self.left(), self.dry_run) {
            (0, _) => Code::Ok,
            (_, true) => Code::Failed,
            (_, false) => Code::Survivors,
        }
    }
}

/// Enough of a command line to recognise it by.
pub(super) fn short(command: &str) -> String {
    match command.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.to_owned(),
    }
}

/// Why a process is still there.
pub(super) fn why_left(state: char, wchan: Option<&str>, uid: Option<u32>, denied: bool) -> String {
    match (state, uid) {
        (_, Some(uid)) if denied => format!("another user's (uid {uid}), not ours to signal"),
        (_, None) if denied => "not ours to signal".to_owned(),
        ('D', _) => {
            let place = wchan.map(|w| format!(" in {w}")).unwrap_or_default();
            format!("uninterruptible (state D{place}): it goes when the kernel lets it")
        }
        (state, _) => format!("still alive after KILL (state {state})"),
    }
}
