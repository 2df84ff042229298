//! Forgetting: the list alone, and PID files that mean nobody.

use std::fs;
use tb_tests::{Scene, corrupt_pid_files};

#[test]
fn g53_g54_a_collected_job_leaves_the_list_and_nothing_else() {
    let scene = Scene::new();
    scene.launch("x", "print hello exit 3");
    scene.wait_for("x", 1);
    scene.launch("y", "exit 0");
    scene.wait_for("y", 0);
    let log = scene.log_of("x");
    let before = fs::read_to_string(&log).expect("the log");
    scene.tool("tb-clean").arg("x").run().ok().says("x: collected");
    let after = fs::read_to_string(&log).expect("the log stays");
    let job = scene.status("x")["job"].as_str().expect("an id").to_owned();
    assert_eq!(after, format!("{before}=== GATE COLLECTED: {job} ===\n"));
    assert_eq!(scene.tool("tb-status").arg("--names").run().ok().stdout, "y\n");
    assert_eq!(scene.tool("tb-status").args(["--names", "--all"]).run().ok().stdout, "x\ny\n");
    // Given its name every tool works as before.
    scene.tool("tb-status").arg("x").run().expect(1).says("hello");
    assert_eq!(scene.status("x")["collected"], true);
    scene.wait_for("x", 1);
    scene.tool("tb-kill").arg("x").run().ok().says("x already finished (FAIL)");
    // Once is enough.
    let files = scene.files();
    for _ in 0..3 {
        let out = scene.tool("tb-clean").arg("x").run().ok();
        assert_eq!(out.stdout, "", "{out}");
    }
    scene.assert_untouched(&files);
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    assert_eq!(scene.tool("tb-status").arg("--names").run().ok().stdout, "y\nx\n", "a new run is a new one");
}

#[test]
fn c17_c18_corrupt_pid_files_are_cleared() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    for by_name in [true, false] {
        for (what, content) in corrupt_pid_files() {
            fs::write(dir.join(".test-x.pid"), content).expect("the run directory");
            let clean = scene.tool("tb-clean");
            let clean = if by_name { clean.arg("x") } else { clean };
            clean.run().ok().says("x: removed its stale PID file");
            assert!(!dir.join(".test-x.pid").exists(), "{what}");
            scene.tool("tb-status").arg("x").run().expect(4);
        }
    }
}

#[test]
fn stale_pid_files_of_the_dead_and_of_younger_processes_are_cleared() {
    let scene = Scene::new();
    let dead = scene.fixture("ids").spawn();
    let pid = dead.pid();
    dead.wait().ok();
    let dir = scene.make_run_dir();
    scene.file(".gate-logs/.test-x.pid", format!("{pid}\n"));
    scene.tool("tb-clean").run().ok().says("x: removed its stale PID file");
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    let file = scene.file(".gate-logs/.test-x.pid", format!("{}\n", child.pid()));
    let open = fs::File::options().write(true).open(&file).expect("our own file");
    open.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600))
        .expect("our own file");
    scene.tool("tb-clean").run().ok().says("x: removed its stale PID file");
    assert!(child.proc().alive() && !dir.join(".test-x.pid").exists());
}

#[test]
fn nothing_to_forget_is_done() {
    let scene = Scene::new();
    let out = scene.tool("tb-clean").run().ok();
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{out}");
    assert!(!scene.run_dir().exists(), "nothing is made for it");
    scene.make_run_dir();
    scene.tool("tb-clean").run().ok();
    assert_eq!(scene.tool("tb-clean").arg("--stdin-names").run().ok().stdout, "");
}

#[test]
fn names_on_standard_input_and_objects() {
    let scene = Scene::new();
    for name in ["a b", "c"] {
        scene.launch(name, "exit 0");
        scene.wait_for(name, 0);
    }
    let out = scene.tool("tb-clean").args(["--json", "--stdin-names", "-0"]).stdin("a b\0c\0").run().ok();
    let objects = out.json();
    assert_eq!(objects.len(), 2);
    assert!(objects.iter().all(|o| o["collected"] == true), "{out}");
    for (name, words) in [("d", ["close", "1"]), ("e", ["ignore", "CHLD"])] {
        scene.launch(name, "exit 0");
        scene.wait_for(name, 0);
        scene.tool("tb-clean").through(words).run().ok();
        assert_eq!(scene.status(name)["collected"], true);
    }
}

#[test]
fn t29_only_the_scopes_jobs_are_forgotten() {
    let scene = Scene::new();
    for (owner, name) in [(Some("ann"), "a"), (Some("bob"), "b"), (None, "n")] {
        let flags = owner.map(|o| ["--owner", o]).into_iter().flatten();
        scene.tool("tb-launch").args(flags).args(["--name", name, "--wait", "--", "true"]).run().ok();
    }
    let collected = |name: &str| scene.status(name)["collected"] == true;
    scene.tool("tb-clean").arg("a").run().expect(4);
    scene.tool("tb-clean").run().ok();
    assert_eq!((collected("a"), collected("b"), collected("n")), (false, false, true));
    scene.tool("tb-clean").env("TB_OWNER", "bob").run().ok();
    assert_eq!((collected("a"), collected("b")), (false, true));
    scene.tool("tb-clean").arg("--all-owners").run().ok();
    assert!(collected("a"));
}
