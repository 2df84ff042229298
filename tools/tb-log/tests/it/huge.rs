//! Memory that does not grow with the log, or with a line of it.

use crate::scene::{Done, Scene, start};
use std::fmt::Write;
use tb_shared::contract::Outcome;

/// How many MiB of output: more than the tool may have.
const MANY: usize = 40;

/// The tool with so little address space that a line of 40 MB, or what is shown of a long log, cannot be held.
fn confined(scene: &Scene, args: &[&str]) -> Done {
    let script = "ulimit -v 30000; exec \"$@\"";
    let mut command = scene.command("/bin/sh", &["-c", script, "sh", env!("CARGO_BIN_EXE_tb-log")]);
    start(command.args(args)).done().ok()
}

#[test]
fn an_endless_line_is_passed_on_in_little_memory() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("first\n");
    let part = "x".repeat(1 << 20);
    for _ in 0..MANY {
        run.write(&part);
    }
    run.write("\nlast\n");
    run.finish(Outcome::Passed, 0);
    let whole = (MANY << 20) + "first\n\nlast\n".len();
    assert_eq!(confined(&scene, &["--new", "a.py"]).out.len(), whole);
    assert_eq!(confined(&scene, &["--all", "a.py"]).out.len(), whole);
    let clipped = confined(&scene, &["--all", "--max-line", "4", "a.py"]);
    assert_eq!(clipped.lines(), ["firs…", "xxxx…", "last"]);
    let json = confined(&scene, &["--json", "--all", "--max-line", "0", "a.py"]);
    assert!(json.out.len() > whole && json.text().contains(r#"x","last"],"new_line_count":3,"#));
}

#[test]
fn a_long_log_is_read_in_little_memory() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    for thousand in 0..MANY {
        let mut text = String::new();
        for i in 0..1000 {
            writeln!(text, "line {} {}", thousand * 1000 + i, "x".repeat(1000)).unwrap();
        }
        run.write(text);
    }
    run.finish(Outcome::Passed, 0);
    let json = confined(&scene, &["--new", "--json", "a.py"]);
    assert!(json.text().contains(r#""new_line_count":40000,"#));
    let few = confined(&scene, &["--filter", "3999[89] ", "a.py"]);
    assert_eq!(few.lines().len(), 2);
    assert_eq!(confined(&scene, &["-n", "3", "--filter", "7 ", "a.py"]).lines().len(), 3);
}
