//! Where in a log the job's output lies, and which lines among it are the contract's (CONTRACT.md §4).

use super::files::LogFile;
use super::records::{Dropped, Footer, Line, line_kind};
use serde::Deserialize;
use std::io;
use std::os::unix::fs::FileExt;

/// Where a log's output begins, and what of it was given back to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The offset of the first byte of output.
    pub start: u64,
    /// What was dropped so far; `None` where nothing ever is.
    pub dropped: Option<Dropped>,
}

impl Extent {
    /// The offset of the first byte of output that is still there.
    pub fn kept_from(&self) -> u64 {
        self.dropped.map_or(self.start, |d| d.until.max(self.start))
    }

    /// How many lines are gone, from the beginning of the output.
    pub fn lines_gone(&self) -> u64 {
        self.dropped.map_or(0, |d| d.lines)
    }
}

/// What a line is to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Output of the job.
    Output,
    /// The contract's.
    Record,
    /// The job's footer: what follows it is late.
    Footer,
}

#[derive(Deserialize)]
struct OfJob {
    job: String,
}

impl LogFile {
    /// Looks where the output begins now: the log may have been truncated since it was opened, and its oldest
    /// output is dropped while it is read.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn extent(&self) -> io::Result<Extent> {
        const LAUNCH: &[u8] = b"=== GATE LAUNCH: ";
        if self.header_len == 0 {
            return Ok(Extent::default());
        }
        let file = self.file()?;
        let mut first = [0; LAUNCH.len()];
        if file.read_at(&mut first, 0)? < first.len() || first != *LAUNCH {
            return Ok(Extent::default());
        }
        let without = Extent { start: self.header_len, dropped: None };
        if !self.makes_room() {
            return Ok(without);
        }
        let start = self.header_len + Dropped::LEN as u64;
        let mut before = [0; Dropped::LEN];
        // The line is written over in place: two equal looks are no torn one.
        for _ in 0..1000 {
            let mut line = [0; Dropped::LEN];
            if file.read_at(&mut line, self.header_len)? < line.len() {
                break;
            }
            if line == before {
                let dropped = match line.strip_suffix(b"\n").map(line_kind) {
                    Some(Line::Dropped(json)) => Dropped::parse(json),
                    _ => None,
                };
                return Ok(dropped.map_or(without, |d| Extent { start, dropped: Some(d) }));
            }
            before = line;
        }
        Ok(without)
    }

    /// Whether the header can make room for drops: then it ends, with their line, at a block.
    fn makes_room(&self) -> bool {
        self.header_len > 0 && (self.header_len + Dropped::LEN as u64).is_multiple_of(512)
    }

    /// How many lines were dropped so far; of a log that drops none this costs nothing.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn lines_gone(&self) -> io::Result<u64> {
        if self.makes_room() { Ok(self.extent()?.lines_gone()) } else { Ok(0) }
    }

    /// What a line (without its newline) of the output's range is. `late` says that it comes after the footer.
    /// Another job's records, which a test may print, are output like anything else.
    pub fn role(&self, line: &[u8], late: bool) -> Role {
        let record = |is: bool| if is { Role::Record } else { Role::Output };
        match line_kind(line) {
            Line::Output | Line::Phase(_) | Line::Launch(_) | Line::Dropped(_) => Role::Output,
            Line::Stopping(json) => {
                let of = serde_json::from_slice::<OfJob>(json);
                record(of.is_ok_and(|of| self.job().is_none_or(|job| job == of.job)))
            }
            Line::Result(json) => match serde_json::from_slice::<Footer>(json) {
                Ok(footer) if self.is_ours(self.job(), &footer) => Role::Footer,
                _ => Role::Output,
            },
            Line::Collected(id) => record(self.job() == Some(id)),
            Line::Hook(_) | Line::Marker(_) => record(late),
        }
    }
}
