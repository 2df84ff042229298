//! What is not waited for.

use tb_tests::{Odd, Scene, VARIABLES, corrupt_pid_files};

#[test]
fn nothing_named_and_bad_names_are_usage_errors() {
    let scene = Scene::new();
    scene.tool("tb-wait").run().expect(2).complains("no job was named").complains("tb-status");
    for bad in [
        &[""][..],
        &["a\nb"],
        &["--", "-x"],
        &["-0"],
        &["--timeout", "soon", "x"],
        &["--heartbeat", "-1", "x"],
    ] {
        let out = scene.tool("tb-wait").args(bad).run().expect(2);
        assert!(out.stdout.is_empty() && out.stderr.starts_with("tb-wait: cannot "), "{out}");
    }
    for variable in VARIABLES {
        scene.tool("tb-wait").arg("x").env(variable, "a b").run().expect(2).complains(variable);
    }
    assert!(!scene.run_dir().exists());
}

#[test]
fn a_name_that_is_not_tracked_is_refused_before_any_waiting() {
    let scene = Scene::new();
    scene.tool("tb-wait").arg("x").run().expect(4).complains("cannot find x: not tracked");
    assert!(!scene.run_dir().exists(), "readers make nothing");
    scene.launch("runs", "hold");
    let out = scene.tool("tb-wait").args(["runs", "x"]).run().expect(4);
    assert!(out.stdout.is_empty() && out.stderr.contains("running: runs"), "{out}");
    scene.tool("tb-kill").arg("runs").run().ok();
}

#[test]
fn a_corrupt_pid_file_is_no_run_to_wait_for() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    for (what, content) in corrupt_pid_files() {
        std::fs::write(dir.join(".test-x.pid"), &content).expect("the run directory");
        let out = scene.tool("tb-wait").arg("x").run().expect(5);
        assert!(out.stdout.contains("x: FINISHED (no marker)"), "{what}: {out}");
        assert_eq!(std::fs::read(dir.join(".test-x.pid")).expect("left alone"), content);
    }
}

#[test]
fn what_is_no_plain_file_is_named() {
    for odd in Odd::ALL {
        let scene = Scene::new();
        odd.make(&scene.make_run_dir().join(".test-x.pid"), "4242\n");
        let before = scene.files();
        let out = scene.tool("tb-wait").arg("x").run().expect(125);
        assert!(out.stderr.contains(".gate-logs/.test-x.pid"), "{odd:?}: {out}");
        scene.assert_untouched(&before);
    }
    let scene = Scene::new();
    scene.file(".gate-logs", "");
    scene.tool("tb-wait").arg("x").run().expect(125).complains(".gate-logs: Not a directory");
}

#[test]
fn the_tools_own_ancestor_is_running_and_left_alone() {
    let scene = Scene::new();
    scene.make_run_dir();
    let script = "echo $$ > .gate-logs/.test-x.pid; tb-wait --timeout 10ms x; echo code=$?; \
        tb-wait --timeout 10ms --kill-on-timeout x; echo code=$?";
    let out = scene.sh(script).run().ok();
    assert_eq!(out.stdout, "code=124\ncode=2\n", "{out}");
    assert!(out.stderr.contains("ancestor") || out.stderr.contains("runs inside it"), "{out}");
}

#[test]
fn t29_anothers_job_is_not_waited_for() {
    let scene = Scene::new();
    scene.tool("tb-launch").args(["--owner", "ann", "--name", "x", "--", "true"]).run().ok();
    scene.tool("tb-wait").arg("x").run().expect(4);
    scene.tool("tb-wait").args(["--owner", "bob", "x"]).run().expect(4);
    scene.tool("tb-wait").args(["--owner", "ann", "x"]).run().ok();
    scene.tool("tb-wait").arg("x").env("TB_OWNER", "ann").run().ok();
    scene.tool("tb-wait").args(["--all-owners", "x"]).run().ok();
    scene.tool("tb-wait").args(["--owner", "a b", "x"]).run().expect(2).complains("--owner");
}

#[test]
fn the_longest_limit_and_heartbeat_are_some() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 0");
    let long = "9999999999999999999999";
    let waiter = scene.tool("tb-wait").args(["--timeout", long, "--heartbeat", long, "x"]).spawn();
    let other = scene.tool("tb-wait").args(["--heartbeat", "10ms", "x"]).env("TB_WAIT_TIMEOUT", long).spawn();
    other.until_stderr("RUNNING");
    scene.file("go", "");
    waiter.wait().ok();
    other.wait().ok();
}

#[test]
fn help_lists_the_exit_codes_and_the_defaults() {
    let scene = Scene::new();
    let long = scene.tool("tb-wait").arg("--help").run().ok();
    for word in [
        "Examples:",
        "Exit status:",
        "0 passed",
        "1 failed",
        "4 not tracked",
        "5 no verdict",
        "124",
        "130",
        "30m",
        "30s",
    ] {
        assert!(long.stdout.contains(word), "{word} in {long}");
    }
    assert!(scene.tool("tb-wait").arg("-h").run().ok().stdout.len() < long.stdout.len());
    scene.tool("tb-wait").arg("-V").run().ok().says("tb-wait ");
}
