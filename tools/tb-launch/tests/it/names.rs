//! Files follow from names; two names with one stem do not meet.

use std::fs;
use tb_tests::Scene;

fn pid_of(scene: &Scene, name: &str) -> u64 {
    scene.status(name)["pid"].as_u64().expect("a pid")
}

#[test]
fn g02_g04_g05_g09_files_are_named_by_the_test_and_hold_what_others_read() {
    let scene = Scene::new();
    let out = scene.launch("tests/unit/test_foo.py", "await go");
    let pid = pid_of(&scene, "tests/unit/test_foo.py");
    let text =
        fs::read_to_string(scene.run_dir().join(".test-tests_unit_test_foo_py.pid")).expect("the PID file");
    assert_eq!(text, format!("{pid}\n"));
    let log = scene.log_of("tests/unit/test_foo.py");
    let name = log.file_name().expect("a file").to_str().expect("text");
    let stamp = name.strip_prefix("test-tests_unit_test_foo_py-").and_then(|r| r.strip_suffix(".log"));
    let stamp = stamp.unwrap_or_else(|| panic!("{name}"));
    let shape = |(i, b): (usize, u8)| if i == 8 { b == b'_' } else { b.is_ascii_digit() };
    assert!(stamp.len() == 15 && stamp.bytes().enumerate().all(shape), "{name}");
    assert_eq!(
        out.stdout,
        format!("Launched tests/unit/test_foo.py [PID: {pid}]\nLog: .gate-logs/{name}\n"),
        "g09: two lines"
    );
    scene.file("go", "");
    scene.wait_for("tests/unit/test_foo.py", 0);
    assert!(!scene.run_dir().join(".test-tests_unit_test_foo_py.pid").exists());
}

#[test]
fn g04_g21_every_launch_has_a_log_of_its_own_and_the_newest_counts() {
    let scene = Scene::new();
    let mut logs = Vec::new();
    for code in 0..4 {
        scene.launch("x", &format!("print run-{code} exit {code}"));
        scene.wait_for("x", i32::from(code > 0));
        logs.push(scene.log_of("x"));
        assert_eq!(scene.status("x")["exit_code"], code);
    }
    let text = |i: usize| fs::read_to_string(&logs[i]).expect("a log");
    for i in 0..4 {
        assert!(text(i).contains(&format!("\nrun-{i}\n")), "launches in one second do not share a log");
    }
    // A name that begins with another's is another's.
    scene.launch("x-y", "print other exit 0");
    scene.wait_for("x-y", 0);
    assert_eq!(scene.status("x")["exit_code"], 3);
}

#[test]
fn two_names_with_one_stem_run_at_the_same_time_and_are_told_apart() {
    let scene = Scene::new();
    let names = ["a/b.py", "a_b.py"];
    scene.launch(names[0], "print first role r1 await go1 exit 4");
    scene.launch(names[1], "print second role r2 await go2 exit 0");
    let pids = names.map(|n| pid_of(&scene, n));
    assert_eq!(pids[0], u64::from(scene.await_birth("r1").pid));
    assert_eq!(pids[1], u64::from(scene.await_birth("r2").pid));
    // Each is refused while it runs, each by its own PID.
    for (name, pid) in names.iter().zip(pids) {
        let out = scene.tool("tb-launch").args(["--name", name, "--", "true"]).run().expect(3);
        assert!(out.stderr.contains(&format!("[PID: {pid}]")), "{out}");
    }
    let list = scene.tool("tb-status").arg("--names").run().ok();
    assert_eq!(list.stdout, "a/b.py\na_b.py\n");
    scene.file("go1", "");
    scene.wait_for(names[0], 1);
    scene.tool("tb-status").arg(names[1]).run().expect(3).says("second");
    scene.tool("tb-kill").arg(names[1]).run().ok().says("Killed a_b.py [PID: ");
    scene.tool("tb-status").arg(names[0]).run().expect(1).says("first");
    assert_eq!(scene.status(names[0])["exit_code"], 4);
    // Whoever comes later finds the same two stems again.
    for _ in 0..3 {
        for (name, code) in names.iter().zip([0, 5]) {
            scene.launch(name, &format!("exit {code}"));
            scene.wait_for(name, i32::from(code > 0));
            assert_eq!(scene.status(name)["exit_code"], code);
        }
    }
    let stems: std::collections::BTreeSet<String> = fs::read_dir(scene.run_dir())
        .expect("the run directory")
        .flatten()
        .filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            Some(name.strip_prefix("test-")?.split("-2").next()?.to_owned())
        })
        .collect();
    assert_eq!(stems.len(), 2, "{stems:?}");
    scene.tool("tb-clean").arg(names[0]).run().ok();
    assert_eq!(scene.tool("tb-status").arg("--names").run().ok().stdout, "a_b.py\n");
}

#[test]
fn names_that_a_shell_or_a_glob_would_take_for_something_else_work_everywhere() {
    let scene = Scene::new();
    let names = [
        "tests/a.py::TestX::test_y[1]",
        "a b",
        "it's",
        "\"q\" $HOME `id`",
        "*",
        "..",
        "é/ü.py",
        &"n".repeat(300),
    ];
    for name in names {
        scene.launch(name, "await go");
        assert_eq!(scene.status(name)["name"], name);
    }
    let listed = scene.tool("tb-status").args(["--running", "--print0"]).run().ok();
    let mut listed: Vec<&str> = listed.stdout.split_terminator('\0').collect();
    listed.sort_unstable();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    scene.sh("tb-status --print0 | xargs -0 tb-kill --").run().ok();
    scene.assert_quiet();
}

#[test]
fn a_log_is_never_older_than_the_newest_of_its_stem() {
    let scene = Scene::new();
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    let log = scene.log_of("x");
    let future = log.with_file_name("test-x-29991231_235959-9.log");
    fs::rename(&log, future).expect("our own log");
    scene.launch("x", "exit 3");
    scene.wait_for("x", 1);
    assert_eq!(scene.log_of("x").file_name().and_then(|n| n.to_str()), Some("test-x-29991231_235959-10.log"));
}
