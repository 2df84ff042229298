//! Commands that cannot be executed, and what a job's process is given.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use tb_tests::{Scene, stat};

#[test]
fn a_command_that_is_not_there_is_127_and_leaves_nothing() {
    let scene = Scene::new();
    scene.make_run_dir();
    scene.file(".gate-logs/.lock", "");
    let before = scene.files();
    for command in ["no-such-command", "./no/such", "/no/such"] {
        // A directory of PATH that may not be searched would be another answer.
        let launch = scene.tool("tb-launch").env("PATH", "/usr/bin:/bin");
        let out = launch.args(["--name", "x", "--", command]).run().expect(127);
        assert!(out.stdout.is_empty(), "{out}");
        assert!(out.stderr.contains(&format!("cannot execute {command}: No such file")), "{out}");
    }
    scene.assert_untouched(&before);
    scene.tool("tb-status").arg("x").run().expect(4);
}

#[test]
fn a_command_that_cannot_be_executed_is_126_and_leaves_nothing() {
    let scene = Scene::new();
    scene.make_run_dir();
    scene.file(".gate-logs/.lock", "");
    scene.file("plain", "#!/bin/sh\n");
    let odd = scene.file("odd", "\x7fELF but not really");
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o755)).expect("our own file");
    let before = scene.files();
    for command in ["./plain", ".", "/"] {
        let out = scene.tool("tb-launch").args(["--name", "x", "--", command]).run().expect(126);
        assert!(out.stdout.is_empty() && out.stderr.contains("cannot execute "), "{out}");
    }
    scene.assert_untouched(&before);
}

#[test]
fn an_interpreter_line_that_leads_nowhere_is_127() {
    let scene = Scene::new();
    let script = scene.file("script", "#!/no/such/interpreter\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("our own file");
    scene.tool("tb-launch").args(["--name", "x", "--", "./script"]).run().expect(127);
    scene.assert_quiet();
    scene.tool("tb-status").arg("x").run().expect(4);
}

#[test]
fn a_failed_launch_does_not_replace_the_last_run() {
    let scene = Scene::new();
    scene.launch("x", "print before exit 3");
    scene.wait_for("x", 1);
    scene.tool("tb-launch").args(["--name", "x", "--", "./no/such"]).run().expect(127);
    let status = scene.status("x");
    assert_eq!((status["exit_code"].as_i64(), status["outcome"].as_str()), (Some(3), Some("failed")));
}

#[test]
fn t48_the_leader_leads_its_session_and_group_and_reads_nothing() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let leader = scene.await_birth("main");
    let stat = stat(leader.pid).expect("it runs");
    assert_eq!((stat.sid, stat.pgid), (leader.pid, leader.pid));
    let stdin = fs::read_link(format!("/proc/{}/fd/0", leader.pid)).expect("our own process");
    assert_eq!(stdin.to_str(), Some("/dev/null"));
    let open = fs::read_dir(format!("/proc/{}/fd", leader.pid)).expect("our own process").count();
    assert_eq!(open, 3, "no descriptor above 2");
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn t03_the_record_keeps_the_command_verbatim() {
    let scene = Scene::new();
    let words = ["sh", "-c", "exit 0", "a  b", "'\"$x`", "é\t\u{1f600}", ""];
    scene.tool("tb-launch").args(["--name", "x", "--"]).args(words).run().ok();
    scene.wait_for("x", 0);
    assert_eq!(scene.status("x")["command"], serde_json::json!(words));
}

#[test]
fn t01_jobs_without_a_name_get_the_next_handle_and_never_an_old_one() {
    let scene = Scene::new();
    for n in 1..=3 {
        scene.tool("tb-launch").args(["--", "true"]).run().ok().says(&format!("Launched job_{n} [PID: "));
        scene.wait_for(&format!("job_{n}"), 0);
    }
    for entry in fs::read_dir(scene.run_dir()).expect("the run directory").flatten() {
        if entry.file_name().to_string_lossy().starts_with("test-job_") {
            fs::remove_file(entry.path()).expect("our own log");
        }
    }
    scene.tool("tb-launch").args(["--", "true"]).run().ok().says("Launched job_4 ");
    scene.wait_for("job_4", 0);
}

#[test]
fn t02_t13_a_launched_job_is_running_with_a_live_pid_and_no_exit_code() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    let leader = scene.await_birth("main");
    let status = scene.status("x");
    assert_eq!(status["status"], "RUNNING");
    assert_eq!(status["pid"].as_u64(), Some(leader.pid.into()));
    assert!(status["exit_code"].is_null() && status["outcome"].is_null());
    assert_eq!(scene.tool("tb-status").arg("x").run().code, Some(3));
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn g06_g89_a_job_survives_its_terminal_and_the_signals_of_its_callers_group() {
    let scene = Scene::new();
    // The launch and a signal to the whole group that made it.
    let script = "trap '' TERM HUP INT; tb-launch --name x -- tb-fixture await go exit 0 >&2; kill -s TERM 0; kill -s INT 0; kill -s HUP 0; echo sent";
    scene.cmd("setsid").args(["-w", "sh", "-c", script]).run().ok().says("sent");
    let leader = scene.await_birth("main");
    assert!(leader.alive());
    scene.file("go", "");
    scene.wait_for("x", 0);
}

#[test]
fn p06_g07_output_goes_straight_to_the_log_in_true_order() {
    let scene = Scene::new();
    scene.launch("x", "print one print-err two print three ready await go");
    scene.await_birth("main");
    let leader = scene.status("x")["pid"].as_u64().expect("a pid");
    let log = scene.log_of("x");
    for fd in [1, 2] {
        let to = fs::read_link(format!("/proc/{leader}/fd/{fd}")).expect("our own process");
        assert_eq!(to, log.canonicalize().expect("the log"), "nothing in between");
    }
    let text = fs::read_to_string(&log).expect("the log");
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["one", "two", "three"]);
    scene.file("go", "");
    scene.wait_for("x", 0);
}

#[test]
fn the_callers_descriptors_are_let_go_and_a_command_substitution_returns() {
    let scene = Scene::new();
    // The fixture's holder fails the test if the job kept the pipe: output is read to its end.
    scene
        .sh("out=$(tb-launch --name x -- tb-fixture hold); echo \"$out\" | grep -c Launched")
        .run()
        .ok()
        .says("1");
    scene.tool("tb-kill").arg("x").run().ok();
}

#[test]
fn it_works_with_closed_stdio_and_with_sigchld_ignored() {
    let scene = Scene::new();
    for (name, words) in [
        ("a", vec!["close", "0"]),
        ("b", vec!["close", "1"]),
        ("c", vec!["close", "2"]),
        ("d", vec!["close", "0", "close", "1", "close", "2"]),
        ("e", vec!["ignore", "CHLD"]),
    ] {
        let argv = scene.fixture_argv("exit 7");
        scene
            .tool("tb-launch")
            .args(["--wait", "--name", name, "--"])
            .args(argv)
            .through(words)
            .run()
            .expect(1);
        assert_eq!(scene.status(name)["exit_code"], 7, "{name}");
    }
}

#[test]
fn a_job_begins_with_default_dispositions_whatever_its_caller_ignores() {
    let scene = Scene::new();
    let words = [
        "ignore", "INT", "ignore", "QUIT", "ignore", "HUP", "ignore", "XFSZ", "block", "TERM", "ignore",
        "CHLD",
    ];
    let job = ["--wait", "--name", "x", "--", "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
    scene.tool("tb-launch").args(job).through(words).run().ok();
    let text = fs::read_to_string(scene.log_of("x")).expect("the log");
    let masks: Vec<&str> = text.lines().filter(|l| l.starts_with("Sig")).collect();
    assert_eq!(masks, ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"], "{text}");
}
