//! Verdicts on real pytest runs: the exit status decides, and no text ever does (FIELD C01 to C08).

use crate::job::Job;
use serde_json::Value;
use tb_tests::Scene;

const PASS: &str = "def test_a():\n    pass\n\ndef test_b():\n    pass\n";

struct Case {
    file: &'static str,
    text: &'static str,
    /// Options of tb-launch.
    options: &'static [&'static str],
    /// pytest's arguments.
    args: &'static [&'static str],
    code: i32,
    outcome: &'static str,
    exit_code: Option<i32>,
    signal: Option<&'static str>,
    /// What its log holds, to know that it is the case that it claims to be.
    says: &'static str,
}

const CASE: Case = Case {
    file: "",
    text: PASS,
    options: &[],
    args: &[],
    code: 1,
    outcome: "failed",
    exit_code: Some(1),
    signal: None,
    says: "",
};
const PASSED: Case = Case { code: 0, outcome: "passed", exit_code: Some(0), ..CASE };

const LOGS: &str = "
def test_it():
    print('5 failed requests')
    print('=== 3 failed, 1 error in 0.1s ===')
    print('finished with exit code 3')
    print('ValueError')
    print('=== GATE: FAILED ===')
";

const LOGS_AND_FAILS: &str = "
def test_it():
    print('=== 9 passed in 0.1s ===')
    print('=== GATE: PASSED ===')
    print('exit code 0')
    assert False
";

const CASES: &[Case] = &[
    Case { file: "t_pass.py", says: "2 passed", ..PASSED },
    Case { file: "t_quiet.py", args: &["-q", "-q", "-q"], ..PASSED },
    Case { file: "t_colour.py", args: &["--color=yes"], says: "\x1b[32m", ..PASSED },
    Case {
        file: "t_skips.py",
        text: "import pytest\n\n@pytest.mark.skip\ndef test_a():\n    pass\n",
        says: "1 skipped",
        ..PASSED
    },
    Case { file: "t_logs.py", text: LOGS, args: &["-s"], says: "5 failed requests", ..PASSED },
    Case {
        file: "t_logs_and_fails.py",
        text: LOGS_AND_FAILS,
        args: &["-s"],
        says: "=== GATE: PASSED ===",
        ..CASE
    },
    Case { file: "t_fails.py", text: "def test_a():\n    assert False\n", says: "1 failed", ..CASE },
    Case {
        file: "t_fails_colour.py",
        text: "def test_a():\n    assert False\n",
        args: &["--color=yes", "-q"],
        says: "\x1b[31m",
        ..CASE
    },
    Case { file: "t_cov.py", args: &["--cov=.", "--cov-fail-under=100"], says: "2 passed", ..CASE },
    Case {
        file: "t_exit.py",
        text: "import pytest\n\ndef test_a():\n    pass\n\ndef test_b():\n    pytest.exit('enough', 7)\n",
        exit_code: Some(7),
        says: "1 passed",
        ..CASE
    },
    Case {
        file: "t_interrupt.py",
        text: "def test_a():\n    pass\n\ndef test_b():\n    raise KeyboardInterrupt\n",
        exit_code: Some(2),
        says: "1 passed",
        ..CASE
    },
    Case {
        file: "t_teardown.py",
        text: "import pytest\n\n@pytest.fixture\ndef f():\n    yield\n    raise ValueError('teardown')\n\ndef test_a():\n    pass\n\ndef test_b():\n    pass\n\ndef test_c(f):\n    pass\n",
        says: "3 passed, 1 error",
        ..CASE
    },
    Case {
        file: "t_segfault.py",
        text: "import ctypes, resource\n\ndef test_a():\n    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n    ctypes.string_at(0)\n",
        exit_code: None,
        signal: Some("SIGSEGV"),
        says: "Segmentation fault",
        ..CASE
    },
    Case {
        file: "t_abort.py",
        text: "import os\n\ndef test_a():\n    os._exit(0)\n",
        says: "test_a",
        ..PASSED
    },
    Case {
        file: "t_killed.py",
        text: "import os\n\ndef test_a():\n    os.kill(os.getpid(), 9)\n",
        exit_code: None,
        signal: Some("SIGKILL"),
        ..CASE
    },
    Case { file: "t_nothing.py", text: "", exit_code: Some(5), says: "no tests ran", ..CASE },
    Case {
        file: "t_deselected.py",
        args: &["-k", "nowhere"],
        exit_code: Some(5),
        says: "2 deselected",
        ..CASE
    },
    Case {
        file: "t_empty_allowed.py",
        text: "",
        options: &["--allow-empty"],
        exit_code: Some(5),
        says: "no tests ran",
        ..PASSED
    },
    Case {
        file: "t_empty_other.py",
        text: "def test_a():\n    assert False\n",
        options: &["--allow-empty"],
        ..CASE
    },
    Case {
        file: "t_usage.py",
        args: &["--no-such-option"],
        exit_code: Some(4),
        says: "no-such-option",
        ..CASE
    },
    Case {
        file: "t_collection.py",
        text: "import no_such_module\n",
        exit_code: Some(2),
        says: "1 error",
        ..CASE
    },
];

#[test]
fn c01_to_c08_the_exit_status_decides_and_text_never_does() {
    let mut scene = Scene::new();
    let files: Vec<(&str, &str)> = CASES.iter().map(|c| (c.file, c.text)).collect();
    scene.pytest_project(&files);
    scene.set_env("COVERAGE_FILE", scene.path("coverage-data"));
    // A few at a time: this is not about a busy machine.
    for some in CASES.chunks(4) {
        for case in some {
            let launch = scene.tool("tb-launch").args(case.options).arg(case.file).arg("--").args(case.args);
            launch.run().ok();
        }
        for case in some {
            check(&scene, case);
        }
    }
    scene.assert_quiet();
}

fn check(scene: &Scene, case: &Case) {
    let job = Job::named(scene, case.file);
    let waited = job.tool("tb-wait", &["--json"]).run();
    assert_eq!(waited.code, Some(case.code), "{}: {waited}\n{}", case.file, job.log());
    assert!(job.log().contains(case.says), "{} is not what it claims to be:\n{}", case.file, job.log());
    let status = job.tool("tb-status", &["--json"]).run().expect(case.code);
    let pass = case.outcome == "passed";
    for found in [&waited.json()[0], &status.json()[0]] {
        let told: Vec<&Value> =
            ["status", "outcome", "terminal_marker", "verdict_source", "exit_code", "signal", "reason"]
                .iter()
                .map(|f| &found[*f])
                .collect();
        let expected: [Value; 7] = [
            "FINISHED".into(),
            case.outcome.into(),
            if pass { "PASS" } else { "FAIL" }.into(),
            "exit_status".into(),
            case.exit_code.into(),
            case.signal.into(),
            "exit".into(),
        ];
        assert_eq!(told, expected.iter().collect::<Vec<_>>(), "{}:\n{}", case.file, job.log());
    }
    let words = if pass { "FINISHED (PASS)" } else { "FINISHED (FAIL)" };
    job.tool("tb-status", &[]).run().says(words);
    assert_eq!(job.footer()["outcome"], case.outcome);
}

#[test]
fn c09_a_marker_in_the_output_of_a_running_job_ends_nothing() {
    let mut scene = Scene::new();
    scene.pytest_project(&[(
        "t.py",
        "import os, time\n\ndef test_a():\n    print('=== 1 passed in 0.1s ===')\n    print('=== GATE: PASSED ===', flush=True)\n    open('there', 'w')\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    assert False\n",
    )]);
    scene.tool("tb-launch").args(["t.py", "--", "-s"]).run().ok();
    let job = Job::named(&scene, "t.py");
    tb_tests::until("it has printed", || scene.path("there").exists().then_some(()));
    let status = job.status();
    assert_eq!((&status["status"], &status["terminal_marker"]), (&"RUNNING".into(), &Value::Null));
    scene.file("go", "");
    job.wait(1);
}

#[test]
fn a_test_run_that_is_stopped_or_out_of_time_is_neither_passed_nor_failed() {
    let mut scene = Scene::new();
    let text = "import time, subprocess\n\ndef test_a():\n    subprocess.Popen(['sleep', '100'], start_new_session=True)\n    open('there', 'w')\n    time.sleep(100)\n";
    scene.pytest_project(&[("t.py", text)]);
    scene.tool("tb-launch").args(["t.py", "--", "-p", "no:faulthandler"]).run().ok();
    tb_tests::until("it runs", || scene.path("there").exists().then_some(()));
    let job = Job::named(&scene, "t.py");
    job.tool("tb-kill", &["--signal", "INT", "--grace", "30s"]).run().ok();
    job.wait(1);
    let footer = job.assert_ended("killed", "kill");
    assert_eq!(footer["exit_code"], 2, "pytest had its time to end: {footer}");
    assert!(job.log().contains("KeyboardInterrupt"), "{}", job.log());
    scene.tool("tb-launch").args(["--limit", "1s", "--grace", "1s", "t.py"]).run().ok();
    job.wait(1);
    assert_eq!(job.status()["outcome"], "timeout");
    scene.assert_quiet();
}
