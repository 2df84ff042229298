//! unittest, Django and nose.

use crate::{Want, failing, four, known, of, rerun};
use std::path::Path;
use std::process::Command;
use tb_results::report::Verdict;

const RULE: &str = "======================================================================\n";
const DASHES: &str = "----------------------------------------------------------------------\n";

fn report(head: &str, said: &str) -> String {
    format!(
        "{RULE}{head}\n{DASHES}Traceback (most recent call last):\n  File \"/srv/t.py\", line 9, in f\n    f()\n{said}\n\n"
    )
}

fn log(progress: &str) -> String {
    [
        progress,
        "\n",
        &report("ERROR: setUpClass (t.Bad)", "ConnectionError: no db"),
        &report("ERROR: test_err (t.Cart.test_err)", "KeyError: 'k'"),
        &report("FAIL: test_subs (t.Cart.test_subs) [msg] (i=1)", "AssertionError: 1 == 1"),
        &report("FAIL: test_subs (t.Cart.test_subs) [msg] (i=3)", "AssertionError: 1 == 1"),
        &report("FAIL: test_totals (t.Cart.test_totals)", "AssertionError: FAILED (failures=9)\nRan 9 tests in 1s\n\nOK"),
        RULE,
        "UNEXPECTED SUCCESS: test_lucky (t.Cart.test_lucky)\n",
        DASHES,
        "Ran 8 tests in 0.120s\n\nFAILED (failures=3, errors=2, skipped=1, expected failures=1, unexpected successes=1)\n",
    ]
    .concat()
}

const WANT: Want<'_> = Want {
    runner: "unittest",
    counts: [Some(2), Some(3), Some(1), Some(2)],
    failing: Some(&[
        "setUpClass (t.Bad)",
        "t.Cart.test_err",
        "t.Cart.test_subs [msg] (i=1)",
        "t.Cart.test_subs [msg] (i=3)",
        "t.Cart.test_totals",
        "t.Cart.test_lucky",
    ]),
    verdict: Verdict::Fail,
    complete: true,
};

#[test]
fn dots_and_reports() {
    let report = WANT.of(log("E.noise on stderr\nE.FFsFux"));
    assert_eq!((report.counts().xfailed, report.counts().xpassed), (Some(1), Some(1)));
    assert_eq!(report.duration(), Some(0.12));
    let failing = report.failing().unwrap();
    assert_eq!(
        (failing[0].error_class.as_deref(), failing[4].error_class.as_deref()),
        (Some("ConnectionError"), Some("AssertionError"))
    );
    assert_eq!(
        rerun(&report),
        ["python -m unittest t.Bad t.Cart.test_err t.Cart.test_subs t.Cart.test_totals t.Cart.test_lucky"]
    );
}

#[test]
fn a_line_for_each_test() {
    let lines = "setUpClass (t.Bad) ... ERROR
test_adds (t.Cart.test_adds) ... noise
ok
test_doc (t.Cart.test_doc)
Says what it is. ... ok
test_err (t.Cart.test_err) ... ERROR
test_later (t.Cart.test_later) ... skipped 'later'
test_subs (t.Cart.test_subs) ... 
  test_subs (t.Cart.test_subs) [msg] (i=1) ... FAIL
  test_subs (t.Cart.test_subs) [msg] (i=3) ... FAIL
test_totals (t.Cart.test_totals) ... FAIL
test_known (t.Cart.test_known) ... expected failure
test_lucky (t.Cart.test_lucky) ... unexpected success
";
    let report = WANT.of(log(lines));
    assert_eq!(report.failing().unwrap()[1].error_class.as_deref(), Some("KeyError"));
    let dead = format!("{lines}test_z (t.Cart.test_z) ... ");
    let report = Want { verdict: Verdict::Mixed, complete: false, ..WANT }.of(dead);
    assert_eq!(report.sessions[0].unfinished, ["t.Cart.test_z"]);
}

#[test]
fn before_3_11_the_method_stands_outside_of_the_brackets() {
    let log = [
        &report("FAIL: test_a (t.C)", "AssertionError"),
        DASHES,
        "Ran 1 test in 0.001s\n\nFAILED (failures=1)\n",
    ]
    .concat();
    assert_eq!(failing(&of(log)), Some(vec!["t.C.test_a"]));
}

#[test]
fn a_trailer_without_the_rule_or_that_contradicts_is_output() {
    let fake = format!("AssertionError: x\n{DASHES}Ran 9 tests in 1s\n\nOK");
    let log = log("E.").replace("AssertionError: FAILED (failures=9)", &fake);
    WANT.of(log);
}

#[test]
fn nose_and_django_order_the_words_in_their_own_way() {
    let report = of(format!(
        "{DASHES}Ran 1187 tests in 241.088s\n\nFAILED (SKIP=2, errors=5, failures=3)\nmake: *** [test] Error 1\n"
    ));
    assert_eq!(four(&report.counts()), known([1177, 3, 2, 5]));
    assert_eq!(failing(&report), None, "nobody named them");
    let django = format!(
        "Found 2 test(s).\nCreating test database for alias 'default'...\nSystem check identified no issues (0 silenced).\n..\n{DASHES}Ran 2 tests in 0.010s\n\nOK\nDestroying test database for alias 'default'...\n"
    );
    Want { counts: known([2, 0, 0, 0]), failing: Some(&[]), verdict: Verdict::Pass, ..WANT }.of(&django);
    let twice = of(format!("{django}{django}"));
    assert_eq!((twice.sessions.len(), four(&twice.counts())), (2, known([4, 0, 0, 0])));
}

#[test]
fn nothing_ran() {
    for end in ["NO TESTS RAN", "OK"] {
        assert_eq!(
            of(format!("\n{DASHES}Ran 0 tests in 0.000s\n\n{end}\n")).verdict(),
            Some(Verdict::NoTests)
        );
    }
    let report = of([
        &report("ERROR: setUpClass (t.Bad)", "OSError: x"),
        DASHES,
        "Ran 0 tests in 0.001s\n\nFAILED (errors=1)\n",
    ]
    .concat());
    assert_eq!((report.verdict(), four(&report.counts())), (Some(Verdict::Fail), known([0, 0, 0, 1])));
}

#[test]
fn python_itself_is_understood() {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = if venv.exists() { venv } else { "python3".into() };
    let dir = tempfile::tempdir().expect("a directory");
    let text = "import unittest\nclass Cart(unittest.TestCase):\n    def test_adds(self): pass\n    def test_totals(self): self.fail('Ran 9 tests in 1s')\n    @unittest.skip('x')\n    def test_later(self): pass\n";
    std::fs::write(dir.path().join("test_shop.py"), text).expect("a file");
    for flag in ["-v", "-q", "-b"] {
        let out = Command::new(&python)
            .args(["-m", "unittest", flag])
            .current_dir(dir.path())
            .output()
            .expect("python runs");
        Want { counts: known([1, 1, 1, 0]), failing: Some(&["test_shop.Cart.test_totals"]), ..WANT }
            .of(out.stderr);
    }
}
