//! Runs that somebody else started: `nohup … & echo $! > FILE`, and logs without a header.

use crate::written::log;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};
use tb_tests::{Running, Scene, until};

const STAMPED: &str = "test-x-20200725_143000.log";

/// A fixture with a PID file, and its output in a log of that stem.
fn nohup(scene: &Scene, words: &str) -> Running {
    scene.make_run_dir();
    let script = format!(
        "echo $$ > .gate-logs/.test-x.pid; exec nohup tb-fixture {words} > .gate-logs/{STAMPED} 2>&1"
    );
    scene.sh(&script).spawn()
}

/// Puts a file's time back.
fn written(scene: &Scene, file: &str, ago: Duration) {
    let open = File::options().write(true).open(scene.run_dir().join(file)).expect("our own file");
    open.set_modified(SystemTime::now() - ago).expect("our own file");
}

fn pid_file(scene: &Scene, pid: u32) {
    scene.make_run_dir();
    scene.file(".gate-logs/.test-x.pid", format!("{pid}\n"));
}

#[test]
fn g19_a_foreign_run_is_running_while_its_process_lives_and_finished_after() {
    let scene = Scene::new();
    let child = nohup(&scene, "print hello await go print bye exit 0");
    let leader = scene.await_birth("main");
    until("its output is there", || {
        scene.read(format!(".gate-logs/{STAMPED}")).contains("hello").then_some(())
    });
    let out = scene.tool("tb-status").arg("x").run().expect(3).says("hello");
    assert!(out.stdout.starts_with(&format!("x  RUNNING  PID: {}  Started: ", leader.pid)), "{out}");
    let status = scene.status("x");
    assert_eq!(status["supervision"], "none");
    assert!(status["job"].is_null() && status["outcome"].is_null(), "{status}");
    scene.file("go", "");
    child.wait().ok();
    let out = scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
    assert!(out.stdout.contains("bye"), "{out}");
    assert_eq!(scene.status("x")["outcome"], "crashed");
}

#[test]
fn c15_a_zombie_is_dead() {
    let scene = Scene::new();
    let child = scene.fixture("ids").spawn();
    until("it has ended", || child.ended().then_some(()));
    assert_eq!(child.proc().stat().expect("not yet waited for").state, 'Z');
    pid_file(&scene, child.pid());
    scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
}

#[test]
fn a_process_whose_main_thread_has_exited_lives() {
    let scene = Scene::new();
    let child = scene.fixture("threads 1").spawn();
    let leader = scene.await_birth("main");
    until("its main thread has exited", || leader.stat().filter(|s| s.state == 'Z'));
    pid_file(&scene, child.pid());
    scene.tool("tb-status").arg("x").run().expect(3).says("RUNNING");
}

#[test]
fn a_threads_id_is_no_process() {
    let scene = Scene::new();
    let child = scene.fixture("on-term [ exit 0 ] hold").spawn();
    scene.await_birth("main");
    let thread = until("its second thread is there", || {
        fs::read_dir(format!("/proc/{}/task", child.pid()))
            .ok()?
            .flatten()
            .filter_map(|t| t.file_name().to_str()?.parse::<u32>().ok())
            .find(|tid| *tid != child.pid())
    });
    pid_file(&scene, thread);
    scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
}

#[test]
fn c16_a_process_younger_than_the_file_is_somebody_else() {
    let scene = Scene::new();
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    scene.tool("tb-status").arg("x").run().expect(3);
    written(&scene, ".test-x.pid", Duration::from_secs(60));
    scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
}

#[test]
fn a_process_that_has_the_log_open_is_the_run_whatever_the_clock_says() {
    let scene = Scene::new();
    let _child = nohup(&scene, "hold");
    scene.await_birth("main");
    written(&scene, ".test-x.pid", Duration::from_secs(60));
    scene.tool("tb-status").arg("x").run().expect(3).says("RUNNING");
}

#[test]
fn c19_a_process_of_another_user_is_alive() {
    let scene = Scene::new();
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    fs::set_permissions(scene.run_dir(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    scene.tool("tb-status").arg("x").as_nobody().run().expect(3).says("RUNNING");
}

#[test]
fn g22_g23_g24_a_headerless_log_is_judged_by_its_last_marker_then_by_pytests_summary() {
    for (text, code, headline, source) in [
        ("=== GATE: PASSED ===\n", 0, "FINISHED (PASS)", "marker"),
        ("=== GATE: FAILED ===\n", 1, "FINISHED (FAIL)", "marker"),
        ("=== GATE: FAILED ===\nagain\n=== GATE: PASSED ===\n", 0, "FINISHED (PASS)", "marker"),
        ("=== GATE: PASSED ===\n=== 1 failed in 0.1s ===\n", 0, "FINISHED (PASS)", "marker"),
        ("===== 3 passed in 0.16s =====\n", 0, "FINISHED (PASS)", "summary"),
        ("== 1 failed, 3 passed in 0.16s ==\n", 1, "FINISHED (FAIL)", "summary"),
        ("== 3 passed, 1 error in 0.16s ==\n", 1, "FINISHED (FAIL)", "summary"),
        ("== 1 passed in 61.12s (0:01:01) ==\n", 0, "FINISHED (PASS)", "summary"),
        ("= no tests ran in 0.01s =\n", 1, "FINISHED (FAIL)", "summary"),
        ("5 failed requests\nmarker: === GATE: PASSED ===\n", 5, "FINISHED (no marker)", "none"),
        ("", 5, "FINISHED (no marker)", "none"),
    ] {
        let scene = Scene::new();
        log(&scene, "x", &[text.as_bytes()]);
        scene.tool("tb-status").arg("x").run().expect(code).says(headline);
        assert_eq!(scene.status("x")["verdict_source"], source, "{text}");
    }
}

#[test]
fn g64_a_finished_process_is_no_pass_without_a_positive_word() {
    let scene = Scene::new();
    let child = nohup(&scene, "print all-is-well exit 0");
    child.wait().ok();
    let out = scene.tool("tb-status").arg("x").run().expect(5);
    assert!(!out.stdout.contains("PASS"), "{out}");
}

#[test]
fn a_marker_further_back_than_the_last_64_kib_of_a_headerless_log_does_not_count() {
    let scene = Scene::new();
    let noise = "noise\n".repeat(20_000);
    log(&scene, "x", &[b"=== GATE: PASSED ===\n", noise.as_bytes()]);
    scene.tool("tb-status").arg("x").run().expect(5);
}

#[test]
fn a_foreign_run_beside_a_finished_jobs_log_is_that_names_run_now() {
    let scene = Scene::new();
    scene.launch("x", "exit 3");
    scene.wait_for("x", 1);
    let child = scene.fixture("hold").spawn();
    scene.await_births("main", 2);
    pid_file(&scene, child.pid());
    let out = scene.tool("tb-status").arg("x").run().expect(3);
    assert!(out.stdout.contains(&format!("PID: {}", child.pid())), "{out}");
    drop(child);
    scene.tool("tb-status").arg("x").run().expect(1);
}
