//! Run directories that are none, or not ours to write.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use tb_tests::{Odd, Scene};

#[test]
fn g03_the_run_directory_is_made_private_with_a_gitignore_and_only_then() {
    let scene = Scene::new();
    scene.launch("x", "exit 0");
    let dir = scene.run_dir();
    assert_eq!(fs::metadata(&dir).expect("made").mode() & 0o777, 0o700);
    assert_eq!(scene.read(".gate-logs/.gitignore"), "*\n");
    scene.wait_for("x", 0);
    assert_eq!(fs::metadata(scene.log_of("x")).expect("a log").mode() & 0o777, 0o600);
    // A directory that was there is somebody's: no file of that kind appears in it.
    fs::create_dir(scene.path("mine")).expect("our own directory");
    scene.tool("tb-launch").args(["--log-dir", "mine", "--name", "x", "--", "true"]).run().ok();
    assert!(!scene.path("mine/.gitignore").exists());
    scene.tool("tb-wait").args(["--log-dir", "mine", "x"]).run().ok();
}

#[test]
fn a_file_in_the_run_directorys_place_is_named() {
    let scene = Scene::new();
    scene.file(".gate-logs", "a file\n");
    let before = scene.files();
    let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(125);
    assert!(out.stderr.contains(".gate-logs: Not a directory"), "{out}");
    let below = scene.tool("tb-launch").args(["--log-dir", ".gate-logs/sub", "--", "true"]).run().expect(125);
    assert!(below.stderr.contains(".gate-logs/sub"), "{below}");
    scene.assert_untouched(&before);
}

#[test]
fn a_link_that_leads_nowhere_in_the_run_directorys_place_is_named() {
    let scene = Scene::new();
    symlink("no/such", scene.run_dir()).expect("our own directory");
    let before = scene.files();
    let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(125);
    assert!(out.stderr.contains(".gate-logs"), "{out}");
    scene.assert_untouched(&before);
}

#[test]
fn a_run_directory_that_cannot_be_written_is_named_and_can_still_be_read() {
    let scene = Scene::nobody();
    scene.launch("x", "print hello exit 3");
    scene.wait_for("x", 1);
    let mode = |mode| fs::set_permissions(scene.run_dir(), fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o500);
    let before = scene.files();
    for name in ["x", "y"] {
        let out = scene.tool("tb-launch").args(["--name", name, "--", "true"]).run().expect(125);
        assert!(out.stderr.contains(".gate-logs") && out.stderr.contains("Permission denied"), "{out}");
        assert!(out.stdout.is_empty());
    }
    scene.tool("tb-status").arg("x").run().expect(1).says("hello");
    scene.tool("tb-status").run().ok().says("BACKGROUND TESTS (1 tracked):");
    scene.tool("tb-wait").arg("x").run().expect(1).says("x: FINISHED (FAIL)");
    scene.tool("tb-kill").arg("x").run().ok().says("x already finished (FAIL)");
    scene.assert_untouched(&before);
    mode(0o700);
}

#[test]
fn a_parent_that_cannot_be_written_is_named() {
    let scene = Scene::nobody();
    scene.file("closed/there", "");
    let mode =
        |mode| fs::set_permissions(scene.path("closed"), fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o500);
    let before = scene.files();
    let out = scene.tool("tb-launch").args(["--log-dir", "closed/logs", "--", "true"]).run().expect(125);
    assert!(out.stderr.contains("closed/logs: Permission denied"), "{out}");
    scene.assert_untouched(&before);
    mode(0o700);
}

#[test]
fn a_directory_lock_that_is_no_plain_file_is_named() {
    for odd in [Odd::Directory, Odd::Fifo, Odd::Symlink] {
        let scene = Scene::new();
        let dir = scene.make_run_dir();
        odd.make(&dir.join(".lock"), "7\n");
        let before = scene.files();
        let out = scene.tool("tb-launch").args(["--", "true"]).run().expect(125);
        assert!(out.stderr.contains(".gate-logs/.lock"), "{odd:?}: {out}");
        scene.assert_untouched(&before);
    }
}

#[test]
fn a_lock_that_somebody_keeps_is_waited_for_and_then_named() {
    let scene = Scene::new();
    scene.make_run_dir();
    scene.file(".gate-logs/.lock", "");
    let holder = scene.sh("exec 9<>.gate-logs/.lock; flock 9; echo locked; exec tb-fixture hold").spawn();
    holder.until_stdout("locked");
    let before = scene.files();
    let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(125);
    assert!(out.stderr.contains(".lock") && out.stderr.contains("10 s"), "{out}");
    assert!(out.stdout.is_empty());
    assert_eq!(scene.files(), before);
    // Readers do not take it.
    scene.tool("tb-status").run().ok();
}

#[test]
fn g69_the_directory_is_shared_by_all_who_may_enter_it() {
    let scene = Scene::new();
    scene
        .tool("tb-launch")
        .args(["--shared", "--name", "x", "--", "sh", "-c", "echo hello; exit 3"])
        .run()
        .ok();
    scene.wait_for("x", 1);
    fs::set_permissions(scene.run_dir(), fs::Permissions::from_mode(0o755)).expect("ours");
    scene.tool("tb-status").arg("x").as_nobody().run().expect(1).says("hello");
    scene.tool("tb-wait").arg("x").as_nobody().run().expect(1);
    // The same files through another path.
    let there = scene.run_dir();
    scene.tool("tb-status").arg("x").cwd("/").env("TB_LOG_DIR", &there).run().expect(1).says("hello");
}

#[test]
fn the_job_works_where_it_was_told_to_and_the_run_directory_stays() {
    let scene = Scene::new();
    scene.file("sub/there", "");
    let out = scene
        .tool("tb-launch")
        .args([
            "--cwd",
            "sub",
            "--name",
            "x",
            "--",
            "sh",
            "-c",
            "pwd -P; echo \"$PWD\"; echo $TB_LOG_DIR; cat there",
        ])
        .run()
        .ok();
    scene.wait_for("x", 0);
    let sub = scene.path("sub");
    let sub = sub.to_str().expect("a path");
    let text = fs::read_to_string(scene.log_of("x")).expect("the log");
    let lines: Vec<&str> = text.lines().skip(1).take(3).collect();
    assert_eq!(lines, [sub, sub, scene.run_dir().to_str().expect("a path")]);
    assert_eq!(scene.status("x")["cwd"], sub);
    assert!(!scene.path("sub/.gate-logs").exists());
    let log = out.stdout.lines().last().and_then(|l| l.strip_prefix("Log: ")).expect("a log line");
    assert!(scene.path(log).is_file(), "a path that can be opened from here: {out}");
}
