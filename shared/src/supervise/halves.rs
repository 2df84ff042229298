//! The two halves of a background job's supervisor.
//!
//! The monitor (below) alone acts and writes. The front (above) sleeps until the monitor has died; then
//! everything that the monitor had is its child, and it goes on from what it was told, alone. Both are
//! single-threaded, subreapers, and in sessions of their own.

use super::machine::{Action, Ask, Event, LeaderEnd, Machine, Policy, Timer, verdict};
use super::record::Record;
use super::tree::{Left, SPARED, Spare, Tree};
use super::words::{Death, Told, Word};
use super::{COMM, GUARD_COMM, Request};
use crate::contract::{Footer, Leftover, Reason, Stopping, VERSION, now, rfc3339};
use crate::process::{self, Handle, Ident};
use crate::sys::{self, Arrived, Children, SignalFd, Which, signal_name};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// How long a moment of repeated KILL is.
const ROUND: Duration = Duration::from_millis(20);
/// How long a record that cannot be written waits for room.
const RETRY: Duration = Duration::from_secs(5);
/// How many requests that were passed on to the monitor the front remembers.
const PASSED_ON: usize = 8;
/// Room for words about as many leaks as a record lists, and about each process of a large tree.
const PIPE: usize = 1 << 20;

/// The signals that a half reads instead of taking.
pub(super) const HEARD: [i32; 5] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, sys::REQUEST];

/// What both halves know from the start.
pub(super) struct Known {
    pub record: Record,
    pub policy: Policy,
    pub tree: Tree,
    pub leader: Ident,
    pub limit: Option<Duration>,
    /// When the leader was let go.
    pub started: Instant,
}

/// A half that acts: the monitor, or the front that has taken over.
struct Acting {
    known: Known,
    machine: Machine,
    signals: SignalFd,
    /// To the front; `None` in the front itself.
    twin: Option<File>,
    /// Where a leader that could not execute its command has left errno; empty if it could.
    exec_error: Option<File>,
    timer: Option<(Timer, Instant)>,
    limit: Option<Instant>,
    death: Option<Death>,
    leaked: Vec<Leftover>,
    nested: Vec<Leftover>,
    survivors: Vec<Leftover>,
    strongest: Option<i32>,
}

/// The monitor's life, from the leader's start to the record.
pub(super) fn monitor(known: Known, signals: SignalFd, twin: File, exec_error: File) -> ! {
    let limit = known.limit.map(|l| known.started + l);
    let machine = Machine::new(known.policy);
    let acting = Acting {
        known,
        machine,
        signals,
        twin: Some(twin),
        exec_error: Some(exec_error),
        timer: None,
        limit,
        death: None,
        leaked: vec![],
        nested: vec![],
        survivors: vec![],
        strongest: None,
    };
    acting.live(vec![], vec![])
}

/// The front's life: asleep until the monitor has died, then whatever is left to do.
#[expect(clippy::too_many_arguments, reason = "a forked copy takes over all that it was given, once")]
pub(super) fn front(
    mut record: Record,
    policy: Policy,
    spare: Option<Spare>,
    limit: Option<Duration>,
    started: Instant,
    signals: SignalFd,
    words: &File,
    monitor: i32,
) -> ! {
    // A child's number is ours until we wait for it, so this handle is the monitor's.
    let handle = process::read_stat(monitor)
        .and_then(|stat| Handle::open(Ident { pid: monitor, start: stat.start }).ok().flatten());
    let mut passed_on = Vec::new();
    while !matches!(sys::look(Which::Pid(monitor), true), Ok(Children::Dead(_) | Children::None)) {
        let Some(heard) = signals.next() else {
            wait_for(&signals, None);
            continue;
        };
        // A request to this half is one to the job: the monitor acts.
        let value = match heard.signal {
            sys::REQUEST => heard.value,
            libc::SIGCHLD => continue,
            _ => Request { signal: libc::SIGTERM, grace: policy.grace }.value(),
        };
        if let Some(handle) = &handle {
            let _ = handle.request_for((heard.pid, heard.uid), value);
        }
        passed_on.truncate(PASSED_ON - 1);
        passed_on.push(heard);
    }
    let told = Told::read(words);
    let Some((header, log_name)) = told.begun else {
        // The leader was never let go: it vanishes with the barrier, and nobody has heard of the job.
        record.abandon();
        sys::exit_now(1)
    };
    (record.header, record.log_name) = (header, log_name);
    if told.recorded || record.is_finished() {
        record.unpublish();
        sys::exit_now(0);
    }
    let leader = Ident { pid: record.header.pid, start: record.header.start };
    let tree = Tree::taken_over(spare, told.signals_begun, told.sent);
    let (machine, actions) = Machine::resume(policy, told.dead.is_some(), told.stop, told.signalled);
    let acting = Acting {
        known: Known { record, policy, tree, leader, limit, started },
        machine,
        signals,
        twin: None,
        exec_error: None,
        timer: None,
        limit: limit.map(|l| started + l),
        death: told.dead,
        leaked: told.leaked,
        nested: told.nested,
        survivors: vec![],
        strongest: None,
    };
    // What the monitor was asked and did not live to say that it had heard is still asked.
    let unheard = if acting.machine.stop().is_none() { passed_on } else { vec![] };
    acting.live(actions, unheard)
}

/// Sleeps until a signal has come or the time is up.
fn wait_for(signals: &SignalFd, timeout: Option<Duration>) {
    let fd = signals.fd();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let timeout = timeout.map(|t| Timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: t.subsec_nanos().into(),
    });
    // EINTR is as good a reason to look again as any.
    let _ = poll(&mut fds, timeout.as_ref());
}

impl Acting {
    fn live(mut self, first: Vec<Action>, unheard: Vec<Arrived>) -> ! {
        self.act(first);
        self.look();
        for heard in unheard {
            self.hear(heard);
        }
        while !self.machine.is_over() {
            // The leader's end is looked for before any request is read: a job that ended by itself is not
            // relabelled by a kill that came later.
            self.look();
            while let Some(heard) = self.signals.next() {
                self.hear(heard);
            }
            self.look();
            self.keep_time();
            if self.machine.is_hard() {
                self.known.tree.hard(self.unreaped_leader());
                self.look();
            }
            if !self.machine.is_over() {
                wait_for(&self.signals, self.until_next());
            }
        }
        self.finish()
    }

    /// The leader, as long as it must not be waited for in passing.
    fn unreaped_leader(&self) -> Option<i32> {
        (!self.machine.leader_is_dead()).then_some(self.known.leader.pid)
    }

    fn on(&mut self, event: Event) {
        let actions = self.machine.on(event);
        self.act(actions);
    }

    /// Waits for the dead, the leader with ceremony.
    fn look(&mut self) {
        while !self.machine.is_over() {
            match sys::look(Which::Any, false) {
                Ok(Children::Dead(dead)) if Some(dead.pid) == self.unreaped_leader() => {
                    self.end_if_nothing_was_executed();
                    let mut death = self.death_now();
                    death.ended(dead.ended);
                    death.cpu = Some(dead.cpu.as_secs_f64());
                    death.max_rss_kb = Some(dead.max_rss_kb);
                    self.death = Some(death);
                    self.on(Event::LeaderDied);
                }
                Ok(Children::Dead(dead)) => {
                    let _ = sys::look(Which::Pid(dead.pid), true);
                }
                Ok(Children::Alive) => {
                    if self.machine.leader_is_dead() && self.known.tree.left() != Left::Some {
                        self.on(Event::Empty);
                    }
                    return;
                }
                Ok(Children::None) => {
                    if !self.machine.leader_is_dead() {
                        // Somebody else has waited for the leader, or its monitor died before it could tell:
                        // that it ended is certain, how is not.
                        if self.known.leader.is_alive() {
                            return;
                        }
                        self.death = Some(self.death_now());
                        self.on(Event::LeaderDied);
                    }
                    self.on(Event::Empty);
                    return;
                }
                Err(_) => return,
            }
        }
    }

    /// A leader that never executed its command was no job: the launcher says why, and nothing is left.
    fn end_if_nothing_was_executed(&mut self) {
        let mut errno = [0u8; 4];
        // The leader is dead, and nobody else has the other end: this does not block.
        if self.exec_error.take().is_some_and(|mut pipe| pipe.read_exact(&mut errno).is_ok()) {
            self.known.record.abandon();
            self.tell(&Word::Recorded);
            sys::exit_now(1)
        }
    }

    fn death_now(&self) -> Death {
        Death {
            exit_code: None,
            signal: None,
            cpu: None,
            max_rss_kb: None,
            at: now(),
            elapsed: self.known.started.elapsed().as_secs_f64(),
        }
    }

    fn hear(&mut self, heard: Arrived) {
        let request = match heard.signal {
            libc::SIGCHLD => return,
            sys::REQUEST => match Request::of_value(heard.value) {
                Some(request) => request,
                None => return,
            },
            _ => Request { signal: libc::SIGTERM, grace: self.known.policy.grace },
        };
        let comm = process::comm(heard.pid);
        let from_outer = comm.as_deref().is_some_and(|c| c == COMM || c == GUARD_COMM)
            && is_ancestor(heard.pid, self.known.record.header.supervisors.first().map(|s| s.0));
        let (by, reason) = if from_outer {
            let outer = self.known.record.header.nested_in.clone();
            (
                format!("outer job {} ended", outer.unwrap_or_else(|| format!("[{}]", heard.pid))),
                Reason::Outer,
            )
        } else {
            let name = comm.unwrap_or_else(|| "a process that is gone".to_owned());
            let how = if heard.signal == sys::REQUEST {
                String::new()
            } else {
                format!(", {}", signal_name(heard.signal))
            };
            (format!("{name}[{}] of uid {}{how}", heard.pid, heard.uid), Reason::Kill)
        };
        self.on(Event::Ask(Ask { by, reason, signal: request.signal, grace: request.grace }));
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.limit.is_some_and(|at| at <= now) {
            self.limit = None;
            if !self.machine.leader_is_dead() && self.machine.stop().is_none() {
                let limit = self.known.limit.unwrap_or_default();
                self.on(Event::Ask(Ask {
                    by: format!("--limit {}s", limit.as_secs_f64()),
                    reason: Reason::Limit,
                    signal: libc::SIGTERM,
                    grace: self.known.policy.grace,
                }));
            }
        }
        if let Some((timer, at)) = self.timer
            && at <= now
        {
            self.timer = None;
            self.on(Event::Timer(timer));
        }
    }

    fn until_next(&self) -> Option<Duration> {
        let mut at = self.timer.map(|(_, at)| at);
        if !self.machine.leader_is_dead() {
            at = at.into_iter().chain(self.limit).min();
        }
        let left = at.map(|at| at.saturating_duration_since(Instant::now()));
        if self.machine.is_hard() { Some(left.map_or(ROUND, |l| l.min(ROUND))) } else { left }
    }

    fn tell(&self, word: &Word) {
        if let Some(twin) = &self.twin {
            word.tell(twin);
        }
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::TellDeath => {
                    if let Some(death) = &self.death {
                        self.tell(&Word::Dead(death.clone()));
                    }
                }
                Action::TellStop(ask) => self.tell(&Word::stop(&ask)),
                Action::Unpublish => {
                    // The job is never without a file: a log that is gone is begun anew before the PID file goes.
                    self.known.record.rehome();
                    self.known.record.unpublish();
                }
                Action::Reap => {
                    let _ = sys::look(Which::Pid(self.known.leader.pid), true);
                }
                Action::Announce(ask) => self.announce(&ask),
                Action::NoteLeaks => self.note_leaks(),
                Action::Soft { signal, grace } => {
                    if self.nested.is_empty() {
                        self.nested = self.known.tree.nested();
                        self.nested.iter().for_each(|n| self.tell(&Word::Nested(n.clone())));
                    }
                    self.strongest = Some(signal);
                    let twin = self.twin.as_ref();
                    if let Some(twin) = twin {
                        // A pipe that stays as it is holds less: what does not fit is not told.
                        let _ = rustix::pipe::fcntl_setpipe_size(twin, PIPE);
                    }
                    let tell = |word: Word| twin.iter().for_each(|twin| word.tell(twin));
                    self.known.tree.soft_telling(
                        signal,
                        grace,
                        |moment| tell(Word::Begun(moment)),
                        |ident| tell(Word::Sent(ident.pid, ident.start)),
                    );
                }
                Action::Hard => {
                    self.strongest = Some(libc::SIGKILL);
                    self.known.tree.hard(self.unreaped_leader());
                }
                Action::Arm(timer, after) => {
                    let at = Instant::now()
                        .checked_add(after)
                        .unwrap_or_else(|| Instant::now() + RETRY * 1_000_000);
                    // A timer that runs is brought nearer, never put off.
                    self.timer = match self.timer {
                        Some((armed, before)) if armed == timer => Some((timer, before.min(at))),
                        _ => Some((timer, at)),
                    };
                    if let Some((Timer::Grace, at)) = self.timer {
                        self.tell(&Word::signalled(at.saturating_duration_since(Instant::now())));
                    }
                }
                Action::NoteSurvivors => self.survivors = self.known.tree.survivors(),
                Action::Finish => {}
            }
        }
    }

    fn announce(&mut self, ask: &Ask) {
        // The other half may have written the line before it died.
        if self.twin.is_none() && self.known.record.is_announced() {
            return;
        }
        let stopping =
            Stopping { job: self.known.record.header.job.clone(), by: ask.by.clone(), reason: ask.reason };
        self.known.record.announce(&stopping);
    }

    fn note_leaks(&mut self) {
        let (leaked, nested) = self.known.tree.outliving("outlived the leader");
        if let Some(twin) = &self.twin {
            // A pipe that stays as it is holds less: what does not fit is not told.
            let _ = rustix::pipe::fcntl_setpipe_size(twin, PIPE);
        }
        // What the other half had noted before it died may be gone by now, and was a leak all the same.
        let is_new =
            |known: &[Leftover], l: &Leftover| !known.iter().any(|k| (k.pid, k.start) == (l.pid, l.start));
        for leaked in leaked.into_iter().filter(|l| is_new(&self.leaked, l)).collect::<Vec<_>>() {
            self.tell(&Word::Leaked(leaked.clone()));
            self.leaked.push(leaked);
        }
        for nested in nested.into_iter().filter(|n| is_new(&self.nested, n)).collect::<Vec<_>>() {
            self.tell(&Word::Nested(nested.clone()));
            self.nested.push(nested);
        }
    }

    fn footer(&mut self) -> Footer {
        let death = self.death.take();
        let end = match &death {
            Some(Death { exit_code: Some(code), .. }) => LeaderEnd::Exit(*code),
            Some(Death { signal: Some(signal), .. }) => LeaderEnd::Signal(*signal),
            _ => LeaderEnd::Unknown,
        };
        if self.leaked.is_empty() && self.known.tree.left() == Left::Spared {
            (self.leaked, _) = self.known.tree.outliving("outlived the leader");
        }
        let leaked = self.leaked.iter().any(|l| l.why != SPARED);
        let (outcome, reason) = verdict(&self.known.policy, self.machine.stop(), end, leaked);
        Footer {
            v: VERSION,
            job: self.known.record.header.job.clone(),
            outcome,
            exit_code: death.as_ref().and_then(|d| d.exit_code),
            signal: death.as_ref().and_then(|d| d.signal).map(signal_name),
            reason: Some(reason),
            finished_at: death.as_ref().map(|d| rfc3339(d.at)),
            elapsed_seconds: death.as_ref().map(|d| (d.elapsed * 1000.0).round() / 1000.0),
            cpu_seconds: death.as_ref().and_then(|d| d.cpu),
            max_rss_kb: death.as_ref().and_then(|d| d.max_rss_kb),
            leaked: std::mem::take(&mut self.leaked),
            nested: std::mem::take(&mut self.nested),
            survivors: std::mem::take(&mut self.survivors),
            truncated: false,
            added_newline: false,
            overwrote: None,
            stopped_with: self.machine.stop().and(self.strongest).map(signal_name),
            header: self.known.record.header.clone(),
        }
    }

    /// A front that somebody stopped would stay for ever: it is woken to see that all is over.
    fn wake_twin(&self) {
        if self.twin.is_some()
            && let Some(&(pid, start)) = self.known.record.header.supervisors.first()
            && let Ok(Some(front)) = Handle::open(Ident { pid, start })
        {
            let _ = front.signal(libc::SIGCONT);
        }
    }

    /// Writes the record and ends. Where it cannot be written, the log's lock stays and says so, and it is tried
    /// again: a job whose end is not recorded is not over.
    fn finish(mut self) -> ! {
        let mut footer = self.footer();
        while let Err(cause) = self.known.record.finish(&mut footer) {
            sys::set_title(&format!("{COMM}: cannot record: {cause}"));
            let until = Instant::now() + RETRY;
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
                wait_for(&self.signals, Some(left));
                // Whoever asks for a stop has perhaps just made room.
                if std::iter::from_fn(|| self.signals.next()).any(|heard| heard.signal == sys::REQUEST) {
                    break;
                }
            }
        }
        self.tell(&Word::Recorded);
        self.wake_twin();
        self.known.record.sync();
        sys::exit_now(0)
    }
}

/// Whether a process is above this job's front (or above this half, where the front is gone).
fn is_ancestor(pid: i32, front: Option<i32>) -> bool {
    let line = process::self_and_ancestors();
    let above = line.iter().position(|&p| Some(p) == front).unwrap_or(0);
    line[above..].iter().skip(1).any(|&p| p == pid)
}
