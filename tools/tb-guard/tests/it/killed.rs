//! SIGKILL of the guard: the tree goes with it, whichever half was hit.

use crate::{guard, halt, monitor};
use rustix::process::Signal;
use tb_tests::{Running, Scene};

/// A tree of which nothing goes by itself: the parent death signal reaches the leader alone.
const TREE: &str = "spawn-setsid [ ignore-term hold ] daemon-envclear [ ignore-term hold ] \
    spawn-same [ ignore-term spawn-setpgid [ ignore-term hold ] hold ] role leader ignore-term hold";

fn start(scene: &Scene, options: &str) -> Running {
    let running = guard(scene, options, TREE).spawn();
    for role in ["leader", "setsid", "daemon-envclear", "same", "setpgid"] {
        scene.await_birth(role);
    }
    running
}

#[test]
fn sigkill_of_the_front_takes_the_tree_along() {
    for options in ["60", "-f 60", "-k 0 60", "--grace 30 60"] {
        let scene = Scene::new();
        let running = start(&scene, options);
        running.signal(Signal::KILL);
        assert_eq!(running.wait().signal, Some(9));
        scene.assert_quiet();
    }
}

#[test]
fn sigkill_of_the_monitor_takes_the_tree_along_and_is_125() {
    for options in ["60", "-f 60"] {
        let scene = Scene::new();
        let running = start(&scene, options);
        assert!(monitor(&running).kill());
        running.wait().expect(125).complains("monitor was killed");
        assert!(scene.living().is_empty(), "nothing is left when it returns");
    }
}

#[test]
fn sigkill_of_the_front_while_the_monitor_is_stopped() {
    let scene = Scene::new();
    let running = start(&scene, "60");
    halt(monitor(&running));
    running.signal(Signal::KILL);
    running.wait();
    scene.assert_quiet();
}

#[test]
fn sigkill_of_the_monitor_while_the_front_is_stopped() {
    let scene = Scene::new();
    let running = start(&scene, "60");
    let monitor = monitor(&running);
    halt(running.proc());
    assert!(monitor.kill());
    running.wait().expect(125);
    assert!(scene.living().is_empty(), "nothing is left when it returns");
}

#[test]
fn a_stopped_front_does_not_keep_its_time_from_running_out() {
    let scene = Scene::new();
    let running = guard(&scene, "1.5", "role leader hold").spawn();
    scene.await_birth("leader");
    halt(running.proc());
    running.wait().expect(124);
    scene.assert_quiet();
}

#[test]
fn sigkill_of_the_whole_foreground_group() {
    let scene = Scene::new();
    let running = start(&scene, "60");
    let group = running.pid().to_string();
    scene.sh(&format!("kill -KILL -{group}")).run().ok();
    running.wait();
    scene.assert_quiet();
}
