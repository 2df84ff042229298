//! The process that misbehaves on request does so.

use tb_tests::{NOBODY, Proc, Scene, until};

fn exists(scene: &Scene, name: &str) -> Option<String> {
    Some(scene.read(name)).filter(|text| text.ends_with('\n'))
}

#[test]
fn children_are_where_their_words_put_them() {
    let scene = Scene::new();
    let leader = scene.fixture("spawn-same spawn-setpgid spawn-setsid hold").spawn();
    let parent = scene.await_birth("main");
    assert_eq!(parent, leader.proc());
    let place = |role: &str| {
        let stat = scene.await_birth(role).stat().expect("it lives");
        (stat.ppid, stat.pgid, stat.sid)
    };
    let own = parent.stat().expect("it lives");
    assert_eq!(place("same"), (parent.pid, own.pgid, own.sid));
    let group = scene.await_birth("setpgid").pid;
    assert_eq!(place("setpgid"), (parent.pid, group, own.sid));
    let session = scene.await_birth("setsid").pid;
    assert_eq!(place("setsid"), (parent.pid, session, session));
}

#[test]
fn a_daemon_has_lost_its_parent_and_its_session_has_no_leader() {
    let scene = Scene::new();
    let leader = scene.fixture("daemon [ ignore-term hold ] hold").held_pipes().spawn();
    let daemon = scene.await_birth("daemon");
    let stat = until("the process in between is gone", || {
        daemon.stat().filter(|stat| Proc::of(stat.sid).is_none_or(|leader| !leader.alive()))
    });
    assert_ne!(stat.ppid, leader.pid());
    assert_ne!(stat.sid, daemon.pid);
}

#[test]
fn a_daemon_without_environment_registers_all_the_same_and_is_found_by_that() {
    let scene = Scene::new();
    scene.fixture("daemon-envclear exit 0").run().ok();
    let daemon = scene.await_birth("daemon-envclear");
    assert!(!daemon.has_env("TB_TEST_LIFE=120"));
    assert_eq!(
        std::fs::read_link(format!("/proc/{}/cwd", daemon.pid)).expect("it is ours"),
        std::path::Path::new("/")
    );
    assert_eq!(scene.living(), [daemon]);
    drop(scene);
    assert!(!daemon.alive());
}

#[test]
fn term_is_ignored_from_the_moment_of_the_birth_on() {
    let scene = Scene::new();
    let child = scene.fixture("ignore-term hold").spawn();
    let proc = scene.await_birth("main");
    proc.signal(rustix::process::Signal::TERM);
    proc.signal(rustix::process::Signal::INT);
    proc.signal(rustix::process::Signal::HUP);
    // A later request is answered: those before it were delivered and did nothing.
    proc.kill();
    assert_eq!(child.wait().signal, Some(9));
}

#[test]
fn a_reaction_to_term_takes_its_time_and_leaves_its_mark() {
    let scene = Scene::new();
    let child = scene.fixture("term-handler 0.1 finished").spawn();
    scene.await_birth("main").signal(rustix::process::Signal::TERM);
    child.wait().ok();
    assert!(exists(&scene, "finished").is_some());
}

#[test]
fn a_process_may_leave_another_behind_at_its_end() {
    let scene = Scene::new();
    let child = scene.fixture("spawn-on-term").held_pipes().spawn();
    scene.await_birth("main").signal(rustix::process::Signal::TERM);
    child.wait().ok();
    assert!(scene.await_birth("setsid").alive());
}

#[test]
fn stopped_is_stopped() {
    let scene = Scene::new();
    let child = scene.fixture("stopped exit 3").spawn();
    let proc = scene.await_birth("main");
    until("it stops", || proc.stat().filter(|s| s.state == 'T'));
    proc.signal(rustix::process::Signal::CONT);
    child.wait().expect(3);
}

#[test]
fn a_process_whose_main_thread_has_left_shows_z_and_lives() {
    let scene = Scene::new();
    let child = scene.fixture("threads 2").spawn();
    let proc = scene.await_birth("main");
    until("its main thread is a zombie", || proc.stat().filter(|s| s.state == 'Z'));
    assert!(proc.alive());
    assert!(!child.ended());
    assert_eq!(scene.living(), [proc]);
    proc.kill();
    assert_eq!(child.wait().signal, Some(9));
    assert!(!proc.alive());
}

#[test]
fn a_storm_has_as_many_links_as_were_asked_for_and_ends() {
    let scene = Scene::new();
    scene.fixture("storm 20").run().ok();
    until("the last link has registered, or time is up", || {
        let links = scene.births().iter().filter(|b| b.role == "setsid").count();
        (links == 20 || scene.living().is_empty()).then_some(())
    });
    scene.assert_quiet();
    assert!(scene.births().len() <= 21);
}

#[test]
fn output_is_what_the_words_say() {
    let scene = Scene::new();
    let out = scene.fixture("print a print-err b print-line 70000 exit 7").run().expect(7);
    assert_eq!(out.stdout, format!("a\n{}\n", "x".repeat(70000)));
    assert_eq!(out.stderr, "b\n");
    scene.sh("tb-fixture print-err lost truncate-stderr 2>err").run().ok();
    assert_eq!(scene.read("err"), "truncated\n");
}

#[test]
fn the_end_is_what_the_words_say() {
    let scene = Scene::new();
    assert_eq!(scene.fixture("kill-self ABRT").run().signal, Some(6));
    assert_eq!(scene.fixture("ignore TERM kill-self SIGTERM").run().signal, Some(15));
    scene.fixture("exit 0").run().ok();
    scene.fixture("-- false").run().expect(1);
    scene.fixture("exec /nowhere/no-such-command").run().expect(127);
    scene.fixture("exec /").run().expect(126);
    assert_eq!(scene.fixture("life 1 hold").run().signal, Some(14), "SIGALRM ends what outlives its life");
}

#[test]
fn a_typing_error_has_no_effects() {
    let scene = Scene::new();
    for words in
        ["stamp mark slep 1", "stamp mark spawn-same [ slep ]", "stamp mark spawn-same [ hold", "exit x"]
    {
        scene.fixture(words).run().expect(2);
    }
    assert_eq!(scene.read("mark"), "");
    assert!(scene.births().is_empty());
}

#[test]
fn masks_and_descriptors_are_shown() {
    let scene = Scene::new();
    let out =
        scene.cmd("tb-fixture").arg("caught-signals").through(["ignore", "CHLD", "block", "USR1"]).run().ok();
    let mask = |name: &str| {
        let line = out.stdout.lines().find(|l| l.starts_with(name)).expect("it is printed");
        u64::from_str_radix(line.rsplit(' ').next().expect("a number"), 16).expect("hexadecimal")
    };
    let bit = |signal: i32| 1_u64 << (signal - 1);
    assert_ne!(mask("SigIgn") & bit(libc::SIGCHLD), 0);
    assert_ne!(mask("SigBlk") & bit(libc::SIGUSR1), 0);
    assert_eq!(mask("SigBlk") & bit(libc::SIGTERM), 0);
    // Besides the three there may be what our own parents left open for everybody.
    let fds: Vec<i32> =
        out.stdout.lines().filter_map(|l| l.strip_prefix("fd ")?.split(' ').next()?.parse().ok()).collect();
    let inherited = |fd: &i32| *fd > 2 && std::path::Path::new(&format!("/proc/self/fd/{fd}")).exists();
    assert_eq!(fds.iter().filter(|fd| !inherited(fd)).collect::<Vec<_>>(), [&0, &1, &2]);
    // What the fixture becomes does not inherit that Rust ignores SIGPIPE.
    let out = scene.cmd("cat").arg("/proc/self/status").through(["ignore", "HUP"]).run().ok();
    let line = out.stdout.lines().find(|l| l.starts_with("SigIgn")).expect("it is there");
    let mask = u64::from_str_radix(line.rsplit('\t').next().expect("a number"), 16).expect("hexadecimal");
    assert_ne!(mask & bit(libc::SIGHUP), 0);
    // Nor does it get what our own parents ignore (a shell's `&`: INT and QUIT).
    assert_eq!(mask & (bit(libc::SIGPIPE) | bit(libc::SIGINT) | bit(libc::SIGQUIT) | bit(libc::SIGTERM)), 0);
}

#[test]
fn nobody_and_limits() {
    let scene = Scene::nobody();
    let out = scene.sh("id -u; id -g; id -G; touch mine && echo written").run().ok();
    if tb_tests::root() {
        assert_eq!(out.stdout, format!("{NOBODY}\n{NOBODY}\n{NOBODY}\nwritten\n"));
    } else {
        assert!(out.stdout.ends_with("written\n"));
    }
    let out = scene
        .sh("ulimit -n; ulimit -f")
        .through(["limit", "nofile", "40", "limit", "fsize", "1024"])
        .run()
        .ok();
    assert_eq!(out.stdout, "40\n2\n", "POSIX counts files in blocks of 512 bytes");
    scene.fixture("spawn-same [ exit 0 ] wait-children").run().ok();
    assert_eq!(scene.births().len(), 2, "nobody can register too");
}

#[test]
fn a_single_command_as_nobody() {
    let scene = Scene::new();
    scene.fixture("spawn-same [ exit 0 ] wait-children").as_nobody().run().ok();
    assert_eq!(scene.births().len(), 2);
    let out = scene.sh("touch not-mine").as_nobody().run();
    assert_eq!(out.code == Some(0), !tb_tests::root());
}
