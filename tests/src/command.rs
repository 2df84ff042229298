//! Children of a test: bounded, captured, told apart.

use crate::process::Proc;
use crate::scene::{self, Scene};
use crate::{DEADLINE, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command to be run in a scene.
#[must_use = "a command does nothing before run() or spawn()"]
pub struct Cmd<'s> {
    scene: &'s Scene,
    program: OsString,
    args: Vec<OsString>,
    prelude: Vec<OsString>,
    fixture: PathBuf,
    env: Vec<(OsString, Option<OsString>)>,
    cwd: PathBuf,
    stdin: Vec<u8>,
    keys: bool,
    deadline: Duration,
    held_pipes: bool,
}

impl<'s> Cmd<'s> {
    pub(crate) fn new(scene: &'s Scene, program: OsString) -> Cmd<'s> {
        Cmd {
            scene,
            program,
            args: Vec::new(),
            prelude: Vec::new(),
            fixture: scene.bin_dir().join("tb-fixture"),
            env: Vec::new(),
            cwd: scene.dir().to_owned(),
            stdin: Vec::new(),
            keys: false,
            deadline: DEADLINE,
            held_pipes: false,
        }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets a variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), None));
        self
    }

    /// Another working directory than the scene's; relative to that.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = self.scene.dir().join(dir);
        self
    }

    /// What it reads from standard input (nothing otherwise).
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Standard input stays open, for [`Running::press`].
    pub fn keys(mut self) -> Self {
        self.keys = true;
        self
    }

    /// Another limit than [`DEADLINE`].
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// Runs it through `tb-fixture WORDS exec …`: `["limit", "nproc", "40"]`, `["ignore", "CHLD"]`,
    /// `["close", "1"]`, `["block", "TERM"]`, … (see the fixture's help).
    pub fn through(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.prelude.extend(words.into_iter().map(|w| w.as_ref().to_owned()));
        self
    }

    /// Runs it as user and group 65534 when we are root, as ourselves otherwise.
    pub fn as_nobody(mut self) -> Self {
        if !crate::root() {
            return self;
        }
        let open = self.scene.open_bin();
        if let Ok(name) = Path::new(&self.program).strip_prefix(self.scene.bin_dir()) {
            self.program = open.join(name).into_os_string();
        }
        self.fixture = open.join("tb-fixture");
        self.through(["as-nobody"])
    }

    /// Allows what it started to keep its standard output and error open after its end. Without this a
    /// test fails when they are still held at the deadline: a tool must let go of its caller.
    pub fn held_pipes(mut self) -> Self {
        self.held_pipes = true;
        self
    }

    fn label(&self) -> String {
        let name = PathBuf::from(&self.program);
        let name = name.file_name().unwrap_or(&self.program).to_string_lossy().into_owned();
        self.args.iter().fold(name, |line, arg| line + " " + &arg.to_string_lossy())
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn spawn(self) -> Running {
        let label = self.label();
        let mut command = if self.prelude.is_empty() {
            Command::new(&self.program)
        } else {
            let mut fixture = Command::new(&self.fixture);
            fixture.args(&self.prelude).arg("exec").arg(&self.program);
            fixture
        };
        command.args(&self.args).current_dir(&self.cwd);
        scene::clean(&mut command);
        command.envs(self.scene.env());
        for (key, value) in &self.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        let stdin = if self.stdin.is_empty() && !self.keys { Stdio::null() } else { Stdio::piped() };
        let mut child =
            command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap_or_else(|e| {
                panic!("cannot start {label}: {e} (build the tools first: cargo xtask test)")
            });
        let mut stdin = child.stdin.take();
        let keys = if self.keys { stdin.take() } else { None };
        if let Some(mut pipe) = stdin {
            let bytes = self.stdin;
            // Nobody joins this thread: a child that does not read its input is killed at its deadline.
            std::thread::spawn(move || {
                let _ = pipe.write_all(&bytes);
            });
        }
        let pid =
            i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a positive number");
        Running {
            proc: Proc::of(child.id()).expect("an unreaped child has a stat"),
            pidfd: pidfd_open(pid, PidfdFlags::empty()).expect("pidfds of children can be opened"),
            out: Pipe::read(child.stdout.take().expect("asked for above")),
            err: Pipe::read(child.stderr.take().expect("asked for above")),
            started: Instant::now(),
            deadline: self.deadline,
            held_pipes: self.held_pipes,
            keys,
            child,
            label,
        }
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started or has not ended at its deadline.
    #[track_caller]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }
}

/// One of a child's output pipes, read by a thread of its own.
struct Pipe {
    source: Arc<File>,
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Pipe {
    fn read(source: impl Into<OwnedFd>) -> Pipe {
        let source = Arc::new(File::from(source.into()));
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (from, sink) = (Arc::clone(&source), Arc::clone(&bytes));
        let reader = std::thread::spawn(move || {
            let mut block = vec![0; 1 << 16];
            loop {
                let _ = poll(&mut [PollFd::new(&*from, PollFlags::IN)], None);
                // Read under the lock: whoever holds it and finds the pipe empty has seen everything.
                let mut sink = sink.lock().expect("no reader panics");
                match (&*from).read(&mut block) {
                    Ok(0) => return,
                    Ok(n) => sink.extend_from_slice(&block[..n]),
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Pipe { source, bytes, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no reader panics")).into_owned()
    }

    /// Whether all that was written so far has been read.
    fn drained(&self) -> bool {
        let _bytes = self.bytes.lock().expect("no reader panics");
        rustix::io::ioctl_fionread(&*self.source).unwrap_or(0) == 0
    }

    fn at_end(&self) -> bool {
        self.reader.is_finished()
    }
}

/// A child that runs. Dropped, it is killed.
pub struct Running {
    label: String,
    child: Child,
    proc: Proc,
    pidfd: OwnedFd,
    out: Pipe,
    err: Pipe,
    started: Instant,
    deadline: Duration,
    held_pipes: bool,
    keys: Option<ChildStdin>,
}

impl Running {
    /// The child as a process.
    pub fn proc(&self) -> Proc {
        self.proc
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.proc.pid
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may have ended: then there is nothing to tell it.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Writes to its standard input, which [`Cmd::keys`] left open.
    ///
    /// # Panics
    /// When it cannot be written to.
    #[track_caller]
    pub fn press(&mut self, keys: &[u8]) {
        let input = self.keys.as_mut().expect("Cmd::keys left it open");
        input.write_all(keys).expect("it can be written to");
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        self.out.text()
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.err.text()
    }

    /// Waits until standard output holds `text`, and returns all that it holds then.
    ///
    /// # Panics
    /// When that does not happen.
    #[track_caller]
    pub fn until_stdout(&self, text: &str) -> String {
        until(&format!("{} prints {text:?}", self.label), || Some(self.stdout()).filter(|s| s.contains(text)))
    }

    /// Waits until standard error holds `text`, and returns all that it holds then.
    ///
    /// # Panics
    /// When that does not happen.
    #[track_caller]
    pub fn until_stderr(&self, text: &str) -> String {
        until(&format!("{} says {text:?}", self.label), || Some(self.stderr()).filter(|s| s.contains(text)))
    }

    /// Whether it has ended (it stays unreaped until [`Running::wait`]).
    pub fn ended(&self) -> bool {
        self.poll(Duration::ZERO)
    }

    fn poll(&self, limit: Duration) -> bool {
        let limit = Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&limit)).is_ok_and(|n| n > 0)
    }

    /// Waits for its end and for that of its output.
    ///
    /// # Panics
    /// When it still runs at its deadline (it is killed then), or when its output is still held open.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        while !self.poll(self.deadline.saturating_sub(self.started.elapsed())) {
            if self.started.elapsed() >= self.deadline {
                self.signal(Signal::KILL);
                let _ = self.child.wait();
                self.fail(&format!("still ran after {:?} and was killed", self.deadline));
            }
        }
        let took = self.started.elapsed();
        let status = self.child.wait().expect("a child that has ended can be waited for");
        let done = |pipe: &Pipe| pipe.at_end() || self.held_pipes && pipe.drained();
        while !(done(&self.out) && done(&self.err)) {
            if self.started.elapsed() >= self.deadline {
                self.fail(&format!(
                    "ended ({status}), but something it started holds its output open after {:?}",
                    self.deadline
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Output::new(&self.label, status, self.stdout(), self.stderr(), took)
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        panic!("{} {what}\n--- stdout\n{}--- stderr\n{}", self.label, self.stdout(), self.stderr());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// How a child ended and what it said.
#[derive(Clone, Debug)]
pub struct Output {
    /// What was run, for messages.
    pub label: String,
    /// Its exit code, `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output; bytes that are not UTF-8 are U+FFFD.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// From its start to its end.
    pub took: Duration,
}

impl Output {
    fn new(label: &str, status: ExitStatus, stdout: String, stderr: String, took: Duration) -> Output {
        Output { label: label.to_owned(), code: status.code(), signal: status.signal(), stdout, stderr, took }
    }

    /// Demands an exit code.
    ///
    /// # Panics
    /// When it was another; the message shows all that was said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Output {
        assert!(self.code == Some(code), "expected exit code {code} of {self}");
        self
    }

    /// Demands an exit code of 0.
    ///
    /// # Panics
    /// When it was another.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.expect(0)
    }

    /// Demands text on standard output.
    ///
    /// # Panics
    /// When it is not there.
    #[track_caller]
    pub fn says(self, text: &str) -> Output {
        assert!(self.stdout.contains(text), "expected {text:?} on standard output of {self}");
        self
    }

    /// Demands text on standard error.
    ///
    /// # Panics
    /// When it is not there.
    #[track_caller]
    pub fn complains(self, text: &str) -> Output {
        assert!(self.stderr.contains(text), "expected {text:?} on standard error of {self}");
        self
    }

    /// The lines of standard output as JSON, one value each.
    ///
    /// # Panics
    /// When one of them is none.
    #[track_caller]
    pub fn json(&self) -> Vec<serde_json::Value> {
        let parse =
            |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}): {line:?} of {self}"));
        self.stdout.lines().map(parse).collect()
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        write!(
            f,
            "{} ({end}, {:?})\n--- stdout\n{}--- stderr\n{}",
            self.label, self.took, self.stdout, self.stderr
        )
    }
}
