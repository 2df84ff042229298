//! Children, bounded. Each leads a process group; when its time is up, or when we are asked to stop, the
//! whole group is told, then killed.

use crate::{Failure, Result, doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, mpsc};
use std::time::{Duration, Instant};

/// Between the request to stop and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// What was killed may take so long to be gone on a busy machine.
const SETTLE: Duration = Duration::from_secs(3);

/// Requests to stop, as they come from a terminal or a supervisor.
struct Interrupts {
    got: Arc<AtomicUsize>,
    wake: UnixStream,
}

static INTERRUPTS: LazyLock<Option<Interrupts>> = LazyLock::new(|| {
    let got = Arc::new(AtomicUsize::new(0));
    let (wake, writer) = UnixStream::pair().ok()?;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let number = signal.as_raw();
        // The flag first: whoever is woken must find it set.
        signal_hook::flag::register_usize(number, Arc::clone(&got), usize::try_from(number).ok()?).ok()?;
        signal_hook::low_level::pipe::register(number, writer.try_clone().ok()?).ok()?;
    }
    Some(Interrupts { got, wake })
});

fn interrupts() -> Result<&'static Interrupts> {
    INTERRUPTS.as_ref().ok_or_else(|| Failure::new("cannot listen for signals: no descriptors left?"))
}

/// Fails when we were asked to stop.
pub(crate) fn check_interrupt() -> Result {
    match interrupts()?.got.load(Ordering::SeqCst) {
        0 => Ok(()),
        n => Err(Failure::new(format!("interrupted by signal {n}")).code(u8::try_from(128 + n).unwrap_or(1))),
    }
}

/// A command with nothing in its environment that would disturb tools, pytest, make or an inner cargo.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let prefixes = ["TB_", "GLUDD_", "PYTEST_", "COV_", "CARGO_PKG_", "CARGO_MANIFEST_"];
    let names = [
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "CARGO_MAKEFLAGS",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PYTHONHOME",
    ];
    for (key, _) in std::env::vars_os() {
        let text = key.to_string_lossy();
        if prefixes.iter().any(|p| text.starts_with(p)) || names.contains(&text.as_ref()) {
            command.env_remove(&key);
        }
    }
    command.stdin(Stdio::null()).current_dir(crate::tree::root());
    command
}

/// Cargo, at the top of the repository; with `--locked` where nobody is there to commit a new lock file.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(&words[..1]);
    if std::env::var_os("CI").is_some() && words[0] != "fmt" && words[0] != "deny" {
        cargo.arg("--locked");
    }
    cargo.args(&words[1..]);
    cargo
}

/// What a command is called, for messages.
fn name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Shows a command line to the person who waits for it.
pub(crate) fn show(command: &Command) {
    let line = command.get_args().fold(name(command), |line, arg| line + " " + &arg.to_string_lossy());
    eprintln!("$ {line}");
}

/// How a child ended.
pub(crate) struct Ended {
    /// Its exit code; 128 + n when signal n ended it.
    pub(crate) code: i32,
    /// From its start to its end.
    pub(crate) seconds: f64,
}

/// Runs a child to its end, or to the end of its time.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Ended> {
    let name = name(command);
    let interrupts = interrupts()?;
    check_interrupt()?;
    let start = Instant::now();
    let mut child = doing(format!("start {name}"), command.process_group(0).spawn())?;
    let group = Pid::from_child(&child);
    let pidfd = doing(format!("watch {name}"), pidfd_open(group, PidfdFlags::empty()));
    let pidfd = match pidfd {
        Ok(fd) => fd,
        Err(failure) => {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return Err(failure);
        }
    };
    let mut stopped = None;
    let mut end = start + limit;
    loop {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(&interrupts.wake, PollFlags::IN)];
        // Once asked to stop, only the child's end and the clock matter.
        let watched = if stopped.is_some() { &mut fds[..1] } else { &mut fds[..] };
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let _ = poll(watched, Some(&left));
        // The group's number is ours while its leader is unreaped, so these signals cannot go astray.
        if fds[0].revents().contains(PollFlags::IN) {
            break;
        }
        if stopped.is_none() {
            let interrupt = check_interrupt().err();
            if interrupt.is_none() && Instant::now() < end {
                continue;
            }
            stopped = interrupt.or_else(|| {
                Some(Failure::new(format!("{name} still ran after {} s and was stopped", limit.as_secs())))
            });
            let _ = kill_process_group(group, Signal::TERM);
            end = Instant::now() + GRACE;
        } else if Instant::now() >= end {
            let _ = kill_process_group(group, Signal::KILL);
            end = Instant::now() + GRACE;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    if stopped.is_some() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = doing(format!("wait for {name}"), child.wait())?;
    match stopped {
        Some(failure) => Err(failure),
        None => Ok(Ended { code: code(status), seconds }),
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Runs a child that must succeed, and shows its command line.
pub(crate) fn demand(command: &mut Command, limit: Duration) -> Result {
    show(command);
    let name = name(command);
    match run(command, limit)?.code {
        0 => Ok(()),
        code => Err(Failure::new(format!("{name} failed with exit code {code}"))),
    }
}

/// Runs a child whose standard output is passed on and kept.
pub(crate) fn tee(command: &mut Command, limit: Duration) -> Result<(i32, String)> {
    let (reader, writer) = doing("make a pipe", std::io::pipe())?;
    command.stdout(writer);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            // Nobody may be there to read it: what it says is wanted all the same.
            let _ = std::io::stdout().write_all(&line);
            if send.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    let ended = run(command, limit);
    // Our own end of the pipe, which would keep the reader waiting.
    command.stdout(Stdio::null());
    let mut text = Vec::new();
    // What the child left behind may hold the pipe: its last words are waited for, but not for ever.
    while let Ok(line) = receive.recv_timeout(Duration::from_secs(2)) {
        text.extend(line);
    }
    Ok((ended?.code, String::from_utf8_lossy(&text).into_owned()))
}

/// Runs a child and returns what it printed, quietly.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Result<(i32, String)> {
    let (mut reader, writer) = doing("make a pipe", std::io::pipe())?;
    command.stdout(writer);
    let thread = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes);
        bytes
    });
    let ended = run(command, limit);
    command.stdout(Stdio::null());
    let bytes = thread.join().unwrap_or_default();
    Ok((ended?.code, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Stops every process that has `entry` in its environment, and says which those were: not those that were about to
/// end anyway.
pub(crate) fn stop_marked(entry: &str) -> Vec<String> {
    let mut stopped = Vec::new();
    let mut empty = 0;
    let settled = Instant::now() + SETTLE;
    let given_up = settled + GRACE;
    // One look may miss what was being forked or executed: two empty ones in a row are believed.
    while Instant::now() < given_up {
        let found = marked(entry);
        empty = if found.is_empty() { empty + 1 } else { 0 };
        if empty == 2 {
            break;
        }
        for (pid, start, line) in found.into_iter().filter(|_| Instant::now() >= settled) {
            let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
            // The pidfd first, then the comparison: it cannot be redirected afterwards.
            let Ok(fd) = pidfd_open(target, PidfdFlags::empty()) else { continue };
            if start_of(pid) == Some(start) && pidfd_send_signal(&fd, Signal::KILL).is_ok() {
                stopped.push(line);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    stopped.sort();
    stopped.dedup();
    stopped
}

fn marked(entry: &str) -> Vec<(u32, u64, String)> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| {
            let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let start = start_of(pid)?;
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let ours = environ.split(|b| *b == 0).any(|e| e == entry.as_bytes());
            ours.then(|| (pid, start, format!("{pid} {}", line.trim_end())))
        })
        .collect()
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = command("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn exit_codes_and_signals_are_told() {
        let code = |script: &str| run(&mut shell(script), Duration::from_secs(60)).map(|e| e.code).ok();
        assert_eq!(code("exit 7"), Some(7));
        assert_eq!(code("kill -9 $$"), Some(137));
        assert!(demand(&mut shell("exit 1"), Duration::from_secs(60)).is_err());
    }

    #[test]
    fn a_child_whose_time_is_up_goes_with_its_group() {
        let mark = format!("TB_TEST_XTASK=group-{}", std::process::id());
        let (key, value) = mark.split_once('=').expect("written above");
        let mut command = shell("sleep 300 & sleep 300");
        let ended = run(command.env(key, value), Duration::from_millis(300));
        assert!(ended.is_err_and(|e| e.message.contains("still ran")));
        assert_eq!(stop_marked(&mark), [""; 0]);
    }

    #[test]
    fn what_left_the_group_is_found_by_its_mark() {
        let mark = format!("TB_TEST_XTASK=mark-{}", std::process::id());
        let (key, value) = mark.split_once('=').expect("written above");
        let mut command = shell("setsid sleep 300 >/dev/null 2>&1 &");
        let started = run(command.env(key, value), Duration::from_secs(60));
        assert!(started.is_ok_and(|e| e.code == 0));
        // Between fork and exec it has no name yet to be told by.
        assert_ne!(stop_marked(&mark), [""; 0]);
        assert_eq!(stop_marked(&mark), [""; 0]);
    }

    #[test]
    fn output_is_kept() {
        let limit = Duration::from_secs(60);
        assert!(
            matches!(output(&mut shell("echo a; echo b; exit 3"), limit), Ok((3, text)) if text == "a\nb\n")
        );
        assert!(
            matches!(tee(&mut shell("printf 'no end of line'"), limit), Ok((0, text)) if text == "no end of line")
        );
    }

    #[test]
    fn what_would_disturb_is_not_handed_on() {
        let removed: Vec<_> =
            command("true").get_envs().filter(|(_, v)| v.is_none()).map(|(k, _)| k.to_owned()).collect();
        for (key, _) in std::env::vars_os() {
            let disturbs = ["TB_", "GLUDD_", "PYTEST_"].iter().any(|p| key.to_string_lossy().starts_with(p));
            assert!(!disturbs || removed.contains(&key), "{} is handed on", key.to_string_lossy());
        }
    }
}
