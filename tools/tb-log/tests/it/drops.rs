//! Logs whose oldest output was given back to the disk.

use crate::scene::{Run, Scene, start};
use std::collections::BTreeSet;
use std::fs;
use tb_shared::contract::{LogName, Outcome, RunDir, read_log};
use tb_shared::log::unread_lines;

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
    let status = start(&mut scene.tool("tb-status", &["--json", "a.py"])).done().json();
    assert_eq!(status["dropped_lines"], 7);
    assert_eq!(status["last_log_lines"], serde_json::json!(["line 7", "line 8", "line 9"]));
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
    let unread = || {
        let dir = RunDir::open(&scene.run_dir()).unwrap().unwrap();
        let name = LogName::parse(&scene.files("test-")[0]).unwrap();
        unread_lines(&dir, &read_log(&dir, &name).unwrap().unwrap(), "-").unwrap()
    };
    assert_eq!(unread(), 10);
    let json = scene.new_json("a.py");
    assert_eq!((&json["new_line_count"], &json["dropped_lines"]), (&10.into(), &0.into()));
    assert_eq!(unread(), 0);
    run.write("line 10\nline 11\npart");
    assert_eq!(unread(), 3);
    // All that was read, and one more.
    run.drop_until(after(&run, "line 10"));
    assert_eq!(unread(), 2);
    let json = scene.new_json("a.py");
    assert_eq!(json["lines"], serde_json::json!(["line 11"]));
    assert_eq!(json["dropped_lines"], 1);
    run.write("\n");
    run.drop_until(after(&run, "part"));
    let json = scene.new_json("a.py");
    assert_eq!((&json["new_line_count"], &json["dropped_lines"]), (&0.into(), &1.into()));
    // A reader that was never here has missed all of them.
    let other = scene.log(&["--new", "--json", "--cursor", "x", "a.py"]).ok().json();
    assert_eq!(other["dropped_lines"], 13);
    run.write("end\n");
    run.finish(Outcome::Passed, 0);
    assert_eq!(scene.new_lines("a.py"), ["end"]);
}

/// The offset of a line's beginning, about so far before the end.
fn line_before_end(run: &Run, back: u64) -> u64 {
    let bytes = fs::read(&run.path).unwrap();
    let at = bytes.len() - usize::try_from(back).unwrap().min(bytes.len());
    (at + bytes[at..].iter().position(|&b| b == b'\n').unwrap() + 1) as u64
}

#[test]
fn t20_t22_t45_while_lines_are_written_and_dropped_each_goes_to_one_reader_or_is_told() {
    let scene = Scene::new();
    let mut run = scene.run_of("a.py", "0001", 1, |_| {}, true);
    let mut written = 0u64;
    let (mut read, mut told) = (BTreeSet::new(), 0);
    for round in 0..30 {
        let readers: Vec<_> =
            (0..3).map(|_| start(&mut scene.tb_log(&["--new", "--json", "a.py"]))).collect();
        for _ in 0..20 {
            let mut text = String::new();
            for _ in 0..200 {
                text.push_str(&format!("line {written} {}\n", "x".repeat(100)));
                written += 1;
            }
            run.write(text);
            let size = run.file.metadata().unwrap().len();
            if size - run.dropped.until > 256 << 10 {
                // Never quite the end; in some rounds only what readers may have had.
                run.drop_until(line_before_end(&run, if round % 2 == 0 { 1 << 10 } else { 128 << 10 }));
            }
        }
        for reader in readers {
            take(&reader.done().ok().json(), &mut read, &mut told);
        }
    }
    run.finish(Outcome::Passed, 0);
    take(&scene.new_json("a.py"), &mut read, &mut told);
    assert!(told > 0, "nothing was dropped before it was read: this test tests nothing");
    assert_eq!(read.len() as u64 + told, written, "{told} dropped");
}

fn take(json: &serde_json::Value, read: &mut BTreeSet<u64>, told: &mut u64) {
    for line in json["lines"].as_array().unwrap() {
        let line = line.as_str().unwrap();
        let number: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(line, format!("line {number} {}", "x".repeat(100)));
        assert!(read.insert(number), "line {number} was delivered twice");
    }
    *told += json["dropped_lines"].as_u64().unwrap();
}
