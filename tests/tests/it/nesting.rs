//! Jobs inside jobs: they say so, end with the outer one, and end in their own way.

use crate::job::{Job, freeze, kill_hard, launch_sh};
use serde_json::Value;
use tb_tests::{Proc, Scene, until};

/// An outer job whose leader launches an inner one and then lives until a file says otherwise.
fn nested<'s>(scene: &'s Scene, options: &[&str], inner: &str) -> (Job<'s>, Job<'s>) {
    let script = format!(
        "tb-launch --name inner -- tb-fixture {inner} 2>said; echo launched >>said; exec tb-fixture role outer await go exit 0"
    );
    let outer = launch_sh(scene, "outer", options, &script);
    scene.await_birth("main");
    scene.await_birth("outer");
    (outer, Job::named(scene, "inner"))
}

fn command_lines(footer: &Value, list: &str) -> Vec<String> {
    let all = footer[list].as_array().expect("a list").iter();
    all.map(|l| l["command"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_nested_job_is_recorded_and_said_to_be_one() {
    let scene = Scene::new();
    let (outer, inner) = nested(&scene, &[], "hold");
    assert!(
        scene.read("said").contains("inner runs inside outer and ends with it"),
        "{}",
        scene.read("said")
    );
    assert_eq!(inner.header()["nested_in"], "outer");
    assert_eq!(inner.status()["nested_in"], "outer");
    assert_eq!(outer.header()["nested_in"], Value::Null);
    // It is stopped like any other, and its end is not the outer job's.
    inner.kill("5s", 0).says("Killed inner");
    assert_eq!(inner.footer()["reason"], "kill");
    outer.tool("tb-status", &[]).run().expect(3);
    scene.file("go", "");
    outer.wait(0);
    assert_eq!(outer.assert_ended("passed", "exit")["nested"], serde_json::json!([]));
}

#[test]
fn the_end_of_the_outer_job_ends_the_inner_one_which_says_why() {
    let scene = Scene::new();
    let (outer, inner) = nested(&scene, &["--grace", "20s"], "term-handler 0.2 finished");
    scene.file("go", "");
    outer.wait(0);
    let footer = outer.assert_ended("passed", "exit");
    assert_eq!(command_lines(&footer, "nested"), ["inner"]);
    assert_eq!(footer["leaked"], serde_json::json!([]), "a nested job is no leak");
    let inner_end = inner.assert_ended("killed", "outer");
    assert_eq!(inner_end["exit_code"], 0, "its handler had its time");
    assert!(scene.path("finished").exists());
    assert_eq!(inner.records("STOPPING")[0]["by"], "outer job outer ended");
}

#[test]
fn a_nested_job_makes_no_leak_of_it_with_leaks_fail() {
    let scene = Scene::new();
    let (outer, inner) = nested(&scene, &["--leaks", "fail"], "hold");
    scene.file("go", "");
    outer.wait(0);
    outer.assert_ended("passed", "exit");
    inner.assert_ended("killed", "outer");
}

#[test]
fn a_stop_of_the_outer_job_reaches_the_inner_ones_processes_once_and_through_its_supervisor() {
    let scene = Scene::new();
    let inner =
        "on-term [ append inner-terms x ] spawn-setsid [ on-term [ append child-terms x ] hold ] hold";
    let (outer, inner) = nested(&scene, &[], inner);
    scene.await_birth("setsid");
    outer.kill("4s", 0).says("Killed outer");
    let footer = outer.assert_ended("killed", "kill");
    assert_eq!(command_lines(&footer, "nested"), ["inner"]);
    let inner_end = inner.assert_ended("killed", "outer");
    assert_eq!(
        inner_end["stopped_with"], "SIGKILL",
        "its own grace of three quarters ran out before the outer one"
    );
    assert_eq!((scene.read("inner-terms"), scene.read("child-terms")), ("x\n".into(), "x\n".into()));
}

#[test]
fn an_inner_job_whose_supervisor_does_nothing_goes_at_the_end_of_the_grace() {
    let scene = Scene::new();
    let (outer, inner) = nested(&scene, &[], "ignore-term hold");
    // It cannot even be woken: whatever it is asked finds nobody.
    let (front, monitor) = inner.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    outer.kill("300ms", 0);
    outer.assert_ended("killed", "kill");
    inner.tool("tb-status", &[]).run().expect(5);
}

#[test]
fn an_inner_job_goes_with_an_outer_one_that_nobody_supervises() {
    let scene = Scene::new();
    let (outer, inner) = nested(&scene, &[], "spawn-setsid [ ignore-term hold ] hold");
    scene.await_birth("setsid");
    let (front, monitor) = outer.halves();
    freeze(front);
    kill_hard(monitor);
    kill_hard(front);
    outer.kill("2s", 0).says("unsupervised");
    outer.assert_ended("killed", "kill");
    assert_eq!(inner.footer()["outcome"], "killed");
}

#[test]
fn a_stop_of_the_outer_job_takes_three_levels() {
    let scene = Scene::new();
    let script = "tb-launch --name b -- sh -c 'tb-launch --name c -- tb-fixture ignore-term hold; exec tb-fixture role b hold'; \
                  exec tb-fixture role a hold";
    let a = launch_sh(&scene, "a", &[], script);
    for role in ["main", "b", "a"] {
        scene.await_birth(role);
    }
    let (b, c) = (Job::named(&scene, "b"), Job::named(&scene, "c"));
    assert_eq!(c.header()["nested_in"], "b");
    a.kill("4s", 0);
    a.assert_ended("killed", "kill");
    assert_eq!(b.assert_ended("killed", "outer")["nested"][0]["command"], "c");
    c.assert_ended("killed", "outer");
    assert_eq!(c.records("STOPPING")[0]["by"], "outer job b ended");
}

#[test]
fn a_job_that_contains_the_caller_is_refused_by_name_and_skipped_by_all() {
    let scene = Scene::new();
    let script = "tb-kill outer 2>refused; echo $? >code; tb-kill --all >all 2>skipped; echo $? >code-all; \
                  exec tb-fixture role outer await go exit 0";
    let other = launch_sh(&scene, "other", &[], "exec tb-fixture hold");
    scene.await_birth("main");
    let outer = launch_sh(&scene, "outer", &[], script);
    scene.await_birth("outer");
    assert_eq!(scene.read("code"), "2\n");
    assert!(scene.read("refused").contains("cannot stop outer: this command runs inside it"));
    assert_eq!(scene.read("code-all"), "0\n");
    assert!(scene.read("skipped").contains("outer is left alone"), "{}", scene.read("skipped"));
    assert!(scene.read("all").contains("Killed other") && !scene.read("all").contains("outer"));
    other.wait(1);
    scene.file("go", "");
    outer.wait(0);
    outer.assert_ended("passed", "exit");
}

#[test]
fn a_caller_deep_inside_a_job_is_inside_it_too() {
    let scene = Scene::new();
    // Orphaned and in a session of its own: its parent is the monitor.
    let script = "tb-fixture daemon [ exec sh -c 'tb-kill outer 2>refused; echo $? >code.new; mv code.new code' ]; \
                  exec tb-fixture role outer await go exit 0";
    let outer = launch_sh(&scene, "outer", &[], script);
    let code = until("it has its answer", || Some(scene.read("code")).filter(|c| !c.is_empty()));
    assert_eq!(code, "2\n", "{}", scene.read("refused"));
    scene.file("go", "");
    outer.wait(0);
}

#[test]
fn an_inner_job_survives_the_loss_of_its_outer_ones_monitor() {
    let scene = Scene::new();
    let (outer, inner) = nested(&scene, &["--grace", "20s"], "term-handler 0.1 finished");
    kill_hard(outer.halves().1);
    let front: Proc = outer.halves().0;
    until("the front has taken over", || inner.halves().0.stat().filter(|s| s.ppid == front.pid));
    scene.file("go", "");
    outer.wait(0);
    assert_eq!(command_lines(&outer.assert_ended("passed", "exit"), "nested"), ["inner"]);
    inner.assert_ended("killed", "outer");
}

#[test]
fn a_process_that_claims_to_be_a_supervisor_gains_its_own_grace_and_no_more() {
    let scene = Scene::new();
    let words =
        "spawn-setsid [ role liar comm tb-supervise spawn-setsid [ role below ignore-term hold ] hold ] hold";
    let job = crate::job::launch(&scene, "j", &[], words);
    scene.await_birth("liar");
    scene.await_birth("below");
    job.kill("300ms", 0);
    job.assert_ended("killed", "kill");
}
