//! Heartbeats, result lines, objects.

use tb_tests::Scene;

#[test]
fn g45_a_heartbeat_has_clock_name_state_and_elapsed_time() {
    let scene = Scene::new();
    let script = "echo '=== GATE PHASE: lint ==='; while [ ! -e go ]; do sleep 0.01; done";
    scene.tool("tb-launch").args(["--name", "a b", "--", "sh", "-c", script]).run().ok();
    let flags: [(&[&str], (&str, &str)); 3] = [
        (&["--heartbeat", "20ms"], ("X", "")),
        (&[], ("TB_HEARTBEAT", "0.02")),
        (&[], ("GLUDD_TEST_HEARTBEAT_INTERVAL", "0.02")),
    ];
    for (flags, (key, value)) in flags {
        let waiter = scene.tool("tb-wait").args(flags).arg("a b").env(key, value).spawn();
        let said = waiter.until_stderr("s elapsed]\n");
        let line =
            said.lines().find(|l| l.contains("(lint)")).unwrap_or_else(|| said.lines().next().unwrap_or(""));
        let (clock, rest) = line.split_once(' ').expect("a line");
        assert!(clock.starts_with('[') && clock.len() == 10 && clock.ends_with(']'), "{line}");
        assert!(rest.starts_with("a b: RUNNING") && rest.ends_with("s elapsed]"), "{line}");
        assert!(waiter.stdout().is_empty(), "it is said on standard error");
    }
    let none = scene.tool("tb-wait").args(["--heartbeat", "0", "--timeout", "60ms", "a b"]).run().expect(124);
    assert!(!none.stderr.contains("elapsed]"), "{none}");
    scene.file("go", "");
    scene.wait_for("a b", 0);
}

#[test]
fn a_terminal_shows_bars_in_place_of_heartbeat_lines() {
    for (term, bar) in [("xterm", true), ("dumb", false)] {
        let scene = Scene::new();
        let script =
            "echo 'tests/test_a.py::test_a PASSED    [ 45%]'; while [ ! -e go ]; do sleep 0.01; done";
        scene.tool("tb-launch").args(["--name", "x", "--", "sh", "-c", script]).run().ok();
        let command = "tb-wait --color never --heartbeat 20ms x; echo code $?";
        let waiter = scene.terminal(command).env("TERM", term).spawn();
        let shown = waiter.until_stdout("x: RUNNING (test 45%)");
        assert_eq!(shown.contains("==>"), bar, "{shown:?}");
        scene.file("go", "");
        let out = waiter.wait().ok();
        assert!(out.stdout.contains("code 0"), "{out}");
        assert_eq!(out.stdout.contains("s elapsed]"), !bar, "{out}");
        // The result's line stands alone, and no bar is left after it.
        let (_, last) =
            out.stdout.rsplit_once(if bar { "\x1b[2K" } else { "s elapsed]" }).unwrap_or_default();
        assert!(last.contains("x: FINISHED (PASS)") && !last.contains("RUNNING"), "{:?}", out.stdout);
    }
}

#[test]
fn an_object_a_job_is_statuss() {
    let scene = Scene::new();
    scene.launch("x", "exit 3");
    scene.launch("y", "exit 0");
    let out = scene.tool("tb-wait").args(["--json", "x", "y"]).run().expect(1);
    let objects = out.json();
    assert_eq!(objects.len(), 2);
    let keys = |v: &serde_json::Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>());
    for object in &objects {
        let name = object["name"].as_str().expect("a name");
        let status = scene.status(name);
        assert_eq!(keys(object), keys(&status));
        assert_eq!(object["exit_code"], status["exit_code"]);
    }
}

#[test]
fn it_works_with_closed_stdio_and_with_sigchld_ignored() {
    let scene = Scene::new();
    scene.launch("x", "exit 3");
    for words in [
        vec!["close", "0"],
        vec!["close", "1"],
        vec!["close", "2"],
        vec!["close", "0", "close", "1", "close", "2"],
        vec!["ignore", "CHLD"],
    ] {
        scene.tool("tb-wait").args(["--heartbeat", "1ms", "x"]).through(words).run().expect(1);
    }
    let out = scene.sh("{ tb-wait x; echo code=$? >&2; } | true").run().ok();
    assert_eq!(out.stderr, "code=1\n", "{out}");
    scene.sh("tb-wait x > /dev/full").run().expect(125);
}
