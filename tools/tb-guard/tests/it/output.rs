//! Where the output goes, and what is said: --log, --quiet-success, --heartbeat, --report.

use crate::guard;
use serde_json::Value;
use tb_tests::Scene;

const PASSING: (&str, &str) = ("test_ok.py", "def test_one(): pass\ndef test_two(): pass\n");
const FAILING: (&str, &str) = (
    "test_bad.py",
    "import pytest\ndef test_fine(): pass\ndef test_wrong(): assert 1 == 2\ndef test_also(): raise KeyError('k')\n",
);

#[test]
fn p06_output_goes_straight_to_the_log_and_nothing_else_does() {
    let scene = Scene::new();
    scene.file("out", "what was there before\n");
    let out = guard(&scene, "--log out 60", "print one print-err two caught-signals exit 3").run().expect(3);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("", ""));
    let log = scene.read("out");
    assert!(log.starts_with("one\ntwo\n"), "{log}");
    let path = scene.path("out").canonicalize().expect("the log is there");
    for fd in ["fd 1 ", "fd 2 "] {
        assert!(log.contains(&format!("{fd}{}", path.display())), "no pipe in between: {log}");
    }
    // Two writers do not overwrite each other's lines, and a truncating one does no harm to later ones.
    guard(&scene, "--log out 60", "print one truncate-stderr print two exit 0").run().ok();
    assert!(!scene.read("out").contains('\0'));
}

#[test]
fn a_log_may_be_anything_that_can_be_written() {
    let scene = Scene::new();
    guard(&scene, "--log /dev/null 60", "print one exit 4").run().expect(4);
}

#[test]
fn p01_p20_success_is_one_line() {
    let mut scene = Scene::new();
    scene.pytest_project(&[PASSING]);
    let python = tb_tests::python();
    let out = scene
        .tool("tb-guard")
        .args(["--quiet-success", "--log", "out.log", "60"])
        .arg(&python)
        .args(["-m", "pytest", "-v"])
        .run()
        .ok();
    assert_eq!(out.stdout.lines().count(), 1, "{out}");
    assert!(out.stdout.starts_with("PASS: ") && out.stdout.ends_with("Log: out.log\n"), "{out}");
    assert_eq!(out.stderr, "");
    let out = scene
        .tool("tb-guard")
        .args(["--quiet-success", "60"])
        .arg(&python)
        .args(["-m", "pytest", "-v"])
        .run()
        .ok();
    assert_eq!(out.stdout.lines().count(), 1, "{out}");
}

#[test]
fn p03_p19_failure_is_the_output_without_progress_the_failed_tests_and_the_log() {
    let mut scene = Scene::new();
    scene.pytest_project(&[PASSING, FAILING]);
    let python = tb_tests::python();
    let tool = scene.tool("tb-guard").args(["--quiet-success", "--log", "out.log", "60"]);
    let out = tool.arg(&python).args(["-m", "pytest", "-v"]).run().expect(1);
    for gone in ["test_one PASSED", "test_fine PASSED"] {
        assert!(!out.stdout.contains(gone), "{out}");
        assert!(scene.read("out.log").contains(gone));
    }
    out.says("assert 1 == 2")
        .says("test_wrong FAILED")
        .says("exit 1\n  test_bad.py::test_also\n  test_bad.py::test_wrong\nLog: out.log\n")
        .says("tb-results --grep");
}

#[test]
fn p18_time_up_is_a_timeout_line_the_last_lines_indented_and_the_log() {
    let scene = Scene::new();
    let script = "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; exec tb-fixture hold";
    let tool =
        scene.tool("tb-guard").args(["--quiet-success", "--log", "out.log", "0.7", "sh", "-c", script]);
    let out = tool.run().expect(124);
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert!(lines[0].starts_with("TIMEOUT: "), "{out}");
    assert_eq!((lines[1], lines[30]), ("  line 20", "  line 49"), "{out}");
    assert_eq!(lines[31], "Log: out.log");
}

#[test]
fn quiet_output_of_what_is_left_running_ends() {
    let scene = Scene::new();
    let flood = "spawn-setsid [ repeat 20000 [ print-line 400 ] hold ] ready exit 3";
    let out = guard(&scene, "--quiet-success --leaks allow 60", flood).run().expect(3);
    assert!(out.stdout.contains("FAIL: "));
}

#[test]
fn p02_heartbeats_tell_a_hung_run_from_a_dead_terminal() {
    let scene = Scene::new();
    let running = guard(&scene, "--heartbeat 0.1 60", "await go exit 3").spawn();
    let said = running.until_stderr("still running [0s elapsed]");
    assert!(said.starts_with('[') && said.contains("tb-fixture: still running"), "{said}");
    scene.file("go", "");
    running.wait().expect(3);
}

#[test]
fn the_report_says_how_it_ended_and_what_was_killed() {
    let scene = Scene::new();
    let read = || serde_json::from_str::<Value>(&scene.read("r.json")).expect("a report");
    guard(&scene, "--report r.json 60", "exit 3").run().expect(3);
    let r = read();
    assert_eq!(
        (&r["v"], &r["verdict"], &r["reason"], &r["code"], &r["exit_code"]),
        (&1.into(), &"failed".into(), &"exit".into(), &3.into(), &3.into())
    );
    assert!(r["signal"].is_null() && r["elapsed_seconds"].is_number() && r["cpu_seconds"].is_number());
    guard(&scene, "--report r.json --grace 0.3 0.7", "spawn-setsid [ ignore-term hold ] hold")
        .run()
        .expect(124);
    let r = read();
    assert_eq!(
        (&r["verdict"], &r["reason"], &r["signal"], &r["stopped_with"]),
        (&"timeout".into(), &"limit".into(), &"SIGTERM".into(), &"SIGKILL".into())
    );
    let stopped = r["stopped"].as_array().expect("what was killed");
    let pid = scene.await_birth("setsid").pid;
    assert!(stopped.len() == 2 && stopped.iter().any(|s| s["pid"] == pid), "{r}");
    // A command that says 124 itself is told apart by nothing else.
    guard(&scene, "--report r.json 60", "exit 124").run().expect(124);
    assert_eq!(read()["verdict"], "failed");
    scene.tool("tb-guard").args(["--report", "r.json", "60", "./no-such-command"]).run().expect(127);
    assert_eq!((&read()["verdict"], &read()["code"]), (&"error".into(), &127.into()));
    let running = guard(&scene, "--report r.json 60", "role r on-term [ exit 0 ] hold").spawn();
    scene.await_birth("r");
    running.signal(rustix::process::Signal::TERM);
    running.wait().ok();
    assert_eq!((&read()["verdict"], &read()["reason"]), (&"killed".into(), &"kill".into()));
}
