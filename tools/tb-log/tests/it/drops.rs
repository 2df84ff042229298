//! Logs whose oldest output was given back to the disk.

use crate::scene::{Run, Scene};
use std::fs;
use tb_shared::contract::Outcome;

/// The offset behind the line with this text.
fn after(run: &Run, text: &str) -> u64 {
    let bytes = fs::read(&run.path).unwrap();
    let at = bytes.windows(text.len()).position(|w| w == text.as_bytes()).unwrap();
    (at + text.len() + 1) as u64
}

fn run(scene: &Scene) -> Run {
    let mut run = scene.run_of("a.py", "0001", 1, |_| {}, true);
    for i in 0..10 {
        run.write(format!("line {i}\n"));
    }
    run
}

#[test]
fn t20_t63_what_was_dropped_is_skipped_and_counted_and_the_newest_is_kept() {
    let scene = Scene::new();
    let mut run = run(&scene);
    assert_eq!(scene.log(&["--all", "a.py"]).ok().lines().len(), 10);
    run.drop_until(after(&run, "line 6"));
    let done = scene.log(&["--all", "a.py"]).ok();
    assert_eq!(done.lines(), ["line 7", "line 8", "line 9"]);
    assert!(done.err.contains("7 lines were dropped"), "{}", done.err);
    assert_eq!(scene.log(&["-n", "5", "a.py"]).ok().lines(), ["line 7", "line 8", "line 9"]);
    run.write("x".repeat(1 << 20) + "\n");
    run.drop_until(after(&run, "line 9"));
    let json = scene.log(&["--json", "--all", "--max-line", "0", "a.py"]).ok().json();
    assert_eq!((&json["dropped_lines"], &json["new_line_count"]), (&10.into(), &1.into()));
    assert_eq!(json["lines"][0].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn t21_t22_the_gap_is_what_this_cursor_had_not_read() {
    let scene = Scene::new();
    let mut run = run(&scene);
    let json = scene.new_json("a.py");
    assert_eq!((&json["new_line_count"], &json["dropped_lines"]), (&10.into(), &0.into()));
    run.write("line 10\nline 11\n");
    // All that was read, and one more.
    run.drop_until(after(&run, "line 10"));
    let json = scene.new_json("a.py");
    assert_eq!(json["lines"], serde_json::json!(["line 11"]));
    assert_eq!(json["dropped_lines"], 1);
    run.drop_until(after(&run, "line 11"));
    let json = scene.new_json("a.py");
    assert_eq!((&json["new_line_count"], &json["dropped_lines"]), (&0.into(), &0.into()));
    // A reader that was never here has missed all of them.
    let other = scene.log(&["--new", "--json", "--cursor", "x", "a.py"]).ok().json();
    assert_eq!(other["dropped_lines"], 12);
    run.write("end\n");
    run.finish(Outcome::Passed, 0);
    assert_eq!(scene.new_lines("a.py"), ["end"]);
}
