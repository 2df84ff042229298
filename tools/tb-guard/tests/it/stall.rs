//! No progress: neither output nor CPU time for too long.

use crate::guard;
use serde_json::Value;
use tb_tests::Scene;

fn report(scene: &Scene) -> Value {
    serde_json::from_str(&scene.read("r.json")).expect("a report")
}

#[test]
fn a_run_that_does_nothing_is_stalled_whatever_its_output_is() {
    for (options, redirect) in
        [("--log out", ""), ("", ""), ("", ">out 2>&1"), ("", ">/dev/null"), ("", "2>err")]
    {
        let scene = Scene::new();
        let script = format!(
            "tb-guard --stall 1 --report r.json {options} 60 tb-fixture spawn-setsid print x hold {redirect}"
        );
        let out = scene.sh(&script).run().expect(124);
        assert!(
            redirect.contains("2>") || out.stderr.contains("no output and no CPU time for 1s"),
            "{script}: {out}"
        );
        let report = report(&scene);
        assert_eq!((&report["verdict"], &report["reason"]), (&"timeout".into(), &"stall".into()), "{script}");
        scene.assert_quiet();
    }
}

#[test]
fn output_keeps_a_run_alive_whatever_it_goes_to() {
    for redirect in ["", ">out 2>&1", "2>err", "2>/dev/null"] {
        let scene = Scene::new();
        let beat = "repeat 30 [ print x sleep 0.1 ] exit 3";
        let script = format!("tb-guard --stall-output 1.5 60 tb-fixture {beat} {redirect}");
        scene.sh(&script).run().expect(3);
    }
}

#[test]
fn a_busy_but_silent_run_is_not_stalled() {
    let scene = Scene::new();
    guard(&scene, "--stall 1 60", "cpu 3 exit 3").run().expect(3);
    // Wherever in the tree the work is done.
    guard(&scene, "--stall 1 60", "spawn-setsid [ cpu 3 stamp done ] await done exit 3").run().expect(3);
}

#[test]
fn a_spinning_one_is_caught_by_the_wall_clock_or_by_its_silence() {
    let scene = Scene::new();
    guard(&scene, "--stall 1 --report r.json 2.5", "cpu 100").run().expect(124);
    assert_eq!(report(&scene)["reason"], "limit");
    guard(&scene, "--stall-output 1 --report r.json 60", "cpu 100").run().expect(124);
    assert_eq!(report(&scene)["reason"], "stall");
    scene.assert_quiet();
}
