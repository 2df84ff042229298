//! Runs that somebody else started and whose PID file is honoured (`nohup … & echo $! > FILE`).

use crate::job::{Job, freeze};
use rustix::process::Signal;
use tb_tests::{Proc, Scene, until};

const LOG: &str = ".gate-logs/test-f-20260101_000000.log";

/// A foreign run of `script`, which begins to work in `dir`; its log goes to `log`.
fn foreign<'s>(scene: &'s Scene, script: &str, dir: &str, log: &str) -> Job<'s> {
    std::fs::create_dir_all(scene.run_dir()).expect("our own directory");
    std::fs::create_dir_all(scene.path("elsewhere")).expect("our own directory");
    let script = script.replace('\'', "'\\''");
    let here = scene.dir().display();
    scene
        .sh(&format!(
            "cd {dir}; setsid sh -c 'cd {here}; exec >{log} 2>&1; cd - >/dev/null; {script}' </dev/null >/dev/null 2>&1 & \
             echo $! > {here}/.gate-logs/.test-f.pid"
        ))
        .run()
        .ok();
    Job::named(scene, "f")
}

#[test]
fn a_foreign_run_is_running_and_its_name_is_taken() {
    let scene = Scene::new();
    let job = foreign(&scene, "exec tb-fixture hold", ".", LOG);
    let proc = scene.await_birth("main");
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING").says(&format!("PID: {}", proc.pid));
    let refused = scene.tool("tb-launch").args(["--name", "f", "--", "true"]).run().expect(3);
    refused.complains(&format!("already running [PID: {}]", proc.pid)).complains("tb-kill f");
    scene.tool("tb-clean").run().ok();
    assert!(job.pid_file().exists() && proc.alive());
    assert_eq!(job.status()["supervision"], "none");
}

#[test]
fn tb_wait_waits_for_a_foreign_run_and_judges_by_marker_then_summary() {
    for (last, code, source) in [
        ("=== GATE: PASSED ===", 0, "marker"),
        ("=== GATE: FAILED ===", 1, "marker"),
        ("===== 3 passed, 1 error in 0.12s =====", 1, "summary"),
        ("===== 3 passed in 61.12s (0:01:01) =====", 0, "summary"),
        ("===== no tests ran in 0.01s =====", 1, "summary"),
        ("5 failed requests", 5, "none"),
    ] {
        let scene = Scene::new();
        let job = foreign(&scene, &format!("tb-fixture await go exit 0; echo '{last}'"), ".", LOG);
        scene.await_birth("main");
        let waiter = job.tool("tb-wait", &["--json"]).spawn();
        job.tool("tb-status", &[]).run().expect(3);
        scene.file("go", "");
        let out = waiter.wait().expect(code);
        assert_eq!(out.json()[0]["verdict_source"], source, "{last}");
        // Its name is free again.
        scene.tool("tb-launch").args(["--name", "f", "--wait", "--", "true"]).run().ok();
        job.tool("tb-status", &[]).run().expect(0);
    }
}

#[test]
fn a_foreign_run_in_this_tree_is_stopped_with_all_of_its_own() {
    let scene = Scene::new();
    let script = "exec tb-fixture spawn-setsid [ ignore-term hold ] spawn-same [ spawn-setsid [ role deep hold ] hold ] hold";
    let job = foreign(&scene, script, ".", LOG);
    for role in ["main", "setsid", "deep", "same"] {
        scene.await_birth(role);
    }
    job.kill("300ms", 0).says("Killed f [PID:");
    scene.assert_quiet();
    job.kill("1s", 0).says("already finished");
}

#[test]
fn a_foreign_run_elsewhere_is_stopped_if_it_writes_the_log() {
    let scene = Scene::new();
    let job = foreign(&scene, "cd /; exec tb-fixture hold", ".", LOG);
    scene.await_birth("main");
    job.kill("5s", 0).says("Killed f");
    scene.assert_quiet();
}

#[test]
fn a_foreign_run_that_nothing_ties_to_this_directory_is_not_signalled() {
    let scene = Scene::new();
    let job = foreign(&scene, "cd /; exec tb-fixture hold", "/", "/dev/null");
    let proc = scene.await_birth("main");
    job.tool("tb-status", &[]).run().expect(3);
    let refused = job.kill("1s", 7);
    refused.complains(&format!("kill it yourself: {}, ", proc.pid)).complains("tb-fixture hold");
    assert!(proc.alive());
    job.tool("tb-status", &[]).run().expect(3);
}

#[test]
fn c19_a_foreign_run_of_another_user_is_alive_and_not_signalled() {
    if !tb_tests::root() {
        return;
    }
    let scene = Scene::new();
    let job = foreign(&scene, "exec tb-fixture as-nobody hold", ".", LOG);
    let proc = scene.await_birth("main");
    job.tool("tb-status", &[]).run().expect(3);
    job.kill("1s", 7).complains("not the process of uid 0");
    assert!(proc.alive());
}

#[test]
fn a_foreign_file_that_names_the_callers_own_ancestor_signals_nobody() {
    let scene = Scene::new();
    std::fs::create_dir(scene.run_dir()).expect("our own directory");
    let out = scene.sh("echo $$ > .gate-logs/.test-f.pid; tb-status f; tb-kill f; echo code $?").run().ok();
    assert!(out.stdout.contains("RUNNING") && out.stdout.ends_with("code 2\n"), "{out}");
    let all = scene.sh("echo $$ > .gate-logs/.test-f.pid; tb-kill --all; echo code $?").run().ok();
    assert!(all.stdout.ends_with("code 0\n"), "{all}");
}

#[test]
fn c15_a_zombie_and_a_thread_are_no_run() {
    let scene = Scene::new();
    std::fs::create_dir(scene.run_dir()).expect("our own directory");
    let job = Job::named(&scene, "f");
    let write = |number: u32| std::fs::write(job.pid_file(), format!("{number}\n")).expect("our own file");
    let zombie = scene.fixture("exit 0").spawn();
    until("it has ended", || zombie.ended().then_some(()));
    write(zombie.pid());
    job.tool("tb-status", &[]).run().expect(5);
    let threads = scene.fixture("role threads threads 2").spawn();
    let proc = scene.await_birth("threads");
    until("its main thread is a zombie", || proc.stat().filter(|s| s.state == 'Z'));
    write(proc.pid);
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING");
    let thread = std::fs::read_dir(format!("/proc/{}/task", proc.pid))
        .expect("it is ours")
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .find(|tid| *tid != proc.pid)
        .expect("it has other threads");
    write(thread);
    job.tool("tb-status", &[]).run().expect(5);
    job.kill("1s", 0);
    assert!(!threads.ended());
}

#[test]
fn a_foreign_run_beside_a_finished_jobs_log_is_that_names_run() {
    let scene = Scene::new();
    scene.tool("tb-launch").args(["--name", "f", "--wait", "--", "true"]).run().ok();
    let job = foreign(&scene, "exec tb-fixture hold", ".", "/dev/null");
    let proc: Proc = scene.await_birth("main");
    job.tool("tb-status", &[]).run().expect(3);
    scene.tool("tb-launch").args(["--name", "f", "--", "true"]).run().expect(3);
    freeze(proc);
    job.tool("tb-status", &[]).run().expect(3).says("RUNNING (stopped)");
    proc.signal(Signal::CONT);
    job.kill("5s", 0).says("Killed f");
    // The job's own verdict is there again.
    job.tool("tb-status", &[]).run().expect(0).says("FINISHED (PASS)");
}
