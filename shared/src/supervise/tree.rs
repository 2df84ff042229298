//! The tree below a subreaper: looked at, signalled once, killed until nothing is left.
//!
//! Every living descendant of a subreaper has a chain of ancestors that ends in a child of the subreaper, so
//! that waitid's ECHILD proves the tree empty. A scan that finds nothing proves nothing.

use crate::contract::Leftover;
use crate::process::{self, Handle, Ident, Snapshot, Stat};
use crate::supervise::{COMM, GUARD_COMM, Request};
use crate::sys::{self, Children, Which};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::Duration;

/// Says of a command line that a process is spared: a build daemon that others use too.
pub type Spare = Box<dyn Fn(&str) -> bool>;

/// How often the tree is looked at again for processes that were born while it was being signalled.
const PASSES: usize = 10;
/// How often direct children are killed in a row before the whole tree is looked at again: what beats a chain
/// of processes that fork, leave their session and exit.
const ROUNDS: usize = 200;
/// The most processes that a record lists.
const LISTED: usize = 200;
/// Why a process is listed that `--keep` spares.
pub(super) const SPARED: &str = "spared by --keep";

/// The tree of a supervisor.
pub struct Tree {
    me: i32,
    spare: Option<Spare>,
    /// Children that this process had before it began: somebody else's, whatever they do.
    innocent: HashSet<Ident>,
    signalled: HashSet<Ident>,
    /// When the first signal went out.
    begun: Option<Moment>,
    /// /proc is not there, or another PID namespace's: its numbers mean nothing here.
    blind: bool,
    /// Where that is so, all that can be reached: an unreaped child of ours, and the group that it joined.
    reach: Option<(i32, i32)>,
}

/// What has become of the children after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// None is left.
    Nothing,
    /// Only such as are spared.
    Spared,
    /// Some.
    Some,
}

/// A moment, for telling who was born before it. Start times are coarse: a process that a TERM handler starts
/// has the tick of the signal itself. Numbers are handed out in order, and tell the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    tick: u64,
    /// The number that was handed out last; `None` where the kernel does not tell.
    pid: Option<i32>,
}

impl Moment {
    pub(super) fn now() -> Moment {
        let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let ticks = process::boottime().as_millis() * u128::from(process::ticks_per_second()) / 1000;
        Moment {
            tick: u64::try_from(ticks).unwrap_or(u64::MAX),
            pid: loadavg.split_ascii_whitespace().nth(4).and_then(|pid| pid.parse().ok()),
        }
    }

    /// A number that wrapped around within the tick looks older than it is: that errs on the side of a signal.
    fn is_after_birth_of(&self, row: &Stat) -> bool {
        row.start < self.tick || (row.start == self.tick && self.pid.is_none_or(|last| row.pid <= last))
    }
}

fn ident(row: &Stat) -> Ident {
    Ident { pid: row.pid, start: row.start }
}

/// Whether a process is another supervisor or guard: it is asked and ends its own tree. By name alone: a lie
/// costs only the liar's own grace.
fn is_supervisor(row: &Stat) -> bool {
    row.comm == COMM || row.comm == GUARD_COMM
}

impl Tree {
    /// The tree below this process, which must be a child subreaper.
    pub fn new(spare: Option<Spare>) -> Tree {
        let me = std::process::id().cast_signed();
        let shown = std::fs::read_link("/proc/self").ok();
        Tree {
            me,
            spare,
            innocent: HashSet::new(),
            signalled: HashSet::new(),
            begun: None,
            blind: shown.is_none_or(|me_there| me_there.as_os_str() != me.to_string().as_str()),
            reach: None,
        }
    }

    /// Names the child that is signalled where /proc cannot tell who is below us, and its group.
    pub fn reaching(mut self, leader: i32, group: i32) -> Tree {
        self.reach = Some((leader, group));
        self
    }

    /// The leader is waited for: its number is no longer ours.
    pub fn leader_reaped(&mut self) {
        self.reach = None;
    }

    /// All processes, if /proc shows them by the numbers that they have here.
    fn picture(&self) -> std::io::Result<Snapshot> {
        if self.blind { Err(std::io::ErrorKind::NotFound.into()) } else { Snapshot::take() }
    }

    /// The signal of a stop where only the leader and its group can be reached, as timeout(1) does it.
    fn grope(&self, signal: i32) {
        let Some((leader, group)) = self.reach else { return };
        let _ = sys::signal_child(leader, signal);
        // The front leads that group: KILL would end it before it has told how all ended.
        if signal != libc::SIGKILL && signal != libc::SIGSTOP {
            let _ = sys::signal_group(group, signal);
            let _ = sys::signal_child(leader, libc::SIGCONT);
            let _ = sys::signal_group(group, libc::SIGCONT);
        }
    }

    /// The same, without the children that this process has now: a shell that executed us may have had some.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub fn without_present_children(spare: Option<Spare>) -> std::io::Result<Tree> {
        let mut tree = Tree::new(spare);
        if !matches!(sys::look(Which::Any, false), Ok(Children::None)) {
            let all = tree.picture()?;
            tree.innocent = all.children(tree.me).iter().filter_map(|pid| all.get(*pid)).map(ident).collect();
        }
        Ok(tree)
    }

    /// Takes the children that this process has now, but for one, for somebody else's as well: descendants of the
    /// first innocent that lost their parents.
    pub fn note_adopted(&mut self, but: i32) {
        let Ok(all) = self.picture() else { return };
        let children = all.children(self.me).iter().filter(|&&pid| pid != but);
        let found: Vec<Ident> = children.filter_map(|pid| all.get(*pid)).map(ident).collect();
        // Asked last: as long as that one lives, what is below it has not come to us.
        if matches!(sys::look(Which::Pid(but), false), Ok(Children::Alive)) {
            self.innocent.extend(found);
        }
    }

    /// Takes the jobs inside the tree for somebody else's too, with all that is below them.
    pub fn leave_nested_jobs(&mut self) {
        let Ok(all) = self.picture() else { return };
        let rows = all.descend(self.me, |row| row.comm != COMM);
        self.innocent.extend(rows.into_iter().filter(|row| row.comm == COMM && row.is_alive()).map(ident));
    }

    /// Whether there are children that are somebody else's.
    pub fn has_innocent(&self) -> bool {
        !self.innocent.is_empty()
    }

    /// The living members, as of now.
    pub fn living(&self) -> Vec<Stat> {
        self.picture().map_or_else(|_| vec![], |all| self.members(&all).into_iter().cloned().collect())
    }

    /// Notes that a process has had its signal.
    pub fn note_signalled(&mut self, who: Ident) {
        self.signalled.insert(who);
    }

    /// Notes that all members of a group have had their signal: the terminal sends it to the whole group.
    pub fn note_group_signalled(&mut self, group: i32) {
        let members = self.living();
        self.signalled.extend(members.iter().filter(|row| row.pgid == group).map(ident));
    }

    /// A stop's signal to one process, without CONT, unless it has had it.
    pub fn soft_one(&mut self, who: Ident, signal: i32) {
        if self.signalled.insert(who) || signal == libc::SIGKILL {
            self.signal_one(who, signal);
        }
    }

    /// A signal to one process, whatever it has had.
    pub fn signal_one(&self, who: Ident, signal: i32) {
        if self.blind {
            if let Some((leader, _)) = self.reach.filter(|r| r.0 == who.pid) {
                let _ = sys::signal_child(leader, signal);
            }
            return;
        }
        if let Ok(Some(handle)) = Handle::open(who) {
            let _ = handle.signal(signal);
        }
    }

    /// Hands a signal on that asks for no stop: to the whole tree, or to one process.
    pub fn forward(&self, signal: i32, only: Option<Ident>) {
        if self.blind {
            return only.map_or_else(|| self.grope(signal), |who| self.signal_one(who, signal));
        }
        let Ok(all) = self.picture() else { return };
        for row in self.members(&all) {
            let wanted = only.is_none_or(|o| o == ident(row));
            if !wanted || self.below_supervisor(&all, row) {
                continue;
            }
            if let Ok(Some(handle)) = Handle::open(ident(row)) {
                let _ = handle.signal(signal);
                if only.is_none() && signal != libc::SIGCONT {
                    let _ = handle.signal(libc::SIGCONT);
                }
            }
        }
    }

    /// Goes on where another supervisor had begun to signal the tree: who has had its signal gets no other.
    pub(super) fn take_over(&mut self, begun: Option<Moment>, signalled: Vec<Ident>) {
        self.begun = begun;
        self.signalled.extend(signalled);
    }

    fn is_spared(&self, row: &Stat) -> bool {
        self.innocent.contains(&ident(row)) || self.matches_spare(row)
    }

    /// Whether anything at all may be spared: then ECHILD is not the only way to be empty.
    fn spares(&self) -> bool {
        self.spare.is_some() || !self.innocent.is_empty()
    }

    fn matches_spare(&self, row: &Stat) -> bool {
        self.spare.as_ref().is_some_and(|spare| spare(&process::command_line(row.pid)))
    }

    /// The living members, without what is spared and what is below that.
    fn members<'a>(&self, all: &'a Snapshot) -> Vec<&'a Stat> {
        let spared: HashSet<i32> = if self.spares() {
            all.descendants(self.me).into_iter().filter(|r| self.is_spared(r)).map(|r| r.pid).collect()
        } else {
            HashSet::new()
        };
        all.descend(self.me, |row| !spared.contains(&row.pid))
            .into_iter()
            .filter(|row| !spared.contains(&row.pid) && row.is_alive())
            .collect()
    }

    /// Takes a picture and says what is in it.
    pub fn left(&self) -> Left {
        match sys::look(Which::Any, false) {
            Ok(Children::None) => return Left::Nothing,
            Ok(_) if !self.spares() => return Left::Some,
            _ => {}
        }
        match self.picture() {
            Ok(all) if self.members(&all).is_empty() => Left::Spared,
            _ => Left::Some,
        }
    }

    /// How many living processes there are.
    pub fn count(&self) -> usize {
        self.picture().map_or(0, |all| self.members(&all).len())
    }

    /// What is alive now: members that outlived the leader, spared ones, and nested jobs apart.
    pub fn outliving(&self, why: &str) -> (Vec<Leftover>, Vec<Leftover>) {
        let Ok(all) = self.picture() else { return (vec![], vec![]) };
        let rows = all.descend(self.me, |row| !is_supervisor(row));
        let (nested, leaked): (Vec<&Stat>, Vec<&Stat>) = rows
            .into_iter()
            .filter(|r| r.is_alive() && !self.innocent.contains(&ident(r)))
            .partition(|r| is_supervisor(r));
        let leaked = leaked.into_iter().map(|row| {
            let why = if self.matches_spare(row) { SPARED } else { why };
            leftover(row, why.to_owned())
        });
        (list(leaked), self.nested_jobs(&all, &nested))
    }

    /// The jobs and guards inside this one, one entry each, under the name that their leader carries.
    pub fn nested(&self) -> Vec<Leftover> {
        let Ok(all) = self.picture() else { return vec![] };
        let rows = all.descend(self.me, |row| !is_supervisor(row));
        let nested: Vec<&Stat> = rows.into_iter().filter(|r| is_supervisor(r) && r.is_alive()).collect();
        self.nested_jobs(&all, &nested)
    }

    fn nested_jobs(&self, all: &Snapshot, tops: &[&Stat]) -> Vec<Leftover> {
        list(tops.iter().map(|top| {
            // Below the topmost supervisor: its leader is the first that is none.
            let below = all.descendants(top.pid);
            let leader = below.iter().find(|r| !is_supervisor(r));
            let name = leader.and_then(|l| environment(l.pid, "TB_NAME"));
            Leftover {
                pid: leader.map_or(top.pid, |l| l.pid),
                start: leader.map_or(top.start, |l| l.start),
                command: name.unwrap_or_else(|| {
                    leader.map_or_else(|| top.comm.clone(), |l| process::command_line(l.pid))
                }),
                why: "nested".to_owned(),
            }
        }))
    }

    /// One signal and CONT to each process of the tree. Supervisors inside are asked to end theirs within three
    /// quarters of the grace, and what is below them is left to them.
    ///
    /// What is born meanwhile is signalled too, if it was born before the first signal went out: a process that
    /// a TERM handler starts in order to clean up must be left to do so.
    ///
    /// `told_begun` and `told` hear of the beginning and of each process before it is signalled.
    pub(super) fn soft(
        &mut self,
        signal: i32,
        grace: Duration,
        told_begun: impl Fn(Moment),
        told: impl Fn(Ident),
    ) {
        if self.blind {
            return self.grope(signal);
        }
        if signal == libc::SIGKILL {
            // What has had another signal has not had this one.
            self.signalled.clear();
        }
        for _ in 0..PASSES {
            let Ok(all) = self.picture() else { return };
            let begun = *self.begun.get_or_insert_with(|| {
                let begun = Moment::now();
                told_begun(begun);
                begun
            });
            let mut targets: Vec<Stat> = self
                .members(&all)
                .into_iter()
                .filter(|row| !self.below_supervisor(&all, row))
                .filter(|row| begun.is_after_birth_of(row) && !self.signalled.contains(&ident(row)))
                .cloned()
                .collect();
            if targets.is_empty() {
                return;
            }
            // Supervisors have less time than the others: they are asked first.
            targets.sort_by_key(|row| !is_supervisor(row));
            for row in targets {
                self.signalled.insert(ident(&row));
                told(ident(&row));
                let Ok(Some(handle)) = Handle::open(ident(&row)) else { continue };
                // A process that may not be signalled is named at the end, if it is still there.
                if is_supervisor(&row) {
                    let _ = handle.signal(libc::SIGCONT);
                    // A guard reads ALRM as "time is up" and hands others on; what stops or tests is nothing to ask for.
                    let plain = row.comm == COMM || [0, libc::SIGKILL, libc::SIGSTOP].contains(&signal);
                    let asked = if plain { libc::SIGTERM } else { signal };
                    let grace = grace.checked_mul(3).map_or(grace, |g| g / 4);
                    let _ = handle.request(Request { signal: asked, grace }.value());
                } else {
                    let _ = handle.signal(signal);
                    if signal != libc::SIGKILL && signal != libc::SIGSTOP {
                        let _ = handle.signal(libc::SIGCONT);
                    }
                }
            }
        }
    }

    /// TERM to each process that ignores the signal that it has had.
    pub(super) fn insist(&self, signal: i32) {
        let Ok(all) = self.picture() else { return };
        for row in self.members(&all) {
            if is_supervisor(row) || !self.signalled.contains(&ident(row)) {
                continue;
            }
            let Ok(Some(handle)) = Handle::open(ident(row)) else { continue };
            if process::ignores(row.pid, signal) {
                let _ = handle.signal(libc::SIGTERM);
                let _ = handle.signal(libc::SIGCONT);
            }
        }
    }

    fn below_supervisor(&self, all: &Snapshot, row: &Stat) -> bool {
        let mut at = row.ppid;
        let mut steps = 0;
        while at != self.me && steps < 10_000 {
            let Some(parent) = all.get(at) else { return false };
            if is_supervisor(parent) {
                return true;
            }
            at = parent.ppid;
            steps += 1;
        }
        false
    }

    /// KILL to everything, by process and by group. To be repeated until [`Tree::left`] says so; `keep` is the
    /// child that must not be waited for here (the leader, whose end is recorded before).
    pub fn hard(&self, keep: Option<i32>) {
        if self.blind {
            self.grope(libc::SIGKILL);
            return self.reap(keep);
        }
        if !self.spares() {
            self.kill_children(keep);
        }
        let Ok(all) = self.picture() else { return };
        let members = self.members(&all);
        let spared_groups: HashSet<i32> = if self.spares() {
            let kept: HashSet<i32> = members.iter().map(|r| r.pid).collect();
            all.descendants(self.me).iter().filter(|r| !kept.contains(&r.pid)).map(|r| r.pgid).collect()
        } else {
            HashSet::new()
        };
        for row in &members {
            let Ok(Some(handle)) = Handle::open(ident(row)) else { continue };
            // Our own child that leads a group: its number is nobody else's until it is waited for, and the
            // kernel signals the whole group at once, whatever it forks.
            if row.ppid == self.me && row.pgid == row.pid && !spared_groups.contains(&row.pgid) {
                let _ = sys::signal_group(row.pgid, libc::SIGKILL);
            }
            let _ = handle.signal(libc::SIGKILL);
        }
        self.reap(keep);
    }

    /// Kills direct children as fast as they appear, by the kernel's own list of them.
    fn kill_children(&self, keep: Option<i32>) {
        for _ in 0..ROUNDS {
            let Ok(list) = std::fs::read_to_string(format!("/proc/self/task/{}/children", self.me)) else {
                return;
            };
            let mut living = 0;
            for pid in list.split_ascii_whitespace().filter_map(|p| p.parse::<i32>().ok()) {
                let Some(stat) = process::read_stat(pid) else { continue };
                if matches!(stat.state, 'Z' | 'X') && !stat.is_alive() {
                    continue;
                }
                living += 1;
                // A child's number is ours until we wait for it.
                if stat.pgid == pid {
                    let _ = sys::signal_group(pid, libc::SIGKILL);
                }
                let _ = sys::signal_child(pid, libc::SIGKILL);
            }
            self.reap(keep);
            if living == 0 {
                return;
            }
        }
    }

    /// Waits for every dead child but the leader.
    pub fn reap(&self, keep: Option<i32>) {
        while let Ok(Children::Dead(dead)) = sys::look(Which::Any, false) {
            if Some(dead.pid) == keep {
                return;
            }
            let _ = sys::look(Which::Pid(dead.pid), true);
        }
    }

    /// What could not be stopped, and why.
    pub fn survivors(&self) -> Vec<Leftover> {
        let Ok(all) = self.picture() else {
            let why = "there is no /proc of this PID namespace to tell who lives".to_owned();
            return vec![Leftover { pid: 0, start: 0, command: String::new(), why }];
        };
        let mine = rustix::process::getuid().as_raw();
        list(self.members(&all).into_iter().map(|row| {
            let facts = process::Facts::read(row.pid);
            let why = why_it_survives(row.state, facts.wchan.as_deref(), facts.uid, mine);
            leftover(row, why)
        }))
    }
}

/// Why KILL has not helped, as far as /proc tells.
fn why_it_survives(state: char, wchan: Option<&str>, uid: Option<u32>, mine: u32) -> String {
    match (state, uid) {
        ('D', _) => {
            let place = wchan.map(|w| format!(" in {w}")).unwrap_or_default();
            format!("uninterruptible (state D{place})")
        }
        (_, Some(uid)) if mine != 0 && uid != mine => {
            format!("another user's (uid {uid}), not ours to signal")
        }
        _ => format!("still alive after KILL (state {state})"),
    }
}

fn leftover(row: &Stat, why: String) -> Leftover {
    Leftover { pid: row.pid, start: row.start, command: process::command_line(row.pid), why }
}

/// Cuts a list to what a record holds, saying how much was left out.
fn list(all: impl Iterator<Item = Leftover>) -> Vec<Leftover> {
    let mut list: Vec<Leftover> = all.collect();
    if list.len() > LISTED {
        let more = list.len() - LISTED + 1;
        list.truncate(LISTED - 1);
        list.push(Leftover { pid: 0, start: 0, command: String::new(), why: format!("and {more} more") });
    }
    list
}

/// A variable of the environment that a process was started with.
pub fn environment(pid: i32, name: &str) -> Option<String> {
    let mut bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    if bytes.is_empty() {
        // That of a main thread that has exited is empty; the other threads still show it.
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        bytes = tasks.flatten().find_map(|task| {
            std::fs::read(task.path().join("environ")).ok().filter(|bytes| !bytes.is_empty())
        })?;
    }
    bytes.split(|&b| b == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, start: u64) -> Stat {
        Stat {
            pid,
            comm: "x".into(),
            state: 'S',
            ppid: 1,
            pgid: pid,
            sid: pid,
            cpu_ticks: 0,
            threads: 1,
            start,
            rss_pages: 0,
        }
    }

    #[test]
    fn births_in_the_tick_of_the_signal_are_told_apart_by_number() {
        let moment = Moment { tick: 100, pid: Some(500) };
        assert!(moment.is_after_birth_of(&row(900, 99)), "an earlier tick, whatever the number");
        assert!(moment.is_after_birth_of(&row(500, 100)));
        assert!(!moment.is_after_birth_of(&row(501, 100)), "what a TERM handler starts");
        assert!(!moment.is_after_birth_of(&row(400, 101)));
        assert!(Moment { tick: 100, pid: None }.is_after_birth_of(&row(501, 100)));
    }

    #[test]
    fn whoever_lives_was_born_before_now() {
        let me = process::read_stat(std::process::id().cast_signed()).unwrap();
        assert!(Moment::now().is_after_birth_of(&me));
    }

    #[test]
    fn survivors_are_named_with_their_reason() {
        let why = why_it_survives;
        assert_eq!(why('D', Some("nfs_wait"), Some(0), 0), "uninterruptible (state D in nfs_wait)");
        assert_eq!(why('D', None, Some(0), 1000), "uninterruptible (state D)");
        assert_eq!(why('S', None, Some(0), 1000), "another user's (uid 0), not ours to signal");
        assert_eq!(why('S', None, Some(1000), 1000), "still alive after KILL (state S)");
        assert_eq!(why('R', None, Some(1000), 0), "still alive after KILL (state R)", "root may signal all");
        assert_eq!(why('S', None, None, 1000), "still alive after KILL (state S)");
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let many =
            (0..250).map(|n| Leftover { pid: n, start: 1, command: String::new(), why: String::new() });
        let cut = list(many);
        assert_eq!(cut.len(), LISTED);
        assert_eq!(cut[LISTED - 1].why, "and 51 more");
    }
}
