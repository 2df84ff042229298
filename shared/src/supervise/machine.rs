//! Supervision as a state machine: events in, actions out, no process and no clock inside.
//!
//! One machine serves a background job and a guard. What differs is data: the policy, who is told, and what
//! the driver does for an action.

use crate::contract::{Leaks, Outcome, Reason};
use std::time::Duration;

/// How long what outlives its leader may take to end by itself before it counts as leaked: a pipeline's last
/// member, a worker that was told to go, are no leaks.
pub const LINGER: Duration = Duration::from_millis(100);
/// How long a Python may take to write its tracebacks before KILL.
pub const ABORT: Duration = Duration::from_secs(1);
/// How long KILL is repeated before survivors are named.
pub const BOUND: Duration = Duration::from_secs(5);
/// How long jobs and guards inside a tree that is killed at once have to end theirs and to write their records.
pub(super) const MOMENT: Duration = Duration::from_secs(1);
/// The grace of what outlives the leader where a stop has none that ends.
const LEAK_GRACE: Duration = Duration::from_secs(5);

/// What does not change while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Between the first signal and KILL, unless a request says otherwise.
    pub grace: Duration,
    /// What happens to what outlives the leader.
    pub leaks: Leaks,
    /// Whether pytest's exit status 5, nothing collected, is a pass.
    pub allow_empty: bool,
    /// Whether a diagnosis comes before the signals of a limit or a stall.
    pub dump: bool,
}

/// A request to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Who asks, for the record.
    pub by: String,
    /// Why.
    pub reason: Reason,
    /// The first signal.
    pub signal: i32,
    /// Between it and KILL.
    pub grace: Duration,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The leader has ended; it is not reaped yet.
    LeaderDied,
    /// Nothing of the tree is left but what is spared.
    Empty,
    /// Somebody or a limit asks for a stop.
    Ask(Ask),
    /// A signal that asks for no stop was handed on, and KILL follows it after this time (timeout's `-k`).
    Forwarded(Duration),
    /// A timer that was armed has run out.
    Timer(Timer),
}

/// The timers of a stop. At most one is armed; arming one disarms the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timer {
    /// What outlived the leader has had its moment.
    Linger,
    /// The grace is over.
    Grace,
    /// Those that were asked for a traceback have had the time to write it.
    Abort,
    /// KILL has not helped for long enough.
    Bound,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Tell the other half what is known of the leader's end.
    TellDeath,
    /// Tell the other half of a stop.
    TellStop(Ask),
    /// Remove the PID file: the number is about to be free.
    Unpublish,
    /// Wait for the leader, which frees its number.
    Reap,
    /// Write the STOPPING line.
    Announce(Ask),
    /// Write the diagnosis, and have Pythons that would die of TERM without a word write their tracebacks instead.
    Dump,
    /// Have the Pythons that are left write their tracebacks.
    Abort,
    /// Note what has outlived the leader.
    NoteLeaks,
    /// One signal and CONT to each process of the tree; nested supervisors are asked instead.
    Soft {
        /// The signal.
        signal: i32,
        /// How long the tree has from now.
        grace: Duration,
    },
    /// TERM to what ignores the signal that the tree had, now that the leader is gone: an INT does not tell a server
    /// that a shell has put into the background that it is over.
    Insist {
        /// The signal that the tree had.
        signal: i32,
    },
    /// KILL to all of the tree, again and again until it is empty.
    Hard,
    /// Start a timer. A grace of zero is [`MOMENT`] where other supervisors are inside.
    Arm(Timer, Duration),
    /// Note what could not be killed.
    NoteSurvivors,
    /// Write the record and end.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The leader runs and nobody has asked for anything.
    Watching,
    /// The leader has ended by itself; what is left may still end by itself.
    Lingering,
    /// Everything was signalled once; the grace runs.
    Soft,
    /// KILL is being repeated.
    Hard,
    /// The record is written.
    Over,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Machine {
    policy: Policy,
    phase: Phase,
    leader_dead: bool,
    /// The request that came before the leader's end, if one did: it decides the outcome.
    stop: Option<Ask>,
    announced: bool,
    dumped: bool,
    /// Pythons have been asked for their tracebacks: KILL is a moment away, and nothing puts it off.
    aborting: bool,
    /// A stop is the leader's alone (timeout's `--foreground`).
    narrow: bool,
}

impl Machine {
    /// A machine for a leader that has just been started.
    pub fn new(policy: Policy) -> Machine {
        Machine {
            policy,
            phase: Phase::Watching,
            leader_dead: false,
            stop: None,
            announced: false,
            dumped: false,
            aborting: false,
            narrow: false,
        }
    }

    /// The same, with stops that are the leader's alone (timeout's `--foreground`): what is below it is treated as
    /// what outlives a normal end. One that leaves no time is everybody's.
    #[must_use]
    pub fn for_the_leader_alone(mut self) -> Machine {
        self.narrow = true;
        self
    }

    /// Whether signals go to the leader alone: it lives, and the stop is its own.
    pub fn is_narrow(&self) -> bool {
        self.narrow && !self.leader_dead
    }

    /// A machine that goes on where the other half was when it died: what it had told, and, if it had already
    /// signalled the tree, how much of the grace is left. The actions are what is still to be done.
    pub fn resume(
        policy: Policy,
        leader_dead: bool,
        stop: Option<Ask>,
        signalled: Option<Duration>,
    ) -> (Machine, Vec<Action>) {
        let mut machine = Machine::new(policy);
        let mut actions = Vec::new();
        machine.leader_dead = leader_dead;
        match stop {
            None if leader_dead && signalled.is_some() => {
                // What outlived the leader was being stopped: it has been noted, and has had its one signal.
                machine.phase = Phase::Soft;
                actions.push(Action::Unpublish);
                actions.extend(signalled.map(|left| Action::Arm(Timer::Grace, left)));
            }
            None if leader_dead => {
                machine.phase = Phase::Lingering;
                actions.extend([Action::Unpublish, Action::Arm(Timer::Linger, LINGER)]);
            }
            None => {}
            Some(ask) => {
                // A stop that began before the leader's end decides the outcome; the words come in order.
                machine.phase = Phase::Soft;
                machine.announced = true;
                if leader_dead {
                    actions.push(Action::Unpublish);
                }
                actions.push(Action::Announce(ask.clone()));
                if signalled.is_none() {
                    actions.push(Action::Soft { signal: ask.signal, grace: ask.grace });
                }
                actions.push(Action::Arm(Timer::Grace, signalled.unwrap_or(ask.grace)));
                machine.stop = Some(ask);
            }
        }
        (machine, actions)
    }

    /// Whether the leader's end is known.
    pub fn leader_is_dead(&self) -> bool {
        self.leader_dead
    }

    /// Whether KILL is being repeated.
    pub fn is_hard(&self) -> bool {
        self.phase == Phase::Hard
    }

    /// Whether the record is due or written.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The request that decides the outcome, if one came before the leader's end.
    pub fn stop(&self) -> Option<&Ask> {
        self.stop.as_ref()
    }

    /// Takes an event and says what is to be done.
    pub fn on(&mut self, event: Event) -> Vec<Action> {
        match (self.phase, event) {
            (Phase::Over, _) => vec![],
            (_, Event::LeaderDied) => self.leader_died(),
            (_, Event::Empty) if self.leader_dead => {
                self.phase = Phase::Over;
                vec![Action::Finish]
            }
            // The leader itself is of the tree: as long as it lives, nothing is empty.
            (_, Event::Empty) => vec![],
            (phase, Event::Ask(ask)) => self.asked(phase, &ask),
            (Phase::Lingering, Event::Timer(Timer::Linger)) => self.linger_over(),
            (Phase::Watching, Event::Forwarded(grace)) => vec![Action::Arm(Timer::Grace, grace)],
            (_, Event::Forwarded(_)) => vec![],
            (Phase::Soft, Event::Timer(Timer::Grace)) if self.dumped && !self.aborting => {
                self.aborting = true;
                vec![Action::Abort, Action::Arm(Timer::Abort, ABORT)]
            }
            (Phase::Watching | Phase::Soft, Event::Timer(Timer::Grace))
            | (Phase::Soft, Event::Timer(Timer::Abort)) => {
                self.phase = Phase::Hard;
                vec![Action::Hard, Action::Arm(Timer::Bound, BOUND)]
            }
            (Phase::Hard, Event::Timer(Timer::Bound)) => {
                self.phase = Phase::Over;
                let mut actions = vec![Action::NoteSurvivors];
                if !self.leader_dead {
                    actions.push(Action::Unpublish);
                }
                actions.push(Action::Finish);
                actions
            }
            // A timer that was overtaken by what came before it.
            (_, Event::Timer(_)) => vec![],
        }
    }

    fn leader_died(&mut self) -> Vec<Action> {
        if self.leader_dead {
            return vec![];
        }
        self.leader_dead = true;
        let mut actions = vec![Action::TellDeath, Action::Unpublish, Action::Reap];
        let is_the_leaders = self.narrow && matches!(self.phase, Phase::Soft | Phase::Hard);
        if self.phase == Phase::Watching || is_the_leaders {
            self.phase = Phase::Lingering;
            actions.push(Action::Arm(Timer::Linger, LINGER));
        } else if self.phase == Phase::Soft {
            actions.extend(self.stop.as_ref().and_then(|ask| insist(ask.signal)));
        }
        actions
    }

    fn linger_over(&mut self) -> Vec<Action> {
        if self.policy.leaks == Leaks::Allow {
            self.phase = Phase::Over;
            return vec![Action::NoteLeaks, Action::Finish];
        }
        self.phase = Phase::Soft;
        self.narrow = false;
        // Whoever never wants KILL when the time is up has not asked to wait for ever for what was left behind.
        let grace = if self.policy.grace == Duration::MAX { LEAK_GRACE } else { self.policy.grace };
        vec![
            Action::NoteLeaks,
            Action::Soft { signal: libc::SIGTERM, grace },
            Action::Arm(Timer::Grace, grace),
        ]
    }

    fn asked(&mut self, phase: Phase, ask: &Ask) -> Vec<Action> {
        let mut actions = Vec::new();
        if phase == Phase::Watching {
            self.stop = Some(ask.clone());
            actions.push(Action::TellStop(ask.clone()));
        }
        // Whoever asks waits for this line; it is written once.
        if !self.announced {
            self.announced = true;
            actions.push(Action::Announce(ask.clone()));
        }
        // KILL is no signal to be given time after: only other supervisors have a moment.
        let now = ask.signal == libc::SIGKILL || ask.grace.is_zero();
        let (grace, until_kill) = if now { (MOMENT, Duration::ZERO) } else { (ask.grace, ask.grace) };
        self.narrow &= !ask.grace.is_zero();
        match phase {
            Phase::Watching => {
                self.phase = Phase::Soft;
                if self.policy.dump && matches!(ask.reason, Reason::Limit | Reason::Stall) {
                    self.dumped = true;
                    actions.push(Action::Dump);
                }
                actions.push(Action::Soft { signal: ask.signal, grace });
                actions.push(Action::Arm(Timer::Grace, until_kill));
            }
            Phase::Lingering => {
                self.phase = Phase::Soft;
                actions.push(Action::NoteLeaks);
                actions.push(Action::Soft { signal: ask.signal, grace });
                actions.extend(insist(ask.signal));
                actions.push(Action::Arm(Timer::Grace, until_kill));
            }
            // The tree has had its one signal: a further request can only bring the end nearer, which is
            // the driver's rule for arming a timer that runs.
            Phase::Soft if now => {
                self.dumped = false;
                actions.push(Action::Soft { signal: libc::SIGKILL, grace });
                actions.push(Action::Arm(Timer::Grace, until_kill));
            }
            Phase::Soft if self.aborting => {}
            Phase::Soft => actions.push(Action::Arm(Timer::Grace, until_kill)),
            Phase::Hard | Phase::Over => {}
        }
        actions
    }
}

/// What is to be done about processes that ignore the first signal of a stop, once the leader is gone. As long as it lives
/// it may want them: what is shielded from Ctrl-C often serves its teardown.
fn insist(signal: i32) -> Option<Action> {
    (![libc::SIGTERM, libc::SIGKILL].contains(&signal)).then_some(Action::Insist { signal })
}

/// How the leader ended, for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderEnd {
    /// It exited with this status.
    Exit(i32),
    /// It died of a signal.
    Signal(i32),
    /// Nobody knows.
    Unknown,
}

/// pytest's exit status for "nothing was collected".
const NOTHING_COLLECTED: i32 = 5;

/// The verdict: from the exit status that the kernel gave, and from what brought the end about.
pub fn verdict(policy: &Policy, stop: Option<&Ask>, end: LeaderEnd, leaked: bool) -> (Outcome, Reason) {
    if let Some(ask) = stop {
        let outcome = match ask.reason {
            Reason::Limit | Reason::Stall => Outcome::Timeout,
            Reason::Exit | Reason::Kill | Reason::Outer | Reason::Leaks => Outcome::Killed,
        };
        return (outcome, ask.reason);
    }
    let passed = match end {
        LeaderEnd::Exit(0) => true,
        LeaderEnd::Exit(NOTHING_COLLECTED) => policy.allow_empty,
        LeaderEnd::Exit(_) | LeaderEnd::Signal(_) | LeaderEnd::Unknown => false,
    };
    match (passed, leaked && policy.leaks == Leaks::Fail) {
        (true, true) => (Outcome::Failed, Reason::Leaks),
        (true, false) => (Outcome::Passed, Reason::Exit),
        (false, _) => (Outcome::Failed, Reason::Exit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: Policy =
        Policy { grace: Duration::from_secs(5), leaks: Leaks::Kill, allow_empty: false, dump: false };

    fn ask(reason: Reason) -> Ask {
        Ask { by: "tb-kill".into(), reason, signal: libc::SIGTERM, grace: Duration::from_secs(3) }
    }

    fn events() -> Vec<Event> {
        vec![
            Event::LeaderDied,
            Event::Empty,
            Event::Ask(ask(Reason::Kill)),
            Event::Ask(ask(Reason::Limit)),
            Event::Ask(ask(Reason::Outer)),
            Event::Ask(Ask { signal: libc::SIGINT, ..ask(Reason::Kill) }),
            Event::Ask(Ask { grace: Duration::ZERO, ..ask(Reason::Kill) }),
            Event::Ask(Ask { signal: libc::SIGKILL, ..ask(Reason::Kill) }),
            Event::Forwarded(Duration::from_secs(1)),
            Event::Timer(Timer::Linger),
            Event::Timer(Timer::Grace),
            Event::Timer(Timer::Abort),
            Event::Timer(Timer::Bound),
        ]
    }

    fn softly(action: &Action) -> bool {
        matches!(action, Action::Soft { signal, .. } if *signal != libc::SIGKILL)
    }

    fn position(actions: &[Action], wanted: &Action) -> Option<usize> {
        actions.iter().position(|a| a == wanted)
    }

    /// What must hold of any history, whatever the events and their order.
    fn check(policy: Policy, history: &[Event]) {
        let mut machine = Machine::new(policy);
        let mut all = Vec::new();
        let mut armed = None;
        for event in history {
            // The driver never delivers a timer that is not armed.
            if let Event::Timer(t) = event
                && armed != Some(*t)
            {
                continue;
            }
            let actions = machine.on(event.clone());
            for action in &actions {
                if let Action::Arm(t, _) = action {
                    armed = Some(*t);
                }
            }
            all.extend(actions);
        }
        let count = |f: fn(&Action) -> bool| all.iter().filter(|a| f(a)).count();
        assert!(count(|a| matches!(a, Action::Finish)) <= 1, "{all:?}");
        assert!(count(|a| matches!(a, Action::Reap)) <= 1);
        assert!(count(|a| matches!(a, Action::Announce(_))) <= 1, "one STOPPING line");
        assert!(count(softly) <= 1, "exactly one TERM to each process");
        assert!(count(|a| matches!(a, Action::Insist { .. })) <= 1);
        assert!(count(|a| matches!(a, Action::NoteLeaks)) <= 1);
        // The PID file goes before the number is free; the other half knows before anything is done.
        if let Some(reap) = position(&all, &Action::Reap) {
            assert!(position(&all, &Action::Unpublish).unwrap() < reap);
            assert!(position(&all, &Action::TellDeath).unwrap() < reap);
        }
        if let Some(announce) = all.iter().position(|a| matches!(a, Action::Announce(_)))
            && let Some(soft) = all.iter().position(|a| matches!(a, Action::Soft { .. }))
            && let Some(Action::TellStop(_)) = all.iter().find(|a| matches!(a, Action::TellStop(_)))
        {
            assert!(announce < soft, "the line is written before the first signal");
        }
        if let Some(finish) = position(&all, &Action::Finish) {
            assert_eq!(finish, all.len() - 1, "nothing comes after the record");
            assert!(machine.is_over());
        }
        if count(|a| matches!(a, Action::Hard)) > 0 {
            let forwarded = history.iter().any(|e| matches!(e, Event::Forwarded(_)));
            assert!(
                count(|a| matches!(a, Action::Soft { .. })) >= 1 || forwarded,
                "KILL only after the grace"
            );
        }
        assert!(count(|a| matches!(a, Action::Hard)) <= 1);
        if count(|a| matches!(a, Action::Abort)) > 0 {
            assert_eq!(
                count(|a| matches!(a, Action::Dump)),
                1,
                "tracebacks only where a diagnosis was asked for"
            );
        }
    }

    #[test]
    fn every_pair_and_triple_of_events_keeps_the_order_of_the_end() {
        for (leaks, dump) in [(Leaks::Kill, true), (Leaks::Fail, false), (Leaks::Allow, false)] {
            let policy = Policy { leaks, dump, ..POLICY };
            for a in events() {
                for b in events() {
                    check(policy, &[a.clone(), b.clone()]);
                    for c in events() {
                        check(policy, &[a.clone(), b.clone(), c]);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_history_keeps_the_order_of_the_end(
            picks in proptest::collection::vec(proptest::sample::select(events()), 0..20),
            dump: bool,
        ) {
            check(Policy { dump, ..POLICY }, &picks);
        }
    }

    #[test]
    fn a_request_for_now_kills_at_once_and_leaves_supervisors_inside_a_moment() {
        let mut m = Machine::new(POLICY);
        m.on(Event::Ask(ask(Reason::Kill)));
        let hurry = Ask { grace: Duration::ZERO, ..ask(Reason::Kill) };
        assert_eq!(
            m.on(Event::Ask(hurry)),
            [
                Action::Soft { signal: libc::SIGKILL, grace: MOMENT },
                Action::Arm(Timer::Grace, Duration::ZERO)
            ]
        );
        assert_eq!(m.on(Event::Timer(Timer::Grace)), [Action::Hard, Action::Arm(Timer::Bound, BOUND)]);
    }

    #[test]
    fn tracebacks_are_asked_for_once_and_nothing_puts_kill_off_after_them() {
        let mut m = Machine::new(Policy { dump: true, ..POLICY });
        m.on(Event::Ask(ask(Reason::Stall)));
        assert_eq!(m.on(Event::Timer(Timer::Grace)), [Action::Abort, Action::Arm(Timer::Abort, ABORT)]);
        assert_eq!(m.on(Event::Ask(ask(Reason::Kill))), []);
        assert_eq!(m.on(Event::Timer(Timer::Abort)), [Action::Hard, Action::Arm(Timer::Bound, BOUND)]);
    }

    #[test]
    fn a_second_signal_does_not_wait_for_tracebacks() {
        let mut m = Machine::new(Policy { dump: true, ..POLICY });
        m.on(Event::Ask(ask(Reason::Limit)));
        m.on(Event::Ask(Ask { grace: Duration::ZERO, ..ask(Reason::Kill) }));
        assert_eq!(m.on(Event::Timer(Timer::Grace)), [Action::Hard, Action::Arm(Timer::Bound, BOUND)]);
    }

    #[test]
    fn the_leaders_own_stop_leaves_the_rest_to_what_outlives_an_end() {
        let mut m = Machine::new(POLICY).for_the_leader_alone();
        m.on(Event::Ask(ask(Reason::Limit)));
        assert!(m.is_narrow());
        let linger = Action::Arm(Timer::Linger, LINGER);
        assert_eq!(m.on(Event::LeaderDied).last(), Some(&linger));
        assert!(!m.is_narrow());
        assert_eq!(m.on(Event::Timer(Timer::Linger))[0], Action::NoteLeaks);

        let mut m = Machine::new(POLICY).for_the_leader_alone();
        m.on(Event::Ask(ask(Reason::Limit)));
        m.on(Event::Ask(Ask { grace: Duration::ZERO, ..ask(Reason::Kill) }));
        assert!(!m.is_narrow(), "now means all of it");
    }

    #[test]
    fn who_never_wants_kill_does_not_wait_for_ever_for_what_was_left_behind() {
        let mut m = Machine::new(Policy { grace: Duration::MAX, ..POLICY });
        m.on(Event::LeaderDied);
        let actions = m.on(Event::Timer(Timer::Linger));
        assert_eq!(actions.last(), Some(&Action::Arm(Timer::Grace, LEAK_GRACE)));
    }

    #[test]
    fn an_ordinary_end_leaves_no_trace_of_a_stop() {
        let mut m = Machine::new(POLICY);
        assert_eq!(
            m.on(Event::LeaderDied),
            [Action::TellDeath, Action::Unpublish, Action::Reap, Action::Arm(Timer::Linger, LINGER)]
        );
        assert_eq!(m.on(Event::Empty), [Action::Finish]);
        assert!(m.stop().is_none());
    }

    #[test]
    fn what_ignores_term_is_killed_after_the_grace_though_the_leader_has_gone() {
        let mut m = Machine::new(POLICY);
        m.on(Event::Ask(ask(Reason::Kill)));
        m.on(Event::LeaderDied);
        assert_eq!(m.on(Event::Timer(Timer::Grace)), [Action::Hard, Action::Arm(Timer::Bound, BOUND)]);
        assert_eq!(m.on(Event::Empty), [Action::Finish]);
    }

    #[test]
    fn what_ignores_the_signal_of_a_stop_gets_term_once_the_leader_is_gone_and_not_before() {
        let int = Ask { signal: libc::SIGINT, ..ask(Reason::Kill) };
        let insist = Action::Insist { signal: libc::SIGINT };
        let mut m = Machine::new(POLICY);
        assert!(!m.on(Event::Ask(int.clone())).contains(&insist));
        assert!(m.on(Event::LeaderDied).ends_with(std::slice::from_ref(&insist)));
        // A leader that died of the Ctrl-C that asks for the stop.
        let mut m = Machine::new(POLICY);
        m.on(Event::LeaderDied);
        assert!(m.on(Event::Ask(int)).contains(&insist));
        let mut m = Machine::new(POLICY);
        m.on(Event::Ask(ask(Reason::Kill)));
        let actions = m.on(Event::LeaderDied);
        assert!(!actions.iter().any(|a| matches!(a, Action::Insist { .. })), "one TERM is enough");
    }

    #[test]
    fn survivors_end_the_stop_within_its_bound() {
        let mut m = Machine::new(POLICY);
        m.on(Event::Ask(ask(Reason::Kill)));
        m.on(Event::Timer(Timer::Grace));
        assert_eq!(
            m.on(Event::Timer(Timer::Bound)),
            [Action::NoteSurvivors, Action::Unpublish, Action::Finish]
        );
    }

    #[test]
    fn t54_a_kill_that_comes_after_the_leaders_end_does_not_relabel_it() {
        let mut m = Machine::new(POLICY);
        m.on(Event::LeaderDied);
        let actions = m.on(Event::Ask(ask(Reason::Kill)));
        assert!(actions.iter().any(|a| matches!(a, Action::Announce(_))), "whoever asked gets an answer");
        assert!(m.stop().is_none());
        assert_eq!(verdict(&POLICY, m.stop(), LeaderEnd::Exit(0), true), (Outcome::Passed, Reason::Exit));
    }

    #[test]
    fn allowed_leaks_are_noted_and_left() {
        let mut m = Machine::new(Policy { leaks: Leaks::Allow, ..POLICY });
        m.on(Event::LeaderDied);
        assert_eq!(m.on(Event::Timer(Timer::Linger)), [Action::NoteLeaks, Action::Finish]);
    }

    #[test]
    fn the_verdict_comes_from_the_status_and_the_cause() {
        use LeaderEnd::{Exit, Signal};
        let fail = Policy { leaks: Leaks::Fail, ..POLICY };
        let empty = Policy { allow_empty: true, ..POLICY };
        let v = |p: &Policy, s: Option<Reason>, e, l| verdict(p, s.map(ask).as_ref(), e, l);
        assert_eq!(v(&POLICY, None, Exit(0), false), (Outcome::Passed, Reason::Exit));
        assert_eq!(v(&POLICY, None, Exit(1), false), (Outcome::Failed, Reason::Exit));
        assert_eq!(v(&POLICY, None, Signal(9), false), (Outcome::Failed, Reason::Exit));
        assert_eq!(v(&POLICY, None, Exit(5), false), (Outcome::Failed, Reason::Exit));
        assert_eq!(v(&empty, None, Exit(5), false), (Outcome::Passed, Reason::Exit));
        assert_eq!(v(&POLICY, None, Exit(0), true), (Outcome::Passed, Reason::Exit));
        assert_eq!(v(&fail, None, Exit(0), true), (Outcome::Failed, Reason::Leaks));
        assert_eq!(v(&fail, None, Exit(1), true), (Outcome::Failed, Reason::Exit));
        assert_eq!(v(&POLICY, Some(Reason::Kill), Exit(0), false), (Outcome::Killed, Reason::Kill));
        assert_eq!(v(&POLICY, Some(Reason::Outer), Signal(15), false), (Outcome::Killed, Reason::Outer));
        assert_eq!(v(&POLICY, Some(Reason::Limit), Exit(0), false), (Outcome::Timeout, Reason::Limit));
        assert_eq!(v(&POLICY, Some(Reason::Stall), Signal(15), false), (Outcome::Timeout, Reason::Stall));
    }

    #[test]
    fn the_half_that_takes_over_goes_on_where_the_other_was() {
        let (m, actions) = Machine::resume(POLICY, false, None, None);
        assert!(actions.is_empty() && !m.leader_is_dead());
        let (_, actions) = Machine::resume(POLICY, true, None, None);
        assert_eq!(actions, [Action::Unpublish, Action::Arm(Timer::Linger, LINGER)]);
        let a = ask(Reason::Kill);
        let (_, actions) = Machine::resume(POLICY, false, Some(a.clone()), None);
        assert!(actions.iter().any(|x| matches!(x, Action::Soft { .. })));
    }

    #[test]
    fn a_takeover_during_the_grace_neither_signals_again_nor_begins_the_grace_anew() {
        let a = ask(Reason::Kill);
        let left = Duration::from_millis(1200);
        let (m, actions) = Machine::resume(POLICY, false, Some(a.clone()), Some(left));
        assert_eq!(actions, [Action::Announce(a.clone()), Action::Arm(Timer::Grace, left)]);
        assert_eq!(m.stop(), Some(&a));
        // The stop was told before the leader's end: it decides, whichever of the two is asked about.
        let (mut m, actions) = Machine::resume(POLICY, true, Some(a.clone()), Some(left));
        assert_eq!(
            actions,
            [Action::Unpublish, Action::Announce(a.clone()), Action::Arm(Timer::Grace, left)]
        );
        assert_eq!(m.on(Event::Empty), [Action::Finish]);
        assert_eq!(m.stop(), Some(&a));
    }

    #[test]
    fn a_takeover_while_leaks_are_stopped_does_not_signal_them_a_second_time() {
        let left = Duration::from_millis(700);
        let (mut m, actions) = Machine::resume(POLICY, true, None, Some(left));
        assert_eq!(actions, [Action::Unpublish, Action::Arm(Timer::Grace, left)]);
        assert_eq!(m.on(Event::Timer(Timer::Grace)), [Action::Hard, Action::Arm(Timer::Bound, BOUND)]);
        assert_eq!(m.on(Event::Empty), [Action::Finish]);
        assert!(m.stop().is_none(), "leaks do not make a stop of it");
    }

    #[test]
    fn a_request_for_kill_does_not_wait_for_the_grace_of_the_one_before() {
        let mut m = Machine::new(POLICY);
        m.on(Event::Ask(ask(Reason::Kill)));
        let now = Ask { signal: libc::SIGKILL, grace: Duration::from_secs(30), ..ask(Reason::Kill) };
        assert_eq!(m.on(Event::Ask(now)).last(), Some(&Action::Arm(Timer::Grace, Duration::ZERO)));
    }

    /// Whatever had been told when a half died: the rest keeps the same order, and signals at most once in all.
    #[test]
    fn every_takeover_followed_by_any_two_events_keeps_the_order_of_the_end() {
        let asks = [None, Some(ask(Reason::Kill)), Some(ask(Reason::Limit))];
        for dead in [false, true] {
            for stop in &asks {
                for signalled in [None, Some(Duration::ZERO), Some(BOUND)] {
                    if signalled.is_some() && !dead && stop.is_none() {
                        continue;
                    }
                    for a in events() {
                        for b in events() {
                            let (mut m, mut all) = Machine::resume(POLICY, dead, stop.clone(), signalled);
                            for event in [a.clone(), b.clone()] {
                                all.extend(m.on(event));
                            }
                            let softs = all.iter().filter(|x| softly(x)).count();
                            assert!(softs + usize::from(signalled.is_some()) <= 1, "{all:?}");
                            assert!(all.iter().filter(|x| matches!(x, Action::Finish)).count() <= 1);
                            assert!(!dead || all.first() == Some(&Action::Unpublish), "{all:?}");
                            assert_eq!(
                                m.stop().is_some(),
                                stop.is_some()
                                    || (!dead && all.iter().any(|x| matches!(x, Action::TellStop(_))))
                            );
                        }
                    }
                }
            }
        }
    }
}
