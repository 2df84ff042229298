//! Messages: what was being done, to what, why it failed, and what to do next.

use super::{Code, visible};
use crate::poll::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A failure with everything that a person needs: `cannot VERB OBJECT: cause`, then what to do.
#[derive(Debug)]
pub struct Failure {
    /// The exit code that goes with it.
    pub code: Code,
    /// `cannot VERB OBJECT: cause`, or another full sentence without a final stop.
    pub message: String,
    /// Lines of advice, printed indented.
    pub hints: Vec<String>,
}

/// The result of everything that can fail before a person.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure whose sentence is complete.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), hints: Vec::new() }
    }

    /// `cannot DOING: CAUSE`, as a failure of the tool itself (125).
    pub fn cannot(doing: impl Display, cause: impl Display) -> Failure {
        Failure::new(Code::Broken, format!("cannot {doing}: {cause}"))
    }

    /// `cannot DOING: CAUSE`, as an error of usage or input (2).
    pub fn usage(doing: impl Display, cause: impl Display) -> Failure {
        Failure::new(Code::Usage, format!("cannot {doing}: {cause}"))
    }

    /// Adds a line of advice.
    #[must_use]
    pub fn hint(mut self, line: impl Into<String>) -> Failure {
        self.hints.push(line.into());
        self
    }

    /// The same failure under another code.
    #[must_use]
    pub fn code(mut self, code: Code) -> Failure {
        self.code = code;
        self
    }

    /// Prints the failure on standard error in the form that all tools share.
    pub fn print(&self, tool: &str) {
        say(tool, &self.message);
        for hint in &self.hints {
            say_plain(&format!("  {hint}"));
        }
    }
}

/// What the system says of an error, without the number that Rust adds.
pub fn cause(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}

/// Writes to standard error, and gives up what nobody has taken within this time: for those who have more to do than
/// to be read.
pub fn say_within(mut text: &[u8], patience: Duration) {
    /// So little that a pipe or a terminal which is ready for any takes all of it.
    const PIECE: usize = 512;
    let fd = rustix::stdio::stderr();
    let until = Instant::now() + patience;
    while !text.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&timespec(left))) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        match rustix::io::write(fd, text.get(..PIECE).unwrap_or(text)) {
            Ok(n) => text = text.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Nobody is left to be told.
            Err(_) => return,
        }
    }
}

/// One line for a person on standard error: `TOOL: MESSAGE`. Never fails: there is nobody to tell.
pub fn say(tool: &str, message: &str) {
    say_plain(&format!("{tool}: {message}"));
}

/// One line on standard error as it is, but for control characters before a terminal: what is quoted of names and
/// command lines must not drive it.
pub fn say_plain(line: &str) {
    let mut err = std::io::stderr().lock();
    let line = if err.is_terminal() { visible(line) } else { line.into() };
    // Standard error may be closed or full: there is nobody left to tell.
    let _ = err.write_all(format!("{line}\n").as_bytes());
}
