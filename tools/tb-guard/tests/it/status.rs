//! Exit statuses: the command's, or timeout's.

use crate::{guard, timeout};
use tb_tests::Scene;

#[test]
fn a_command_that_ends_first_gives_its_own_status() {
    let scene = Scene::new();
    for code in [0, 1, 2, 7, 124, 125, 137, 255] {
        timeout(&scene, "60 sh -c").arg(format!("exit {code}")).run().expect(code);
        scene.tool("tb-guard").args(["60", "sh", "-c"]).arg(format!("exit {code}")).run().expect(code);
    }
}

#[test]
fn a_command_that_dies_of_a_signal_takes_the_guard_along_and_leaves_one_core_at_most() {
    let scene = Scene::new();
    for (name, signal) in
        [("TERM", 15), ("KILL", 9), ("INT", 2), ("SEGV", 11), ("HUP", 1), ("USR1", 10), ("PIPE", 13)]
    {
        let out = guard(&scene, "60", &format!("limit core 0 kill-self {name}")).run();
        assert_eq!((out.code, out.signal), (None, Some(signal)), "{out}");
        let out =
            timeout(&scene, "60").args(scene.fixture_argv(&format!("limit core 0 kill-self {name}"))).run();
        assert_eq!((out.code, out.signal), (None, Some(signal)), "{out}");
    }
}

#[test]
fn a_core_is_said() {
    let scene = Scene::new();
    // Whether there is one depends on where this machine puts them: the kernel's own word decides.
    let out = scene
        .sh("ulimit -c unlimited; tb-guard 60 sh -c 'kill -QUIT $$'; echo $?; python3 -c 'import os; p = os.fork() or os.kill(os.getpid(), 3); print(os.WCOREDUMP(os.wait()[1]))'; rm -f core core.*")
        .run();
    if out.stdout.contains("True") {
        assert!(out.stderr.contains("tb-guard: the monitored command dumped core\n"), "{out}");
    } else {
        assert!(!out.stderr.contains("dumped core\n"), "{out}");
    }
}

#[test]
fn time_up_is_124_whatever_the_command_says_then() {
    let scene = Scene::new();
    guard(&scene, "0.1", "hold").run().expect(124);
    guard(&scene, "0.5", "on-term [ exit 0 ] hold").run().expect(124);
    guard(&scene, "0.5", "on-term [ exit 9 ] hold").run().expect(124);
    guard(&scene, "-p 0.5", "on-term [ exit 9 ] hold").run().expect(9);
    guard(&scene, "-p 0.1", "hold").run().expect(143);
    guard(&scene, "-f 0.1", "hold").run().expect(124);
}

#[test]
fn kill_is_137_where_it_was_asked_for_and_124_where_it_was_ours() {
    let scene = Scene::new();
    for name in ["tb-guard", "timeout"] {
        let guard = |options: &str, words: &str| {
            let options = options.split_ascii_whitespace();
            let tool = if name == "timeout" { timeout(&scene, "") } else { scene.tool(name) };
            tool.args(options).args(scene.fixture_argv(words)).env("TB_KILL_GRACE", "0.2").run()
        };
        guard("-k 0.2 0.1", "ignore-term hold").expect(137);
        guard("-f -k 0.2 0.1", "ignore-term hold").expect(137);
        guard("-s KILL 0.1", "hold").expect(137);
        guard("-f -s KILL 0.1", "hold").expect(137);
        guard("-s 0 -k 0.2 0.1", "hold").expect(137);
        guard("0.1", "ignore-term hold").expect(124);
        guard("-p 0.1", "ignore-term hold").expect(137);
        // KILL was asked for and not needed.
        guard("-k 20 0.1", "hold").expect(124);
    }
}

#[test]
fn timeout_s_stop_k_ends_all_the_same() {
    let scene = Scene::new();
    guard(&scene, "-s STOP -k 0.2 0.1", "hold").run().expect(137);
    guard(&scene, "-s STOP --grace 0.2 0.1", "spawn-setsid hold").run().expect(124);
    timeout(&scene, "-s STOP -k .2 .1 sleep 100").run().expect(137);
    timeout(&scene, "-s TSTP -k .2 .1 sleep 100").run().expect(137);
    scene.assert_quiet();
}

#[test]
fn v_says_each_signal_and_to_whom() {
    let scene = Scene::new();
    let out = timeout(&scene, "-v -s0 -k .1 .1 sleep 100").run().expect(137);
    let want =
        "timeout: sending signal 0 to command 'sleep'\ntimeout: sending signal KILL to command 'sleep'\n";
    assert_eq!(out.stderr, want);
    let out = timeout(&scene, "--verbose .1 sleep 100").run().expect(124);
    assert_eq!(out.stderr, "timeout: sending signal TERM to command 'sleep'\n");
    let out = timeout(&scene, "-v -s KILL .1 sleep 100").run().expect(137);
    assert_eq!(out.stderr, "timeout: sending signal KILL to command 'sleep'\n");
}

#[test]
fn v_that_nobody_can_be_told_changes_no_status_and_holds_up_nothing() {
    let scene = Scene::new();
    for name in ["./timeout", "tb-guard"] {
        timeout(&scene, "--version").run().ok();
        scene.sh(&format!("{name} -v .1 sleep 100 2>/dev/full")).run().expect(124);
        scene.sh(&format!("{name} -v .1 sleep 100 2>&-")).run().expect(124);
    }
    // A pipe that is full, and that nobody reads.
    let script =
        "mkfifo full; exec 4<>full; head -c 65536 /dev/zero >&4; ./timeout -v .1 tb-fixture hold 2>&4";
    scene.sh(script).run().expect(124);
    scene.assert_quiet();
}
