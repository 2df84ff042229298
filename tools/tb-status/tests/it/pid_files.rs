//! PID files that name nobody, or are no files.

use crate::written::{footer, header, log};
use tb_shared::contract::Outcome;
use tb_tests::{Odd, Scene, corrupt_pid_files};

#[test]
fn g29_c17_c18_a_corrupt_pid_file_is_said_to_be_one() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    let file = dir.join(".test-x.pid");
    for (what, content) in corrupt_pid_files() {
        std::fs::write(&file, &content).expect("the run directory");
        let out = scene.tool("tb-status").arg("x").run().expect(5);
        assert!(out.stdout.contains("x  FINISHED (no marker)  PID: -"), "{what}: {out}");
        assert!(
            out.stdout.contains("PID file corrupt: ") && out.stdout.contains("tb-clean"),
            "{what}: {out}"
        );
        assert!(out.stdout.len() < 2000, "{what}: bounded");
        scene.tool("tb-status").run().ok().says("x  ").says("PID file corrupt: ");
        let status = scene.status("x");
        assert!(status["pid"].is_null() && status["outcome"] == "crashed", "{what}: {status}");
        assert_eq!(std::fs::read(&file).expect("left alone"), content);
    }
}

#[test]
fn with_a_log_the_log_decides() {
    let scene = Scene::new();
    let header = header("x");
    log(&scene, "x", &[&header.line(), b"output\n", &footer(&header, Outcome::Passed).lines()]);
    for (what, content) in corrupt_pid_files() {
        scene.file(".gate-logs/.test-x.pid", content);
        let out = scene.tool("tb-status").arg("x").run().expect(0).says("FINISHED (PASS)");
        assert!(out.stdout.contains("PID file corrupt"), "{what}: {out}");
    }
}

#[test]
fn what_is_no_plain_file_is_named_and_the_other_jobs_are_shown() {
    for odd in Odd::ALL {
        let scene = Scene::new();
        let dir = scene.make_run_dir();
        scene.file(".gate-logs/test-y-20200725_143000.log", "=== GATE: PASSED ===\n");
        odd.make(&dir.join(".test-x.pid"), "4242\n");
        let before = scene.files();
        let out = scene.tool("tb-status").arg("x").run().expect(125);
        assert!(out.stderr.contains(".gate-logs/.test-x.pid"), "{odd:?}: {out}");
        let out = scene.tool("tb-status").run().expect(125).says("(1 tracked)").says("y  ");
        assert!(out.stderr.contains(".gate-logs/.test-x.pid"), "{odd:?}: {out}");
        scene.tool("tb-status").args(["x", "y"]).run().expect(125).says("y  FINISHED (PASS)");
        scene.assert_untouched(&before);
    }
}

#[test]
fn the_tools_own_ancestor_is_running() {
    let scene = Scene::new();
    scene.make_run_dir();
    let script = "echo $$ > .gate-logs/.test-x.pid; tb-status x; echo code=$? pid=$$";
    let out = scene.sh(script).run().ok().says("code=3");
    let pid = out.stdout.rsplit_once("pid=").expect("as printed").1.trim();
    assert!(out.stdout.contains(&format!("x  RUNNING  PID: {pid}")), "{out}");
}

#[test]
fn g28_neither_file_is_not_tracked_and_the_live_names_are_told() {
    let scene = Scene::new();
    let out = scene.tool("tb-status").arg("x").run().expect(4);
    assert!(
        out.stderr.contains("cannot find x: not tracked in .gate-logs") && out.stdout.is_empty(),
        "{out}"
    );
    assert!(!scene.run_dir().exists(), "readers make nothing");
    scene.launch("y", "await go");
    scene.launch("z", "exit 0");
    scene.wait_for("z", 0);
    let out = scene.tool("tb-status").arg("x").run().expect(4);
    assert!(out.stderr.contains("running: y\n"), "t14: {out}");
    scene.file("go", "");
    scene.wait_for("y", 0);
    scene.tool("tb-status").args(["x", "y", "z"]).run().expect(4).says("y  FINISHED (PASS)");
}

#[test]
fn a_number_that_a_shell_wrote_into_a_live_pid_file_fools_nobody() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 3");
    let leader = scene.await_birth("main");
    let file = scene.run_dir().join(".test-x.pid");
    for text in ["2147483647\n", "", "junk"] {
        std::fs::write(&file, text).expect("the run directory");
        let out = scene.tool("tb-status").arg("x").run().expect(3);
        assert!(out.stdout.contains(&format!("PID: {}", leader.pid)), "{out}");
        assert!(out.stdout.contains("PID file overwritten"), "{out}");
    }
    let me = std::process::id();
    std::fs::write(&file, format!("{me}\n")).expect("the run directory");
    // A file's time lags behind the clock: what was written just before the end may have been written after it.
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(1);
    let written = std::fs::File::options().write(true).open(&file);
    written.and_then(|file| file.set_modified(before)).expect("the run directory");
    scene.tool("tb-status").arg("x").run().expect(3).says(&format!("PID file overwritten by PID {me}"));
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "10ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    scene.file("go", "");
    // Who waited for the job hears of its end, and so does who asks later: what was written over its file while it ran
    // is no run of its own.
    waiter.wait().expect(1).says("x: FINISHED (FAIL)").says("exit 3");
    assert!(file.exists());
    scene.tool("tb-status").arg("x").run().expect(1).says("FINISHED (FAIL)");
}
