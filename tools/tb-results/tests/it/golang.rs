//! go test.

use crate::{Want, failing, four, known, of, rerun};
use tb_results::report::Verdict;

const VERBOSE: &str = "=== RUN   TestOk
glued--- PASS: TestOk (0.00s)
=== RUN   TestBad
=== RUN   TestBad/sub_one
    a_test.go:4: no
=== RUN   TestBad/fine
--- FAIL: TestBad (0.00s)
    --- FAIL: TestBad/sub_one (0.00s)
    --- PASS: TestBad/fine (0.00s)
=== RUN   TestSkip
    a_test.go:5: x
--- SKIP: TestSkip (0.00s)
";
const FAILED: &str = "FAIL\nFAIL\texample.com/shop/a\t0.005s\nFAIL\n";
const IDS: &[&str] = &["example.com/shop/a.TestBad", "example.com/shop/a.TestBad/sub_one"];

fn want(counts: [Option<u64>; 4]) -> Want<'static> {
    Want { runner: "go", counts, failing: Some(IDS), verdict: Verdict::Fail, complete: true }
}

#[test]
fn parents_and_subtests_both_count() {
    let report = want(known([2, 2, 1, 0])).of(format!("{VERBOSE}{FAILED}"));
    assert_eq!(
        rerun(&report),
        ["go test '-count=1' '-p=1' '-parallel=1' -run '^TestBad$/''^sub_one$' example.com/shop/a"]
    );
    let failing = report.failing().unwrap();
    assert_eq!(failing[1].place, Some(("a_test.go".to_owned(), 4)));
}

#[test]
fn without_v_nobody_counts_what_passed() {
    let log = "--- FAIL: TestBad (0.00s)\n    --- FAIL: TestBad/sub_one (0.00s)\n        a_test.go:4: no\nFAIL\nFAIL\texample.com/shop/a\t0.005s\nok  \texample.com/shop/b\t0.002s\nFAIL\n";
    want([None, Some(2), None, Some(0)]).of(log);
}

#[test]
fn what_a_test_prints_is_no_result() {
    // In a package that is ok, and of a test that was not announced.
    let report = of("--- FAIL: TestFake (0.00s)\nFAIL\nok  \texample.com/b\t0.1s\n");
    assert_eq!((report.verdict(), failing(&report)), (Some(Verdict::Pass), Some(vec![])));
    let log = format!("{}{FAILED}", VERBOSE.replace("glued", "--- FAIL: TestFake (0.00s)\n"));
    want(known([2, 2, 1, 0])).of(log);
}

#[test]
fn a_package_that_does_not_build_is_an_error() {
    let log = format!(
        "# example.com/c\nc/c.go:3: undefined: x\nFAIL\texample.com/c [build failed]\n{VERBOSE}{FAILED}"
    );
    want(known([2, 2, 1, 1])).of(log);
    let report = of("FAIL\texample.com/c [build failed]\nFAIL\n");
    assert_eq!(report.verdict(), Some(Verdict::BuildError));
}

#[test]
fn a_test_that_ends_the_process_leaves_it_without_a_result() {
    let log = format!("{VERBOSE}=== RUN   TestExit\n{FAILED}");
    let report = Want { verdict: Verdict::Mixed, ..want(known([2, 2, 1, 0])) }.of(log);
    assert_eq!(report.sessions[0].unfinished, ["example.com/shop/a.TestExit"]);
}

#[test]
fn a_timeout_names_what_was_running() {
    let log = "=== RUN   TestOk\n--- PASS: TestOk (0.00s)\n=== RUN   TestHang\npanic: test timed out after 1s\n\trunning tests:\n\t\tTestHang (1s)\n\ngoroutine 17 [running]:\nFAIL\texample.com/t\t1.0s\nFAIL\n";
    let report = of(log);
    assert_eq!((report.verdict(), four(&report.counts())), (Some(Verdict::Infra), known([1, 0, 0, 0])));
    assert_eq!(report.sessions[0].unfinished, ["example.com/t.TestHang"]);
    assert!(report.complete());
}

#[test]
fn a_panic_in_a_test_is_that_tests_failure() {
    let log = "=== RUN   TestBoom\n--- FAIL: TestBoom (0.00s)\npanic: no map [recovered]\n\tpanic: no map\n\ngoroutine 7 [running]:\nFAIL\texample.com/p\t0.006s\nFAIL\n";
    let report = of(log);
    assert_eq!(
        (report.verdict(), failing(&report)),
        (Some(Verdict::Fail), Some(vec!["example.com/p.TestBoom"]))
    );
}

#[test]
fn json_is_read_by_its_text_package_by_package() {
    let mut log = "# stderr of the build\n".to_owned();
    for line in VERBOSE.lines().chain(["FAIL", "FAIL\texample.com/shop/a\t0.005s"]) {
        let text = serde_json::to_string(&format!("{line}\n")).unwrap();
        log.push_str(&format!(
            "{{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"output\",\"Package\":\"example.com/shop/a\",\"Output\":{text}}}\n"
        ));
        // Another package's lines in between.
        log.push_str("{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"output\",\"Package\":\"example.com/b\",\"Test\":\"TestB\",\"Output\":\"=== RUN   TestB\\n\"}\n");
    }
    log.push_str("{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"output\",\"Package\":\"example.com/b\",\"Test\":\"TestB\",\"Output\":\"--- PASS: TestB (0.00s)\\n\"}\n");
    log.push_str("{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"pass\",\"Package\":\"example.com/b\",\"Elapsed\":0.1}\n");
    log.push_str("{\"Time\":\"2026-01-01T00:00:00Z\",\"Action\":\"fail\",\"Package\":\"example.com/shop/a\",\"Elapsed\":0.1}\n");
    want(known([3, 2, 1, 0])).of(log);
}

#[test]
fn no_tests_are_no_pass() {
    assert_eq!(of("ok  \texample.com/g\t0.005s [no tests to run]\n").verdict(), Some(Verdict::NoTests));
    assert_eq!(
        of("?   \texample.com/g\t[no test files]\nok  \texample.com/h\t(cached)\n").verdict(),
        Some(Verdict::Pass)
    );
}

#[test]
fn a_log_that_was_cut_is_not_complete() {
    let report = of(&VERBOSE[..VERBOSE.find("=== RUN   TestSkip").unwrap()]);
    assert_eq!((report.verdict(), four(&report.counts())), (Some(Verdict::Mixed), known([2, 2, 0, 0])));
    assert_eq!(failing(&report), Some(vec!["TestBad", "TestBad/sub_one"]), "the package is told at its end");
    let report = of("=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n");
    assert_eq!(
        (report.sessions[0].unfinished.as_slice(), report.complete()),
        (&["TestB".to_owned()][..], false)
    );
}
