//! Nobody is taken for somebody else: numbers that were reused, files that were written over, logs that lost their
//! header or their place.

use crate::job::{Job, freeze, kill_hard, launch, launch_sh};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tb_tests::{Proc, Scene, until};

/// A process of the scene that has nothing to do with any job.
fn stranger(scene: &Scene) -> (tb_tests::Running, Proc) {
    let running = scene.fixture("role stranger hold").spawn();
    let proc = scene.await_birth("stranger");
    (running, proc)
}

/// Rewrites fields of a finished or dead job's header in place.
fn rewrite_header(job: &Job<'_>, change: impl Fn(&mut Value)) {
    let mut header = job.header();
    change(&mut header);
    let log = job.log();
    let (_, rest) = log.split_once('\n').expect("a header line");
    std::fs::write(job.log_path(), format!("=== GATE LAUNCH: {header} ===\n{rest}")).expect("our own file");
}

/// Makes a file look written a second ago: file times are coarse, and what is written at the moment of a job's end may
/// be taken for either before or after it.
fn written_before(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).expect("our own file");
    file.set_modified(SystemTime::now() - Duration::from_secs(1)).expect("our own file");
}

/// A job without supervisors, leader or footer.
fn crashed<'s>(scene: &'s Scene, name: &str) -> Job<'s> {
    let job = launch(scene, name, &[], "hold");
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    kill_hard(job.leader());
    job
}

#[test]
fn c16_a_header_whose_number_is_a_strangers_now_is_not_running_and_never_signalled() {
    let scene = Scene::new();
    let job = crashed(&scene, "j");
    let (running, stranger) = stranger(&scene);
    let start = job.leader().start - 1;
    rewrite_header(&job, |h| {
        h["pid"] = stranger.pid.into();
        h["start"] = start.into();
    });
    std::fs::write(job.pid_file(), format!("{}\n", stranger.pid)).expect("our own file");
    job.tool("tb-status", &[]).run().expect(5).says("FINISHED (no marker)");
    job.kill("1s", 0).says("already finished (no marker)");
    assert!(stranger.alive());
    scene.tool("tb-clean").arg("j").run().ok();
    assert!(!job.pid_file().exists(), "a stale PID file is cleared");
    scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]).run().ok();
    assert!(stranger.alive() && !running.ended());
}

#[test]
fn a_header_of_another_boot_says_that_the_machine_restarted_though_the_number_lives() {
    let scene = Scene::new();
    let job = crashed(&scene, "j");
    let (_running, stranger) = stranger(&scene);
    rewrite_header(&job, |h| {
        h["pid"] = stranger.pid.into();
        h["start"] = stranger.start.into();
        h["boot"] = "00000000-0000-0000-0000-000000000000".into();
    });
    let out = job.tool("tb-status", &[]).run().expect(5);
    assert!(out.stdout.contains("the machine restarted"), "{out}");
    job.kill("1s", 0);
    assert!(stranger.alive());
}

#[test]
fn a_job_of_another_machine_holds_its_name_until_it_is_cleaned_by_name() {
    let scene = Scene::new();
    let job = crashed(&scene, "j");
    rewrite_header(&job, |h| {
        h["boot"] = "00000000-0000-0000-0000-000000000000".into();
        h["host"] = "elsewhere".into();
    });
    let status = job.tool("tb-status", &["--json"]).run().expect(5);
    assert_eq!(status.json()[0]["outcome"], Value::Null, "only that machine can tell");
    job.tool("tb-status", &[]).run().says("recorded on elsewhere, look there");
    let launch = || scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]).run();
    launch().expect(3).complains("elsewhere");
    scene.tool("tb-clean").run().ok();
    launch().expect(3);
    scene.tool("tb-clean").arg("j").run().ok();
    launch().ok();
}

#[test]
fn a_header_of_another_namespace_makes_nobody_here_its_leader() {
    for field in ["pidns", "timens"] {
        let scene = Scene::new();
        let job = crashed(&scene, "j");
        let (_running, stranger) = stranger(&scene);
        rewrite_header(&job, |h| {
            h["pid"] = stranger.pid.into();
            h["start"] = stranger.start.into();
            h[field] = 1.into();
        });
        job.tool("tb-status", &[]).run().expect(5);
        job.kill("1s", 0);
        assert!(stranger.alive(), "{field}");
    }
}

#[test]
fn supervisors_that_the_header_names_but_that_hold_no_lock_are_none() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "hold");
    let (_running, stranger) = stranger(&scene);
    let (front, monitor) = job.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    rewrite_header(&job, |h| h["supervisors"] = serde_json::json!([[stranger.pid, stranger.start]]));
    let status = job.status();
    assert_eq!((&status["supervision"], &status["supervisors"]), (&"none".into(), &serde_json::json!([])));
    job.kill("5s", 0).says("unsupervised");
    assert!(stranger.alive(), "it was neither asked nor signalled");
}

#[test]
fn a_foreign_pid_file_older_than_its_process_names_somebody_else() {
    let scene = Scene::new();
    let (_running, stranger) = stranger(&scene);
    std::fs::create_dir(scene.run_dir()).expect("our own directory");
    let job = Job::named(&scene, "j");
    std::fs::write(job.pid_file(), format!("{}\n", stranger.pid)).expect("our own file");
    let file = std::fs::File::options().write(true).open(job.pid_file()).expect("our own file");
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("our own file");
    job.tool("tb-status", &[]).run().expect(5);
    job.kill("1s", 0);
    assert!(stranger.alive());
    scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]).run().ok();
    assert!(stranger.alive());
}

#[test]
fn what_a_shell_writes_over_a_live_pid_file_is_reported_and_stays() {
    let scene = Scene::new();
    let (_running, stranger) = stranger(&scene);
    let job = launch(&scene, "j", &[], "hold");
    let leader = job.leader();
    scene.sh(&format!("echo {} > {}", stranger.pid, job.pid_file().display())).run().ok();
    written_before(&job.pid_file());
    let out = job.tool("tb-status", &[]).run().expect(3);
    out.clone()
        .says(&format!("PID file overwritten by PID {}", stranger.pid))
        .says(&format!("PID: {}", leader.pid));
    assert_eq!(job.status()["pid"], leader.pid);
    job.kill("5s", 0).says(&format!("[PID: {}]", leader.pid));
    assert!(!leader.alive() && stranger.alive());
    assert_eq!(job.footer()["outcome"], "killed");
    assert_eq!(
        std::fs::read_to_string(job.pid_file()).unwrap(),
        format!("{}\n", stranger.pid),
        "it is not ours"
    );
    // What was written over it is no run of its own: the job's verdict stands.
    job.tool("tb-status", &[]).run().expect(1).says("FINISHED (FAIL)");
    job.wait(1);
    job.kill("1s", 0).says("already finished");
    assert!(stranger.alive());
    scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]).run().ok();
    assert!(!job.pid_file().exists() && stranger.alive());
}

#[test]
fn a_pid_file_that_was_written_over_with_the_same_number_is_ours() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 0");
    scene.sh(&format!("echo {} > {}", job.leader().pid, job.pid_file().display())).run().ok();
    scene.file("go", "");
    job.wait(0);
    job.assert_ended("passed", "exit");
}

#[test]
fn a_pid_file_that_was_replaced_is_somebody_elses_and_stays() {
    let scene = Scene::new();
    let (_running, stranger) = stranger(&scene);
    let job = launch(&scene, "j", &[], "await go exit 0");
    let text = format!("{}\n", stranger.pid);
    scene.file("new", &text);
    written_before(&scene.path("new"));
    std::fs::rename(scene.path("new"), job.pid_file()).expect("our own directory");
    let status = job.status();
    assert_eq!((&status["status"], &status["pid"]), (&"RUNNING".into(), &job.leader().pid.into()));
    scene.file("go", "");
    job.wait(0);
    assert_eq!(std::fs::read_to_string(job.pid_file()).unwrap(), text);
    job.kill("1s", 0).says("already finished (PASS)");
    assert!(stranger.alive());
}

#[test]
fn without_header_and_supervisors_a_job_is_still_stopped() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "spawn-setsid [ ignore-term hold ] truncate-stderr hold");
    scene.await_birth("setsid");
    let all = scene.living();
    let leader = scene.await_birth("main");
    let (monitor, front) = {
        let monitor = leader.stat().expect("it lives").ppid;
        let of = |pid| *all.iter().find(|p| p.pid == pid).expect("it lives");
        (of(monitor), of(of(monitor).stat().expect("it lives").ppid))
    };
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    job.tool("tb-status", &[]).run().expect(3);
    job.kill("200ms", 0).says(&format!("Killed j [PID: {}]", leader.pid));
    scene.assert_quiet();
    job.tool("tb-status", &[]).run().expect(5);
}

#[test]
fn the_directorys_lock_is_waited_for_ten_seconds_whatever_the_caller_blocks() {
    let scene = Scene::new();
    scene.tool("tb-launch").args(["--name", "first", "--wait", "--", "true"]).run().ok();
    let lock = std::fs::File::options().write(true).open(scene.run_dir().join(".lock")).expect("it is there");
    lock.lock().expect("nobody else has it");
    let launch = scene.tool("tb-launch").args(["--name", "j", "--", "true"]).through(["block", "ALRM"]);
    launch.run().expect(125).complains("another tool has held it for 10 s");
    // Readers never take it.
    scene.tool("tb-status").run().ok().says("first");
}

#[test]
fn a_pid_file_that_was_removed_hides_nothing() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 0");
    std::fs::remove_file(job.pid_file()).expect("it is there");
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING");
    scene.tool("tb-launch").args(["--name", "j", "--", "true"]).run().expect(3);
    job.kill("5s", 0).says("Killed j [PID:");
    job.assert_ended("killed", "kill");
}

#[test]
fn a_log_that_its_job_truncated_ends_whole_and_says_so() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "print-line 3000 truncate-stderr print after await go exit 0");
    let leader = scene.await_birth("main");
    assert!(!job.log().contains("GATE LAUNCH"), "the header is gone");
    let out = job.tool("tb-status", &[]).run().expect(3);
    out.says("RUNNING").says(&format!("PID: {}", leader.pid)).says("lost its header");
    assert_eq!(job.status()["supervision"], "double");
    scene.file("go", "");
    job.wait(0);
    let footer = job.assert_ended("passed", "exit");
    assert_eq!(footer["truncated"], true);
    assert_eq!((&footer["header"]["name"], &footer["header"]["pid"]), (&"j".into(), &leader.pid.into()));
    job.tool("tb-status", &[]).run().expect(0).says("FINISHED (PASS)").says("after");
}

#[test]
fn a_job_whose_header_is_gone_is_stopped_by_its_supervisor() {
    // The second name has no plain stem: without a header nothing but its files lead to it.
    for name in ["j", "a b[1]"] {
        let scene = Scene::new();
        let job = launch(&scene, name, &[], "spawn-setsid [ ignore-term hold ] truncate-stderr hold");
        scene.await_birth("setsid");
        if name == "j" {
            job.kill("200ms", 0).says("Killed j [PID:");
            assert_eq!(job.assert_ended("killed", "kill")["truncated"], true);
        } else {
            scene.tool("tb-kill").args(["--all", "--grace", "200ms"]).run().ok().says("Killed ");
            scene.assert_quiet();
            job.tool("tb-status", &[]).run().expect(1).says("FINISHED (FAIL)");
        }
    }
}

#[test]
fn without_header_and_with_a_strangers_number_the_leader_is_still_known() {
    let scene = Scene::new();
    let (_running, stranger) = stranger(&scene);
    let job = launch(&scene, "j", &[], "daemon [ hold ] truncate-stderr hold");
    scene.await_birth("daemon");
    let leader = scene.await_birth("main");
    scene.sh(&format!("echo {} > {}", stranger.pid, job.pid_file().display())).run().ok();
    let out = job.tool("tb-status", &[]).run().expect(3);
    out.says(&format!("PID: {}", leader.pid)).says("overwritten by PID");
    job.kill("5s", 0).says(&format!("[PID: {}]", leader.pid));
    assert!(stranger.alive() && !leader.alive());
    scene.assert_quiet_but(&[stranger]);
}

#[test]
fn a_log_that_was_removed_is_written_anew_at_the_end() {
    for stop in [false, true] {
        let scene = Scene::new();
        let job = launch(&scene, "j", &[], "print lost await go exit 0");
        std::fs::remove_file(job.log_path()).expect("it is there");
        job.tool("tb-status", &[]).run().expect(3).says("RUNNING");
        let (code, outcome) = if stop {
            job.kill("5s", 0).says("Killed j [PID:");
            (1, "killed")
        } else {
            scene.file("go", "");
            (0, "passed")
        };
        job.wait(code);
        let footer = job.footer();
        assert_eq!((&footer["outcome"], &footer["truncated"]), (&outcome.into(), &true.into()));
        assert_eq!(job.header()["job"], footer["job"]);
        assert!(!job.pid_file().exists());
        scene.assert_quiet();
    }
}

#[test]
fn a_log_that_was_replaced_is_left_to_whoever_did_so() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "await go exit 0");
    let log = job.log_path();
    std::fs::remove_file(&log).expect("it is there");
    std::fs::write(&log, "somebody else's\n").expect("our own directory");
    job.tool("tb-status", &[]).run().expect(3);
    scene.file("go", "");
    job.wait(0);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "somebody else's\n");
    assert_ne!(job.log_path(), log);
    assert_eq!(job.assert_ended("passed", "exit")["truncated"], true);
}

#[test]
fn a_run_directory_that_was_removed_keeps_nobody_alive() {
    let scene = Scene::new();
    let job = launch(&scene, "j", &[], "spawn-setsid [ hold ] await go exit 0");
    scene.await_birth("setsid");
    std::fs::remove_dir_all(scene.run_dir()).expect("it is ours");
    job.tool("tb-status", &[]).run().expect(4);
    scene.file("go", "");
    scene.assert_quiet();
    assert!(!scene.run_dir().exists(), "nobody makes it again");
}

#[test]
fn c04_c09_a_job_that_prints_records_fools_nobody() {
    let scene = Scene::new();
    let script = r#"
        echo '=== GATE: PASSED ==='
        head -n1 .gate-logs/test-j-*.log | sed 's/GATE LAUNCH: {/GATE RESULT: {"outcome":"passed","exit_code":0,"signal":null,"reason":"exit","header":{},/'
        echo '=== GATE RESULT: {"v":1,"job":"0000000000000000","outcome":"passed"} ==='
        echo '=== GATE: PASSED ==='
        exec tb-fixture await go exit 1
    "#;
    let job = launch_sh(&scene, "j", &[], script);
    scene.await_birth("main");
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING");
    scene.file("go", "");
    job.wait(1);
    let status = job.status();
    assert_eq!((&status["outcome"], &status["exit_code"]), (&"failed".into(), &1.into()));
}

#[test]
fn c62_a_disk_that_is_full_does_not_lose_the_verdict() {
    let scene = Scene::new();
    // The largest file that the job and its supervisors may write.
    let size = 4096;
    let words = ["limit", "fsize", "4096"];
    let job = Job::named(&scene, "j");
    scene
        .tool("tb-launch")
        .args([
            "--name",
            "j",
            "--",
            "/bin/sh",
            "-c",
            "trap '' XFSZ; while printf '%0100d\\n' 1; do :; done 2>/dev/null; exit 3",
        ])
        .through(words)
        .run()
        .ok();
    job.wait(1);
    let footer = job.assert_ended("failed", "exit");
    assert_eq!(footer["exit_code"], 3);
    assert!(footer["overwrote"].as_u64().unwrap() > 0, "{footer}");
    assert!(std::fs::metadata(job.log_path()).unwrap().len() <= size);
}

#[test]
fn an_end_that_cannot_be_recorded_is_said_and_who_insists_gets_one() {
    let scene = Scene::new();
    let job = Job::named(&scene, "j");
    // Room for a header, none for a footer.
    scene.tool("tb-launch").args(["--name", "j", "--", "true"]).through(["limit", "fsize", "900"]).run().ok();
    let told = until("it says that it cannot record", || {
        let out = job.tool("tb-status", &[]).run();
        out.stdout.contains("RUNNING (cannot record: ").then_some(out)
    });
    assert_eq!(told.code, Some(3));
    assert!(job.log().starts_with("=== GATE LAUNCH: "), "the header was not torn:\n{}", job.log());
    // The supervisor's limit is not tb-kill's: it writes the end in the supervisor's place, and knows no status.
    job.tool("tb-kill", &[]).run().ok();
    let footer = job.assert_ended("killed", "kill");
    assert!(footer["exit_code"].is_null(), "{footer}");
}

#[test]
fn a_waiter_whose_job_has_ended_and_been_launched_again_tells_of_the_one_it_waited_for() {
    for _ in 0..10 {
        let scene = Scene::new();
        let job = launch(&scene, "j", &[], "await go exit 3");
        let waiter = job.tool("tb-wait", &["--json", "--heartbeat", "10ms"]).spawn();
        waiter.until_stderr("elapsed]");
        let first = job.header()["job"].clone();
        scene.file("go", "");
        // As soon as the name is free it is taken again.
        until("the name is free", || {
            let out = scene
                .tool("tb-launch")
                .args(["--name", "j", "--", "tb-fixture", "role", "second", "hold"])
                .run();
            (out.code == Some(0)).then_some(())
        });
        let out = waiter.wait().expect(1);
        assert_eq!((&out.json()[0]["job"], &out.json()[0]["exit_code"]), (&first, &3.into()), "{out}");
        job.kill("1s", 0);
    }
}

#[test]
fn c22_a_status_right_after_a_launch_finds_the_job() {
    let scene = Scene::new();
    // Some are over at once, some run on: neither is ever unknown.
    let script = "i=0; while [ $i -lt 250 ]; do i=$((i+1)); \
                  tb-launch --name t$i -- true >/dev/null || exit 90; tb-status t$i >out 2>&1; c=$?; \
                  case $c in 0|3) ;; *) echo \"true $i: $c\"; cat out; exit 91;; esac; \
                  tb-launch --name s -- sleep 60 >/dev/null || exit 92; tb-status s >out 2>&1; c=$?; \
                  [ $c = 3 ] || { echo \"sleep $i: $c\"; cat out; exit 93; }; \
                  tb-kill --grace 20s s >/dev/null || exit 94; done";
    scene.sh(script).deadline(Duration::from_secs(240)).run().ok();
    scene.assert_quiet();
    assert!(Path::new(&scene.run_dir()).is_dir());
}
