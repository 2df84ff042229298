//! Not mere liveness: phases, pytest's own progress, stopped and idle jobs.

use rustix::process::Signal;
use std::fs::File;
use std::time::{Duration, Instant, SystemTime};
use tb_tests::{Scene, until};

#[test]
fn g25_g62_c56_the_last_phase_is_shown() {
    let scene = Scene::new();
    let script = "for p in lint typecheck collect test-unit smoke.v2_x; do echo \"=== GATE PHASE: $p ===\"; \
        echo $p > at; while [ ! -e go.$p ]; do sleep 0.01; done; done; echo '=== GATE PHASE: two words ==='; exit 0";
    scene.tool("tb-launch").args(["--name", "x", "--", "sh", "-c", script]).run().ok();
    for phase in ["lint", "typecheck", "collect", "test-unit", "smoke.v2_x"] {
        until("it is there", || (scene.read("at").trim() == phase).then_some(()));
        let out = scene.tool("tb-status").arg("x").run().expect(3);
        assert!(out.stdout.starts_with(&format!("x  RUNNING ({phase})  PID: ")), "{out}");
        assert_eq!(scene.status("x")["current_phase"], phase);
        scene.file(format!("go.{phase}"), "");
    }
    scene.wait_for("x", 0);
    assert_eq!(scene.status("x")["current_phase"], "smoke.v2_x");
}

#[test]
fn p05_g25_pytests_own_progress_is_shown() {
    let mut scene = Scene::new();
    let wait = "import os, time\n\ndef wait(n):\n    open(f'at{n}', 'w').close()\n    while not os.path.exists(f'go{n}'):\n        time.sleep(0.01)\n";
    let test = "from helper import wait\nwait(0)\n\ndef test_one():\n    pass\n\ndef test_two():\n    wait(2)\n\ndef test_three():\n    pass\n\ndef test_four():\n    wait(4)\n";
    scene.pytest_project(&[("helper.py", wait), ("tests/test_a.py", test)]);
    scene.tool("tb-launch").arg("tests/test_a.py").env("PYTHONPATH", scene.dir()).run().ok();
    let at = |n: u32| until("pytest is there", || scene.path(format!("at{n}")).exists().then_some(()));
    at(0);
    let out = scene.tool("tb-status").arg("tests/test_a.py").run().expect(3);
    assert!(out.stdout.starts_with("tests/test_a.py  RUNNING (collect)  PID: "), "{out}");
    scene.file("go0", "");
    at(2);
    let out = scene.tool("tb-status").run().ok();
    assert!(out.stdout.contains("tests/test_a.py               RUNNING (test 25%)   PID: "), "{out}");
    let status = scene.status("tests/test_a.py");
    assert_eq!((&status["percent"], &status["current_phase"]), (&25.into(), &"test".into()));
    assert_eq!(status["last_test"], "tests/test_a.py::test_two");
    scene.file("go2", "");
    at(4);
    assert_eq!(scene.status("tests/test_a.py")["percent"], 75);
    scene.file("go4", "");
    scene.wait_for("tests/test_a.py", 0);
}

#[test]
fn a_stopped_leader_is_said_to_be_stopped() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let leader = scene.await_birth("main");
    assert!(leader.signal(Signal::STOP));
    until("it is stopped", || leader.stat().filter(|s| s.state == 'T'));
    scene.tool("tb-status").arg("x").run().expect(3).says("x  RUNNING (stopped)  PID: ");
    scene.tool("tb-status").run().ok().says("RUNNING (stopped)");
    assert!(leader.signal(Signal::CONT));
    until("it goes on", || leader.stat().filter(|s| s.state != 'T'));
    scene.tool("tb-status").arg("x").run().expect(3).says("x  RUNNING  PID: ");
    assert!(leader.signal(Signal::STOP));
    scene.tool("tb-kill").arg("x").run().ok();
}

fn quiet_for(scene: &Scene, name: &str, ago: Duration) {
    let file = File::options().write(true).open(scene.log_of(name)).expect("our own log");
    file.set_modified(SystemTime::now() - ago).expect("our own log");
}

#[test]
fn a_job_that_only_just_ran_is_not_idle_however_old_its_log() {
    let scene = Scene::new();
    scene.launch("x", "spawn-setsid [ cpu 100 ] hold");
    scene.await_birth("setsid");
    quiet_for(&scene, "x", Duration::from_secs(300));
    let out = scene.tool("tb-status").arg("x").run().expect(3).says("last output 5m ago");
    assert!(!out.stdout.contains("idle"), "it computes: {out}");
    assert!(scene.status("x")["idle_seconds"].as_f64().is_some_and(|s| s >= 300.0));
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn a_job_without_output_and_cpu_is_called_idle() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    scene.await_birth("main");
    let start = Instant::now();
    loop {
        quiet_for(&scene, "x", Duration::from_secs(300));
        let out = scene.tool("tb-status").arg("x").run().expect(3);
        if out.stdout.contains("RUNNING (idle ") {
            assert!(out.stdout.contains("s: no output, no CPU)"), "{out}");
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(110), "{out}");
        std::thread::sleep(Duration::from_secs(1));
    }
    scene.tool("tb-kill").arg("x").run().ok();
}
