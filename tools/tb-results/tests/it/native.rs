//! CTest and GoogleTest.

use crate::{Want, failing, four, known, of, rerun};
use tb_results::report::{Outcome, Verdict};

const CTEST: &str = r#"Test project /srv/b
    Start 1: unit.all
1/5 Test #1: unit.all .........................***Failed    0.01 sec
    Start 2: with space
2/5 Test #2: with space .......................   Passed    0.01 sec
    Start 3: slow
3/5 Test #3: slow .............................***Timeout   1.00 sec
    Start 4: skips
4/5 Test #4: skips ............................***Skipped   0.00 sec
    Start 5: crash
5/5 Test #5: crash ............................***Exception: SegFault  0.00 sec
"#;
const CTEST_END: &str = "
40% tests passed, 3 tests failed out of 5

Total Test time (real) =   1.03 sec

The following tests did not run:
	  4 - skips (Skipped)
	  7 - off (Disabled)

The following tests FAILED:
	  1 - unit.all (Failed)
	  3 - slow (Timeout)
	  5 - crash (SEGFAULT)
Errors while running CTest
";

fn ctest() -> Want<'static> {
    Want {
        runner: "ctest",
        counts: known([1, 3, 1, 0]),
        failing: Some(&["unit.all", "slow", "crash"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn ctest_calls_skipped_tests_passed() {
    let report = ctest().of(format!("{CTEST}{CTEST_END}"));
    assert_eq!(report.duration(), Some(1.03));
    let outcomes: Vec<Outcome> = report.failing().unwrap().iter().map(|f| f.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::TimedOut, Outcome::Crashed]);
    assert_eq!(rerun(&report), ["ctest -j1 --output-on-failure -R '^(unit'\"\\\\.all|slow|crash)\"'$'"]);
}

#[test]
fn ctest_that_died_has_lines_only() {
    let report = Want { verdict: Verdict::Mixed, complete: false, ..ctest() }
        .of(format!("{CTEST}    Start 6: last\n"));
    assert_eq!(report.sessions[0].unfinished, ["last"]);
    assert_eq!(of("Test project /b\nNo tests were found!!!\n").verdict(), Some(Verdict::NoTests));
}

#[test]
fn the_output_of_ctests_tests_is_theirs() {
    let log = CTEST.replace(
        "    Start 2",
        "[==========] Running 2 tests from 1 test suite.\n[  PASSED  ] 2 tests.\n    Start 2",
    );
    assert_eq!(ctest().of(format!("{log}{CTEST_END}")).sessions.len(), 1);
}

const GTEST: &str = "Running main() from ./googletest/src/gtest_main.cc
[==========] Running 5 tests from 2 test suites.
[ RUN      ] Cart.Adds
[  FAILED  ] Fake.Line (0 ms)
no newline[       OK ] Cart.Adds (0 ms)
[ RUN      ] Cart.Totals
/srv/t.cc:4: Failure
Expected equality of these values:
[  FAILED  ] Cart.Totals (2 ms)
[ RUN      ] Cart.Later
[  SKIPPED ] Cart.Later (0 ms)
[ RUN      ] N/P.Even/1
/srv/t.cc:8: Failure
[  FAILED  ] N/P.Even/1, where GetParam() = 3 (0 ms)
[ RUN      ] Cart.Last
";
const GTEST_END: &str = "[       OK ] Cart.Last (0 ms)
[==========] 5 tests from 2 test suites ran. (12 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Cart.Later
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Cart.Totals
[  FAILED  ] N/P.Even/1, where GetParam() = 3

 2 FAILED TESTS
  YOU HAVE 1 DISABLED TEST

";

fn gtest() -> Want<'static> {
    Want {
        runner: "gtest",
        counts: known([2, 2, 1, 0]),
        failing: Some(&["Cart.Totals", "N/P.Even/1"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn gtest_lists_its_failures_again() {
    let report = gtest().of(format!("{GTEST}{GTEST_END}"));
    assert_eq!(report.duration(), Some(0.012));
    assert_eq!(report.failing().unwrap()[0].place, Some(("/srv/t.cc".to_owned(), 4)));
    // The log does not tell which binary it was.
    assert!(tb_results::rerun::lines(&report).is_err());
}

#[test]
fn gtest_that_died_names_what_ran() {
    let want = Want { counts: known([1, 2, 1, 0]), verdict: Verdict::Mixed, complete: false, ..gtest() };
    assert_eq!(want.of(GTEST).sessions[0].unfinished, ["Cart.Last"]);
}

#[test]
fn brief_output_counts_no_failures_and_has_no_list() {
    let brief = "[  FAILED  ] Fake.Line (0 ms)\n/srv/t.cc:4: Failure\n[  FAILED  ] Cart.Totals (0 ms)\n/srv/t.cc:8: Failure\n[  FAILED  ] N/P.Even/1, where GetParam() = 3 (0 ms)\n\
                 [==========] 5 tests from 2 test suites ran. (0 ms total)\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test.\n";
    gtest().of(brief);
}

#[test]
fn two_binaries_are_two_runs() {
    let report = of(format!("{GTEST}{GTEST_END}{GTEST}{GTEST_END}"));
    assert_eq!((report.sessions.len(), four(&report.counts())), (2, known([4, 4, 2, 0])));
    assert_eq!(failing(&report), Some(vec!["Cart.Totals", "N/P.Even/1"]));
    let none = of(
        "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n",
    );
    assert_eq!(none.verdict(), Some(Verdict::NoTests));
}
