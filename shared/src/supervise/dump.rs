//! The diagnosis before a run is stopped for taking too long: what its processes are doing, which test runs, and
//! Python's own tracebacks.

use super::Tree;
use super::machine::ABORT;
use crate::poll::sleep_on;
use crate::process::{self, Facts, Handle, Ident, Stat, ticks_per_second};
use procfs::process::Process;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::cmp::Reverse;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long py-spy may take, for all processes together: meanwhile nobody is heard.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most processes that are looked at with py-spy.
const SPIED: usize = 8;

/// Which Pythons are asked for their tracebacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Those that would die of TERM at once: ABRT in its place costs them nothing and says where they were.
    InsteadOfTerm,
    /// All that are left after the grace.
    BeforeKill,
}

/// The text: one line a process, the last test named in the output, py-spy's stacks where it is on PATH.
/// `still` is for how long nothing had been written to the output.
pub(super) fn diagnosis(tree: &Tree, output: &[u8], still: Option<Duration>) -> String {
    let rows = tree.living();
    let mut text = String::from("=== tb: what is running before it is stopped ===\n");
    for row in &rows {
        let facts = Facts::read(row.pid);
        #[expect(clippy::cast_precision_loss, reason = "CPU ticks of a process are far below 2^52")]
        let cpu = row.cpu_ticks as f64 / ticks_per_second() as f64;
        let wchan = facts.wchan.map(|w| format!(" in {w}")).unwrap_or_default();
        let tty = if row.is_stopped() {
            " (stopped: by the terminal, if it reads or sets it in the background)"
        } else {
            ""
        };
        let _ = writeln!(text, "{:>8}  {}{wchan}{tty}  CPU {cpu:.1}s  {}", row.pid, row.state, facts.command);
    }
    let progress = crate::progress::progress(output);
    if let Some(test) = progress.last_test {
        // Whoever prints nothing has run for as long as nothing was printed.
        let since =
            still.map(|s| format!(", running for at least {:.1}s (no output since)", s.as_secs_f64()));
        let _ = writeln!(text, "last test: {test}{}", since.unwrap_or_default());
    }
    let until = Instant::now() + PATIENCE;
    for row in rows.iter().filter(|row| is_python(row)).take(SPIED) {
        if let Some(stacks) = spy(row.pid, until) {
            let _ = writeln!(text, "py-spy of {}:\n{stacks}", row.pid);
        }
    }
    text.push_str("=== tb: end of the diagnosis ===\n");
    text
}

/// Sends ABRT to the Pythons of the tree that have a handler for it (faulthandler's, which pytest installs): they
/// write the stacks of all threads and end. Without a core: this is no crash.
///
/// They share an output, so one writes after the other, and meanwhile the others stand still: an xdist controller would
/// start new workers, and workers would go without a word when it is gone. The youngest is first.
pub(super) fn ask_pythons(tree: &mut Tree, stage: Stage) {
    let mut asked: Vec<Handle> = Vec::new();
    for row in tree.living().iter().filter(|row| is_python(row)) {
        let Some(status) = Process::new(row.pid).ok().and_then(|p| p.status().ok()) else { continue };
        let has = |set: u64, signal: i32| set & (1 << (signal - 1)) != 0;
        let dies_of_term = !has(status.sigcgt, libc::SIGTERM) && !has(status.sigign, libc::SIGTERM);
        let wanted = stage == Stage::BeforeKill || dies_of_term;
        if !has(status.sigcgt, libc::SIGABRT) || !wanted {
            continue;
        }
        let Ok(Some(handle)) = Handle::open(Ident { pid: row.pid, start: row.start }) else { continue };
        if let Some(pid) = Pid::from_raw(row.pid) {
            let _ = prlimit(Some(pid), Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        }
        if handle.signal(libc::SIGSTOP).is_ok() {
            asked.push(handle);
        }
    }
    asked.sort_by_key(|handle| Reverse((handle.ident().start, handle.ident().pid)));
    let until = Instant::now() + ABORT;
    for handle in &asked {
        if handle.signal(libc::SIGABRT).is_ok() && handle.signal(libc::SIGCONT).is_ok() {
            tree.note_signalled(handle.ident());
            sleep_on(&[handle.fd()], Some(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// Whether a process runs a Python interpreter, by its executable, or, where that cannot be read, its name.
fn is_python(row: &Stat) -> bool {
    let named = |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python"));
    match std::fs::read_link(format!("/proc/{}/exe", row.pid)) {
        Ok(path) => named(&path),
        Err(_) => row.comm.starts_with("python"),
    }
}

/// The stacks of a Python, by py-spy, if it is on PATH and answers in time.
fn spy(pid: i32, until: Instant) -> Option<String> {
    if Instant::now() >= until {
        return None;
    }
    let mut output = tempfile()?;
    let mut child = Command::new("py-spy")
        .args(["dump", "--nonblocking", "--pid", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(output.try_clone().ok()?)
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let ident = process::read_stat(child.id().cast_signed()).map(|s| Ident { pid: s.pid, start: s.start });
    let handle = ident.map(Handle::open)?.ok()??;
    while !handle.has_ended() {
        let left = until.checked_duration_since(Instant::now());
        let Some(left) = left.filter(|l| !l.is_zero()) else {
            // It is waited for with everything else of the tree.
            let _ = handle.signal(libc::SIGKILL);
            return None;
        };
        sleep_on(&[handle.fd()], Some(left));
    }
    let done = child.wait().ok()?;
    let mut text = String::new();
    use std::io::{Read, Seek};
    output.rewind().ok()?;
    output.read_to_string(&mut text).ok()?;
    done.success().then_some(text)
}

/// A file without a name.
fn tempfile() -> Option<std::fs::File> {
    let fd = rustix::fs::memfd_create("tb-dump", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
    Some(fd.into())
}
