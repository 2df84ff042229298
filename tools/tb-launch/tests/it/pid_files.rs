//! PID files that are in the way, or are not.

use std::fs;
use tb_tests::{Odd, Scene, corrupt_pid_files};

#[test]
fn c17_c18_a_corrupt_pid_file_never_blocks_a_launch_and_is_replaced() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    for (i, (what, content)) in corrupt_pid_files().into_iter().enumerate() {
        let name = format!("x{i}");
        let file = dir.join(format!(".test-{name}.pid"));
        fs::write(&file, content).expect("the run directory");
        scene.launch(&name, "await go");
        let pid = scene.status(&name)["pid"].as_u64().expect(what);
        assert_eq!(fs::read_to_string(&file).expect(what), format!("{pid}\n"), "{what}");
    }
    scene.file("go", "");
    for i in 0..corrupt_pid_files().len() {
        scene.wait_for(&format!("x{i}"), 0);
    }
}

#[test]
fn g13_g55_a_dead_process_in_a_pid_file_never_blocks_a_launch() {
    let scene = Scene::new();
    let dead = scene.fixture("ids").spawn();
    let pid = dead.pid();
    dead.wait().ok();
    scene.make_run_dir();
    scene.file(".gate-logs/.test-x.pid", format!("{pid}\n"));
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    scene.assert_quiet();
}

#[test]
fn what_is_no_plain_file_is_named_and_left_alone() {
    for odd in Odd::ALL {
        let scene = Scene::new();
        let file = scene.make_run_dir().join(".test-x.pid");
        scene.file(".gate-logs/.lock", "");
        odd.make(&file, "4242\n");
        let before = scene.files();
        let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(125);
        assert!(out.stderr.contains(".test-x.pid") && out.stdout.is_empty(), "{odd:?}: {out}");
        scene.assert_untouched(&before);
        // It is in the way of that name alone.
        scene.launch("y", "exit 0");
        scene.wait_for("y", 0);
    }
}

#[test]
fn a_log_that_is_no_plain_file_is_named_and_left_alone() {
    for odd in [Odd::Directory, Odd::Fifo, Odd::Symlink] {
        let scene = Scene::new();
        let file = scene.make_run_dir().join("test-x-20200101_000000.log");
        scene.file(".gate-logs/.lock", "");
        odd.make(&file, "text\n");
        let before = scene.files();
        let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(125);
        assert!(out.stderr.contains("test-x-20200101_000000.log"), "{odd:?}: {out}");
        scene.assert_untouched(&before);
    }
}

#[test]
fn the_launchers_own_ancestor_in_the_pid_file_is_running() {
    let scene = Scene::new();
    scene.make_run_dir();
    let script = "echo $$ > .gate-logs/.test-x.pid; tb-launch --name x -- true; echo code=$? pid=$$";
    let out = scene.sh(script).run().ok().says("code=3");
    let pid = out.stdout.rsplit_once("pid=").expect("as printed").1.trim();
    assert!(out.stderr.contains(&format!("already running [PID: {pid}]")), "{out}");
    assert_eq!(scene.read(".gate-logs/.test-x.pid").trim(), pid, "left as it was");
}

#[test]
fn g65_a_second_launch_never_overwrites_a_live_pid_file() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let before = scene.read(".gate-logs/.test-x.pid");
    for _ in 0..5 {
        scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    }
    assert_eq!(scene.read(".gate-logs/.test-x.pid"), before);
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn a_foreign_process_in_the_pid_file_is_running_and_a_younger_one_is_not() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    let child = scene.fixture("hold").spawn();
    scene.await_birth("main");
    let file = dir.join(".test-x.pid");
    fs::write(&file, format!("{}\n", child.pid())).expect("the run directory");
    let out = scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    assert!(out.stderr.contains(&format!("[PID: {}]", child.pid())), "{out}");
    // Written long before that process began: it is somebody else who bears the number now.
    let open = fs::File::options().write(true).open(&file).expect("our own file");
    open.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600))
        .expect("our own file");
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    assert!(child.proc().alive(), "a stranger is not signalled");
}

#[test]
fn what_an_unfinished_launch_left_goes_with_the_next_and_what_is_no_file_stays() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    scene.file(".gate-logs/.new-0123456789abcdef.log", "torn");
    scene.file(".gate-logs/.new-0123456789abcdef.pid", "");
    Odd::Fifo.make(&dir.join(".new-fifo.log"), "");
    scene.launch("x", "exit 0");
    assert!(!dir.join(".new-0123456789abcdef.log").exists());
    assert!(!dir.join(".new-0123456789abcdef.pid").exists());
    assert!(dir.join(".new-fifo.log").exists());
    scene.wait_for("x", 0);
}
