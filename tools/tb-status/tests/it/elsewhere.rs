//! Headers of another boot, host or namespace: PIDs mean nothing there.

use crate::written::{footer, header, log};
use tb_shared::contract::{Header, Outcome};
use tb_tests::{Proc, Scene};

/// A header whose leader is a process that lives here, changed by `change`.
fn living(scene: &Scene, change: impl FnOnce(&mut Header)) -> (tb_tests::Running, Header) {
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    let Proc { pid, start } = child.proc();
    let mut header = header("x");
    (header.pid, header.start) = (i32::try_from(pid).expect("a PID"), start);
    change(&mut header);
    log(scene, "x", &[&header.line(), b"output\n"]);
    (child, header)
}

#[test]
fn a_leader_that_lives_without_supervisors_is_unsupervised() {
    let scene = Scene::new();
    let (_child, _) = living(&scene, |_| {});
    let out = scene.tool("tb-status").arg("x").run().expect(3);
    assert!(out.stdout.contains("x  RUNNING (unsupervised)  PID: "), "{out}");
    assert_eq!(scene.status("x")["supervision"], "none");
}

#[test]
fn c16_the_number_alone_is_nobody() {
    let scene = Scene::new();
    let (child, _) = living(&scene, |h| h.start += 1);
    scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
    assert!(child.proc().alive());
}

#[test]
fn another_boot_is_a_machine_that_restarted() {
    let scene = Scene::new();
    let (_child, _) = living(&scene, |h| h.boot = "00000000-0000-0000-0000-000000000000".into());
    let out = scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
    assert!(out.stdout.contains("the machine restarted"), "{out}");
    assert_eq!(scene.status("x")["outcome"], "crashed");
}

#[test]
fn another_machine_alone_can_tell() {
    let scene = Scene::new();
    let (_child, _) = living(&scene, |h| (h.boot, h.host) = ("other".into(), "farawayhost".into()));
    let out = scene.tool("tb-status").arg("x").run().expect(5);
    assert!(out.stdout.contains("recorded on farawayhost, look there"), "{out}");
    let status = scene.status("x");
    assert!(status["outcome"].is_null() && status["terminal_marker"].is_null(), "{status}");
    assert_eq!(status["host"], "farawayhost");
}

#[test]
fn another_namespace_says_nothing_of_processes() {
    let scene = Scene::new();
    let (child, _) = living(&scene, |h| h.pidns += 1);
    scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
    drop(child);
    let scene = Scene::new();
    let (_child, _) = living(&scene, |h| h.timens += 1);
    scene.tool("tb-status").arg("x").run().expect(5);
}

#[test]
fn a_footer_counts_wherever_it_was_written() {
    for (outcome, code) in
        [(Outcome::Passed, 0), (Outcome::Failed, 1), (Outcome::Killed, 1), (Outcome::Timeout, 1)]
    {
        let scene = Scene::new();
        let mut header = header("x");
        (header.boot, header.host) = ("other".into(), "farawayhost".into());
        log(&scene, "x", &[&header.line(), b"output\n", &footer(&header, outcome).lines()]);
        let out = scene.tool("tb-status").arg("x").run().expect(code).says("took 85.2s");
        assert!(!out.stdout.contains("look there"), "{out}");
        assert_eq!(scene.status("x")["verdict_source"], "exit_status");
    }
}

#[test]
fn a_newer_version_is_shown_for_what_it_is() {
    let scene = Scene::new();
    let mut header = header("x");
    header.v = 2;
    log(&scene, "x", &[&header.line(), b"output\n"]);
    let out = scene.tool("tb-status").arg("x").run().expect(5);
    assert!(out.stdout.contains("written by version 2"), "{out}");
}

#[test]
fn fields_that_are_not_known_or_not_there_disturb_nobody() {
    let scene = Scene::new();
    let line = r#"=== GATE LAUNCH: {"v":1,"job":"j1","name":"x","pid":536870912,"future":{"a":[1]}} ==="#;
    log(&scene, "x", &[line.as_bytes(), b"\noutput\n"]);
    let status = scene.status("x");
    assert_eq!((&status["name"], &status["job"]), (&"x".into(), &"j1".into()));
    assert_eq!(status["status"], "FINISHED");
}
