//! `--max-log`: the newest output stays, the disk and the supervisors' memory stay small, and every reader knows what
//! it has missed.

use crate::{assert_asleep, halves, launch, launch_sh, number};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tb_tests::{Scene, until};

const MIB: u64 = 1 << 20;

/// What a file takes on the disk, in bytes.
fn on_disk(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.blocks() * 512)
}

/// Waits until the log's oldest output was dropped and nothing more goes, and returns how many lines went.
fn dropped(scene: &Scene, name: &str, more_than: u64) -> u64 {
    until("output was dropped", || {
        let lines = scene.status(name)["dropped_lines"].as_u64().unwrap_or(0);
        (lines > more_than).then_some(lines)
    })
}

/// Demands that what is left of a job that printed the numbers from 1 to `last` is what the record says.
#[track_caller]
fn assert_newest(scene: &Scene, name: &str, last: u64) {
    let gone = scene.status(name)["dropped_lines"].as_u64().expect("a number");
    let all = scene.tool("tb-log").args(["--all", name]).run().ok();
    assert!(all.stderr.contains(&format!("{gone} lines were dropped")), "{}", all.stderr);
    let mut lines = all.stdout.lines().map(|l| l.parse::<u64>().expect("a number"));
    for number in gone + 1..=last {
        assert_eq!(lines.next(), Some(number));
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn t20_t63_two_gigabytes_leave_the_newest_megabytes_and_never_take_much_more() {
    const LAST: u64 = 220_000_000;
    let scene = Scene::new();
    launch_sh(
        &scene,
        &["--name", "x", "--max-log", "16M"],
        &format!("seq 1 {LAST}; exec tb-fixture await go exit 3"),
    )
    .run()
    .ok();
    let log = scene.log_of("x");
    let halves = halves(&scene, "x");
    let (mut most, mut memory) = (0, 0);
    until("all is written, and the oldest has gone", || {
        most = most.max(on_disk(&log));
        memory = memory.max(halves.iter().filter_map(|h| number(*h, "VmHWM")).sum());
        let size = fs::metadata(&log).map_or(0, |m| m.len());
        (scene.births().len() == 1 && on_disk(&log) < 40 * MIB && size > 1990 * MIB).then_some(())
    });
    // What grows while nobody gets to look: a busy machine may take a while.
    assert!(most < 1024 * MIB, "{} MiB at one time", most / MIB);
    assert!(memory < 32 << 10, "{memory} KiB in both halves");
    scene.file("go", "");
    scene.wait_for("x", 1);
    assert!(on_disk(&log) < 40 * MIB, "{} MiB are left", on_disk(&log) / MIB);
    let status = scene.status("x");
    assert_eq!((&status["exit_code"], &status["truncated"]), (&3.into(), &false.into()));
    assert_eq!(status["last_log_lines"][14], LAST.to_string());
    let mut head = [0; 17];
    std::io::Read::read_exact(&mut fs::File::open(&log).expect("a log"), &mut head).expect("a header");
    assert_eq!(&head, b"=== GATE LAUNCH: ");
    assert_newest(&scene, "x", LAST);
    scene.assert_quiet();
}

#[test]
fn t21_t22_a_readers_gap_is_what_it_had_not_read_itself() {
    let scene = Scene::new();
    let script = "seq 1 100; tb-fixture role a ready await go-a gone; seq 101 50000; tb-fixture role b ready await go-b gone; \
                  seq 50001 50010; tb-fixture role c ready await go-c gone; seq 50011 150000";
    launch_sh(&scene, &["--name", "x", "--max-log", "64K"], script).run().ok();
    let read = |cursor: &str| {
        let out = scene.tool("tb-log").args(["--new", "--json", "--cursor", cursor, "x"]).run();
        let json = out.json().remove(0);
        let lines: Vec<u64> = json["lines"]
            .as_array()
            .expect("lines")
            .iter()
            .map(|l| l.as_str().and_then(|l| l.parse().ok()).expect("a number"))
            .collect();
        (lines, json["dropped_lines"].as_u64().expect("a number"))
    };
    scene.await_birth("a");
    assert_eq!(read("early"), ((1..=100).collect(), 0));
    scene.file("go-a", "");
    scene.await_birth("b");
    let gone = dropped(&scene, "x", 100);
    let (lines, missed) = read("early");
    assert_eq!((missed, lines.first(), lines.last()), (gone - 100, Some(&(gone + 1)), Some(&50_000)));
    let (lines, missed) = read("late");
    assert_eq!((missed, lines.first(), lines.last()), (gone, Some(&(gone + 1)), Some(&50_000)));
    scene.file("go-b", "");
    scene.await_birth("c");
    assert_eq!(read("early"), ((50_001..=50_010).collect(), 0));
    scene.file("go-c", "");
    scene.wait_for("x", 0);
    let gone = dropped(&scene, "x", 50_010);
    let (lines, missed) = read("early");
    assert_eq!((missed, lines.first(), lines.last()), (gone - 50_010, Some(&(gone + 1)), Some(&150_000)));
    let (_, missed) = read("late");
    assert_eq!(missed, gone - 50_000);
    assert_newest(&scene, "x", 150_000);
}

#[test]
fn t63_an_oversized_newest_line_is_kept_whole() {
    let scene = Scene::new();
    // Written to the end, the line stands for a while: it must not be cut when it is looked at again.
    launch(
        &scene,
        &["--name", "x", "--max-log", "64K"],
        "repeat 100 [ print old ] print-line 1000000 role main ready await go exit 0",
    )
    .run()
    .ok();
    assert_eq!(dropped(&scene, "x", 0), 100);
    let monitor = halves(&scene, "x")[1];
    assert_asleep(monitor);
    scene.file("go", "");
    scene.wait_for("x", 0);
    let out = scene.tool("tb-log").args(["--all", "--max-line", "0", "x"]).run().ok();
    let lines: Vec<usize> = out.stdout.lines().map(str::len).collect();
    assert!(lines.len() == 1 && lines[0] >= 999_999, "{lines:?}");
    scene.assert_quiet();
}

#[test]
fn a_line_without_an_end_is_cut_within() {
    let scene = Scene::new();
    launch_sh(
        &scene,
        &["--name", "x", "--max-log", "64K"],
        "head -c 200000000 /dev/zero | tr '\\0' x; exit 4",
    )
    .run()
    .ok();
    let log = scene.log_of("x");
    scene.wait_for("x", 1);
    assert!(on_disk(&log) < MIB, "{} are left", on_disk(&log));
    let status = scene.status("x");
    assert_eq!((&status["exit_code"], &status["dropped_lines"]), (&4.into(), &0.into()));
    scene.assert_quiet();
}

#[test]
fn t20_whichever_half_is_killed_the_other_goes_on_giving_back() {
    for which in [0, 1] {
        let scene = Scene::new();
        let script = "seq 1 20000; tb-fixture role a ready await go gone; seq 20001 4000000; tb-fixture role b ready await end gone";
        launch_sh(&scene, &["--name", "x", "--max-log", "256K"], script).run().ok();
        scene.await_birth("a");
        assert!(halves(&scene, "x")[which].kill());
        until("one half is left", || (scene.status("x")["supervision"] == "single").then_some(()));
        scene.file("go", "");
        scene.await_birth("b");
        let log = scene.log_of("x");
        until("the oldest has gone", || (on_disk(&log) < MIB).then_some(()));
        scene.file("end", "");
        scene.wait_for("x", 0);
        assert_newest(&scene, "x", 4_000_000);
        scene.assert_quiet();
    }
    // While it is at work: what the one said, the other does.
    let scene = Scene::new();
    launch_sh(
        &scene,
        &["--name", "x", "--max-log", "256K"],
        "seq 1 30000000; exec tb-fixture role b await end exit 0",
    )
    .run()
    .ok();
    dropped(&scene, "x", 100);
    assert!(halves(&scene, "x")[1].kill());
    scene.await_birth("b");
    let log = scene.log_of("x");
    until("the oldest has gone", || (on_disk(&log) < MIB).then_some(()));
    scene.file("end", "");
    scene.wait_for("x", 0);
    assert_newest(&scene, "x", 30_000_000);
    scene.assert_quiet();
}

#[test]
fn t20_results_read_what_is_left() {
    let mut scene = Scene::new();
    let test = "def test_loud():\n    for i in range(40000):\n        print('line', i)\ndef test_quiet():\n    pass\n";
    scene.pytest_project(&[("test_it.py", test)]);
    scene.tool("tb-launch").args(["--max-log", "64K", "test_it.py", "--", "-s"]).run().ok();
    scene.wait_for("test_it.py", 0);
    assert!(dropped(&scene, "test_it.py", 1000) < 40_010);
    let json = scene.tool("tb-results").args(["--json", "test_it.py"]).run().ok().json().remove(0);
    assert_eq!((&json["passed"], &json["verdict"]), (&2.into(), &"pass".into()), "{json}");
    assert!(on_disk(&scene.log_of("test_it.py")) < 512 << 10);
    scene.assert_quiet();
}

#[test]
fn a_log_that_its_job_truncates_is_left_alone_and_the_end_is_told() {
    let scene = Scene::new();
    let script = "seq 1 50000; echo cut > /dev/stderr; seq 1 50000; exit 3";
    launch_sh(&scene, &["--name", "x", "--max-log", "64K"], script).run().ok();
    scene.wait_for("x", 1);
    let status = scene.status("x");
    assert_eq!((&status["exit_code"], &status["truncated"]), (&3.into(), &true.into()), "{status}");
    assert_eq!(status["last_log_lines"][14], "50000");
    scene.assert_quiet();
}

#[test]
fn a_deleted_log_does_not_keep_its_supervisor_busy() {
    let scene = Scene::new();
    let flags = ["--name", "x", "--max-log", "64K", "--grace", "3s"];
    launch_sh(&scene, &flags, "seq 1 50000; exec tb-fixture ignore-term hold").run().ok();
    scene.await_birth("main");
    dropped(&scene, "x", 1);
    let monitor = halves(&scene, "x")[1];
    fs::remove_file(scene.log_of("x")).expect("a log");
    let before = crate::turns(monitor);
    let kill = scene.tool("tb-kill").args(["--grace", "3s", "x"]).spawn();
    let (mut turns, mut cpu) = (before, 0);
    while !kill.ended() {
        turns = crate::turns(monitor).max(turns);
        let stat = fs::read_to_string(format!("/proc/{}/stat", monitor.pid)).unwrap_or_default();
        let fields: Vec<u64> =
            stat.rsplit(')').next().unwrap_or("").split(' ').filter_map(|f| f.parse().ok()).collect();
        // utime and stime, fields 14 and 15: ten numbers before them, behind the state.
        cpu = fields.get(10).zip(fields.get(11)).map_or(0, |(u, s)| u + s).max(cpu);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill.wait().ok();
    assert!(cpu < 100, "{cpu} ticks of three seconds, {} turns", turns - before);
    scene.assert_quiet();
}

#[test]
fn a_job_that_is_still_costs_nothing() {
    let scene = Scene::new();
    launch_sh(&scene, &["--name", "x", "--max-log", "64K"], "seq 1 50000; exec tb-fixture hold").run().ok();
    scene.await_birth("main");
    dropped(&scene, "x", 1);
    for half in halves(&scene, "x") {
        assert_asleep(half);
    }
    scene.tool("tb-kill").arg("x").run().ok();
    scene.assert_quiet();
}

#[test]
fn a_file_system_that_gives_nothing_back_is_told_and_nothing_is_left() {
    let scene = Scene::new();
    scene.make_run_dir();
    // A file system of our own, which goes with its last process; it has no holes.
    let mount = "mount -t ramfs ramfs .gate-logs";
    if scene.cmd("unshare").args(["-m", "sh", "-c", mount]).run().code != Some(0) {
        return;
    }
    let script = format!(
        "{mount} && tb-launch --name x --max-log 1M -- touch ran; echo code=$?; ls -A .gate-logs; tb-launch --wait --name x -- true"
    );
    let out = scene.cmd("unshare").args(["-m", "sh", "-c", &script]).run().ok();
    assert!(out.stderr.contains("--max-log") && out.stderr.contains("--log-dir"), "{out}");
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[0], "code=125", "{out}");
    assert!(lines[1..].iter().all(|l| !l.contains("new") && !l.contains("test-x.")), "{out}");
    assert!(!scene.path("ran").exists());
    scene.assert_quiet();
}

#[test]
fn a_size_that_is_none_is_a_usage_error() {
    let scene = Scene::new();
    let before = scene.files();
    for bad in ["0", "-1", "", "x", "1X", "99999999999999999999G"] {
        let flag = format!("--max-log={bad}");
        scene.tool("tb-launch").args([&flag, "--", "true"]).run().expect(2).complains("--max-log");
    }
    scene.assert_untouched(&before);
}
