//! How waits end.

use rustix::process::Signal;
use std::fs;
use tb_tests::Scene;

#[test]
fn a_job_already_over_returns_at_once_with_its_verdict() {
    let scene = Scene::new();
    for (name, words, code) in [("p", "exit 0", 0), ("f", "exit 2", 1), ("s", "kill-self KILL", 1)] {
        scene.launch(name, words);
        scene.wait_for(name, code);
        scene.tool("tb-wait").args(["--timeout", "0", name]).run().expect(code);
    }
    scene.tool("tb-clean").run().ok();
    scene.tool("tb-wait").arg("f").run().expect(1).says("f: FINISHED (FAIL)");
}

#[test]
fn g46_it_is_woken_by_the_end_itself() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 4");
    let waiters: Vec<_> =
        (0..5).map(|_| scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn()).collect();
    waiters.iter().for_each(|w| drop(w.until_stderr("x: RUNNING")));
    scene.file("go", "");
    for waiter in waiters {
        waiter.wait().expect(1).says("x: FINISHED (FAIL)").says("exit 4");
    }
}

#[test]
fn of_several_the_worst_counts_and_each_is_told() {
    let scene = Scene::new();
    scene.launch("a", "exit 0");
    scene.launch("b", "exit 1");
    scene.make_run_dir();
    scene.file(".gate-logs/test-c-20200725_143000.log", "no verdict\n");
    let out = scene.tool("tb-wait").args(["a", "b", "a"]).run().expect(1);
    assert_eq!(out.stdout.lines().count(), 2, "a name twice is one job: {out}");
    scene.tool("tb-wait").args(["a", "b", "c"]).run().expect(5).says("c: FINISHED (no marker)");
    let out = scene.tool("tb-wait").arg("--stdin-names").stdin("a\nb\n").run().expect(1);
    assert_eq!(out.stdout.lines().count(), 2, "{out}");
    scene.tool("tb-wait").args(["--stdin-names", "-0"]).stdin("a\0b\0").run().expect(1);
    assert_eq!(scene.tool("tb-wait").arg("--stdin-names").run().ok().stdout, "", "an empty list is over");
}

#[test]
fn any_ends_with_the_first_and_its_code() {
    let scene = Scene::new();
    scene.launch("slow", "hold");
    scene.launch("quick", "await go exit 3");
    let waiter = scene.tool("tb-wait").args(["--any", "slow", "quick"]).spawn();
    scene.file("go", "");
    let out = waiter.wait().expect(1);
    assert!(out.stdout.starts_with("quick: FINISHED (FAIL)") && out.stdout.lines().count() == 1, "{out}");
    scene.tool("tb-status").arg("slow").run().expect(3);
    scene.tool("tb-kill").arg("slow").run().ok();
}

#[test]
fn g47_when_the_time_is_up_the_jobs_go_on() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let out = scene.tool("tb-wait").args(["--timeout", "20ms", "x"]).run().expect(124);
    assert!(out.stderr.contains("x still runs after") && out.stderr.contains("it goes on"), "{out}");
    scene.tool("tb-wait").arg("x").env("TB_WAIT_TIMEOUT", "0.02").run().expect(124);
    scene.tool("tb-wait").arg("x").env("GLUDD_TEST_DEFAULT_TIMEOUT_MIN", "0.0005").run().expect(124);
    scene.tool("tb-status").arg("x").run().expect(3);
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn g49_kill_on_timeout_stops_what_still_runs() {
    let scene = Scene::new();
    scene.launch("x", "spawn-setsid [ ignore-term hold ] hold");
    scene.launch("y", "exit 0");
    scene.await_birth("setsid");
    let wait = scene.tool("tb-wait").args(["--timeout", "50ms", "--kill-on-timeout", "x", "y"]);
    let out = wait.env("TB_KILL_GRACE", "0.05").run().expect(124);
    assert!(out.stderr.contains("x still runs after") && out.stderr.contains("stopped"), "{out}");
    scene.assert_quiet();
    assert_eq!(scene.status("x")["outcome"], "killed");
    assert_eq!(scene.status("y")["outcome"], "passed");
}

#[test]
fn g50_a_vanished_pid_file_is_no_error() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 3");
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    fs::remove_file(scene.run_dir().join(".test-x.pid")).expect("our own file");
    scene.tool("tb-status").arg("x").run().expect(3).says("RUNNING");
    scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    let late = scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn();
    late.until_stderr("RUNNING");
    scene.file("go", "");
    waiter.wait().expect(1);
    late.wait().expect(1);
    assert_eq!(scene.status("x")["exit_code"], 3);
}

#[test]
fn g26_g51_an_end_that_nobody_recorded_is_no_verdict() {
    let scene = Scene::new();
    let child = scene.fixture("await go exit 0").spawn();
    scene.make_run_dir();
    scene.file(".gate-logs/.test-x.pid", format!("{}\n", child.pid()));
    scene.file(".gate-logs/test-x-20200725_143000.log", "output\n");
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn();
    waiter.until_stderr("x: RUNNING");
    scene.file("go", "");
    child.wait().ok();
    waiter.wait().expect(5).says("x: FINISHED (no marker)");
}

#[test]
fn a_new_run_of_the_name_is_not_the_one_that_was_waited_for() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 3");
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    // While it sleeps the run ends and another begins.
    waiter.signal(Signal::STOP);
    scene.file("go", "");
    scene.wait_for("x", 1);
    scene.launch("x", "role second hold");
    scene.await_birth("second");
    waiter.signal(Signal::CONT);
    waiter.wait().expect(1).says("x: FINISHED (FAIL)");
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn t08_t09_after_the_wait_all_output_is_there_and_nothing_runs_any_more() {
    let scene = Scene::new();
    // What it leaves in its group writes until it is stopped; what left its session too.
    scene.launch("x", "spawn-same [ print same ready hold ] spawn-setsid [ print away ready hold ] ready await go print last exit 7");
    scene.await_birth("same");
    scene.await_birth("setsid");
    scene.file("go", "");
    scene.wait_for("x", 1);
    scene.assert_quiet();
    let text = fs::read_to_string(scene.log_of("x")).expect("the log");
    for line in ["same", "away", "last"] {
        assert!(text.contains(&format!("\n{line}\n")), "{text}");
    }
    let status = scene.status("x");
    assert_eq!((&status["exit_code"], status["leaked"].as_array().map(Vec::len)), (&7.into(), Some(2)));
}

#[test]
fn ctrl_c_ends_the_wait_and_not_the_job() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    waiter.signal(Signal::INT);
    waiter.wait().expect(130).complains("interrupted");
    scene.tool("tb-status").arg("x").run().expect(3);
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn a_killed_job_ends_the_wait_with_its_verdict() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "20ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    scene.tool("tb-kill").arg("x").run().ok();
    waiter.wait().expect(1).says("x: FINISHED (FAIL)").says("killed");
}

#[test]
fn more_processes_than_there_are_descriptors_are_waited_for() {
    let scene = Scene::new();
    let names: Vec<String> = (0..10).map(|n| format!("job-{n}")).collect();
    for name in &names {
        scene.launch(name, "await go exit 0");
    }
    let few = ["limit", "nofile", "24"];
    scene.tool("tb-wait").args(["--timeout", "0"]).args(&names).through(few).run().expect(124);
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "20ms"]).args(&names).through(few).spawn();
    waiter.until_stderr("job-9: RUNNING");
    scene.file("go", "");
    let out = waiter.wait().ok();
    assert!(names.iter().all(|name| out.stdout.contains(&format!("{name}: FINISHED (PASS)"))), "{out}");
}
