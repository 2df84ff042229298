//! Runs that somebody else started: stopped only when it is certain that they are what the PID file means.

use rustix::process::Signal;
use std::fs::File;
use std::time::{Duration, SystemTime};
use tb_tests::{Scene, until};

fn pid_file(scene: &Scene, pid: u32) {
    scene.make_run_dir();
    scene.file(".gate-logs/.test-x.pid", format!("{pid}\n"));
}

fn put_back(scene: &Scene) {
    let open = File::options().write(true).open(scene.run_dir().join(".test-x.pid")).expect("our own file");
    open.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("our own file");
}

#[test]
fn a_run_that_works_beside_the_run_directory_is_stopped_with_its_tree() {
    let scene = Scene::new();
    let child = scene.fixture("spawn-setsid [ ignore-term hold ] hold").held_pipes().spawn();
    scene.await_birth("setsid");
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    let pid = child.pid();
    let out = scene.tool("tb-kill").args(["--grace", "100ms", "x"]).run().ok();
    assert!(out.stdout.starts_with(&format!("Killed x [PID: {pid}] (2 processes, KILL")), "{out}");
    assert_eq!(child.wait().signal, Some(Signal::TERM.as_raw()));
    scene.assert_quiet();
}

#[test]
fn a_run_elsewhere_that_has_the_log_open_is_stopped() {
    let scene = Scene::new();
    scene.make_run_dir();
    let log = scene.file(".gate-logs/test-x-20200725_143000.log", "");
    let script = format!("cd /; exec tb-fixture hold > '{}' 2>&1", log.display());
    let child = scene.sh(&script).spawn();
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    scene.tool("tb-kill").arg("x").run().ok().says("Killed x ");
    child.wait();
}

#[test]
fn a_process_that_has_to_do_with_neither_is_named_and_not_signalled() {
    let scene = Scene::new();
    let child = scene.fixture("hold").cwd("/").spawn();
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    let out = scene.tool("tb-kill").arg("x").run().expect(7);
    let line = format!("kill it yourself: {}, ", child.pid());
    assert!(out.stderr.contains(&line) && out.stderr.contains("tb-fixture hold"), "{out}");
    scene.tool("tb-kill").arg("--all").run().expect(7);
    assert!(child.proc().alive());
}

#[test]
fn a_process_of_another_user_than_the_files_is_not_signalled() {
    if !tb_tests::root() {
        return;
    }
    let scene = Scene::new();
    let child = scene.fixture("hold").as_nobody().spawn();
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    scene.tool("tb-kill").arg("x").run().expect(7).complains("owns the PID file");
    assert!(child.proc().alive());
}

#[test]
fn c16_g82_a_younger_process_bears_a_number_that_was_reused() {
    let scene = Scene::new();
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    pid_file(&scene, child.pid());
    put_back(&scene);
    scene.tool("tb-kill").arg("x").run().ok().says("x already finished (no marker)");
    scene.tool("tb-kill").arg("--all").run().ok();
    assert!(child.proc().alive());
}

#[test]
fn a_zombie_a_threads_id_and_a_dead_number_are_over() {
    let scene = Scene::new();
    let zombie = scene.fixture("role z ready").spawn();
    until("it has ended", || zombie.ended().then_some(()));
    pid_file(&scene, zombie.pid());
    scene.tool("tb-kill").arg("x").run().ok().says("already finished");
    let pid = zombie.pid();
    zombie.wait().ok();
    pid_file(&scene, pid);
    scene.tool("tb-kill").arg("x").run().ok().says("already finished");
    let child = scene.fixture("on-term [ exit 0 ] hold").spawn();
    scene.await_birth("main");
    let thread = until("its second thread is there", || {
        std::fs::read_dir(format!("/proc/{}/task", child.pid()))
            .ok()?
            .flatten()
            .filter_map(|t| t.file_name().to_str()?.parse::<u32>().ok())
            .find(|tid| *tid != child.pid())
    });
    pid_file(&scene, thread);
    scene.tool("tb-kill").arg("x").run().ok().says("already finished");
    assert!(child.proc().alive());
}
