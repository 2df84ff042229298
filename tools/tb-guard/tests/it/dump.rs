//! --dump on real test runs that hang: which test, where, for how long.

use tb_tests::{Output, Scene};

const DEADLOCK: &str = "\
import threading
def test_before(): pass
def test_deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()  # here it hangs
";
const TEARDOWN: &str = "\
import pytest, time
@pytest.fixture
def server():
    yield 1
    stop_server()
def stop_server():
    time.sleep(1000)
def test_uses_server(server): pass
";

/// Runs pytest under a guard, its output in a log, until nothing has happened for a while.
fn hang(scene: &Scene, options: &str, arguments: &str) -> (Output, String) {
    let tool =
        scene.tool("tb-guard").args(["--dump", "--log", "out.log"]).args(options.split_ascii_whitespace());
    let tool = tool.arg(tb_tests::python()).args(["-m", "pytest", "-v"]);
    let out = tool.args(arguments.split_ascii_whitespace()).run().expect(124);
    scene.assert_quiet();
    (out, scene.read("out.log"))
}

#[test]
fn a_deadlock_in_a_test_is_named_with_its_line() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("test_dead.py", DEADLOCK)]);
    let (_, log) = hang(&scene, "--stall 3 60", "");
    assert!(log.contains("last test: test_dead.py::test_deadlock, running for at least "), "{log}");
    assert!(log.contains("line 6 in test_deadlock"), "Python's own traceback: {log}");
    assert!(log.contains("=== tb: what is running before it is stopped ==="), "{log}");
    assert!(log.contains(" CPU ") && log.contains("-m pytest -v"), "{log}");
}

#[test]
fn a_hang_in_a_fixtures_teardown_is_named_too() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("test_tear.py", TEARDOWN)]);
    let (_, log) = hang(&scene, "--stall 3 60", "");
    assert!(log.contains("last test: test_tear.py::test_uses_server"), "{log}");
    assert!(log.contains("in stop_server") && log.contains("in server"), "{log}");
}

#[test]
fn a_stuck_xdist_worker_shows_where_it_is() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("test_dead.py", DEADLOCK)]);
    let (_, log) = hang(&scene, "--stall 5 60", "-n 2");
    assert!(log.contains("test_deadlock"), "{log}");
    assert!(log.contains("line 6 in test_deadlock"), "{log}");
}

#[test]
fn tracebacks_of_several_pythons_do_not_run_into_each_other() {
    let scene = Scene::new();
    // Each has so much to say that it takes many writes.
    let script = "import faulthandler, subprocess, sys, threading, time\nfaulthandler.enable()\n\
        def wait_for_ever():\n    while True: time.sleep(1000)\n\
        for n in range(40): threading.Thread(target=wait_for_ever).start()\n\
        if len(sys.argv) == 1:\n    for n in range(4): subprocess.Popen([sys.executable, 'threads.py', 'child'])\n\
        open(f'ready-{time.monotonic_ns()}', 'w').close()\nwait_for_ever()\n";
    scene.file("threads.py", script);
    let tool = scene.tool("tb-guard").args(["--dump", "--log", "out.log", "--stall", "3", "60"]);
    tool.arg(tb_tests::python()).arg("threads.py").run().expect(124);
    let log = scene.read("out.log");
    let (_, dumped) = log.split_once("=== tb: end of the diagnosis ===\n").unwrap_or_else(|| panic!("{log}"));
    let form = |line: &str| {
        line.is_empty()
            || line == "Fatal Python error: Aborted"
            || line.starts_with("Thread 0x") && line.ends_with(" (most recent call first):")
            || line.starts_with("Current thread 0x") && line.ends_with(" (most recent call first):")
            || line.starts_with("  File \"") && line.split(" in ").count() == 2
    };
    for line in dumped.lines() {
        assert!(form(line), "{line:?} in\n{log}");
    }
    assert_eq!(dumped.matches("Fatal Python error: Aborted").count(), 5, "{log}");
    assert_eq!(dumped.matches(" in <module>").count(), 5, "{log}");
    scene.assert_quiet();
}

#[test]
fn a_python_that_handles_term_has_its_grace_first() {
    let mut scene = Scene::new();
    let handler = "import signal, time\n\
        def test_slow():\n    signal.signal(signal.SIGTERM, lambda *_: open('told', 'w').close())\n    wait_for_ever()\n\
        def wait_for_ever():\n    while True: time.sleep(1000)\n";
    scene.pytest_project(&[("test_slow.py", handler)]);
    let (_, log) = hang(&scene, "--stall 3 --grace 1 60", "");
    assert!(scene.path("told").exists(), "{log}");
    assert!(log.contains("in wait_for_ever"), "ABRT after the grace: {log}");
}

#[test]
fn py_spy_is_used_where_it_is_on_path() {
    let scene = Scene::new();
    scene.file("bin/py-spy", "#!/bin/sh\necho \"stacks of $4, asked with $1 $2 $3\"\n");
    scene.file("spin.py", "import time\nwhile True: time.sleep(1)\n");
    let script = format!(
        "chmod +x bin/py-spy; PATH=$PWD/bin:$PATH; tb-guard --dump --stall 1 60 {} spin.py",
        tb_tests::python().display()
    );
    let out = scene.sh(&script).run().expect(124);
    assert!(out.stderr.contains("asked with dump --nonblocking --pid"), "{out}");
    // One that hangs holds up the end for some seconds at most, and not the beginning of it for ever.
    scene.file("bin/py-spy", "#!/bin/sh\nexec tb-fixture hold\n");
    scene.sh(&script).run().expect(124);
    scene.assert_quiet();
}

#[test]
fn without_a_test_run_the_processes_are_shown_all_the_same() {
    let scene = Scene::new();
    let out = crate::guard(&scene, "--dump 0.7", "spawn-setsid [ role deep hold ] hold").run().expect(124);
    for role in ["main", "deep"] {
        let pid = scene.await_birth(role).pid;
        assert!(out.stderr.contains(&format!("{pid}  S")), "{out}");
    }
    assert!(!out.stderr.contains("last test"), "{out}");
}

#[test]
fn a_diagnosis_that_nobody_reads_does_not_hold_up_the_end() {
    let scene = Scene::new();
    let script = "mkfifo full; exec 4<>full; head -c 65536 /dev/zero >&4; \
        tb-guard --dump --log out 0.3 tb-fixture hold 2>/dev/null; echo $?; \
        tb-guard --dump --report r.json 0.3 tb-fixture role last hold 2>&4 & \
        until grep -q limit r.json 2>/dev/null; do sleep 0.05; test -e stop && break; done; kill -KILL $!; wait";
    // It says the last word to somebody who never reads: the tree is gone by then.
    let running = scene.sh(script).spawn();
    let last = scene.await_birth("last");
    tb_tests::until("the command has gone", || (!last.alive()).then_some(()));
    scene.file("stop", "");
    running.wait().says("124\n");
    scene.assert_quiet();
}
