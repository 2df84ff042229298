//! Waiting, attached or not: limits, Ctrl-C, several jobs, and what becomes of the jobs.

use crate::job::{Job, kill_hard, launch};
use rustix::process::Signal;
use std::time::Duration;
use tb_tests::{Scene, until};

#[test]
fn ctrl_c_detaches_and_the_job_goes_on() {
    for signal_early in [false, true] {
        let scene = Scene::new();
        let launcher = scene
            .tool("tb-launch")
            .args(["--wait", "--name", "j", "--", "tb-fixture", "await", "go", "exit", "0"])
            .spawn();
        if signal_early {
            // As soon as the job executes, before the launcher has said so.
            scene.await_birth("main");
        } else {
            launcher.until_stdout("Log: ");
        }
        launcher.signal(Signal::INT);
        launcher.wait().expect(130).complains("interrupted").complains("tb-wait j");
        let job = Job::named(&scene, "j");
        job.tool("tb-status", &[]).run().expect(3);
        scene.file("go", "");
        job.wait(0);
        job.assert_ended("passed", "exit");
    }
}

#[test]
fn a_waiter_that_is_interrupted_says_so() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "hold");
    let waiter = job.tool("tb-wait", &["--heartbeat", "50ms"]).spawn();
    let said = waiter.until_stderr("s elapsed]\n");
    assert!(said.contains("] j: RUNNING [0s elapsed]"), "{said}");
    waiter.signal(Signal::INT);
    waiter.wait().expect(130);
    assert!(job.leader().alive());
}

#[test]
fn c60_when_the_waiters_time_is_up_the_job_goes_on() {
    let scene = Scene::new();
    let out = scene
        .tool("tb-launch")
        .args(["--wait", "--timeout", "100ms", "--name", "j", "--", "tb-fixture", "hold"])
        .run()
        .expect(124);
    out.complains("it goes on");
    let job = Job::named(&scene, "j");
    job.tool("tb-wait", &["--timeout", "50ms"]).run().expect(124);
    job.tool("tb-status", &[]).run().expect(3);
    job.tool("tb-wait", &["--timeout", "50ms", "--kill-on-timeout"]).run().expect(124).complains("stopped");
    assert_eq!(job.assert_ended("killed", "kill")["signal"], "SIGTERM");
}

#[test]
fn a_foreground_job_ends_with_its_launcher_whoever_ends_that() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        for early in [false, true] {
            let scene = Scene::new();
            let launcher = scene
                .tool("tb-launch")
                .args(["--foreground", "--grace", "20s", "--name", "j", "--", "tb-fixture"])
                .args("spawn-setsid [ hold ] term-handler 0.05 finished".split(' '))
                .env("TB_HEARTBEAT", "50ms")
                .spawn();
            scene.await_birth("main");
            if !early {
                launcher.until_stderr("s elapsed]");
            }
            launcher.signal(signal);
            launcher.wait().expect(1);
            let job = Job::named(&scene, "j");
            assert_eq!(job.assert_ended("killed", "kill")["exit_code"], 0);
            assert!(scene.path("finished").exists());
        }
    }
}

#[test]
fn a_foreground_job_that_ends_by_itself_gives_its_code() {
    let scene = Scene::new();
    for (exit, code) in [("0", 0), ("3", 1)] {
        let name = format!("j{exit}");
        let words = ["--foreground", "--name", &name, "--", "tb-fixture", "exit", exit];
        scene.tool("tb-launch").args(words).run().expect(code).says("FINISHED");
    }
    scene.assert_quiet();
}

#[test]
fn of_several_jobs_the_worst_code_counts_and_each_is_told() {
    let scene = Scene::new();
    let pass = launch(&scene, "pass", &[], "exit 0");
    let fail = launch(&scene, "fail", &[], "exit 1");
    let lost = launch(&scene, "lost", &[], "hold");
    let wait = |names: &[&str]| scene.tool("tb-wait").args(["--timeout", "200ms"]).args(names).run();
    pass.wait(0);
    fail.wait(1);
    wait(&["pass", "fail"]).expect(1).says("pass: FINISHED (PASS)").says("fail: FINISHED (FAIL)");
    wait(&["pass", "lost"]).expect(124);
    let (front, monitor) = lost.halves();
    crate::job::freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    kill_hard(lost.leader());
    wait(&["pass", "fail", "lost"]).expect(5);
    wait(&["pass", "nobody"]).expect(4);
    wait(&["pass", "pass"]).expect(0);
}

#[test]
fn any_ends_with_the_first_and_its_code() {
    let scene = Scene::new();
    let slow = launch(&scene, "slow", &[], "hold");
    let quick = launch(&scene, "quick", &[], "await go exit 3");
    let waiter = scene.tool("tb-wait").args(["--any", "slow", "quick"]).spawn();
    scene.file("go", "");
    let out = waiter.wait().expect(1);
    assert!(out.stdout.starts_with("quick: FINISHED (FAIL)") && !out.stdout.contains("slow"), "{out}");
    slow.tool("tb-status", &[]).run().expect(3);
    let _ = quick;
}

#[test]
fn many_waiters_on_a_job_are_all_told_the_same() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 3");
    let waiters: Vec<_> = (0..8).map(|_| job.tool("tb-wait", &[]).spawn()).collect();
    scene.file("go", "");
    for waiter in waiters {
        waiter.wait().expect(1).says("exit 3");
    }
}

#[test]
fn a_waiter_is_woken_whatever_part_of_the_end_it_meets() {
    // What outlives the leader holds up the record: the wait goes on over the leader's end.
    let scene = Scene::new();
    let words = "spawn-setsid [ term-handler 0.3 leak-finished ] await go exit 0";
    let job = launch(&scene, "j", &["--grace", "20s"], words);
    scene.await_birth("setsid");
    let waiter = job.tool("tb-wait", &[]).spawn();
    scene.file("go", "");
    until("the leader is gone", || (!job.leader().alive()).then_some(()));
    let late = job.tool("tb-wait", &[]).spawn();
    waiter.wait().expect(0);
    late.wait().expect(0);
    assert!(scene.path("leak-finished").exists(), "the record came after all of it");
    job.assert_ended("passed", "exit");
}

#[test]
fn jobs_that_end_at_once_are_waited_for_without_delay_or_error() {
    let scene = Scene::new();
    let script = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); tb-launch --wait --timeout 50s --name j -- sh -c \"exit $((i % 2))\" \
                  >out 2>&1; c=$?; [ $c = $((i % 2)) ] || { echo \"$i: $c\"; cat out; exit 9; }; done";
    scene.sh(script).deadline(Duration::from_secs(180)).run().ok();
    scene.assert_quiet();
}
