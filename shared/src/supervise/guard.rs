//! A command guarded in the foreground, with timeout(1)'s manners: the front is the process that the caller sees and
//! owns the signals and the exit status; the monitor, in a group of its own, is the command's parent and ends its
//! tree. Neither outlives the other: if the front is killed, the monitor kills the tree, and the other way round.
//!
//! The command shares the front's process group, which the front leads (unless `foreground`): what the terminal does
//! to it is what it does under timeout.

use super::acting::{Acting, End, HEARD, Known, News, Role, SETTLED, whose};
use super::machine::{Ask, MOMENT, Policy};
use super::record::{age, tail};
use super::stall::StallLimits;
use super::tree::{Left, SPARED, Spare, Tree};
use super::words::Word;
use super::{BOUND, GUARD_COMM, Request};
use crate::contract::{Leftover, Reason};
use crate::poll::sleep_on;
use crate::process::{self, Ident};
use crate::sys::{self, Arrived, Children, LeaderSignals, Side, SignalFd, Which};
use crate::term::{Failure, Result, say_within};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long a line and a diagnosis may wait for somebody to read them: nothing that is said may hold up what is done.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// So many orders wait for a monitor that reads none.
const UNSENT: usize = 1000;
/// How long a wait for its reading lasts before everything else is looked at again.
const ROOM: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A second signal means "now" only if it comes this much later than the first: some senders signal a process and its
/// group, and the same wish arrives twice.
const SECOND: Duration = Duration::from_millis(500);

/// What is guarded, and how.
pub struct GuardPlan {
    /// The command.
    pub command: Vec<OsString>,
    /// How long it may run; `None` is for ever.
    pub limit: Option<Duration>,
    /// The signal when time is up.
    pub signal: i32,
    /// The user named that signal: it is meant to arrive, even if the caller ignored it.
    pub signal_named: bool,
    /// Between a stop's first signal and KILL.
    pub grace: Duration,
    /// Whether KILL follows a forwarded signal that asks for no stop as well (`-k`).
    pub kill_after: bool,
    /// No process group of its own; only the command is signalled.
    pub foreground: bool,
    /// What happens to what outlives the command.
    pub leaks: crate::contract::Leaks,
    /// What is spared.
    pub spare: Option<Spare>,
    /// How long it may make no progress.
    pub stall: StallLimits,
    /// Whether a diagnosis comes before the signals.
    pub dump: bool,
    /// Where the command's output goes, if not to the caller's.
    pub output: Option<File>,
    /// Whether what a stop found running is to be listed.
    pub list_stopped: bool,
    /// Whether each signal that is sent is said, and under what name.
    pub verbose: Option<String>,
    /// Called about so often while it waits, with the time that has passed.
    pub heartbeat: Option<Heartbeat>,
}

/// How often somebody is called while a command is guarded, and who: with the time that has passed.
pub struct Heartbeat {
    /// How often.
    pub every: Duration,
    /// Who.
    pub beat: Box<dyn FnMut(Duration)>,
}

/// How a guarded command ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GuardEnd {
    /// Its exit status.
    pub exit_code: Option<i32>,
    /// The signal that it died of.
    pub signal: Option<i32>,
    /// Whether it left a core.
    pub core: bool,
    /// errno, if it could not be executed.
    pub exec_error: Option<i32>,
    /// Whether the time was up (the limit, ALRM, a stall).
    pub timed_out: bool,
    /// What brought the end about.
    pub reason: Option<Reason>,
    /// Who did.
    pub by: Option<String>,
    /// What outlived it.
    pub leaked: Vec<Leftover>,
    /// Jobs and guards inside it that ended with it.
    pub nested: Vec<Leftover>,
    /// What could not be stopped.
    pub survivors: Vec<Leftover>,
    /// What ran when a stop began, if that was asked for.
    pub stopped: Vec<Leftover>,
    /// The strongest signal that was needed.
    pub strongest: Option<i32>,
    /// How long it ran, in seconds.
    pub elapsed: Option<f64>,
    /// CPU time in seconds.
    pub cpu: Option<f64>,
    /// The largest resident set, in KiB.
    pub max_rss_kb: Option<u64>,
    /// Something outlived it that was not to be spared.
    pub leaks: bool,
    /// The command was stopped, in the terminal's sense, when its time was up.
    pub stood: bool,
    /// The monitor was killed, and the tree with it.
    pub monitor_killed: bool,
}

/// From the front to the monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    /// Stop.
    Stop { by: String, reason: Reason, signal: i32, grace_ms: Option<u64>, but: Option<i32> },
    /// Hand a signal on.
    Forward { signal: i32 },
}

/// From the monitor to the front.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Answer {
    /// It is over.
    Over(Box<GuardEnd>),
}

/// The signals that timeout hands on: those that end a process by default, and the real-time ones.
fn forwarded(term: i32) -> Vec<i32> {
    let mut list = vec![
        libc::SIGALRM,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGSEGV,
        libc::SIGXCPU,
        libc::SIGXFSZ,
        libc::SIGSYS,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGPOLL,
        libc::SIGPWR,
        libc::SIGSTKFLT,
    ];
    list.extend(34..=64);
    if (1..=64).contains(&term) && ![libc::SIGKILL, libc::SIGSTOP].contains(&term) {
        list.push(term);
    }
    list
}

/// Guards a command until nothing of it is left.
///
/// # Errors
/// When the guard cannot be set up; then nothing was started and nothing signalled.
pub fn guard(mut plan: GuardPlan) -> Result<GuardEnd> {
    let failure = |what: &str, e: std::io::Error| Failure::cannot(what, e);
    // As the caller had them: the command gets them so.
    let mut ignored = sys::ignored_signals();
    let mask = sys::signal_mask();
    if plan.signal_named {
        ignored &= !sys::set_of(&[plan.signal]);
    }
    let _ = rustix::thread::set_name(c"tb-guard");
    let innocent = Tree::without_present_children(None).map_err(|e| failure("read /proc", e))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|e| failure("adopt orphans", e.into()))?;
    if !plan.foreground {
        // A session's leader cannot, and need not: it leads its group.
        let _ = rustix::process::setpgid(None, None);
    }
    // A guard that a terminal stops would never strike.
    sys::ignore(Signal::SIGTTIN);
    sys::ignore(Signal::SIGTTOU);

    let is_in = |set: u64, signal: i32| set & (1 << (signal - 1)) != 0;
    let mut heard: Vec<i32> = forwarded(plan.signal)
        .into_iter()
        .filter(|&s| s == libc::SIGALRM || !(is_in(ignored, s) || is_in(mask, s)))
        .collect();
    heard.extend([libc::SIGCHLD, sys::REQUEST]);
    let before = sys::block_all();
    let (mine, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|e| failure("talk to the monitor", e.into()))?;
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    let front = std::process::id().cast_signed();
    let heartbeat = plan.heartbeat.take();
    let grace = plan.grace;
    let signal = plan.signal;
    let monitor = match sys::fork() {
        Err(e) => {
            sys::set_signal_mask(before);
            return Err(failure("start the monitor", e));
        }
        Ok(Side::Child) => {
            drop(mine);
            let begin = Begin { plan, theirs, front, group, ignored, mask };
            begin.run()
        }
        Ok(Side::Parent(pid)) => pid,
    };
    drop(theirs);
    // Without it a front that is stopped sees its monitor's death when it is continued.
    let _ = sys::wake_by(mine.as_fd());
    let signals = SignalFd::block(&heard).map_err(|e| failure("hear signals", e))?;
    // What neither is handed on nor was blocked before takes its usual course (TSTP, CONT, WINCH).
    sys::set_signal_mask(mask | sys::set_of(&heard));
    let unsent = VecDeque::new();
    let mut front =
        Front { monitor, socket: mine, signals, group, grace, signal, first: None, innocent, unsent };
    Ok(front.attend(heartbeat))
}

struct Front {
    monitor: i32,
    socket: OwnedFd,
    signals: SignalFd,
    group: i32,
    grace: Duration,
    signal: i32,
    /// When the first signal that asks for a stop came.
    first: Option<Instant>,
    innocent: Tree,
    /// Orders that the monitor has had no room for.
    unsent: VecDeque<Order>,
}

impl Front {
    fn attend(&mut self, mut heartbeat: Option<Heartbeat>) -> GuardEnd {
        let begun = Instant::now();
        let mut due = heartbeat.as_ref().map(|h| h.every);
        let mut settled = false;
        loop {
            if let Some(Answer::Over(end)) = receive(&self.socket) {
                // All is done: nothing that is done to the monitor may hold us up.
                let _ = sys::signal_child(self.monitor, libc::SIGKILL);
                let _ = sys::look_until_dead(self.monitor);
                return *end;
            }
            self.send();
            if let Ok(Children::Dead(_) | Children::None) = sys::look(Which::Pid(self.monitor), true) {
                // Its last word may have come between the two looks.
                return match receive(&self.socket) {
                    Some(Answer::Over(end)) => *end,
                    None => self.alone(begun),
                };
            }
            let mut heard_any = false;
            while let Some(heard) = self.signals.next() {
                heard_any = true;
                self.hear(heard);
            }
            if heard_any {
                continue;
            }
            let passed = begun.elapsed();
            if let (Some(Heartbeat { every, beat }), Some(at)) = (&mut heartbeat, &mut due)
                && passed >= *at
            {
                // Beats that were slept through are not made up for.
                *at = passed.saturating_add(*every);
                beat(passed);
                continue;
            }
            let mut timeout = due.map(|at| at.saturating_sub(begun.elapsed()));
            if !settled {
                settled = passed >= SETTLED;
                if settled {
                    sys::give_back_code();
                } else {
                    timeout = Some(timeout.map_or(SETTLED, |t| t.min(SETTLED)));
                }
            }
            self.sleep(timeout);
        }
    }

    fn hear(&mut self, heard: Arrived) {
        let order = match heard.signal {
            libc::SIGCHLD => {
                if self.innocent.has_innocent() {
                    self.innocent.note_adopted(self.monitor);
                }
                return;
            }
            // What the monitor sends to the command's group has been heard of before.
            _ if heard.pid == self.monitor && heard.code == libc::SI_USER => return,
            // A line of our own that nobody reads, or that does not fit, is no message to the command.
            libc::SIGPIPE | libc::SIGXFSZ if heard.pid == std::process::id().cast_signed() => return,
            sys::REQUEST if heard.code == libc::SI_QUEUE && Request::of_value(heard.value).is_some() => {
                let Some(request) = Request::of_value(heard.value) else { return };
                let (by, reason) = whose(heard, &outer());
                // ALRM is "time is up" in whatever form it comes.
                let (signal, reason) = match request.signal {
                    libc::SIGALRM => (self.signal, Reason::Limit),
                    other => (other, reason),
                };
                Order::Stop { by, reason, signal, grace_ms: millis(request.grace), but: None }
            }
            libc::SIGALRM => {
                let by = whose(heard, &outer()).0;
                let grace_ms = millis(self.grace);
                Order::Stop { by, reason: Reason::Limit, signal: self.signal, grace_ms, but: None }
            }
            libc::SIGTERM | libc::SIGINT | libc::SIGHUP | libc::SIGQUIT => self.stop(heard),
            signal => Order::Forward { signal },
        };
        // Signals that wait are one where they arrive, but for the real-time ones, and of those there is no end.
        let is_new = match order {
            Order::Forward { signal } if signal <= 31 => !self.unsent.contains(&order),
            Order::Forward { .. } => self.unsent.len() < UNSENT,
            Order::Stop { .. } => true,
        };
        if is_new {
            self.unsent.push_back(order);
        }
        self.send();
        // A monitor that somebody has stopped is woken: what was asked is done.
        let _ = sys::signal_child(self.monitor, libc::SIGCONT);
    }

    /// Sends what the monitor has room for: one that reads slowly, or nothing, must not stop us.
    fn send(&mut self) {
        while let Some(order) = self.unsent.front() {
            match post(&self.socket, order, SendFlags::DONTWAIT) {
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                // Whatever else went wrong, its death says.
                _ => drop(self.unsent.pop_front()),
            }
        }
    }

    /// Sleeps until a signal comes, the time is up, or there is room for what is to be sent.
    fn sleep(&self, timeout: Option<Duration>) {
        if self.unsent.is_empty() {
            // The monitor's last word is followed by its end, and CHLD tells of that (or that somebody has stopped it
            // in between): waking up for the word as well would cost a turn of the scheduler.
            return sleep_on(&[self.signals.fd()], timeout);
        }
        let (signals, socket) = (self.signals.fd(), self.socket.as_fd());
        let mut fds = [PollFd::new(&signals, PollFlags::IN), PollFd::new(&socket, PollFlags::OUT)];
        let _ = poll(&mut fds, Some(&ROOM));
    }

    /// A signal that asks for an end: handed on; the second means now.
    fn stop(&mut self, heard: Arrived) -> Order {
        let now = Instant::now();
        let hurry = self.first.is_some_and(|first| now.duration_since(first) >= SECOND);
        self.first.get_or_insert(now);
        let (by, reason) = whose(heard, &outer());
        // The terminal has sent these to our whole group already (HUP it sends to a session's leader alone).
        let is_keyboards = heard.code == libc::SI_KERNEL && heard.signal != libc::SIGHUP;
        let but = is_keyboards.then_some(self.group);
        let grace = if hurry { Duration::ZERO } else { self.grace };
        Order::Stop { by, reason, signal: heard.signal, grace_ms: millis(grace), but }
    }

    /// The monitor was killed: all that it had is ours now, and goes.
    fn alone(&mut self, begun: Instant) -> GuardEnd {
        // Jobs and guards inside have the moment that their records take; all others have none.
        let moment = Instant::now() + MOMENT;
        let nested = self.innocent.nested();
        if !nested.is_empty() {
            self.innocent.soft(libc::SIGKILL, MOMENT, |_| {}, |_| {});
        }
        while !self.innocent.nested().is_empty() && Instant::now() < moment {
            sleep_on(&[self.signals.fd()], Some(Duration::from_millis(20)));
            while self.signals.next().is_some() {}
            self.innocent.reap(None);
        }
        let until = Instant::now() + BOUND;
        let mut left = self.innocent.left();
        while left == Left::Some && Instant::now() < until {
            self.innocent.hard(None);
            left = self.innocent.left();
            if left == Left::Some {
                sleep_on(&[self.signals.fd()], Some(Duration::from_millis(20)));
                while self.signals.next().is_some() {}
            }
        }
        let survivors = if left == Left::Some { self.innocent.survivors() } else { vec![] };
        GuardEnd {
            monitor_killed: true,
            reason: Some(Reason::Kill),
            by: Some("the guard's monitor was killed".to_owned()),
            nested,
            survivors,
            strongest: Some(libc::SIGKILL),
            elapsed: Some(begun.elapsed().as_secs_f64()),
            ..GuardEnd::default()
        }
    }
}

/// The job or guard around the front.
fn outer() -> (Option<String>, Option<i32>) {
    (super::nesting().outer, None)
}

fn millis(d: Duration) -> Option<u64> {
    u64::try_from(d.as_millis()).ok()
}

fn post<T: Serialize>(socket: &OwnedFd, message: &T, flags: SendFlags) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(std::io::Error::other)?;
    send(socket, &bytes, SendFlags::NOSIGNAL | flags)?;
    Ok(())
}

/// Tells the front that it is over. Where the lists are too long for one message, command lines are cut.
fn post_end(socket: &OwnedFd, mut end: GuardEnd) {
    for longest in [usize::MAX, 64, 0] {
        let lists = [&mut end.leaked, &mut end.nested, &mut end.survivors, &mut end.stopped];
        lists.into_iter().flatten().for_each(|l| {
            l.command = l.command.chars().take(longest).collect();
        });
        let answer = Answer::Over(Box::new(end.clone()));
        match post(socket, &answer, SendFlags::empty()) {
            Err(e) if e.raw_os_error() == Some(libc::EMSGSIZE) => {}
            _ => return,
        }
    }
}

fn receive<T: for<'a> Deserialize<'a>>(socket: &OwnedFd) -> Option<T> {
    // Without looking first, a guard that has nothing to read would need its buffer all the same.
    let size = rustix::io::ioctl_fionread(socket).ok().filter(|&n| n > 0)?;
    let mut bytes = vec![0u8; usize::try_from(size).ok()?];
    let (n, _) = recv(socket, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
    serde_json::from_slice(bytes.get(..n)?).ok()
}

// ---------------------------------------------------------------------------------------------------
// The monitor, a forked copy: nothing here returns to the caller's code
// ---------------------------------------------------------------------------------------------------

struct Begin {
    plan: GuardPlan,
    theirs: OwnedFd,
    front: i32,
    group: i32,
    ignored: u64,
    mask: u64,
}

impl Begin {
    fn fail(&self, errno: i32) -> ! {
        let end = GuardEnd { exec_error: Some(errno), monitor_killed: true, ..GuardEnd::default() };
        post_end(&self.theirs, end);
        sys::exit_now(1)
    }

    fn or_fail<T>(&self, result: std::io::Result<T>) -> T {
        match result {
            Ok(value) => value,
            Err(e) => self.fail(e.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    fn run(self) -> ! {
        // CONT wakes a stopped monitor up, so that it sees its front's end.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::CONT));
        if nix::unistd::getppid().as_raw() != self.front {
            sys::exit_now(1);
        }
        // Out of the way of what is sent to the foreground group.
        let _ = rustix::process::setpgid(None, None);
        let subreaper = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        self.or_fail(subreaper.map_err(Into::into));
        let (exec_error, report) = self.or_fail(pipe_with(PipeFlags::CLOEXEC).map_err(Into::into));
        let signals = self.or_fail(SignalFd::block(&HEARD));
        let command = self.command();
        let pid = self.or_fail(command.spawn(&[report.as_raw_fd()]));
        drop((report, command));
        let started = Instant::now();
        let leader = Ident { pid, start: process::read_stat(pid).map_or(0, |s| s.start) };
        let watches = self.plan.dump || self.plan.stall.is_some();
        let (files, elsewhere) = if watches { self.output_files() } else { (vec![], false) };
        let Begin { plan, theirs, front, group, .. } = self;
        let role = GuardHalf {
            front,
            leader: pid,
            stood: false,
            socket: theirs,
            exec_error: Some(exec_error.into()),
            name: plan.command.first().map(|c| c.to_string_lossy().into_owned()).unwrap_or_default(),
            verbose: plan.verbose,
            output: files.first().and_then(|f| f.try_clone().ok()),
            log: plan.output,
            forward_grace: plan.kill_after.then_some(plan.grace),
            list_stopped: plan.list_stopped,
            ended: false,
        };
        let known = Known {
            policy: Policy { grace: plan.grace, leaks: plan.leaks, allow_empty: false, dump: plan.dump },
            tree: Tree::new(plan.spare).reaching(pid, group),
            leader,
            limit: plan.limit,
            signal: plan.signal,
            leader_only: plan.foreground,
            stall: plan.stall.watch(files, elsewhere),
            started,
        };
        Acting::new(known, role, signals).live(vec![], vec![])
    }

    fn command(&self) -> sys::Command {
        let strings = |bytes: Vec<u8>| CString::new(bytes).ok();
        let argv = self.plan.command.iter().filter_map(|a| strings(a.as_bytes().to_vec())).collect();
        let envp = std::env::vars_os()
            .filter_map(|(k, v)| strings([k.as_bytes(), b"=", v.as_bytes()].concat()))
            .collect();
        let path = std::env::var_os("PATH").map_or_else(|| b"/bin:/usr/bin".to_vec(), OsStringExt::into_vec);
        let mut command = sys::Command::new(argv, envp, &path);
        command.inherit = true;
        if let Some(file) = &self.plan.output {
            command.stdio = [None, Some(file.as_raw_fd()), Some(file.as_raw_fd())];
        }
        for fd in 0..3u8 {
            let own = fd > 0 && self.plan.output.is_some();
            command.closed[usize::from(fd)] = sys::was_closed(fd.into()) && !own;
        }
        command.group = Some(self.group);
        // If both halves are killed at once, the command goes with them; what it had started is the sweep's.
        command.death_signal = Some(libc::SIGKILL);
        // timeout gives these two back their default, which it has taken for itself.
        let tty = 1 << (libc::SIGTTIN - 1) | 1 << (libc::SIGTTOU - 1);
        command.signals = LeaderSignals::Inherited { mask: self.mask, ignored: self.ignored & !tty };
        command
    }

    /// The files that stdout and stderr are, and whether one of them is anything else that somebody may read.
    fn output_files(&self) -> (Vec<File>, bool) {
        let fds: Vec<OwnedFd> = match &self.plan.output {
            Some(file) => file.as_fd().try_clone_to_owned().into_iter().collect(),
            None => [rustix::stdio::stdout(), rustix::stdio::stderr()]
                .iter()
                .filter_map(|fd| fd.try_clone_to_owned().ok())
                .collect(),
        };
        let null = std::fs::metadata("/dev/null").map_or(0, |m| m.rdev());
        let mut elsewhere = false;
        let mut files = vec![];
        for file in fds.into_iter().map(File::from) {
            match file.metadata() {
                Ok(m) if m.is_file() => files.push(file),
                Ok(m) => elsewhere |= m.rdev() != null,
                Err(_) => {}
            }
        }
        (files, elsewhere)
    }
}

struct GuardHalf {
    front: i32,
    leader: i32,
    stood: bool,
    socket: OwnedFd,
    exec_error: Option<File>,
    name: String,
    verbose: Option<String>,
    /// A file that holds the output, for reading.
    output: Option<File>,
    log: Option<File>,
    forward_grace: Option<Duration>,
    list_stopped: bool,
    ended: bool,
}

impl Role for GuardHalf {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        (!self.ended).then(|| self.socket.as_fd()).into_iter().collect()
    }

    fn news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        if self.ended {
            return news;
        }
        while let Some(order) = receive::<Order>(&self.socket) {
            match order {
                Order::Stop { by, reason, signal, grace_ms, but } => {
                    let grace = grace_ms.map_or(Duration::MAX, Duration::from_millis);
                    if let Some(group) = but {
                        news.push(News::Spare { group });
                    }
                    news.push(News::Ask(Ask { by, reason, signal, grace }));
                }
                Order::Forward { signal } => {
                    // Signals that wait are one where they arrive, but for the real-time ones.
                    let same = |n: &News| matches!(n, News::Forward { signal: s, .. } if *s == signal);
                    if signal > 31 || !news.iter().any(same) {
                        news.push(News::Forward { signal, grace: self.forward_grace });
                    }
                }
            }
        }
        let mut byte = [0u8; 1];
        // End of file: the front was killed, and the tree goes at once.
        if matches!(recv(&self.socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((0, 0))) {
            self.ended = true;
            let by = format!("the guard [{}] was killed", self.front);
            news.push(News::Ask(Ask {
                by,
                reason: Reason::Kill,
                signal: libc::SIGKILL,
                grace: Duration::ZERO,
            }));
        }
        news
    }

    fn tell(&self, _word: &Word) {}

    fn unpublish(&mut self) {}

    fn announce(&mut self, _ask: &Ask) {
        self.stood = process::read_stat(self.leader).is_some_and(|s| s.is_stopped());
    }

    fn sending(&mut self, signal: i32) {
        let Some(me) = &self.verbose else { return };
        let name = match signal {
            0 => "0".to_owned(),
            other => sys::signal_name(other).trim_start_matches("SIG").to_owned(),
        };
        let line = format!("{me}: sending signal {name} to command '{}'\n", self.name);
        say_within(line.as_bytes(), PATIENCE.0);
    }

    fn check_executed(&mut self) {
        let mut errno = [0u8; 4];
        if self.exec_error.take().is_some_and(|mut pipe| pipe.read_exact(&mut errno).is_ok()) {
            let end = GuardEnd { exec_error: Some(i32::from_ne_bytes(errno)), ..GuardEnd::default() };
            post_end(&self.socket, end);
            sys::exit_now(1)
        }
    }

    fn diagnose(&mut self, text: &[u8]) {
        match &mut self.log {
            Some(log) => drop(log.write_all(text)),
            None => say_within(text, PATIENCE.1),
        }
    }

    fn output_tail(&self) -> Vec<u8> {
        let Some(file) = &self.output else { return vec![] };
        // The command's own description is for writing: another is for reading.
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).map_or_else(|_| vec![], |f| tail(&f))
    }

    fn output_age(&self) -> Option<Duration> {
        age(self.output.as_ref()?)
    }

    fn lists_stopped(&self) -> bool {
        self.list_stopped
    }

    fn outer(&self) -> (Option<String>, Option<i32>) {
        (super::nesting_above(self.front).outer, Some(self.front))
    }

    fn finish(self, end: End, _tree: &Tree, _signals: &SignalFd) -> ! {
        let death = end.death.as_ref();
        let reason = end.stop.as_ref().map_or(Reason::Exit, |a| a.reason);
        let leaks = end.leaked.iter().any(|l| l.why != SPARED);
        let over = GuardEnd {
            exit_code: death.and_then(|d| d.exit_code),
            signal: death.and_then(|d| d.signal),
            core: death.is_some_and(|d| d.core),
            exec_error: None,
            timed_out: matches!(reason, Reason::Limit | Reason::Stall),
            reason: Some(reason),
            by: end.stop.as_ref().map(|a| a.by.clone()),
            leaks,
            leaked: end.leaked,
            nested: end.nested,
            survivors: end.survivors,
            stopped: end.stopped,
            strongest: end.strongest,
            elapsed: death.map(|d| d.elapsed),
            cpu: death.and_then(|d| d.cpu),
            max_rss_kb: death.and_then(|d| d.max_rss_kb),
            stood: self.stood,
            monitor_killed: false,
        };
        post_end(&self.socket, over);
        sys::exit_now(0)
    }
}

/// The comm under which guards know each other.
const _: () = assert!(GUARD_COMM.len() <= 15);
