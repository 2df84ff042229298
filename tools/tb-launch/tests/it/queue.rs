//! `--queue`: in order of arrival, asleep, woken by whatever frees a place, and never for longer than was said.

use crate::{assert_asleep, halves, launch};
use rustix::process::Signal;
use tb_tests::{Running, Scene, until};

/// A launcher that waits for the only place, with the next ticket.
fn waiter(scene: &Scene, name: &str, options: &[&str]) -> Running {
    let ticket = || scene.read(".gate-logs/.queue").trim().parse::<u64>().unwrap_or(0);
    let before = ticket();
    let all = [&["--max-live", "1", "--queue", "--name", name], options].concat();
    let waiter = launch(scene, &all, "hold").spawn();
    until("it has a ticket", || (ticket() > before).then_some(()));
    waiter
}

fn running(scene: &Scene) -> String {
    scene.tool("tb-status").args(["--running", "--names"]).run().stdout
}

#[test]
fn q12_places_go_in_order_of_arrival_to_sleepers_that_are_woken() {
    let scene = Scene::new();
    scene.launch("w0", "hold");
    let waiters: Vec<Running> = (1..=4).map(|i| waiter(&scene, &format!("w{i}"), &[])).collect();
    // The first waits for the job, the second for the first.
    assert_asleep(waiters[0].proc());
    assert_asleep(waiters[1].proc());
    for (i, waiter) in waiters.into_iter().enumerate() {
        scene.tool("tb-kill").arg(format!("w{i}")).run().ok();
        waiter.wait().ok().says(&format!("Launched w{} ", i + 1));
        assert_eq!(running(&scene), format!("w{}\n", i + 1));
    }
    scene.tool("tb-kill").arg("w4").run().ok();
    // A place that is free is taken at once.
    launch(&scene, &["--max-live", "1", "--queue", "--timeout", "0", "--name", "x"], "exit 0").run().ok();
    scene.assert_quiet();
}

#[test]
fn q12_a_place_in_the_queue_is_given_up_with_its_holder() {
    let scene = Scene::new();
    scene.launch("w0", "hold");
    let [first, second, third] = ["w1", "w2", "w3"].map(|name| waiter(&scene, name, &[]));
    // One in the middle, then the head.
    for killed in [second, first] {
        killed.signal(Signal::KILL);
        assert_eq!(killed.wait().signal, Some(9));
    }
    assert_eq!(running(&scene), "w0\n");
    scene.tool("tb-kill").arg("w0").run().ok();
    third.wait().ok().says("Launched w3 ");
    scene.tool("tb-status").arg("w1").run().expect(4);
    scene.tool("tb-status").arg("w2").run().expect(4);
    scene.tool("tb-kill").arg("w3").run().ok();
    scene.assert_quiet();
}

#[test]
fn q12_a_wait_for_a_place_ends_with_its_time_and_launches_nothing() {
    let scene = Scene::new();
    scene.launch("w0", "hold");
    let patient = waiter(&scene, "w1", &[]);
    let before = scene.files();
    // Behind another launcher, and, when that is gone, behind the job itself.
    let late =
        || launch(&scene, &["--max-live", "1", "--queue", "--timeout", "0.2", "--name", "late"], "hold");
    let check = |out: tb_tests::Output| {
        let out = out.expect(124);
        assert!(out.stdout.is_empty() && out.stderr.contains("nothing was launched"), "{out}");
        assert!(out.stderr.contains("tb-kill w0") && out.took.as_millis() >= 200, "{out}");
    };
    check(late().run());
    check(late().env("TB_WAIT_TIMEOUT", "1h").run());
    patient.signal(Signal::KILL);
    patient.wait();
    check(late().run());
    scene.tool("tb-status").arg("late").run().expect(4);
    let files =
        |files: &std::collections::BTreeMap<_, _>| files.keys().cloned().collect::<Vec<std::path::PathBuf>>();
    assert_eq!(files(&scene.files()), files(&before));
    scene.tool("tb-kill").arg("w0").run().ok();
    scene.assert_quiet();
}

#[test]
fn g12_a_name_that_runs_is_refused_at_once_and_not_after_a_wait() {
    let scene = Scene::new();
    scene.launch("w0", "hold");
    let ahead = waiter(&scene, "w1", &[]);
    launch(&scene, &["--max-live", "1", "--queue", "--name", "w0"], "hold")
        .run()
        .expect(3)
        .complains("tb-kill w0");
    // One that has come to run meanwhile, when its turn comes.
    let same = waiter(&scene, "w1", &[]);
    scene.tool("tb-kill").arg("w0").run().ok();
    ahead.wait().ok();
    assert!(!same.ended());
    scene.tool("tb-kill").arg("w1").run().ok();
    same.wait().ok();
    scene.tool("tb-kill").arg("w1").run().ok();
    scene.assert_quiet();
}

#[test]
fn q12_whatever_ends_a_job_wakes_the_next() {
    let scene = Scene::new();
    scene.launch("w0", "await go exit 3");
    let next = waiter(&scene, "w1", &[]);
    scene.file("go", "");
    next.wait().ok();
    // Its leader is killed from outside.
    let next = waiter(&scene, "w2", &[]);
    assert!(scene.await_births("main", 2)[1].kill());
    next.wait().ok();
    // Its supervisors, which does not end it, and then its leader.
    let next = waiter(&scene, "w3", &[]);
    let [front, monitor] = halves(&scene, "w2");
    let leader = scene.await_births("main", 3)[2];
    assert!(front.signal(Signal::STOP) && monitor.kill() && front.kill());
    until("nobody supervises it", || {
        let status = scene.status("w2");
        (status["supervision"] == "none").then_some(())
    });
    assert!(leader.alive() && !next.ended());
    assert!(leader.kill());
    next.wait().ok();
    scene.tool("tb-kill").arg("w3").run().ok();
    scene.assert_quiet();
}

#[test]
fn q12_a_foreign_job_that_no_name_leads_to_is_waited_for_without_haste() {
    let scene = Scene::new();
    scene.make_run_dir();
    let foreign = scene.fixture("hold").spawn();
    scene.await_birth("main");
    for stem in ["a b", "-x"] {
        let file = scene.file(format!(".gate-logs/.test-{stem}.pid"), format!("{}\n", foreign.pid()));
        let waiter = waiter(&scene, "w", &["--timeout", "5m"]);
        let before = crate::turns(waiter.proc());
        std::thread::sleep(std::time::Duration::from_secs(2));
        let turns = crate::turns(waiter.proc()) - before;
        assert!(turns < 200, "{turns} turns in two seconds: {stem}");
        std::fs::remove_file(file).expect("our own file");
        waiter.wait().ok();
        scene.tool("tb-kill").arg("w").run().ok();
    }
    foreign.signal(Signal::KILL);
    foreign.wait();
    scene.assert_quiet();
}
