//! Reading without a cursor.

use crate::scene::{Scene, start};
use std::fs;
use std::os::unix::fs::symlink;
use tb_shared::contract::Outcome;

#[test]
fn g20_g21_the_last_lines_of_the_newest_log() {
    let scene = Scene::new();
    let mut old = scene.run("a.py", "0001", 1);
    old.write("old\n");
    old.finish(Outcome::Passed, 0);
    let mut run = scene.run("a.py", "0002", 2);
    for i in 0..300 {
        run.write(format!("line {i}\n"));
    }
    let last: Vec<String> = (285..300).map(|i| format!("line {i}")).collect();
    assert_eq!(scene.log(&["-n", "15", "a.py"]).ok().lines(), last);
    assert_eq!(scene.log(&["a.py"]).ok().lines().len(), 100);
    assert_eq!(scene.log(&["--all", "a.py"]).ok().lines().len(), 300);
    assert_eq!(scene.log(&["-n", "0", "a.py"]).ok().lines(), [""; 0]);
    assert_eq!(scene.log(&["-n", "1000", "a.py"]).ok().lines().len(), 300);
}

#[test]
fn t61_a_partial_line_is_shown_by_a_plain_read() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("whole\npart");
    assert_eq!(scene.log(&["--all", "a.py"]).ok().text(), "whole\npart\n");
    assert_eq!(scene.log(&["-n", "1", "a.py"]).ok().text(), "part\n");
    assert_eq!(scene.log(&["-n", "2", "a.py"]).ok().text(), "whole\npart\n");
}

#[test]
fn contract_lines_are_no_output_but_phases_and_what_others_print_are() {
    let scene = Scene::new();
    let other = scene.run("other", "0009", 9);
    let theirs = String::from_utf8(other.footer(Outcome::Passed, 0).lines()).unwrap();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("=== GATE PHASE: lint ===\n");
    run.write(&theirs);
    run.write(b"=== GATE STOPPING: {\"job\":\"0001\",\"by\":\"x\",\"reason\":\"kill\"} ===\n");
    run.write("end\n");
    let path = run.finish(Outcome::Killed, 1);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}=== GATE COLLECTED: 0001 ===\n")).unwrap();
    let expected = format!("=== GATE PHASE: lint ===\n{theirs}end\n");
    assert_eq!(scene.log(&["--all", "a.py"]).ok().text(), expected);
    assert_eq!(scene.log(&["-n", "4", "a.py"]).ok().text(), expected);
    assert_eq!(scene.log(&["-n", "1", "a.py"]).ok().text(), "end\n");
}

#[test]
fn late_output_is_output_and_shown_as_such() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("in time\n");
    let path = run.finish(Outcome::Passed, 0);
    let mut text = fs::read(&path).unwrap();
    text.extend(b"late\n");
    fs::write(&path, &text).unwrap();
    let expected = "in time\n\n==> written after the end <==\nlate\n";
    assert_eq!(scene.log(&["--all", "a.py"]).ok().text(), expected);
    assert_eq!(scene.log(&["-n", "2", "a.py"]).ok().text(), expected);
    let json = scene.new_json("a.py");
    assert_eq!(json["lines"], serde_json::json!(["in time", "late"]));
    assert_eq!(json["late_lines"], 1);
    text.extend(b"later\n");
    fs::write(&path, &text).unwrap();
    assert_eq!(scene.new_json("a.py")["late_lines"], 1);
}

#[test]
fn several_names_come_under_heads() {
    let scene = Scene::new();
    scene.run("a.py", "0001", 1).finish(Outcome::Passed, 0);
    let mut run = scene.run("b.py", "0002", 2);
    run.write("b\n");
    let done = scene.log(&["a.py", "b.py"]).ok();
    assert_eq!(done.text(), "==> a.py <==\n\n==> b.py <==\nb\n");
    assert_eq!(scene.log(&["b.py", "a.py"]).ok().text(), "==> b.py <==\nb\n\n==> a.py <==\n");
}

#[test]
fn t14_t15_an_unknown_name_is_named_with_those_that_run() {
    let scene = Scene::new();
    let none = scene.log(&["no.py"]);
    assert_eq!(none.code, Some(4));
    assert!(none.err.contains("no.py"), "{}", none.err);
    let _run = scene.run("a.py", "0001", 1);
    let one = scene.log(&["no.py", "a.py"]);
    assert_eq!(one.code, Some(4));
    assert!(one.err.contains("cannot find no.py") && one.err.contains("a.py"), "{}", one.err);
    fs::remove_dir_all(scene.run_dir()).unwrap();
    let nowhere = scene.log(&["a.py"]);
    assert_eq!(nowhere.code, Some(4));
    assert!(!scene.run_dir().exists());
}

#[test]
fn t29_t30_t31_owners_do_not_read_each_others_jobs() {
    let scene = Scene::new();
    let mut run = scene.run_of("a.py", "0001", 1, |h| h.owner = Some("me".to_owned()), false);
    run.write("mine\n");
    let mut other = scene.run("b.py", "0002", 2);
    other.write("nobody's\n");
    assert_eq!(scene.log(&["--owner", "me", "a.py"]).ok().text(), "mine\n");
    for args in [&["a.py"][..], &["--owner", "you", "a.py"], &["--owner", "me", "b.py"]] {
        let done = scene.log(args);
        assert_eq!((done.code, done.text()), (Some(4), ""), "{args:?}");
    }
    let list = |args: &[&str]| start(&mut scene.tool("tb-status", args)).done().text().to_owned();
    assert_eq!(list(&["--names", "--owner", "me"]), "a.py\n");
    assert_eq!(list(&["--names"]), "b.py\n");
    let both = scene.log(&["--all-owners", "--json", "a.py", "b.py"]).ok();
    let ids: Vec<serde_json::Value> = both
        .lines()
        .iter()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["job"].clone())
        .collect();
    assert_eq!(ids, ["0001", "0002"]);
}

#[test]
fn t51_bytes_that_are_no_text_pass_to_a_pipe_and_are_replaced_in_json() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write(b"caf\xe9 \x1b[31mred\0\r\n");
    assert_eq!(scene.log(&["a.py"]).ok().out, b"caf\xe9 \x1b[31mred\0\r\n");
    let json = scene.log(&["--json", "a.py"]).ok().json();
    assert_eq!(json["lines"][0], "caf\u{fffd} \u{1b}[31mred\0\r");
}

#[test]
fn g30_a_job_without_a_log_is_said_to_have_none() {
    let scene = Scene::new();
    // A PID file alone, of a process that lives: this one.
    fs::write(scene.run_dir().join(".test-x.pid"), format!("{}\n", std::process::id())).unwrap();
    let done = scene.log(&["x"]);
    assert_eq!(done.code, Some(5), "{}", done.err);
    assert!(done.err.contains("no log found"), "{}", done.err);
    let json = scene.log(&["--json", "x"]).json();
    assert_eq!((&json["log_file"], &json["status"]), (&serde_json::Value::Null, &"RUNNING".into()));
}

#[test]
fn what_is_no_plain_file_is_named_and_left_alone() {
    let scene = Scene::new();
    symlink("/etc/passwd", scene.run_dir().join("test-a-20260725_143000.log")).unwrap();
    let done = scene.log(&["a"]);
    assert_eq!((done.code, done.text()), (Some(125), ""));
    assert!(done.err.contains("symbolic link"), "{}", done.err);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_output_is_none() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("one\n");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let done = start(scene.tb_log(&["--new", "a.py"]).stdout(full)).done();
    assert_eq!(done.code, Some(125), "{}", done.err);
    assert!(done.err.contains("cannot write standard output"), "{}", done.err);
    let closed = start(scene.command("/bin/sh", &["-c", "exec \"$@\" >&-", "sh"]).args([
        env!("CARGO_BIN_EXE_tb-log"),
        "--new",
        "a.py",
    ]))
    .done();
    assert_eq!(closed.code, Some(0), "{}", closed.err);
    // Neither of them has had the line.
    assert_eq!(scene.new_lines("a.py"), ["one"]);
}
