//! The lines of a log that are the contract's: header, phases, stops, footer, marker (CONTRACT.md §4).

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::ffi::OsString;

/// The version of the contract that is written, and the newest that is understood.
pub const VERSION: u32 = 1;
/// The most that a header's `command` may hold, in bytes.
const COMMAND_MAX: usize = 4096;
/// The most that a header's `cwd` may take as JSON, in bytes: any ordinary path fits.
const CWD_MAX: usize = 6 << 10;

const LAUNCH: &[u8] = b"=== GATE LAUNCH: ";
const PHASE: &[u8] = b"=== GATE PHASE: ";
const STOPPING: &[u8] = b"=== GATE STOPPING: ";
const RESULT: &[u8] = b"=== GATE RESULT: ";
const HOOK: &[u8] = b"=== GATE HOOK: ";
const COLLECTED: &[u8] = b"=== GATE COLLECTED: ";
const DROPPED: &[u8] = b"=== GATE DROPPED: ";
const END: &[u8] = b" ===";
const PASSED: &[u8] = b"=== GATE: PASSED ===";
const FAILED: &[u8] = b"=== GATE: FAILED ===";

/// A supervisor as the header names it: PID and start time in clock ticks since boot.
pub type Supervisor = (i32, u64);

/// What happens to processes that outlive the leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Leaks {
    /// They are stopped and named.
    #[default]
    Kill,
    /// The same, and a pass becomes a fail.
    Fail,
    /// They are left, and named.
    Allow,
}

/// The first line of a log: who runs it. Fields that a reader can do without have defaults, so that an
/// older or foreign writer is tolerated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The contract's version.
    pub v: u32,
    /// The job's random id.
    pub job: String,
    /// The job's name.
    pub name: String,
    /// Whose job it is.
    #[serde(default)]
    pub owner: Option<String>,
    /// The host's name.
    #[serde(default)]
    pub host: String,
    /// The leader.
    pub pid: i32,
    /// The leader's start, in clock ticks since boot.
    #[serde(default)]
    pub start: u64,
    /// The boot's id.
    #[serde(default)]
    pub boot: String,
    /// The PID namespace's inode.
    #[serde(default)]
    pub pidns: u64,
    /// The time namespace's inode.
    #[serde(default)]
    pub timens: u64,
    /// The two halves, the front first.
    #[serde(default)]
    pub supervisors: Vec<Supervisor>,
    /// The command's arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Whether `command` was too long to be kept whole.
    #[serde(default, skip_serializing_if = "is_false")]
    pub command_truncated: bool,
    /// Where it runs.
    #[serde(default)]
    pub cwd: String,
    /// When it was launched, RFC 3339 in UTC.
    #[serde(default)]
    pub started_at: String,
    /// The job inside which it was launched.
    #[serde(default)]
    pub nested_in: Option<String>,
    /// What happens to what outlives the leader.
    #[serde(default)]
    pub leaks: Leaks,
    /// Whether some text was not UTF-8.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(b: &bool) -> bool {
    !b
}

impl Header {
    /// Puts a command and a directory into the header: at most 4 KiB of it, U+FFFD for what is not UTF-8.
    pub fn set_command(&mut self, command: &[OsString], cwd: &std::path::Path) {
        let mut room = COMMAND_MAX;
        for arg in command {
            let text = arg.to_string_lossy();
            self.lossy |= matches!(text, std::borrow::Cow::Owned(_));
            let cost = serde_json::to_string(&*text).map_or(text.len() * 6, |s| s.len()) + 1;
            if cost > room {
                let keep: String = text.chars().take(room / 6).collect();
                if !keep.is_empty() {
                    self.command.push(keep);
                }
                self.command_truncated = true;
                break;
            }
            room -= cost;
            self.command.push(text.into_owned());
        }
        let text = cwd.to_string_lossy();
        self.lossy |= matches!(text, std::borrow::Cow::Owned(_));
        self.cwd = text.into_owned();
        // A path of control characters takes six bytes for each: readers would not find the header's end.
        while serde_json::to_string(&self.cwd).map_or(0, |s| s.len()) > CWD_MAX {
            let cut = self.cwd.chars().count() / 2;
            self.cwd = self.cwd.chars().take(cut).collect();
            self.lossy = true;
        }
    }

    /// The header as the line that is written.
    pub fn line(&self) -> Vec<u8> {
        record(LAUNCH, self)
    }

    /// The header and the [`Dropped`] line of a log whose oldest output may be given back to the disk: together they
    /// fill whole blocks, so that what follows can be punched out up to any block. The room is made by spaces
    /// behind the header's object.
    pub fn block(&self, block: usize, dropped: &Dropped) -> Vec<u8> {
        let line = self.line();
        let size = (line.len() + Dropped::LEN).next_multiple_of(block.max(1));
        let mut bytes = Vec::with_capacity(size);
        bytes.extend(&line[..line.len() - END.len() - 1]);
        bytes.resize(size - Dropped::LEN - END.len() - 1, b' ');
        bytes.extend(END);
        bytes.push(b'\n');
        bytes.extend(dropped.line());
        bytes
    }
}

/// How much of the oldest output was given back to the disk: a line of fixed width right behind the header, so that
/// it can be written over, each time before a hole is punched. Offsets stay: between this line and `until` there is
/// nothing (NUL bytes, once the hole is there), and a reader who has read of it looks at this line again afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// How many lines, from the beginning of the output: newlines between this line and `until`.
    pub lines: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// The offset in the log at which the first line begins that was kept.
    pub until: u64,
}

impl Dropped {
    /// The length of the line, with its newline: three numbers of 20 digits fit.
    pub const LEN: usize = 128;

    /// The line that is written.
    pub fn line(&self) -> Vec<u8> {
        let mut line = record(DROPPED, self);
        line.truncate(line.len() - END.len() - 1);
        line.resize(Dropped::LEN - END.len() - 1, b' ');
        line.extend(END);
        line.push(b'\n');
        line
    }

    /// Reads the object of such a line.
    pub fn parse(json: &[u8]) -> Option<Dropped> {
        serde_json::from_slice(json).ok()
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Exit 0 (pytest's 5 where nothing to run is allowed).
    Passed,
    /// Another exit, or died of a signal.
    Failed,
    /// Stopped by request, or with its outer job.
    Killed,
    /// Its own time limit or stall limit.
    Timeout,
    /// Nobody wrote how it ended. Never written, only read.
    Crashed,
}

impl Outcome {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Killed => "killed",
            Outcome::Timeout => "timeout",
            Outcome::Crashed => "crashed",
        }
    }
}

/// What brought the end about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The leader ended by itself.
    Exit,
    /// The wall clock.
    Limit,
    /// No progress.
    Stall,
    /// A request to stop.
    Kill,
    /// The outer job or guard ended.
    Outer,
    /// Something outlived the leader and `--leaks fail` was asked.
    Leaks,
}

/// A process that outlived its leader, or could not be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its PID.
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    pub start: u64,
    /// Its command line, cut.
    pub command: String,
    /// Why it is listed.
    pub why: String,
}

/// The last word about a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Footer {
    /// The contract's version.
    pub v: u32,
    /// The job's id.
    pub job: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The leader's exit status, null when it died of a signal or nobody knows.
    pub exit_code: Option<i32>,
    /// The signal it died of (`SIGKILL`).
    pub signal: Option<String>,
    /// What brought the end about.
    pub reason: Option<Reason>,
    /// When the leader ended, RFC 3339 in UTC.
    #[serde(default)]
    pub finished_at: Option<String>,
    /// How long the leader ran.
    #[serde(default)]
    pub elapsed_seconds: Option<f64>,
    /// The CPU time of the leader and what it waited for.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
    /// The largest resident set among them.
    #[serde(default)]
    pub max_rss_kb: Option<u64>,
    /// What outlived the leader.
    #[serde(default)]
    pub leaked: Vec<Leftover>,
    /// Jobs inside this one that ended with it.
    #[serde(default)]
    pub nested: Vec<Leftover>,
    /// What could not be stopped.
    #[serde(default)]
    pub survivors: Vec<Leftover>,
    /// Whether the log lost its beginning or was replaced.
    #[serde(default)]
    pub truncated: bool,
    /// Whether the output did not end in a newline.
    #[serde(default)]
    pub added_newline: bool,
    /// Bytes of output that had to give way to this footer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrote: Option<u64>,
    /// The strongest signal that a stop needed: `SIGTERM` (or what was asked for), `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_with: Option<String>,
    /// The whole header again.
    pub header: HeaderCopy,
}

/// The header's object as a footer repeats it: kept as text, and read only where it is wanted, which is where the log lost
/// the header itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeaderCopy(Box<RawValue>);

impl HeaderCopy {
    /// The header that it is, unless it is none.
    pub fn read(&self) -> Option<Header> {
        serde_json::from_str(self.0.get()).ok()
    }
}

impl From<&Header> for HeaderCopy {
    fn from(header: &Header) -> HeaderCopy {
        // Our own types always serialise; an empty object would be read as no header.
        HeaderCopy(to_raw_value(header).unwrap_or_default())
    }
}

impl PartialEq for HeaderCopy {
    fn eq(&self, other: &HeaderCopy) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Footer {
    /// The footer and the terminal marker, as the lines that are written in one piece.
    pub fn lines(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1024);
        if self.added_newline {
            bytes.push(b'\n');
        }
        bytes.extend(record(RESULT, self));
        bytes.extend(if self.outcome == Outcome::Passed { PASSED } else { FAILED });
        bytes.push(b'\n');
        bytes
    }
}

/// A stop, announced before its first signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// The job's id.
    pub job: String,
    /// Who asked.
    pub by: String,
    /// Why.
    pub reason: Reason,
}

impl Stopping {
    /// The line that is written; on a line of its own whatever the output ends in.
    pub fn line(&self) -> Vec<u8> {
        record(STOPPING, self)
    }
}

/// The line that says what became of the exit hook.
pub fn hook_line<T: Serialize>(what: &T) -> Vec<u8> {
    record(HOOK, what)
}

/// The line that says a job's results were collected.
pub fn collected_line(job: &str) -> Vec<u8> {
    [COLLECTED, job.as_bytes(), END, b"\n"].concat()
}

fn record<T: Serialize>(prefix: &[u8], object: &T) -> Vec<u8> {
    // Our own types always serialise; an empty object would still be a line that readers skip.
    let json = serde_json::to_vec(object).unwrap_or_else(|_| b"{}".to_vec());
    [prefix, &json, END, b"\n"].concat()
}

/// The marker that ends a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TerminalMarker {
    /// `=== GATE: PASSED ===`
    #[serde(rename = "PASS")]
    Pass,
    /// `=== GATE: FAILED ===`
    #[serde(rename = "FAIL")]
    Fail,
}

/// What a line of a log is.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// The job's output.
    Output,
    /// A header's JSON.
    Launch(&'a [u8]),
    /// A phase's name.
    Phase(&'a str),
    /// A stop's JSON.
    Stopping(&'a [u8]),
    /// A footer's JSON.
    Result(&'a [u8]),
    /// What happened to the exit hook, as JSON.
    Hook(&'a [u8]),
    /// The id of a job whose results were read.
    Collected(&'a str),
    /// How much of the output was given back to the disk.
    Dropped(&'a [u8]),
    /// The terminal marker.
    Marker(TerminalMarker),
}

/// Says what a line (without its newline) is. A cheap look at the first bytes decides for nearly all.
pub fn line_kind(line: &[u8]) -> Line<'_> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.starts_with(b"=== GATE") {
        return Line::Output;
    }
    if line == PASSED {
        return Line::Marker(TerminalMarker::Pass);
    }
    if line == FAILED {
        return Line::Marker(TerminalMarker::Fail);
    }
    let body = |prefix: &[u8]| line.strip_prefix(prefix).and_then(|l| l.strip_suffix(END));
    let word = |bytes: &'_ [u8]| {
        let fits = |b: &u8| b.is_ascii_alphanumeric() || b"_.-".contains(b);
        !bytes.is_empty() && bytes.iter().all(fits)
    };
    if let Some(json) = body(RESULT) {
        Line::Result(json)
    } else if let Some(name) = body(PHASE).filter(|b| word(b)) {
        Line::Phase(std::str::from_utf8(name).unwrap_or_default())
    } else if let Some(json) = body(LAUNCH) {
        Line::Launch(json)
    } else if let Some(json) = body(STOPPING) {
        Line::Stopping(json)
    } else if let Some(json) = body(HOOK) {
        Line::Hook(json)
    } else if let Some(job) = body(COLLECTED).filter(|b| word(b)) {
        Line::Collected(std::str::from_utf8(job).unwrap_or_default())
    } else if let Some(text) = body(DROPPED) {
        Line::Dropped(text)
    } else {
        Line::Output
    }
}

/// A new job's random id, 16 hex digits.
///
/// # Errors
/// When the kernel gives no random bytes (getrandom(2)).
pub fn new_job_id() -> std::io::Result<String> {
    let mut bytes = [0u8; 8];
    let mut done = 0;
    while done < bytes.len() {
        done += rustix::rand::getrandom(&mut bytes[done..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Now, to the millisecond, as the contract's records carry it.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

/// A time as RFC 3339 in UTC.
pub fn rfc3339(time: Timestamp) -> String {
    time.to_string()
}

/// A time as the stamp in a log's name, `YYYYMMDD_HHMMSS` in UTC.
pub fn stamp(time: Timestamp) -> String {
    time.strftime("%Y%m%d_%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn header() -> Header {
        Header {
            v: 1,
            job: "00112233aabbccdd".into(),
            name: "tests/a.py".into(),
            owner: None,
            host: "h".into(),
            pid: 4242,
            start: 77,
            boot: "b".into(),
            pidns: 1,
            timens: 2,
            supervisors: vec![(4240, 75), (4241, 76)],
            command: vec!["python".into()],
            command_truncated: false,
            cwd: "/p".into(),
            started_at: "2026-07-25T14:30:00Z".into(),
            nested_in: None,
            leaks: Leaks::Kill,
            lossy: false,
        }
    }

    fn body<'a>(kind: Line<'a>) -> &'a [u8] {
        match kind {
            Line::Launch(b) | Line::Result(b) | Line::Stopping(b) => b,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_header_is_one_line_and_comes_back() {
        let h = header();
        let line = h.line();
        assert_eq!(line.iter().filter(|&&b| b == b'\n').count(), 1);
        let text = line.strip_suffix(b"\n").unwrap();
        assert_eq!(serde_json::from_slice::<Header>(body(line_kind(text))).unwrap(), h);
    }

    #[test]
    fn the_longest_header_is_one_that_readers_find() {
        let mut h = header();
        h.name = "\"".repeat(1024);
        h.owner = Some("o".repeat(64));
        h.nested_in = Some("\"".repeat(1024));
        let command: Vec<OsString> = (0..100).map(|_| "\u{1}".repeat(1000).into()).collect();
        h.set_command(&command, std::path::Path::new(&"/\u{1}".repeat(2047)));
        assert!(h.command_truncated && h.lossy);
        assert!(h.line().len() <= 16 << 10, "{}", h.line().len());
    }

    #[test]
    fn a_footer_ends_in_the_marker_of_its_outcome() {
        for (outcome, marker) in [
            (Outcome::Passed, TerminalMarker::Pass),
            (Outcome::Failed, TerminalMarker::Fail),
            (Outcome::Killed, TerminalMarker::Fail),
            (Outcome::Timeout, TerminalMarker::Fail),
        ] {
            let f = Footer {
                v: 1,
                job: header().job,
                outcome,
                exit_code: Some(0),
                signal: None,
                reason: Some(Reason::Exit),
                finished_at: None,
                elapsed_seconds: Some(1.5),
                cpu_seconds: None,
                max_rss_kb: None,
                leaked: vec![],
                nested: vec![],
                survivors: vec![],
                truncated: false,
                added_newline: true,
                overwrote: None,
                stopped_with: None,
                header: (&header()).into(),
            };
            let bytes = f.lines();
            assert_eq!(bytes[0], b'\n');
            let lines: Vec<&[u8]> = bytes[1..].split(|&b| b == b'\n').collect();
            assert_eq!(serde_json::from_slice::<Footer>(body(line_kind(lines[0]))).unwrap(), f);
            assert_eq!(line_kind(lines[1]), Line::Marker(marker));
        }
    }

    #[test]
    fn c56_phases_are_words_with_dots_and_dashes() {
        assert_eq!(line_kind(b"=== GATE PHASE: test-unit ==="), Line::Phase("test-unit"));
        assert_eq!(line_kind(b"=== GATE PHASE: lint.py_2 ===\r"), Line::Phase("lint.py_2"));
        assert_eq!(line_kind(b"=== GATE PHASE: two words ==="), Line::Output);
        assert_eq!(line_kind(b" === GATE PHASE: lint ==="), Line::Output);
    }

    #[test]
    fn a_long_command_is_cut_and_said_to_be() {
        use std::os::unix::ffi::OsStringExt;
        let mut h = header();
        h.command.clear();
        h.set_command(&["x".repeat(3000).into(), "y".repeat(3000).into()], std::path::Path::new("/p"));
        assert!(h.command_truncated && !h.lossy);
        assert!(h.line().len() < 16 << 10);
        let mut h = header();
        h.command.clear();
        h.set_command(&[OsString::from_vec(b"a\xff".to_vec())], std::path::Path::new("/p"));
        assert_eq!(h.command, ["a\u{fffd}"]);
        assert!(h.lossy && !h.command_truncated);
    }

    #[test]
    fn t20_the_dropped_line_has_one_width_and_comes_back() {
        let most = Dropped { lines: u64::MAX, bytes: u64::MAX, until: u64::MAX };
        for dropped in [Dropped::default(), Dropped { lines: 7, bytes: 70, until: 8192 }, most] {
            let line = dropped.line();
            assert_eq!(line.len(), Dropped::LEN);
            match line_kind(line.strip_suffix(b"\n").unwrap()) {
                Line::Dropped(json) => assert_eq!(Dropped::parse(json), Some(dropped)),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn t20_a_header_that_may_drop_fills_whole_blocks() {
        let mut h = header();
        for length in [0, 1, 3000, 3500, 4000] {
            h.cwd = "x".repeat(length);
            let dropped = Dropped { lines: 0, bytes: 0, until: 4096 };
            let block = h.block(4096, &dropped);
            assert_eq!(block.len() % 4096, 0, "{length}");
            let lines: Vec<&[u8]> = block.split(|&b| b == b'\n').collect();
            assert_eq!(serde_json::from_slice::<Header>(body(line_kind(lines[0]))).unwrap(), h);
            assert_eq!([lines[1], b"\n"].concat(), dropped.line());
            assert_eq!(lines[2..], [b""]);
        }
    }

    proptest! {
        #[test]
        fn any_line_has_a_kind(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            line_kind(&line);
            let gate = [b"=== GATE".as_slice(), &line].concat();
            line_kind(&gate);
        }

        #[test]
        fn any_command_gives_a_header_under_16_kib(
            args in proptest::collection::vec("\\PC{0,400}", 0..40),
            cwd in "(\\x01|/|a|\"){0,4096}",
            name in "[a\"]{1024}",
        ) {
            let mut h = header();
            h.name = name;
            h.command.clear();
            let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
            h.set_command(&args, std::path::Path::new(&cwd));
            prop_assert!(h.line().len() <= 16 << 10);
        }
    }
}
