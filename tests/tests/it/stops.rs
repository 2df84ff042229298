//! A stop ends all of a job, lets those finish who do, and is bounded.

use crate::job::{Job, freeze, kill_hard, launch, launch_sh};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;
use tb_tests::{Scene, until};

/// What a busy machine may add to the bound of a stop.
const SLACK: Duration = Duration::from_secs(20);

#[test]
fn a_leader_that_somebody_kills_has_failed_with_its_signal() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "hold");
    kill_hard(job.leader());
    job.wait(1).says("died of SIGKILL");
    let footer = job.assert_ended("failed", "exit");
    assert_eq!((&footer["exit_code"], &footer["signal"]), (&Value::Null, &"SIGKILL".into()));
    let status = job.status();
    assert_eq!((&status["exit_code"], &status["signal"]), (&Value::Null, &"SIGKILL".into()));
}

#[test]
fn c44_a_leader_that_ignores_term_gets_kill_after_the_grace_and_the_stop_is_bounded() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "ignore-term hold");
    let out = job.kill("1s", 0).says("(1 process, KILL)");
    assert!(out.took >= Duration::from_secs(1), "the grace is given: {:?}", out.took);
    assert!(out.took < Duration::from_secs(1 + 5) + SLACK, "{:?}", out.took);
    let footer = job.assert_ended("killed", "kill");
    assert_eq!((&footer["signal"], &footer["stopped_with"]), (&"SIGKILL".into(), &"SIGKILL".into()));
}

#[test]
fn a_member_that_ignores_term_does_not_outlive_a_leader_that_does_not() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "spawn-same [ ignore-term hold ] hold");
    scene.await_birth("same");
    job.kill("300ms", 0).says("(2 processes, KILL)");
    assert_eq!(job.assert_ended("killed", "kill")["signal"], "SIGTERM");
}

#[test]
fn a_stopped_leader_is_shown_as_such_and_sees_its_term() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "on-term [ stamp seen exit 4 ] hold");
    freeze(job.leader());
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING (stopped)");
    job.kill("20s", 0);
    assert!(scene.path("seen").exists());
    assert_eq!(job.assert_ended("killed", "kill")["exit_code"], 4);
}

#[test]
fn c39_c47_escapees_of_every_kind_go_with_the_job() {
    let scene = Scene::new();
    let words = "spawn-same [ ignore-term hold ] spawn-setpgid [ ignore-term hold ] \
                 spawn-setsid [ ignore-term stopped hold ] daemon [ ignore-term hold ] \
                 daemon-envclear [ ignore-term hold ] \
                 spawn-setsid [ role deep spawn-setsid [ role deeper daemon-envclear [ role deepest hold ] exit 0 ] exit 0 ] \
                 hold";
    let job = launch(&scene, "j", &[], words);
    for role in ["same", "setpgid", "setsid", "daemon", "daemon-envclear", "deep", "deeper", "deepest"] {
        scene.await_birth(role);
    }
    job.kill("300ms", 0);
    job.assert_ended("killed", "kill");
}

#[test]
fn what_a_term_handler_leaves_behind_goes_too() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "spawn-on-term");
    job.kill("500ms", 0);
    assert!(scene.births().iter().any(|b| b.role == "setsid"), "the handler ran");
    job.assert_ended("killed", "kill");
}

#[test]
fn c42_a_term_handler_is_allowed_to_finish() {
    let scene = Scene::new();
    let job = launch(
        &scene,
        "j",
        &[],
        "spawn-setsid [ term-handler 0.3 child-finished ] term-handler 0.5 finished",
    );
    scene.await_birth("setsid");
    job.kill("30s", 0).says("TERM)");
    assert!(scene.path("finished").exists() && scene.path("child-finished").exists());
    assert_eq!(job.assert_ended("killed", "kill")["exit_code"], 0);
}

#[test]
fn what_a_term_handler_starts_to_clean_up_is_left_to_do_so() {
    for _ in 0..5 {
        let scene = Scene::new();
        let words = "on-term [ spawn-same [ role cleaner sleep 0.2 stamp cleaned exit 0 ] exit 0 ] hold";
        let job = launch(&scene, "j", &[], words);
        job.kill("30s", 0);
        assert!(scene.path("cleaned").exists(), "the handler's child was not signalled");
        job.assert_ended("killed", "kill");
    }
}

#[test]
fn each_process_gets_exactly_one_term() {
    let scene = Scene::new();
    let child = |n: usize, how: &str| format!("{how} [ role c{n} on-term [ append terms{n} x ] hold ]");
    let words: Vec<String> = ["spawn-same", "spawn-setpgid", "spawn-setsid", "daemon"]
        .iter()
        .enumerate()
        .map(|(n, how)| child(n, how))
        .collect();
    let job = launch(&scene, "j", &[], &format!("on-term [ append terms x ] {} hold", words.join(" ")));
    for n in 0..4 {
        scene.await_birth(&format!("c{n}"));
    }
    // A second request during the grace brings the end nearer, and signals nobody again.
    let first = job.tool("tb-kill", &["--grace", "20s"]).spawn();
    until("all have had it", || (0..4).all(|n| !scene.read(format!("terms{n}")).is_empty()).then_some(()));
    job.kill("500ms", 0);
    first.wait().ok();
    job.assert_ended("killed", "kill");
    for file in ["terms", "terms0", "terms1", "terms2", "terms3"] {
        assert_eq!(scene.read(file), "x\n", "{file}");
    }
    assert_eq!(job.records("STOPPING").len(), 1);
}

#[test]
fn a_request_for_kill_ends_a_grace_at_once() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "ignore-term hold");
    let patient = job.tool("tb-kill", &["--grace", "50s"]).spawn();
    until("the stop has begun", || job.records("STOPPING").pop());
    job.tool("tb-kill", &["--signal", "KILL", "--grace", "50s"]).run().ok();
    patient.wait().ok();
    job.assert_ended("killed", "kill");
}

#[test]
fn a_storm_of_forks_and_new_sessions_is_bounded() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "storm 2000 storm 2000 hold");
    let out = job.kill("200ms", 0);
    assert!(out.took < Duration::from_millis(5200) + SLACK, "{:?}", out.took);
    job.assert_ended("killed", "kill");
}

#[test]
fn a_grace_of_nothing_kills_at_once() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "ignore-term spawn-setsid [ ignore-term hold ] hold");
    scene.await_birth("setsid");
    job.kill("0", 0).says("(2 processes, KILL)");
    job.assert_ended("killed", "kill");
}

#[test]
fn a_hundred_sessions_that_ignore_term_go_with_and_without_a_supervisor() {
    for supervised in [true, false] {
        let scene = Scene::new();
        let job = launch(&scene, "j", &[], "repeat 100 [ spawn-setsid [ ignore-term hold ] ] hold");
        scene.await_births("setsid", 100);
        if !supervised {
            let (front, monitor) = job.halves();
            freeze(front);
            kill_hard(monitor);
            kill_hard(front);
        }
        let out = job.kill("200ms", 0).says("(101 processes, KILL");
        assert!(out.took < Duration::from_millis(5200) + SLACK, "{:?}", out.took);
        job.assert_ended("killed", "kill");
    }
}

#[test]
fn two_hundred_and_fifty_processes_go_at_once() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "repeat 249 [ spawn-same ] hold");
    scene.await_births("same", 249);
    assert_eq!(job.status()["processes"], 250);
    job.kill("30s", 0).says("(250 processes, TERM)");
    job.assert_ended("killed", "kill");
}

#[test]
fn a_dead_leader_that_nobody_has_waited_for_is_not_relabelled_by_a_kill() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "hold");
    let (_, monitor) = job.halves();
    freeze(monitor);
    kill_hard(job.leader());
    assert_eq!(job.status()["status"], "RUNNING", "its end is not recorded yet");
    job.kill("1s", 0).says("j already finished (FAIL)");
    let footer = job.assert_ended("failed", "exit");
    assert_eq!(footer["signal"], "SIGKILL");
}

#[test]
fn a_job_whose_main_thread_has_left_runs_and_is_stopped() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "ignore-term threads 2");
    until("its main thread is a zombie", || job.leader().stat().filter(|s| s.state == 'Z'));
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING");
    // Also when nobody supervises it.
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING (unsupervised)");
    job.kill("200ms", 0);
    job.assert_ended("killed", "kill");
}

#[test]
fn output_up_to_the_kill_stays_and_records_are_on_lines_of_their_own() {
    let scene = Scene::new();
    let job = launch_sh(&scene, "j", &[], "printf 'no newline'; exec tb-fixture hold");
    scene.await_birth("main");
    job.kill("5s", 0);
    job.assert_ended("killed", "kill");
    assert!(job.log().contains("\nno newline\n=== GATE STOPPING: "), "{}", job.log());
}

#[test]
fn c60_a_limit_ends_the_job_by_itself_whoever_waits() {
    let scene = Scene::new();
    let words = "spawn-setsid [ ignore-term hold ] ignore-term hold";
    let job = launch(&scene, "j", &["--limit", "200ms", "--grace", "200ms"], words);
    job.wait(1).says("timeout");
    let footer = job.assert_ended("timeout", "limit");
    assert_eq!(footer["exit_code"], Value::Null);
    assert_eq!(job.status()["outcome"], "timeout");
}

#[test]
fn a_limit_survives_the_monitor() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &["--limit", "2s", "--grace", "5s"], "hold");
    kill_hard(job.halves().1);
    job.wait(1);
    job.assert_ended("timeout", "limit");
}

#[test]
fn leaks_are_stopped_and_named_by_default() {
    let scene = Scene::new();
    let words = "daemon [ hold ] daemon-envclear [ ignore-term hold ] await go exit 0";
    let job = launch(&scene, "j", &["--grace", "200ms"], words);
    let daemon = scene.await_birth("daemon");
    scene.await_birth("daemon-envclear");
    scene.file("go", "");
    job.wait(0).says("2 leaked");
    let footer = job.assert_ended("passed", "exit");
    let leaked = footer["leaked"].as_array().unwrap();
    assert!(leaked.iter().any(|l| l["pid"] == daemon.pid && l["start"] == daemon.start), "{footer}");
    assert!(leaked.iter().all(|l| l["command"].as_str().unwrap().contains("tb-fixture")), "{footer}");
}

#[test]
fn leaks_fail_turns_a_pass_into_a_fail_and_leaves_a_fail() {
    for (exit, reason) in [("0", "leaks"), ("3", "exit")] {
        let scene = Scene::new();
        let words = format!("daemon [ hold ] await go exit {exit}");
        let job = launch(&scene, "j", &["--leaks", "fail"], &words);
        scene.await_birth("daemon");
        scene.file("go", "");
        job.wait(1);
        let footer = job.assert_ended("failed", reason);
        assert_eq!(footer["exit_code"].to_string(), exit);
    }
}

#[test]
fn c48_leaks_that_are_allowed_live_on_and_are_named() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &["--leaks", "allow"], "daemon [ hold ] await go exit 0");
    let daemon = scene.await_birth("daemon");
    scene.file("go", "");
    job.wait(0);
    let footer = job.footer();
    assert_eq!(footer["leaked"][0]["pid"], daemon.pid);
    assert!(daemon.alive());
    until("the halves are gone", || (scene.living() == [daemon]).then_some(()));
    // It is no longer the job's: a kill does not touch it.
    job.kill("1s", 0).says("already finished (PASS)");
    assert!(daemon.alive());
}

#[test]
fn keep_spares_what_it_names_and_nothing_else() {
    let scene = Scene::new();
    let words =
        "spawn-setsid [ role kept comm build-daemon hold ] spawn-setsid [ role other hold ] await go exit 0";
    let job = launch(&scene, "j", &["--keep", "role kept", "--leaks", "fail"], words);
    let (kept, other) = (scene.await_birth("kept"), scene.await_birth("other"));
    scene.file("go", "");
    job.wait(1);
    assert!(kept.alive() && !other.alive());
    let footer = job.footer();
    assert_eq!(footer["reason"], "leaks", "the other one is a leak: {footer}");
    let why = |pid: u32| {
        let leaked = footer["leaked"].as_array().unwrap();
        leaked.iter().find(|l| l["pid"] == pid).map(|l| l["why"].as_str().unwrap().to_owned())
    };
    assert_eq!(why(kept.pid).as_deref(), Some("spared by --keep"));
    assert!(why(other.pid).is_some());
}

#[test]
fn what_is_spared_alone_makes_no_fail_and_holds_nothing_up() {
    let scene = Scene::new();
    let words = "spawn-setsid [ role kept hold ] await go exit 0";
    let job = launch(&scene, "j", &["--keep", "role kept", "--leaks", "fail"], words);
    let kept = scene.await_birth("kept");
    scene.file("go", "");
    job.wait(0);
    assert!(kept.alive());
    assert_eq!(job.footer()["leaked"][0]["pid"], kept.pid);
}

#[test]
fn a_pipelines_last_member_is_no_leak() {
    let scene = Scene::new();
    // It ends by itself, a moment after the leader.
    let job = launch_sh(&scene, "j", &["--leaks", "fail"], "(sleep 0.02; echo late) & exit 0");
    job.wait(0);
    assert_eq!(job.assert_ended("passed", "exit")["leaked"], serde_json::json!([]));
}

#[test]
fn all_of_a_scope_and_of_no_other() {
    let scene = Scene::new();
    let mine = launch(&scene, "mine", &["--owner", "me"], "hold");
    let yours = launch(&scene, "yours", &["--owner", "you"], "hold");
    scene.tool("tb-kill").args(["--all", "--owner", "me"]).run().ok().says("Killed mine");
    assert_eq!(mine.tool("tb-status", &["--owner", "me", "--json"]).run().json()[0]["outcome"], "killed");
    yours.tool("tb-status", &["--owner", "you"]).run().expect(3);
    yours.tool("tb-kill", &["--owner", "me"]).run().expect(4);
    yours.tool("tb-kill", &["--owner", "you"]).run().ok();
    scene.assert_quiet();
}

#[test]
fn many_jobs_are_stopped_within_the_time_of_one() {
    let scene = Scene::new();
    let jobs: Vec<Job<'_>> =
        (0..8).map(|n| launch(&scene, &format!("j{n}"), &[], "ignore-term hold")).collect();
    // Eight graces one after the other would take longer than a command may here.
    let out = scene.tool("tb-kill").args(["--all", "--grace", "9s"]).run().ok();
    for job in &jobs {
        assert!(out.stdout.contains(&format!(
            "Killed {} [PID: {}] (1 process, KILL)",
            job.name,
            job.leader().pid
        )));
        assert_eq!(job.records("STOPPING").len(), 1);
        job.assert_ended("killed", "kill");
    }
    let jobs: Vec<Job<'_>> =
        (0..8).map(|n| launch(&scene, &format!("k{n}"), &[], "ignore-term hold")).collect();
    let names = jobs.iter().map(|j| j.name.as_str());
    let wait = ["--timeout", "10ms", "--kill-on-timeout"];
    scene.tool("tb-wait").args(wait).args(names).env("TB_KILL_GRACE", "9").run().expect(124);
    for job in &jobs {
        job.assert_ended("killed", "kill");
    }
}

#[test]
fn the_first_signal_may_be_another() {
    let scene = Scene::new();
    let job = launch_sh(
        &scene,
        "j",
        &[],
        "trap 'echo got int; exit 9' INT; tb-fixture ready & while :; do wait; done",
    );
    scene.await_birth("main");
    job.tool("tb-kill", &["--signal", "INT", "--grace", "20s"]).run().ok().says("INT)");
    assert_eq!(job.assert_ended("killed", "kill")["exit_code"], 9);
    assert!(job.log().contains("got int"));
}

#[test]
fn a_kill_of_a_job_that_ends_meanwhile_reports_what_it_was() {
    for _ in 0..20 {
        let scene = Scene::new();
        let job = launch(&scene, "j", &[], "sleep 0.02 exit 0");
        let out = job.kill("5s", 0);
        let outcome = job.footer()["outcome"].clone();
        let said = if outcome == "killed" { "Killed j [PID:" } else { "j already finished (PASS)" };
        assert!(out.stdout.contains(said), "{outcome}: {out}");
        scene.assert_quiet();
    }
}

#[test]
fn a_signal_to_the_leader_alone_is_no_stop() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "term-handler 0.01 finished");
    job.leader().signal(Signal::TERM);
    job.wait(0);
    job.assert_ended("passed", "exit");
    assert!(job.records("STOPPING").is_empty());
    let _ = Job::named(&scene, "j");
}
