//! The helpers keep what they promise: clean environments, bounds, and nothing left running.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tb_tests::{Scene, until};

fn message(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a text")
}

#[test]
fn commands_run_in_the_scene_with_a_clean_environment() {
    let mut scene = Scene::new();
    scene.set_env("TB_OWNER", "me");
    let out = scene.sh("pwd; env").env("TB_LOG_DIR", "logs").env_remove("TB_OWNER").run().ok();
    assert_eq!(out.stdout.lines().next(), scene.dir().to_str());
    assert!(!out.stdout.contains("TB_OWNER") && out.stdout.contains("TB_LOG_DIR=logs"));
    let out = scene.sh("env").run().ok();
    let disturbing: Vec<_> =
        out.stdout
            .lines()
            .filter(|l| l.starts_with("TB_") && !l.starts_with("TB_TEST_") && !l.starts_with("TB_OWNER=me"))
            .chain(out.stdout.lines().filter(|l| {
                l.starts_with("MAKEFLAGS") || l.starts_with("PYTEST_") || l.starts_with("GLUDD_")
            }))
            .collect();
    assert!(disturbing.is_empty(), "{disturbing:?}");
}

#[test]
fn a_child_that_does_not_end_is_killed_and_named() {
    let scene = Scene::new();
    let child = scene.fixture("print before hold").deadline(Duration::from_millis(500)).spawn();
    child.until_stdout("before\n");
    let said = message(|| drop(child.wait()));
    assert!(
        said.contains("tb-fixture print before hold still ran after 500ms") && said.contains("before\n"),
        "{said}"
    );
    scene.assert_quiet();
}

#[test]
fn output_that_is_held_open_is_a_failure_unless_expected() {
    let scene = Scene::new();
    let child = scene.fixture("hold-pipe").deadline(Duration::from_millis(500)).spawn();
    until("it has ended", || child.ended().then_some(()));
    let said = message(|| drop(child.wait()));
    assert!(said.contains("holds its output open"), "{said}");
    let out = scene.fixture("print all hold-pipe").held_pipes().run().ok();
    assert_eq!(out.stdout, "all\n");
    assert_eq!(scene.living().len(), 2);
}

#[test]
fn nothing_outlives_its_scene() {
    let scene = Scene::new();
    let words = "spawn-setsid [ ignore-term daemon [ ignore-term hold ] hold ] daemon-envclear [ ignore-term hold ] \
                 spawn-setpgid [ stopped ] spawn-setsid [ threads 1 ] exec sleep 600";
    let _child = scene.fixture(words).held_pipes().spawn();
    // What cleared its environment and is no fixture is found as a descendant.
    let _other = scene.cmd("env").args(["-i", "sh", "-c", "sleep 600 & wait"]).through(["ready"]).spawn();
    for role in ["setsid", "daemon", "daemon-envclear", "setpgid", "main"] {
        scene.await_birth(role);
    }
    scene.await_births("setsid", 2);
    let before = until("all eight run", || Some(scene.living()).filter(|l| l.len() == 8));
    drop(scene);
    let left: Vec<_> = before.into_iter().filter(|p| p.alive()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_still_runs_is_told() {
    let scene = Scene::new();
    scene.assert_quiet();
    let child = scene.fixture("await go exit 4").spawn();
    scene.await_birth("main");
    assert_eq!(scene.living(), [child.proc()]);
    scene.file("go", "");
    child.wait().expect(4);
    scene.assert_quiet();
}

#[test]
fn demands_show_everything_that_was_said() {
    let scene = Scene::new();
    let out = scene.sh("echo out; echo err >&2; exit 5").run();
    let said = message(|| drop(out.clone().ok()));
    assert!(said.contains("expected exit code 0") && said.contains("exit code 5"), "{said}");
    assert!(said.contains("--- stdout\nout\n--- stderr\nerr\n"), "{said}");
    out.expect(5).says("out").complains("err");
}

#[test]
fn standard_input_is_given() {
    let scene = Scene::new();
    let out = scene.cmd("cat").stdin("{\"a\":1}\n{\"a\":2}\n").run().ok();
    assert_eq!(out.json().iter().map(|v| v["a"].as_i64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[test]
fn a_pytest_project_runs() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("tests/test_a.py", "def test_a():\n    pass\n")]);
    scene.sh("\"$TB_PYTHON\" -m pytest tests -v").run().ok().says("1 passed");
    assert!(!scene.path(".pytest_cache").exists());
}
