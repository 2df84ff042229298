//! Which tests failed: ids, classes, messages.

use crate::{FAILURES, HEAD, SHORT, bar, failing, of};
use tb_results::report::Outcome;

fn listed(entries: &str, summary: &str) -> String {
    format!(
        "{HEAD}test_a.py FFFF                                                           [100%]\n\n{SHORT}{entries}{}",
        bar(summary)
    )
}

#[test]
fn ids_with_dashes_brackets_words_and_spaces_in_them() {
    let log = listed(
        "FAILED test_a.py::test_p[tail - dash] - AssertionError: a - b\n\
         FAILED test_a.py::test_p[a]b[c] - assert 1 == 2\n\
         FAILED test_a.py::test_p[br[ack]et FAILED 100%]\n\
         FAILED test_a.py::TestX::test_p[x::y in 1.00s] - KeyError: 'k'\n",
        "4 failed in 0.10s",
    );
    let report = of(log);
    assert_eq!(
        failing(&report).unwrap(),
        [
            "test_a.py::test_p[tail - dash]",
            "test_a.py::test_p[a]b[c]",
            "test_a.py::test_p[br[ack]et FAILED 100%]",
            "test_a.py::TestX::test_p[x::y in 1.00s]",
        ]
    );
    let classes: Vec<_> = report.failing().unwrap().iter().map(|f| f.error_class.as_deref()).collect();
    assert_eq!(classes, [Some("AssertionError"), Some("AssertionError"), None, Some("KeyError")]);
}

#[test]
fn an_id_whose_bracket_never_closes_is_proven_by_its_result_line() {
    let log = format!(
        "{HEAD}test_a.py::test_p[x] - y] FAILED                                         [ 50%]\n\
         test_a.py::test_p[[q] FAILED                                             [100%]\n\n{SHORT}\
         FAILED test_a.py::test_p[x] - y] - assert 0\nFAILED test_a.py::test_p[[q] - assert 0 - 1\n{}",
        bar("2 failed in 0.10s")
    );
    assert_eq!(failing(&of(log)).unwrap(), ["test_a.py::test_p[x] - y]", "test_a.py::test_p[[q]"]);
}

#[test]
fn an_id_is_proven_by_the_headline_of_its_failure_too() {
    let log = format!(
        "{HEAD}test_a.py F                                                              [100%]\n\n{FAILURES}\
         ________________________________ test_p[x] - y] ________________________________\n\
         E       assert 0\n\ntest_a.py:3: AssertionError\n{SHORT}\
         FAILED test_a.py::test_p[x] - y] - assert 0\n{}",
        bar("1 failed in 0.10s")
    );
    assert_eq!(failing(&of(log)).unwrap(), ["test_a.py::test_p[x] - y]"]);
}

#[test]
fn a_message_over_several_lines_is_one_entry() {
    let log = listed(
        "FAILED test_a.py::test_a - AssertionError: assert {'a': 1} == {}\n  \n  Left contains 1 more item:\n  {'a': 1}\n\
         FAILED test_a.py::test_b - ValueError: x\n\nE  y\n=== z\n",
        "2 failed, 2 passed in 0.10s",
    );
    assert_eq!(failing(&of(log)).unwrap(), ["test_a.py::test_a", "test_a.py::test_b"]);
}

#[test]
fn a_line_of_a_message_that_looks_like_an_entry_is_none() {
    let log = format!(
        "{HEAD}test_a.py F..F                                                           [100%]\n\n{FAILURES}\
         ____________________________________ test_a ____________________________________\n\
         E       ValueError: x\n\ntest_a.py:3: ValueError\n\
         ____________________________________ test_b ____________________________________\n\
         E       assert 0\n\ntest_a.py:9: AssertionError\n{SHORT}\
         FAILED test_a.py::test_a - ValueError: x\nFAILED other/test_z.py::test_z - Boom\n=== 7 failed in 1.00s ===\n\
         FAILED test_a.py::test_b - assert 0\n{}",
        bar("2 failed, 2 passed in 0.10s")
    );
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["test_a.py::test_a", "test_a.py::test_b"]);
    assert_eq!(report.counts().failed, Some(2));
}

#[test]
fn without_any_proof_too_many_names_are_no_names() {
    let log =
        listed("FAILED test_a.py::test_a - x\nFAILED b.py::test_z - Boom\n", "1 failed, 3 passed in 0.10s");
    let report = of(log);
    assert_eq!(failing(&report), None);
    assert_eq!(report.counts().failed, Some(1));
}

#[test]
fn the_class_that_a_trimmed_message_lost_is_in_the_report() {
    let log = format!(
        "{HEAD}test_a.py F                                                              [100%]\n\n{FAILURES}\
         _________________________________ TestA.test_x _________________________________\n\n\
         >       raise pkg.errors.BoomError('x')\nE       pkg.errors.BoomError: x\n\ntest_a.py:3: BoomError\n{SHORT}\
         FAILED test_a.py::TestA::test_x - pkg.errors.Boo...\n{}",
        bar("1 failed in 0.10s")
    );
    let report = of(log);
    let all = report.failing().unwrap();
    assert_eq!(all[0].error_class.as_deref(), Some("BoomError"));
    assert_eq!(all[0].place, Some(("test_a.py".to_owned(), 3)));
}

#[test]
fn of_a_chain_of_exceptions_the_last_one_counts() {
    let log = format!(
        "{HEAD}test_a.py F                                                              [100%]\n\n{FAILURES}\
         ____________________________________ test_x ____________________________________\n\
         E       KeyError: 'a'\n\ntest_a.py:3: KeyError\n\n\
         During handling of the above exception, another exception occurred:\n\n\
         E       TypeError: b\n\ntest_a.py:5: TypeError\n{SHORT}FAILED test_a.py::test_x - T...\n{}",
        bar("1 failed in 0.10s")
    );
    assert_eq!(of(log).failing().unwrap()[0].error_class.as_deref(), Some("TypeError"));
}

#[test]
fn a_teardown_error_of_a_passed_test_is_one_passed_and_one_error() {
    let log = format!(
        "{HEAD}test_a.py::test_x PASSED                                                 [100%]\n\
         test_a.py::test_x ERROR                                                  [100%]\n\n{SHORT}\
         ERROR test_a.py::test_x - ValueError: late\n{}",
        bar("1 passed, 1 error in 0.10s")
    );
    let report = of(log);
    let all = report.failing().unwrap();
    assert_eq!((all.len(), all[0].outcome), (1, Outcome::Error));
    assert_eq!((report.counts().passed, report.counts().errors), (Some(1), Some(1)));
}

#[test]
fn counts_without_names_are_unknown_names() {
    // --tb=no -rN, --no-summary: the headlines have no path, so no id is built from them.
    let log = format!(
        "{HEAD}test_a.py .F.F                                                           [100%]\n\n{FAILURES}\
         ____________________________________ test_x ____________________________________\n\
         ____________________________________ test_y ____________________________________\n{}",
        bar("2 failed, 2 passed in 0.10s")
    );
    let report = of(log);
    assert_eq!(failing(&report), None);
    assert_eq!(report.counts().failed, Some(2));
}

#[test]
fn verbose_lines_name_what_the_short_summary_does_not() {
    let log = format!(
        "{HEAD}t.py::test_x FAILED                                                      [ 50%]\n\
         t.py::test_y[a b] ERROR                                                  [100%]\n\n{}",
        bar("1 failed, 1 error in 0.10s")
    );
    assert_eq!(failing(&of(log)).unwrap(), ["t.py::test_x", "t.py::test_y[a b]"]);
}

#[test]
fn collection_errors_are_named_by_their_path_in_every_version() {
    // Before 5.4 there is no short summary; the headline has the path.
    let log = format!(
        "{}_______________________ ERROR collecting tests/test_x.py _______________________\nE   ImportError: no\n\
         !!!!!!!!!!!!!!!!!!! Interrupted: 1 errors during collection !!!!!!!!!!!!!!!!!!!!\n{}",
        bar("ERRORS"),
        bar("1 error in 0.19 seconds")
    );
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["tests/test_x.py"]);
    assert_eq!(report.failing().unwrap()[0].error_class.as_deref(), Some("ImportError"));
    // Under xdist the same error may be listed once for each worker.
    let log = format!(
        "{HEAD}{SHORT}ERROR tests/test_x.py - ImportError: no\nERROR tests/test_x.py - ImportError: no\n{}",
        bar("2 errors in 0.19s")
    );
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["tests/test_x.py"]);
    assert_eq!(report.counts().errors, Some(2));
}

#[test]
fn subtests_of_the_plugin_and_of_pytest_9() {
    for (entries, summary) in [
        (
            "[m [x]] (i=2) SUBFAIL t.py::test_s - assert 2 != 2\n",
            "1 failed, 4 passed, 3 subtests passed in 0.08s",
        ),
        (
            "SUBFAILED[m [x]] (i='2') t.py::test_s - assert 2 != 2\nFAILED t.py::test_s - contains 1 failed subtest\n",
            "2 failed, 3 passed, 3 subtests passed in 0.08s",
        ),
    ] {
        let report = of(listed(entries, summary));
        assert_eq!(failing(&report).unwrap(), ["t.py::test_s"]);
        let counts = report.counts();
        assert_eq!((counts.subtests_passed, counts.subtests_failed), (Some(3), Some(1)));
    }
}

#[test]
fn reruns_are_no_failures_and_their_section_names_what_failed() {
    let log = format!(
        "{HEAD}test_f.py .R.RRFR.                                                       [100%]\n\n{}\
         FAILED test_f.py::test_bad\nRERUN test_f.py::test_flaky\nRERUN test_f.py::test_flaky\n{}",
        bar("rerun test summary info"),
        bar("1 failed, 3 passed, 4 rerun in 0.09s")
    );
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["test_f.py::test_bad"]);
    assert_eq!(report.counts().reruns, Some(4));
}

#[test]
fn where_a_test_is_defined_is_no_part_of_its_id() {
    let log = format!(
        "{HEAD}t.py::test_x <- base/common.py FAILED                                     [100%]\n\n{}",
        bar("1 failed in 0.10s")
    );
    assert_eq!(failing(&of(log)).unwrap(), ["t.py::test_x"]);
}

#[test]
fn doctests_are_named_and_their_headlines_understood() {
    let log = format!(
        "{HEAD}mod.py FF                                                                [100%]\n\n{FAILURES}\
         ______________________________ [doctest] mod.boom ______________________________\n\
         UNEXPECTED EXCEPTION: ZeroDivisionError('x')\n/srv/app/mod.py:16: UnexpectedException\n\
         _____________________________ [doctest] guide.txt ______________________________\nExpected:\n    4\n{SHORT}\
         FAILED mod.py::mod.boom\nFAILED guide.txt::guide.txt\n{}",
        bar("2 failed in 0.10s")
    );
    assert_eq!(failing(&of(log)).unwrap(), ["mod.py::mod.boom", "guide.txt::guide.txt"]);
}

#[test]
fn the_slowest_tests_where_the_log_lists_them() {
    let log = format!(
        "{HEAD}t.py ..                                                                  [100%]\n\n{}\
         0.30s call     t.py::test_a[x y]\n1.20s setup    t.py::test_b\n\n\
         (2 durations < 0.005s hidden.  Use -vv to show these durations.)\n{}",
        bar("slowest 3 durations"),
        bar("2 passed in 1.60s")
    );
    let report = of(log);
    let slowest: Vec<_> = report.slowest().iter().map(|s| (s.id.as_str(), s.seconds)).collect();
    assert_eq!(slowest, [("t.py::test_b", 1.2), ("t.py::test_a[x y]", 0.3)]);
}

#[test]
fn sugar_lists_its_failures_in_its_own_way() {
    let log = "Test session starts (platform: linux, Python 3.11.7, pytest 9.2.0, pytest-sugar 1.1.1)\n\
               rootdir: /srv/app\nplugins: sugar-1.1.1\ncollected 3 items\n\r\n\r t.py \u{2713}  33% \u{2588}\r t.py \u{2713}\u{2a2f} 66% \u{2588}\r\n\
               \nResults (0.22s):\n       1 passed\n       1 failed\n         - t.py:9 TestA.test_x[a.b]\n       1 skipped\n";
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["t.py::TestA::test_x[a.b]"]);
    let counts = report.counts();
    assert_eq!(
        (counts.passed, counts.failed, counts.skipped, counts.warnings),
        (Some(1), Some(1), Some(1), None)
    );
    assert!(report.complete());
}

#[test]
fn what_a_worker_wrote_behind_an_id_is_no_part_of_it() {
    let log = format!(
        "{HEAD}2 workers [2 items]\n\nt.py::test_a[x y] \n[gw1] [ 50%] FAILED t.py::test_a[x y] FAILED t.py::test_z - X\n\n{}",
        bar("1 failed in 0.10 seconds")
    );
    assert_eq!(failing(&of(log)).unwrap(), ["t.py::test_a[x y]"]);
}

#[test]
fn failed_subtests_of_quiet_runs_are_counted_by_their_reports() {
    // "u" is a failed or a passed subtest, and only the reports tell.
    let report = |name: &str| {
        let n = (80 - name.len() - 2) / 2;
        format!("{} {name} {}\nE   assert 1 != 1\n", "_".repeat(n), "_".repeat(n))
    };
    let log = |letters: &str| {
        format!(
            "{letters}                                                                [100%]\n{FAILURES}{}{}{}",
            report("test_a (i=1)"),
            report("test_a"),
            report("test_b")
        )
    };
    assert_eq!(of(log(".uuFFu.")).counts().failed, Some(3));
    // With the plugin a passed one is a comma.
    assert_eq!(of(log(".,uFF,.")).counts().failed, Some(3));
    // Where no report is shown, nobody knows how many; but that some failed.
    let report = of(".uuFFu.                                                                  [100%]\nx\n");
    assert_eq!(report.counts().failed, None);
    assert_ne!(report.verdict(), Some(tb_results::report::Verdict::Pass));
}

#[test]
fn no_test_is_hidden_behind_a_collection_that_only_a_test_speaks_of() {
    let report = of(format!(
        "{HEAD}t.py .F..                                                               [100%]\n\n{FAILURES}\
         ____________________________________ test_b ____________________________________\nE   assert 0\n\
         ----------------------------- Captured stdout call -----------------------------\n\
         !!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n{}",
        bar("1 failed, 3 passed in 0.10s")
    ));
    assert_eq!(failing(&report), None);
}
