//! What outlives a normal end.

use crate::{guard, timeout};
use serde_json::Value;
use tb_tests::Scene;

fn report(scene: &Scene) -> Value {
    serde_json::from_str(&scene.read("r.json")).expect("a report")
}

#[test]
fn what_outlives_the_command_is_stopped_gently_and_named() {
    let scene = Scene::new();
    let words =
        "spawn-setsid [ on-term [ stamp told exit 0 ] hold ] daemon-envclear [ ignore-term hold ] exit 3";
    let out = guard(&scene, "--grace 0.5 --report r.json 60", words).run().expect(3);
    assert!(scene.path("told").exists());
    assert!(scene.living().is_empty());
    for role in ["setsid", "daemon-envclear"] {
        let pid = scene.await_birth(role).pid;
        assert!(out.stderr.contains(&format!("stopped: {pid} ")), "{role}: {out}");
    }
    let report = report(&scene);
    assert_eq!((&report["verdict"], &report["reason"]), (&"failed".into(), &"exit".into()));
    assert_eq!(report["leaked"].as_array().map(Vec::len), Some(2));
}

#[test]
fn leaks_can_fail_a_pass() {
    let scene = Scene::new();
    guard(&scene, "--leaks fail --report r.json 60", "spawn-setsid exit 0").run().expect(1);
    let report_of_leak = report(&scene);
    assert_eq!((&report_of_leak["verdict"], &report_of_leak["reason"]), (&"failed".into(), &"leaks".into()));
    scene.assert_quiet();
    guard(&scene, "--leaks fail 60", "spawn-setsid exit 5").run().expect(5);
    guard(&scene, "--leaks fail --report r.json 60", "exit 0").run().expect(0);
    assert_eq!(report(&scene)["verdict"], "passed");
    scene.assert_quiet();
}

#[test]
fn leaks_can_be_allowed_and_are_said() {
    let scene = Scene::new();
    let out = guard(&scene, "--leaks allow 60", "spawn-setsid [ close-all hold ] exit 0").run().ok();
    let left = scene.await_birth("setsid");
    assert!(left.alive());
    assert!(out.stderr.contains(&format!("left: {} ", left.pid)), "{out}");
}

#[test]
fn keep_spares_what_it_names_at_every_end() {
    let scene = Scene::new();
    let words = "spawn-setsid [ role kept close-all hold ] spawn-setsid [ role gone close-all hold ] exit 0";
    let out = guard(&scene, "--leaks fail --keep role.kept 60", words).run().expect(1);
    let kept = scene.await_birth("kept");
    assert!(kept.alive() && !scene.await_birth("gone").alive(), "{out}");
    let words = "spawn-setsid [ role spared close-all ignore-term hold ] hold";
    guard(&scene, "--grace 0.2 --keep role.spared 0.7", words).run().expect(124);
    assert!(scene.await_birth("spared").alive());
    // Alone, it is no leak.
    let words = "spawn-setsid [ role alone close-all hold ] exit 0";
    guard(&scene, "--leaks fail --keep role.alone 60", words).run().ok();
}

#[test]
fn under_the_name_timeout_servers_stay() {
    let scene = Scene::new();
    let server = scene.fixture_argv("daemon [ role server hold ] exit 0");
    let out = timeout(&scene, "60").args(server).held_pipes().run().ok();
    assert_eq!(out.stderr, "");
    assert!(scene.await_birth("server").alive());
}

#[test]
fn who_never_wants_kill_waits_for_no_leak_for_ever() {
    let scene = Scene::new();
    guard(&scene, "-k 0 60", "spawn-setsid [ ignore-term hold ] exit 3").run().expect(3);
    assert!(scene.living().is_empty());
}
