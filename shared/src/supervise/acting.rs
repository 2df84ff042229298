//! A half that acts: it waits for the dead, hears requests, keeps time, and does what the machine says. One loop serves
//! a job's monitor, the front that has taken over, and a guard; what they differ in is their [`Role`].

use super::dump;
use super::machine::{Action, Ask, Event, MOMENT, Machine, Policy, Timer};
use super::stall::Stall;
use super::tree::{Left, Tree};
use super::words::{Death, Told, Word};
use super::{COMM, GUARD_COMM, Request};
use crate::contract::{Leftover, Reason, now};
use crate::poll::sleep_on;
use crate::process::{self, Ident};
use crate::sys::{self, Arrived, Children, SignalFd, Which, signal_name};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How long a moment of repeated KILL is.
const ROUND: Duration = Duration::from_millis(20);
/// A half that has waited this long will wait on: what only its beginning needed is given back.
pub(super) const SETTLED: Duration = Duration::from_millis(250);
/// A time so far that it never comes.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// The signals that a half reads instead of taking.
pub(super) const HEARD: [i32; 5] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, sys::REQUEST];

/// What a half is for: whom it tells, where it writes, how it ends.
pub(super) trait Role {
    /// Further descriptors that wake the half.
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    /// When the half is to wake for its own sake.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// What came through them.
    fn news(&mut self) -> Vec<News> {
        Vec::new()
    }
    /// Tells the other half.
    fn tell(&self, word: &Word);
    /// Before many words are told.
    fn make_room(&mut self) {}
    /// Before the leader is waited for: its number is about to be free.
    fn unpublish(&mut self);
    /// Before the first signal of a stop.
    fn announce(&mut self, ask: &Ask);
    /// Before a signal goes to the tree.
    fn sending(&mut self, _signal: i32) {}
    /// The leader is dead; ends the half if it never executed its command.
    fn check_executed(&mut self);
    /// Where a diagnosis goes.
    fn diagnose(&mut self, text: &[u8]);
    /// The end of the output so far, for a diagnosis.
    fn output_tail(&self) -> Vec<u8>;
    /// How long ago something was last written to the output, where that can be told.
    fn output_age(&self) -> Option<Duration>;
    /// Whether what a stop found running is to be listed.
    fn lists_stopped(&self) -> bool {
        false
    }
    /// The job or guard around this one, and the PID above which it is.
    fn outer(&self) -> (Option<String>, Option<i32>);
    /// The record, and the end of this process.
    fn finish(self, end: End, tree: &Tree, signals: &SignalFd) -> !;
}

/// What a role's own descriptor brings.
pub(super) enum News {
    /// A request to stop.
    Ask(Ask),
    /// A group has had the signal of the stop that follows.
    Spare { group: i32 },
    /// A signal to be handed on.
    Forward {
        signal: i32,
        /// If KILL is to follow.
        grace: Option<Duration>,
    },
}

/// What a half knows from the start.
pub(super) struct Known {
    pub policy: Policy,
    pub tree: Tree,
    pub leader: Ident,
    pub limit: Option<Duration>,
    /// The signal of the limit and of a stall.
    pub signal: i32,
    /// A stop's first signal goes to the leader alone.
    pub leader_only: bool,
    pub stall: Option<Stall>,
    /// When the leader was let go.
    pub started: Instant,
}

/// How it all ended.
pub(super) struct End {
    pub policy: Policy,
    pub stop: Option<Ask>,
    pub death: Option<Death>,
    pub leaked: Vec<Leftover>,
    pub nested: Vec<Leftover>,
    pub survivors: Vec<Leftover>,
    /// What ran when a stop began, if the role lists it.
    pub stopped: Vec<Leftover>,
    pub strongest: Option<i32>,
}

/// A half at work.
pub(super) struct Acting<R: Role> {
    known: Known,
    role: R,
    machine: Machine,
    signals: SignalFd,
    timer: Option<(Timer, Instant)>,
    limit: Option<Instant>,
    death: Option<Death>,
    leaked: Vec<Leftover>,
    nested: Vec<Leftover>,
    survivors: Vec<Leftover>,
    stopped: Vec<Leftover>,
    strongest: Option<i32>,
    /// How long the output had been still when the stop began.
    still: Option<Duration>,
}

impl<R: Role> Acting<R> {
    /// A half that watches a leader which has just been started.
    pub(super) fn new(known: Known, role: R, signals: SignalFd) -> Acting<R> {
        let machine = Machine::new(known.policy);
        let machine = if known.leader_only { machine.for_the_leader_alone() } else { machine };
        let limit =
            known.limit.map(|l| known.started.checked_add(l).unwrap_or_else(|| known.started + NEVER));
        Acting {
            known,
            role,
            machine,
            signals,
            timer: None,
            limit,
            death: None,
            leaked: vec![],
            nested: vec![],
            survivors: vec![],
            stopped: vec![],
            strongest: None,
            still: None,
        }
    }

    /// A half that goes on from what the other had told.
    pub(super) fn resume(known: Known, role: R, signals: SignalFd, told: Told) -> (Acting<R>, Vec<Action>) {
        let (machine, actions) =
            Machine::resume(known.policy, told.dead.is_some(), told.stop, told.signalled);
        let fresh = Acting::new(known, role, signals);
        let acting = Acting { machine, death: told.dead, leaked: told.leaked, nested: told.nested, ..fresh };
        (acting, actions)
    }

    /// The half's life: from `first`, and what was asked and perhaps not heard, to the record.
    pub(super) fn live(mut self, first: Vec<Action>, unheard: Vec<Arrived>) -> ! {
        self.act(first);
        self.look();
        for heard in unheard {
            self.hear(heard);
        }
        let mut settled = false;
        while !self.machine.is_over() {
            // The leader's end is looked for before any request is read: a job that ended by itself is not
            // relabelled by a kill that came later.
            self.look();
            while let Some(heard) = self.signals.next() {
                self.hear(heard);
            }
            for news in self.role.news() {
                self.learn(news);
            }
            self.look();
            self.keep_time();
            if self.machine.is_hard() {
                self.kill();
                self.look();
            }
            if !self.machine.is_over() {
                let fds: Vec<BorrowedFd<'_>> =
                    [self.signals.fd()].into_iter().chain(self.role.fds()).collect();
                let mut left = self.until_next();
                if !settled {
                    settled = self.known.started.elapsed() >= SETTLED;
                    if settled {
                        sys::give_back_code();
                    } else {
                        left = Some(left.map_or(SETTLED, |l| l.min(SETTLED)));
                    }
                }
                sleep_on(&fds, left);
            }
        }
        if self.leaked.is_empty() && self.known.tree.left() == Left::Spared {
            (self.leaked, _) = self.known.tree.outliving("outlived the leader");
        }
        let end = End {
            policy: self.known.policy,
            stop: self.machine.stop().cloned(),
            death: self.death,
            leaked: self.leaked,
            nested: self.nested,
            survivors: self.survivors,
            stopped: self.stopped,
            strongest: self.strongest,
        };
        self.role.finish(end, &self.known.tree, &self.signals)
    }

    /// The leader, as long as it must not be waited for in passing.
    fn unreaped_leader(&self) -> Option<i32> {
        (!self.machine.leader_is_dead()).then_some(self.known.leader.pid)
    }

    fn kill(&mut self) {
        if self.machine.is_narrow() {
            self.known.tree.signal_one(self.known.leader, libc::SIGKILL);
        } else {
            self.known.tree.hard(self.unreaped_leader());
        }
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
                    self.role.check_executed();
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

    fn death_now(&self) -> Death {
        Death {
            exit_code: None,
            signal: None,
            core: false,
            cpu: None,
            max_rss_kb: None,
            at: now(),
            elapsed: self.known.started.elapsed().as_secs_f64(),
        }
    }

    /// A signal to this half is a request to stop, from whomever.
    fn hear(&mut self, heard: Arrived) {
        let request = match heard.signal {
            libc::SIGCHLD => return,
            sys::REQUEST => match Request::of_value(heard.value) {
                Some(request) => request,
                None => return,
            },
            _ => Request { signal: libc::SIGTERM, grace: self.known.policy.grace },
        };
        let (by, reason) = whose(heard, &self.role.outer());
        self.on(Event::Ask(Ask { by, reason, signal: request.signal, grace: request.grace }));
    }

    fn learn(&mut self, news: News) {
        match news {
            News::Ask(ask) => self.on(Event::Ask(ask)),
            News::Spare { group } => self.known.tree.note_group_signalled(group),
            News::Forward { signal, grace } => {
                self.role.sending(signal);
                self.known.tree.forward(signal, self.known.leader_only.then_some(self.known.leader));
                if let Some(grace) = grace {
                    self.on(Event::Forwarded(grace));
                }
            }
        }
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        let watching = !self.machine.leader_is_dead() && self.machine.stop().is_none();
        if self.limit.is_some_and(|at| at <= now) {
            self.limit = None;
            if watching {
                let limit = self.known.limit.unwrap_or_default();
                self.time_up(format!("the limit of {}s", limit.as_secs_f64()), Reason::Limit);
            }
        }
        if watching
            && let Some(stall) = &mut self.known.stall
            && let Some(by) = stall.check(now, &self.known.tree)
        {
            self.time_up(by, Reason::Stall);
        }
        if let Some((timer, at)) = self.timer
            && at <= now
        {
            self.timer = None;
            self.on(Event::Timer(timer));
        }
    }

    fn time_up(&mut self, by: String, reason: Reason) {
        let (signal, grace) = (self.known.signal, self.known.policy.grace);
        self.on(Event::Ask(Ask { by, reason, signal, grace }));
    }

    fn until_next(&self) -> Option<Duration> {
        let mut at = self.timer.map(|(_, at)| at);
        if !self.machine.leader_is_dead() {
            at = at.into_iter().chain(self.limit).min();
            if self.machine.stop().is_none() {
                at = at.into_iter().chain(self.known.stall.as_ref().map(Stall::next)).min();
            }
        }
        at = at.into_iter().chain(self.role.due()).min();
        let left = at.map(|at| at.saturating_duration_since(Instant::now()));
        if self.machine.is_hard() { Some(left.map_or(ROUND, |l| l.min(ROUND))) } else { left }
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::TellDeath => {
                    if let Some(death) = &self.death {
                        self.role.tell(&Word::Dead(death.clone()));
                    }
                }
                Action::TellStop(ask) => self.role.tell(&Word::stop(&ask)),
                Action::Unpublish => self.role.unpublish(),
                Action::Reap => {
                    let _ = sys::look(Which::Pid(self.known.leader.pid), true);
                    self.known.tree.leader_reaped();
                }
                Action::Announce(ask) => {
                    self.still = self.role.output_age();
                    self.role.announce(&ask);
                }
                Action::Dump => {
                    let text = dump::diagnosis(&self.known.tree, &self.role.output_tail(), self.still);
                    self.role.diagnose(text.as_bytes());
                    dump::ask_pythons(&mut self.known.tree, dump::Stage::InsteadOfTerm);
                }
                Action::Abort => dump::ask_pythons(&mut self.known.tree, dump::Stage::BeforeKill),
                Action::NoteLeaks => self.note_leaks(),
                Action::Soft { signal, grace } => {
                    if self.nested.is_empty() {
                        self.nested = self.known.tree.nested();
                        self.nested.iter().for_each(|n| self.role.tell(&Word::Nested(n.clone())));
                    }
                    if self.stopped.is_empty() && self.role.lists_stopped() {
                        (self.stopped, _) = self.known.tree.outliving("was running");
                    }
                    self.strongest = Some(signal);
                    self.role.sending(signal);
                    self.role.make_room();
                    let (role, tree) = (&self.role, &mut self.known.tree);
                    if self.machine.is_narrow() {
                        tree.soft_one(self.known.leader, signal);
                    } else {
                        tree.soft(
                            signal,
                            grace,
                            |moment| role.tell(&Word::Begun(moment)),
                            |ident| role.tell(&Word::Sent(ident.pid, ident.start)),
                        );
                    }
                }
                Action::Insist { signal } => self.known.tree.insist(signal),
                Action::Hard => {
                    if self.strongest.replace(libc::SIGKILL) != Some(libc::SIGKILL) {
                        self.role.sending(libc::SIGKILL);
                    }
                    self.kill();
                }
                Action::Arm(timer, after) => {
                    let is_now = timer == Timer::Grace && after.is_zero();
                    let after = if is_now && !self.nested.is_empty() { MOMENT } else { after };
                    let at = Instant::now().checked_add(after).unwrap_or_else(|| Instant::now() + NEVER);
                    // A timer that runs is brought nearer, never put off.
                    self.timer = match self.timer {
                        Some((armed, before)) if armed == timer => Some((timer, before.min(at))),
                        _ => Some((timer, at)),
                    };
                    if let Some((Timer::Grace, at)) = self.timer {
                        self.role.tell(&Word::signalled(at.saturating_duration_since(Instant::now())));
                    }
                }
                Action::NoteSurvivors => self.survivors = self.known.tree.survivors(),
                Action::Finish => {}
            }
        }
    }

    fn note_leaks(&mut self) {
        let (leaked, nested) = self.known.tree.outliving("outlived the leader");
        self.role.make_room();
        // What the other half had noted before it died may be gone by now, and was a leak all the same.
        let is_new =
            |known: &[Leftover], l: &Leftover| !known.iter().any(|k| (k.pid, k.start) == (l.pid, l.start));
        for leaked in leaked {
            if is_new(&self.leaked, &leaked) {
                self.role.tell(&Word::Leaked(leaked.clone()));
                self.leaked.push(leaked);
            }
        }
        for nested in nested {
            if is_new(&self.nested, &nested) {
                self.role.tell(&Word::Nested(nested.clone()));
                self.nested.push(nested);
            }
        }
    }
}

/// Who sent a request, for the record, and whether it is the job or guard around this one.
pub(super) fn whose(heard: Arrived, outer: &(Option<String>, Option<i32>)) -> (String, Reason) {
    let comm = process::comm(heard.pid);
    let is_supervisor = comm.as_deref().is_some_and(|c| c == COMM || c == GUARD_COMM);
    if is_supervisor && is_ancestor(heard.pid, outer.1) {
        let name = outer.0.clone().unwrap_or_else(|| format!("[{}]", heard.pid));
        return (format!("outer job {name} ended"), Reason::Outer);
    }
    let name = comm.unwrap_or_else(|| "a process that is gone".to_owned());
    let how =
        if heard.signal == sys::REQUEST { String::new() } else { format!(", {}", signal_name(heard.signal)) };
    (format!("{name}[{}] of uid {}{how}", heard.pid, heard.uid), Reason::Kill)
}

/// Whether a process is above this job's front (or above this half, where the front is gone).
fn is_ancestor(pid: i32, front: Option<i32>) -> bool {
    let line = process::self_and_ancestors();
    let above = line.iter().position(|&p| Some(p) == front).unwrap_or(0);
    line[above..].iter().skip(1).any(|&p| p == pid)
}
