//! What is never signalled.

use tb_tests::{Odd, Scene, corrupt_pid_files};

#[test]
fn nothing_named_bad_names_signals_and_graces_are_usage_errors() {
    let scene = Scene::new();
    scene.tool("tb-kill").run().expect(2).complains("--all").complains("tb-status");
    for bad in [
        &[""][..],
        &["a\nb"],
        &["--", "-x"],
        &["--all", "x"],
        &["--all", "--stdin-names"],
        &["--signal", "NOPE", "x"],
        &["--signal", "0", "x"],
        &["--signal", "65", "x"],
        &["--grace", "soon", "x"],
        &["--grace", "-1", "x"],
    ] {
        let out = scene.tool("tb-kill").args(bad).run().expect(2);
        assert!(out.stdout.is_empty() && out.stderr.starts_with("tb-kill: cannot "), "{out}");
    }
    for variable in ["TB_KILL_GRACE", "GLUDD_TEST_KILL_GRACE_SEC", "TB_OWNER"] {
        scene.tool("tb-kill").arg("x").env(variable, "a b").run().expect(2).complains(variable);
    }
    assert!(!scene.run_dir().exists());
}

#[test]
fn t24_a_name_that_is_not_tracked_is_an_error_and_the_others_are_stopped() {
    let scene = Scene::new();
    scene.tool("tb-kill").arg("x").run().expect(4).complains("cannot find x: not tracked");
    assert!(!scene.run_dir().exists(), "readers make nothing");
    scene.tool("tb-kill").arg("--all").run().ok();
    scene.launch("y", "hold");
    scene.tool("tb-kill").args(["x", "y"]).run().expect(4).says("Killed y ").complains("running: y");
    scene.assert_quiet();
}

#[test]
fn c17_a_corrupt_pid_file_is_never_signalled() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    // In the tool's own group: what a signal to 0 or -1 would hit.
    let witness = scene.fixture("hold").spawn();
    scene.await_birth("main");
    for (what, content) in corrupt_pid_files() {
        std::fs::write(dir.join(".test-x.pid"), &content).expect("the run directory");
        scene.tool("tb-kill").arg("x").run().ok().says("x already finished (no marker)");
        scene.tool("tb-kill").arg("--all").run().ok();
        assert_eq!(std::fs::read(dir.join(".test-x.pid")).expect("left alone"), content, "{what}");
        assert!(witness.proc().alive(), "{what}");
    }
}

#[test]
fn what_is_no_plain_file_is_named_and_left_alone() {
    for odd in Odd::ALL {
        let scene = Scene::new();
        let witness = scene.fixture("hold").spawn();
        scene.await_birth("main");
        odd.make(&scene.make_run_dir().join(".test-x.pid"), &format!("{}\n", witness.pid()));
        let before = scene.files();
        let out = scene.tool("tb-kill").arg("x").run().expect(125);
        assert!(out.stderr.contains(".gate-logs/.test-x.pid"), "{odd:?}: {out}");
        scene.tool("tb-kill").arg("--all").run().expect(125);
        assert_eq!(scene.files(), before);
        assert!(witness.proc().alive(), "{odd:?}");
    }
}

#[test]
fn the_tools_own_ancestor_is_refused_by_name_and_skipped_by_all() {
    let scene = Scene::new();
    scene.make_run_dir();
    let script = "echo $$ > .gate-logs/.test-x.pid; tb-kill x; echo code=$?; tb-kill --all; echo code=$?";
    let out = scene.sh(script).run().ok();
    assert_eq!(out.stdout, "code=2\ncode=0\n", "{out}");
    assert!(out.stderr.contains("cannot stop x") && out.stderr.contains("x is left alone"), "{out}");
    assert!(scene.run_dir().join(".test-x.pid").exists());
}

#[test]
fn the_tools_own_parent_of_another_session_is_an_ancestor_too() {
    let scene = Scene::new();
    scene.make_run_dir();
    let script = "echo $$ > .gate-logs/.test-x.pid; setsid -w sh -c 'tb-kill x; echo code=$?'; echo alive";
    scene.sh(script).run().ok().says("code=2\nalive\n");
}

#[test]
fn a_job_that_contains_the_caller_is_refused_by_name_and_skipped_by_all() {
    let scene = Scene::new();
    scene.launch("other", "hold");
    let script = "tb-kill self; echo code=$?; tb-kill --all; echo code=$?; exit 7";
    scene.tool("tb-launch").args(["--name", "self", "--", "sh", "-c", script]).run().ok();
    scene.wait_for("self", 1);
    let status = scene.status("self");
    assert_eq!(status["exit_code"], 7, "{status}");
    let text = std::fs::read_to_string(scene.log_of("self")).expect("the log");
    assert!(
        text.contains("code=2\n") && text.contains("code=0\n") && text.contains("Killed other "),
        "{text}"
    );
    assert!(text.contains("self is left alone"), "{text}");
    scene.assert_quiet();
}

#[test]
fn a_lock_that_somebody_else_holds_is_no_success() {
    let scene = Scene::new();
    scene.make_run_dir();
    let pid_file = scene.file(".gate-logs/.test-x.pid", "4242\n");
    let script = "exec 9<.gate-logs/.test-x.pid; flock 9; echo locked; exec tb-fixture hold";
    let holder = scene.sh(script).spawn();
    holder.until_stdout("locked");
    scene.tool("tb-status").arg("x").run().expect(3);
    let out = scene.tool("tb-kill").arg("x").run().expect(7);
    assert!(out.stdout.is_empty(), "nothing was stopped: {out}");
    assert!(
        out.stderr.contains(&format!("{} ", holder.pid())) && out.stderr.contains("holds the lock of"),
        "{out}"
    );
    assert!(holder.proc().alive() && pid_file.exists());
    // Beside the log of a run that is over, too: its record is not the holder's.
    scene.launch("y", "exit 0");
    scene.wait_for("y", 0);
    let script = "exec 9>.gate-logs/.test-y.pid; flock 9; echo locked; exec tb-fixture hold";
    let holder = scene.sh(script).spawn();
    holder.until_stdout("locked");
    scene.tool("tb-kill").arg("y").run().expect(7);
    assert!(holder.proc().alive());
    drop(holder);
    scene.tool("tb-status").arg("y").run().ok();
}

#[test]
fn the_longest_grace_is_a_grace() {
    let scene = Scene::new();
    for grace in ["9999999999999999999999", "99999d"] {
        scene.launch("x", "hold");
        scene.tool("tb-kill").args(["--grace", grace, "x"]).run().ok().says("TERM)");
    }
    scene.launch("x", "hold");
    scene.tool("tb-kill").arg("x").env("TB_KILL_GRACE", "9".repeat(30)).run().ok();
}

#[test]
fn help_lists_the_exit_codes() {
    let scene = Scene::new();
    let long = scene.tool("tb-kill").arg("--help").run().ok();
    for word in ["Examples:", "Exit status:", "4 not tracked", "7 something is left", "5s"] {
        assert!(long.stdout.contains(word), "{word} in {long}");
    }
    assert!(scene.tool("tb-kill").arg("-h").run().ok().stdout.len() < long.stdout.len());
    scene.tool("tb-kill").arg("-V").run().ok().says("tb-kill ");
}
