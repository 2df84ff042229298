//! What a job's files, locks and processes mean: the table of CONTRACT.md §5, as a pure function.

use super::records::{Outcome, TerminalMarker};
use crate::term::Code;

/// Where the header says that the job runs, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This boot and these namespaces: PIDs mean something.
    Here,
    /// This boot, but another PID or time namespace: locks and log decide.
    OtherNamespace,
    /// This host before its last boot.
    EarlierBoot,
    /// Another machine, over a shared file system.
    OtherMachine,
}

/// The process that a PID file without a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// There is no such PID file.
    None,
    /// It lives, and it is old enough to be the one that was meant.
    Alive,
    /// Gone, a zombie, a thread, or younger than the file: somebody else.
    Gone,
}

/// All that a judgement rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// There is a PID file.
    pub pid_file: bool,
    /// Its lock is held.
    pub pid_held: bool,
    /// There is a log.
    pub log: bool,
    /// Its lock is held.
    pub log_held: bool,
    /// The log has a header (or the footer's copy of one), and this is where it points.
    pub header: Option<Place>,
    /// The leader lives under the header's whole identity; not asked where a footer tells.
    pub leader_lives: bool,
    /// The footer's outcome.
    pub footer: Option<Outcome>,
    /// The process of a foreign PID file.
    pub foreign: Foreign,
    /// A headerless log's last marker.
    pub marker: Option<TerminalMarker>,
    /// A headerless log's summary.
    pub summary: Option<TerminalMarker>,
}

impl Facts {
    /// Whether what runs is somebody else's PID file's process: a job whose record is written only syncs.
    pub fn foreign_runs(&self) -> bool {
        self.foreign == Foreign::Alive && !self.pid_held && !(self.log_held && self.footer.is_none())
    }
}

/// RUNNING or FINISHED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs.
    Running,
    /// It is over.
    Finished,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictSource {
    /// The exit status, as the supervisor recorded it.
    ExitStatus,
    /// A terminal marker in a headerless log.
    Marker,
    /// The runner's own summary in a headerless log.
    Summary,
    /// Nothing.
    None,
}

impl VerdictSource {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            VerdictSource::ExitStatus => "exit_status",
            VerdictSource::Marker => "marker",
            VerdictSource::Summary => "summary",
            VerdictSource::None => "none",
        }
    }
}

/// A job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether it runs.
    pub status: Status,
    /// It runs without supervisors.
    pub unsupervised: bool,
    /// How it ended, where that is known (crashed: it is known that nobody wrote it down).
    pub outcome: Option<Outcome>,
    /// PASS, FAIL, or nothing that says so.
    pub marker: Option<TerminalMarker>,
    /// What the verdict rests on.
    pub source: VerdictSource,
    /// Ended with the machine: it has booted since.
    pub machine_restarted: bool,
    /// Recorded by another machine, which alone can tell.
    pub elsewhere: bool,
}

impl State {
    /// The code of CONTRACT.md §5.
    pub fn code(&self) -> Code {
        match (self.status, self.outcome) {
            (Status::Running, _) => Code::Running,
            (Status::Finished, Some(Outcome::Passed)) => Code::Ok,
            (Status::Finished, None | Some(Outcome::Crashed)) => Code::NoVerdict,
            (Status::Finished, Some(_)) => Code::Failed,
        }
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }
}

/// The table, row by row; `None` is "not tracked".
pub fn judge(facts: &Facts) -> Option<State> {
    let running = State {
        status: Status::Running,
        unsupervised: false,
        outcome: None,
        marker: None,
        source: VerdictSource::None,
        machine_restarted: false,
        elsewhere: false,
    };
    let finished = State { status: Status::Finished, ..running };
    // A foreign run whose PID file was written beside an older job's log is that name's run now.
    if facts.foreign_runs() {
        return Some(running);
    }
    if let Some(outcome) = facts.footer
        && !facts.pid_held
    {
        let marker = if outcome == Outcome::Passed { TerminalMarker::Pass } else { TerminalMarker::Fail };
        return Some(State {
            outcome: Some(outcome),
            marker: Some(marker),
            source: VerdictSource::ExitStatus,
            ..finished
        });
    }
    if facts.pid_held || facts.log_held {
        return Some(running);
    }
    if let Some(place) = facts.header {
        return Some(match place {
            Place::Here if facts.leader_lives => State { unsupervised: true, ..running },
            Place::Here | Place::OtherNamespace => State { outcome: Some(Outcome::Crashed), ..finished },
            Place::EarlierBoot => {
                State { outcome: Some(Outcome::Crashed), machine_restarted: true, ..finished }
            }
            Place::OtherMachine => State { elsewhere: true, ..finished },
        });
    }
    if facts.log {
        let verdict = |marker, source| {
            let outcome = if marker == TerminalMarker::Pass { Outcome::Passed } else { Outcome::Failed };
            State { outcome: Some(outcome), marker: Some(marker), source, ..finished }
        };
        if let Some(marker) = facts.marker {
            return Some(verdict(marker, VerdictSource::Marker));
        }
        if let Some(marker) = facts.summary {
            return Some(verdict(marker, VerdictSource::Summary));
        }
    }
    (facts.log || facts.pid_file).then_some(State { outcome: Some(Outcome::Crashed), ..finished })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Facts = Facts {
        pid_file: false,
        pid_held: false,
        log: false,
        log_held: false,
        header: None,
        leader_lives: false,
        footer: None,
        foreign: Foreign::None,
        marker: None,
        summary: None,
    };

    fn here() -> Facts {
        Facts { log: true, header: Some(Place::Here), ..NOTHING }
    }

    /// status, unsupervised, outcome, marker, code
    fn row(facts: &Facts) -> (Status, bool, Option<Outcome>, Option<TerminalMarker>, Code) {
        let s = judge(facts).expect("tracked");
        (s.status, s.unsupervised, s.outcome, s.marker, s.code())
    }

    #[test]
    fn neither_file_is_not_tracked() {
        assert_eq!(judge(&NOTHING), None);
    }

    #[test]
    fn a_footer_without_a_locked_pid_file_is_the_end() {
        use Outcome::{Failed, Killed, Passed, Timeout};
        for (outcome, marker, code) in [
            (Passed, TerminalMarker::Pass, Code::Ok),
            (Failed, TerminalMarker::Fail, Code::Failed),
            (Killed, TerminalMarker::Fail, Code::Failed),
            (Timeout, TerminalMarker::Fail, Code::Failed),
        ] {
            for log_held in [false, true] {
                let facts = Facts { footer: Some(outcome), log_held, ..here() };
                assert_eq!(row(&facts), (Status::Finished, false, Some(outcome), Some(marker), code));
            }
        }
    }

    #[test]
    fn a_footer_that_the_job_printed_itself_ends_nothing() {
        let facts =
            Facts { footer: Some(Outcome::Passed), pid_file: true, pid_held: true, log_held: true, ..here() };
        assert_eq!(row(&facts), (Status::Running, false, None, None, Code::Running));
    }

    #[test]
    fn a_held_lock_is_running_wherever_the_header_points() {
        for place in [Place::Here, Place::OtherNamespace, Place::EarlierBoot, Place::OtherMachine] {
            for (pid_held, log_held) in [(true, true), (true, false), (false, true)] {
                let facts = Facts { header: Some(place), pid_held, log_held, ..here() };
                assert_eq!(row(&facts).0, Status::Running);
            }
        }
        assert_eq!(row(&Facts { pid_file: true, pid_held: true, ..NOTHING }).0, Status::Running);
    }

    #[test]
    fn a_leader_without_supervisors_is_unsupervised_and_only_here() {
        let lives = Facts { leader_lives: true, ..here() };
        assert_eq!(row(&lives), (Status::Running, true, None, None, Code::Running));
        let there = Facts { header: Some(Place::OtherNamespace), ..lives };
        assert_eq!(row(&there).0, Status::Finished);
    }

    #[test]
    fn a_header_without_a_footer_and_nobody_alive_has_no_verdict() {
        assert_eq!(row(&here()), (Status::Finished, false, Some(Outcome::Crashed), None, Code::NoVerdict));
        let restarted = judge(&Facts { header: Some(Place::EarlierBoot), ..here() }).unwrap();
        assert!(restarted.machine_restarted && restarted.code() == Code::NoVerdict);
        let elsewhere = judge(&Facts { header: Some(Place::OtherMachine), ..here() }).unwrap();
        assert!(elsewhere.elsewhere && elsewhere.outcome.is_none() && elsewhere.code() == Code::NoVerdict);
    }

    #[test]
    fn foreign_runs_are_judged_by_process_then_marker_then_summary() {
        let log = Facts { log: true, ..NOTHING };
        let alive = Facts {
            pid_file: true,
            foreign: Foreign::Alive,
            marker: Some(TerminalMarker::Pass),
            ..log.clone()
        };
        assert_eq!(row(&alive).0, Status::Running);
        let gone = Facts { foreign: Foreign::Gone, ..alive };
        assert_eq!(row(&gone).4, Code::Ok);
        let summary = Facts { summary: Some(TerminalMarker::Fail), ..log.clone() };
        assert_eq!(judge(&summary).unwrap().source, VerdictSource::Summary);
        assert_eq!(row(&summary).4, Code::Failed);
        assert_eq!(row(&log), (Status::Finished, false, Some(Outcome::Crashed), None, Code::NoVerdict));
    }

    #[test]
    fn a_corrupt_pid_file_alone_has_no_verdict() {
        assert_eq!(row(&Facts { pid_file: true, ..NOTHING }).4, Code::NoVerdict);
    }

    #[test]
    fn a_foreign_run_beside_a_finished_jobs_log_is_running() {
        for log_held in [false, true] {
            let footer = Some(Outcome::Passed);
            let facts = Facts { footer, pid_file: true, foreign: Foreign::Alive, log_held, ..here() };
            assert_eq!(row(&facts).0, Status::Running);
            assert!(facts.foreign_runs());
        }
        let ours = Facts { log_held: true, pid_file: true, foreign: Foreign::Alive, ..here() };
        assert!(!ours.foreign_runs(), "a job whose PID file was replaced is still the one that runs");
    }
}
