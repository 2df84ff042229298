//! Runs of pytest whose plugins change how they end.

use crate::{HEAD, SHORT, failing, four, known, of};
use tb_results::report::Verdict;

const SUGAR: &str = "\
Test session starts (platform: linux, Python 3.11.7, pytest 8.2.2, pytest-sugar 1.1.1)
rootdir: /srv/app
plugins: sugar-1.1.1, xdist-3.8.0
";

#[test]
fn totals_of_sugar_leave_out_files_that_could_not_be_collected() {
    let log = format!(
        "{SUGAR}\n――――――――――――――――― ERROR collecting a b/test_m.py ―――――――――――――――――\n\
         a b/test_m.py:1: in <module>\n    1 / 0\nE   ZeroDivisionError: division by zero\n\
         ------------------------------- Captured stdout --------------------------------\n=== 1 failed in 0.1s ===\n\n\
         {SHORT}FAILED a b/test_m.py - ZeroDivisionError: division by zero\n\nResults (1.12s):\n       7 passed\n"
    );
    let report = of(&log);
    assert_eq!(four(&report.counts()), known([7, 0, 0, 1]));
    assert_eq!(failing(&report).unwrap(), ["a b/test_m.py"]);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
    // With -rN only the report at the moment names it.
    let report = of(log.replace(SHORT, "").replace("FAILED a b/test_m.py", "x"));
    assert_eq!(four(&report.counts()), known([7, 0, 0, 1]));
    assert_eq!(failing(&report).unwrap(), ["a b/test_m.py"]);
}

#[test]
fn totals_of_pretty_have_them_already() {
    let report = of(format!(
        "{}==================================== ERRORS ====================================\n\
         __________________________ ERROR collecting test_m.py __________________________\n\
         E   ZeroDivisionError: division by zero\n\
         !!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n\
         Results (0.12s):\n         1 error\n",
        HEAD.replace("collected", "plugins: pretty-1.3.0\ncollected")
    ));
    assert_eq!(four(&report.counts()), known([0, 0, 0, 1]));
    assert_eq!(failing(&report).unwrap(), ["test_m.py"]);
}

#[test]
fn tests_that_sugar_expected_to_fail_without_running_them_are_in_its_bar_alone() {
    let report = of(format!(
        "{SUGAR}\n test_a.py ✓x✓x                                                 100% ██████████\n\nResults (0.08s):\n       2 passed\n"
    ));
    assert_eq!((report.counts().passed, report.counts().xfailed), (Some(2), Some(2)));
}

#[test]
fn totals_belong_to_the_run_whose_plugin_writes_them() {
    let report = of(format!(
        "{}t.py::test_a PASSED\nt.py::test_b FAILED\n\n\
         =================================== FAILURES ===================================\n\
         ____________________________________ test_b ____________________________________\nE   assert 0\n\
         ----------------------------- Captured stdout call -----------------------------\n{HEAD}t.py F.\n\
         Results (0.06s):\n         1 failed\n         1 passed\n",
        HEAD.replace("collected 4", "plugins: pretty-1.3.0\ncollected 2")
    ));
    assert_eq!(report.sessions.len(), 1);
    assert_eq!(four(&report.counts()), known([1, 1, 0, 0]));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_b"]);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
}

#[test]
fn totals_alone_are_pytests_and_long_runs_tell_the_clock() {
    let report = of("..F.   x\nResults (65.12s (0:01:05)):\n         1 failed\n         3 passed\n");
    assert_eq!((report.runner(), report.duration()), (Some("pytest"), Some(65.12)));
    assert_eq!(four(&report.counts()), known([3, 1, 0, 0]));
    let listed = of(format!("{SUGAR}t.py::test_a\nt.py::test_b[x y]\n\nResults (0.04s):\n"));
    assert_eq!(listed.verdict(), Some(Verdict::Pass), "--collect-only -q");
}

#[test]
fn a_run_behind_totals_is_another_one() {
    let report = of(format!(
        "{SUGAR}\n test_a.py ✓✓                                                  100% ██████████\n\nResults (0.08s):\n       2 passed\n\
         {HEAD}t.py .F..                                                               [100%]\n\n\
         {SHORT}FAILED t.py::test_b - assert 0\n{}",
        crate::bar("1 failed, 3 passed in 0.10s")
    ));
    assert_eq!((report.sessions.len(), report.complete()), (2, true));
    assert_eq!(four(&report.counts()), known([5, 1, 0, 0]));
}
