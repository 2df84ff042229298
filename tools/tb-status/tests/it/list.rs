//! The list: its order, its columns, its filters.

use crate::written::{footer, header, log};
use std::os::unix::fs::symlink;
use tb_shared::contract::Outcome;
use tb_tests::Scene;

/// Jobs: two that run, one that passed, one that failed, in this order of start.
fn four(scene: &Scene) {
    scene.launch("late/pass.py", "exit 0");
    scene.wait_for("late/pass.py", 0);
    scene.launch("b-runs", "await go");
    scene.launch("a-fails", "exit 2");
    scene.wait_for("a-fails", 1);
    scene.launch("a-runs", "await go");
}

fn names(scene: &Scene, flags: &[&str]) -> Vec<String> {
    let out = scene.tool("tb-status").arg("--names").args(flags).run().ok();
    out.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn g31_the_list_has_a_head_and_the_first_three_columns_exactly() {
    let scene = Scene::new();
    four(&scene);
    let out = scene.tool("tb-status").run().ok();
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[0], "BACKGROUND TESTS (4 tracked):");
    let pid = |name: &str| scene.status(name)["pid"].as_u64().expect("a pid");
    for (line, name, state) in [
        (lines[1], "b-runs", "RUNNING"),
        (lines[2], "a-runs", "RUNNING"),
        (lines[3], "late/pass.py", "FINISHED (PASS)"),
        (lines[4], "a-fails", "FINISHED (FAIL)"),
    ] {
        let pid = pid(name).to_string();
        let columns: Vec<&str> = line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
        assert!(line.starts_with(&format!("  {name} ")), "{line}");
        assert_eq!(&columns[..3], &[name, state, &format!("PID: {pid}")], "{out}");
        let clock = columns[3].strip_prefix("Started: ").expect("the fourth column");
        let shape = |(i, b): (usize, u8)| if i == 2 { b == b':' } else { b.is_ascii_digit() };
        assert!(clock.len() == 5 && clock.bytes().enumerate().all(shape), "{line}");
    }
    // The columns stand below one another.
    let at = |line: &str| (line.find("PID:"), line.find("Started:"));
    assert!(lines[1..].windows(2).all(|w| at(w[0]) == at(w[1])), "{out}");
    assert!(lines[3].contains("took 0."), "{out}");
    scene.file("go", "");
}

#[test]
fn g33_nothing_tracked_is_an_empty_list_and_success() {
    let scene = Scene::new();
    scene.tool("tb-status").run().ok().says("BACKGROUND TESTS (0 tracked):\n");
    assert_eq!(scene.tool("tb-status").arg("--json").run().ok().stdout, "");
    assert_eq!(scene.tool("tb-status").arg("--names").run().ok().stdout, "");
    assert!(!scene.run_dir().exists());
    scene.make_run_dir();
    scene.tool("tb-status").run().ok().says("(0 tracked)");
}

#[test]
fn g32_running_first_then_by_start_newest_last() {
    let scene = Scene::new();
    four(&scene);
    assert_eq!(names(&scene, &[]), ["b-runs", "a-runs", "late/pass.py", "a-fails"]);
    // Older than all of them, by its header and not by the order in which it was written.
    let header = header("old");
    log(&scene, "old", &[&header.line(), &footer(&header, Outcome::Passed).lines()]);
    assert_eq!(names(&scene, &[]), ["b-runs", "a-runs", "old", "late/pass.py", "a-fails"]);
    scene.file("go", "");
}

#[test]
fn filters_select_and_can_be_joined() {
    let scene = Scene::new();
    four(&scene);
    let header = header("old");
    log(&scene, "old", &[&header.line(), &footer(&header, Outcome::Failed).lines()]);
    let running = ["b-runs", "a-runs"];
    assert_eq!(names(&scene, &["--running"]), running);
    assert_eq!(names(&scene, &["--finished"]), ["old", "late/pass.py", "a-fails"]);
    assert_eq!(names(&scene, &["--passed"]), ["late/pass.py"]);
    assert_eq!(names(&scene, &["--failed"]), ["old", "a-fails"]);
    assert_eq!(names(&scene, &["--since", "1h", "--failed"]), ["a-fails"]);
    assert_eq!(names(&scene, &["--since", "1h"]), ["b-runs", "a-runs", "late/pass.py", "a-fails"]);
    assert!(names(&scene, &["--since", "0", "--finished"]).is_empty());
    assert_eq!(scene.tool("tb-status").arg("--running").run().ok().stdout.lines().count(), 3);
    scene.tool("tb-clean").run().ok();
    assert_eq!(names(&scene, &[]), running);
    assert_eq!(names(&scene, &["--all"]), ["b-runs", "a-runs", "old", "late/pass.py", "a-fails"]);
    scene.tool("tb-status").arg("a-fails").run().expect(1).says("FINISHED (FAIL)");
    for flags in [&["--running", "--finished"][..], &["--passed", "--failed"], &["--running", "--passed"]] {
        scene.tool("tb-status").args(flags).run().expect(2);
    }
    scene.file("go", "");
}

#[test]
fn started_today_is_a_clock_and_another_day_has_its_date() {
    let mut scene = Scene::new();
    scene.set_env("TZ", "UTC");
    let header = header("old");
    log(&scene, "old", &[&header.line(), &footer(&header, Outcome::Passed).lines()]);
    scene.tool("tb-status").arg("old").run().ok().says("Started: Jul 25 14:30");
    scene.tool("tb-status").run().ok().says("Started: Jul 25 14:30");
    // For people the time is local; for programs it is not.
    let out = scene.tool("tb-status").arg("old").env("TZ", "UTC-3").run().ok();
    assert!(out.stdout.contains("Started: Jul 25 17:30"), "{out}");
    assert_eq!(scene.status("old")["started_at"], "2020-07-25T14:30:00Z");
}

#[test]
fn g18_g20_a_block_has_the_headline_the_logs_path_and_the_last_15_lines() {
    let scene = Scene::new();
    scene.launch("x", "repeat 14 [ print line ] print first-shown repeat 13 [ print line ] print last");
    scene.wait_for("x", 0);
    let out = scene.tool("tb-status").arg("x").run().ok();
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert!(lines[0].starts_with("x  FINISHED (PASS)  PID: "), "{out}");
    let log = scene.status("x")["log_file"].as_str().expect("a path").to_owned();
    assert_eq!(lines[1], format!("Log: {log}"));
    assert_eq!((lines.len(), lines[2], lines[16]), (17, "first-shown", "last"), "{out}");
    assert_eq!(scene.tool("tb-status").args(["-n", "1", "x"]).run().ok().stdout.lines().last(), Some("last"));
    assert_eq!(scene.tool("tb-status").args(["-n", "0", "x"]).run().ok().stdout.lines().count(), 2);
    assert_eq!(scene.tool("tb-status").args(["-n", "500", "x"]).run().ok().stdout.lines().count(), 31);
    let two = scene.tool("tb-status").args(["-n", "1", "x", "x"]).run().ok();
    assert_eq!(two.stdout.lines().filter(|l| l.is_empty()).count(), 1, "blocks are apart: {two}");
    for many in ["99999999999999999", "18446744073709551615"] {
        let out = scene.tool("tb-status").args(["-n", many, "x"]).run().ok();
        assert_eq!(out.stdout.lines().count(), 31, "{out}");
    }
    scene.tool("tb-status").args(["-n", "many", "x"]).run().expect(2);
}

#[test]
fn g17_a_look_never_waits() {
    let scene = Scene::new();
    scene.launch("x", "hold");
    scene.tool("tb-status").arg("x").run().expect(3);
    // Not even for a launch that holds the directory's lock.
    let holder = scene.sh("exec 9<>.gate-logs/.lock; flock 9; echo locked; exec tb-fixture hold").spawn();
    holder.until_stdout("locked");
    scene.tool("tb-status").arg("x").run().expect(3);
    scene.tool("tb-status").run().ok();
}

#[test]
fn a_thousand_jobs_into_a_closed_pipe_end_quietly() {
    let scene = Scene::new();
    scene.make_run_dir();
    for i in 0..1000 {
        let header = header(&format!("job/{i}"));
        log(&scene, &format!("job_{i}"), &[&header.line(), &footer(&header, Outcome::Passed).lines()]);
    }
    for flags in ["", "--json", "--names"] {
        let script = format!("{{ tb-status {flags}; echo code=$? >&2; }} | head -1");
        let out = scene.sh(&script).run().ok();
        assert_eq!(out.stdout.lines().count(), 1, "{out}");
        assert_eq!(out.stderr, "code=0\n", "{out}");
    }
    scene.tool("tb-status").run().ok().says("(1000 tracked)");
    for words in [["close", "0"], ["close", "1"], ["close", "2"]] {
        let out = scene.tool("tb-status").through(words).run().ok();
        assert!(out.stderr.is_empty(), "{out}");
    }
    let full = scene.sh("tb-status > /dev/full").run().expect(125);
    assert!(full.stderr.contains("cannot write standard output"), "{full}");
}

#[test]
fn g32_g52_what_comes_and_goes_during_a_look_disturbs_nobody() {
    let scene = Scene::new();
    // Runs begin, end and are deleted all the while.
    let script = "while [ ! -e stop ]; do tb-launch --name a -- true >/dev/null; tb-launch --name b -- true >/dev/null; \
        rm -f .gate-logs/test-a-*.log .gate-logs/.test-b.pid; done";
    let churn = scene.sh(script).spawn();
    tb_tests::until("it has begun", || scene.run_dir().exists().then_some(()));
    for _ in 0..60 {
        let out = scene.tool("tb-status").run().ok();
        assert!(out.stderr.is_empty() && out.stdout.starts_with("BACKGROUND TESTS ("), "{out}");
        for name in ["a", "b"] {
            let out = scene.tool("tb-status").arg(name).run();
            assert!(matches!(out.code, Some(0 | 3 | 4 | 5)), "{out}");
        }
    }
    scene.file("stop", "");
    churn.wait();
}

#[test]
fn what_is_not_of_the_contract_is_no_job() {
    let scene = Scene::new();
    let dir = scene.make_run_dir();
    for file in [
        "README",
        "test-.log",
        "test-x.log",
        "test-x-2026.log",
        ".test-.pid",
        ".test-x.pid.bak",
        "x.pid",
        "test--20200725_143000.log",
        ".new-0011.log",
        ".new-0011.pid",
        ".cursor-0011-me",
        ".queue",
        ".lock",
        "test-x-20200725_143000.log.gz",
    ] {
        scene.file(format!(".gate-logs/{file}"), "=== GATE: PASSED ===\n");
    }
    symlink("/nowhere", dir.join("link")).expect("ours");
    std::fs::create_dir(dir.join("dir")).expect("ours");
    let out = scene.tool("tb-status").run().ok().says("(0 tracked)");
    assert!(out.stderr.is_empty(), "{out}");
}

#[test]
fn a_file_in_the_run_directorys_place_is_named() {
    let scene = Scene::new();
    scene.file(".gate-logs", "");
    for args in [&[][..], &["x"]] {
        let out = scene.tool("tb-status").args(args).run().expect(125);
        assert!(out.stderr.contains(".gate-logs: Not a directory"), "{out}");
    }
}

#[test]
fn more_jobs_than_a_process_may_have_files_open_are_listed() {
    let scene = Scene::new();
    let many: Vec<String> = (0..300).map(|n| format!("job-{n:03}")).collect();
    for name in &many {
        let header = header(name);
        let line = format!("output of {name}\n");
        log(&scene, name, &[&header.line(), line.as_bytes(), &footer(&header, Outcome::Passed).lines()]);
    }
    let few = |tool: &str| scene.tool(tool).through(["limit", "nofile", "24"]);
    let out = few("tb-status").arg("--names").run().ok();
    assert_eq!(out.stdout.lines().collect::<Vec<_>>(), many, "{out}");
    assert!(out.stderr.is_empty(), "{out}");
    let objects = few("tb-status").arg("--json").run().ok().json();
    for (object, name) in objects.iter().zip(&many) {
        let lines = object["last_log_lines"].as_array().expect("lines");
        assert_eq!((lines.len(), &lines[0]), (1, &format!("output of {name}").into()), "{object}");
    }
    assert_eq!(objects.len(), many.len());
    few("tb-kill").arg("--all").run().ok();
    few("tb-clean").args(["--logs", "--keep", "0"]).run().ok();
    assert_eq!(few("tb-status").args(["--names", "--all"]).run().ok().stdout.lines().count(), many.len());
}
