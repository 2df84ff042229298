//! Whom a guard must never touch.

use crate::{guard, monitor, timeout};
use rustix::process::Signal;
use tb_tests::{Scene, until};

#[test]
fn children_that_a_shell_had_before_it_became_the_guard_are_untouched() {
    let scene = Scene::new();
    timeout(&scene, "--version").run().ok();
    for guard in ["tb-guard", "./timeout"] {
        let scene = Scene::new();
        timeout(&scene, "--version").run().ok();
        let script = format!("tb-fixture role old hold & exec {guard} 0.5 sh -c 'sleep 100; echo foo'");
        let out = scene.sh(&script).held_pipes().run().expect(124);
        assert!(!out.stdout.contains("foo"), "{out}");
        assert!(scene.await_birth("old").alive(), "bug 9098");
    }
    let out =
        scene.sh("out=$(sleep .1 & exec ./timeout .5 sh -c 'sleep 2; echo foo'); echo \"$? $out\"").run();
    assert_eq!(out.stdout, "124 \n");
}

#[test]
fn they_are_untouched_when_the_monitor_is_killed_even_if_they_have_daemonized() {
    let scene = Scene::new();
    // The daemon's parent is gone before the monitor is: it has come to the guard, whose child it is then.
    let script = "tb-fixture role old hold & \
        tb-fixture role parent spawn-setsid [ role daemonized hold ] await go & \
        exec tb-guard 60 tb-fixture role command hold";
    let running = scene.sh(script).held_pipes().spawn();
    scene.await_birth("command");
    let (old, daemonized) = (scene.await_birth("old"), scene.await_birth("daemonized"));
    let parent = scene.await_birth("parent");
    let monitor = monitor(&running);
    scene.file("go", "");
    until("the parent has gone", || (!parent.alive()).then_some(()));
    until("the daemon has come to the guard", || daemonized.stat().filter(|s| s.ppid == running.pid()));
    // The guard has seen that: it has nothing else to do, and sleeps again.
    until("the guard sleeps", || running.proc().stat().filter(|s| s.state == 'S'));
    assert!(monitor.kill());
    running.wait().expect(125);
    assert!(old.alive() && daemonized.alive());
    assert!(!scene.await_birth("command").alive());
}

#[test]
fn a_failed_fork_signals_nothing_and_is_125() {
    if !tb_tests::root() {
        // Whoever runs this has processes of unknown number: the limit cannot be set where it bites.
        return;
    }
    let scene = Scene::nobody();
    let bystander = scene.fixture("role bystander hold").spawn();
    let bystander_proc = scene.await_birth("bystander");
    // With one for the guard and one for the bystander, the monitor cannot start; with three, the command cannot.
    for limit in ["1", "2", "3"] {
        let out = guard(&scene, "9", "role never hold").through(["limit", "nproc", limit]).run().expect(125);
        assert!(out.stderr.starts_with("tb-guard: cannot start the "), "{out}");
        assert!(bystander_proc.alive());
    }
    assert!(scene.births().iter().all(|b| b.role != "never"));
    bystander.signal(Signal::KILL);
}

#[test]
fn pid_1_of_a_namespace_guards_and_is_guarded() {
    let scene = Scene::new();
    timeout(&scene, "--version").run().ok();
    let namespace = "unshare --pid --fork --map-root-user";
    if scene.sh(&format!("{namespace} true")).run().code != Some(0) {
        eprintln!("no PID namespaces here: not tested");
        return;
    }
    for guard in ["tb-guard", "./timeout"] {
        scene.sh(&format!("{namespace} {guard} 60 sh -c 'exit 3'")).run().expect(3);
        scene.sh(&format!("{namespace} {guard} .1 sleep 100")).run().expect(124);
        scene.sh(&format!("{namespace} {guard} -k .2 .1 tb-fixture ignore-term hold")).run().expect(137);
    }
    // Its /proc is another namespace's: a mounted one of its own, and none that fits.
    scene.sh(&format!("{namespace} --mount-proc tb-guard --grace .2 .7 tb-fixture spawn-setsid [ ignore-term hold ] hold")).run().expect(124);
    scene.assert_quiet();
}
