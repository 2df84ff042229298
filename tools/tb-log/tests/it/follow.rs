//! `--follow`.

use crate::scene::{Scene, start};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use tb_shared::contract::Outcome;
use tb_tests::until;

/// A FIFO that a job reads from: it ends when this is dropped.
fn fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
}

#[test]
fn following_ends_with_the_job_and_gives_its_code() {
    let scene = Scene::new();
    fifo(&scene.dir().join("go"));
    let script = "echo one; while read line; do echo \"$line\"; done < go; printf end; exit 3";
    start(&mut scene.tool("tb-launch", &["--name", "f", "--", "sh", "-c", script])).done().ok();
    let mut go = fs::OpenOptions::new().write(true).open(scene.dir().join("go")).unwrap();
    let mut follower = start(&mut scene.tb_log(&["--follow", "f"]));
    let mut out = BufReader::new(follower.0.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(next(), "one\n");
    for text in ["two\n", "three\n"] {
        // Each line arrives before the next is written: nothing waits for more.
        go.write_all(text.as_bytes()).unwrap();
        assert_eq!(next(), text);
    }
    drop(go);
    assert_eq!(next(), "end\n");
    assert_eq!(next(), "");
    assert_eq!(follower.done().code, Some(1));
    let json = scene.log(&["--follow", "--json", "f"]).json();
    assert_eq!(json["lines"], serde_json::json!(["one", "two", "three", "end"]));
    assert_eq!((&json["status"], &json["exit_code"]), (&"FINISHED".into(), &3.into()));
}

#[test]
fn ctrl_c_ends_following_with_130_and_the_job_goes_on() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("one\n");
    let mut follower = start(&mut scene.tb_log(&["--follow", "--new", "a.py"]));
    let mut line = String::new();
    let mut out = BufReader::new(follower.0.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let pid = rustix::process::Pid::from_child(&follower.0);
    // A child that has not been waited for: the number is its own.
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = follower.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
    assert!(done.err.contains("the jobs go on"), "{}", done.err);
    run.write("two\n");
    assert_eq!(scene.new_lines("a.py"), ["two"]);
}

#[test]
fn a_closed_pipe_ends_following_though_nothing_is_written() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("one\n");
    let mut follower = start(&mut scene.tb_log(&["--follow", "a.py"]));
    let mut out = BufReader::new(follower.0.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    drop(out);
    let done = follower.done();
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    drop(run);
}

#[test]
fn several_are_followed_at_once_and_a_later_run_is_another() {
    let scene = Scene::new();
    let mut a = scene.run("a", "0001", 1);
    let mut b = scene.run("b", "0002", 2);
    a.write("a1\n");
    b.write("b1\n");
    let mut follower = start(&mut scene.tb_log(&["--follow", "a", "b"]));
    let mut out = BufReader::new(follower.0.stdout.take().unwrap());
    let mut text = String::new();
    while !text.ends_with("b1\n") {
        assert_ne!(out.read_line(&mut text).unwrap(), 0, "{text}");
    }
    a.finish(Outcome::Passed, 0);
    let mut again = scene.run("a", "0003", 3);
    again.write("not of this run\n");
    b.write("b2\n");
    b.finish(Outcome::Failed, 1);
    while out.read_line(&mut text).unwrap() > 0 {}
    assert_eq!(text, "==> a <==\na1\n\n==> b <==\nb1\nb2\n");
    assert_eq!(follower.done().code, Some(1));
}

#[test]
fn a_truncation_is_noticed_while_following() {
    let scene = Scene::new();
    let mut run = scene.run("a", "0001", 1);
    run.write("one\n");
    let mut follower = start(&mut scene.tb_log(&["--follow", "a"]));
    let mut out = BufReader::new(follower.0.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    run.file.set_len(0).unwrap();
    run.write("two\n");
    out.read_line(&mut text).unwrap();
    assert_eq!(text, "one\ntwo\n");
    run.finish(Outcome::Passed, 0);
    let done = follower.done();
    assert!(done.err.contains("truncated"), "{}", done.err);
    assert_eq!(done.code, Some(0));
}

#[test]
fn a_foreign_job_is_followed_until_its_process_ends() {
    let scene = Scene::new();
    fifo(&scene.dir().join("go"));
    let log = scene.run_dir().join("test-x-20260725_143000.log");
    let script = "exec > \"$0\"; echo one; read line < go; echo \"$line\"; echo '=== GATE: PASSED ==='";
    let mut job = start(scene.command("/bin/sh", &["-c", script]).arg(&log));
    until("it writes", || fs::read(&log).ok().filter(|t| !t.is_empty()));
    fs::write(scene.run_dir().join(".test-x.pid"), format!("{}\n", job.0.id())).unwrap();
    let mut follower = start(&mut scene.tb_log(&["--follow", "x"]));
    let mut out = BufReader::new(follower.0.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    fs::write(scene.dir().join("go"), "two\n").unwrap();
    job.0.wait().unwrap();
    while out.read_line(&mut text).unwrap() > 0 {}
    assert_eq!(text, "one\ntwo\n=== GATE: PASSED ===\n");
    assert_eq!(follower.done().code, Some(0));
}
