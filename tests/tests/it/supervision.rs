//! A supervisor in two halves: what either's death, both deaths, and a stop of one leave of a job.

use crate::job::{Job, freeze, kill_hard, launch, launch_argv};
use rustix::process::Signal;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tb_tests::{Scene, until};

fn stopping(job: &Job<'_>) -> Option<Value> {
    job.records("STOPPING").pop()
}

#[test]
fn the_death_of_the_front_leaves_the_job_and_its_verdict() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 3");
    assert_eq!(job.status()["supervision"], "double");
    let (front, monitor) = job.halves();
    kill_hard(front);
    let status = job.until_status("supervision", "single");
    assert_eq!(status["supervisors"], serde_json::json!([monitor.pid]));
    assert_eq!(status["status"], "RUNNING");
    scene.file("go", "");
    job.wait(1);
    let footer = job.assert_ended("failed", "exit");
    assert_eq!((&footer["exit_code"], &footer["signal"]), (&3.into(), &Value::Null));
}

#[test]
fn the_death_of_the_monitor_leaves_the_job_and_its_verdict() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 3");
    let (front, monitor) = job.halves();
    kill_hard(monitor);
    let status = job.until_status("supervision", "single");
    assert_eq!(status["supervisors"], serde_json::json!([front.pid]));
    assert!(job.pid_file().exists());
    scene.file("go", "");
    job.wait(1);
    let footer = job.assert_ended("failed", "exit");
    assert_eq!((&footer["exit_code"], &footer["signal"]), (&3.into(), &Value::Null));
    assert!(footer["cpu_seconds"].is_number() && footer["max_rss_kb"].is_number(), "{footer}");
}

#[test]
fn a_pass_stays_a_pass_whichever_half_is_left() {
    for which in 0..2 {
        let scene = Scene::new();
        let job = launch(&scene, "j", &[], "await go exit 0");
        let (front, monitor) = job.halves();
        kill_hard([front, monitor][which]);
        scene.file("go", "");
        job.wait(0);
        assert_eq!(job.assert_ended("passed", "exit")["exit_code"], 0);
    }
}

#[test]
fn a_single_half_stops_the_whole_tree() {
    for which in 0..2 {
        let scene = Scene::new();
        let words = "daemon-envclear [ ignore-term hold ] spawn-setsid [ ignore-term hold ] hold";
        let job = launch(&scene, "j", &[], words);
        scene.await_birth("daemon-envclear");
        scene.await_birth("setsid");
        let (front, monitor) = job.halves();
        kill_hard([front, monitor][which]);
        job.kill("200ms", 0).says("Killed j [PID:");
        let footer = job.assert_ended("killed", "kill");
        assert_eq!(footer["stopped_with"], "SIGKILL");
    }
}

#[test]
fn the_monitors_death_during_a_grace_shortens_and_repeats_nothing() {
    let scene = Scene::new();
    let words =
        "on-term [ append leader-terms x ] spawn-setsid [ on-term [ append child-terms x ] hold ] hold";
    let job = launch(&scene, "j", &[], words);
    scene.await_birth("setsid");
    let kill = job.tool("tb-kill", &["--grace", "3s"]).spawn();
    until("both have had their TERM", || {
        (!scene.read("leader-terms").is_empty() && !scene.read("child-terms").is_empty()).then_some(())
    });
    kill_hard(job.halves().1);
    kill.wait().ok().says("Killed j [PID:");
    let footer = job.assert_ended("killed", "kill");
    assert_eq!((&footer["exit_code"], &footer["signal"]), (&Value::Null, &"SIGKILL".into()));
    assert_eq!(job.records("STOPPING").len(), 1, "one announcement in\n{}", job.log());
    assert_eq!((scene.read("leader-terms"), scene.read("child-terms")), ("x\n".into(), "x\n".into()));
}

#[test]
fn the_monitors_death_while_leaks_are_stopped_keeps_the_list_and_the_one_signal() {
    let scene = Scene::new();
    let words = "spawn-setsid [ on-term [ append terms x ] hold ] daemon [ role quick hold ] await go exit 0";
    let job = launch(&scene, "j", &["--grace", "3s"], words);
    let slow = scene.await_birth("setsid");
    let quick = scene.await_birth("quick");
    scene.file("go", "");
    until("the leak has had its TERM", || (!scene.read("terms").is_empty()).then_some(()));
    until("the other leak is gone", || (!quick.alive()).then_some(()));
    assert_eq!(job.status()["status"], "RUNNING", "what it left is being stopped");
    kill_hard(job.halves().1);
    job.wait(0);
    let footer = job.assert_ended("passed", "exit");
    assert_eq!(scene.read("terms"), "x\n");
    let mut leaked: Vec<u64> =
        footer["leaked"].as_array().unwrap().iter().map(|l| l["pid"].as_u64().unwrap()).collect();
    leaked.sort_unstable();
    let mut expected = vec![u64::from(slow.pid), u64::from(quick.pid)];
    expected.sort_unstable();
    assert_eq!(leaked, expected, "also the one that was gone when the front took over: {footer}");
}

#[test]
fn without_both_halves_a_job_is_unsupervised_and_ends_without_a_verdict() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 0");
    let waiter = job.tool("tb-wait", &[]).spawn();
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    waiter.until_stderr("runs unsupervised");
    let status = job.tool("tb-status", &[]).run().expect(3).says("RUNNING (unsupervised)");
    assert!(status.stdout.contains(&format!("PID: {}", job.leader().pid)));
    assert_eq!(job.status()["supervision"], "none");
    scene.tool("tb-launch").args(["--name", "j", "--", "true"]).run().expect(3);
    scene.tool("tb-clean").run().ok();
    assert!(job.pid_file().exists(), "tb-clean leaves it");
    scene.file("go", "");
    waiter.wait().expect(5);
    assert_eq!(job.status()["outcome"], "crashed");
    job.tool("tb-status", &[]).run().expect(5).says("FINISHED (no marker)");
    job.kill("1s", 0).says("j already finished (no marker)");
    // The next launch of that name works.
    scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]).run().ok();
    job.assert_ended("passed", "exit");
}

#[test]
fn an_unsupervised_job_is_stopped_by_evidence_and_recorded() {
    let scene = Scene::new();
    // The last has no evidence of its own: it is known as long as its parent lives.
    let words = "spawn-setsid [ ignore-term hold ] daemon [ role carrier ignore-term hold ] \
                 spawn-setsid [ role parent spawn-setsid [ role child ignore-term hold ] hold ] print-err x hold";
    let job = launch(&scene, "j", &[], words);
    for role in ["setsid", "carrier", "parent", "child"] {
        scene.await_birth(role);
    }
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    job.kill("300ms", 0).says("Killed j [PID:").says("unsupervised");
    let footer = job.assert_ended("killed", "kill");
    assert_eq!((&footer["exit_code"], &footer["signal"]), (&Value::Null, &Value::Null));
    assert_eq!(job.records("STOPPING").len(), 1);
    job.wait(1);
    job.kill("1s", 0).says("already finished (FAIL)");
}

#[test]
fn two_that_stop_an_unsupervised_job_at_once_both_succeed() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "ignore-term print partial hold");
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    let kills: Vec<_> = (0..3).map(|_| job.tool("tb-kill", &["--grace", "500ms"]).spawn()).collect();
    for kill in kills {
        kill.wait().ok();
    }
    job.assert_ended("killed", "kill");
}

#[test]
fn a_stop_reaches_a_job_whose_halves_are_both_stopped_and_neither_stays() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "hold");
    let (front, monitor) = job.halves();
    freeze(front);
    freeze(monitor);
    job.kill("5s", 0).says("Killed j [PID:");
    assert_eq!(job.assert_ended("killed", "kill")["signal"], "SIGTERM");
}

#[test]
fn a_front_that_somebody_stopped_takes_over_all_the_same() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 3");
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    until("the front is awake", || front.stat().filter(|s| s.state != 'T'));
    scene.file("go", "");
    job.wait(1);
    let footer = job.assert_ended("failed", "exit");
    assert_eq!(footer["exit_code"], 3);
}

#[test]
fn a_front_that_somebody_stopped_does_not_stay_after_an_ordinary_end() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 0");
    freeze(job.halves().0);
    scene.file("go", "");
    job.wait(0);
    job.assert_ended("passed", "exit");
}

#[test]
fn either_half_may_die_at_any_moment_of_a_job_and_its_end_is_still_the_true_one() {
    for round in 0..40_u32 {
        let scene = Scene::new();
        let options = ["--grace", "100ms"];
        // Every third leaves something behind, so that the end has its stages.
        let (words, leaks) = match round % 3 {
            0 => ("daemon [ ignore-term hold ] sleep 0.02 exit 3", 1),
            _ => ("sleep 0.02 exit 3", 0),
        };
        let job = launch_argv(&scene, "j", &options, &scene.fixture_argv(words));
        let (front, monitor) = job.halves();
        let moment = Instant::now() + Duration::from_millis(5) * round;
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        // It may have ended before that.
        [monitor, front][usize::from(round % 4 == 3)].kill();
        job.wait(1);
        let footer = job.assert_ended("failed", "exit");
        assert_eq!((&footer["exit_code"], &footer["signal"]), (&3.into(), &Value::Null), "{footer}");
        assert_eq!(footer["leaked"].as_array().unwrap().len(), leaks, "round {round}: {footer}");
    }
}

#[test]
fn either_half_may_die_at_any_moment_of_a_stop_which_succeeds_all_the_same() {
    for round in 0..40_u32 {
        let scene = Scene::new();
        let words = "on-term [ append terms x exit 0 ] spawn-setsid [ ignore-term hold ] hold";
        let job = launch(&scene, "j", &[], words);
        scene.await_birth("setsid");
        let (front, monitor) = job.halves();
        let kill = job.tool("tb-kill", &["--grace", "60ms"]).spawn();
        let moment = Instant::now() + Duration::from_millis(3) * round;
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        [monitor, front][usize::from(round % 4 == 3)].kill();
        kill.wait().ok().says("Killed j [PID:");
        let footer = job.assert_ended("killed", "kill");
        assert_eq!(job.records("STOPPING").len(), 1, "{footer}");
        assert!(scene.read("terms").len() <= 2, "no second TERM");
    }
}

#[test]
fn what_carries_the_cookie_is_found_though_its_main_thread_has_left() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "daemon [ ignore-term threads 2 ] hold");
    let daemon = scene.await_birth("daemon");
    until("its main thread is a zombie", || daemon.stat().filter(|s| s.state == 'Z'));
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    job.kill("200ms", 0);
    assert!(!daemon.alive());
    job.assert_ended("killed", "kill");
}

#[test]
fn a_monitor_that_does_not_answer_is_replaced_by_the_front() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "spawn-setsid [ ignore-term hold ] hold");
    scene.await_birth("setsid");
    let (_, monitor) = job.halves();
    let over = Arc::new(AtomicBool::new(false));
    let stopper = std::thread::spawn({
        let over = Arc::clone(&over);
        // Whoever wakes it is answered by the next stop.
        move || {
            while !over.load(Ordering::Relaxed) {
                monitor.signal(Signal::STOP);
            }
        }
    });
    job.kill("200ms", 0).says("Killed j [PID:");
    over.store(true, Ordering::Relaxed);
    stopper.join().expect("it does not panic");
    monitor.signal(Signal::CONT);
    job.assert_ended("killed", "kill");
}

#[test]
fn a_stop_that_only_the_front_had_heard_is_not_lost_with_the_monitor() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &["--grace", "10s"], "hold");
    let (front, monitor) = job.halves();
    freeze(monitor);
    front.signal(Signal::TERM);
    // The front has passed it on when the monitor has it pending (signal 40).
    until("the front has passed it on", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", monitor.pid)).ok()?;
        let pending = status.lines().filter_map(|l| l.strip_prefix("ShdPnd:")).next()?;
        let pending = u64::from_str_radix(pending.trim(), 16).ok()?;
        (pending >> 39 & 1 == 1).then_some(())
    });
    kill_hard(monitor);
    job.wait(1);
    assert_eq!(job.assert_ended("killed", "kill")["signal"], "SIGTERM");
}

#[test]
fn term_int_and_hup_to_either_half_are_a_stop_and_recorded_as_one() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        for which in 0..2 {
            let scene = Scene::new();
            let job = launch(&scene, "j", &["--grace", "10s"], "term-handler 0.05 finished");
            let (front, monitor) = job.halves();
            [front, monitor][which].signal(signal);
            job.wait(1);
            let footer = job.assert_ended("killed", "kill");
            assert_eq!(footer["exit_code"], 0);
            assert!(scene.path("finished").exists(), "its handler had its time");
            let by = stopping(&job).expect("it is announced")["by"].as_str().unwrap().to_owned();
            assert!(by.contains(&format!("[{}]", std::process::id())), "it names who asked: {by}");
        }
    }
}

#[test]
fn the_halves_are_what_they_promise() {
    let scene = Scene::new();
    let job = launch(&scene, "some-test-name", &[], "hold");
    let (front, monitor) = job.halves();
    let leader = job.leader();
    for half in [front, monitor] {
        let stat = half.stat().expect("it lives");
        assert_eq!((stat.pgid, stat.sid), (half.pid, half.pid), "a session and a group of its own");
        // What it was called with is gone once it has settled.
        until("its arguments are overwritten", || (half.command() == "tb-supervise").then_some(()));
        let link = |what: &str| std::fs::read_link(format!("/proc/{}/{what}", half.pid)).expect("it is ours");
        until("its directory is /", || (link("cwd") == std::path::Path::new("/")).then_some(()));
        for fd in 0..3 {
            assert_eq!(link(&format!("fd/{fd}")), std::path::Path::new("/dev/null"));
        }
        let threads = std::fs::read_dir(format!("/proc/{}/task", half.pid)).expect("it is ours").count();
        assert_eq!(threads, 1);
    }
    assert_eq!(monitor.stat().expect("it lives").ppid, front.pid);
    let stat = leader.stat().expect("it lives");
    assert_eq!((stat.ppid, stat.pgid, stat.sid), (monitor.pid, leader.pid, leader.pid));
    assert_eq!(std::fs::read_to_string(job.pid_file()).expect("it is there"), format!("{}\n", leader.pid));
    // Both are subreapers: what loses its parent comes to the monitor, and after that to the front.
    kill_hard(monitor);
    until("the leader is the front's", || leader.stat().filter(|s| s.ppid == front.pid));
    job.kill("1s", 0);
    job.assert_ended("killed", "kill");
}
