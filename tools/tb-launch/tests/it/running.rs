//! A name that runs: refused with everything that is needed to go on.

use tb_tests::{Output, Scene};

/// The commands in a refusal's hints, to be run as they stand.
fn hints(out: &Output) -> (String, String) {
    let line = |word: &str| {
        let found = out.stderr.lines().find_map(|l| l.find(word).map(|at| l[at..].trim().to_owned()));
        found.unwrap_or_else(|| panic!("no {word} line in {out}"))
    };
    (line("tb-wait "), line("tb-kill "))
}

#[test]
fn g12_a_running_name_is_refused_with_its_pid_and_lines_that_can_be_copied() {
    let scene = Scene::new();
    for name in ["plain", "a b", "it's \"x\" $HOME `id` *", "tests/a.py::T::t[1]"] {
        scene.launch(name, "hold");
        let pid = scene.status(name)["pid"].as_u64().expect("a pid");
        let before = scene.files();
        let out = scene.tool("tb-launch").args(["--name", name, "--", "true"]).run().expect(3);
        assert!(out.stdout.is_empty(), "{out}");
        assert!(out.stderr.contains(&format!("already running [PID: {pid}]")), "{out}");
        assert_eq!(scene.files(), before, "nothing launched");
        let (wait, kill) = hints(&out);
        scene.sh(&format!("{wait} --timeout 0.01")).run().expect(124);
        scene.sh(&kill).run().ok().says("Killed ");
        scene.tool("tb-launch").args(["--name", name, "--", "true"]).run().ok();
        scene.wait_for(name, 0);
    }
}

#[test]
fn the_lines_to_copy_lead_to_the_same_directory_and_owner() {
    let scene = Scene::new();
    let place = ["--log-dir", "other dir", "--owner", "me"];
    let argv = scene.fixture_argv("hold");
    scene.tool("tb-launch").args(place).args(["--name", "x", "--"]).args(argv).run().ok();
    let out = scene.tool("tb-launch").args(place).args(["--name", "x", "--", "true"]).run().expect(3);
    let (wait, kill) = hints(&out);
    scene.sh(&format!("{wait} --timeout 0.01")).run().expect(124);
    scene.sh(&kill).run().ok().says("Killed x ");
    // What the environment says, it says to the next command too: it is not repeated.
    let mut scene = Scene::new();
    scene.set_env("TB_LOG_DIR", "logs");
    scene.set_env("TB_OWNER", "me");
    scene.launch("x", "hold");
    let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    assert_eq!(hints(&out), ("tb-wait x".to_owned(), "tb-kill x".to_owned()));
    scene.sh("tb-kill x").run().ok();
}

#[test]
fn g10_g63_status_asked_in_the_next_instant_finds_the_job() {
    let scene = Scene::new();
    let script = "for i in 1 2 3 4 5 6 7 8; do tb-launch --name n$i -- tb-fixture hold >/dev/null && tb-status n$i >/dev/null; echo $?; done; tb-kill --all >/dev/null";
    let out = scene.sh(script).run().ok();
    assert_eq!(out.stdout, "3\n".repeat(8), "{out}");
}

#[test]
fn g11_wait_blocks_until_the_end_and_gives_the_verdict() {
    let scene = Scene::new();
    let run = |name: &str, words: &str| {
        scene.tool("tb-launch").args(["--wait", "--name", name, "--"]).args(scene.fixture_argv(words)).run()
    };
    run("a", "exit 0").ok().says("Launched a ").says("a: FINISHED (PASS)");
    run("b", "exit 9").expect(1).says("b: FINISHED (FAIL)").says("exit 9");
    run("c", "kill-self SEGV").expect(1).says("died of SIGSEGV");
}

#[test]
fn g47_g48_a_waits_limit_leaves_the_job_alone() {
    let scene = Scene::new();
    let argv = || scene.fixture_argv("hold");
    let out =
        scene.tool("tb-launch").args(["--wait", "--timeout", "10ms", "--name", "a", "--"]).args(argv()).run();
    assert!(out.clone().expect(124).stderr.contains("a still runs"), "{out}");
    let out = scene
        .tool("tb-launch")
        .args(["--wait", "--name", "b", "--"])
        .args(argv())
        .env("TB_WAIT_TIMEOUT", "0.01");
    out.run().expect(124);
    let out = scene.tool("tb-launch").args(["--wait", "--name", "c", "--"]).args(argv());
    out.env("GLUDD_TEST_DEFAULT_TIMEOUT_MIN", "0.0001").run().expect(124);
    for name in ["a", "b", "c"] {
        scene.tool("tb-status").arg(name).run().expect(3);
    }
    scene.tool("tb-launch").arg("--help").run().ok().says("30m");
    scene.tool("tb-kill").arg("--all").run().ok();
}

#[test]
fn t05_a_name_is_free_again_as_soon_as_its_job_is_over() {
    let scene = Scene::new();
    for _ in 0..10 {
        scene.launch("x", "exit 0");
        scene.wait_for("x", 0);
    }
    scene.launch("x", "hold");
    scene.tool("tb-kill").arg("x").run().ok();
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
}

#[test]
fn a_launch_as_json_is_statuss_object() {
    let scene = Scene::new();
    let argv = scene.fixture_argv("hold");
    let out = scene.tool("tb-launch").args(["--json", "--name", "x", "--"]).args(argv).run().ok();
    let objects = out.json();
    assert_eq!(objects.len(), 1);
    let keys = |v: &serde_json::Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>());
    let status = scene.status("x");
    assert_eq!(keys(&objects[0]), keys(&status));
    assert_eq!((&objects[0]["pid"], &objects[0]["job"]), (&status["pid"], &status["job"]));
    scene.tool("tb-kill").arg("x").run().ok();
}
