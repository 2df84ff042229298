//! `--filter` and `--max-line`.

use crate::scene::Scene;
use std::time::Instant;
use tb_shared::contract::Outcome;

fn scene() -> Scene {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("alpha 1\nbeta 2\nalphabet 3\r\ngamma 4\n");
    run.finish(Outcome::Passed, 0);
    scene
}

#[test]
fn t16_t17_t18_a_filter_selects_what_is_shown_and_consumes_all() {
    let scene = scene();
    let json = scene.log(&["--new", "--json", "--filter", "lph|3$", "a.py"]).ok().json();
    assert_eq!(json["lines"], serde_json::json!(["alpha 1", "alphabet 3\r"]));
    assert_eq!(json["new_line_count"], 4);
    assert_eq!(scene.new_json("a.py")["new_line_count"], 0);
}

#[test]
fn without_a_cursor_a_filter_looks_at_all_and_n_counts_what_matches() {
    let scene = scene();
    assert_eq!(scene.log(&["--filter", "^alpha", "a.py"]).ok().text(), "alpha 1\nalphabet 3\r\n");
    assert_eq!(scene.log(&["--filter", "a", "-n", "2", "a.py"]).ok().text(), "alphabet 3\r\ngamma 4\n");
    assert_eq!(scene.log(&["--filter", "nowhere", "-n", "2", "a.py"]).ok().text(), "");
}

#[test]
fn t19_t38_t39_t43_t46_a_bad_pattern_is_refused_and_consumes_nothing() {
    let scene = scene();
    for bad in ["(", "a{5,2}", &"x".repeat(513), r"(\w{1000}){1000}"] {
        let done = scene.log(&["--new", "--filter", bad, "a.py"]);
        assert_eq!((done.code, done.text()), (Some(2), ""), "{bad}: {}", done.err);
        assert!(done.err.contains("cannot use the pattern of --filter: "), "{}", done.err);
    }
    let most = "x|".repeat(255) + "4";
    assert_eq!(scene.log(&["--new", "--filter", &most, "a.py"]).ok().text(), "gamma 4\n");
}

#[test]
fn t38_time_is_linear_whatever_the_pattern() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("a".repeat(200_000) + "\n");
    let begun = Instant::now();
    let done = scene.log(&["--filter", "^(a+)+$|(a|a)*b", "--max-line", "3", "a.py"]).ok();
    assert_eq!(done.text(), "aaa…\n");
    // Backtracking would take longer than the universe has been there.
    assert!(begun.elapsed().as_secs() < 20);
}

#[test]
fn t44_t82_a_filter_sees_whole_lines_and_what_is_shown_is_clipped() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write("x".repeat(300_000) + "END\nshort\n" + &"é".repeat(40_000) + "\n");
    let json = scene.log(&["--new", "--json", "--filter", "END$", "a.py"]).ok().json();
    assert_eq!((&json["clipped_lines"], &json["new_line_count"]), (&1.into(), &3.into()));
    let line = json["lines"][0].as_str().unwrap();
    assert_eq!((line.len(), line.ends_with("x…")), ((64 << 10) + "…".len(), true));
    // A character is not cut in two.
    let done = scene.log(&["--max-line", "5", "a.py"]).ok();
    assert_eq!(done.text(), "xxxxx…\nshort\néé…\n");
    assert!(done.err.contains("2 lines were clipped to 5 bytes"), "{}", done.err);
    let json = scene.log(&["--json", "--max-line", "0", "a.py"]).ok().json();
    assert_eq!(json["clipped_lines"], 0);
    assert_eq!(json["lines"][0].as_str().unwrap().len(), 300_003);
}
