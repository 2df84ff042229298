//! What is left alone.

use std::fs;
use tb_tests::{Odd, Scene};

#[test]
fn what_runs_is_refused_by_name_and_passed_over_otherwise() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let before = scene.files();
    let out = scene.tool("tb-clean").arg("x").run().expect(3);
    assert!(
        out.stderr.contains("cannot forget x: it is running") && out.stderr.contains("tb-kill x"),
        "{out}"
    );
    assert_eq!(scene.tool("tb-clean").run().ok().stdout, "");
    let mut after = scene.files();
    after.retain(|path, _| !path.ends_with(".lock"));
    let mut same = before;
    same.retain(|path, _| !path.ends_with(".lock"));
    assert_eq!(after, same);
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn a_foreign_run_and_the_tools_own_ancestor_run() {
    let scene = Scene::new();
    scene.make_run_dir();
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    scene.file(".gate-logs/.test-f.pid", format!("{}\n", child.pid()));
    let script = "echo $$ > .gate-logs/.test-x.pid; tb-clean x; echo code=$?; tb-clean; echo code=$?; tb-clean f; echo code=$?";
    let out = scene.sh(script).run().ok();
    assert_eq!(out.stdout, "code=3\ncode=0\ncode=3\n", "{out}");
    assert!(scene.run_dir().join(".test-x.pid").exists() && scene.run_dir().join(".test-f.pid").exists());
}

#[test]
fn what_is_no_plain_file_is_named_and_left_alone() {
    for odd in Odd::ALL {
        let scene = Scene::new();
        odd.make(&scene.make_run_dir().join(".test-x.pid"), "4242\n");
        scene.file(".gate-logs/.test-y.pid", "junk\n");
        scene.file(".gate-logs/.lock", "");
        let out = scene.tool("tb-clean").run().expect(125);
        assert!(out.stderr.contains(".gate-logs/.test-x.pid"), "{odd:?}: {out}");
        assert!(out.stdout.contains("y: removed"), "the others are cleared: {out}");
        let before = scene.files();
        scene.tool("tb-clean").arg("x").run().expect(125).complains(".gate-logs/.test-x.pid");
        scene.assert_untouched(&before);
    }
}

#[test]
fn a_log_with_a_second_name_is_not_written() {
    let scene = Scene::new();
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    fs::hard_link(scene.log_of("x"), scene.path("kept")).expect("our own log");
    let text = fs::read(scene.path("kept")).expect("our own file");
    scene.tool("tb-clean").arg("x").run().expect(125).complains("2 links");
    assert_eq!(fs::read(scene.path("kept")).expect("our own file"), text);
}

#[test]
fn a_foreign_log_is_never_written() {
    let scene = Scene::new();
    scene.make_run_dir();
    let log = scene.file(".gate-logs/test-x-20200725_143000.log", "=== GATE: PASSED ===\n");
    scene.tool("tb-clean").arg("x").run().ok();
    assert_eq!(fs::read_to_string(log).expect("the log"), "=== GATE: PASSED ===\n");
}

#[test]
fn a_directory_that_cannot_be_written_or_is_none_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::nobody();
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    scene.file(".gate-logs/.test-y.pid", "junk\n");
    let mode = |mode| fs::set_permissions(scene.run_dir(), fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o500);
    let out = scene.tool("tb-clean").arg("y").run().expect(125);
    assert!(out.stderr.contains(".test-y.pid") && out.stderr.contains("Permission denied"), "{out}");
    mode(0o700);
    let scene = Scene::new();
    scene.file(".gate-logs", "");
    scene.tool("tb-clean").run().expect(125).complains(".gate-logs: Not a directory");
}

#[test]
fn names_that_are_none_and_names_that_are_not_there() {
    let scene = Scene::new();
    scene.tool("tb-clean").arg("x").run().expect(4).complains("not tracked");
    assert!(!scene.run_dir().exists());
    scene.make_run_dir();
    scene.tool("tb-clean").arg("x").run().expect(4).complains("not tracked");
    for bad in [&[""][..], &["a\nb"], &["--", "-x"], &["-0"]] {
        let out = scene.tool("tb-clean").args(bad).run().expect(2);
        assert!(out.stderr.starts_with("tb-clean: cannot "), "{out}");
    }
    scene.tool("tb-clean").env("TB_OWNER", "a b").run().expect(2).complains("TB_OWNER");
}

#[test]
fn a_job_of_another_machine_is_forgotten_by_name_alone() {
    let scene = Scene::new();
    scene.make_run_dir();
    let header = r#"=== GATE LAUNCH: {"v":1,"job":"00112233aabbccdd","name":"x","host":"farawayhost","pid":4242,"boot":"other"} ==="#;
    let log = scene.file(".gate-logs/test-x-20200725_143000.log", format!("{header}\noutput\n"));
    let pid_file = scene.file(".gate-logs/.test-x.pid", "536870912\n");
    let launch = || scene.tool("tb-launch").args(["--name", "x", "--", "true"]);
    let out = launch().run().expect(3);
    assert!(out.stderr.contains("farawayhost") && out.stderr.contains("tb-clean x"), "{out}");
    scene.tool("tb-clean").run().ok();
    assert!(pid_file.exists() && !fs::read_to_string(&log).expect("the log").contains("COLLECTED"));
    launch().run().expect(3);
    scene.tool("tb-clean").arg("x").run().ok();
    assert!(!pid_file.exists());
    launch().run().ok();
    scene.wait_for("x", 0);
}

#[test]
fn help_lists_the_exit_codes() {
    let scene = Scene::new();
    let long = scene.tool("tb-clean").arg("--help").run().ok();
    for word in ["Examples:", "Exit status:", "0 done", "3 the named job runs", "4 not tracked"] {
        assert!(long.stdout.contains(word), "{word} in {long}");
    }
    assert!(scene.tool("tb-clean").arg("-h").run().ok().stdout.len() < long.stdout.len());
    scene.tool("tb-clean").arg("-V").run().ok().says("tb-clean ");
}
