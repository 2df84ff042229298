//! How jobs are stopped, and what is said of it.

use std::fs;
use tb_tests::{Scene, until};

#[test]
fn t23_g34_g37_the_leader_and_what_it_started_are_stopped() {
    let scene = Scene::new();
    scene.launch("x", "spawn-same spawn-setpgid spawn-setsid [ spawn-same [ role deep hold ] hold ] hold");
    for role in ["main", "same", "setpgid", "setsid", "deep"] {
        scene.await_birth(role);
    }
    let pid = scene.status("x")["pid"].as_u64().expect("a pid");
    let out = scene.tool("tb-kill").arg("x").run().ok();
    assert_eq!(out.stdout, format!("Killed x [PID: {pid}] (5 processes, TERM)\n"), "{out}");
    scene.assert_quiet();
    let status = scene.status("x");
    assert_eq!(
        (&status["outcome"], &status["reason"], &status["signal"]),
        (&"killed".into(), &"kill".into(), &"SIGTERM".into())
    );
}

#[test]
fn g34_g38_what_ignores_term_is_killed_after_the_grace() {
    let scene = Scene::new();
    let settings: [(&[&str], (&str, &str)); 3] = [
        (&["--grace", "50ms"], ("X", "")),
        (&[], ("TB_KILL_GRACE", "0.05")),
        (&[], ("GLUDD_TEST_KILL_GRACE_SEC", "0.05")),
    ];
    for (i, (flags, (key, value))) in settings.into_iter().enumerate() {
        let name = format!("x{i}");
        scene.launch(&name, "ignore-term hold");
        scene.await_births("main", i + 1);
        let out = scene.tool("tb-kill").args(flags).arg(&name).env(key, value).run().ok();
        assert!(out.stdout.contains("(1 process, KILL)"), "{out}");
        assert_eq!(scene.status(&name)["signal"], "SIGKILL");
    }
    scene.assert_quiet();
}

#[test]
fn a_handler_for_the_first_signal_may_finish() {
    let scene = Scene::new();
    scene.launch("x", "term-handler 0.2 finished");
    scene.await_birth("main");
    scene.tool("tb-kill").args(["--grace", "30s", "x"]).run().ok().says("TERM)");
    assert!(scene.path("finished").exists());
    let status = scene.status("x");
    assert_eq!((&status["outcome"], &status["exit_code"]), (&"killed".into(), &0.into()), "t53: {status}");
    scene.launch("y", "hold");
    scene.tool("tb-kill").args(["--signal", "INT", "y"]).run().ok().says("INT)");
    assert_eq!(scene.status("y")["signal"], "SIGINT");
}

#[test]
fn g35_t25_the_pid_file_goes_and_the_log_stays() {
    let scene = Scene::new();
    scene.launch("x", "print before hold");
    scene.await_birth("main");
    let log = scene.log_of("x");
    scene.tool("tb-kill").arg("x").run().ok();
    assert!(!scene.run_dir().join(".test-x.pid").exists());
    let text = fs::read_to_string(log).expect("the log");
    assert!(text.contains("\nbefore\n"), "t25: output before the kill stays");
    let stopping = text.find("=== GATE STOPPING: ").expect("announced");
    assert!(
        stopping < text.find("=== GATE RESULT: ").expect("recorded")
            && text.ends_with("=== GATE: FAILED ===\n")
    );
}

#[test]
fn g36_t27_t35_a_job_that_is_over_is_reported_as_what_it_was_however_often() {
    let scene = Scene::new();
    for (name, words, code, word) in [("p", "exit 0", 0, "PASS"), ("f", "exit 3", 1, "FAIL")] {
        scene.launch(name, words);
        scene.wait_for(name, code);
        let before = scene.files();
        for _ in 0..3 {
            scene.tool("tb-kill").arg(name).run().ok().says(&format!("{name} already finished ({word})"));
        }
        scene.assert_untouched(&before);
        assert_eq!(scene.status(name)["outcome"], if code == 0 { "passed" } else { "failed" });
    }
    scene.launch("k", "hold");
    scene.tool("tb-kill").arg("k").run().ok().says("Killed k ");
    scene.tool("tb-kill").arg("k").run().ok().says("k already finished (FAIL)");
    assert_eq!(scene.status("k")["outcome"], "killed");
    scene.tool("tb-kill").args(["--all"]).run().ok();
}

#[test]
fn t53_t54_a_kill_that_races_a_natural_end_never_relabels_it() {
    let scene = Scene::new();
    for round in 0..20 {
        let name = format!("x{round}");
        scene.launch(&name, &format!("role r{round} await go{round} exit 0"));
        scene.await_birth(&format!("r{round}"));
        let kill = scene.tool("tb-kill").arg(&name).spawn();
        scene.file(format!("go{round}"), "");
        let out = kill.wait().ok();
        let status = scene.status(&name);
        let natural = out.stdout.contains("already finished (PASS)");
        let (outcome, code) = (status["outcome"].as_str(), status["exit_code"].as_i64());
        if natural {
            assert_eq!((outcome, code), (Some("passed"), Some(0)), "{out}");
        } else {
            assert!(
                out.stdout.starts_with(&format!("Killed {name} ")) && outcome == Some("killed"),
                "{out} {status}"
            );
        }
    }
}

#[test]
fn many_kills_at_once_agree() {
    let scene = Scene::new();
    scene.launch("x", "ignore-term hold");
    scene.await_birth("main");
    let kills: Vec<_> =
        (0..8).map(|_| scene.tool("tb-kill").args(["--grace", "200ms", "x"]).spawn()).collect();
    for kill in kills {
        kill.wait().ok();
    }
    let text = fs::read_to_string(scene.log_of("x")).expect("the log");
    assert_eq!(text.matches("=== GATE STOPPING: ").count(), 1, "{text}");
    assert_eq!(text.matches("=== GATE RESULT: ").count(), 1, "{text}");
}

#[test]
fn t26_g68_all_stops_every_job_and_new_ones_can_be_launched() {
    let scene = Scene::new();
    for name in ["a", "b", "c d"] {
        scene.launch(name, "hold");
    }
    scene.launch("over", "exit 0");
    scene.wait_for("over", 0);
    let out = scene.tool("tb-kill").arg("--all").run().ok();
    assert_eq!(out.stdout.lines().filter(|l| l.starts_with("Killed ")).count(), 3, "{out}");
    assert!(!out.stdout.contains("over"), "{out}");
    scene.assert_quiet();
    let names = scene.tool("tb-status").arg("--names").run().ok().stdout;
    assert_eq!(names.lines().count(), 4, "the records stay");
    scene.launch("a", "exit 0");
    scene.wait_for("a", 0);
}

#[test]
fn a_stopped_job_and_one_whose_files_are_gone_are_stopped_all_the_same() {
    let scene = Scene::new();
    scene.launch("x", "stopped hold");
    let leader = scene.await_birth("main");
    until("it is stopped", || leader.stat().filter(|s| s.state == 'T'));
    scene.tool("tb-kill").arg("x").run().ok().says("TERM)");
    scene.launch("y", "role y hold");
    scene.await_birth("y");
    fs::remove_file(scene.log_of("y")).expect("our own log");
    scene.tool("tb-kill").arg("y").run().ok().says("Killed y ");
    assert_eq!(scene.status("y")["outcome"], "killed");
    scene.launch("z", "role z hold");
    scene.await_birth("z");
    fs::remove_file(scene.run_dir().join(".test-z.pid")).expect("our own file");
    scene.tool("tb-kill").arg("z").run().ok().says("Killed z ");
    scene.launch("w", "role w truncate-stderr ready hold");
    scene.await_birth("w");
    scene.tool("tb-kill").arg("w").run().ok().says("Killed w ");
    assert_eq!(
        (&scene.status("w")["outcome"], &scene.status("w")["truncated"]),
        (&"killed".into(), &true.into())
    );
    scene.assert_quiet();
}

#[test]
fn a_number_that_a_shell_wrote_into_the_pid_file_is_not_what_is_stopped() {
    let scene = Scene::new();
    scene.launch("x", "role leader hold");
    let leader = scene.await_birth("leader");
    let witness = scene.fixture("role witness hold").spawn();
    scene.await_birth("witness");
    fs::write(scene.run_dir().join(".test-x.pid"), format!("{}\n", witness.pid()))
        .expect("the run directory");
    let file = scene.run_dir().join(".test-x.pid");
    until("the file is clearly older than the job's end", || {
        let age = fs::metadata(&file).ok()?.modified().ok()?.elapsed().ok()?;
        (age > std::time::Duration::from_millis(100)).then_some(())
    });
    scene.tool("tb-kill").arg("x").run().ok().says(&format!("Killed x [PID: {}]", leader.pid));
    assert!(witness.proc().alive() && !leader.alive());
    // What was written over its file while it ran is no run of its own; the job's record stands in its log, once.
    scene.tool("tb-status").arg("x").run().expect(1).says("FINISHED (FAIL)");
    let logs = scene.files();
    let log = logs.keys().find(|p| p.extension().is_some_and(|e| e == "log")).expect("the log");
    let text = fs::read_to_string(log).expect("the log");
    assert_eq!(text.matches("=== GATE RESULT: ").count(), 1, "{text}");
    assert!(text.contains("\"outcome\":\"killed\"") && text.contains("\"signal\":\"SIGTERM\""), "{text}");
}

#[test]
fn names_on_standard_input_objects_closed_stdio() {
    let scene = Scene::new();
    let launch = |names: &[&str]| names.iter().for_each(|n| drop(scene.launch(n, "hold")));
    launch(&["a", "b c", "d"]);
    let out = scene.tool("tb-kill").args(["--stdin-names", "-0"]).stdin("a\0b c\0").run().ok();
    assert_eq!(out.stdout.lines().count(), 2, "{out}");
    let out = scene.tool("tb-kill").args(["--json", "d", "a"]).run().ok();
    let objects = out.json();
    assert_eq!((&objects[0]["outcome"], &objects[1]["name"]), (&"killed".into(), &"a".into()));
    let keys = |v: &serde_json::Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>());
    assert_eq!(keys(&objects[0]), keys(&scene.status("d")));
    for words in [
        vec!["close", "0"],
        vec!["close", "1"],
        vec!["close", "2"],
        vec!["close", "0", "close", "1", "close", "2"],
        vec!["ignore", "CHLD"],
    ] {
        launch(&["e"]);
        scene.tool("tb-kill").arg("e").through(words).run().ok();
        assert_eq!(scene.status("e")["outcome"], "killed");
    }
    launch(&["f"]);
    let out = scene.sh("{ tb-kill f; echo code=$? >&2; } | true").run().ok();
    assert_eq!(out.stderr, "code=0\n", "{out}");
}
