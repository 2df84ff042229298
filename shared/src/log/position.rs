//! How far a reader has come in a log, and the next stretch for it: a pure step from one position to the next.

use super::lines::{Mark, Stretch};
use crate::contract::LogFile;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::FileExt;

/// How much is looked through at once for the end of the last whole line, in bytes.
const CHUNK: usize = 128 << 10;

/// How far a reader has come in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The log's file name.
    pub log: String,
    /// Its inode: another file under the same name is another log.
    ino: u64,
    /// Where its output began: the header goes when a log is truncated.
    start: u64,
    /// The offset up to which lines were handed out.
    pub offset: u64,
    /// How many lines there are before it.
    lines: u64,
    /// How often reading has begun anew.
    epoch: u64,
    /// The bytes before `offset`, in hexadecimal digits.
    mark: String,
}

/// Whole lines that belong to whoever claimed them.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// Where they are.
    pub stretch: Stretch,
    /// How many lines were dropped that this reader had not seen.
    pub gap: u64,
    /// The log was truncated or replaced: reading begins again at its beginning.
    pub restarted: bool,
    /// The position before; `None` for a reader that is new.
    before: Option<Position>,
    /// The position behind.
    after: Position,
}

impl Claim {
    /// Whether there is nothing in it and nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.stretch.from.offset == self.stretch.to.offset && self.gap == 0 && !self.restarted
    }
}

/// A place in a log: between two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The offset at which a line begins.
    pub offset: u64,
    /// How many lines there are before it.
    pub lines: u64,
}

/// What is claimed.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The job is over: a last line without a newline is complete.
    pub over: bool,
    /// Nothing beyond this offset.
    pub limit: u64,
    /// About how much, in bytes: whole lines, at least one if there is one.
    pub batch: u64,
}

/// Where a search for a line's end got to, so that a line that grows is not searched from its beginning each time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Searched {
    from: u64,
    to: u64,
}

/// Finds the next claim of a reader that has come to `before`.
///
/// # Errors
/// When the log cannot be read.
pub fn next_claim(
    log: &LogFile,
    before: Option<&Position>,
    ask: Ask,
    searched: &mut Searched,
) -> io::Result<Claim> {
    loop {
        let extent = log.extent()?;
        let size = log.file()?.metadata()?.len();
        let same = match before {
            Some(p) => is_same(log, p, extent.start, extent.kept_from(), size)?,
            None => false,
        };
        let mut at = match before {
            Some(p) if same => (overwritten(log, p.offset), p.lines),
            _ => (extent.start.min(size), 0),
        };
        let mut gap = 0;
        if extent.kept_from() > at.0 {
            gap = extent.lines_gone().saturating_sub(at.1);
            at = (extent.kept_from(), at.1.max(extent.lines_gone()));
        }
        let (to, lines) = whole_lines(log, at.0, size.min(ask.limit), ask, searched)?;
        let epoch = before.map_or(0, |p| p.epoch + u64::from(!same));
        let mark = Mark::at(log, extent.kept_from(), to)?;
        let after = Position {
            log: log.name.file(),
            ino: log.id.file.ino,
            start: extent.start,
            offset: to,
            lines: at.1 + lines,
            epoch,
            mark: hex(&mark.0),
        };
        let now = log.extent()?;
        if now.kept_from() > at.0 {
            // More was dropped while the lines were looked for, and they may have been looked for in a hole.
            *searched = Searched::default();
            continue;
        }
        return Ok(Claim {
            stretch: Stretch {
                from: Place { offset: at.0, lines: at.1 },
                to: Place { offset: to, lines: at.1 + lines },
                mark,
            },
            gap,
            restarted: before.is_some() && !same,
            before: before.cloned(),
            after,
        });
    }
}

impl Claim {
    /// The position that makes the claim this reader's.
    pub fn taken(&self) -> &Position {
        &self.after
    }

    /// Whether nobody has claimed anything behind this claim.
    pub fn is_last(&self, now: &Position) -> bool {
        (now.epoch, now.offset, now.ino) == (self.after.epoch, self.after.offset, self.after.ino)
    }

    /// The position that gives back what lies behind `delivered`; `None` is the position of a reader that is new.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn given_back(&self, log: &LogFile, delivered: Place) -> io::Result<Option<Position>> {
        if delivered.offset <= self.stretch.from.offset {
            // Whatever there was to be told of a gap or a truncation is told again.
            return Ok(self.before.clone());
        }
        let Place { offset, lines } = delivered;
        let mark = Mark::at(log, log.extent()?.kept_from().min(offset), offset)?;
        if !self.stretch.mark.holds(log, self.stretch.to.offset, log.extent()?.kept_from())? {
            // The log was truncated meanwhile: there is nothing to be given back, and the position that was taken lets
            // the next reader notice.
            return Ok(Some(self.after.clone()));
        }
        Ok(Some(Position { offset, lines, mark: hex(&mark.0), ..self.after.clone() }))
    }
}

/// Whether a position is one in the log as it is now.
fn is_same(log: &LogFile, p: &Position, start: u64, kept_from: u64, size: u64) -> io::Result<bool> {
    if p.log != log.name.file() || p.ino != log.id.file.ino || p.start != start || p.offset > size {
        return Ok(false);
    }
    // On a full disk the footer was written over the end of the output: other bytes, the same log.
    let overwrote = log.end.footer.as_ref().is_some_and(|(f, _)| f.overwrote.is_some());
    Ok(overwrote || Mark(unhex(&p.mark)).holds(log, p.offset, kept_from)?)
}

/// An offset inside a footer that was written over the output: reading goes on at the footer.
fn overwritten(log: &LogFile, offset: u64) -> u64 {
    match &log.end.footer {
        Some((footer, at)) if footer.overwrote.is_some() && offset > *at => {
            let length = footer.lines().len() as u64;
            if offset < at + length { *at } else { offset }
        }
        _ => offset,
    }
}

/// The end of the last whole line between two offsets, after about a batch, and how many lines end before it.
fn whole_lines(
    log: &LogFile,
    from: u64,
    size: u64,
    ask: Ask,
    searched: &mut Searched,
) -> io::Result<(u64, u64)> {
    let (mut end, mut lines) = (from, 0);
    let known = searched.from == from && searched.to <= size;
    let mut at = if known { searched.to.max(from) } else { from };
    let mut buffer = vec![0; CHUNK.min(usize::try_from(size.saturating_sub(at)).unwrap_or(CHUNK))];
    let file = log.file()?;
    while at < size {
        let want = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
        let have = file.read_at(&mut buffer[..want], at)?;
        if have == 0 {
            break;
        }
        for newline in memchr::memchr_iter(b'\n', &buffer[..have]) {
            lines += 1;
            end = at + newline as u64 + 1;
            if end - from >= ask.batch {
                return Ok((end, lines));
            }
        }
        at += have as u64;
    }
    *searched = Searched { from: end, to: at };
    if ask.over && at == size && size > end && !is_torn_record(log, end, size)? {
        return Ok((size, lines));
    }
    Ok((end, lines))
}

/// Whether the last line may be a record in the middle of being written.
fn is_torn_record(log: &LogFile, begin: u64, end: u64) -> io::Result<bool> {
    const RECORD: &[u8] = b"=== GATE";
    let mut first = [0; RECORD.len()];
    let want = usize::try_from(end - begin).unwrap_or(usize::MAX).min(first.len());
    let have = log.file()?.read_at(&mut first[..want], begin)?;
    Ok(have > 0 && first[..have] == RECORD[..have])
}

/// How many lines there are before a position that was found from the log's end: no gap is counted from there.
const UNKNOWN: u64 = u64::MAX >> 1;

impl Position {
    /// The position at this offset, the beginning of a line.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn at(log: &LogFile, offset: u64) -> io::Result<Position> {
        let extent = log.extent()?;
        Ok(Position {
            log: log.name.file(),
            ino: log.id.file.ino,
            start: extent.start,
            offset,
            lines: UNKNOWN,
            epoch: 0,
            mark: hex(&Mark::at(log, extent.kept_from().min(offset), offset)?.0),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
