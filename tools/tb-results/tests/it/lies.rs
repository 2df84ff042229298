//! What tests print and fail with is no word of the run that runs them.

use crate::{FAILURES, HEAD, SHORT, bar, failing, four, known, of};
use tb_results::report::{Report, Verdict};

/// Four tests of which two failed; `said` stands in the report of the first.
fn reported(said: &str) -> Report {
    of(format!(
        "{HEAD}t.py .FF.                                                                [100%]\n\n{FAILURES}\
         ____________________________________ test_b ____________________________________\n\n\
         >       assert 0\nE       assert 0\n\nt.py:5: AssertionError\n\
         ----------------------------- Captured stdout call -----------------------------\n{said}\n\
         ____________________________________ test_c ____________________________________\n\n\
         >       assert 1 == 2\nE       assert 1 == 2\n\nt.py:8: AssertionError\n\
         {SHORT}FAILED t.py::test_b - assert 0\nFAILED t.py::test_c - assert 1 == 2\n{}",
        bar("2 failed, 2 passed in 0.10s")
    ))
}

#[track_caller]
fn is_two_failures(report: &Report) {
    assert_eq!(report.sessions.len(), 1);
    assert_eq!(four(&report.counts()), known([2, 2, 0, 0]));
    assert_eq!(failing(report).unwrap(), ["t.py::test_b", "t.py::test_c"]);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
    assert!(report.sessions[0].faults.is_empty(), "{:?}", report.sessions[0].faults);
}

#[test]
fn the_last_words_of_other_runs_in_a_report_are_output() {
    for said in [
        "INTERNALERROR> Traceback (most recent call last):",
        "INTERNALERROR> ValueError: x",
        "worker 'gw1' crashed while running 'a.py::b'",
        "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        "!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!",
        "_______________________ ERROR collecting tests/test_fake.py _______________________",
    ] {
        is_two_failures(&reported(said));
    }
}

#[test]
fn a_whole_end_of_a_run_in_a_report_ends_nothing() {
    // The run is told from its output by the headline of its own next failure, ...
    let end = format!(
        "{FAILURES}__________________________________ test_in ___________________________________\nE   assert 0\n\
         {SHORT}FAILED test_in.py::test_0 - assert 0\n{}",
        bar("1 failed in 0.84s")
    );
    is_two_failures(&reported(&end));
    // ... and behind the end that was none, another runner's words are output as well.
    is_two_failures(&reported(&format!("{end}not ok 2 - bar\n1..2")));
    is_two_failures(&reported(&format!("{end}INTERNALERROR> ValueError: x")));
}

#[test]
fn a_list_in_a_report_is_not_the_list_that_the_run_does_not_have() {
    // Before 5.4, and with -rN, there is no short summary; this one has as many names as there are failures.
    let log = |progress: &str| {
        of(format!(
            "{HEAD}{progress}\n{FAILURES}\
             ____________________________________ test_b ____________________________________\nE   assert 0\n\
             ----------------------------- Captured stdout call -----------------------------\n\
             {SHORT}FAILED test_in.py::test_0 - assert 0\n{}",
            bar("1 failed, 3 passed in 0.10 seconds")
        ))
    };
    let dots = log("t.py .F..                                                                [100%]\n");
    assert_eq!(failing(&dots), None);
    assert_eq!(four(&dots.counts()), known([3, 1, 0, 0]));
    // With -v the results name what failed.
    let verbose = log("t.py::test_a PASSED        [ 25%]\nt.py::test_b FAILED        [ 50%]\n\
                       t.py::test_c PASSED        [ 75%]\nt.py::test_d PASSED        [100%]\n");
    assert_eq!(failing(&verbose).unwrap(), ["t.py::test_b"]);
}

#[test]
fn a_run_has_as_many_results_as_tests() {
    // With -s: a report that has an end of its form but too few results, and then one without an end.
    let said = format!(
        "{}..F                                                        [100%]\n",
        bar("9 failed in 0.84s")
    );
    let live = format!(
        "{}t.py .{said}.                                                                [100%]\n\n{}",
        HEAD.replace("collected 4 items", "collected 32 items"),
        bar("32 passed in 0.10s")
    );
    let report = of(live);
    assert_eq!(four(&report.counts()), known([32, 0, 0, 0]));
    assert_eq!((report.sessions.len(), report.verdict()), (1, Some(Verdict::Pass)));
    let inner =
        format!("{}test_in.py FFFFFFF                                      [100%]\n", HEAD.replace("4", "7"));
    let report = of(format!(
        "{}t.py::test_a {inner}=== 7 failed in 0.1s ===PASSED\nt.py::test_b PASSED\n{}",
        HEAD.replace("collected 4 items", "collecting ... collected 2 items"),
        bar("2 passed in 0.10s")
    ));
    assert_eq!(four(&report.counts()), known([2, 0, 0, 0]));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Pass), true));
}

#[test]
fn without_workers_none_dies() {
    let report = of(format!(
        "{HEAD}t.py .[gw1] node down: Not properly terminated\n...                                           [100%]\n\n{}",
        bar("4 passed in 0.10s")
    ));
    assert!(report.sessions[0].crashed_workers.is_empty());
    assert_eq!(report.verdict(), Some(Verdict::Pass));
}

#[test]
fn tests_that_go_on_show_that_there_was_no_internal_error() {
    let report = of(format!(
        "{HEAD}t.py::test_a INTERNALERROR> Traceback (most recent call last):\nINTERNALERROR> ValueError: x\nPASSED\n\
         t.py::test_b PASSED\nt.py::test_c PASSED\nt.py::test_d PASSED\n\n{}",
        bar("4 passed in 0.10s")
    ));
    assert_eq!(report.verdict(), Some(Verdict::Pass));
    assert!(report.sessions[0].faults.is_empty());
}

#[test]
fn a_quiet_run_does_not_end_in_the_line_of_its_output() {
    // -qq: no summary line, and the narrow one stood in the report.
    let report = of(format!(
        "\n==================================== ERRORS ====================================\n\
         __________________________ ERROR collecting test_m.py __________________________\n\
         E   ZeroDivisionError: division by zero\n\
         ------------------------------- Captured stdout --------------------------------\n=== 1 failed in 0.1s ===\n\
         {SHORT}ERROR test_m.py - ZeroDivisionError: division by zero\n\
         !!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n"
    ));
    assert_eq!(four(&report.counts()), known([0, 0, 0, 1]));
    assert_eq!(failing(&report).unwrap(), ["test_m.py"]);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
    // Nor is a run in a report another one, if the list at the end names the failures of the first.
    let report = of(format!(
        ".F                                                                       [100%]\n{FAILURES}\
         ____________________________________ test_b ____________________________________\nE   assert 0\n\
         ----------------------------- Captured stdout call -----------------------------\n\
         {HEAD}test_in.py F                                       [100%]\n\n{SHORT}FAILED t.py::test_b - assert 0\n"
    ));
    assert_eq!(four(&report.counts()), known([1, 1, 0, 0]));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_b"]);
    assert_eq!((report.sessions.len(), report.complete()), (1, true));
}

#[test]
fn words_behind_a_second_result_are_not_of_its_name() {
    // xdist ends a line when the next begins; the first result took the id off the list of those begun.
    let report = of(format!(
        "{HEAD}created: 1/1 worker\n1 worker [1 item]\n\nt.py::test_a \n[gw0] [100%] [m] (k='a - b') SUBPASS t.py::test_a \n\
         [gw0] [100%] PASSED t.py::test_a \n[gw0] [100%] ERROR t.py::test_a some words\n{}",
        bar("1 passed, 1 error in 0.10s")
    ));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_a"]);
}

#[test]
fn totals_in_the_output_of_a_run_without_their_plugin_end_nothing() {
    is_two_failures(&reported("Results (0.22s):\n       3 failed\nnot of a plugin"));
}
