//! The runs of a log, of which there may be any number.

use crate::report::{Failing, Gathered, Session};
use crate::scan::{NAMES, SLOWEST, hash, tell};
use std::collections::HashSet;

/// So many runs at either end of a log are kept apart.
const KEPT: usize = 100;

/// Runs in the log's order. Those in the middle of very many become one for each runner: the sums and the verdict stay,
/// and the memory does not grow with the log.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Vec<Session>);

impl Sessions {
    /// One more.
    pub(crate) fn push(&mut self, session: Session) {
        self.0.push(session);
        if self.0.len() >= 4 * KEPT {
            self.gather();
        }
    }

    /// More of them.
    pub(crate) fn extend(&mut self, sessions: impl IntoIterator<Item = Session>) {
        sessions.into_iter().for_each(|session| self.push(session));
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<Session> {
        self.0
    }

    fn gather(&mut self) {
        let last = self.0.split_off(self.0.len() - KEPT);
        let middle = self.0.split_off(KEPT);
        let mut sums: Vec<(Session, HashSet<u64>)> = Vec::new();
        for session in middle {
            match sums.iter_mut().find(|(sum, _)| sum.runner == session.runner) {
                Some((sum, seen)) => sum.absorb(session, seen),
                None => {
                    let seen = session.failing.iter().flatten().map(key).collect();
                    sums.push((session, seen));
                }
            }
        }
        self.0.extend(sums.into_iter().map(|(sum, _)| sum));
        self.0.extend(last);
    }
}

/// A number that stands for a failing test and the way in which it failed.
fn key(failing: &Failing) -> u64 {
    hash(failing.id.as_bytes()).rotate_left(failing.outcome as u32)
}

impl Session {
    /// Takes another run of the same runner in.
    fn absorb(&mut self, other: Session, seen: &mut HashSet<u64>) {
        let (runs, real) = (self.runs() + other.runs(), self.is_real() || other.is_real());
        self.gathered = Some(Gathered { runs, verdict: self.verdict().and(other.verdict()), real });
        self.counts = self.counts.plus(&other.counts);
        self.duration = self.duration.zip(other.duration).map(|(a, b)| a + b);
        self.failing = self.failing.take().zip(other.failing).map(|(mut all, more)| {
            let room = NAMES.saturating_sub(all.len());
            all.extend(more.into_iter().filter(|failing| seen.insert(key(failing))).take(room));
            all
        });
        for (all, more) in [
            (&mut self.unfinished, other.unfinished),
            (&mut self.crashed_workers, other.crashed_workers),
            (&mut self.faults, other.faults),
        ] {
            more.into_iter().for_each(|text| tell(all, text));
        }
        self.parallel |= other.parallel;
        self.last_test = other.last_test.or(self.last_test.take());
        self.slowest.extend(other.slowest);
        self.slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.slowest.truncate(SLOWEST);
        self.complete &= other.complete;
    }
}
