//! A job brought into being (CONTRACT.md §6): the launcher's part.
//!
//! The launcher (L) creates and locks the files and forks the front (F), which forks the monitor (M), which forks the
//! leader (T). T waits on a barrier while M writes the header, gives the files their names and answers L; then M
//! lets T go. L reads the answer pipe to its end, which comes when T executes: every write end is closed by then,
//! and a failed exec has left its errno there. L sleeps only once: each hand-over costs a launch a turn of the
//! scheduler.

use super::capture::CaptureWish;
use super::hook::Hook;
use super::machine::Policy;
use super::record::{Record, new_log, new_pid};
use super::stall::StallLimits;
use super::start::{Reply, Start, become_front};
use super::tree::Spare;
use super::trim::Trim;
use super::{COMM, GUARD_COMM};
use crate::contract::{
    DirEntry, DirLock, Header, LogName, Name, Probe, RunDir, Stem, Survey, VERSION, new_job_id, now, probe,
    rfc3339,
};
use crate::process::{self, Here};
use crate::sys::{self, Side};
use crate::term::{Code, Failure, Result};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// Everything that a launch needs to know.
pub struct Plan {
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
    /// How long it may make no progress.
    pub stall: StallLimits,
    /// What is called at its end.
    pub hook: Option<Hook>,
    /// What of its output goes through the supervisor.
    pub capture: CaptureWish,
    /// How much of its output is kept, in bytes.
    pub max_log: Option<u64>,
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
    nesting_above(std::process::id().cast_signed())
}

/// The same from an ancestor of this process on.
pub(super) fn nesting_above(from: i32) -> Nesting {
    let line = process::lineage();
    let outer =
        line.iter().skip_while(|s| s.pid != from).skip(1).find_map(|above| match above.comm.as_str() {
            COMM => Some(std::env::var("TB_NAME").unwrap_or_else(|_| format!("[{}]", above.pid))),
            GUARD_COMM => Some(format!("{GUARD_COMM}[{}]", above.pid)),
            _ => None,
        });
    Nesting { line: line.into_iter().map(|s| s.pid).collect(), outer }
}

/// Launches a job. The caller holds the directory's lock and has checked that the name is free; `survey` is what it
/// saw then.
///
/// # Errors
/// When anything fails before the command executes; then nothing is left behind.
pub fn launch(dir: &RunDir, survey: &Survey, plan: Plan, lock: &DirLock, here: &Here) -> Result<Launched> {
    sweep_unfinished(dir, survey);
    let failure = |what: &str, e: io::Error| Failure::cannot(format!("{what} for {}", plan.name), e);
    let job = new_job_id().map_err(|e| failure("choose a job id", e))?;
    // Whatever else can be refused comes before the files.
    let null =
        File::options().read(true).write(true).open("/dev/null").map_err(|e| failure("open /dev/null", e))?;
    let (answer, reply) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|e| failure("talk to the supervisor", e.into()))?;
    let (capture, ends) = plan.capture.open().map_err(|e| failure("capture the output", e))?;
    let own_dir = dir.duplicate().map_err(|e| failure("use the run directory", e))?;
    let (log, leader_log, pid_file) = create_files(dir, &job, plan.shared).map_err(|e| {
        let _ = dir.remove(&new_log(&job));
        let _ = dir.remove(&new_pid(&job));
        failure(&format!("create files in {}", dir.path().display()), e)
    })?;

    let max_log = match plan.max_log.map(|size| with_block(size, &log)).transpose() {
        Ok(max_log) => max_log,
        Err(e) => {
            let _ = dir.remove(&new_log(&job));
            let _ = dir.remove(&new_pid(&job));
            let doing = format!("use --max-log in {}", dir.path().display());
            return Err(Failure::cannot(doing, format!("this file system gives nothing back ({e})"))
                .hint("leave it out, or choose another place with --log-dir"));
        }
    };
    let started_at = now();
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
    let mut command = command(&plan, dir, &job);
    let end = |own: &Option<OwnedFd>| Some(own.as_ref().map_or(leader_log.as_raw_fd(), AsRawFd::as_raw_fd));
    command.stdio = [Some(null.as_raw_fd()), end(&ends.stdout), end(&ends.stderr)];
    let Plan { name, stem, newest, policy, spare, limit, stall, hook, shared, .. } = plan;
    let stall = stall.watch_log(&leader_log);
    let log_name = LogName { stem: stem.clone(), stamp: String::new(), sequence: 1 };
    let record =
        Record { dir: own_dir, header, stem, log_name, log, pid_file, shared, max_log, replaced: false };

    // The halves must not be hit by what is sent to the caller's group before they have left it.
    let mask = sys::block_all();
    let forked = sys::fork();
    if matches!(forked, Ok(Side::Child)) {
        // Whoever writes to a launcher that has died must be told so: no copy may keep this end open.
        drop(answer);
        let start = Start {
            record,
            leader_log,
            capture,
            ends,
            null,
            command,
            policy,
            spare,
            limit,
            stall,
            hook,
            reply,
            lock: lock.fd().as_raw_fd(),
            started_at,
            newest,
        };
        become_front(start)
    }
    sys::set_signal_mask(mask);
    let front = match forked {
        Ok(Side::Parent(front)) => front,
        Ok(Side::Child) => sys::exit_now(1),
        Err(e) => {
            record.abandon();
            return Err(Failure::cannot(format!("start a supervisor for {name}"), e));
        }
    };
    drop((reply, leader_log, null, command, spare, capture, ends));
    let outcome = attend(answer.into(), &record);
    if outcome.is_err() {
        // The halves end now: once they have, nobody but this process can say what is left.
        let _ = sys::look_until_dead(front);
        record.abandon();
    }
    outcome
}

/// A limit with the block size of the log's file system, if that can punch holes.
fn with_block(size: u64, log: &File) -> io::Result<(u64, u64)> {
    let block = u64::try_from(rustix::fs::fstat(log)?.st_blksize).unwrap_or(0).max(512);
    Trim::try_on(log, block)?;
    Ok((size, block))
}

/// Reads the answer to its end, and what it means.
fn attend(mut answer: File, record: &Record) -> Result<Launched> {
    let name = &record.header.name;
    let mut bytes = Vec::new();
    answer.read_to_end(&mut bytes).map_err(|e| {
        Failure::cannot(format!("launch {name}"), format!("its supervisor cannot be heard: {e}"))
    })?;
    let end = memchr::memchr(b'\n', &bytes).map_or(0, |at| at + 1);
    let (line, errno) = bytes.split_at(end);
    match serde_json::from_slice(line) {
        Ok(Reply::Failed { what, why }) => Err(Failure::cannot(format!("{what} for {name}"), why)),
        Ok(Reply::Released { pid, log }) => {
            if let Ok(errno) = <[u8; 4]>::try_from(errno) {
                let failure = ExecFailure { errno: i32::from_ne_bytes(errno) };
                let program = record.header.command.first().cloned().unwrap_or_default();
                let cause = io::Error::from_raw_os_error(failure.errno);
                return Err(Failure::cannot(format!("execute {program}"), cause).code(failure.code()));
            }
            match LogName::parse(&log) {
                Some(log) => Ok(Launched { pid, log }),
                None => Err(Failure::cannot(
                    format!("launch {name}"),
                    format!("its supervisor names no log: {log}"),
                )),
            }
        }
        Err(_) => Err(Failure::cannot(
            format!("launch {name}"),
            "its supervisor ended before the command was started",
        )
        .hint("try again; if it happens again, look for what kills it: dmesg, ulimit -u")),
    }
}

/// Removes what launches left that did not come to an end: their locks are free.
fn sweep_unfinished(dir: &RunDir, survey: &Survey) {
    for entry in &survey.entries {
        if let DirEntry::New(file) = entry
            && let Ok(Some((open, _))) = dir.open_file(file, OFlags::RDONLY)
            && matches!(probe(&open), Ok(Probe::Free))
        {
            // Somebody else's leftovers, in a directory that is perhaps not ours: no reason not to launch.
            let _ = dir.remove(file);
        }
    }
}

/// The log (locked), the leader's own description of it, and the PID file (locked).
fn create_files(dir: &RunDir, job: &str, shared: bool) -> io::Result<(File, File, File)> {
    let busy = |_| io::Error::from(io::ErrorKind::WouldBlock);
    let log = dir.create_file(&new_log(job), OFlags::RDWR | OFlags::APPEND, shared)?;
    log.try_lock().map_err(busy)?;
    // A description of the leader's own: the lock must not live on in it.
    let leader_log = dir
        .open_file(&new_log(job), OFlags::WRONLY | OFlags::APPEND)
        .map_err(|f| io::Error::other(f.message))?
        .ok_or(io::ErrorKind::NotFound)?
        .0;
    // Opened without blocking in case it were no plain file; the job writes like anybody.
    rustix::io::ioctl_fionbio(&leader_log, false)?;
    let pid_file = dir.create_file(&new_pid(job), OFlags::RDWR, shared)?;
    pid_file.try_lock().map_err(busy)?;
    Ok((log, leader_log, pid_file))
}

fn command(plan: &Plan, dir: &RunDir, job: &str) -> sys::Command {
    let mut environment = plan.environment.clone();
    environment.insert("TB_JOB".into(), job.into());
    environment.insert("TB_NAME".into(), plan.name.as_str().into());
    environment.insert("TB_LOG_DIR".into(), dir.absolute().into());
    match &plan.owner {
        Some(owner) => environment.insert("TB_OWNER".into(), owner.into()),
        None => environment.remove(OsStr::new("TB_OWNER")),
    };
    // An argument cannot hold a NUL byte: it came from a NUL-terminated string.
    let strings = |bytes: Vec<u8>| CString::new(bytes).ok();
    let argv = plan.command.iter().filter_map(|a| strings(a.as_bytes().to_vec())).collect();
    let envp = environment
        .iter()
        .filter_map(|(k, v)| strings([k.as_bytes(), b"=", v.as_bytes()].concat()))
        .collect();
    let path = environment.get(OsStr::new("PATH")).cloned().map_or_else(
        // What the C library uses where there is no PATH (confstr(3), _CS_PATH).
        || b"/bin:/usr/bin".to_vec(),
        OsStringExt::into_vec,
    );
    let mut command = sys::Command::new(argv, envp, &path);
    command.new_session = true;
    command.keep.clone_from(&plan.keep_fds);
    command
}
