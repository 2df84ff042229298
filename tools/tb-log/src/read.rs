//! From a run's log to the printer: claims of whole lines, delivered or given back.

use crate::printer::Printer;
use std::io::Write;
use tb_shared::contract::{LogFile, RunDir};
use tb_shared::log::{Ask, Claim, Cursor, LastOffsets, Position, Reader, Searched, last_lines, next_claim};
use tb_shared::term::{Failure, Result};

/// About how much is claimed at once, in bytes: what a reader that is killed has had of a cursor is bounded by it.
const BATCH: u64 = 1 << 20;

/// How far reading has come: for this reader alone, or in a cursor that others share.
#[derive(Debug)]
pub enum Progress<'a> {
    /// For this call alone; `None` is the log's beginning.
    Own(Option<Position>, Searched),
    /// A cursor.
    Shared(Cursor<'a>),
}

impl Progress<'_> {
    fn claim(&mut self, dir: &RunDir, log: &LogFile, ask: Ask) -> Result<Claim> {
        match self {
            Progress::Shared(cursor) => cursor.claim(log, ask),
            Progress::Own(position, searched) => {
                let claim =
                    next_claim(log, position.as_ref(), ask, searched).map_err(|e| cannot(dir, log, e))?;
                *position = Some(claim.taken().clone());
                Ok(claim)
            }
        }
    }
}

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// A last line without a newline is complete.
    pub over: bool,
    /// All in one claim: delivered as a whole or not at all.
    pub whole: bool,
}

/// Reads what there is now, in claims of whole lines. True when the job's footer was among it.
///
/// # Errors
/// When the log or the cursor cannot be read, or output cannot be written: what did not go out is given back then.
pub fn read<W: Write>(
    dir: &RunDir,
    log: &LogFile,
    progress: &mut Progress<'_>,
    extent: Extent,
    printer: &mut Printer<W>,
    mut end: impl FnMut(&mut Printer<W>) -> Result<()>,
) -> Result<bool> {
    // A job that writes as fast as this reads must not keep it for ever.
    let limit = log.file().and_then(|file| file.metadata()).map_err(|e| cannot(dir, log, e))?.len();
    let batch = if extent.whole { u64::MAX } else { BATCH };
    let ask = Ask { over: extent.over, limit, batch };
    let mut saw_footer = false;
    while !printer.sink.is_closed() {
        let claim = progress.claim(dir, log, ask)?;
        if claim.is_empty() && !extent.whole {
            break;
        }
        saw_footer |= deliver(dir, log, progress, &claim, printer, &mut end)?;
        if extent.whole {
            break;
        }
    }
    // A head without lines under it is waiting, too.
    printer.sink.flush()?;
    Ok(saw_footer)
}

/// Delivers a claim, or gives back what did not go out. `end` is called when all of it was printed.
///
/// # Errors
/// As [`read`].
pub fn deliver<W: Write>(
    dir: &RunDir,
    log: &LogFile,
    progress: &mut Progress<'_>,
    claim: &Claim,
    printer: &mut Printer<W>,
    mut end: impl FnMut(&mut Printer<W>) -> Result<()>,
) -> Result<bool> {
    printer.sink.begin(claim.stretch.from);
    printer.counts.dropped += claim.gap;
    printer.counts.truncated |= claim.restarted;
    let done = print(dir, log, claim, printer).and_then(|saw_footer| {
        end(printer)?;
        printer.sink.mark(claim.stretch.to);
        printer.sink.flush()?;
        Ok(saw_footer)
    });
    if done.is_ok() && !printer.sink.is_closed() {
        return done;
    }
    let delivered = printer.sink.delivered();
    if delivered.offset < claim.stretch.to.offset
        && let Progress::Shared(cursor) = progress
        && !cursor.give_back(log, claim, delivered)?
    {
        let bytes = claim.stretch.to.offset - delivered.offset;
        let path = dir.path_of(&log.name.file());
        return Err(Failure::cannot(
            format!("give back {bytes} bytes that could not be written"),
            "another reader of the cursor has gone on",
        )
        .hint(format!("they are in {}, from byte {} on", path.display(), delivered.offset)));
    }
    done
}

fn print<W: Write>(dir: &RunDir, log: &LogFile, claim: &Claim, printer: &mut Printer<W>) -> Result<bool> {
    let reading = |e| cannot(dir, log, e);
    let mut reader = Reader::new(log, &claim.stretch, printer.hold()).map_err(reading)?;
    while !printer.sink.is_closed() {
        let Some(piece) = reader.next().map_err(reading)? else { break };
        printer.piece(&piece)?;
    }
    printer.counts.dropped += reader.gap;
    printer.counts.truncated |= reader.cut;
    Ok(reader.saw_footer)
}

/// The position of the last `n` lines of a log, of those that the printer wants if `matching`.
///
/// # Errors
/// When the log cannot be read.
pub fn position_of_last<W: Write>(
    dir: &RunDir,
    log: &LogFile,
    n: usize,
    matching: bool,
    printer: &Printer<W>,
) -> Result<Position> {
    let reading = |e| cannot(dir, log, e);
    let mut from = last_lines(log, n).map_err(reading)?;
    if matching {
        let ask = Ask { over: true, limit: u64::MAX, batch: u64::MAX };
        let all = next_claim(log, None, ask, &mut Searched::default()).map_err(reading)?;
        let mut reader = Reader::new(log, &all.stretch, printer.hold()).map_err(reading)?;
        let mut last = LastOffsets::new(n);
        while let Some(piece) = reader.next().map_err(reading)? {
            if printer.wants(piece.bytes) {
                last.push(piece.line_at);
            }
        }
        from = last.first().unwrap_or(all.stretch.to.offset);
    }
    Position::at(log, from).map_err(reading)
}

fn cannot(dir: &RunDir, log: &LogFile, e: std::io::Error) -> Failure {
    Failure::cannot(format!("read {}", dir.path_of(&log.name.file()).display()), e)
}
