//! The command line: modes, sources, exit codes.

use crate::{FAILURES, HEAD, SHORT, bar};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn log() -> String {
    format!(
        "{HEAD}t.py .F.F                                                                [100%]\n\n{FAILURES}\
         _________________________________ test_a[x y] __________________________________\n\
         E       KeyError: 'k'\n\nt.py:3: KeyError\n\
         ____________________________________ test_b ____________________________________\n\
         E       assert 0\n\nt.py:9: AssertionError\n{}0.30s call     t.py::test_b\n{SHORT}\
         FAILED t.py::test_a[x y] - KeyError: 'k'\nFAILED t.py::test_b - assert 0\n{}",
        bar("slowest 1 durations"),
        bar("2 failed, 2 passed in 1.25s")
    )
}

fn tool(args: &[&str], dir: &Path, stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tb-results"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    // It may not want its input.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin);
    child.wait_with_output().expect("the tool ends")
}

struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new() -> Case {
        let case = Case { dir: tempfile::tempdir().expect("a directory") };
        case.write("a.log", &log());
        case
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).expect("a file");
    }

    #[track_caller]
    fn says(&self, args: &[&str], code: i32) -> String {
        let out = tool(args, self.dir.path(), b"");
        assert_eq!(out.status.code(), Some(code), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("UTF-8")
    }
}

#[test]
fn the_usual_answer() {
    assert_eq!(
        Case::new().says(&["a.log"], 1),
        "a.log: 2 passed, 2 failed, 0 skipped, 0 errors in 1.2s\nFAILED t.py::test_a[x y] (KeyError)\nFAILED t.py::test_b (AssertionError)\n"
    );
}

#[test]
fn failed_errors_slowest_rerun() {
    let case = Case::new();
    assert_eq!(case.says(&["--failed", "a.log"], 1), "t.py::test_a[x y]\nt.py::test_b\n");
    assert_eq!(
        case.says(&["--errors", "a.log"], 1),
        "    1 AssertionError  t.py:9\n    1 KeyError  t.py:3\n"
    );
    assert_eq!(case.says(&["--slowest", "5", "a.log"], 1), "    0.30s call     t.py::test_b\n");
    assert_eq!(case.says(&["--rerun", "a.log"], 1), "pytest 't.py::test_a[x y]' t.py::test_b\n");
}

#[test]
fn rerun_keeps_the_interpreter_and_drops_the_crowd() {
    let case = Case::new();
    case.write(
        "b.log",
        &format!(
            "=== GATE LAUNCH: {{\"v\":1,\"job\":\"a1\",\"name\":\"t\",\"pid\":7,\"command\":[\".venv/bin/python\",\"-m\",\"pytest\",\"-n\",\"4\",\"t.py\"]}} ===\n\
             {HEAD}4 workers [4 items]\n\n..FF                                          [100%]\n{SHORT}FAILED t.py::test_b - assert 0\nFAILED t.py::test_c - assert 0\n{}\
             === GATE RESULT: {{\"v\":1,\"job\":\"a1\",\"outcome\":\"failed\",\"exit_code\":1,\"signal\":null,\"reason\":\"exit\",\"header\":{{\"v\":1,\"job\":\"a1\",\"name\":\"t\",\"pid\":7,\"command\":[\".venv/bin/python\",\"-m\",\"pytest\",\"-n\",\"4\",\"t.py\"]}}}} ===\n=== GATE: FAILED ===\n",
            bar("2 failed, 2 passed in 1.25s")
        ),
    );
    assert_eq!(
        case.says(&["--rerun", "b.log"], 1),
        ".venv/bin/python -m pytest -n0 t.py::test_b t.py::test_c\n"
    );
}

#[test]
fn json_has_the_fields_and_null_for_what_is_unknown() {
    let case = Case::new();
    let json: serde_json::Value =
        serde_json::from_str(&case.says(&["--json", "--keep", "a.log"], 1)).expect("JSON");
    assert_eq!(json["v"], 1);
    assert_eq!((&json["passed"], &json["failed"], &json["verdict"]), (&2.into(), &2.into(), &"fail".into()));
    assert_eq!(json["failing"][0]["error_class"], "KeyError");
    assert_eq!(json["slowest"][0]["seconds"], 0.3);
    assert!(json["exit_code"].is_null() && json.get("raw_output").is_none());
    case.write("cut.log", &format!("{HEAD}t.py .F"));
    let json: serde_json::Value = serde_json::from_str(&case.says(&["--json", "cut.log"], 5)).expect("JSON");
    assert!(json["duration_seconds"].is_null() && json["warnings"].is_null());
    assert_eq!((&json["complete"], &json["verdict"]), (&false.into(), &"mixed".into()));
    let json: serde_json::Value =
        serde_json::from_str(&case.says(&["--json", "--raw", "a.log"], 1)).expect("JSON");
    assert_eq!(json["raw_output"], log());
}

#[test]
fn report_has_four_fields_and_the_last_lines() {
    let text = Case::new().says(&["--report", "a.log"], 1);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "TESTFILE: a.log",
            "RESULT: FAIL",
            "SUMMARY: 2 passed, 2 failed, 0 skipped, 0 errors in 1.2s",
            "EVIDENCE:"
        ]
    );
    assert_eq!(lines.len(), 14);
    assert!(lines[13].starts_with("  ===") && lines[13].contains("2 failed, 2 passed"));
}

#[test]
fn junit_is_well_formed_and_tells_the_same() {
    let xml = Case::new().says(&["--junit", "a.log"], 1);
    assert!(xml.starts_with("<?xml"), "{xml}");
    for part in [
        "<testsuite name=\"a.log\" tests=\"4\"",
        "errors=\"0\" failures=\"2\"",
        "<testcase name=\"test_a[x y]\" classname=\"t\"",
        "type=\"KeyError\"",
    ] {
        assert!(xml.contains(part), "{part} in {xml}");
    }
}

#[test]
fn diff_of_two_logs_and_of_a_jobs_last_two() {
    let case = Case::new();
    let newer = log()
        .replace("FAILED t.py::test_a[x y] - KeyError: 'k'", "FAILED t.py::test_c - OSError: x")
        .replace("AssertionError\n", "ValueError\n")
        .replace("test_a[x y] ____", "test_c ____");
    let want = "newly failing: t.py::test_c\nfixed: t.py::test_a[x y]\nfailing differently: t.py::test_b (AssertionError, now ValueError)\n";
    case.write("b.log", &newer);
    assert_eq!(case.says(&["--diff", "a.log", "b.log"], 1), want);
    case.write("test-t_py-20260101_000000.log", &log());
    case.write("test-t_py-20260101_000000-2.log", &newer);
    case.write("test-t_py-x-20260101_000001.log", "");
    assert_eq!(case.says(&["--diff", "test-t_py-20260101_000000-2.log"], 1), want);
    case.says(&["--diff", "test-t_py-20260101_000000.log"], 2);
}

#[test]
fn grep_shows_the_surroundings() {
    let text = Case::new().says(&["--grep", "KeyError", "a.log"], 1);
    assert!(text.contains("E       KeyError: 'k'\n") && text.contains("FAILED t.py::test_a[x y]"), "{text}");
}

#[test]
fn annotations_for_github() {
    assert_eq!(
        Case::new().says(&["--annotate", "github", "a.log"], 1),
        "::error file=t.py,line=3,title=t.py%3A%3Atest_a[x y]::KeyError: 'k'\n::error file=t.py,line=9,title=t.py%3A%3Atest_b::assert 0\n"
    );
}

#[test]
fn a_log_comes_by_name_by_path_or_through_a_pipe() {
    let case = Case::new();
    case.write("out.txt", &log());
    assert!(case.says(&["--file", "out.txt"], 1).starts_with("out.txt: 2 passed"));
    let failure = tool(&["out.txt"], case.dir.path(), b"");
    assert_eq!(failure.status.code(), Some(4));
    let said = String::from_utf8(failure.stderr).expect("UTF-8");
    assert!(
        said.starts_with("tb-results: cannot read the results of out.txt: no such job is tracked\n"),
        "{said}"
    );
    let piped = tool(&["-"], case.dir.path(), log().as_bytes());
    assert!(String::from_utf8_lossy(&piped.stdout).starts_with("-: 2 passed"));
    let names = tool(&["--stdin-names", "-0", "--failed"], case.dir.path(), b"a.log\0a.log\0");
    assert_eq!(String::from_utf8_lossy(&names.stdout).lines().count(), 4);
}

#[test]
fn one_wrong_name_does_not_hide_the_others() {
    let case = Case::new();
    let out = tool(&["nope.log", "a.log"], case.dir.path(), b"");
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("a.log: 2 passed"));
    assert!(String::from_utf8_lossy(&out.stderr).contains("nope.log"));
}

#[test]
fn wrong_usage_is_said_and_is_2() {
    let case = Case::new();
    for args in [
        &[][..],
        &["--failed", "--errors", "a.log"],
        &["--format", "nope", "a.log"],
        &["--file", "missing.log"],
    ] {
        let out = tool(args, case.dir.path(), b"");
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&out.stderr).starts_with("tb-results: cannot "), "{args:?}");
    }
}

#[test]
fn crashed_workers_come_with_advice() {
    let case = Case::new();
    case.write(
        "c.log",
        &format!(
            "{HEAD}2 workers [2 items]\n\n.[gw0] node down: Not properly terminated\nF                                    [100%]\n\n{FAILURES}\
             _____________________________________ t.py _____________________________________\n[gw0] linux -- Python 3.11.7 /p\n\
             worker 'gw0' crashed while running 't.py::test_die'\n{SHORT}FAILED t.py::test_die\n{}",
            bar("1 failed, 1 passed in 1.25s")
        ),
    );
    assert_eq!(
        case.says(&["c.log"], 1),
        "c.log: 1 passed, 1 failed, 0 skipped, 0 errors in 1.2s [infra]\nCRASHED t.py::test_die (gw0)\n\
         FAULT worker gw0 died: Not properly terminated\n\
         NOTE a worker died: run the slice again, serially: pytest -n0 t.py::test_die\n"
    );
}
