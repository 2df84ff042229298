//! tb-status's object: exactly these fields, and null for what is not known.

use crate::written::{footer, header, log};
use serde_json::Value;
use tb_shared::contract::Outcome;
use tb_tests::Scene;

/// As the tools' page lists them, in its order.
const FIELDS: &str = "v, name, job, owner, host, status, outcome, terminal_marker, verdict_source, exit_code, signal, \
    reason, pid, supervisors, supervision, nested_in, command, cwd, started_at, finished_at, elapsed_seconds, \
    expected_seconds, current_phase, percent, last_test, last_output_at, idle_seconds, cpu_seconds, rss_kb, processes, \
    leaked, survivors, log_file, log_bytes, dropped_lines, truncated, pid_file, collected, last_log_lines";

fn check(object: &Value) {
    let mut expected: Vec<&str> = FIELDS.split(", ").map(str::trim).collect();
    let mut found: Vec<&String> = object.as_object().expect("an object").keys().collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(object["v"], 1);
    assert!(object["collected"].is_boolean(), "{object}");
    assert!(
        object["name"].is_string() && object["supervisors"].is_array() && object["last_log_lines"].is_array()
    );
    for field in ["started_at", "finished_at", "last_output_at"] {
        let time = &object[field];
        assert!(
            time.is_null() || time.as_str().is_some_and(|t| t.ends_with('Z') && t.contains('T')),
            "{field}: {time}"
        );
    }
    let word = |field: &str| object[field].as_str();
    assert!(matches!(word("status"), Some("RUNNING" | "FINISHED")));
    assert!(matches!(word("verdict_source"), Some("exit_status" | "marker" | "summary" | "none")));
    assert!(matches!(word("supervision"), Some("double" | "single" | "none") | None));
    assert!(matches!(word("terminal_marker"), Some("PASS" | "FAIL") | None));
}

#[test]
fn g18_g27_g71_a_running_job_says_all_that_is_known() {
    let scene = Scene::new();
    scene.launch("x", "print hello spawn-setsid [ hold ] hold");
    let leader = scene.await_birth("main");
    scene.await_birth("setsid");
    let status = scene.status("x");
    check(&status);
    assert_eq!(status["pid"], leader.pid);
    assert_eq!((&status["status"], &status["supervision"]), (&"RUNNING".into(), &"double".into()));
    assert_eq!(status["supervisors"].as_array().map(Vec::len), Some(2));
    assert_eq!(status["processes"], 2);
    assert_eq!(status["last_log_lines"], serde_json::json!(["hello"]));
    assert_eq!(status["cwd"], scene.dir().to_str().expect("a path"));
    for null in [
        "outcome",
        "terminal_marker",
        "exit_code",
        "signal",
        "reason",
        "finished_at",
        "leaked",
        "survivors",
        "nested_in",
        "truncated",
    ] {
        assert!(status[null].is_null(), "{null}: {status}");
    }
    for number in ["elapsed_seconds", "idle_seconds", "cpu_seconds", "rss_kb", "log_bytes"] {
        assert!(status[number].as_f64().is_some_and(|n| n >= 0.0), "{number}: {status}");
    }
    assert!(scene.path(status["log_file"].as_str().expect("a path")).is_file());
    assert!(scene.path(status["pid_file"].as_str().expect("a path")).is_file());
    scene.tool("tb-kill").arg("x").run().ok();
    let status = scene.status("x");
    check(&status);
    assert_eq!((&status["outcome"], &status["reason"]), (&"killed".into(), &"kill".into()));
    assert_eq!((&status["signal"], &status["exit_code"]), (&"SIGTERM".into(), &Value::Null));
    for null in ["pid_file", "idle_seconds", "processes", "supervision"] {
        assert!(status[null].is_null(), "{null}: {status}");
    }
    assert_eq!(status["supervisors"], serde_json::json!([]));
}

#[test]
fn t07_g27_a_finished_job_has_its_real_code_and_its_times() {
    let scene = Scene::new();
    scene.launch("x", "exit 7");
    scene.wait_for("x", 1);
    let status = scene.status("x");
    check(&status);
    assert_eq!(
        (&status["exit_code"], &status["signal"], &status["outcome"]),
        (&7.into(), &Value::Null, &"failed".into())
    );
    assert_eq!((&status["reason"], &status["verdict_source"]), (&"exit".into(), &"exit_status".into()));
    assert!(status["elapsed_seconds"].is_number() && status["finished_at"].is_string());
    assert_eq!(status["truncated"], false);
}

#[test]
fn what_others_wrote_has_the_same_fields() {
    let scene = Scene::new();
    let header = header("x");
    log(&scene, "x", &[&header.line(), &footer(&header, Outcome::Passed).lines()]);
    log(&scene, "foreign", &[b"=== 1 passed in 0.1s ===\n"]);
    scene.file(".gate-logs/.test-corrupt.pid", "junk");
    let out = scene.tool("tb-status").arg("--json").run().ok();
    let objects = out.json();
    assert_eq!(objects.len(), 3);
    objects.iter().for_each(check);
    let by_name = |name: &str| objects.iter().find(|o| o["name"] == name).expect("listed");
    assert_eq!((&by_name("x")["elapsed_seconds"], &by_name("x")["rss_kb"]), (&85.2.into(), &2048.into()));
    for null in
        ["job", "owner", "host", "command", "cwd", "started_at", "exit_code", "elapsed_seconds", "pid"]
    {
        assert!(by_name("foreign")[null].is_null(), "{null}");
    }
    assert_eq!(by_name("foreign")["outcome"], "passed");
    assert!(by_name("corrupt")["log_file"].is_null());
    let one = scene.tool("tb-status").args(["--json", "nobody"]).run().expect(4);
    assert!(one.stdout.is_empty());
}
