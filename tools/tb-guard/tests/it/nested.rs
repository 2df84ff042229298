//! Guards in guards, guards in jobs, jobs in guards: the outer end takes the inner along, and each tells the truth.

use crate::{guard, monitor};
use rustix::process::Signal;
use serde_json::Value;
use tb_tests::{Scene, until};

fn report(scene: &Scene, name: &str) -> Value {
    until(&format!("{name} is written"), || serde_json::from_str(&scene.read(name)).ok())
}

#[test]
fn an_outer_guard_ends_the_inner_one_which_says_why() {
    let scene = Scene::new();
    let inner = "exec tb-guard --report inner.json 60 tb-fixture on-term [ exit 9 ] role r hold";
    let running = guard(&scene, "--report outer.json 2", inner).spawn();
    scene.await_birth("r");
    let out = running.wait().expect(124);
    assert!(out.stderr.contains("nested: "), "{out}");
    let (inner, outer) = (report(&scene, "inner.json"), report(&scene, "outer.json"));
    assert_eq!((&inner["verdict"], &inner["reason"]), (&"killed".into(), &"outer".into()), "{inner}");
    assert_eq!(inner["exit_code"], 9);
    assert_eq!((&outer["verdict"], &outer["reason"]), (&"timeout".into(), &"limit".into()), "{outer}");
    assert!(scene.living().is_empty());
}

#[test]
fn an_inner_gnu_timeout_dies_with_its_command() {
    let scene = Scene::new();
    let out =
        guard(&scene, "--grace 0.5 1", "exec /usr/bin/timeout 60 tb-fixture spawn-setsid ignore-term hold")
            .run();
    assert_eq!(out.code, Some(124), "{out}");
    assert!(scene.living().is_empty(), "brigade's lock is free");
}

#[test]
fn a_job_launched_under_a_guard_ends_with_it_and_its_footer_says_so() {
    let scene = Scene::new();
    let words = "exec sh -c";
    let script = "tb-launch --name inner -- tb-fixture role r on-term [ exit 0 ] hold; exec tb-fixture hold";
    let running = guard(&scene, "2", words).arg(script).spawn();
    scene.await_birth("r");
    running.wait().expect(124).says("Launched inner");
    let job = scene.status("inner");
    assert_eq!((&job["outcome"], &job["reason"]), (&"killed".into(), &"outer".into()), "{job}");
    assert!(scene.living().is_empty());
}

#[test]
fn a_job_under_a_guard_ends_truthfully_whatever_ends_the_guard() {
    // The second signal, KILL as the signal, and the guard's own death leave it the moment that its record takes.
    for how in ["second", "kill", "killed", "monitor"] {
        let scene = Scene::new();
        let script = "tb-launch --name inner -- tb-fixture role r ignore-term hold; exec tb-fixture role outer ignore-term hold";
        let options = if how == "kill" { "-s KILL 2" } else { "--grace 30 60" };
        let running = guard(&scene, options, "exec sh -c").arg(script).spawn();
        scene.await_birth("r");
        scene.await_birth("outer");
        match how {
            "second" => {
                running.signal(Signal::TERM);
                std::thread::sleep(std::time::Duration::from_millis(600));
                running.signal(Signal::TERM);
            }
            "killed" => running.signal(Signal::KILL),
            "monitor" => assert!(monitor(&running).kill()),
            _ => {}
        }
        running.wait();
        scene.assert_quiet();
        let job = scene.status("inner");
        assert_eq!(job["outcome"], "killed", "{how}: {job}");
    }
}

#[test]
fn a_guard_inside_a_job_ends_with_the_job() {
    let scene = Scene::new();
    let argv = ["--name", "outer", "--", "tb-guard", "--report", "inner.json", "60"];
    scene.tool("tb-launch").args(argv).args(scene.fixture_argv("role r on-term [ exit 4 ] hold")).run().ok();
    scene.await_birth("r");
    scene.tool("tb-kill").arg("outer").run().ok();
    let inner = report(&scene, "inner.json");
    assert_eq!((&inner["verdict"], &inner["reason"]), (&"killed".into(), &"outer".into()), "{inner}");
    assert_eq!(inner["exit_code"], 4);
    assert_eq!(scene.status("outer")["outcome"], "killed");
    scene.assert_quiet();
}
