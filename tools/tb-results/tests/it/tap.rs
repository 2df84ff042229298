//! TAP, prove and bats.

use crate::{Want, failing, four, known, of, rerun};
use tb_results::report::Verdict;

const RAW: &str = "1..5
ok 1 - fine
not ok 2 - bad - one
#   Failed test 'bad - one'
#   at a.t line 1.
ok 3 # skip no net
not ok 4 - todo # TODO later
# Subtest: inner
    1..1
    not ok 1 - in
not ok 5 - inner \\# x
# Looks like you failed 2 tests of 5.
";

fn tap() -> Want<'static> {
    Want {
        runner: "tap",
        counts: known([1, 2, 1, 0]),
        failing: Some(&["bad - one", "inner # x"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn directives_and_subtests() {
    let report = tap().of(RAW);
    let failure = tb_results::rerun::lines(&report).unwrap_err();
    assert!(format!("{failure:?}").contains("does not tell how to run one test of tap"), "{failure:?}");
}

#[test]
fn a_plan_that_is_not_kept_is_a_death() {
    let report = of("1..2\nok 1 - x\n# Looks like your test exited with 3 just after 1.\n");
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Infra), false));
    let report = of("1..5\nok 1 - x\nBail out!  database gone\n");
    assert_eq!((report.verdict(), four(&report.counts())), (Some(Verdict::Infra), known([1, 0, 0, 0])));
    assert_eq!(of("ok 1 - x\nnot ok 2\n1..2\n").verdict(), Some(Verdict::Fail), "the plan may come last");
}

#[test]
fn a_file_that_skips_itself_passes() {
    assert_eq!(of("1..0 # SKIP no module\n").verdict(), Some(Verdict::Pass));
    assert_eq!(of("1..0\n").verdict(), Some(Verdict::NoTests));
}

#[test]
fn prove_shows_results_only_when_asked() {
    let end = "\nTest Summary Report\n-------------------\na.t (Wstat: 512 (exited 2) Tests: 5 Failed: 2)\n  Failed tests:  2, 5\n  Non-zero exit status: 2\n\
               Files=2, Tests=7,  3 wallclock secs ( 0.02 usr  0.00 sys +  0.09 cusr  0.00 csys =  0.11 CPU)\nResult: FAIL\n";
    let verbose = format!("a.t .. \n{RAW}Failed 2/5 subtests \nb.t .. \n1..2\nok 1 - x\nok 2 - y\nok\n{end}");
    let report = Want { counts: known([3, 2, 1, 0]), ..tap() }.of(verbose);
    assert_eq!(report.duration(), Some(3.0));
    let quiet = format!(
        "a.t .. \nDubious, test returned 2 (wstat 512, 0x200)\nFailed 2/5 subtests \nb.t .. ok\n{end}"
    );
    Want { counts: [None, Some(2), None, Some(0)], failing: None, ..tap() }.of(&quiet);
    // Perl's own words on stderr name them.
    let named = format!("#   Failed test 'bad - one'\n#   Failed test 'inner'\n{quiet}");
    Want { counts: [None, Some(2), None, Some(0)], failing: Some(&["bad - one", "inner"]), ..tap() }
        .of(named);
    let torn = "b.t .. \nFailed 1/2 subtests \n\nTest Summary Report\n-------------------\nb.t (Wstat: 768 (exited 3) Tests: 1 Failed: 0)\n  Parse errors: Bad plan.  You planned 2 tests but ran 1.\nFiles=1, Tests=1,  0 wallclock secs ( 0.02 usr )\nResult: FAIL\n";
    assert_eq!(of(torn).verdict(), Some(Verdict::Infra));
    let bail = of(
        "a.t .. ok\nBailout called.  Further testing stopped:  no database\nFAILED--Further testing stopped: no database\n",
    );
    assert_eq!(
        (bail.verdict(), four(&bail.counts())),
        (Some(Verdict::Infra), [None, Some(0), None, Some(0)])
    );
}

const BATS: &str = "1..4
ok 1 fine in 23ms
not ok 2 bad - one # 1 in 4ms
# (in test file s.bats, line 2)
#   `@test \"bad - one # 1\" { [ 1 -eq 2 ]; }' failed
not ok 3 not now in 7ms # SKIP later
ok 4 runs zz in 51ms
";

fn bats() -> Want<'static> {
    Want {
        runner: "bats",
        counts: known([2, 1, 1, 0]),
        failing: Some(&["bad - one # 1"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn bats_in_tap_and_pretty() {
    assert_eq!(rerun(&bats().of(BATS)), ["bats -f '^(bad - one # 1)$' ."]);
    let pretty = "\x1b[34;1ms.bats\n\
        \x1b[0m\x1b[1G   fine\x1b[K\x1b[68G1/4 in 0 sec\x1b[2G\x1b[1G ✓ fine\x1b[32;22m [33]\x1b[K\n\
        \x1b[0m\x1b[1G   bad - one # 1\x1b[K\x1b[68G2/4\x1b[2G\x1b[31;1m\x1b[1G ✗ bad - one # 1\x1b[K\n\
        \x1b[0m\x1b[31;22m   (in test file s.bats, line 2)\n\
        \x1b[0m\x1b[31;22m   9 tests, 9 failures\n\
        \x1b[0m\x1b[1G   not now\x1b[K\x1b[68G3/4\x1b[2G\x1b[1G - not now (skipped: later)\x1b[K\n\
        \x1b[0m\x1b[1G   runs zz\x1b[K\x1b[68G4/4\x1b[2G\x1b[1G ✓ runs zz\x1b[K\n";
    let end = "\x1b[0m\x1b[31;1m\n4 tests, 1 failure, 1 skipped in 1 seconds\n\x1b[0m\n";
    let report = bats().of(format!("{pretty}{end}"));
    assert_eq!(report.failing().unwrap()[0].place, Some(("s.bats".to_owned(), 2)));
    Want { verdict: Verdict::Mixed, complete: false, ..bats() }.of(pretty);
}

#[test]
fn bats_setup_of_a_file() {
    let log =
        "1..1\nnot ok 1 setup_file failed\n# (from function `setup_file' in test file s.bats, line 1)\n";
    assert_eq!(failing(&of(log)), Some(vec!["setup_file failed"]));
}
