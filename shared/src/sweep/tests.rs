//! The decisions of a sweep, on written pictures: every case of the rule, and those that no test can bring about
//! (uninterruptible processes, other users', a PID 1 of one's choice).

use super::argv::Kind;
use super::choose::{Choice, Why, choose};
use super::found::why_left;
use super::jobs::{Book, Life, Record, Shelf, Verdict, judge};
use super::own::Orphan;
use super::sight::{Descriptor, Owner, Picture, Sight, Stream};
use super::{Options, Place};
use crate::contract::Scope;
use crate::process::{Here, Ident, Snapshot, Stat, ticks_per_second};
use crate::supervise::Evidence;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

const TREE: &str = "/nowhere/tree";
const PYTEST: &str = "python -m pytest tests";
const WORKER: &str = "python|-u|-c|import sys;exec(eval(sys.stdin.readline()))";
const NOW: u64 = 1_000_000;
const ME: u32 = 1000;
const NONE: [i32; 0] = [];

/// A world as somebody wrote it down. PID 1 is systemd unless it says otherwise.
#[derive(Clone)]
struct World {
    rows: HashMap<i32, Stat>,
    commands: HashMap<i32, String>,
    cwd: HashMap<i32, PathBuf>,
    owner: HashMap<i32, Owner>,
    environ: HashMap<i32, String>,
    streams: HashMap<i32, Vec<Descriptor>>,
    unseen: HashSet<i32>,
    hidden: HashSet<i32>,
}

impl World {
    fn new() -> World {
        let mut world = World {
            rows: HashMap::new(),
            commands: HashMap::new(),
            cwd: HashMap::new(),
            owner: HashMap::new(),
            environ: HashMap::new(),
            streams: HashMap::new(),
            unseen: HashSet::new(),
            hidden: HashSet::new(),
        };
        world.process(1, 0, 1, "/sbin/init").comm(1, "systemd");
        world
    }

    /// A process that works in the tree. A command's words are apart by spaces, or, where it has one, by `|`.
    fn process(&mut self, pid: i32, ppid: i32, sid: i32, command: &str) -> &mut World {
        let between = if command.contains('|') { '|' } else { ' ' };
        let argv: Vec<&str> = command.split(between).collect();
        let comm = argv[0].rsplit('/').next().unwrap_or_default().to_owned();
        let start = 1000 + u64::try_from(pid).unwrap();
        let row = Stat {
            pid,
            comm,
            state: 'S',
            ppid,
            pgid: sid,
            sid,
            cpu_ticks: 0,
            threads: 1,
            start,
            rss_pages: 0,
        };
        self.rows.insert(pid, row);
        self.commands.insert(pid, argv.join("\0") + "\0");
        self.cwd.insert(pid, TREE.into());
        self.owner.insert(pid, Owner { uid: ME, contained: false });
        self
    }

    fn comm(&mut self, pid: i32, comm: &str) -> &mut World {
        self.rows.get_mut(&pid).unwrap().comm = comm.to_owned();
        self
    }

    fn zombie(&mut self, pid: i32) -> &mut World {
        self.rows.get_mut(&pid).unwrap().state = 'Z';
        self
    }

    /// PID 1 is a container's agent that holds these.
    fn agent(&mut self, holds: &[Stream]) -> &mut World {
        self.process(1, 0, 0, "/opt/agent");
        self.holds(1, &holds.iter().cloned().map(|s| (9, s)).collect::<Vec<_>>());
        self
    }

    /// A process holds these, those above 2 by its own doing.
    fn holds(&mut self, pid: i32, streams: &[(u32, Stream)]) -> &mut World {
        let list = streams.iter().map(|(number, stream)| Descriptor {
            number: *number,
            stream: stream.clone(),
            own: *number > 2,
        });
        self.streams.insert(pid, list.collect());
        self
    }

    fn options() -> Options {
        Options {
            place: Place::Tree(TREE.into()),
            kinds: vec![Kind::Pytest],
            pattern: None,
            older: Duration::ZERO,
            grace: Duration::ZERO,
            unsupervised: false,
            scope: Scope::default(),
            all_users: false,
            dry_run: true,
            run_dir: "/nowhere/runs".into(),
        }
    }

    fn choices(&self, options: &Options, never: &[i32]) -> Vec<Choice> {
        let all = Snapshot::of(self.rows.values().cloned());
        let picture = Picture::new(&all, self);
        let book = Book::new(here(), options.run_dir.clone());
        choose(&picture, options, &book, &never.iter().copied().collect(), ME, NOW)
    }

    fn swept_with(&self, options: &Options) -> Vec<i32> {
        let mut pids: Vec<i32> = self.choices(options, &[]).iter().map(|c| c.ident.pid).collect();
        pids.sort_unstable();
        pids
    }

    fn swept(&self) -> Vec<i32> {
        self.swept_with(&World::options())
    }

    fn orphan(&self, pid: i32) -> Option<Orphan> {
        self.choices(&World::options(), &[]).into_iter().find(|c| c.ident.pid == pid)?.orphan
    }
}

impl Sight for World {
    fn cmdline(&self, row: &Stat) -> Vec<u8> {
        self.commands[&row.pid].clone().into_bytes()
    }
    fn owner(&self, row: &Stat) -> Option<Owner> {
        self.owner.get(&row.pid).copied()
    }
    fn cwd(&self, row: &Stat) -> Option<PathBuf> {
        self.cwd.get(&row.pid).cloned()
    }
    fn environ(&self, row: &Stat) -> Vec<u8> {
        self.environ.get(&row.pid).cloned().unwrap_or_default().into_bytes()
    }
    fn streams(&self, pid: i32) -> Option<Vec<Descriptor>> {
        (!self.unseen.contains(&pid)).then(|| self.streams.get(&pid).cloned().unwrap_or_default())
    }
    fn is_alive(&self, row: &Stat) -> bool {
        row.state != 'Z' || row.threads > 1
    }
    fn exists(&self, pid: i32) -> bool {
        self.hidden.contains(&pid)
    }
}

fn here() -> Here {
    Here { boot: "b".into(), pidns: 1, timens: 2, host: "h".into() }
}

#[test]
fn one_whose_sessions_leader_is_gone_goes_whoever_adopted_it() {
    let mut w = World::new();
    w.process(10, 1, 10, "some-subreaper").comm(10, "agent");
    w.process(11, 1, 11, "tini -- app");
    w.process(20, 1, 900, PYTEST);
    w.process(21, 10, 900, PYTEST);
    w.process(22, 11, 900, PYTEST);
    assert_eq!(w.swept(), [20, 21, 22]);
    assert_eq!(w.orphan(21), Some(Orphan::LeaderGone { leader: 900 }));
}

#[test]
fn one_that_somebody_started_stays() {
    let mut w = World::new();
    // Under a living shell, in the foreground and, the shell's child having exited, adopted.
    w.process(10, 1, 10, "bash");
    w.process(20, 10, 10, PYTEST);
    w.process(21, 1, 10, PYTEST);
    // Its session's leader is gone, but its parent is of its session: a script that lives.
    w.process(22, 1, 900, "sh test.sh");
    w.process(23, 22, 900, PYTEST);
    // In a session of its own, under whoever started it; a subreaper without a name may have.
    w.process(24, 10, 24, PYTEST);
    // Its session's leader, or its parent, is outside our PID namespace.
    w.process(25, 1, 0, PYTEST);
    w.process(26, 0, 26, PYTEST);
    // Its session's leader is hidden from us.
    w.process(27, 1, 901, PYTEST).hidden.insert(901);
    assert_eq!(w.swept(), NONE);
}

#[test]
fn one_that_leads_its_session_goes_if_an_init_adopted_it_and_with_it_its_session() {
    let mut w = World::new();
    w.process(10, 1, 10, "systemd --user");
    w.process(20, 1, 20, PYTEST);
    w.process(21, 10, 21, PYTEST);
    w.process(22, 1, 20, "python -m pytest other");
    assert_eq!(w.swept(), [20, 21, 22]);
    assert_eq!(w.orphan(20), Some(Orphan::Adopted));
    assert_eq!(w.orphan(22), Some(Orphan::LeaderOrphan { leader: 20 }));
}

#[test]
fn a_service_is_systemds_own() {
    let mut w = World::new();
    w.process(20, 1, 20, PYTEST).environ.insert(20, "A=B\0SYSTEMD_EXEC_PID=20\0".into());
    w.process(21, 1, 21, PYTEST).environ.insert(21, "SYSTEMD_EXEC_PID=20\0".into());
    assert_eq!(w.swept(), [21]);
}

#[test]
fn a_zombie_leader_is_gone_unless_a_thread_of_it_lives() {
    let mut w = World::new();
    w.process(10, 1, 10, "bash").zombie(10);
    w.process(20, 1, 10, PYTEST);
    assert_eq!(w.swept(), [20]);
    w.rows.get_mut(&10).unwrap().threads = 2;
    assert_eq!(w.swept(), NONE);
    // A zombie is nothing that could be stopped; a process whose main thread has exited is.
    w.process(30, 1, 900, PYTEST).zombie(30);
    assert_eq!(w.swept(), NONE);
    w.rows.get_mut(&30).unwrap().threads = 2;
    assert_eq!(w.swept(), [30]);
}

#[test]
fn a_worker_goes_when_its_controller_has_and_stays_as_long_as_it_lives() {
    let mut w = World::new();
    w.process(10, 1, 10, "bash");
    w.process(11, 10, 10, PYTEST);
    w.process(12, 11, 10, WORKER);
    w.process(13, 12, 10, "sleep 9");
    assert_eq!(w.swept(), NONE);
    // The controller is killed; the workers go to the nearest subreaper, even in their own session.
    w.rows.remove(&11);
    w.rows.get_mut(&12).unwrap().ppid = 10;
    assert_eq!(w.swept(), [12, 13]);
    assert_eq!(w.orphan(12), Some(Orphan::NoController));
    // A script that runs pytest has any name: it holds the worker's pipes.
    w.holds(12, &[(1, Stream::Pipe(5)), (2, Stream::Pipe(5)), (3, Stream::Pipe(7))]);
    w.holds(10, &[(8, Stream::Pipe(7))]);
    assert_eq!(w.swept(), NONE);
    // The output that both inherited says nothing.
    w.holds(10, &[(1, Stream::Pipe(5))]);
    assert_eq!(w.swept(), [12, 13]);
}

#[test]
fn what_a_living_pid_1_reads_is_owned() {
    let terminal = Stream::Terminal("/dev/pts/3".into());
    let mut w = World::new();
    w.agent(&[Stream::Pipe(5), terminal.clone()]);
    w.process(20, 1, 900, PYTEST).holds(20, &[(1, Stream::Pipe(5))]);
    w.process(21, 1, 900, PYTEST).holds(21, &[(0, terminal)]);
    // While it captures, pytest keeps its own standard output under another number.
    w.process(22, 1, 900, PYTEST).holds(22, &[(5, Stream::Pipe(5))]);
    w.process(23, 1, 900, PYTEST).holds(23, &[(1, Stream::Pipe(6))]);
    w.process(24, 1, 900, PYTEST);
    // What a worker without a controller says to whoever read its controller is no reason to keep it.
    w.process(25, 1, 900, WORKER).holds(25, &[(1, Stream::Pipe(5)), (2, Stream::Pipe(5))]);
    // What it inherited by an oversight is nobody's to read.
    w.process(26, 1, 900, PYTEST).holds(26, &[(9, Stream::Pipe(5))]);
    w.streams.get_mut(&26).unwrap()[0].own = false;
    assert_eq!(w.swept(), [23, 24, 25, 26]);
    // What cannot be seen may be held.
    w.unseen.insert(1);
    assert_eq!(w.swept(), [24, 26]);
    // An init reads nothing, whatever it holds.
    w.unseen.clear();
    w.comm(1, "tini");
    assert_eq!(w.swept(), [20, 21, 22, 23, 24, 25, 26]);
}

#[test]
fn look_alikes_stay_even_where_orphans_are_found() {
    let mut w = World::new();
    for (pid, command) in (20..).zip([
        "vim pytest.ini",
        "grep -r pytest .",
        "python|-c|import time|-m|pytest",
        "bash|-c|python -m pytest",
        "node agent.js|run python -m pytest",
        "python -m http.server",
        "tail -f pytest.log",
    ]) {
        w.process(pid, 1, 900, command);
    }
    assert_eq!(w.swept(), NONE);
    let mut options = World::options();
    options.pattern = Some(Box::new(|command| command.starts_with("tail")));
    assert_eq!(w.swept_with(&options), [26]);
    assert_eq!(w.choices(&options, &[])[0].why, Why::Pattern);
}

#[test]
fn only_the_kinds_that_were_asked_for_go() {
    let mut w = World::new();
    w.process(20, 1, 900, PYTEST);
    w.process(21, 1, 900, "python -m unittest");
    let mut options = World::options();
    options.kinds = vec![Kind::Unittest];
    assert_eq!(w.swept_with(&options), [21]);
}

#[test]
fn place_age_and_user_are_heeded() {
    let mut w = World::new();
    w.process(20, 1, 900, PYTEST);
    w.process(21, 1, 900, PYTEST).cwd.insert(21, "/nowhere/other".into());
    w.process(22, 1, 900, PYTEST).cwd.insert(22, "/nowhere/tree/gone (deleted)".into());
    w.process(23, 1, 900, PYTEST).cwd.remove(&23);
    w.process(24, 1, 900, PYTEST).owner.insert(24, Owner { uid: 7, contained: false });
    w.process(25, 1, 900, PYTEST).owner.insert(25, Owner { uid: ME, contained: true });
    w.process(26, 1, 900, PYTEST).rows.get_mut(&26).unwrap().start = NOW - 10 * ticks_per_second();
    assert_eq!(w.swept(), [20, 22, 26]);
    let options = Options { all_users: true, ..World::options() };
    assert_eq!(w.swept_with(&options), [20, 22, 24, 26]);
    let options = Options { older: Duration::from_secs(11), ..World::options() };
    assert_eq!(w.swept_with(&options), [20, 22]);
    let options = Options { place: Place::Anywhere, ..World::options() };
    assert_eq!(w.swept_with(&options), [20, 21, 22, 26]);
}

#[test]
fn supervisors_guards_and_what_is_below_them_stay() {
    let mut w = World::new();
    for (at, comm) in [(10, "tb-supervise"), (20, "tb-guard")] {
        w.process(at, 1, at, "x").comm(at, comm);
        w.process(at + 1, at, at + 1, "sh");
        w.process(at + 2, at, at + 1, PYTEST);
        w.process(at + 3, at, 900, PYTEST);
    }
    assert_eq!(w.swept(), NONE);
    // Nor do they go with a tree that does.
    w.process(30, 1, 900, PYTEST);
    w.rows.get_mut(&20).unwrap().ppid = 30;
    w.process(31, 30, 900, "sleep 9");
    assert_eq!(w.swept(), [30, 31]);
}

#[test]
fn the_caller_and_its_ancestors_stay_and_so_does_what_they_started() {
    let mut w = World::new();
    w.process(20, 1, 900, PYTEST);
    w.process(21, 20, 900, "make reap");
    w.process(22, 21, 900, "tb-reap-orphans");
    w.process(23, 20, 900, "sleep 9");
    assert_eq!(w.choices(&World::options(), &[22, 21, 20, 1]), []);
}

/// A shelf with one job, whose leader is process 900.
fn shelf(life: Life) -> Shelf {
    let record = Record {
        job: "j1".into(),
        name: "tests/a.py".into(),
        owner: None,
        leader: Ident { pid: 900, start: 1000 },
        local: true,
        life,
        allows: false,
        left: vec![],
    };
    Shelf { records: vec![record], ..Shelf::default() }
}

fn verdict(w: &World, pid: i32, shelf: &Shelf, cookie: Option<&str>, unsupervised: bool) -> Verdict {
    let all = Snapshot::of(w.rows.values().cloned());
    let picture = Picture::new(&all, w);
    let scope = Scope::default();
    judge(&picture, &w.rows[&pid], &[Rc::new(shelf.clone())], cookie, unsupervised.then_some(&scope))
}

fn belonged(evidence: Evidence) -> Verdict {
    Verdict::Belonged { name: "tests/a.py".into(), evidence }
}

#[test]
fn what_belonged_to_a_job_is_known_by_session_and_cookie() {
    let mut w = World::new();
    w.process(20, 1, 900, "sleep 9");
    w.process(21, 1, 21, "sleep 9");
    let over = shelf(Life::Over);
    assert_eq!(verdict(&w, 20, &over, None, false), belonged(Evidence::SessionOrGroup));
    assert_eq!(verdict(&w, 21, &over, Some("j1"), false), belonged(Evidence::Cookie));
    assert_eq!(verdict(&w, 21, &over, Some("j2"), false), Verdict::Nothing);
    // A number proves nothing in another boot or namespace, or where somebody else bears it by now.
    let mut elsewhere = over.clone();
    elsewhere.records[0].local = false;
    assert_eq!(verdict(&w, 20, &elsewhere, None, false), Verdict::Nothing);
    assert_eq!(verdict(&w, 21, &elsewhere, Some("j1"), false), belonged(Evidence::Cookie));
    w.process(900, 1, 900, "bash");
    assert_eq!(verdict(&w, 20, &over, None, false), Verdict::Nothing);
}

#[test]
fn what_is_older_than_the_job_did_not_belong_to_it() {
    let mut w = World::new();
    w.process(20, 1, 20, "sleep 9").rows.get_mut(&20).unwrap().start = 999;
    assert_eq!(verdict(&w, 20, &shelf(Life::Over), Some("j1"), false), Verdict::Nothing);
    // For its protection the id alone is enough.
    assert_eq!(verdict(&w, 20, &shelf(Life::Running), Some("j1"), false), Verdict::Leave);
}

#[test]
fn what_runs_stays_and_without_supervisors_goes_only_when_asked_and_in_scope() {
    let mut w = World::new();
    w.process(20, 1, 20, PYTEST);
    assert_eq!(verdict(&w, 20, &shelf(Life::Running), Some("j1"), true), Verdict::Leave);
    let mut unsupervised = shelf(Life::Unsupervised);
    assert_eq!(verdict(&w, 20, &unsupervised, Some("j1"), false), Verdict::Leave);
    assert_eq!(verdict(&w, 20, &unsupervised, Some("j1"), true), belonged(Evidence::Cookie));
    unsupervised.records[0].owner = Some("other".into());
    assert_eq!(verdict(&w, 20, &unsupervised, Some("j1"), true), Verdict::Leave);
}

#[test]
fn what_was_left_on_purpose_stays() {
    let mut w = World::new();
    w.process(20, 1, 900, "server");
    let mut allows = shelf(Life::Over);
    allows.records[0].allows = true;
    assert_eq!(verdict(&w, 20, &allows, None, false), Verdict::Leave);
    let mut named = shelf(Life::Over);
    named.records[0].left = vec![(20, w.rows[&20].start)];
    assert_eq!(verdict(&w, 20, &named, None, false), Verdict::Leave);
    // The number without the start is somebody else's.
    named.records[0].left = vec![(20, 1)];
    assert_eq!(verdict(&w, 20, &named, None, false), belonged(Evidence::SessionOrGroup));
}

#[test]
fn what_a_live_pid_file_names_stays_with_all_below_it() {
    let mut w = World::new();
    w.process(20, 1, 800, PYTEST);
    w.process(21, 20, 800, WORKER);
    let foreign = Shelf { foreign: vec![20], ..Shelf::default() };
    assert_eq!(verdict(&w, 20, &foreign, None, false), Verdict::Leave);
    assert_eq!(verdict(&w, 21, &foreign, None, false), Verdict::Leave);
}

#[test]
fn a_job_that_cannot_be_read_may_run() {
    let mut w = World::new();
    w.process(20, 1, 800, PYTEST);
    let unclear = Shelf { unclear: true, ..shelf(Life::Over) };
    assert_eq!(verdict(&w, 20, &unclear, Some("j2"), false), Verdict::Leave);
    assert_eq!(verdict(&w, 20, &unclear, Some("j1"), false), belonged(Evidence::Cookie));
    assert_eq!(verdict(&w, 20, &unclear, None, false), Verdict::Nothing);
}

#[test]
fn what_cannot_be_stopped_is_named_for_what_it_is() {
    assert_eq!(
        why_left('D', Some("nfs_wait"), Some(ME), false),
        "uninterruptible (state D in nfs_wait): it goes when the kernel lets it"
    );
    assert_eq!(why_left('S', None, Some(7), true), "another user's (uid 7), not ours to signal");
    assert_eq!(why_left('R', None, Some(ME), false), "still alive after KILL (state R)");
}

#[test]
fn what_is_below_an_orphan_goes_with_it_wherever_it_works() {
    let mut w = World::new();
    w.process(20, 1, 900, PYTEST);
    w.process(21, 20, 21, "server").cwd.insert(21, "/".into());
    w.process(22, 21, 22, "server").owner.insert(22, Owner { uid: 7, contained: false });
    let choices = w.choices(&World::options(), &[]);
    let why: Vec<(i32, String)> = choices.iter().map(|c| (c.ident.pid, c.why.to_string())).collect();
    assert_eq!(why, [(20, "pytest".into()), (21, "below 20".into()), (22, "below 21".into())]);
}
