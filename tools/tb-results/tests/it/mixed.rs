//! Several runners in one log, and logs of none.

use crate::{FAILURES, HEAD, SHORT, bar, failing, four, known, of, rerun};
use tb_results::report::Verdict;

const CARGO: &str = "     Running unittests src/lib.rs (target/debug/deps/shop-50)

running 2 tests
test tests::adds ... ok
test tests::totals ... FAILED

failures:
    tests::totals

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `--lib`
";
const GO: &str = "--- FAIL: TestBad (0.00s)\nFAIL\nFAIL\texample.com/a\t0.005s\nFAIL\n";
const JEST: &str = "FAIL ./a.test.js\n  ● cart\n\n    Error: x\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 2 passed, 3 total\nTime:        1.3 s\n";

fn pytest() -> String {
    format!(
        "{HEAD}t.py .F                                                                   [100%]\n\n{FAILURES}E   x\n{SHORT}FAILED t.py::test_a - assert 0\n{}",
        bar("1 failed, 1 passed in 1.25s")
    )
}

#[test]
fn each_runner_of_a_mixed_repository_is_found() {
    let log =
        format!("make -C py test\n{}make: *** [Makefile:3: py] Error 1\n{CARGO}npm test\n{JEST}", pytest());
    let report = of(log);
    let runners: Vec<&str> = report.sessions.iter().map(|s| s.runner).collect();
    assert_eq!(runners, ["pytest", "cargo-test", "jest"]);
    assert_eq!(report.runner(), Some("mixed"));
    assert_eq!(four(&report.counts()), known([4, 3, 0, 0]));
    assert_eq!(failing(&report), Some(vec!["t.py::test_a", "tests::totals", "cart"]));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
    assert_eq!(rerun(&report).len(), 3);
}

#[test]
fn people_are_told_whose_output_it_was_taken_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let says = |log: &str| {
        let path = dir.path().join("a.log");
        std::fs::write(&path, log).expect("a file");
        let mut tool = std::process::Command::new(env!("CARGO_BIN_EXE_tb-results"));
        let out = tool.current_dir(dir.path()).arg("a.log").output().expect("it runs");
        String::from_utf8(out.stdout).expect("UTF-8")
    };
    assert_eq!(
        says(CARGO),
        "a.log: 1 passed, 1 failed, 0 skipped, 0 errors\nFAILED tests::totals\nNOTE read as output of cargo-test\n"
    );
    let mixed = says(&format!("{CARGO}{JEST}"));
    assert!(
        mixed.contains("NOTE cargo-test: 1 passed, 1 failed")
            && mixed.contains("NOTE jest: 2 passed, 1 failed")
    );
    assert!(!says(&pytest()).contains("NOTE"));
    assert!(says("hello\n").contains("FAULT no test runner's output was found in it"));
}

#[test]
fn what_one_cannot_tell_the_sum_cannot_either() {
    let report = of(format!("{CARGO}{GO}{}", pytest()));
    let runners: Vec<&str> = report.sessions.iter().map(|s| s.runner).collect();
    assert_eq!(runners, ["cargo-test", "go", "pytest"]);
    assert_eq!(four(&report.counts()), [None, Some(3), None, Some(0)]);
}

#[test]
fn a_runner_that_died_does_not_hide_the_next() {
    let dead = "running 4 tests\ntest a ... ok\ntest b ... error: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit successfully: `/x` (signal: 11, SIGSEGV: invalid memory reference)\n";
    let report = of(format!("{dead}make: *** [Makefile:3: rust] Error 101\n{}", pytest()));
    assert_eq!(report.sessions.len(), 2);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Mixed), false));
}

#[test]
fn very_many_runs_in_one_log_keep_their_sums_names_and_verdict_and_not_themselves() {
    let crash = crate::died::crashed(false);
    let passed = bar("2 passed, 1 skipped in 0.50s");
    let passed = format!("{HEAD}t.py ..s                                   [100%]\n\n{passed}");
    let log = |middle: &str| {
        let end = format!("{passed}{CARGO}").repeat(1500);
        format!("{end}{middle}{end}")
    };
    let report = of(log(&pytest()));
    assert_eq!(report.sessions.iter().map(tb_results::report::Session::runs).sum::<u64>(), 6001);
    assert!(report.sessions.len() <= 400, "{}", report.sessions.len());
    // Far from both ends: a test that only this run names.
    assert_eq!(failing(&report), Some(vec!["tests::totals", "t.py::test_a"]));
    assert_eq!(four(&report.counts()), known([3000 * 2 + 3000 + 1, 3000 + 1, 3000, 0]));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
    let gathered = report.sessions.iter().filter(|s| s.runs() > 1).map(|s| s.runner);
    assert_eq!(gathered.collect::<Vec<_>>(), ["pytest", "cargo-test"]);

    let report = of(log(&crash));
    assert_eq!(report.verdict(), Some(Verdict::Mixed));
    assert_eq!(report.sessions.iter().flat_map(|s| &s.crashed_workers).collect::<Vec<_>>(), ["gw0"]);
    assert_eq!(
        report.sessions.iter().map(|s| s.faults.len()).sum::<usize>(),
        of(&crash).sessions[0].faults.len()
    );
}

#[test]
fn what_is_told_beside_the_tests_has_a_bound() {
    let report = of("1..5\nok 1 - x\nBail out!  database gone\n".repeat(5000));
    let told = report.sessions.iter().map(|s| s.faults.len()).sum::<usize>();
    assert!((1..=1000).contains(&told), "{told}");
}

#[test]
fn what_pytests_tests_print_is_nobody_elses() {
    let log = pytest().replace("E   x\n", &format!("{CARGO}{GO}{JEST}"));
    let report = of(log);
    assert_eq!(report.sessions.len(), 1);
    assert_eq!(four(&report.counts()), known([1, 1, 0, 0]));
}

#[test]
fn a_log_that_is_nobodys_is_said_to_be_so() {
    for log in [
        "",
        "hello\n",
        "make: Nothing to be done for 'test'.\n",
        "ok\nfine\nPASS\nFAIL\n",
        "Tests passed: 5\n1 failed\n",
    ] {
        let report = of(log);
        assert!(report.sessions.is_empty(), "{log}");
        assert_eq!((report.runner(), four(&report.counts()), failing(&report)), (None, [None; 4], None));
    }
}

#[test]
fn the_jobs_command_decides_where_the_log_alone_does_not() {
    let job = |command: &str, output: &str| {
        of(format!(
            "=== GATE LAUNCH: {{\"v\":1,\"job\":\"a1\",\"name\":\"t\",\"pid\":7,\"command\":{command}}} ===\n{output}"
        ))
    };
    let report = job(r#"["python","-m","unittest"]"#, "..F\n");
    assert_eq!((report.runner(), four(&report.counts())), (Some("unittest"), known([2, 1, 0, 0])));
    let report = job(r#"["bundle","exec","rspec"]"#, "..F\n");
    assert_eq!((report.runner(), four(&report.counts())), (Some("rspec"), known([2, 1, 0, 0])));
}
