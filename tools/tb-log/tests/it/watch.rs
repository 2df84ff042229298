//! `tb-status --watch`, without a terminal: a line for each change.

use crate::scene::{Scene, start};
use std::io::{BufRead, BufReader};
use tb_shared::contract::Outcome;

#[test]
fn a_line_for_each_change_until_the_named_job_is_over() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    let mut watch = start(&mut scene.tool("tb-status", &["--watch", "a.py"]));
    let mut out = BufReader::new(watch.0.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    assert!(next().contains("] a.py: RUNNING last output "), "it runs");
    run.write("=== GATE PHASE: lint ===\n");
    assert!(next().contains("a.py: RUNNING (lint)"));
    run.finish(Outcome::Failed, 2);
    assert!(next().contains("a.py: FINISHED (FAIL) took 1.0s, exit 2"));
    assert_eq!(next(), "");
    assert_eq!(watch.done().code, Some(1));
}

#[test]
fn ctrl_c_ends_a_watch_with_the_code_of_the_last_look() {
    let scene = Scene::new();
    let _run = scene.run("a.py", "0001", 1);
    for (args, code) in [(&["--watch", "a.py"][..], 3), (&["--watch"], 0)] {
        let mut watch = start(&mut scene.tool("tb-status", args));
        let mut out = BufReader::new(watch.0.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let pid = rustix::process::Pid::from_child(&watch.0);
        // A child that has not been waited for: the number is its own.
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(watch.done().code, Some(code), "{args:?}");
    }
    let none = start(&mut scene.tool("tb-status", &["--watch", "b.py"])).done();
    assert_eq!(none.code, Some(4));
}
