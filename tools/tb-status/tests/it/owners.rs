//! Whose jobs are seen.

use tb_tests::Scene;

#[test]
fn t29_t30_an_owner_sees_its_own_jobs_only() {
    let scene = Scene::new();
    for (owner, name) in [(Some("ann"), "a"), (Some("bob"), "b"), (None, "n")] {
        scene.launch_of(owner, name, "hold");
    }
    let names = |flags: &[&str], env: &str| {
        scene.tool("tb-status").arg("--names").args(flags).env("TB_OWNER", env).run().ok().stdout
    };
    assert_eq!(names(&[], ""), "n\n");
    assert_eq!(names(&["--owner", "ann"], ""), "a\n");
    assert_eq!(names(&[], "bob"), "b\n");
    assert_eq!(names(&["--owner", "ann"], "bob"), "a\n", "a flag beats the variable");
    assert_eq!(names(&["--all-owners"], "bob"), "a\nb\nn\n");
    assert_eq!(names(&[], "eve"), "");
    // A name outside the scope is not tracked, and the message does not tell of it.
    for (name, env) in [("a", ""), ("n", "ann"), ("b", "ann")] {
        let out = scene.tool("tb-status").arg(name).env("TB_OWNER", env).run().expect(4);
        let inside = if env == "ann" { "running: a\n" } else { "running: n\n" };
        assert!(out.stderr.contains(inside), "{out}");
    }
    scene.tool("tb-status").args(["--all-owners", "b"]).run().expect(3);
    scene.tool("tb-kill").args(["--all", "--all-owners"]).run().ok();
}

#[test]
fn t29_a_job_whose_log_was_cut_or_deleted_is_still_its_owners() {
    let scene = Scene::new();
    let launch = |name: &str, words: &str| {
        let argv = scene.fixture_argv(words);
        scene.tool("tb-launch").args(["--owner", "ann", "--name", name, "--"]).args(argv).run().ok();
    };
    launch("cut", "role cut truncate-stderr ready hold");
    launch("gone", "role gone hold");
    let (cut, gone) = (scene.await_birth("cut"), scene.await_birth("gone"));
    std::fs::remove_file(scene.log_of("gone")).expect("our own log");
    for (name, leader) in [("cut", cut), ("gone", gone)] {
        // Nor does a number that a shell wrote over the PID file hide the leader.
        let pid_file = scene.run_dir().join(format!(".test-{name}.pid"));
        std::fs::write(pid_file, format!("{}\n", std::process::id())).expect("the run directory");
        let status = scene.status(name);
        assert_eq!((&status["owner"], &status["pid"]), (&"ann".into(), &leader.pid.into()), "{status}");
        scene.tool("tb-status").arg(name).run().expect(4);
        let out = scene.tool("tb-launch").args(["--name", name, "--", "true"]).run().expect(3);
        assert!(out.stderr.contains("held by another owner"), "{out}");
    }
    scene.tool("tb-kill").arg("--all").run().ok();
    assert!(cut.alive() && gone.alive(), "nobody else's to stop");
    scene.tool("tb-kill").args(["--owner", "ann", "--all"]).run().ok();
    assert!(!cut.alive() && !gone.alive());
    scene.assert_quiet();
}

#[test]
fn a_jobs_own_commands_are_its_owners() {
    let scene = Scene::new();
    let argv = ["--name", "outer", "--", "sh", "-c", "tb-launch --name inner -- true && tb-wait inner"];
    scene.tool("tb-launch").args(["--owner", "ann", "--wait"]).args(argv).run().ok();
    assert_eq!(scene.status("inner")["owner"], "ann");
}
