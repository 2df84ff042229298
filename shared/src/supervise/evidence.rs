//! Which processes belonged to a job whose supervisors are gone (CONTRACT.md §7).

use super::{COMM, environment};
use crate::contract::Leftover;
use crate::process::{Ident, Snapshot, Stat};
use std::collections::{HashMap, HashSet};

/// Why a process is held to belong to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// It is the leader itself.
    Leader,
    /// Its session or group is the leader's: the kernel does not reuse that number while a member lives.
    SessionOrGroup,
    /// It carries the job's id in its environment and is no older than the job.
    Cookie,
    /// Its parent belongs to the job.
    Descendant,
}

/// The processes of a job: `leader` and `job` from its header, `left` what its footer says was left on purpose.
/// `cookie` tells the `TB_JOB` of a process, as far as it can be read.
pub fn belongs(
    all: &Snapshot,
    leader: Ident,
    job: &str,
    left: &[Leftover],
    cookie: impl Fn(i32) -> Option<String>,
) -> Vec<(Ident, Evidence)> {
    let spared: HashSet<(i32, u64)> = left.iter().map(|l| (l.pid, l.start)).collect();
    let never: HashSet<i32> = crate::process::self_and_ancestors().into_iter().collect();
    let candidate = |row: &Stat| {
        row.pid > 1
            && row.comm != COMM
            && !never.contains(&row.pid)
            && !spared.contains(&(row.pid, row.start))
    };
    // The number is the leader's as long as nobody else bears it.
    let number_is_free = all.get(leader.pid).is_none_or(|row| row.start == leader.start);
    let mut found: HashMap<i32, Evidence> = HashMap::new();
    for row in all.rows().filter(|row| candidate(row)) {
        let is_leader = row.pid == leader.pid && row.start == leader.start;
        let shares =
            number_is_free && (row.sid == leader.pid || row.pgid == leader.pid) && row.start >= leader.start;
        let evidence = if is_leader {
            Evidence::Leader
        } else if shares {
            Evidence::SessionOrGroup
        } else if row.start >= leader.start && cookie(row.pid).as_deref() == Some(job) {
            Evidence::Cookie
        } else {
            continue;
        };
        found.insert(row.pid, evidence);
    }
    for pid in found.keys().copied().collect::<Vec<i32>>() {
        for row in all.descend(pid, |row| candidate(row)) {
            if candidate(row) {
                found.entry(row.pid).or_insert(Evidence::Descendant);
            }
        }
    }
    let mut list: Vec<(Ident, Evidence)> = found
        .into_iter()
        .filter_map(|(pid, evidence)| all.get(pid).map(|row| (Ident { pid, start: row.start }, evidence)))
        .collect();
    list.sort_unstable();
    list
}

/// A process's job by its environment: what [`belongs`] asks for in the real world.
pub(super) fn cookie(pid: i32) -> Option<String> {
    environment(pid, "TB_JOB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, ppid: i32, sid: i32, start: u64) -> Stat {
        Stat {
            pid,
            comm: "x".into(),
            state: 'S',
            ppid,
            pgid: sid,
            sid,
            cpu_ticks: 0,
            threads: 1,
            start,
            rss_pages: 0,
        }
    }

    fn found(rows: &[Stat], leader: Ident, cookies: &[i32], left: &[Leftover]) -> Vec<(i32, Evidence)> {
        let all = Snapshot::of(rows.to_vec());
        belongs(&all, leader, "j", left, |pid| cookies.contains(&pid).then(|| "j".to_owned()))
            .into_iter()
            .map(|(i, e)| (i.pid, e))
            .collect()
    }

    const BIG: i32 = 1 << 29;

    #[test]
    fn session_cookie_and_descent_are_evidence_and_nothing_else_is() {
        let leader = Ident { pid: BIG, start: 100 };
        let rows = [
            row(BIG + 1, 1, BIG, 101),     // in the dead leader's session
            row(BIG + 2, 1, BIG + 2, 105), // env-cleared escapee: no evidence
            row(BIG + 3, 1, BIG + 3, 106), // carries the cookie
            row(BIG + 4, BIG + 3, BIG + 4, 107),
            row(BIG + 5, 1, BIG + 5, 99), // carries the cookie but is older than the job
        ];
        assert_eq!(
            found(&rows, leader, &[BIG + 3, BIG + 5], &[]),
            [
                (BIG + 1, Evidence::SessionOrGroup),
                (BIG + 3, Evidence::Cookie),
                (BIG + 4, Evidence::Descendant)
            ]
        );
    }

    #[test]
    fn a_reused_number_proves_nothing() {
        let leader = Ident { pid: BIG, start: 100 };
        let rows = [row(BIG, 1, BIG, 500), row(BIG + 1, BIG, BIG, 501)];
        assert_eq!(found(&rows, leader, &[], &[]), []);
    }

    #[test]
    fn a_leader_that_lives_lends_its_number_to_its_session() {
        let leader = Ident { pid: BIG, start: 100 };
        let rows = [row(BIG, 1, BIG, 100), row(BIG + 1, 1, BIG, 150), row(BIG + 2, BIG, BIG + 2, 151)];
        let kinds: Vec<Evidence> = found(&rows, leader, &[], &[]).into_iter().map(|(_, e)| e).collect();
        assert_eq!(kinds, [Evidence::Leader, Evidence::SessionOrGroup, Evidence::Descendant]);
    }

    #[test]
    fn supervisors_init_and_who_is_asking_are_never_evidence() {
        let leader = Ident { pid: BIG, start: 100 };
        let supervisor = Stat { comm: COMM.into(), ..row(BIG + 1, 1, BIG, 101) };
        // A job's process below a supervisor is that one's, not ours.
        let inner = row(BIG + 2, BIG + 1, BIG + 2, 102);
        let me = row(std::process::id().cast_signed(), 1, BIG, 103);
        let init = row(1, 0, BIG, 104);
        assert_eq!(found(&[supervisor, inner, me, init], leader, &[], &[]), []);
    }

    #[test]
    fn what_was_left_on_purpose_is_left() {
        let leader = Ident { pid: BIG, start: 100 };
        let rows = [row(BIG + 1, 1, BIG, 101), row(BIG + 2, 1, BIG, 102)];
        let left = [Leftover { pid: BIG + 1, start: 101, command: String::new(), why: "allowed".into() }];
        assert_eq!(found(&rows, leader, &[], &left), [(BIG + 2, Evidence::SessionOrGroup)]);
    }
}
