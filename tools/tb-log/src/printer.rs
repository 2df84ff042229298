//! Lines as they are shown: selected, clipped, made visible or put into JSON, and counted.

use crate::sink::Sink;
use regex::bytes::Regex;
use std::io::Write;
use tb_shared::log::{Piece, char_floor};
use tb_shared::term::{Failure, Result, visible};

/// What a piece of a line that is passed on at once may hold, in bytes.
const PIECE: usize = 64 << 10;

/// In which form lines go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Byte for byte.
    Bytes,
    /// For a terminal: control characters are made visible.
    Visible,
    /// As strings of a JSON array.
    Json,
}

/// How lines are shown.
#[derive(Debug)]
pub struct Style {
    /// In which form.
    pub form: Form,
    /// Only those in which this is found.
    pub filter: Option<Regex>,
    /// At most this much of each, in bytes.
    pub max_line: Option<usize>,
}

/// What was read and shown of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that were read, shown or not.
    pub lines: u64,
    /// Lines of which only the beginning was shown.
    pub clipped: u64,
    /// Shown lines that were written after the job's end.
    pub late: u64,
    /// Lines that were dropped from the log before they could be read.
    pub dropped: u64,
    /// The log was truncated: reading began anew.
    pub truncated: bool,
}

/// Shows lines.
#[derive(Debug)]
pub struct Printer<W> {
    /// Where they go.
    pub sink: Sink<W>,
    style: Style,
    /// Of the current run.
    pub counts: Counts,
    /// Whether each line that has gone out is delivered, or only all of them together.
    line_by_line: bool,
    /// How much of the current line was shown, in bytes, whether there is more of it, and whether it is shown at all.
    shown: usize,
    more: bool,
    wanted: bool,
    /// A part of a line as it goes out.
    scratch: Vec<u8>,
    first: bool,
    head: Option<String>,
    last_head: Option<String>,
}

impl<W: Write> Printer<W> {
    /// Shows lines in this style.
    pub fn new(sink: Sink<W>, style: Style, line_by_line: bool) -> Printer<W> {
        Printer {
            sink,
            style,
            counts: Counts::default(),
            line_by_line,
            shown: 0,
            more: false,
            wanted: true,
            scratch: vec![],
            first: true,
            head: None,
            last_head: None,
        }
    }

    /// How much of a line has to come in one piece, in bytes: a pattern sees whole lines.
    pub fn hold(&self) -> usize {
        if self.style.filter.is_some() { usize::MAX } else { PIECE }
    }

    /// Whether this is JSON.
    pub fn is_json(&self) -> bool {
        self.style.form == Form::Json
    }

    /// Whether a line would be shown.
    pub fn wants(&self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.style.filter.as_ref().is_none_or(|filter| filter.is_match(line))
    }

    /// The head under which the next lines come, printed once there is one.
    pub fn head_if_any(&mut self, head: Option<String>) {
        self.head = head.filter(|head| !self.is_json() && self.last_head.as_ref() != Some(head));
    }

    /// Prints the head now.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn print_head(&mut self) -> Result<()> {
        let Some(head) = self.head.take() else { return Ok(()) };
        if !self.sink.is_fresh() {
            self.sink.bytes(b"\n")?;
        }
        let line = format!("==> {} <==\n", self.safe(&head));
        self.sink.bytes(line.as_bytes())?;
        self.last_head = Some(head);
        Ok(())
    }

    fn safe(&self, text: &str) -> String {
        if self.style.form == Form::Visible { visible(text).into_owned() } else { text.to_owned() }
    }

    /// Takes the next piece of a line in.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn piece(&mut self, piece: &Piece<'_>) -> Result<()> {
        if piece.begins {
            (self.shown, self.more) = (0, false);
            self.wanted = self.wants(piece.bytes);
            if self.wanted {
                self.begin_line(piece.late)?;
            }
        }
        if self.wanted {
            let room = self.style.max_line.map_or(usize::MAX, |max| max.saturating_sub(self.shown));
            let keep = if self.more { 0 } else { char_floor(piece.bytes, room) };
            self.shown += keep;
            self.more |= keep < piece.bytes.len();
            self.part(&piece.bytes[..keep], piece.ends)?;
            if piece.ends {
                self.end_line()?;
                self.counts.late += u64::from(piece.late);
            }
        }
        if piece.ends {
            self.counts.lines += 1;
            if self.line_by_line {
                self.sink.mark(piece.after);
            }
        }
        Ok(())
    }

    fn begin_line(&mut self, late: bool) -> Result<()> {
        if self.is_json() {
            let first = std::mem::take(&mut self.first);
            return self.sink.bytes(if first { b"\"" } else { b",\"" });
        }
        if late {
            self.late_head();
        }
        self.print_head()
    }

    /// Shows a part of a line; no character is cut in two by its ends.
    fn part(&mut self, bytes: &[u8], last: bool) -> Result<()> {
        match self.style.form {
            Form::Bytes => self.sink.bytes(bytes),
            Form::Visible => {
                let bytes = if last { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
                let text = visible(&String::from_utf8_lossy(bytes)).into_owned();
                self.sink.bytes(text.as_bytes())
            }
            Form::Json => {
                self.scratch.clear();
                serde_json::to_writer(&mut self.scratch, &String::from_utf8_lossy(bytes)).map_err(as_json)?;
                // Its parts stand between the same quotes.
                self.sink.bytes(&self.scratch[1..self.scratch.len() - 1])
            }
        }
    }

    fn end_line(&mut self) -> Result<()> {
        if self.more {
            self.counts.clipped += 1;
            self.sink.bytes("…".as_bytes())?;
        }
        self.sink.bytes(if self.is_json() { b"\"" } else { b"\n" })
    }

    fn late_head(&mut self) {
        let name = self.head.take().or_else(|| self.last_head.clone());
        const LATE: &str = "written after the end";
        let head = match name {
            Some(name) if name.ends_with(LATE) => name,
            Some(name) => format!("{name}: {LATE}"),
            None => LATE.to_owned(),
        };
        self.head_if_any(Some(head));
    }

    /// Begins the object of a run, up to its lines, which then come one by one: however many, they are never held
    /// all at once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_object<T: serde::Serialize>(&mut self, fields: &T) -> Result<()> {
        let mut text = json(fields)?;
        text.pop();
        text.extend(b",\"lines\":[");
        self.first = true;
        self.sink.bytes(&text)
    }

    /// Ends the object with what is known once its lines were read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end_object<T: serde::Serialize>(&mut self, fields: &T) -> Result<()> {
        let mut text = b"],".to_vec();
        text.extend(&json(fields)?[1..]);
        text.push(b'\n');
        self.sink.bytes(&text)
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(as_json)
}

fn as_json(e: serde_json::Error) -> Failure {
    Failure::cannot("write the answer as JSON", e)
}
