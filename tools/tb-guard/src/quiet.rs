//! Where the command's output goes: to the caller, to a log, or to a file that is shown only if something is wrong.

use crate::cli::More;
use rustix::fs::{CWD, Mode, OFlags};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use tb_shared::pytest;
use tb_shared::term::{Failure, Result, cause};

/// How many last lines are shown of a run whose time was up.
const LAST: usize = 30;
/// As much of the end as they are looked for in.
const END: u64 = 1 << 20;

/// The command's output.
pub(crate) struct Output {
    file: Option<File>,
    /// The log's path, if it has one.
    pub(crate) log: Option<PathBuf>,
    /// Whether it is shown only if something is wrong.
    pub(crate) quiet: bool,
}

impl Output {
    /// Opens what the options name: nothing is started yet.
    pub(crate) fn of(more: &More) -> Result<Output> {
        let file = match (&more.log, more.quiet_success) {
            (Some(path), _) => {
                let doing = || format!("write the log {}", path.display());
                let mut options = File::options();
                options.read(true).append(true).create(true).custom_flags(libc::O_TRUNC);
                Some(options.open(path).map_err(|e| Failure::cannot(doing(), cause(&e)))?)
            }
            (None, true) => Some(nameless()?),
            (None, false) => None,
        };
        Ok(Output { file, log: more.log.clone(), quiet: more.quiet_success })
    }

    /// The description that the command gets.
    pub(crate) fn for_command(&self) -> Result<Option<File>> {
        let copies = self.file.as_ref().map(File::try_clone).transpose();
        copies.map_err(|e| Failure::cannot("hand the log on", e))
    }

    /// Shows the output without the lines that tell of progress alone; returns the tests that failed.
    pub(crate) fn show(&self, out: impl Write) -> std::io::Result<BTreeSet<String>> {
        let mut failed = BTreeSet::new();
        let mut out = BufWriter::new(out);
        self.each_line(0, |line| {
            failed.extend(failure(line));
            if is_progress(line) { Ok(()) } else { out.write_all(line) }
        })?;
        out.flush()?;
        Ok(failed)
    }

    /// Each line from an offset on, as far as there are any now: who was left running may go on writing.
    fn each_line(&self, from: u64, mut see: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut file = file;
        file.seek(SeekFrom::Start(from))?;
        let mut reader = BufReader::new(file.take(file.metadata()?.len().saturating_sub(from)));
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            see(&line)?;
            line.clear();
        }
        Ok(())
    }

    /// The last lines, for a run whose time was up.
    pub(crate) fn last_lines(&self) -> std::io::Result<Vec<String>> {
        let size = self.file.as_ref().map_or(Ok(0), |f| f.metadata().map(|m| m.len()))?;
        let mut last = VecDeque::with_capacity(LAST);
        self.each_line(size.saturating_sub(END), |line| {
            if last.len() == LAST {
                last.pop_front();
            }
            last.push_back(String::from_utf8_lossy(line).trim_end().to_owned());
            Ok(())
        })?;
        Ok(last.into())
    }
}

/// A file on disk that nobody else can name, so that a long output does not live in memory.
fn nameless() -> Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::openat(CWD, std::env::temp_dir(), flags, mode)
        // A file system without O_TMPFILE: memory then.
        .or_else(|_| rustix::fs::memfd_create("tb-guard", rustix::fs::MemfdFlags::CLOEXEC))
        .map(File::from)
        .map_err(|e| Failure::cannot("keep the output in a file", std::io::Error::from(e)))
}

/// Whether a line tells of progress alone: a passed test, a row of dots.
fn is_progress(line: &[u8]) -> bool {
    let plain = pytest::plain(line.trim_ascii_end());
    if let Some(result) = pytest::xdist_result(&plain) {
        return is_fine(result.word);
    }
    let (body, percent) = pytest::percent(&plain);
    if let Some((_, word)) = pytest::result(body) {
        return is_fine(word);
    }
    let letters = body.trim_ascii_end();
    let letters = letters.rsplit(|&b| b == b' ').next().unwrap_or_default();
    percent.is_some() && letters.iter().all(|b| b".sx,-y".contains(b))
}

/// The test that a line says has failed: as it ran, or in pytest's short summary.
fn failure(line: &[u8]) -> Option<String> {
    let plain = pytest::plain(line.trim_ascii_end());
    let (body, _) = pytest::percent(&plain);
    let id = match pytest::xdist_result(&plain).map(|r| (r.id, r.word)).or_else(|| pytest::result(body)) {
        Some((id, pytest::Word::Failed | pytest::Word::Error)) => id,
        Some(_) => return None,
        None => {
            let rest = plain.strip_prefix(b"FAILED ").or_else(|| plain.strip_prefix(b"ERROR "))?;
            rest.windows(3).position(|w| w == b" - ").map_or(rest, |end| &rest[..end])
        }
    };
    pytest::is_id(id).then(|| String::from_utf8_lossy(id).into_owned())
}

fn is_fine(word: pytest::Word) -> bool {
    matches!(word, pytest::Word::Passed | pytest::Word::Skipped | pytest::Word::Xfail)
}

#[cfg(test)]
mod tests {
    use super::{failure, is_progress};

    #[test]
    fn p19_failed_tests_are_named_as_they_ran_and_in_the_summary() {
        for (line, id) in [
            ("tests/a.py::test_x FAILED                    [ 42%]\n", Some("tests/a.py::test_x")),
            ("[gw0] [ 12%] ERROR tests/a.py::test_x \n", Some("tests/a.py::test_x")),
            ("FAILED tests/a.py::test_x - assert 1 == 2\n", Some("tests/a.py::test_x")),
            ("tests/a.py::test_x PASSED\n", None),
            ("FAILED to connect\n", None),
        ] {
            assert_eq!(failure(line.as_bytes()).as_deref(), id, "{line}");
        }
    }

    #[test]
    fn p03_progress_alone_is_left_out_and_failures_are_not() {
        for gone in [
            "tests/a.py::test_x PASSED                    [ 42%]\n",
            "tests/a.py ....s.x                           [ 42%]\n",
            "........................................ [100%]\n",
            "[gw0] [ 12%] PASSED tests/a.py::test_x \n",
        ] {
            assert!(is_progress(gone.as_bytes()), "{gone}");
        }
        for stays in [
            "tests/a.py::test_x FAILED                    [ 42%]\n",
            "tests/a.py ..F.                              [ 42%]\n",
            "[gw0] [ 12%] FAILED tests/a.py::test_x \n",
            "E   assert 1 == 2\n",
            "done 42%\n",
            "\n",
        ] {
            assert!(!is_progress(stays.as_bytes()), "{stays}");
        }
    }
}
