//! Standard output as data: whole lines, a closed pipe that ends quietly, JSON Lines.

use super::{Failure, Result, visible};
use serde::Serialize;
use std::io::{BufWriter, ErrorKind, IsTerminal, Stdout, Write};

/// Whether output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Standard output. A reader that went away (`| head`) swallows the rest without a word; any other error
/// is a [`Failure`].
pub struct Out {
    to: BufWriter<Stdout>,
    closed: bool,
    terminal: bool,
    color: bool,
}

impl Out {
    /// Standard output with the user's choice of colour.
    pub fn new(color: Color) -> Out {
        let terminal = std::io::stdout().is_terminal();
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        Out { to: BufWriter::with_capacity(1 << 16, std::io::stdout()), closed: false, terminal, color }
    }

    /// Whether the reader has gone away.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a person's terminal reads this.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The text inside an SGR colour (`"31"`), or as it is where colour is off.
    pub fn paint(&self, sgr: &str, text: &str) -> String {
        if self.color { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Text of a log or a name: control characters are made visible on a terminal and pass elsewhere.
    pub fn safe<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.terminal { visible(text) } else { text.into() }
    }

    /// One line.
    ///
    /// # Errors
    /// When standard output cannot be written, for another reason than a reader that went away.
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Bytes as they are.
    ///
    /// # Errors
    /// As [`Out::line`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let done = self.to.write_all(bytes);
        self.note(done)
    }

    /// One object as one line of JSON.
    ///
    /// # Errors
    /// As [`Out::line`].
    pub fn json<T: Serialize>(&mut self, object: &T) -> Result<()> {
        let text =
            serde_json::to_string(object).map_err(|e| Failure::cannot("write the answer as JSON", e))?;
        self.line(&text)
    }

    /// Everything written so far goes out.
    ///
    /// # Errors
    /// As [`Out::line`].
    pub fn flush(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let done = self.to.flush();
        self.note(done)
    }

    fn note(&mut self, done: std::io::Result<()>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            // Standard output was closed by the caller (`>&-`): nobody asked for the data.
            Err(e) if e.raw_os_error() == Some(libc::EBADF) => {
                self.closed = true;
                Ok(())
            }
            Err(e) => Err(Failure::cannot("write standard output", e)),
        }
    }
}
