//! What is usual for a job, from its earlier logs.

use crate::scene::{Run, Scene, start};
use tb_shared::contract::{Footer, Outcome, Reason, now, rfc3339};

/// A finished run that took so long.
fn took(scene: &Scene, second: u32, seconds: f64, change: impl FnOnce(&mut Footer)) {
    let mut run = scene.run("a.py", &format!("{second:04}"), second);
    let mut footer = run.footer(Outcome::Failed, 1);
    footer.elapsed_seconds = Some(seconds);
    change(&mut footer);
    run.write(footer.lines());
}

/// A running one that was launched so long ago.
fn since(scene: &Scene, second: u32, seconds: i64) -> Run {
    let launched = rfc3339(now() - jiff::SignedDuration::from_secs(seconds));
    scene.run_of("a.py", &format!("{second:04}"), second, |h| h.started_at = launched, false)
}

fn status(scene: &Scene, args: &[&str]) -> String {
    start(&mut scene.tool("tb-status", args)).done().text().to_owned()
}

#[test]
fn p26_a_running_job_is_held_against_its_last_runs() {
    let scene = Scene::new();
    took(&scene, 1, 80.0, |_| {});
    took(&scene, 2, 90.0, |_| {});
    // Neither was a run that ended by itself.
    took(&scene, 3, 5.0, |f| (f.outcome, f.reason) = (Outcome::Killed, Some(Reason::Kill)));
    took(&scene, 4, 600.0, |f| (f.outcome, f.reason) = (Outcome::Timeout, Some(Reason::Limit)));
    took(&scene, 5, 1.0, |f| (f.signal, f.exit_code) = (Some("SIGSEGV".to_owned()), None));
    let run = since(&scene, 6, 1);
    assert!(status(&scene, &[]).contains("about 1m"), "{}", status(&scene, &[]));
    let json: serde_json::Value = serde_json::from_str(&status(&scene, &["--json", "a.py"])).unwrap();
    assert_eq!(json["expected_seconds"], 85.0);
    drop(run);
    let run = since(&scene, 7, 192);
    assert!(status(&scene, &["a.py"]).contains("2.3x its usual 85s"), "{}", status(&scene, &["a.py"]));
    drop(run);
}

#[test]
fn p26_at_most_the_last_nine_runs_count_and_a_finished_job_is_held_against_those_before_it() {
    let scene = Scene::new();
    took(&scene, 1, 1000.0, |_| {});
    for second in 2..11 {
        took(&scene, second, if second < 6 { 1.0 } else { 3.0 }, |_| {});
    }
    took(&scene, 11, 50.0, |_| {});
    let json: serde_json::Value = serde_json::from_str(&status(&scene, &["--json", "a.py"])).unwrap();
    assert_eq!(json["expected_seconds"], 3.0);
    assert_eq!(json["elapsed_seconds"], 50.0);
}

#[test]
fn p25_p26_the_heartbeat_of_a_wait_says_it() {
    let scene = Scene::new();
    took(&scene, 1, 1000.0, |_| {});
    let run = since(&scene, 2, 100);
    let wait = start(&mut scene.tool("tb-wait", &["--heartbeat", "0.1s", "--timeout", "1s", "a.py"])).done();
    assert_eq!(wait.code, Some(124), "{}", wait.err);
    let beat = wait.err.lines().find(|l| l.contains("s elapsed]")).unwrap_or_else(|| panic!("{}", wait.err));
    assert!(beat.ends_with("s elapsed], about 15m left"), "{beat}");
    drop(run);
}
