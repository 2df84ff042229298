//! Where a log comes from: a job, a file, standard input.
//!
//! Everything behind this module reads bytes and knows nothing of run directories.

use crate::cli::ScopeArgs;
use crate::report::JobFacts;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tb_shared::contract::{Job, Name, collect};
use tb_shared::term::{Code, Common, Context, Failure, Result};

/// A log to be read, and what is known of its job beside it.
pub(crate) struct Source {
    /// How it is called in the output: the job's name, the path, `-`.
    pub(crate) name: String,
    /// Its bytes.
    pub(crate) bytes: Box<dyn Read>,
    /// Where it lies, if it is a file.
    pub(crate) path: Option<PathBuf>,
    /// What the run directory says of the job; `None` for a log from elsewhere.
    pub(crate) job: Option<JobFacts>,
    /// The job itself, to be marked as collected once its results were read.
    pub(crate) tracked: Option<Tracked>,
}

/// A job of a run directory.
pub(crate) struct Tracked {
    context: Context,
    job: Job,
}

impl Tracked {
    /// Marks a finished job as collected: it leaves the list, nothing else.
    ///
    /// # Errors
    /// When its log cannot be written.
    pub(crate) fn collect(&self) -> Result<()> {
        match &self.context.dir {
            Some(dir) => collect(dir, &self.job).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// What the user named, found.
///
/// # Errors
/// "not tracked" for a name that is neither a job's nor a log's; the system's word for a file that cannot be read.
pub(crate) fn find(target: &OsStr, scope: &ScopeArgs) -> Result<Source> {
    if target == "-" {
        return Ok(Source {
            name: "-".to_owned(),
            bytes: Box::new(io::stdin()),
            path: None,
            job: None,
            tracked: None,
        });
    }
    if let Some(source) = job(target, scope)? {
        return Ok(source);
    }
    let path = Path::new(target);
    if is_log(path) {
        return file(path);
    }
    let name = target.to_string_lossy();
    let failure =
        Failure::new(Code::NotTracked, format!("cannot read the results of {name}: no such job is tracked"));
    Err(if path.exists() {
        failure
            .hint("a log is named by a path that ends in .log, .xml or .jsonl")
            .hint(format!("any other file is read with --file {name}"))
    } else {
        failure.hint("there is no file of that name either")
    })
}

/// The newest log of a job and what its record says.
fn job(name: &OsStr, scope: &ScopeArgs) -> Result<Option<Source>> {
    // What cannot be a job's name may still be a file's.
    let Ok(name) = Name::parse(name) else { return Ok(None) };
    let common = Common {
        log_dir: scope.log_dir.clone(),
        owner: scope.owner.clone(),
        all_owners: scope.all_owners,
        ..Common::default()
    };
    let context = common.context()?;
    let Some(job) = context.find(&name)? else { return Ok(None) };
    let Some(log) = &job.log else {
        return Err(Failure::new(
            job.state.code(),
            format!("cannot read the results of {name}: it has no log"),
        ));
    };
    let facts = match &log.end.footer {
        _ if job.state.is_running() => JobFacts { running: true, ..JobFacts::default() },
        Some((footer, _)) => JobFacts::of_footer(footer),
        // Nobody recorded how it ended: the text is all there is.
        None => JobFacts::default(),
    };
    let path = context.path.join(log.name.file());
    let unreadable = |e: io::Error| Failure::cannot(format!("read {}", path.display()), cause(&e));
    let mut bytes = log.file().and_then(|file| file.try_clone()).map_err(unreadable)?;
    if let Some(dropped) = log.extent().map_err(unreadable)?.dropped {
        // The oldest output was given back to the disk: what is there now is no output.
        bytes.seek(SeekFrom::Start(dropped.until)).map_err(unreadable)?;
    }
    Ok(Some(Source {
        name: job.name.clone(),
        bytes: Box::new(bytes),
        path: Some(path),
        job: Some(facts),
        tracked: Some(Tracked { context, job }),
    }))
}

/// Any file.
///
/// # Errors
/// The system's word for a file that cannot be read.
pub(crate) fn file(path: &Path) -> Result<Source> {
    let doing = || format!("read {}", path.display());
    let unreadable = |e: io::Error| Failure::usage(doing(), cause(&e));
    // A FIFO without a writer must not hold the tool up for ever before it can say what it is.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    let kind = file.metadata().map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(Failure::usage(doing(), "it is a directory"));
    }
    let bytes: Box<dyn Read> =
        if kind.is_file() { Box::new(file) } else { Box::new(File::open(path).map_err(unreadable)?) };
    Ok(Source {
        name: path.display().to_string(),
        bytes,
        path: Some(path.to_owned()),
        job: None,
        tracked: None,
    })
}

/// The system's words without the number.
pub(crate) fn cause(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

fn is_log(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    matches!(ending, Some("log" | "xml" | "jsonl")) && path.metadata().is_ok_and(|m| m.is_file())
}

/// The log of the run before, by the names that jobs' logs have: `test-STEM-STAMP.log`, `test-STEM-STAMP-2.log`.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn before(path: &Path) -> Result<Option<PathBuf>> {
    let Some((stem, own)) = path.file_name().and_then(OsStr::to_str).and_then(stamp) else { return Ok(None) };
    let directory = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let unreadable = |e: io::Error| Failure::usage(format!("list {}", directory.display()), cause(&e));
    let mut best: Option<((String, u64), PathBuf)> = None;
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let Some((other, when)) = name.to_str().and_then(stamp) else { continue };
        if other == stem && when < own && best.as_ref().is_none_or(|(b, _)| *b < when) {
            best = Some((when, entry.path()));
        }
    }
    Ok(best.map(|(_, path)| path))
}

/// The stem of a job's log, its stamp and the number behind it.
fn stamp(name: &str) -> Option<(String, (String, u64))> {
    let body = name.strip_prefix("test-")?.strip_suffix(".log")?;
    let is_stamp = |s: &str| {
        s.len() == 15
            && s.bytes().enumerate().all(|(i, b)| if i == 8 { b == b'_' } else { b.is_ascii_digit() })
    };
    let (head, last) = body.rsplit_once('-')?;
    if is_stamp(last) {
        return Some((head.to_owned(), (last.to_owned(), 1)));
    }
    let n = last.parse().ok()?;
    let (stem, when) = head.rsplit_once('-')?;
    is_stamp(when).then(|| (stem.to_owned(), (when.to_owned(), n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_before_is_the_newest_older_log_of_the_same_stem() {
        let dir = tempfile::tempdir().unwrap();
        let touch = |name: &str| std::fs::write(dir.path().join(name), "").unwrap();
        let names = [
            "test-a-20260101_000000.log",
            "test-a-20260101_000000-2.log",
            "test-a-20260101_000000-10.log",
            "test-a-b-20260101_000001.log",
            "test-a-20260102_000000.log",
            "other.log",
        ];
        names.into_iter().for_each(touch);
        let before = |name: &str| {
            let path = before(&dir.path().join(name)).unwrap()?;
            Some(path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(before(names[4]).as_deref(), Some(names[2]));
        assert_eq!(before(names[2]).as_deref(), Some(names[1]));
        assert_eq!(before(names[0]), None);
        assert_eq!(before("other.log"), None);
    }

    #[test]
    fn only_a_regular_file_with_one_of_the_endings_is_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let scope = ScopeArgs::default();
        for (name, is) in
            [("a.log", true), ("a.xml", true), ("a.jsonl", true), ("a.txt", false), ("a.py", false)]
        {
            std::fs::write(dir.path().join(name), "").unwrap();
            assert_eq!(find(dir.path().join(name).as_os_str(), &scope).is_ok(), is, "{name}");
        }
        std::fs::create_dir(dir.path().join("d.log")).unwrap();
        let failure = find(dir.path().join("d.log").as_os_str(), &scope).err().unwrap();
        assert_eq!(failure.code, Code::NotTracked);
    }
}
