//! Cursors: how far the readers of one id have come in a job's log, kept in a file that they share
//! (CONTRACT.md §8). A stretch is claimed under the file's lock and read when the lock is dropped: no line goes to two
//! of them, and a slow one holds up nobody.

use super::lines::Reader;
use super::position::{Ask, Claim, Place, Position, Searched, next_claim};
use crate::contract::{DirEntry, LogFile, LogName, RunDir, lock_within};
use crate::term::{Failure, Result};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// How long a claim of another reader is waited for: it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest cursor file, in bytes.
const SIZE_MAX: u64 = 4096;
/// The longest job's part of a cursor's file name, in bytes.
const KEY_MAX: usize = 160;
/// What is looked at of a line at once, in bytes.
const CHUNK: usize = 64 << 10;

/// A cursor file's content: one line of JSON, padded with spaces, so that it is written over in one write.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Content {
    v: u32,
    job: String,
    id: String,
    /// The log's file name: its cursors go with it.
    log: String,
    /// `null` before anything was read, or after all of it was given back.
    position: Option<Position>,
}

/// One cursor: a job's log and an id.
#[derive(Debug)]
pub struct Cursor<'a> {
    dir: &'a RunDir,
    job: String,
    id: String,
    log: String,
    file: String,
    searched: Searched,
}

/// Whether this text can be a cursor's id.
pub fn is_cursor_id(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"_.@:-".contains(&b);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(fits)
}

/// What stands for the job's id where a log has no header: the stem and the stamp.
pub fn log_id(name: &LogName) -> String {
    let file = name.file();
    let text = file.strip_prefix("test-").and_then(|f| f.strip_suffix(".log")).unwrap_or(&file);
    if text.len() <= KEY_MAX {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(KEY_MAX / 8).collect();
    short.push('~');
    for byte in &Sha256::digest(text.as_bytes())[..8] {
        short.push_str(&format!("{byte:02x}"));
    }
    short
}

fn file_of(job: &str, id: &str) -> String {
    format!(".cursor-{job}-{id}")
}

impl<'a> Cursor<'a> {
    /// The cursor with this id for this log. A log that lost its header keeps the cursor that it had.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn of(dir: &'a RunDir, log: &LogFile, id: &str) -> Result<Cursor<'a>> {
        let by_name = log_id(&log.name);
        let job = if dir.stat(&file_of(&by_name, id)).is_some() {
            by_name
        } else if let Some(job) = log.job() {
            job.to_owned()
        } else {
            let here = log.name.file();
            let mut known = cursors(dir, Some(id))?.into_iter().map(|(_, content)| content);
            known.find(|content| content.log == here).map_or(by_name, |content| content.job)
        };
        let file = file_of(&job, id);
        Ok(Cursor { dir, job, id: id.to_owned(), log: log.name.file(), file, searched: Searched::default() })
    }

    /// Claims the next whole lines: from now on they are this reader's.
    ///
    /// # Errors
    /// When the log cannot be read or the cursor cannot be written: then nothing was claimed.
    pub fn claim(&mut self, log: &LogFile, ask: Ask) -> Result<Claim> {
        let (file, before) = self.lock()?;
        let claim = next_claim(log, before.as_ref(), ask, &mut self.searched).map_err(|e| {
            Failure::cannot(format!("read {}", self.dir.path_of(&log.name.file()).display()), e)
        })?;
        if before.as_ref() != Some(claim.taken()) {
            self.write(&file, Some(claim.taken().clone()))?;
        }
        Ok(claim)
    }

    /// Gives back what of a claim was not delivered, from this place on, if nobody has claimed since. False if
    /// somebody has.
    ///
    /// # Errors
    /// When the log cannot be read or the cursor cannot be written.
    pub fn give_back(&mut self, log: &LogFile, claim: &Claim, delivered: Place) -> Result<bool> {
        let (file, now) = self.lock()?;
        if !now.as_ref().is_some_and(|now| claim.is_last(now)) {
            return Ok(false);
        }
        let position = claim.given_back(log, delivered).map_err(|e| {
            Failure::cannot(format!("read {}", self.dir.path_of(&log.name.file()).display()), e)
        })?;
        self.write(&file, position)?;
        Ok(true)
    }

    /// Opens and locks the cursor's file, creating it where there is none, and reads it.
    fn lock(&self) -> Result<(File, Option<Position>)> {
        // Logs are removed with their cursors: a file that lost its name meanwhile is nobody's cursor.
        for _ in 0..100 {
            let Some((file, stat)) = self.dir.open_file(&self.file, OFlags::RDWR | OFlags::CREATE)? else {
                continue;
            };
            if !lock_within(&file, PATIENCE).map_err(|e| self.cannot("lock", e))? {
                let path = self.dir.path_of(&self.file);
                return Err(self
                    .cannot("lock", "another reader has held it for 10 s")
                    .hint(format!("see who: fuser {}", path.display())));
            }
            if self
                .dir
                .stat(&self.file)
                .is_none_or(|now| (now.st_dev, now.st_ino) != (stat.st_dev, stat.st_ino))
            {
                continue;
            }
            let content = read(&file).map_err(|e| self.cannot("read", e))?;
            return Ok((file, content.and_then(|c| c.position)));
        }
        Err(self.cannot("lock", "it is being removed again and again").hint("try again"))
    }

    fn cannot(&self, verb: &str, cause: impl std::fmt::Display) -> Failure {
        Failure::cannot(format!("{verb} the cursor {}", self.dir.path_of(&self.file).display()), cause)
    }

    fn write(&self, file: &File, position: Option<Position>) -> Result<()> {
        let content =
            Content { v: 1, job: self.job.clone(), id: self.id.clone(), log: self.log.clone(), position };
        let written = serde_json::to_vec(&content).map_err(io::Error::other).and_then(|mut line| {
            // Never shorter than before, so that one write makes the new content whole.
            let size = usize::try_from(file.metadata()?.len()).unwrap_or(0);
            line.resize((line.len() + 1).max(512).max(size) - 1, b' ');
            line.push(b'\n');
            file.write_all_at(&line, 0)
        });
        written.map_err(|e| self.cannot("write", e))
    }
}

/// What a cursor's file says; `None` where nothing was written yet.
fn read(file: &File) -> io::Result<Option<Content>> {
    let mut bytes = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(bytes.trim_ascii()).map(Some).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "its content is none of ours: remove it to begin anew")
    })
}

/// The cursors of the directory, of this id if one is given, with their files' names. What is no cursor is left out.
fn cursors(dir: &RunDir, id: Option<&str>) -> Result<Vec<(String, Content)>> {
    let mut cursors = Vec::new();
    let end = id.map(|id| format!("-{id}")).unwrap_or_default();
    for entry in dir.entries()? {
        if let DirEntry::Cursor(name) = entry
            && name.ends_with(&end)
            && let Ok(Some((file, _))) = dir.open_file(&name, OFlags::RDONLY)
            && let Ok(Some(content)) = read(&file)
            && id.is_none_or(|id| content.id == id)
        {
            cursors.push((name, content));
        }
    }
    Ok(cursors)
}

/// The earlier logs of a stem that readers of this id have not read to the end, oldest first: from the oldest that
/// they have begun to read, up to the one before `newest`.
///
/// # Errors
/// When the directory cannot be read.
pub fn unread_before(dir: &RunDir, logs: &[LogName], newest: &LogName, id: &str) -> Result<Vec<LogName>> {
    let mut older: Vec<&LogName> = logs.iter().filter(|l| l.order() < newest.order()).collect();
    if older.is_empty() {
        return Ok(vec![]);
    }
    older.sort_by_key(|l| l.order());
    let read_to: Vec<(LogName, u64)> = cursors(dir, Some(id))?
        .into_iter()
        // A cursor all of whose claims were given back has begun all the same.
        .filter_map(|(_, c)| Some((LogName::parse(&c.log)?, c.position.map_or(0, |p| p.offset))))
        .collect();
    let offset = |log: &LogName| read_to.iter().find(|(name, _)| name == log).map(|(_, offset)| *offset);
    let size = |log: &LogName| dir.stat(&log.file()).map(|s| u64::try_from(s.st_size).unwrap_or(0));
    let begun = older.iter().position(|log| offset(log).is_some());
    let unread = older.into_iter().skip(begun.unwrap_or(usize::MAX));
    Ok(unread.filter(|log| size(log).is_some_and(|size| offset(log) != Some(size))).cloned().collect())
}

/// How many lines of a log the readers of this id have not been given, without those that were dropped. A last line
/// without a newline counts.
///
/// # Errors
/// When the log or the cursor cannot be read.
pub fn unread_lines(dir: &RunDir, log: &LogFile, id: &str) -> Result<u64> {
    let cursor = Cursor::of(dir, log, id)?;
    let position = match dir.open_file(&cursor.file, OFlags::RDONLY)? {
        Some((file, _)) => read(&file).map_err(|e| cursor.cannot("read", e))?.and_then(|c| c.position),
        None => None,
    };
    let count = || {
        let ask = Ask { over: true, limit: u64::MAX, batch: u64::MAX };
        let claim = next_claim(log, position.as_ref(), ask, &mut Searched::default())?;
        let mut reader = Reader::new(log, &claim.stretch, CHUNK)?;
        let mut lines = 0;
        while let Some(piece) = reader.next()? {
            lines += u64::from(piece.ends);
        }
        Ok(lines)
    };
    count().map_err(|e: io::Error| {
        Failure::cannot(format!("read {}", dir.path_of(&log.name.file()).display()), e)
    })
}

/// Removes the cursors whose logs are gone.
///
/// # Errors
/// When the directory cannot be read, or a cursor cannot be removed.
pub fn forget_cursors(dir: &RunDir) -> Result<()> {
    for (name, content) in cursors(dir, None)? {
        if LogName::parse(&content.log).is_some() && dir.stat(&content.log).is_none() {
            dir.remove(&name)
                .map_err(|e| Failure::cannot(format!("remove {}", dir.path_of(&name).display()), e))?;
        }
    }
    Ok(())
}
