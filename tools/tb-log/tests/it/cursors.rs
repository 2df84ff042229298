//! `--new`: each line once.

use crate::scene::{Scene, start};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use tb_shared::contract::Outcome;
use tb_tests::until;

#[test]
fn t11_t13_consecutive_reads_never_overlap_and_never_lose_a_line() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    let mut read = Vec::new();
    for i in 0..20 {
        run.write(format!("line {i}\n"));
        if i % 3 == 0 {
            read.extend(scene.new_lines("a.py"));
        }
    }
    read.extend(scene.new_lines("a.py"));
    assert_eq!(read, (0..20).map(|i| format!("line {i}")).collect::<Vec<_>>());
    let json = scene.new_json("a.py");
    assert_eq!((&json["status"], &json["exit_code"]), (&"RUNNING".into(), &serde_json::Value::Null));
    assert_eq!((&json["new_line_count"], &json["lines"]), (&0.into(), &serde_json::json!([])));
}

#[test]
fn t12_after_the_end_the_rest_and_then_nothing_but_how_it_ended() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("one\n");
    assert_eq!(scene.new_lines("a.py"), ["one"]);
    run.write("two\nthree");
    run.finish(Outcome::Failed, 7);
    let json = scene.new_json("a.py");
    assert_eq!(json["lines"], serde_json::json!(["two", "three"]));
    let json = scene.new_json("a.py");
    assert_eq!((&json["lines"], &json["new_line_count"]), (&serde_json::json!([]), &0.into()));
    assert_eq!((&json["status"], &json["outcome"]), (&"FINISHED".into(), &"failed".into()));
    assert_eq!((&json["exit_code"], &json["signal"]), (&7.into(), &serde_json::Value::Null));
    let text = scene.log(&["--new", "a.py"]).ok();
    assert_eq!(text.text(), "");
    assert!(text.err.contains("no new lines; FINISHED (FAIL), exit 7"), "{}", text.err);
}

#[test]
fn t61_a_partial_line_waits_until_it_is_complete_or_the_job_is_over() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("one\ntw");
    assert_eq!(scene.new_lines("a.py"), ["one"]);
    assert_eq!(scene.new_lines("a.py"), [""; 0]);
    run.write("o\nthr");
    assert_eq!(scene.new_lines("a.py"), ["two"]);
    run.write("ee");
    // Its supervisors are gone without a word: it is over.
    drop(run);
    assert_eq!(scene.new_lines("a.py"), ["three"]);
    assert_eq!(scene.new_lines("a.py"), [""; 0]);
}

#[test]
fn each_cursor_has_every_line_and_an_owner_is_a_cursor() {
    let scene = Scene::new();
    let mut run = scene.run_of("a.py", "0001", 1, |h| h.owner = Some("me".to_owned()), false);
    run.write("one\n");
    let read = |args: &[&str]| {
        scene.log(&[&["--owner", "me", "--new"], args, &["a.py"]].concat()).ok().text().to_owned()
    };
    assert_eq!(read(&["--cursor", "x"]), "one\n");
    assert_eq!(read(&["--cursor", "y"]), "one\n");
    assert_eq!(read(&[]), "one\n");
    assert_eq!(read(&["--cursor", "me"]), "");
    let mut files = scene.files(".cursor-");
    files.sort();
    assert_eq!(files, [".cursor-0001-me", ".cursor-0001-x", ".cursor-0001-y"]);
    let bad = scene.log(&["--owner", "me", "--new", "--cursor", "a/b", "a.py"]);
    assert_eq!(bad.code, Some(2));
    let unused = scene.log(&["--cursor", "x", "a.py"]);
    assert_eq!(unused.code, Some(2));
}

#[test]
fn after_a_new_run_the_rest_of_the_old_one_comes_first() {
    let scene = Scene::new();
    let mut old = scene.run("a.py", "0001", 1);
    old.write("one\n");
    assert_eq!(scene.new_lines("a.py"), ["one"]);
    old.write("two\n");
    old.finish(Outcome::Failed, 1);
    let mut between = scene.run("a.py", "0002", 2);
    between.write("between\n");
    between.finish(Outcome::Passed, 0);
    let mut run = scene.run("a.py", "0003", 3);
    run.write("three\n");
    let done = scene.log(&["--new", "a.py"]).ok();
    assert_eq!(
        done.text(),
        "==> a.py: the rest of the run of 2026-07-25T14:30:01Z <==\ntwo\n\n\
         ==> a.py: the rest of the run of 2026-07-25T14:30:02Z <==\nbetween\n\n\
         ==> a.py <==\nthree\n"
    );
    run.write("four\n");
    assert_eq!(scene.new_lines("a.py"), ["four"]);
    // A cursor that never was here begins with the latest; a run can be asked for.
    assert_eq!(scene.log(&["--new", "--cursor", "x", "a.py"]).ok().text(), "three\nfour\n");
    assert_eq!(scene.log(&["--new", "--cursor", "y", "--job", "0001", "a.py"]).ok().text(), "one\ntwo\n");
    assert_eq!(scene.log(&["--job", "0002", "a.py"]).ok().text(), "between\n");
    assert_eq!(scene.log(&["--job", "0004", "a.py"]).code, Some(4));
    let objects = scene.log(&["--new", "--json", "--cursor", "y", "a.py"]).ok();
    let jobs: Vec<serde_json::Value> =
        objects.lines().iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(jobs.last().unwrap()["job"], "0003");
    assert_eq!(jobs[0]["lines"], serde_json::json!(["between"]));
}

#[test]
fn a_truncated_log_is_read_again_from_its_beginning_and_said_to_be() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("a line that goes\n");
    assert_eq!(scene.new_lines("a.py").len(), 1);
    run.file.set_len(0).unwrap();
    run.write("new\n");
    let done = scene.log(&["--new", "a.py"]).ok();
    assert_eq!(done.text(), "new\n");
    assert!(done.err.contains("truncated") && done.err.contains("/dev/stderr"), "{}", done.err);
    // Once more, and written beyond the offset: other bytes tell.
    run.file.set_len(0).unwrap();
    run.write("newer and much longer than what was there\n");
    let json = scene.new_json("a.py");
    assert_eq!(json["lines"].as_array().unwrap().len(), 1);
    assert_eq!(json["truncated"], true);
    run.write("last\n");
    run.finish(Outcome::Passed, 0);
    // The footer says again whose log it is: the cursor stays the same.
    assert_eq!(scene.new_lines("a.py"), ["last"]);
    assert_eq!(scene.files(".cursor-"), [".cursor-0001--"]);
}

#[test]
fn a_job_that_truncates_its_own_log_loses_no_later_line() {
    let scene = Scene::new();
    let script = "echo one; mkfifo go on; echo ready > ready; read line < go; echo two > /dev/stderr; echo three; \
                  echo again > ready; read line < on; echo four";
    let args = ["--name", "t", "--", "sh", "-c", script];
    start(&mut scene.tool("tb-launch", &args)).done().ok();
    let ready = |text: &str| {
        let path = scene.dir().join("ready");
        until("the job is ready", || fs::read_to_string(&path).ok().filter(|t| t == text));
    };
    ready("ready\n");
    assert_eq!(scene.new_lines("t"), ["one"]);
    fs::write(scene.dir().join("go"), "\n").unwrap();
    ready("again\n");
    let json = scene.new_json("t");
    assert_eq!(json["lines"], serde_json::json!(["two", "three"]));
    assert_eq!((&json["truncated"], &json["status"]), (&true.into(), &"RUNNING".into()));
    fs::write(scene.dir().join("on"), "\n").unwrap();
    let over = start(&mut scene.tool("tb-wait", &["t"])).done();
    assert_eq!(over.code, Some(0), "{}", over.err);
    assert_eq!(scene.new_lines("t"), ["four"]);
    assert_eq!(scene.files(".cursor-").len(), 1);
}

#[test]
fn a_log_without_a_header_has_cursors_too() {
    let scene = Scene::new();
    let path = scene.foreign("x", "one\n");
    assert_eq!(scene.new_lines("x"), ["one"]);
    assert_eq!(scene.files(".cursor-"), [".cursor-x-20260725_143000--"]);
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"two\n=== GATE: PASSED ===\n")
        .unwrap();
    assert_eq!(scene.new_lines("x"), ["two", "=== GATE: PASSED ==="]);
    assert_eq!(scene.log(&["--job", "x-20260725_143000", "-n", "1", "x"]).ok().lines().len(), 1);
}

#[test]
fn a_reader_that_goes_away_gives_back_what_it_did_not_get() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    let count = 60_000;
    let line = |i: usize| format!("line {i} {}", "x".repeat(40));
    for i in 0..count {
        run.write(line(i) + "\n");
    }
    let mut reader = start(&mut scene.tb_log(&["--new", "a.py"]));
    let mut out = BufReader::new(reader.0.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert_eq!(first.trim_end(), line(0));
    // What is in the pipe was delivered, as far as anybody can tell: read it, up to where the pipe is full and
    // the tool waits.
    let mut got = first.into_bytes();
    let mut taken = vec![0; 100_000];
    out.read_exact(&mut taken).unwrap();
    got.extend(&taken);
    // Whatever the pipe takes, the rest is for the next.
    drop(out);
    let done = reader.done();
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let rest = scene.new_lines("a.py");
    let next: usize = rest[0].split(' ').nth(1).unwrap().parse().unwrap();
    // Nothing that was read comes again, but for the last piece of a line; nothing is left out beyond the pipe.
    let complete = got.iter().filter(|&&b| b == b'\n').count();
    let pipe = (1 << 20) / line(0).len();
    assert!((complete..=complete + pipe).contains(&next), "{complete} {next}");
    assert_eq!(rest, (next..count).map(line).collect::<Vec<_>>());
}

#[test]
fn what_a_failed_write_of_json_did_not_deliver_comes_again_whole() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    for i in 0..50_000 {
        run.write(format!("line {i}\n"));
    }
    let mut reader = start(&mut scene.tb_log(&["--new", "--json", "a.py"]));
    let mut out = reader.0.stdout.take().unwrap();
    out.read_exact(&mut [0; 10]).unwrap();
    drop(out);
    assert_eq!(reader.done().code, Some(0));
    assert_eq!(scene.new_json("a.py")["new_line_count"], 50_000);
    assert_eq!(scene.new_json("a.py")["new_line_count"], 0);
}

#[test]
fn a_cursor_that_is_none_is_named() {
    let scene = Scene::new();
    let _run = scene.run("a.py", "0001", 1);
    fs::write(scene.run_dir().join(".cursor-0001--"), "junk").unwrap();
    let done = scene.log(&["--new", "a.py"]);
    assert_eq!(done.code, Some(125));
    assert!(done.err.contains(".cursor-0001--") && done.err.contains("remove it"), "{}", done.err);
}

#[test]
fn t25_output_before_a_kill_stays_readable() {
    let scene = Scene::new();
    let script = "echo before; echo ready > ready; exec sleep 1000";
    let args = ["--name", "k", "--", "sh", "-c", script];
    start(&mut scene.tool("tb-launch", &args)).done().ok();
    until("the job is ready", || fs::read(scene.dir().join("ready")).ok().filter(|t| !t.is_empty()));
    start(&mut scene.tool("tb-kill", &["k"])).done().ok();
    let json = scene.new_json("k");
    assert_eq!(json["lines"], serde_json::json!(["before"]));
    assert_eq!(json["outcome"], "killed");
}
