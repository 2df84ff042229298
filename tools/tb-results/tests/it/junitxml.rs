//! JUnit XML as input.

use crate::{Want, failing, four, known, of};
use tb_results::report::Verdict;

const PYTEST: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><testsuites><testsuite name=\"pytest\" errors=\"0\" failures=\"4\" skipped=\"1\" tests=\"13\" time=\"0.067\">\
<testcase classname=\"tests.test_a.T\" name=\"test_b[a &lt; &quot;b&quot;]\" time=\"0.004\"><failure message=\"KeyError: &#x27;k&#x27;&#10;more\">def test_b():\n&gt;   x\nE   KeyError: 'k'\n\ntests/test_a.py:7: KeyError</failure><failure message=\"contains 1 failed subtest\">x</failure></testcase>\
<testcase classname=\"tests.test_a\" name=\"test_ok\" time=\"0.001\" />\
<testcase classname=\"tests.test_a\" name=\"test_x\"><skipped type=\"pytest.xfail\" message=\"\" /></testcase>\
<testcase classname=\"\" name=\"test_c\"><error message=\"collection failure\">x</error></testcase></testsuite></testsuites>";

fn want() -> Want<'static> {
    Want {
        runner: "junitxml",
        counts: known([1, 1, 1, 1]),
        failing: Some(&["tests.test_a.T::test_b[a < \"b\"]", "::test_c"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn elements_count_and_not_the_attributes_of_suites() {
    let report = want().of(PYTEST);
    assert_eq!(report.duration(), Some(0.067));
    let failing = report.failing().unwrap();
    assert_eq!(
        (failing[0].error_class.as_deref(), failing[0].message.as_deref()),
        (Some("KeyError"), Some("KeyError: 'k'"))
    );
    assert_eq!(failing[0].place, Some(("tests/test_a.py".to_owned(), 7)));
    assert_eq!(report.slowest()[0].seconds, 0.004);
}

#[test]
fn one_line_of_many_megabytes_is_read_whole() {
    let case = "<testcase classname=\"tests.test_a\" name=\"test_ok\" time=\"0.001\" />";
    let log = PYTEST.replace(case, &case.repeat(20_000));
    assert_eq!(four(&of(&log).counts()), known([20_000, 1, 1, 1]));
    // Behind other text it would not be: that is said.
    let report = of(format!("building\n{log}"));
    assert!(!report.complete() && report.sessions[0].faults[0].contains("too long"));
}

#[test]
fn a_document_behind_other_text() {
    let log = PYTEST.replace("><test", ">\n<test");
    want().of(format!("=== GATE LAUNCH: {{\"v\":1,\"job\":\"a\",\"command\":[\"x\"]}} ===\n{log}"));
}

#[test]
fn a_document_that_was_cut_is_not_complete() {
    let report = of(&PYTEST[..PYTEST.find("<testcase classname=\"\"").unwrap()]);
    assert_eq!((report.verdict(), four(&report.counts())), (Some(Verdict::Mixed), known([1, 1, 1, 0])));
}

#[test]
fn what_was_not_run_is_skipped_and_bats_takes_names_alone() {
    let log = "<testsuite name=\"(empty)\"\n\ttests=\"3\">\n<testcase name=\"a\" classname=\"a\" status=\"run\"/>\n<testcase name=\"b\" classname=\"b\" status=\"notrun\"/>\n<testcase name=\"c\" classname=\"c\" status=\"disabled\"/></testsuite>";
    assert_eq!(four(&of(log).counts()), known([1, 0, 2, 0]));
    let bats = "<testsuites time=\"0.5\"><testsuite name=\"m.bats\"><testcase classname=\"m.bats\" name=\"bad\"><failure type=\"failure\">x</failure></testcase></testsuite></testsuites>";
    let report = of(bats);
    assert_eq!((failing(&report), report.duration()), (Some(vec!["bad"]), Some(0.5)));
}

#[test]
fn other_xml_is_nobodys() {
    assert!(of("<?xml version=\"1.0\"?><checkstyle><file name=\"a\"/></checkstyle>").sessions.is_empty());
}

#[test]
fn what_this_tool_writes_it_can_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.log");
    std::fs::write(&path, "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n").expect("a file");
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_tb-results"))
        .arg("--junit")
        .arg(&path)
        .output()
        .expect("it runs");
    assert_eq!(failing(&of(out.stdout)), Some(vec!["::b"]));
}
