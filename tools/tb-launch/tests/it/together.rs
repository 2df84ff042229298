//! Many launches at the same instant.

use tb_tests::{Odd, Scene, until};

/// `count` shells that wait at a FIFO until all of them are there, then become the command.
pub(crate) fn all_at_once(scene: &Scene, count: usize, command: &str) -> Vec<tb_tests::Output> {
    let gate = scene.path("gate");
    Odd::Fifo.make(&gate, "");
    let script = format!("echo ready > ready.$1; read -r _ < gate; exec {command}");
    let children: Vec<_> = (0..count)
        .map(|i| scene.cmd("/bin/sh").args(["-c", &script, "sh", &i.to_string()]).spawn())
        .collect();
    until("all are ready", || (0..count).all(|i| scene.path(format!("ready.{i}")).exists()).then_some(()));
    // Every reader of the FIFO is let go by its end: opening it for writing waits for the first of them.
    while children.iter().any(|c| !c.ended()) {
        if let Ok(fd) = rustix::fs::open(
            &gate,
            rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK,
            rustix::fs::Mode::empty(),
        ) {
            drop(fd);
        }
        std::thread::yield_now();
    }
    children.into_iter().map(tb_tests::Running::wait).collect()
}

#[test]
fn g12_g77_g78_of_fifty_launches_of_one_name_exactly_one_wins() {
    let scene = Scene::new();
    let outs = all_at_once(&scene, 50, "tb-launch --name x -- tb-fixture hold");
    let won: Vec<_> = outs.iter().filter(|o| o.code == Some(0)).collect();
    assert_eq!(won.len(), 1, "{}", outs.iter().map(ToString::to_string).collect::<String>());
    let pid = scene.await_birth("main").pid;
    assert!(won[0].stdout.contains(&format!("[PID: {pid}]")), "{}", won[0]);
    for lost in outs.iter().filter(|o| o.code != Some(0)) {
        assert_eq!(lost.code, Some(3), "{lost}");
        assert!(lost.stderr.contains(&format!("[PID: {pid}]")) && lost.stdout.is_empty(), "{lost}");
    }
    assert_eq!(scene.births().len(), 1, "one process was started");
    let logs = scene.files().keys().filter(|p| p.extension().is_some_and(|e| e == "log")).count();
    assert_eq!(logs, 1);
    scene.tool("tb-kill").arg("x").run().ok();
    scene.assert_quiet();
}

#[test]
fn t01_t31_launches_without_a_name_at_one_instant_get_different_handles() {
    let scene = Scene::new();
    let outs = all_at_once(&scene, 20, "tb-launch -- true");
    let mut names: Vec<String> = outs
        .iter()
        .map(|o| o.clone().ok().stdout.split(' ').nth(1).expect("Launched NAME").to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 20);
    for name in names {
        scene.wait_for(&name, 0);
    }
}
