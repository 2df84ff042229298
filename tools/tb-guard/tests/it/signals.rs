//! Signals: handed on, inherited as they were, and never mistaken.

use crate::{guard, monitor, set, timeout};
use rustix::process::Signal;
use std::time::Duration;
use tb_tests::{Cmd, Running, Scene, until};

const fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

fn ready(cmd: Cmd<'_>, scene: &Scene, role: &str) -> Running {
    let running = cmd.spawn();
    scene.await_birth(role);
    running
}

/// A shell that writes down each signal it gets, a line each.
const NOTING: &str = "for s in HUP INT QUIT TERM USR1 USR2 ALRM; do trap \"echo $s >>got\" $s; done; \
    echo >ready; while :; do sleep 0.05; done";

fn noting(scene: &Scene, options: &str) -> Running {
    let options = options.split_ascii_whitespace();
    let running = scene.tool("tb-guard").args(options).args(["sh", "-c", NOTING]).spawn();
    until("the shell listens", || scene.path("ready").exists().then_some(()));
    running
}

#[test]
fn a_forwarded_term_leaves_the_status_to_the_command() {
    let scene = Scene::new();
    let running = ready(guard(&scene, "60", "on-term [ exit 7 ] role r hold"), &scene, "r");
    running.signal(Signal::TERM);
    running.wait().expect(7);
    let running = ready(guard(&scene, "60", "role s hold"), &scene, "s");
    running.signal(Signal::HUP);
    assert_eq!(running.wait().signal, Some(1));
}

#[test]
fn what_ignores_int_gets_term_when_the_command_is_gone_and_not_before() {
    // A shell's `&` leaves INT ignored.
    let script = "trap 'echo int >got; until test -e go; do sleep 0.05; done; exit 3' INT
        sh -c 'trap \"echo term >told; exit\" TERM; echo >ready; while :; do sleep 0.05; done' &
        while :; do sleep 0.05; done";
    for (options, code) in [("60", 3), ("-f 60", 3), ("-s INT 1", 124)] {
        let scene = Scene::new();
        // No grace ends within the test.
        let options = ["--grace", "1000"].into_iter().chain(options.split_ascii_whitespace());
        let running = scene.tool("tb-guard").args(options).args(["sh", "-c", script]).spawn();
        until("what is in the background listens", || scene.path("ready").exists().then_some(()));
        if code == 3 {
            running.signal(Signal::INT);
        }
        until("the command has its signal", || (!scene.read("got").is_empty()).then_some(()));
        assert_eq!(scene.read("told"), "", "the command may still need it");
        scene.file("go", "");
        let out = running.wait().expect(code);
        assert_eq!(scene.read("told"), "term\n", "{out}");
        scene.assert_quiet();
    }
}

#[test]
fn a_command_that_dies_of_ctrl_c_leaves_nothing_that_waits_for_kill() {
    let scene = Scene::new();
    let words = "spawn-setsid [ ignore INT on-term [ append told term exit 0 ] hold ] role r hold";
    let tool = scene.tool("tb-guard").args(["--grace", "1000", "60"]).args(scene.fixture_argv(words));
    let running = ready(tool, &scene, "setsid");
    scene.await_birth("r");
    running.signal(Signal::INT);
    assert_eq!(running.wait().signal, Some(2));
    assert_eq!(scene.read("told"), "term\n");
    scene.assert_quiet();
}

#[test]
fn alrm_means_that_the_time_is_up_even_where_it_was_ignored_or_blocked() {
    for through in [vec![], vec!["ignore", "ALRM"], vec!["block", "ALRM"]] {
        let scene = Scene::new();
        let running = ready(guard(&scene, "60", "role r hold").through(&through), &scene, "r");
        running.signal(Signal::ALARM);
        running.wait().expect(124);
        guard(&scene, "0.1", "hold").through(&through).run().expect(124);
    }
}

#[test]
fn signals_that_ask_for_no_stop_are_handed_on_and_kill_follows_with_k_alone() {
    let scene = Scene::new();
    let running = noting(&scene, "60");
    for (signal, name) in [(Signal::USR1, "USR1\n"), (Signal::USR2, "USR2\n")] {
        running.signal(signal);
        until("the command has it", || scene.read("got").contains(name).then_some(()));
    }
    assert!(!running.ended());
    running.signal(Signal::KILL);
    drop(running);
    scene.assert_quiet();

    let scene = Scene::new();
    let running = noting(&scene, "-k 0.3 60");
    running.signal(Signal::USR1);
    assert_eq!(running.wait().signal, Some(9), "as timeout, which its own KILL hits");
    assert_eq!(scene.read("got"), "USR1\n");
}

#[test]
fn a_first_signal_arrives_once_and_a_second_within_half_a_second_is_the_same_wish() {
    let scene = Scene::new();
    let running = noting(&scene, "--grace 30 60");
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    until("the command has it", || scene.read("got").ends_with('\n').then_some(()));
    std::thread::sleep(Duration::from_millis(600));
    assert!(!running.ended(), "KILL only after the grace");
    // Of two that wait to be heard, the lower number is heard first.
    let got = scene.read("got");
    assert!(["TERM\n", "INT\n"].contains(&got.as_str()), "{got}");
    running.signal(Signal::TERM);
    let out = running.wait();
    assert_eq!(out.signal, Some(9), "{out}");
    assert!(out.took < Duration::from_secs(30), "{out}");
}

#[test]
fn what_is_ignored_at_the_start_stays_ignored() {
    let scene = Scene::new();
    let words = "role r hold";
    let all = ["ignore", "HUP", "ignore", "INT", "ignore", "USR1", "ignore", "PIPE"];
    let running = ready(guard(&scene, "60", words).through(all), &scene, "r");
    let wanted = bit(Signal::HUP) | bit(Signal::INT) | bit(Signal::USR1) | bit(Signal::PIPE);
    let command = scene.await_birth("r");
    assert_eq!(set(command, "SigIgn") & wanted, wanted);
    for signal in [Signal::HUP, Signal::INT, Signal::USR1, Signal::PIPE] {
        running.signal(signal);
    }
    running.signal(Signal::ALARM);
    running.wait().expect(124);
    // A shell's `&` leaves INT ignored: it is no wish of anybody's.
    let out = scene.sh("tb-guard 2 tb-fixture stamp up hold & until test -e up; do sleep .02; done; kill -INT $!; wait $!").run();
    assert_eq!(out.code, Some(124), "{out}");
}

#[test]
fn a_signal_that_is_named_arrives_though_the_caller_ignored_it() {
    let scene = Scene::new();
    let script = "trap 'echo int; exit 3' INT; while :; do sleep 0.05; done";
    let cmd = timeout(&scene, "-p -s INT 0.5 sh -c").arg(script).through(["ignore", "INT"]);
    cmd.run().expect(3).says("int\n");
}

#[test]
fn the_mask_and_the_dispositions_are_handed_on_as_they_were() {
    let scene = Scene::new();
    // A program that changes none of them itself.
    let look = |through: &[&str]| {
        let tool = scene.tool("tb-guard").args(["60", "grep", "^Sig", "/proc/self/status"]);
        tool.through(through).run().ok()
    };
    for (through, field, want) in [
        (&[][..], "SigBlk", 0),
        (&[], "SigIgn", 0),
        (&["block", "TERM"], "SigBlk", bit(Signal::TERM)),
        (&["block", "CHLD"], "SigBlk", bit(Signal::CHILD)),
        (&["block", "ALRM"], "SigBlk", bit(Signal::ALARM)),
        (&["ignore", "PIPE"], "SigIgn", bit(Signal::PIPE)),
        (&["ignore", "HUP"], "SigIgn", bit(Signal::HUP)),
        (&["ignore", "ALRM"], "SigIgn", bit(Signal::ALARM)),
        // timeout gives these their default.
        (&["ignore", "TTIN"], "SigIgn", 0),
        (&["ignore", "TTOU"], "SigIgn", 0),
        (&["ignore", "CHLD"], "SigIgn", 0),
    ] {
        let out = look(through);
        assert!(out.stdout.contains(&format!("{field}:\t{want:016x}")), "{through:?}: {out}");
    }
}

#[test]
fn a_parent_that_ignores_or_blocks_sigchld_confuses_nobody() {
    let scene = Scene::new();
    for through in [["ignore", "CHLD"], ["block", "CHLD"]] {
        guard(&scene, "60", "exit 4").through(through).run().expect(4);
        guard(&scene, "0.1", "hold").through(through).run().expect(124);
        timeout(&scene, "10 true").through(through).run().ok();
    }
}

#[test]
fn closed_descriptors_are_closed_in_the_command_and_break_nothing() {
    let scene = Scene::new();
    let list = "ls /proc/self/fd >&5; :";
    for fds in [vec![0], vec![1], vec![2], vec![0, 1, 2]] {
        let closing: String = fds.iter().map(|fd| format!(" {fd}>&-")).collect();
        for name in ["tb-guard", "./timeout"] {
            timeout(&scene, "--version").run().ok();
            scene.sh(&format!("exec 5>&1; {name} 9 sh -c '{list}'{closing}")).run();
            let script = format!("{name} 9 tb-fixture births seen ready exit 6{closing}");
            scene.sh(&script).run().expect(6);
            let script = format!(
                "{name} 9 sh -c 'for fd in 0 1 2; do test -e /proc/$$/fd/$fd && echo $fd; done >seen-fds; :'{closing}"
            );
            scene.sh(&script).run().ok();
            let open: String = (0..3).filter(|fd| !fds.contains(fd)).map(|fd| format!("{fd}\n")).collect();
            // The shell's own redirection takes 1 while it looks.
            let seen = scene.read("seen-fds");
            let seen: String = seen.lines().filter(|l| *l != "1").map(|l| format!("{l}\n")).collect();
            assert_eq!(seen, open.replace("1\n", ""), "{name}, closed: {fds:?}");
        }
    }
    // No descriptor of ours reaches the command, and all of the caller's do.
    let fds = |out: tb_tests::Output| out.stdout.lines().filter(|l| l.starts_with("fd ")).count();
    let without = fds(scene.fixture("caught-signals").run().ok());
    assert_eq!(fds(guard(&scene, "9", "caught-signals").run().ok()), without);
}

#[test]
fn a_line_of_ours_that_nobody_reads_is_no_signal_to_the_command() {
    let scene = Scene::new();
    let script = "tb-guard --heartbeat 0.05 60 tb-fixture sleep 0.5 exit 6 2>&1 >/dev/null | true; : ";
    scene.sh(script).run().ok();
    // The same with the status: the reader is gone before the first beat.
    let script = "mkfifo p; exec 3<>p; exec 4>p; exec 3<&-; \
        tb-guard --heartbeat 0.05 60 tb-fixture sleep 0.5 exit 6 2>&4";
    scene.sh(script).run().expect(6);
}

#[test]
fn nested_timeouts_hand_their_signals_down_and_the_outer_is_the_first() {
    let scene = Scene::new();
    timeout(&scene, "--version").run().ok();
    let script = "trap 'echo int; exit 0' INT; echo >ready; while :; do sleep 0.05; done";
    let running = timeout(&scene, "-sALRM 60 ./timeout -sINT 50 sh -c").arg(script).spawn();
    until("the shell listens", || scene.path("ready").exists().then_some(()));
    running.signal(Signal::ALARM);
    running.wait().expect(124).says("int\n");
    scene.assert_quiet();
}

#[test]
fn a_request_wakes_a_monitor_that_was_stopped() {
    let scene = Scene::new();
    let running = ready(guard(&scene, "60", "role r hold"), &scene, "r");
    crate::halt(monitor(&running));
    running.signal(Signal::TERM);
    assert_eq!(running.wait().signal, Some(15));
    scene.assert_quiet();
}

#[test]
fn more_signals_than_anybody_reads_neither_block_the_guard_nor_hide_the_one_that_counts() {
    let scene = Scene::new();
    let running = ready(guard(&scene, "60", "role r ignore USR1 hold"), &scene, "r");
    for _ in 0..20_000 {
        running.signal(Signal::USR1);
    }
    running.signal(Signal::TERM);
    assert_eq!(running.wait().signal, Some(15));
}
