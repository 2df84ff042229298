//! The passes of a sweep: everything that goes is found before the first of it is signalled, and looked for again
//! until two passes in a row find nothing.

use super::Options;
use super::choose::{Choice, Why, below, choose, is_spared};
use super::found::{Done, Found, Swept, short, why_left};
use super::jobs::Book;
use super::own::has_new_parent;
use super::sight::{Picture, Proc, Sight};
use crate::poll::sleep_on;
use crate::process::{self, Facts, Handle, Here, Ident, Snapshot, Stat};
use crate::supervise::BOUND;
use crate::term::{Failure, Result};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The longest sleep between two passes.
const LOOK: Duration = Duration::from_millis(100);
/// How often new members of a tree are looked for before what is known is signalled.
const ROUNDS: usize = 50;
/// The most processes that are waited for at once: descriptors are few.
const WAITED_FOR: usize = 64;
/// How long the parent of a dead process may take to wait for it before it is called a zombie.
const REAPING: Duration = Duration::from_millis(500);

/// Sweeps, and returns when nothing is left, or what is left has not gone within five seconds after its KILL. What
/// appears during the sweep has a grace of its own; where there is no end of it, twice that time is the limit.
///
/// # Errors
/// When /proc cannot be read.
pub fn run(options: &Options) -> Result<Swept> {
    let mut sweep = Sweep::new(options);
    if options.dry_run {
        sweep.look()?;
        return Ok(Swept { found: sweep.into_found(), dry_run: true });
    }
    sweep.until_nothing_is_left()?;
    Ok(Swept { found: sweep.into_found(), dry_run: false })
}

struct Target {
    found: Found,
    /// Its session when it was found.
    sid: i32,
    /// When it was asked to end.
    asked: Option<Instant>,
    /// When it was first killed.
    killed: Option<Instant>,
    /// The kernel did not let us.
    denied: bool,
}

struct Sweep<'a> {
    options: &'a Options,
    book: Book,
    never: HashSet<i32>,
    uid: u32,
    begun: u64,
    targets: Vec<Target>,
    known: HashMap<Ident, usize>,
}

fn ident(row: &Stat) -> Ident {
    Ident { pid: row.pid, start: row.start }
}

impl<'a> Sweep<'a> {
    fn new(options: &'a Options) -> Sweep<'a> {
        Sweep {
            options,
            book: Book::new(Here::read(), options.run_dir.clone()),
            never: process::self_and_ancestors().into_iter().collect(),
            uid: rustix::process::getuid().as_raw(),
            begun: process::boottime_ticks(),
            targets: vec![],
            known: HashMap::new(),
        }
    }

    /// One pass: takes a picture, adds what is new in it, and says which that was.
    fn look(&mut self) -> Result<(Snapshot, Vec<Ident>)> {
        let all = Snapshot::take().map_err(|e| Failure::cannot("read /proc", e))?;
        let picture = Picture::new(&all, &Proc);
        let now = process::boottime_ticks();
        let mut chosen = choose(&picture, self.options, &self.book, &self.never, self.uid, now);
        let is_known = |row: &Stat| self.known.contains_key(&ident(row));
        for row in self.targets.iter().filter_map(|t| all.find(t.found.ident)) {
            // What is below another is found with that.
            if !all.get(row.ppid).is_some_and(is_known) {
                let rows = below(&picture, row.pid, &self.never, &self.book);
                chosen.extend(rows.into_iter().map(|row| Choice::of(row, Why::Below(row.ppid))));
            }
        }
        chosen.extend(self.newborn(&picture));
        let mut new = Vec::new();
        for choice in chosen {
            let Some(row) = all.find(choice.ident) else { continue };
            if self.known.contains_key(&choice.ident) {
                continue;
            }
            self.known.insert(choice.ident, self.targets.len());
            new.push(choice.ident);
            self.targets.push(target(&picture, row, choice, now));
        }
        Ok((all, new))
    }

    /// What was born since the sweep began in a session that is being swept, and was adopted: its parent has died
    /// of our signal before a picture showed it. Only where nobody else of that session was there to be its parent.
    fn newborn(&self, picture: &Picture<'_>) -> Vec<Choice> {
        let is_young = |row: &&Stat| row.start >= self.begun;
        let mut sessions: HashSet<i32> = self.targets.iter().map(|t| t.sid).collect();
        for row in picture.all.rows().filter(|row| !is_young(row) && picture.sight.is_alive(row)) {
            if !self.known.contains_key(&ident(row)) {
                sessions.remove(&row.sid);
            }
        }
        let rows = picture.all.rows().filter(is_young).filter(|row| {
            sessions.contains(&row.sid)
                && has_new_parent(picture, row)
                && !is_spared(row, &self.never, &self.book)
        });
        rows.map(|row| Choice::of(row, Why::BornIn(row.sid))).collect()
    }

    /// Passes until one finds nothing new. What is found is stopped, so that it forks no more, and is signalled
    /// only when all of it is known: a parent that dies takes the trace of its children along.
    fn gather(&mut self) -> Result<Snapshot> {
        for _ in 0..ROUNDS {
            let (all, new) = self.look()?;
            if new.is_empty() {
                return Ok(all);
            }
            for ident in new {
                self.signal(ident, libc::SIGSTOP);
            }
        }
        Snapshot::take().map_err(|e| Failure::cannot("read /proc", e))
    }

    /// Signals a process, if it still is that one; says whether it was. A refusal is noted.
    fn signal(&mut self, ident: Ident, signal: i32) -> bool {
        let Ok(Some(handle)) = Handle::open(ident) else { return false };
        let sent = handle.signal(signal);
        if sent.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EPERM))
            && let Some(&at) = self.known.get(&ident)
        {
            self.targets[at].denied = true;
        }
        sent.is_ok()
    }

    fn until_nothing_is_left(&mut self) -> Result<()> {
        let grace = self.options.grace;
        let give_up = Instant::now() + 2 * (grace + BOUND);
        let mut quiet = 0;
        let all = loop {
            let all = self.gather()?;
            let living = self.living(&all);
            quiet = if living.is_empty() { quiet + 1 } else { 0 };
            let is_hopeless = |t: &Target| t.denied || t.killed.is_some_and(|at| at.elapsed() >= BOUND);
            let hopeless = !living.is_empty() && living.iter().all(|&at| is_hopeless(&self.targets[at]));
            if quiet == 2 || hopeless || Instant::now() >= give_up {
                for &at in &living {
                    // What we cannot end we do not leave stopped either.
                    self.signal(self.targets[at].found.ident, libc::SIGCONT);
                }
                break all;
            }
            for &at in &living {
                if self.targets[at].asked.is_none() {
                    let ident = self.targets[at].found.ident;
                    self.signal(ident, libc::SIGTERM);
                    self.signal(ident, libc::SIGCONT);
                    self.targets[at].asked = Some(Instant::now());
                }
            }
            let due = |t: &Target| t.asked.is_some_and(|asked| asked.elapsed() >= grace);
            if living.iter().any(|&at| due(&self.targets[at])) {
                self.hard(&living)?;
            }
            let next =
                living.iter().filter_map(|&at| self.targets[at].asked).map(|asked| asked + grace).min();
            let next = next.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()));
            let next = if next.is_zero() { LOOK } else { next.min(LOOK) };
            wait(living.iter().map(|&at| self.targets[at].found.ident), next);
        };
        self.settle(&all);
        Ok(())
    }

    fn living(&self, all: &Snapshot) -> Vec<usize> {
        let lives = |t: &Target| all.find(t.found.ident).is_some_and(|row| Proc.is_alive(row));
        (0..self.targets.len()).filter(|&at| lives(&self.targets[at])).collect()
    }

    /// KILL to all whose grace is over and to what they have started since.
    fn hard(&mut self, living: &[usize]) -> Result<()> {
        let grace = self.options.grace;
        let is_due = |t: &Target| t.asked.is_none_or(|asked| asked.elapsed() >= grace);
        for &at in living {
            if is_due(&self.targets[at]) {
                self.signal(self.targets[at].found.ident, libc::SIGSTOP);
            }
        }
        let all = self.gather()?;
        for at in self.living(&all) {
            if is_due(&self.targets[at]) && self.signal(self.targets[at].found.ident, libc::SIGKILL) {
                self.targets[at].asked.get_or_insert_with(Instant::now);
                self.targets[at].killed.get_or_insert_with(Instant::now);
            }
        }
        Ok(())
    }

    /// Says of each process what became of it.
    fn settle(&mut self, all: &Snapshot) {
        let until = Instant::now() + REAPING;
        for target in &mut self.targets {
            let ident = target.found.ident;
            let lives = all.find(ident).is_some_and(|row| Proc.is_alive(row));
            let mut now = process::read_stat(ident.pid).filter(|row| row.start == ident.start);
            while !lives && now.is_some() && Instant::now() < until {
                // Nothing tells when somebody else's child is waited for.
                std::thread::sleep(Duration::from_millis(5));
                now = process::read_stat(ident.pid).filter(|row| row.start == ident.start);
            }
            target.found.done = match &now {
                Some(row) if row.is_alive() => {
                    let facts = Facts::read(ident.pid);
                    Done::Left(why_left(row.state, facts.wchan.as_deref(), facts.uid, target.denied))
                }
                Some(_) => Done::Zombie,
                None if target.killed.is_some() => Done::Kill,
                None if target.asked.is_some() => Done::Term,
                None => Done::Gone,
            };
            if let Some(row) = now {
                target.found.state = row.state;
                target.found.parent = row.ppid;
                target.found.parent_command = short(&process::command_line(row.ppid));
            }
        }
    }

    fn into_found(self) -> Vec<Found> {
        self.targets.into_iter().map(|t| t.found).collect()
    }
}

fn target(picture: &Picture<'_>, row: &Stat, choice: Choice, now: u64) -> Target {
    let ticks = now.saturating_sub(row.start);
    let dead = !picture.sight.is_alive(row);
    let found = Found {
        ident: choice.ident,
        parent: row.ppid,
        parent_command: picture.all.get(row.ppid).map_or_else(String::new, |p| short(&picture.command(p))),
        state: row.state,
        age: Duration::from_millis(ticks * 1000 / process::ticks_per_second()),
        cwd: choice.cwd.or_else(|| picture.sight.cwd(row)),
        command: picture.command(row).chars().take(256).collect(),
        why: choice.why,
        orphan: choice.orphan,
        done: if dead { Done::Zombie } else { Done::Nothing },
    };
    Target { found, sid: row.sid, asked: None, killed: None, denied: false }
}

/// Sleeps until all of these processes have ended (of very many, the first), or the time is up.
fn wait(idents: impl Iterator<Item = Ident>, at_most: Duration) {
    let until = Instant::now() + at_most;
    let mut handles: Vec<Handle> =
        idents.take(WAITED_FOR).filter_map(|ident| Handle::open(ident).ok().flatten()).collect();
    loop {
        handles.retain(|handle| !handle.has_ended());
        let left = until.saturating_duration_since(Instant::now());
        if handles.is_empty() || left.is_zero() {
            return;
        }
        let fds: Vec<_> = handles.iter().map(Handle::fd).collect();
        sleep_on(&fds, Some(left));
    }
}
