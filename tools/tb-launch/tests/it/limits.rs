//! --limit, --stall and --dump: outcome timeout, and why.

use serde_json::Value;
use tb_tests::Scene;

fn launch(scene: &Scene, options: &str, words: &str) -> Value {
    let options = options.split_ascii_whitespace();
    let tool = scene.tool("tb-launch").args(["--name", "x"]).args(options).arg("--");
    tool.args(scene.fixture_argv(words)).run().ok();
    scene.wait_for("x", 1);
    scene.assert_quiet();
    scene.status("x")
}

fn is_timeout(job: &Value, reason: &str) {
    assert_eq!((&job["status"], &job["outcome"]), (&"FINISHED".into(), &"timeout".into()), "{job}");
    assert_eq!((&job["reason"], &job["terminal_marker"]), (&reason.into(), &"FAIL".into()), "{job}");
}

#[test]
fn a_job_whose_time_is_up_is_a_timeout_and_its_whole_tree_goes() {
    let scene = Scene::new();
    let words =
        "spawn-setsid [ ignore-term hold ] daemon-envclear [ ignore-term hold ] on-term [ exit 0 ] hold";
    let job = launch(&scene, "--limit 1 --grace 0.5", words);
    is_timeout(&job, "limit");
    assert_eq!(job["exit_code"], 0, "what the leader said is recorded, and is no pass");
}

#[test]
fn a_job_that_does_nothing_is_stalled_and_a_busy_one_is_not() {
    let scene = Scene::new();
    is_timeout(&launch(&scene, "--stall 1 --limit 60", "print x hold"), "stall");
    let scene = Scene::new();
    is_timeout(&launch(&scene, "--stall 1 --limit 3", "cpu 100"), "limit");
}

#[test]
fn a_dump_in_the_log_names_the_test_and_pythons_line() {
    let mut scene = Scene::new();
    let test = "import threading\ndef test_fine(): pass\ndef test_stuck():\n    wait_for_ever()\n\
        def wait_for_ever():\n    threading.Event().wait()\n";
    scene.pytest_project(&[("test_stuck.py", test)]);
    scene.tool("tb-launch").args(["--stall", "3", "--limit", "60", "--dump", "test_stuck.py"]).run().ok();
    scene.wait_for("test_stuck.py", 1);
    is_timeout(&scene.status("test_stuck.py"), "stall");
    let log = std::fs::read_to_string(scene.log_of("test_stuck.py")).expect("a log");
    let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("no {text:?} in {log}"));
    let stopping = place("=== GATE STOPPING: ");
    let dump = place("=== tb: what is running before it is stopped ===");
    let test = place("last test: test_stuck.py::test_stuck, running for at least ");
    let line = place("in wait_for_ever");
    assert!(stopping < dump && dump < test && test < line && line < place("=== GATE RESULT: "), "{log}");
}

#[test]
fn a_job_that_ends_in_time_is_none_of_this() {
    let scene = Scene::new();
    let options = ["--name", "x", "--limit", "60", "--stall", "60", "--dump", "--", "true"];
    scene.tool("tb-launch").args(options).run().ok();
    scene.wait_for("x", 0);
    assert!(scene.status("x")["reason"] == "exit");
}
