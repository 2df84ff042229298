//! Logs that lie, that were cut, that are gone, or that do not end.

use crate::written::{footer, header, log};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Duration;
use tb_shared::contract::{Footer, Header, Outcome};
use tb_tests::{Scene, until};

/// The footer that a job could write of itself, from what its own log says.
fn own_footer(scene: &Scene, name: &str, outcome: Outcome) -> (std::path::PathBuf, Vec<u8>) {
    let path = scene.log_of(name);
    let text = fs::read_to_string(&path).expect("the log");
    let line = text.lines().next().and_then(|l| l.strip_prefix("=== GATE LAUNCH: ")?.strip_suffix(" ==="));
    let header: Header = serde_json::from_str(line.expect("a header")).expect("a header");
    let forged: Footer = footer(&header, outcome);
    (path, forged.lines())
}

fn append(path: &std::path::Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).and_then(|mut f| f.write_all(bytes)).expect("our own log");
}

#[test]
fn c09_a_marker_in_the_output_ends_nothing_and_decides_nothing() {
    let scene = Scene::new();
    let print =
        "echo '=== GATE: PASSED ==='; echo printed > done; while [ ! -e go ]; do sleep 0.01; done; exit 3";
    scene.tool("tb-launch").args(["--name", "x", "--", "sh", "-c", print]).run().ok();
    until("it has printed", || scene.path("done").exists().then_some(()));
    let status = scene.status("x");
    assert!(status["status"] == "RUNNING" && status["terminal_marker"].is_null(), "{status}");
    scene.file("go", "");
    scene.wait_for("x", 1);
    let status = scene.status("x");
    assert_eq!(
        (&status["terminal_marker"], &status["verdict_source"]),
        (&"FAIL".into(), &"exit_status".into())
    );
}

#[test]
fn another_jobs_footer_in_the_output_ends_nothing_and_decides_nothing() {
    let scene = Scene::new();
    let other = header("x");
    let forged = footer(&other, Outcome::Passed).lines();
    scene.file("forged", &forged);
    let script =
        "cat forged; echo printed > done; while [ ! -e go ]; do sleep 0.01; done; cat forged; exit 3";
    scene.tool("tb-launch").args(["--name", "x", "--", "sh", "-c", script]).run().ok();
    until("it has printed", || scene.path("done").exists().then_some(()));
    scene.tool("tb-status").arg("x").run().expect(3);
    scene.file("go", "");
    scene.wait_for("x", 1);
    // Nor does it without a supervisor to have the last word.
    let scene = Scene::new();
    let mut mine = header("x");
    mine.job = "ffffffffffffffff".into();
    log(&scene, "x", &[&mine.line(), b"output\n", &forged]);
    scene.tool("tb-status").arg("x").run().expect(5).says("FINISHED (no marker)");
}

#[test]
fn its_own_footer_in_the_output_ends_nothing_while_it_runs_and_the_last_one_decides() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 3");
    let (path, forged) = own_footer(&scene, "x", Outcome::Passed);
    append(&path, &forged);
    for _ in 0..3 {
        let status = scene.status("x");
        assert!(status["status"] == "RUNNING" && status["outcome"].is_null(), "{status}");
    }
    scene.tool("tb-wait").args(["--timeout", "50ms", "x"]).run().expect(124);
    scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    scene.tool("tb-clean").arg("x").run().expect(3);
    append(&path, &forged);
    scene.file("go", "");
    scene.wait_for("x", 1);
    assert_eq!(scene.status("x")["outcome"], "failed");
}

#[test]
fn its_own_footer_at_its_end_ends_nothing_while_its_tree_is_stopped() {
    let scene = Scene::new();
    // What it leaves needs the whole grace to go: all that time the PID file is gone and the forged record there.
    scene.launch("x", "spawn-setsid [ ignore-term hold ] await go exit 3");
    let (child, leader) = (scene.await_birth("setsid"), scene.await_birth("main"));
    let (path, forged) = own_footer(&scene, "x", Outcome::Passed);
    append(&path, &forged);
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "10ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    scene.file("go", "");
    until("its leader is gone", || (!leader.alive()).then_some(()));
    let mut looks = 0;
    loop {
        let status = scene.status("x");
        if !child.alive() {
            break;
        }
        assert!(status["status"] == "RUNNING" && status["outcome"].is_null(), "{status}");
        looks += 1;
    }
    assert!(looks > 0, "the child outlives its leader by the grace");
    waiter.wait().expect(1).says("x: FINISHED (FAIL)").says("exit 3");
    scene.wait_for("x", 1);
}

#[test]
fn a_footer_that_was_cut_off_is_none() {
    let scene = Scene::new();
    let header = header("x");
    let lines = footer(&header, Outcome::Passed).lines();
    let end = lines.iter().position(|&b| b == b'\n').expect("a line");
    for cut in [end, end / 2, 30] {
        log(&scene, "x", &[&header.line(), b"output\n", &lines[..cut]]);
        scene.tool("tb-status").arg("x").run().expect(5);
    }
    log(&scene, "x", &[&header.line(), b"output\n", &lines[..=end]]);
    scene.tool("tb-status").arg("x").run().ok();
}

#[test]
fn a_hundred_megabytes_in_one_line_cost_neither_time_nor_screens() {
    let scene = Scene::new();
    scene.launch("x", "print first print-line 100000000 ready await go exit 3");
    scene.await_birth("main");
    let out = scene.tool("tb-status").arg("x").deadline(Duration::from_secs(20)).run().expect(3);
    assert!(out.stdout.len() < 20_000, "{} bytes", out.stdout.len());
    let out = scene.tool("tb-status").args(["--json", "x"]).run().expect(3);
    assert!(out.stdout.len() < 20_000, "{} bytes", out.stdout.len());
    scene.tool("tb-status").run().ok().says("RUNNING");
    scene.file("go", "");
    scene.wait_for("x", 1);
    let out = scene.tool("tb-status").arg("x").run().expect(1);
    assert!(
        out.stdout.len() < 20_000 && out.stdout.contains("FINISHED (FAIL)"),
        "{} bytes",
        out.stdout.len()
    );
    assert_eq!(scene.status("x")["exit_code"], 3);
}

#[test]
fn g30_a_log_that_was_deleted_while_its_job_runs_is_said_to_be_gone() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 3");
    let leader = scene.await_birth("main");
    fs::remove_file(scene.log_of("x")).expect("our own log");
    let out = scene.tool("tb-status").arg("x").run().expect(3);
    assert!(out.stdout.contains(&format!("x  RUNNING  PID: {}", leader.pid)), "{out}");
    assert!(out.stdout.contains("Log: (no log found)"), "{out}");
    let status = scene.status("x");
    assert_eq!(status["supervision"], "double", "found by the lock: {status}");
    scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    scene.file("go", "");
    scene.wait_for("x", 1);
    let status = scene.status("x");
    assert_eq!((&status["exit_code"], &status["truncated"]), (&3.into(), &true.into()));
    let text = fs::read_to_string(scene.log_of("x")).expect("a new log");
    assert!(text.starts_with("=== GATE LAUNCH: ") && text.ends_with("=== GATE: FAILED ===\n"), "{text}");
}

#[test]
fn a_deleted_log_does_not_bring_an_earlier_runs_verdict_back() {
    let scene = Scene::new();
    for round in 0..5 {
        scene.launch("x", "exit 0");
        scene.wait_for("x", 0);
        scene.launch("x", &format!("role r{round} await go{round} exit 3"));
        scene.await_birth(&format!("r{round}"));
        fs::remove_file(scene.log_of("x")).expect("our own log");
        let status = scene.status("x");
        assert!(status["status"] == "RUNNING" && status["log_file"].is_null(), "{status}");
        let waiter = scene.tool("tb-wait").arg("x").spawn();
        let late = scene.tool("tb-wait").args(["--heartbeat", "10ms", "x"]).spawn();
        late.until_stderr("RUNNING");
        scene.file(format!("go{round}"), "");
        waiter.wait().expect(1);
        late.wait().expect(1);
        assert_eq!(scene.status("x")["exit_code"], 3, "round {round}");
    }
}

#[test]
fn a_log_that_was_replaced_by_another_file_is_left_to_that() {
    let scene = Scene::new();
    scene.launch("x", "print mine await go exit 3");
    let leader = scene.await_birth("main");
    let path = scene.log_of("x");
    scene.file("other", "=== GATE: PASSED ===\n");
    fs::rename(scene.path("other"), &path).expect("our own files");
    let status = scene.status("x");
    assert_eq!((&status["status"], &status["pid"]), (&"RUNNING".into(), &leader.pid.into()), "{status}");
    scene.file("go", "");
    scene.wait_for("x", 1);
    assert_eq!(fs::read_to_string(&path).expect("the other file"), "=== GATE: PASSED ===\n");
    let status = scene.status("x");
    assert_eq!((&status["exit_code"], &status["truncated"]), (&3.into(), &true.into()));
    assert_ne!(scene.log_of("x"), path);
}

#[test]
fn a_run_directory_that_was_removed_ends_in_not_tracked_and_nothing_is_left() {
    let scene = Scene::new();
    scene.launch("x", "await go exit 3");
    scene.await_birth("main");
    let waiter = scene.tool("tb-wait").args(["--heartbeat", "10ms", "x"]).spawn();
    waiter.until_stderr("RUNNING");
    fs::remove_dir_all(scene.run_dir()).expect("our own directory");
    scene.tool("tb-status").arg("x").run().expect(4);
    scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().ok();
    scene.wait_for("x", 0);
    scene.file("go", "");
    waiter.wait().expect(4);
    scene.assert_quiet();
}

#[test]
fn a_run_before_that_still_holds_its_log_is_not_taken_for_the_run() {
    let scene = Scene::new();
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    // As its supervisor does while it syncs.
    let script = format!(
        "exec 9<'{}'; flock 9; echo locked; exec tb-fixture role holder hold",
        scene.log_of("x").display()
    );
    let holder = scene.sh(&script).spawn();
    holder.until_stdout("locked");
    scene.tool("tb-status").arg("x").run().ok().says("FINISHED (PASS)");
    scene.launch("x", "role second await go exit 3");
    let second = scene.await_birth("second");
    assert_eq!(scene.status("x")["pid"], second.pid);
    fs::remove_file(scene.log_of("x")).expect("our own log");
    let status = scene.status("x");
    assert!(status["status"] == "RUNNING" && status["log_file"].is_null(), "{status}");
    assert_eq!((&status["pid"], &status["supervision"]), (&second.pid.into(), &"double".into()));
    scene.file("go", "");
    scene.wait_for("x", 1);
}

#[test]
fn g66_a_log_that_was_cut_while_its_job_runs_is_tolerated() {
    let scene = Scene::new();
    scene.launch("x", "print before truncate-stderr print after ready await go exit 3");
    let leader = scene.await_birth("main");
    let out = scene.tool("tb-status").arg("x").run().expect(3);
    assert!(out.stdout.contains(&format!("x  RUNNING  PID: {}", leader.pid)), "{out}");
    assert!(out.stdout.contains("the log lost its header") && out.stdout.contains("after"), "{out}");
    assert_eq!(scene.status("x")["supervision"], "double");
    scene.file("go", "");
    scene.wait_for("x", 1);
    let status = scene.status("x");
    assert_eq!(
        (&status["exit_code"], &status["truncated"], &status["name"]),
        (&3.into(), &true.into(), &"x".into())
    );
    assert!(status["command"].is_array(), "the footer repeats the header: {status}");
}

#[test]
fn a_log_that_was_cut_to_nothing_at_the_end_still_gets_its_record() {
    let scene = Scene::new();
    scene.launch("x", "print before await go exit 0");
    scene.await_birth("main");
    let log = scene.log_of("x");
    fs::File::options().write(true).open(&log).and_then(|f| f.set_len(0)).expect("our own log");
    scene.tool("tb-status").arg("x").run().expect(3);
    scene.file("go", "");
    scene.wait_for("x", 0);
    assert_eq!(scene.status("x")["truncated"], true);
}

#[test]
fn a_log_with_a_second_name_is_shown_and_the_name_is_told() {
    let scene = Scene::new();
    scene.launch("x", "exit 3");
    scene.wait_for("x", 1);
    fs::hard_link(scene.log_of("x"), scene.path("kept")).expect("our own log");
    scene.tool("tb-status").arg("x").run().expect(1).says("has 2 links");
}

#[test]
fn output_that_is_no_text_is_shown_all_the_same() {
    let scene = Scene::new();
    scene.file("bytes", [b"a\xffb\n".as_slice(), b"\0\x01\n"].concat());
    scene.tool("tb-launch").args(["--name", "x", "--", "cat", "bytes"]).run().ok();
    scene.wait_for("x", 0);
    scene.tool("tb-status").arg("x").run().ok().says("a\u{fffd}b");
    assert_eq!(scene.status("x")["last_log_lines"], serde_json::json!(["a\u{fffd}b", "\0\u{1}"]));
}
