//! The words, carried out.

use crate::plan::{Act, How};
use crate::sys;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::wait::waitpid;
use nix::unistd::{
    Gid, Uid, alarm, execvp, getpgrp, getppid, getsid, pause, setgid, setgroups, setsid, setuid,
};
use std::ffi::{CString, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIFE: u32 = 120;
const STORM: Duration = Duration::from_secs(4);
/// More links than this no storm has, whatever was asked.
const STORM_LINKS: u32 = 5000;

type Result<T = ()> = std::result::Result<T, String>;

/// Says what was being done.
fn doing<T, E: std::fmt::Display>(what: &str, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|e| format!("cannot {what}: {e}"))
}

/// A process and what it knows of itself.
#[derive(Clone)]
pub(crate) struct Actor {
    role: String,
    life: u32,
    births: Option<PathBuf>,
    registered: bool,
    keep_sigpipe: bool,
}

impl Actor {
    pub(crate) fn new() -> Result<Actor> {
        let life = match std::env::var("TB_TEST_LIFE") {
            Ok(text) => doing(&format!("read TB_TEST_LIFE={text}"), text.parse())?,
            Err(_) => LIFE,
        };
        // SIGALRM ends a process even when its main thread has exited, and needs no thread of ours.
        doing("let SIGALRM end us", sys::default(Signal::SIGALRM))?;
        let mut set = SigSet::empty();
        set.add(Signal::SIGALRM);
        doing("let SIGALRM end us", set.thread_unblock())?;
        alarm::set(life);
        let births = std::env::var_os("TB_TEST_BIRTHS").map(PathBuf::from);
        Ok(Actor { role: "main".to_owned(), life, births, registered: false, keep_sigpipe: false })
    }

    /// Carries a plan out and registers at its end, if it gets there.
    pub(crate) fn perform(&mut self, plan: &[Act]) -> Result {
        self.steps(plan)?;
        self.register()
    }

    fn steps(&mut self, plan: &[Act]) -> Result {
        plan.iter().try_for_each(|act| self.act(act))
    }

    fn act(&mut self, act: &Act) -> Result {
        match act {
            Act::Role(role) => self.role.clone_from(role),
            Act::Life(seconds) => {
                self.life = *seconds;
                alarm::set(*seconds);
            }
            Act::Births(file) => self.births = Some(file.clone()),
            Act::Ready => self.register()?,
            Act::Comm(name) => {
                let name = doing("take that name", CString::new(name.as_str()))?;
                doing("take that name", nix::sys::prctl::set_name(&name))?;
            }
            Act::Ignore(signals) => {
                for signal in signals {
                    doing(&format!("ignore {signal}"), sys::ignore(*signal))?;
                    self.keep_sigpipe |= *signal == Signal::SIGPIPE;
                }
            }
            Act::Block(signal) => {
                let mut set = SigSet::empty();
                set.add(*signal);
                doing(&format!("block {signal}"), set.thread_block())?;
            }
            Act::Default(signal) => doing(&format!("default {signal}"), sys::default(*signal))?,
            Act::Close(fd) => doing(&format!("close {fd}"), nix::unistd::close(*fd))?,
            Act::CloseAll => close_all()?,
            Act::AsNobody => become_nobody()?,
            Act::Limit(what, n) => doing(&format!("limit {what:?} to {n}"), setrlimit(*what, *n, *n))?,
            Act::Spawn(how, words) => self.spawn(*how, words)?,
            Act::NewSession => doing("start a session", setsid()).map(drop)?,
            Act::Storm(links, end) => self.storm(*links, *end)?,
            Act::WaitChildren => {
                self.register()?;
                while waitpid(None, None).is_ok() {}
            }
            Act::OnTerm(plan) => self.on_term(plan)?,
            Act::Print(text) => doing("print", writeln!(std::io::stdout(), "{text}"))?,
            Act::PrintErr(text) => doing("print", writeln!(std::io::stderr(), "{text}"))?,
            Act::PrintLine(size) => print_line(*size)?,
            Act::TruncateStderr => {
                let file = OpenOptions::new().write(true).truncate(true).open("/dev/stderr");
                let mut file = doing("open /dev/stderr", file)?;
                doing("write to /dev/stderr", file.write_all(b"truncated\n"))?;
            }
            Act::Stamp(file) => stamp(file)?,
            Act::Append(file, text) => append(file, &format!("{text}\n"))?,
            Act::CaughtSignals => caught_signals()?,
            Act::Ids => {
                let sid = doing("read our session", getsid(None))?;
                println!("{} {} {} {sid}", std::process::id(), getppid(), getpgrp());
            }
            Act::Env(name) => match std::env::var_os(name) {
                Some(value) => println!("{}", value.to_string_lossy()),
                None => println!("{name} is not set"),
            },
            Act::Await(file) => {
                self.register()?;
                while !file.exists() {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            Act::Sleep(time) => {
                self.register()?;
                std::thread::sleep(*time);
            }
            Act::Cpu(time) => {
                self.register()?;
                let start = Instant::now();
                while start.elapsed() < *time {
                    std::hint::spin_loop();
                }
            }
            Act::Hold => {
                self.register()?;
                loop {
                    pause();
                }
            }
            Act::Stopped => {
                self.register()?;
                doing("stop", raise(Signal::SIGSTOP))?;
            }
            Act::Threads(count) => {
                for _ in 0..*count {
                    std::thread::spawn(|| {
                        loop {
                            std::thread::park();
                        }
                    });
                }
                self.register()?;
                sys::exit_thread();
            }
            Act::Repeat(times, plan) => {
                for _ in 0..*times {
                    self.steps(plan)?;
                }
            }
            Act::Exit(code) => {
                self.register()?;
                leave(*code);
            }
            Act::Gone => leave(0),
            Act::KillSelf(signal) => {
                self.register()?;
                kill_self(*signal)?;
            }
            Act::Exec(command) => self.exec(command)?,
        }
        Ok(())
    }

    /// Says that we are ready, once: one line by one write.
    fn register(&mut self) -> Result {
        if std::mem::replace(&mut self.registered, true) {
            return Ok(());
        }
        let Some(births) = &self.births else { return Ok(()) };
        let pid = std::process::id();
        let stat = doing("read our own stat", fs::read_to_string("/proc/self/stat"))?;
        let start = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19));
        let start = start.ok_or("our own stat has no start time")?;
        append(births, &format!("{pid} {start} {}\n", self.role))
    }

    fn spawn(&self, how: How, words: &[OsString]) -> Result {
        let mut command = doing("find ourselves", std::env::current_exe()).map(Command::new)?;
        let role = match how {
            How::Same => "same",
            How::Setpgid => "setpgid",
            How::Setsid => "setsid",
            How::Daemon => "daemon",
            How::DaemonEnvclear => "daemon-envclear",
        };
        let mut child: Vec<OsString> =
            vec!["role".into(), role.into(), "life".into(), self.life.to_string().into()];
        if let Some(births) = &self.births {
            child.extend(["births".into(), births.clone().into_os_string()]);
        }
        match how {
            How::Same => {}
            How::Setpgid => drop(command.process_group(0)),
            How::Setsid => child.push("new-session".into()),
            How::Daemon | How::DaemonEnvclear => {
                // A process in between leads the session and leaves at once.
                command.args(["new-session", "spawn-same", "["]);
                if how == How::DaemonEnvclear {
                    command.env_clear().current_dir("/");
                    child.push("close-all".into());
                }
            }
        }
        command.args(child).args(words);
        let daemon = matches!(how, How::Daemon | How::DaemonEnvclear);
        if daemon {
            command.args(["]", "gone"]);
        }
        let mut started = doing("start a child", command.stdin(Stdio::inherit()).spawn())?;
        if daemon {
            doing("wait for the process in between", started.wait())?;
        }
        Ok(())
    }

    fn storm(&mut self, links: u32, end: Option<u128>) -> Result {
        self.register()?;
        let now = doing("read the clock", fs::read_to_string("/proc/uptime"))?;
        let now = now.split(['.', ' ']).next().and_then(|s| s.parse::<u128>().ok()).ok_or("no uptime")?;
        let end = end.unwrap_or(now + u128::from(STORM.as_secs()));
        let links = links.min(STORM_LINKS);
        if links > 0 && now < end {
            let link = ["storm-link".into(), (links - 1).to_string().into(), end.to_string().into()];
            self.spawn(How::Setsid, &link)?;
        }
        Ok(())
    }

    fn on_term(&self, plan: &[Act]) -> Result {
        let mut signals = doing("catch SIGTERM", signal_hook::iterator::Signals::new([libc::SIGTERM]))?;
        let mut actor = Actor { registered: true, ..self.clone() };
        let plan = plan.to_vec();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if let Err(message) = actor.steps(&plan) {
                    eprintln!("tb-fixture: at SIGTERM: {message}");
                    leave(2);
                }
            }
        });
        Ok(())
    }

    fn exec(&self, command: &[OsString]) -> Result {
        // Rust's runtime ignores SIGPIPE: what we become must not inherit that, unless it was asked for.
        if !self.keep_sigpipe {
            doing("default SIGPIPE", sys::default(Signal::SIGPIPE))?;
        }
        let words: std::result::Result<Vec<_>, _> =
            command.iter().map(|w| CString::new(w.clone().into_vec())).collect();
        let words = doing("pass the words on", words)?;
        alarm::cancel();
        let e = execvp(&words[0], &words).unwrap_err();
        eprintln!("tb-fixture: cannot execute {}: {e}", command[0].to_string_lossy());
        leave(if e == nix::errno::Errno::ENOENT { 127 } else { 126 })
    }
}

#[expect(clippy::exit, reason = "a fixture ends where its words say, in whatever thread")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

/// Drops groups, group and user in this order: the first two need the third's rights.
fn become_nobody() -> Result {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    doing("leave all groups", setgroups(&[]))?;
    doing("become group 65534", setgid(Gid::from_raw(65534)))?;
    doing("become user 65534", setuid(Uid::from_raw(65534)))
}

/// Closes all descriptors above 2 and puts /dev/null on the rest.
fn close_all() -> Result {
    let null = doing("open /dev/null", OpenOptions::new().read(true).write(true).open("/dev/null"))?;
    doing("redirect", nix::unistd::dup2_stdin(&null))?;
    doing("redirect", nix::unistd::dup2_stdout(&null))?;
    doing("redirect", nix::unistd::dup2_stderr(&null))?;
    drop(null);
    for (fd, _) in descriptors()? {
        if fd > 2 {
            doing(&format!("close {fd}"), nix::unistd::close(fd))?;
        }
    }
    Ok(())
}

/// Our descriptors and what they are, without the one that reads the list.
fn descriptors() -> Result<Vec<(i32, PathBuf)>> {
    let list = doing("list our descriptors", fs::read_dir("/proc/self/fd"))?;
    let mut all: Vec<(i32, PathBuf)> = list
        .flatten()
        .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path())))
        .collect::<Vec<_>>()
        .into_iter()
        .filter_map(|(fd, path)| Some((fd, fs::read_link(path).ok()?)))
        .collect();
    all.sort_unstable();
    Ok(all)
}

fn caught_signals() -> Result {
    let status = doing("read our status", fs::read_to_string("/proc/self/status"))?;
    for line in status
        .lines()
        .filter(|l| l.starts_with("SigBlk") || l.starts_with("SigIgn") || l.starts_with("SigCgt"))
    {
        println!("{}", line.replace('\t', " "));
    }
    for (fd, target) in descriptors()? {
        println!("fd {fd} {}", target.display());
    }
    Ok(())
}

fn print_line(size: usize) -> Result {
    let block = vec![b'x'; size.min(1 << 16)];
    let mut out = std::io::stdout().lock();
    let mut left = size;
    while left > 0 {
        let n = left.min(block.len());
        doing("print", out.write_all(&block[..n]))?;
        left -= n;
    }
    doing("print", out.write_all(b"\n").and_then(|()| out.flush()))
}

fn append(file: &Path, text: &str) -> Result {
    let what = format!("append to {}", file.display());
    let mut file = doing(&what, OpenOptions::new().append(true).create(true).open(file))?;
    doing(&what, file.write_all(text.as_bytes()))
}

/// Complete when it appears: written under another name, then renamed.
fn stamp(file: &Path) -> Result {
    let mut new = file.as_os_str().as_bytes().to_vec();
    new.extend_from_slice(format!(".{}", std::process::id()).as_bytes());
    let new = PathBuf::from(OsString::from_vec(new));
    let what = format!("stamp {}", file.display());
    doing(&what, File::create(&new).and_then(|mut f| writeln!(f, "{}", std::process::id())))?;
    doing(&what, fs::rename(&new, file))
}

fn kill_self(signal: Signal) -> Result {
    doing("forbid a core file", setrlimit(Resource::RLIMIT_CORE, 0, 0))?;
    if !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
        doing(&format!("default {signal}"), sys::default(signal))?;
    }
    let mut set = SigSet::empty();
    set.add(signal);
    doing(&format!("unblock {signal}"), set.thread_unblock())?;
    doing(&format!("raise {signal}"), raise(signal))
}
