//! The passes of a sweep: everything that goes is found before the first of it is signalled, and looked for again
//! until two passes in a row find nothing.

use super::Options;
use super::choose::{Choice, Why, below, choose, is_spared};
use super::jobs::Book;
use super::own::{Orphan, has_new_parent};
use super::sight::{Picture, Proc, Sight};
use crate::process::{self, Facts, Handle, Here, Ident, Snapshot, Stat};
use crate::supervise::BOUND;
use crate::term::{Code, Failure, Result, human_duration};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest sleep between two passes.
const LOOK: Duration = Duration::from_millis(100);
/// How often new members of a tree are looked for before what is known is signalled.
const ROUNDS: usize = 50;
/// The most processes that are waited for at once: descriptors are few.
const WAITED_FOR: usize = 64;
/// How long the parent of a dead process may take to wait for it before it is called a zombie.
const REAPING: Duration = Duration::from_millis(200);

/// What became of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was only looked at.
    Nothing,
    /// It had ended before it was signalled.
    Gone,
    /// It ended after TERM.
    Term,
    /// It ended after KILL.
    Kill,
    /// It is dead, and its parent has not waited for it.
    Zombie,
    /// It is still there, and why.
    Left(String),
}

/// A process that a sweep found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Who it is.
    pub ident: Ident,
    /// Its parent when it was found.
    pub parent: i32,
    /// Its parent's command line.
    pub parent_command: String,
    /// Its state when it was last seen: `S`, `D`, `Z`, …
    pub state: char,
    /// How old it was.
    pub age: Duration,
    /// Where it works.
    pub cwd: Option<PathBuf>,
    /// Its command line, cut to 256 characters.
    pub command: String,
    /// On what evidence it was chosen.
    pub why: Why,
    /// Why nobody owns it; `None` for what is below another.
    pub orphan: Option<Orphan>,
    /// What became of it.
    pub done: Done,
}

impl Found {
    /// What became of it, in words.
    pub fn outcome(&self) -> String {
        match &self.done {
            Done::Nothing if self.state == 'D' => {
                "would be stopped, but is uninterruptible (state D)".to_owned()
            }
            Done::Nothing => "would be stopped".to_owned(),
            Done::Gone => "had ended".to_owned(),
            Done::Term => "stopped by TERM".to_owned(),
            Done::Kill => "stopped by KILL".to_owned(),
            Done::Zombie => {
                format!("a zombie: {} ({}) has to wait for it", self.parent, self.parent_command)
            }
            Done::Left(why) => format!("left: {why}"),
        }
    }

    /// The evidence, in words.
    pub fn evidence(&self) -> String {
        match &self.orphan {
            Some(orphan) => {
                format!("{}; {orphan}; parent {} ({})", self.why, self.parent, self.parent_command)
            }
            None => self.why.to_string(),
        }
    }

    /// One line for a person: PID, age, directory, command, evidence, what was done.
    pub fn line(&self) -> String {
        format!(
            "{}  {}  {}  {}  [{}]  {}",
            self.ident.pid,
            human_duration(self.age),
            self.cwd.as_ref().map_or_else(|| "?".into(), |cwd| cwd.display().to_string()),
            self.command,
            self.evidence(),
            self.outcome()
        )
    }
}

/// What a sweep came to.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// The processes that were found, each orphan followed by what was below it.
    pub found: Vec<Found>,
    /// Whether it only looked.
    pub dry_run: bool,
}

impl Swept {
    /// How many that had to go are there.
    pub fn left(&self) -> usize {
        self.found.iter().filter(|f| matches!(f.done, Done::Nothing | Done::Left(_))).count()
    }

    /// The exit code.
    pub fn code(&self) -> Code {
        match (self.left(), self.dry_run) {
            (0, _) => Code::Ok,
            (_, true) => Code::Failed,
            (_, false) => Code::Survivors,
        }
    }
}

/// Sweeps, and returns when nothing is left or the time is up: twice the grace and five seconds at most, which a
/// process that appears towards the end of the first grace needs.
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
    killed: bool,
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
        for target in self.targets.iter().map(|t| t.found.ident).filter(|&i| all.find(i).is_some()) {
            let rows = below(&picture, target.pid, &self.never, &self.book);
            chosen.extend(rows.into_iter().map(|row| choice(row, Why::Below(row.ppid))));
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
        rows.map(|row| choice(row, Why::BornIn(row.sid))).collect()
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

    /// Signals a process, if it still is that one. A refusal is noted.
    fn signal(&mut self, ident: Ident, signal: i32) {
        let Ok(Some(handle)) = Handle::open(ident) else { return };
        let denied = handle.signal(signal).is_err_and(|e| e.raw_os_error() == Some(libc::EPERM));
        if let Some(&at) = self.known.get(&ident) {
            self.targets[at].denied |= denied;
        }
    }

    fn until_nothing_is_left(&mut self) -> Result<()> {
        let grace = self.options.grace;
        let give_up = Instant::now() + 2 * grace + BOUND;
        let mut quiet = 0;
        let all = loop {
            let all = self.gather()?;
            let living = self.living(&all);
            quiet = if living.is_empty() { quiet + 1 } else { 0 };
            let refused = !living.is_empty() && living.iter().all(|&at| self.targets[at].denied);
            if quiet == 2 || refused || Instant::now() >= give_up {
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
                self.hard()?;
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
    fn hard(&mut self) -> Result<()> {
        let due = |t: &Target, grace| t.asked.is_none_or(|asked: Instant| asked.elapsed() >= grace);
        let stop = |sweep: &mut Self, signal| {
            for at in 0..sweep.targets.len() {
                if due(&sweep.targets[at], sweep.options.grace) {
                    sweep.signal(sweep.targets[at].found.ident, signal);
                    sweep.targets[at].killed |= signal == libc::SIGKILL && !sweep.targets[at].denied;
                    sweep.targets[at].asked.get_or_insert_with(Instant::now);
                }
            }
        };
        stop(self, libc::SIGSTOP);
        self.gather()?;
        stop(self, libc::SIGKILL);
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
                None if target.killed => Done::Kill,
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

fn choice(row: &Stat, why: Why) -> Choice {
    Choice { ident: ident(row), why, orphan: None, cwd: Proc.cwd(row) }
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
        cwd: choice.cwd,
        command: picture.command(row).chars().take(256).collect(),
        why: choice.why,
        orphan: choice.orphan,
        done: if dead { Done::Zombie } else { Done::Nothing },
    };
    Target { found, sid: row.sid, asked: None, killed: false, denied: false }
}

/// Enough of a command line to recognise it by.
fn short(command: &str) -> String {
    match command.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.to_owned(),
    }
}

/// Why a process is still there.
pub(super) fn why_left(state: char, wchan: Option<&str>, uid: Option<u32>, denied: bool) -> String {
    match (state, uid) {
        (_, Some(uid)) if denied => format!("another user's (uid {uid}), not ours to signal"),
        (_, None) if denied => "not ours to signal".to_owned(),
        ('D', _) => {
            let place = wchan.map(|w| format!(" in {w}")).unwrap_or_default();
            format!("uninterruptible (state D{place}): it goes when the kernel lets it")
        }
        (state, _) => format!("still alive after KILL (state {state})"),
    }
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
        let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // EINTR is as good a reason to look again as any.
        let _ = poll(&mut polled, Some(&timeout));
    }
}
