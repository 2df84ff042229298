//! `--on-exit`: at most once, after the end and not for a kill, and never of any consequence for the job.

use crate::{halves, launch, launch_sh, output};
use rustix::process::Signal;
use std::os::unix::ffi::OsStrExt;
use tb_tests::{Scene, until};

/// A hook that notes that it was called, and with what.
const NOTE: &str = "echo call >> calls; env | grep ^TB_ | grep -v ^TB_TEST | sort > env.new; mv env.new env";

/// What the hook's environment held, once it has been called.
fn noted(scene: &Scene) -> Vec<String> {
    until("the hook has been called", || scene.path("env").exists().then_some(()));
    let text = scene.read("env");
    std::fs::remove_file(scene.path("env")).expect("our own file");
    text.lines().map(str::to_owned).collect()
}

fn hook_lines(scene: &Scene, name: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(scene.log_of(name)).expect("a log");
    let json = |line: &str| {
        let json = line.strip_prefix("=== GATE HOOK: ")?.strip_suffix(" ===")?.to_owned();
        Some(serde_json::from_str(&json).expect("JSON"))
    };
    text.lines().filter_map(json).collect()
}

#[test]
fn t32_t74_it_is_called_once_for_every_end_of_its_own_with_name_and_end_and_log() {
    let scene = Scene::new();
    let ends = [
        ("pass", &[][..], "print one print two exit 0", ["passed", "0", ""], 0),
        ("it's a fail", &[], "exit 7", ["failed", "7", ""], 1),
        ("signal", &[], "kill-self SEGV", ["failed", "", "SIGSEGV"], 1),
        ("limit", &["--limit", "0.1"], "hold", ["timeout", "", "SIGTERM"], 1),
    ];
    for (name, flags, words, [outcome, code, signal], verdict) in ends {
        let all = [&["--name", name, "--on-exit", NOTE], flags].concat();
        launch(&scene, &all, words).run().ok();
        scene.wait_for(name, verdict);
        let noted = noted(&scene);
        let unread = if name == "pass" { 2 } else { 0 };
        assert_eq!(
            noted,
            [
                format!("TB_EXIT_CODE={code}"),
                format!("TB_LOG={}", scene.log_of(name).canonicalize().expect("a log").display()),
                format!("TB_LOG_DIR={}", scene.run_dir().display()),
                format!("TB_NAME={name}"),
                format!("TB_OUTCOME={outcome}"),
                format!("TB_SIGNAL={signal}"),
                format!("TB_UNREAD_LINES={unread}"),
            ]
        );
        scene.assert_quiet();
        assert!(hook_lines(&scene, name).is_empty());
    }
    assert_eq!(scene.read("calls"), "call\n".repeat(ends.len()));
}

#[test]
fn t33_t34_it_is_not_called_for_a_kill_or_for_an_outer_end() {
    let scene = Scene::new();
    let hold =
        |name: &str, words: &str| launch(&scene, &["--name", name, "--on-exit", NOTE], words).run().ok();
    hold("x", "hold");
    scene.tool("tb-kill").arg("x").run().ok();
    hold("stubborn", "ignore-term hold");
    scene.await_births("main", 2);
    scene.tool("tb-kill").args(["--grace", "0.1", "stubborn"]).run().ok();
    // It answers the kill with an end of its own.
    hold("polite", "on-term [ exit 0 ] ready hold");
    scene.await_births("main", 3);
    scene.tool("tb-kill").arg("polite").run().ok();
    let inner =
        format!("tb-launch --name inner --on-exit '{NOTE}' -- tb-fixture hold; tb-fixture role outer hold");
    launch_sh(&scene, &["--name", "outer"], &inner).run().ok();
    scene.await_birth("outer");
    scene.tool("tb-kill").arg("outer").run().ok();
    // What was asked of a supervisor is a kill, too.
    hold("asked", "hold");
    assert!(halves(&scene, "asked")[1].signal(Signal::TERM));
    scene.wait_for("asked", 1);
    scene.assert_quiet();
    assert_eq!(scene.read("calls"), "");
}

#[test]
fn t32_when_it_is_called_the_job_is_over_and_its_name_is_free() {
    let scene = Scene::new();
    scene.file("sub/x", "");
    let hook = "tb-status -n 0 $TB_NAME > status; tb-results $TB_NAME > results 2>&1; tb-wait $TB_NAME > wait; \
                tb-launch --name $TB_NAME -- true > launch 2>&1; echo $? > done.new; mv done.new ../done";
    // By a relative directory, from another one, under an owner.
    let place = ["--log-dir", "logs", "--owner", "ann"];
    let flags = ["--cwd", "sub", "--name", "x", "--on-exit", hook];
    launch_sh(&scene, &[&place[..], &flags].concat(), "echo '2 passed in 0.1s'").run().ok();
    until("the hook is done", || scene.path("done").exists().then_some(()));
    assert_eq!(scene.read("done"), "0\n", "{}", scene.read("sub/launch"));
    assert!(scene.read("sub/status").starts_with("x  FINISHED (PASS)"), "{}", scene.read("sub/status"));
    assert!(scene.read("sub/wait").starts_with("x: FINISHED (PASS)"), "{}", scene.read("sub/wait"));
    assert!(!scene.read("sub/results").is_empty());
    assert!(scene.read("sub/launch").starts_with("Launched x "));
    scene.tool("tb-wait").args(place).arg("x").run().ok();
    // By variable.
    let scene = Scene::new();
    scene.file("sub/x", "");
    let hook = "tb-status -n 0 $TB_NAME > status; mv status ../status";
    launch(&scene, &["--cwd", "sub", "--name", "x", "--on-exit", hook], "exit 0")
        .env("TB_LOG_DIR", "logs")
        .run()
        .ok();
    until("the hook is done", || scene.path("status").exists().then_some(()));
    assert!(scene.read("status").starts_with("x  FINISHED (PASS)"));
    scene.assert_quiet();
}

#[test]
fn t32_a_run_that_it_launches_goes_on_after_it() {
    let scene = Scene::new();
    // The helper in the background is the hook's own, and goes with it.
    let hook = "tb-launch --name next -- sh -c 'while [ ! -e go ]; do sleep 0.01; done; exit 3' >launched 2>&1; \
                tb-fixture role helper hold & touch done";
    launch(&scene, &["--name", "x", "--on-exit", hook], "exit 0").run().ok();
    until("the hook is done", || scene.path("done").exists().then_some(()));
    // Both halves of the first supervisor are gone: nothing more comes from there.
    until("only the second job lives", || {
        let comms: Vec<String> = {
            let comm = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            scene.living().iter().map(|p| comm(p.pid)).collect()
        };
        (comms.iter().filter(|c| c.trim() == "tb-supervise").count() == 2
            && !comms.iter().any(|c| c.trim() == "tb-fixture"))
        .then_some(())
    });
    assert_eq!(scene.status("next")["status"], "RUNNING", "{}", scene.read("launched"));
    scene.file("go", "");
    scene.wait_for("next", 1);
    assert_eq!(scene.status("next")["exit_code"], 3);
    scene.assert_quiet();
}

#[test]
fn t32_it_runs_where_the_job_ran_whatever_that_is_called() {
    let scene = Scene::new();
    let odd = scene.path(std::ffi::OsStr::from_bytes(b"a \xff"));
    std::fs::create_dir(&odd).expect("our own directory");
    let here = scene.run_dir();
    let run = |name: &str, hook: &str| {
        let cmd = launch(&scene, &["--name", name, "--on-exit", hook], "exit 0").cwd(&odd);
        cmd.env("TB_LOG_DIR", &here).run().ok();
    };
    run("x", "touch here");
    until("the hook is done", || odd.join("here").exists().then_some(()));
    // Its directory is gone by then.
    let hook = format!("touch '{}'", scene.path("done").display());
    let script = format!("tb-launch --name y --on-exit \"{hook}\" -- sh -c 'rmdir ../gone'");
    std::fs::create_dir(scene.path("gone")).expect("our own directory");
    scene.sh(&script).cwd("gone").env("TB_LOG_DIR", &here).run().ok();
    until("the hook is done", || scene.path("done").exists().then_some(()));
    scene.assert_quiet();
}

#[test]
fn t47_its_failure_is_a_line_behind_the_record_and_changes_nothing() {
    let scene = Scene::new();
    for (name, hook, field, value) in [
        ("code", "echo out; echo err >&2; exit 3", "exit_code", serde_json::json!(3)),
        ("crash", "kill -SEGV $$", "signal", serde_json::json!("SIGSEGV")),
        ("syntax", "if (", "exit_code", serde_json::json!(2)),
        ("missing", "no-such-command", "exit_code", serde_json::json!(127)),
    ] {
        launch(&scene, &["--name", name, "--on-exit", hook], "print hello exit 0").run().ok();
        scene.wait_for(name, 0);
        let lines = until("the log tells", || Some(hook_lines(&scene, name)).filter(|l| !l.is_empty()));
        scene.assert_quiet();
        assert_eq!((lines.len(), &lines[0][field]), (1, &value), "{lines:?}");
        let status = scene.status(name);
        assert_eq!((&status["outcome"], &status["truncated"]), (&"passed".into(), &false.into()));
        assert_eq!(lines[0]["job"], status["job"]);
        assert_eq!(output(&scene, name), "hello\n", "its own output goes nowhere");
        let read = scene.tool("tb-log").args(["--new", name]).run().ok();
        assert_eq!(read.stdout, "hello\n", "{read}");
    }
}

#[test]
fn t32_t47_what_hangs_is_stopped_after_its_time_and_all_that_it_started_goes() {
    let scene = Scene::new();
    let hook = "tb-fixture role escapee spawn-setsid [ ignore-term hold ] ignore-term hold";
    launch(&scene, &["--name", "x", "--on-exit", hook], "exit 0").run().ok();
    scene.wait_for("x", 0);
    scene.await_birth("escapee");
    scene.await_birth("setsid");
    // The hook is no part of the job.
    assert_eq!(scene.status("x")["status"], "FINISHED");
    // One that has succeeded leaves nothing either.
    let hook = "tb-fixture role quick spawn-setsid [ ignore-term hold ] daemon [ hold ] exit 0";
    launch(&scene, &["--name", "y", "--on-exit", hook], "exit 0").run().ok();
    scene.wait_for("y", 0);
    let quick = scene.await_birth("quick");
    until("the quick one and its children are gone", || {
        let left = scene.births().into_iter().filter(|b| b.proc.alive()).count();
        (left == 2 && !quick.alive()).then_some(())
    });
    assert!(hook_lines(&scene, "y").is_empty());
    let lines = until("the log tells", || Some(hook_lines(&scene, "x")).filter(|l| !l.is_empty()));
    assert!(lines[0]["error"].as_str().is_some_and(|e| e.contains("30")), "{lines:?}");
    assert_eq!(scene.status("x")["outcome"], "passed");
    scene.assert_quiet();
}

#[test]
fn t32_whichever_half_is_killed_and_whenever_it_is_called_at_most_once() {
    let scene = Scene::new();
    // While the job runs: the other half calls it.
    for (i, which) in [0, 1].into_iter().enumerate() {
        let name = format!("n{i}");
        launch(&scene, &["--name", &name, "--on-exit", NOTE], &format!("await go{i} exit 0")).run().ok();
        assert!(halves(&scene, &name)[which].kill());
        until("one half is left", || (scene.status(&name)["supervision"] == "single").then_some(()));
        scene.file(format!("go{i}"), "");
        scene.wait_for(&name, 0);
        noted(&scene);
        scene.assert_quiet();
        assert_eq!(scene.read("calls"), "call\n".repeat(i + 1));
    }
    // While it runs: it goes with the half that runs it, and nobody calls it again.
    let hook = format!("{NOTE}; exec tb-fixture role hook hold");
    launch(&scene, &["--name", "h", "--on-exit", &hook], "await go exit 0").run().ok();
    let [_, monitor] = halves(&scene, "h");
    scene.file("go", "");
    scene.await_birth("hook");
    assert!(monitor.kill());
    scene.assert_quiet();
    assert_eq!(
        (scene.read("calls").as_str(), scene.status("h")["outcome"].as_str()),
        ("call\ncall\ncall\n", Some("passed"))
    );
    // Around the end.
    std::fs::remove_file(scene.path("calls")).expect("our own file");
    for i in 0..24 {
        let name = format!("e{i}");
        let go = format!("go-{name}");
        let hook = format!("echo {name} >> calls");
        launch(&scene, &["--name", &name, "--on-exit", &hook], &format!("await {go} exit 0")).run().ok();
        let halves = halves(&scene, &name);
        let log = scene.log_of(&name);
        scene.file(go, "");
        let size = || std::fs::metadata(&log).map_or(0, |m| m.len());
        let before = size();
        if i % 3 == 0 {
            while size() == before && halves[1].alive() {}
        } else {
            for _ in 0..i * 400 {
                std::hint::spin_loop();
            }
        }
        halves[i % 2].kill();
        scene.wait_for(&name, 0);
    }
    scene.assert_quiet();
    let calls = scene.read("calls");
    for i in 0..24 {
        let times = calls.lines().filter(|l| *l == format!("e{i}")).count();
        assert!(times <= 1, "e{i}: {times} calls");
    }
}

#[test]
fn t32_what_the_job_was_allowed_to_leave_stays() {
    let scene = Scene::new();
    let flags = ["--name", "x", "--leaks", "allow", "--on-exit", NOTE];
    launch(&scene, &flags, "spawn-setsid [ hold ] daemon [ hold ] spawn-same [ hold ] exit 0").run().ok();
    scene.wait_for("x", 0);
    noted(&scene);
    let left: Vec<_> = ["setsid", "daemon", "same"].map(|role| scene.await_birth(role)).into();
    scene.assert_quiet_but(&left);
    assert!(left.iter().all(|p| p.alive()));
    assert!(left.iter().all(|p| p.kill()));
}

#[test]
fn t74_it_is_told_what_the_usual_reader_has_not_read() {
    let scene = Scene::new();
    for (owner, cursor, unread) in [("ann", "ann", 3), ("bob", "other", 5)] {
        let flags = ["--owner", owner, "--name", owner, "--on-exit", NOTE];
        let go = format!("go-{owner}");
        let words =
            format!("print 1 print 2 role {owner} ready await {go} print 3 print 4 print-line 9 exit 1");
        launch(&scene, &flags, &words).run().ok();
        scene.await_birth(owner);
        let read =
            scene.tool("tb-log").args(["--owner", owner, "--new", "--cursor", cursor, owner]).run().ok();
        assert_eq!(read.stdout, "1\n2\n");
        scene.file(go, "");
        let noted = noted(&scene);
        assert!(noted.contains(&format!("TB_UNREAD_LINES={unread}")), "{noted:?}");
        assert!(noted.contains(&format!("TB_OWNER={owner}")), "{noted:?}");
    }
    scene.assert_quiet();
}

#[test]
fn t32_it_begins_like_any_process_with_nothing_of_the_supervisors() {
    let scene = Scene::new();
    let hook = "grep ^Sig /proc/self/status > signals; ls -l /proc/$$/fd > fds; touch done";
    let launcher = launch(&scene, &["--name", "x", "--pty", "--max-log", "1M", "--on-exit", hook], "exit 0");
    launcher.through(["ignore", "INT", "block", "USR1"]).run().ok();
    until("the hook is done", || scene.path("done").exists().then_some(()));
    let fds = scene.read("fds");
    let held: Vec<&str> = fds.lines().filter_map(|l| l.split_once(" -> ").map(|(_, to)| to)).collect();
    // What listed them stood there for a moment, in the shell's own place or in another's.
    assert!(held.len() >= 3 && held.iter().all(|to| *to == "/dev/null" || to.ends_with("/w/fds")), "{fds}");
    let masks = scene.read("signals");
    let set = |field: &str| masks.lines().find_map(|l| l.strip_prefix(field)).map(str::trim);
    assert_eq!((set("SigBlk:"), set("SigIgn:")), (Some("0000000000000000"), Some("0000000000000000")));
    scene.assert_quiet();
}
