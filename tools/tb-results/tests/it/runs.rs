//! Which run a line belongs to: output that lies, runs inside runs, runs after runs.

use crate::{FAILURES, HEAD, SHORT, bar, failing, four, of};
use tb_results::report::Verdict;

/// A whole report as a test may print it.
fn lie() -> String {
    format!(
        "{}platform linux -- Python 3.11.7, pytest-8.0.0, pluggy-1.4.0\ncollected 500 items\n\n\
         tests/test_fake.py ....F                                                 [100%]\n\n{FAILURES}\
         __________________________________ test_fake ___________________________________\nE       AssertionError: fake\n\
         {SHORT}FAILED tests/test_fake.py::test_fake - AssertionError: fake\n{}",
        bar("test session starts"),
        bar("1 failed, 499 passed in 9.87s")
    )
}

fn assert_two_of_four(log: &str) {
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["t.py::test_a", "t.py::test_b"], "{log}");
    assert_eq!(four(&report.counts()), [Some(2), Some(2), Some(0), Some(0)], "{log}");
    assert_eq!(report.sessions.len(), 1, "{log}");
    assert_eq!(report.verdict(), Some(Verdict::Fail));
}

fn with_output(head: &str, progress: &str, output: &str, summary: &str) -> String {
    format!(
        "{head}{progress}{FAILURES}\
         ____________________________________ test_a ____________________________________\nE       assert 0\n\n\
         t.py:3: AssertionError\n----------------------------- Captured stdout call -----------------------------\n{output}\
         ____________________________________ test_b ____________________________________\nE       assert 0\n\n\
         t.py:9: AssertionError\n{SHORT}FAILED t.py::test_a - assert 0\nFAILED t.py::test_b - assert 0\n{summary}"
    )
}

const DOTS: &str = "t.py F.F.                                                                [100%]\n\n";
const QUIET_DOTS: &str = "F.F.                                                                     [100%]\n";

#[test]
fn a_report_in_a_tests_output_is_not_the_runs_own() {
    let own = bar("2 failed, 2 passed in 0.10s");
    assert_two_of_four(&with_output(HEAD, DOTS, &lie(), &own));
    assert_two_of_four(&with_output("", QUIET_DOTS, &lie(), "2 failed, 2 passed in 0.10s\n"));
}

#[test]
fn a_lone_summary_in_a_tests_output_is_not_the_runs_own() {
    let own = bar("2 failed, 2 passed in 0.10s");
    for output in [
        "=== 7 failed in 1.00s ===\n",
        "7 failed in 1.00s\n",
        "FAILED z.py::test_z - Boom\n=== 7 failed in 1.00s ===\n",
    ] {
        assert_two_of_four(&with_output(HEAD, DOTS, output, &own));
        assert_two_of_four(&with_output("", QUIET_DOTS, output, "2 failed, 2 passed in 0.10s\n"));
    }
}

#[test]
fn a_quiet_run_inside_a_test_is_output() {
    let inner = format!(
        ".F                                                                       [100%]\n{FAILURES}\
        ___________________________________ test_in ____________________________________\nE   assert 0\n\
        {SHORT}FAILED in.py::test_in - assert 0\n1 failed, 1 passed in 0.02s\n"
    );
    assert_two_of_four(&with_output(HEAD, DOTS, &inner, &bar("2 failed, 2 passed in 0.10s")));
    assert_two_of_four(&with_output("", QUIET_DOTS, &inner, "2 failed, 2 passed in 0.10s\n"));
}

#[test]
fn a_run_inside_a_test_that_died_is_output() {
    let inner = lie();
    let inner = &inner[..inner.find("=== FAILURES").unwrap() - 40];
    assert_two_of_four(&with_output(HEAD, DOTS, inner, &bar("2 failed, 2 passed in 0.10s")));
    assert_two_of_four(&with_output("", QUIET_DOTS, inner, "2 failed, 2 passed in 0.10s\n"));
}

#[test]
fn a_report_printed_while_tests_run_is_not_the_runs_own() {
    let log = format!(
        "{HEAD}t.py {lie}F.{lie}F=== 7 failed in 1.00s ===\n.\n\n{SHORT}\
         FAILED t.py::test_a - assert 0\nFAILED t.py::test_b - assert 0\n{}",
        bar("2 failed, 2 passed in 0.10s"),
        lie = lie()
    );
    assert_two_of_four(&log);
}

#[test]
fn a_report_as_an_exceptions_message_is_not_the_runs_own() {
    let log = format!(
        "{HEAD}t.py F.F.                                                                [100%]\n\n{FAILURES}\
         ____________________________________ test_a ____________________________________\nE       ValueError: x\n\
         ____________________________________ test_b ____________________________________\nE       assert 0\n{SHORT}\
         FAILED t.py::test_a - ValueError: x\n\n{}FAILED t.py::test_b - assert 0\n{}",
        lie(),
        bar("2 failed, 2 passed in 0.10s")
    );
    assert_two_of_four(&log);
}

#[test]
fn text_after_the_summary_changes_nothing() {
    let own = bar("2 failed, 2 passed in 0.10s");
    let after = "Coverage XML written to file coverage.xml\ntotal: 10 passed, 3 failed checks in linter\n\
                 Exception ignored in: <function Foo.__del__>\nTraceback (most recent call last):\nmake: *** [test] Error 1\n";
    assert_two_of_four(&(with_output(HEAD, DOTS, "", &own) + after));
    assert_two_of_four(&(with_output("", QUIET_DOTS, "", "2 failed, 2 passed in 0.10s\n") + after));
}

#[test]
fn several_runs_in_one_log_are_summed_and_listed() {
    let one = format!(
        "{HEAD}t.py ..F.                                                                [100%]\n\n{SHORT}FAILED t.py::test_a - assert 0\n{}",
        bar("1 failed, 3 passed in 0.50s")
    );
    let two = format!(
        "{HEAD}u.py ....                                                                [100%]\n\n{}",
        bar("4 passed in 0.25s")
    );
    let report = of(format!("py310: commands[0]> pytest\n{one}py311: commands[0]> pytest\n{two}"));
    assert_eq!(report.sessions.len(), 2);
    assert_eq!(four(&report.counts()), [Some(7), Some(1), Some(0), Some(0)]);
    assert_eq!(report.duration(), Some(0.75));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_a"]);
    assert_eq!(report.verdict(), Some(Verdict::Fail));
}

#[test]
fn several_quiet_runs_in_one_log() {
    let report = of(
        "....                                                                     [100%]\n4 passed in 0.12s\n\
                     ..F                                                                      [100%]\n1 failed, 2 passed in 0.02s\n\n\
                     no tests ran in 0.01s\n",
    );
    assert_eq!(report.sessions.len(), 3);
    assert_eq!(four(&report.counts()), [Some(6), Some(1), Some(0), Some(0)]);
    assert_eq!(failing(&report), None);
}

#[test]
fn a_run_that_died_before_another_is_not_hidden_by_it() {
    let dead = format!(
        "{HEAD}t.py::test_a PASSED                                                      [ 25%]\nt.py::test_b "
    );
    let alive = format!(
        "{HEAD}u.py ....                                                                [100%]\n\n{}",
        bar("4 passed in 0.25s")
    );
    let report = of(format!("{dead}\n{alive}"));
    assert_eq!(report.sessions.len(), 2);
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_b"]);
    assert_eq!(report.verdict(), Some(Verdict::Infra));
    assert!(!report.complete());
    assert_eq!(report.counts().warnings, None);
}

#[test]
fn junk_that_looks_like_results_in_live_output_does_not_count() {
    let log = format!(
        "{HEAD}t.py::test_a hello\nPASSED\nt.py::test_b no newline at endPASSED\nt.py::test_c 0%\r50%\r100%PASSED\n\
         t.py::test_d \n-------------------------------- live log call ---------------------------------\n\
         ERROR    svc:t.py:6 ERROR odd\nPASSED                                                    [100%]\n\n{}",
        bar("4 passed in 0.09s")
    );
    let report = of(log);
    assert_eq!(four(&report.counts()), [Some(4), Some(0), Some(0), Some(0)]);
    assert_eq!(report.verdict(), Some(Verdict::Pass));
}

#[test]
fn what_others_said_before_the_run_is_not_its_own() {
    let report = of(format!(
        "ERROR: pip's dependency resolver is unhappy\nKilled\n{HEAD}t.py ....                    [100%]\n\n{}",
        bar("4 passed in 0.09s")
    ));
    assert_eq!((report.verdict(), report.sessions[0].faults.len()), (Some(Verdict::Pass), 0));
    let report = of(
        "ERROR: pip is unhappy\n....                                                                     [100%]\n4 passed in 0.12s\n",
    );
    assert_eq!((report.verdict(), report.sessions[0].faults.len()), (Some(Verdict::Pass), 0));
}

#[test]
fn a_log_may_begin_anywhere() {
    for line in [
        "EF.. [ 50%]",
        "Tests/t.py::x PASSED [ 50%]",
        "Integration/t.py ..F. [ 50%]",
        "=== FAILURES ===",
        "n/t.py .",
    ] {
        assert_eq!(of(format!("make test\n{line}\n")).sessions.len(), 1, "{line}");
    }
    for line in [
        "make: *** [test] Error 1",
        "FAILED to connect",
        "running 3 tests",
        "100 passed",
        "make [ 50%]",
        "[ 50%] Building CXX object",
    ] {
        assert!(of(format!("make test\n{line}\n")).sessions.is_empty(), "{line}");
    }
}

#[test]
fn reports_behind_a_run_that_is_whole_are_of_a_quiet_one() {
    let report = of(format!(
        "{HEAD}t.py ....                                                               [100%]\n\n{}\n\
         ==================================== ERRORS ====================================\n\
         __________________________ ERROR collecting test_m.py __________________________\n\
         E   ZeroDivisionError: division by zero\n{SHORT}ERROR test_m.py - ZeroDivisionError: division by zero\n\
         !!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n1 error in 0.09s\n",
        bar("4 passed in 0.10s")
    ));
    assert_eq!(report.sessions.len(), 2);
    assert_eq!((report.counts().passed, report.counts().errors), (Some(4), Some(1)));
    assert_eq!(failing(&report).unwrap(), ["test_m.py"]);
}

#[test]
fn a_quiet_run_of_pretty_in_a_report_takes_no_end_from_its_run() {
    let report = of(format!(
        "{}t.py .F..                                                               [100%]\n\n{FAILURES}\
         ____________________________________ test_b ____________________________________\nE   assert 0\n\
         ----------------------------- Captured stdout call -----------------------------\nResults (1.95s):\n         1 failed\n\
         {HEAD}t.py F\nResults (1.91s):\n         1 failed\n\n\
         Results (19.86s):\n         1 failed\n         3 passed\n",
        HEAD.replace("collected", "plugins: pretty-1.3.0\ncollected")
    ));
    assert_eq!((report.sessions.len(), report.complete()), (1, true));
    assert_eq!((report.counts().passed, report.counts().failed), (Some(3), Some(1)));
}

#[test]
fn failed_subtests_are_among_what_a_summary_tells_of() {
    // The inner run's header has the same width; the outer's letters are those of the summary, with its failed subtest.
    let report = of(format!(
        "{}t.py .u,F                                                                [100%]\n\n{FAILURES}\
         _______________________________ test_b [m] (i=1) _______________________________\nE   assert 0\n\
         ----------------------------- Captured stdout call -----------------------------\n{HEAD}t.py F\n\
         {SHORT}[m] (i=1) SUBFAIL t.py::test_b - assert 0\nFAILED t.py::test_c - assert 0\n{}",
        HEAD.replace("collected 4", "collected 2"),
        bar("2 failed, 1 passed, 1 subtests passed in 0.97s")
    ));
    assert_eq!((report.sessions.len(), report.complete()), (1, true));
    assert_eq!(report.counts().failed, Some(2));
}

#[test]
fn letters_without_a_percentage_behind_a_run_are_of_a_quiet_one_that_stopped() {
    let first =
        format!("{HEAD}t.py ....                                    [100%]\n\n{}", bar("4 passed in 0.10s"));
    let report = of(format!(
        "{first}..F\n{FAILURES}____ test_q ____\nE   assert 0\n{SHORT}FAILED q.py::test_q - assert 0\n\
         !!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!\n1 failed, 2 passed in 0.05s\n"
    ));
    assert_eq!(report.sessions.len(), 2);
    assert_eq!((report.counts().passed, report.counts().failed), (Some(6), Some(1)));
    assert_eq!((failing(&report).unwrap(), report.complete()), (vec!["q.py::test_q"], true));
    let report = of(format!("{first}....\n4 passed in 0.39s\n"));
    assert_eq!((report.sessions.len(), report.counts().passed), (2, Some(8)));
    // Without the letters it is somebody's word.
    let report = of(format!("{first}and then\n4 passed in 0.39s\n"));
    assert_eq!((report.sessions.len(), report.counts().passed), (1, Some(4)));
}
