//! A terminal: what its keys do reaches the command once, and stops no guard.

use tb_tests::{Scene, until};

const NOTING: &str = "trap 'echo int >>got' INT; trap 'echo quit >>got' QUIT; trap 'exit 7' USR1; \
    echo >ready; while test ! -e go; do sleep 0.05; done; exit 9";

#[test]
fn ctrl_c_reaches_the_command_exactly_once() {
    for options in ["60", "-f 60", "--grace 30 60"] {
        let scene = Scene::new();
        scene.file("noting", NOTING);
        let script = format!("exec tb-guard --grace 30 {options} sh noting");
        let mut running = scene.terminal(&script).keys().spawn();
        until("the command listens", || scene.path("ready").exists().then_some(()));
        running.press(b"\x03");
        until("the command has it", || (!scene.read("got").is_empty()).then_some(()));
        scene.file("go", "");
        running.wait().expect(9);
        assert_eq!(scene.read("got"), "int\n", "{options}");
    }
}

#[test]
fn ctrl_c_ends_what_does_not_handle_it_with_130() {
    for name in ["tb-guard", "./timeout"] {
        let scene = Scene::new();
        crate::timeout(&scene, "--version").run().ok();
        let mut running = scene.terminal(&format!("exec {name} 60 tb-fixture role r hold")).keys().spawn();
        scene.await_birth("r");
        running.press(b"\x03");
        running.wait().expect(130);
        scene.assert_quiet();
    }
}

#[test]
fn ctrl_c_reaches_pytest_exactly_once() {
    let mut scene = Scene::new();
    // A second INT would cut the teardown short.
    let test = "import pytest, time\n\
        @pytest.fixture(scope='session', autouse=True)\ndef server():\n    yield\n    time.sleep(0.5)\n    open('torn-down', 'w').close()\n\
        def test_long():\n    open('ready', 'w').close()\n    time.sleep(1000)\n";
    scene.pytest_project(&[("test_long.py", test)]);
    let script = format!("exec tb-guard --grace 30 60 {} -m pytest -v", tb_tests::python().display());
    let mut running = scene.terminal(&script).keys().spawn();
    until("the test runs", || scene.path("ready").exists().then_some(()));
    running.press(b"\x03");
    let out = running.wait();
    assert!(scene.path("torn-down").exists(), "{out}");
    // pytest's own code for an interrupted run.
    assert_eq!(out.code, Some(2), "{out}");
}

#[test]
fn ctrl_c_in_make_reaches_a_recipe_with_f_and_ends_its_tree() {
    let scene = Scene::new();
    let recipe = "tb-guard -f 60 tb-fixture role r spawn-setsid [ role away hold ] hold";
    scene.file("Makefile", format!("check:\n\t{recipe}\n"));
    let mut running = scene.terminal("exec make check").keys().spawn();
    scene.await_birth("r");
    scene.await_birth("away");
    running.press(b"\x03");
    running.wait().expect(130).says("Interrupt");
    scene.assert_quiet();
}

#[test]
fn reading_the_terminal_in_the_background_stops_the_command_and_never_the_guard() {
    let scene = Scene::new();
    crate::timeout(&scene, "--version").run().ok();
    // From a script both are in the background: the command is stopped by the terminal until its time is up.
    let script = "./timeout 1 sh -c 'read x </dev/tty'; echo \"said $?\"; \
        stty tostop; tb-guard -v 1 sh -c 'echo x >/dev/tty'; echo \"said $?\"";
    let out = scene.terminal(script).keys().run().ok();
    assert_eq!(out.stdout.matches("said 124").count(), 2, "{out}");
    assert!(out.stdout.contains("it stood still (state T)"), "{out}");
    scene.assert_quiet();
}
