//! A job brought into being (CONTRACT.md §6): files under the lock, two halves and the leader forked, header,
//! names, barrier, and the answer whether the command executes.
//!
//! The launcher (L) forks the front (F), which forks the monitor (M), which forks the leader (T). T waits on a
//! barrier while M writes the header; L renames the files into place and says go; M releases T, whose failed
//! exec would come back through a pipe. If L dies before it said go, M takes everything away again.

use super::halves::{self, HEARD, Known};
use super::machine::Policy;
use super::record::{Record, new_log, new_pid, publish_log};
use super::tree::{Spare, Tree};
use super::words::Word;
use super::{COMM, GUARD_COMM};
use crate::contract::{
    DirEntry, DirLock, Header, LogName, Name, Probe, RunDir, Stem, VERSION, new_job_id, now, probe, rfc3339,
};
use crate::process::{self, Here, Ident};
use crate::sys::{self, Side, SignalFd};
use crate::term::{Code, Failure, Result};
use jiff::Timestamp;
use nix::sys::signal::Signal;
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Everything that a launch needs to know.
pub struct Plan {
    /// The run directory.
    pub dir: RunDir,
    /// The job's name.
    pub name: Name,
    /// Its stem, chosen under the lock.
    pub stem: Stem,
    /// The newest log of that stem: the new one must not look older.
    pub newest: Option<LogName>,
    /// Whose it is.
    pub owner: Option<String>,
    /// The command's arguments.
    pub command: Vec<OsString>,
    /// The command's environment; the job's own variables are added.
    pub environment: BTreeMap<OsString, OsString>,
    /// Descriptors above 2 that the command may have: a make jobserver's.
    pub keep_fds: Vec<RawFd>,
    /// The job inside which this one is launched.
    pub nested_in: Option<String>,
    /// What holds while it runs.
    pub policy: Policy,
    /// What is spared at the end.
    pub spare: Option<Spare>,
    /// How long it may run.
    pub limit: Option<Duration>,
    /// Whether files follow the umask instead of being private.
    pub shared: bool,
}

/// A job that runs.
#[derive(Clone, Debug)]
pub struct Launched {
    /// The leader.
    pub pid: i32,
    /// The log's name.
    pub log: LogName,
}

/// Why a command does not execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecFailure {
    /// The error of execve(2).
    pub errno: i32,
}

impl ExecFailure {
    /// 127 where there is no such command, 126 otherwise.
    pub fn code(&self) -> Code {
        if self.errno == libc::ENOENT { Code::NotFound } else { Code::NotExecutable }
    }
}

/// Where a launch happens: inside which job or guard, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// The PIDs of this process and its ancestors.
    pub line: Vec<i32>,
    /// The innermost job's name, or `tb-guard[PID]`.
    pub outer: Option<String>,
}

/// Looks upwards for a supervisor or a guard: a subreaper cannot be left.
pub fn nesting() -> Nesting {
    let line = process::self_and_ancestors();
    let outer = line.iter().skip(1).find_map(|&pid| match process::comm(pid)?.as_str() {
        COMM => Some(std::env::var("TB_NAME").unwrap_or_else(|_| format!("[{pid}]"))),
        GUARD_COMM => Some(format!("{GUARD_COMM}[{pid}]")),
        _ => None,
    });
    Nesting { line, outer }
}

/// From the monitor to the launcher.
#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    /// The leader exists and the header is written.
    Ready { pid: i32 },
    /// The command executes.
    Started,
    /// It does not.
    ExecFailed { errno: i32 },
    /// The supervisor could not do its part.
    Failed { what: String, why: String },
}

/// From the launcher to the monitor: go, under this log's file name.
#[derive(Debug, Serialize, Deserialize)]
struct Go {
    log: String,
}

/// Launches a job. The caller holds the directory's lock and has checked that the name is free.
///
/// # Errors
/// When anything fails before the command executes; then nothing is left behind.
pub fn launch(plan: Plan, _lock: &DirLock, here: &Here) -> Result<Launched> {
    sweep_unfinished(&plan.dir);
    let job = new_job_id().map_err(|e| Failure::cannot("choose a job id", e))?;
    let started_at = now();
    let failure =
        |what: &str, e: io::Error| Failure::cannot(format!("{what} in {}", plan.dir.path().display()), e);
    let (log_tmp, pid_tmp) = (new_log(&job), new_pid(&job));
    let files = create_files(&plan, &log_tmp, &pid_tmp);
    let (log, leader_log, pid_file) = match files {
        Ok(files) => files,
        Err(e) => {
            let _ = plan.dir.remove(&log_tmp);
            let _ = plan.dir.remove(&pid_tmp);
            return Err(failure("create the job's files", e));
        }
    };
    let mut header = Header {
        v: VERSION,
        job: job.clone(),
        name: plan.name.as_str().to_owned(),
        owner: plan.owner.clone(),
        host: here.host.clone(),
        pid: 0,
        start: 0,
        boot: here.boot.clone(),
        pidns: here.pidns,
        timens: here.timens,
        supervisors: vec![],
        command: vec![],
        command_truncated: false,
        cwd: String::new(),
        started_at: rfc3339(started_at),
        nested_in: plan.nested_in.clone(),
        leaks: plan.policy.leaks,
        lossy: false,
    };
    header.set_command(&plan.command, &std::env::current_dir().unwrap_or_else(|_| PathBuf::from("?")));
    let command = command(&plan, &job, &leader_log);
    let (mine, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|e| failure("talk to the supervisor", e.into()))?;

    let Plan { dir, stem, newest, policy, spare, limit, shared, name, .. } = plan;
    let provisional = LogName { stem: stem.clone(), stamp: String::new(), sequence: 1 };
    let record = Record {
        dir,
        header,
        stem: stem.clone(),
        log_name: provisional,
        log,
        pid_file,
        shared,
        replaced: false,
    };
    match sys::fork() {
        Err(e) => {
            record.abandon();
            Err(failure_of(&record, "start a supervisor", e))
        }
        Ok(Side::Child) => {
            become_front(Start { record, leader_log, command, policy, spare, limit, launcher: theirs })
        }
        Ok(Side::Parent(front)) => {
            drop((theirs, leader_log, command, spare));
            let answer = attend(&record, &mine, &name, &log_tmp, &pid_tmp, newest.as_ref(), started_at);
            if answer.is_err() {
                // The halves have ended or end now: nobody but this process says what is left.
                drop(mine);
                let _ = sys::look_until_dead(front);
                record.abandon();
            }
            answer
        }
    }
}

fn failure_of(record: &Record, what: &str, e: io::Error) -> Failure {
    Failure::cannot(format!("{what} for {}", record.header.name), e)
}

/// Removes what launches left that did not come to an end: their locks are free.
fn sweep_unfinished(dir: &RunDir) {
    for entry in dir.entries().unwrap_or_default() {
        if let DirEntry::New(file) = entry
            && let Ok(Some((open, _))) = dir.open_file(&file, OFlags::RDONLY)
            && matches!(probe(&open), Ok(Probe::Free))
        {
            // Somebody else's leftovers, in a directory that is perhaps not ours: no reason not to launch.
            let _ = dir.remove(&file);
        }
    }
}

fn create_files(plan: &Plan, log_tmp: &str, pid_tmp: &str) -> io::Result<(File, File, File)> {
    let busy = |_| io::Error::from(io::ErrorKind::WouldBlock);
    let log = plan.dir.create_file(log_tmp, OFlags::RDWR | OFlags::APPEND, plan.shared)?;
    log.try_lock().map_err(busy)?;
    // The leader's own description: the lock must not live on in it.
    let leader_log = plan
        .dir
        .open_file(log_tmp, OFlags::WRONLY | OFlags::APPEND)
        .map_err(|f| io::Error::other(f.message))?
        .ok_or(io::ErrorKind::NotFound)?
        .0;
    let pid_file = plan.dir.create_file(pid_tmp, OFlags::RDWR, plan.shared)?;
    pid_file.try_lock().map_err(busy)?;
    Ok((log, leader_log, pid_file))
}

fn command(plan: &Plan, job: &str, leader_log: &File) -> sys::Command {
    let mut environment = plan.environment.clone();
    environment.insert("TB_JOB".into(), job.into());
    environment.insert("TB_NAME".into(), plan.name.as_str().into());
    environment.insert("TB_LOG_DIR".into(), plan.dir.absolute().into());
    match &plan.owner {
        Some(owner) => environment.insert("TB_OWNER".into(), owner.into()),
        None => environment.remove(std::ffi::OsStr::new("TB_OWNER")),
    };
    // An argument cannot hold a NUL byte: it came from a NUL-terminated string.
    let strings = |bytes: Vec<u8>| CString::new(bytes).ok();
    let argv = plan.command.iter().filter_map(|a| strings(a.as_bytes().to_vec())).collect();
    let envp = environment
        .iter()
        .filter_map(|(k, v)| strings([k.as_bytes(), b"=", v.as_bytes()].concat()))
        .collect();
    let path = environment.get(std::ffi::OsStr::new("PATH")).cloned().map_or_else(
        // What the C library uses where there is no PATH (confstr(3), _CS_PATH).
        || b"/bin:/usr/bin".to_vec(),
        OsStringExt::into_vec,
    );
    let mut command = sys::Command::new(argv, envp, &path);
    command.new_session = true;
    command.stdio = [None, Some(leader_log.as_raw_fd()), Some(leader_log.as_raw_fd())];
    command.keep.clone_from(&plan.keep_fds);
    command
}

/// The launcher's part after the fork.
fn attend(
    record: &Record,
    supervisor: &OwnedFd,
    name: &Name,
    log_tmp: &str,
    pid_tmp: &str,
    newest: Option<&LogName>,
    started_at: Timestamp,
) -> Result<Launched> {
    let died = || {
        Failure::cannot(format!("launch {name}"), "its supervisor ended before the command was started")
            .hint("try again; if it happens again, look for what kills it: dmesg, ulimit -u")
    };
    let pid = match receive(supervisor) {
        Some(Reply::Ready { pid }) => pid,
        Some(Reply::Failed { what, why }) => return Err(Failure::cannot(format!("{what} for {name}"), why)),
        _ => return Err(died()),
    };
    let log = publish_log(&record.dir, log_tmp, &record.stem, started_at, newest)
        .map_err(|e| failure_of(record, "publish the log", e))?;
    let undo = |e: io::Error| {
        let _ = record.dir.remove(&log.file());
        failure_of(record, "publish the PID file", e)
    };
    record.dir.rename(pid_tmp, &record.stem.pid_file(), true).map_err(undo)?;
    let undo_all = || {
        let _ = record.dir.remove(&log.file());
        let _ = record.dir.remove(&record.stem.pid_file());
    };
    if post(supervisor, &Go { log: log.file() }).is_err() {
        undo_all();
        return Err(died());
    }
    match receive(supervisor) {
        Some(Reply::Started) => Ok(Launched { pid, log }),
        Some(Reply::ExecFailed { errno }) => {
            undo_all();
            let failure = ExecFailure { errno };
            let program = record.header.command.first().cloned().unwrap_or_default();
            let cause = io::Error::from_raw_os_error(errno);
            Err(Failure::cannot(format!("execute {program}"), cause).code(failure.code()))
        }
        // The monitor was killed after it had been told to go: the front has the job, and the record will say.
        _ => Ok(Launched { pid, log }),
    }
}

fn post<T: Serialize>(socket: &OwnedFd, message: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(io::Error::other)?;
    send(socket, &bytes, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive<T: for<'a> Deserialize<'a>>(socket: &OwnedFd) -> Option<T> {
    let mut bytes = vec![0u8; 8192];
    loop {
        match recv(socket, &mut bytes[..], RecvFlags::empty()) {
            Ok((n, _)) => return serde_json::from_slice(&bytes[..n]).ok(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

// ---------------------------------------------------------------------------------------------------
// In the forked copies: nothing here returns to the launcher's code
// ---------------------------------------------------------------------------------------------------

struct Start {
    record: Record,
    leader_log: File,
    command: sys::Command,
    policy: Policy,
    spare: Option<Spare>,
    limit: Option<Duration>,
    launcher: OwnedFd,
}

impl Start {
    fn fail(&self, what: &str, why: &io::Error) -> ! {
        self.record.abandon();
        let _ = post(&self.launcher, &Reply::Failed { what: what.to_owned(), why: why.to_string() });
        sys::exit_now(1)
    }

    fn or_fail<T>(&self, what: &str, result: io::Result<T>) -> T {
        match result {
            Ok(value) => value,
            Err(e) => self.fail(what, &e),
        }
    }
}

/// What both halves do first: out of the caller's session, adopt orphans, hear signals, look like nobody.
fn settle() -> io::Result<SignalFd> {
    nix::unistd::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    sys::ignore(Signal::SIGXFSZ);
    sys::ignore(Signal::SIGPIPE);
    // A terminal of the past, a resource monitor: nothing but a request ends a half.
    for signal in [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGQUIT, Signal::SIGALRM] {
        sys::ignore(signal);
    }
    SignalFd::block(&HEARD)
}

/// The record must fit where the job's own limit ends: soft limits go up to the hard ones, after the leader
/// has inherited the caller's.
fn raise_limits() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    for resource in [Resource::RLIMIT_FSIZE, Resource::RLIMIT_NOFILE] {
        if let Ok((_, hard)) = getrlimit(resource) {
            // A limit that stays as it was is no worse than before.
            let _ = setrlimit(resource, hard, hard);
        }
    }
}

fn become_front(start: Start) -> ! {
    let mut keep = start.record.fds();
    keep.extend([start.leader_log.as_raw_fd(), start.launcher.as_raw_fd()]);
    keep.extend(&start.command.keep);
    sys::close_all_except(&keep);
    let settled = sys::null_stdio().and_then(|()| {
        sys::set_title(COMM);
        rustix::thread::set_name(c"tb-supervise")?;
        settle()
    });
    let signals = start.or_fail("start a supervisor", settled);
    let (words, tell) =
        start.or_fail("start a supervisor", pipe_with(PipeFlags::CLOEXEC).map_err(Into::into));
    let front = Ident::me();
    let started = Instant::now();
    let monitor = match start.or_fail("start a supervisor", sys::fork()) {
        Side::Child => {
            drop((words, signals));
            become_monitor(start, front, tell)
        }
        Side::Parent(pid) => pid,
    };
    let words = File::from(words);
    keep = start.record.fds();
    keep.extend([words.as_raw_fd(), signals.fd().as_raw_fd()]);
    // The launcher's socket, the leader's log and a jobserver's descriptors go; nothing drops them again.
    sys::close_all_except(&keep);
    let Start { record, policy, spare, limit, leader_log, launcher, command } = start;
    std::mem::forget((leader_log, launcher, tell, command));
    leave_the_callers_place();
    halves::front(record, policy, spare, limit, started, signals, &words, monitor)
}

fn become_monitor(mut start: Start, front: Ident, tell: OwnedFd) -> ! {
    let signals = start.or_fail("start a supervisor", settle());
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
    let (barrier, release) = start.or_fail("start a supervisor", pipe());
    let (errors, report) = start.or_fail("start a supervisor", pipe());
    start.command.barrier = Some(barrier.as_raw_fd());
    start.command.close_first = vec![release.as_raw_fd()];
    let spawned = start.command.spawn(report.as_raw_fd());
    let pid = start.or_fail("start the command", spawned);
    drop((barrier, report));
    leave_the_callers_place();
    let leader = Ident { pid, start: process::read_stat(pid).map_or(0, |s| s.start) };
    let header = &mut start.record.header;
    (header.pid, header.start) = (leader.pid, leader.start);
    let me = Ident::me();
    header.supervisors = vec![(front.pid, front.start), (me.pid, me.start)];
    // From here on a failure ends this process, and with it the barrier's other end: the leader vanishes.
    let begun = start.record.begin();
    start.or_fail("write the log's header", begun);
    let written = (&start.record.pid_file).write_all(format!("{pid}\n").as_bytes());
    start.or_fail("write the PID file", written);
    let posted = post(&start.launcher, &Reply::Ready { pid });
    start.or_fail("talk to the launcher", posted);
    let Some(Go { log }) = receive(&start.launcher) else {
        // The launcher is dead: nobody will ever have heard of this job.
        start.record.abandon();
        sys::exit_now(1)
    };
    if let Some(name) = LogName::parse(&log) {
        start.record.log_name = name;
    }
    let tell = File::from(tell);
    // A front that is stopped must not hold up the monitor.
    let _ = rustix::io::ioctl_fionbio(&tell, true);
    Word::Begin { header: Box::new(start.record.header.clone()), log }.tell(&tell);
    let started = Instant::now();
    let released = File::from(release).write_all(b"g");
    start.or_fail("start the command", released);
    let mut errno = [0u8; 4];
    if File::from(errors).read_exact(&mut errno).is_ok() {
        let _ = sys::look_until_dead(pid);
        Word::Recorded.tell(&tell);
        let _ = post(&start.launcher, &Reply::ExecFailed { errno: i32::from_ne_bytes(errno) });
        sys::exit_now(1)
    }
    let _ = post(&start.launcher, &Reply::Started);
    let mut keep = start.record.fds();
    keep.extend([tell.as_raw_fd(), signals.fd().as_raw_fd()]);
    sys::close_all_except(&keep);
    let Start { record, policy, spare, limit, leader_log, launcher, command } = start;
    std::mem::forget((leader_log, launcher, command));
    let known = Known { record, policy, tree: Tree::new(spare), leader, limit, started };
    halves::monitor(known, signals, tell)
}

/// A half must not keep a file system busy or be bound by the caller's soft limits. The leader, forked before,
/// has both as the caller has them.
fn leave_the_callers_place() {
    let _ = std::env::set_current_dir("/");
    raise_limits();
}
