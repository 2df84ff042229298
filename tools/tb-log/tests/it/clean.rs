//! `tb-clean --logs`: which logs go, and in which order.

use crate::scene::{Done, Run, Scene, start};
use tb_shared::contract::Outcome;

/// A finished run of this name, launched in one second and ended in another.
fn ended(scene: &Scene, name: &str, job: &str, launched: u32, ended: u32) {
    let mut run = scene.run(name, job, launched);
    run.write("x\n");
    finish_at(run, ended);
}

fn finish_at(mut run: Run, second: u32) {
    let mut footer = run.footer(Outcome::Passed, 0);
    footer.finished_at = Some(format!("2026-07-25T14:40:{second:02}Z"));
    run.write(footer.lines());
}

fn clean(scene: &Scene, args: &[&str]) -> Done {
    start(&mut scene.tool("tb-clean", args)).done().ok()
}

fn logs(scene: &Scene) -> Vec<String> {
    let mut files = scene.files("test-");
    files.sort();
    files
        .iter()
        .map(|f| f.trim_start_matches("test-").trim_end_matches(".log").replace("-20260725_1430", " "))
        .collect()
}

#[test]
fn t37_t41_logs_go_in_the_order_in_which_jobs_ended() {
    let scene = Scene::new();
    // `slow` was launched first and has just ended; `fast` came and went meanwhile.
    ended(&scene, "slow", "0001", 1, 50);
    ended(&scene, "fast", "0002", 2, 10);
    ended(&scene, "fast", "0003", 3, 20);
    ended(&scene, "fast", "0004", 4, 30);
    ended(&scene, "slow", "0005", 51, 52);
    assert_eq!(logs(&scene).len(), 5);
    let done = clean(&scene, &["--logs", "--keep", "3"]);
    assert_eq!(logs(&scene), ["fast 04", "slow 01", "slow 51"]);
    let removed: Vec<&str> = done.lines().into_iter().filter(|l| l.starts_with("Removed")).collect();
    assert_eq!(removed.len(), 2);
    assert!(removed[0].contains("fast-20260725_143002"), "{removed:?}");
    // A name's newest stays, whatever is asked.
    clean(&scene, &["--logs", "--keep", "0"]);
    assert_eq!(logs(&scene), ["fast 04", "slow 51"]);
}

#[test]
fn t37_cursors_go_with_their_logs_and_what_runs_stays() {
    let scene = Scene::new();
    ended(&scene, "a", "0001", 1, 1);
    scene.new_lines("a");
    let mut live = scene.run("a", "0002", 2);
    live.write("x\n");
    // Somebody put a newer log beside the live one's.
    std::fs::write(scene.run_dir().join("test-a-20260725_143009.log"), "junk\n").unwrap();
    scene.new_lines("a");
    assert_eq!(scene.files(".cursor-").len(), 3);
    let objects = clean(&scene, &["--logs", "--older", "1s", "--json"]);
    assert!(objects.text().contains("\"job\":\"0001\""), "{}", objects.text());
    assert_eq!(logs(&scene), ["a 02", "a 09"]);
    let mut cursors = scene.files(".cursor-");
    cursors.sort();
    assert_eq!(cursors, [".cursor-0002--", ".cursor-a-20260725_143009--"]);
    drop(live);
}

#[test]
fn t37_only_what_was_named_of_ones_own_scope_and_old_enough_goes() {
    let scene = Scene::new();
    for (name, launched) in [("a", 1), ("b", 3)] {
        ended(&scene, name, &format!("000{launched}"), launched, launched);
        ended(&scene, name, &format!("000{}", launched + 1), launched + 1, launched + 1);
    }
    let run = scene.run_of("c", "0005", 5, |h| h.owner = Some("other".to_owned()), false);
    finish_at(run, 5);
    let run = scene.run_of("c", "0006", 6, |h| h.owner = Some("other".to_owned()), false);
    finish_at(run, 6);
    clean(&scene, &["--logs", "--older", "36500d"]);
    assert_eq!(logs(&scene).len(), 6);
    clean(&scene, &["--logs", "--keep", "0", "a"]);
    assert_eq!(logs(&scene), ["a 02", "b 03", "b 04", "c 05", "c 06"]);
    clean(&scene, &["--logs", "--keep", "0"]);
    assert_eq!(logs(&scene), ["a 02", "b 04", "c 05", "c 06"]);
    clean(&scene, &["--logs", "--keep", "0", "--owner", "other"]);
    assert_eq!(logs(&scene), ["a 02", "b 04", "c 06"]);
    for bad in [&["--logs"][..], &["--keep", "1"], &["--logs", "--keep", "1", "--older", "1d"]] {
        assert_eq!(start(&mut scene.tool("tb-clean", bad)).done().code, Some(2), "{bad:?}");
    }
}

#[test]
fn t37_a_log_without_a_record_has_ended_when_its_name_says() {
    let scene = Scene::new();
    let path = scene.foreign("x", "old\n");
    std::fs::rename(path, scene.run_dir().join("test-x-20260725_143000-2.log")).unwrap();
    scene.foreign("x", "older\n");
    ended(&scene, "a", "0001", 1, 1);
    ended(&scene, "a", "0002", 2, 2);
    clean(&scene, &["--logs", "--keep", "3"]);
    assert_eq!(logs(&scene), ["a 01", "a 02", "x 00-2"]);
}
