//! cargo test and nextest.

use crate::{Want, failing, four, known, of, rerun};
use std::process::Command;
use tb_results::report::{Outcome, Verdict};

const TARGET: &str = "
running 5 tests
test tests::adds ... ok
test tests::later ... ignored, slow
test tests::panics - should panic ... ok
test tests::totals ... FAILED
test tests::prints ... ok

failures:

---- tests::totals stdout ----

thread 'tests::totals' (77) panicked at src/lib.rs:6:25:
assertion `left == right` failed: sums
  left: 1
 right: 2

failures:
    tests::totals

test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s

error: test failed, to rerun pass `--lib`
";

const DOCTESTS: &str = "   Doc-tests shop

running 1 test
test src/lib.rs - (line 1) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

fn want(counts: [u64; 4], failing: &'static [&'static str]) -> Want<'static> {
    Want {
        runner: "cargo-test",
        counts: known(counts),
        failing: Some(failing),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn targets_are_summed() {
    let report = want([4, 1, 1, 0], &["tests::totals"]).of(format!("{TARGET}{DOCTESTS}"));
    assert_eq!(report.counts().deselected, Some(2));
    let failing = report.failing().unwrap();
    assert_eq!(failing[0].place, Some(("src/lib.rs".to_owned(), 6)));
    assert_eq!(failing[0].message.as_deref(), Some("assertion `left == right` failed: sums"));
    assert_eq!(rerun(&report), ["cargo test --no-fail-fast -- tests::totals --exact '--test-threads=1'"]);
    assert_eq!(report.duration(), None, "a target's time is not the run's");
}

#[test]
fn a_result_that_a_test_prints_does_not_add_up() {
    let fake = "test fake::line ... FAILED\ntest result: FAILED. 9 passed; 9 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\nfailures:\n    fake::line\n";
    let log = TARGET.replace("  left: 1\n", &format!("{fake}  left: 1\n"));
    want([3, 1, 1, 0], &["tests::totals"]).of(log);
}

#[test]
fn a_target_without_a_result_has_died() {
    let log = "     Running unittests src/lib.rs (target/debug/deps/shop-50)

running 3 tests
test tests::adds ... ok
test tests::dies ... error: test failed, to rerun pass `--lib`

Caused by:
  process didn't exit successfully: `/b/shop-50 --test-threads=1` (signal: 6, SIGABRT: process abort signal)
";
    let want = Want {
        runner: "cargo-test",
        counts: known([2, 0, 0, 0]),
        failing: Some(&[]),
        verdict: Verdict::Infra,
        complete: false,
    };
    let report = want.of(format!("{log}{DOCTESTS}"));
    assert_eq!(report.sessions[0].unfinished, ["tests::dies"]);
    assert!(report.sessions[0].faults[0].contains("SIGABRT"));
    // Quiet, and on a cargo that names no target.
    let log = "running 4 tests\n.i.error: process didn't exit successfully: `/b/x` (signal: 11, SIGSEGV: invalid memory reference)\n";
    Want { counts: known([2, 0, 1, 0]), ..want }.of(log);
}

#[test]
fn what_does_not_compile_ran_nothing() {
    let log = "   Compiling shop v0.1.0 (/srv/shop)\nerror[E0308]: mismatched types\n\nerror: could not compile `shop` (lib test) due to 1 previous error\n";
    let want = Want {
        runner: "cargo-test",
        counts: [None, None, None, Some(1)],
        failing: Some(&[]),
        verdict: Verdict::BuildError,
        complete: true,
    };
    want.of(log);
    let nextest = "error: command `/c/cargo test --no-run --message-format json` exited with code 101\n";
    Want { runner: "nextest", complete: false, ..want }.of(format!("{log}{nextest}"));
}

#[test]
fn quiet_and_json_say_the_same() {
    let quiet = "\nrunning 5 tests\n.i 2/5\ntests::totals --- FAILED\n..\nfailures:\n\n---- tests::totals stdout ----\nx\n\nfailures:\n    tests::totals\n\n\
                 test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    want([3, 1, 1, 0], &["tests::totals"]).of(quiet);
    let json = r#"{ "type": "suite", "event": "started", "test_count": 2 }
{ "type": "test", "event": "started", "name": "a" }
{ "type": "test", "name": "a", "event": "ok" }
{ "type": "test", "name": "b", "event": "failed", "stdout": "thread 'b' (1) panicked at src/lib.rs:3:5:\nno\n" }
{ "type": "suite", "event": "failed", "passed": 1, "failed": 1, "ignored": 0, "measured": 0, "filtered_out": 0, "exec_time": 0.01 }
"#;
    want([1, 1, 0, 0], &["b"]).of(json);
}

#[test]
fn cargo_itself_is_understood() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file");
    write(
        "Cargo.toml",
        "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[lib]\npath = \"lib.rs\"\ndoctest = false\n",
    );
    write(
        "lib.rs",
        "#[test] fn adds() {}\n#[test] fn totals() { println!(\"test result: ok. 1 passed; 0 failed\"); panic!(\"no\") }\n#[test] #[ignore] fn later() {}\n",
    );
    let out = Command::new(env!("CARGO"))
        .args(["test", "--offline"])
        .current_dir(dir.path())
        .env_remove("RUSTC_WRAPPER")
        .env("CARGO_TARGET_DIR", dir.path().join("target"))
        .output()
        .expect("cargo runs");
    let log = [out.stderr, out.stdout].concat();
    want([1, 1, 1, 0], &["totals"]).of(log);
}

const NEXTEST: &str = "────────────
 Nextest run ID 81 with nextest profile: t
    Starting 5 tests across 2 binaries (1 test skipped)
        PASS [   0.005s] (1/5) shop tests::adds
  TRY 1 FAIL [   0.079s] (───) shop tests::totals
  stdout ───

    running 1 test
    test tests::totals ... FAILED

    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.08s

  TRY 2 FAIL [   0.078s] (2/5) shop tests::totals
     SIGABRT [   0.005s] (3/5) shop tests::dies
TRY 1 TRMNTG [>  2.000s] (───) shop::slow hangs
     TIMEOUT [   2.003s] (4/5) shop::slow hangs
        PASS [   0.003s] (5/5) shop::slow ok
";

#[test]
fn nextest_says_what_became_of_each_test() {
    let summary = "────────────
     Summary [   4.022s] 5 tests run: 2 passed (1 slow, 1 leaky), 2 failed, 1 timed out, 1 skipped
  TRY 2 FAIL [   0.078s] (2/5) shop tests::totals
     SIGABRT [   0.005s] (3/5) shop tests::dies
     TIMEOUT [   2.003s] (4/5) shop::slow hangs
error: test run failed
";
    let want = Want {
        runner: "nextest",
        counts: known([2, 2, 1, 0]),
        failing: Some(&["shop tests::totals", "shop tests::dies", "shop::slow hangs"]),
        verdict: Verdict::Mixed,
        complete: true,
    };
    let report = want.of(format!("{NEXTEST}{summary}"));
    assert_eq!((report.counts().timed_out, report.counts().reruns), (Some(1), Some(1)));
    assert_eq!(report.duration(), Some(4.022));
    let outcomes: Vec<Outcome> = report.failing().unwrap().iter().map(|f| f.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Crashed, Outcome::TimedOut]);
    let rerun = rerun(&report);
    assert!(rerun[0].contains("(binary_id(=shop::slow) & test(=hangs))"), "{rerun:?}");
    // The same without an end.
    let report = Want { complete: false, ..want }.of(NEXTEST);
    assert_eq!(report.counts().timed_out, Some(1));
}

#[test]
fn nextest_that_finds_nothing_says_so() {
    let log = "    Starting 0 tests across 1 binary (6 tests skipped)\n────────────\n     Summary [   0.000s] 0 tests run: 0 passed, 6 skipped\nerror: no tests to run\n";
    let report = of(log);
    assert_eq!((report.verdict(), four(&report.counts())), (Some(Verdict::NoTests), known([0, 0, 6, 0])));
}

#[test]
fn what_runs_uncaptured_under_nextest_is_not_cargos() {
    let log = " Nextest run ID 4e with nextest profile: default
    Starting 1 test across 1 binary
       START [         ] (1/1) demo tests::ok

running 1 test
test fake ... FAILED
test result: FAILED. 9 passed; 9 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
        PASS [   0.006s] (1/1) demo tests::ok
────────────
     Summary [   0.102s] 1 test run: 1 passed, 0 skipped
";
    let report = of(log);
    assert_eq!(report.sessions.len(), 1);
    assert_eq!((four(&report.counts()), failing(&report)), (known([1, 0, 0, 0]), Some(vec![])));
    let cut = of(&log[..log.find("        PASS").unwrap()]);
    assert_eq!(cut.sessions[0].unfinished, ["demo tests::ok"]);
}
