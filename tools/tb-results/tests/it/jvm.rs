//! Maven's Surefire and Gradle.

use crate::{Want, four, known, of, rerun};
use tb_results::report::Verdict;

const SUREFIRE: &str = "[INFO] --- maven-surefire-plugin:2.22.3:test (default-test) @ shop ---
[INFO] -------------------------------------------------------
[INFO]  T E S T S
[INFO] -------------------------------------------------------
[INFO] Running shop.CartTest
Tests run: 99, Failures: 9, Errors: 9, Skipped: 9
[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 2, Time elapsed: 0.078 s <<< FAILURE! - in shop.CartTest
[ERROR] raises(shop.CartTest)  Time elapsed: 0.001 s  <<< ERROR!
java.lang.IllegalStateException: bad state
	at shop.CartTest.raises(CartTest.java:6)

[ERROR] shop.CartTest.totals -- Time elapsed: 0.015 s <<< FAILURE!
java.lang.AssertionError: sum expected:<3> but was:<2>
	at shop.CartTest.totals(CartTest.java:5)

[INFO] Running shop.OkTest
[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.001 s - in shop.OkTest
[INFO] 
[INFO] Results:
[INFO] 
[ERROR] Failures: 
[ERROR]   CartTest.totals:5 sum expected:<3> but was:<2>
[ERROR] Errors: 
[ERROR]   CartTest.raises:6 IllegalState bad state
[INFO] 
[ERROR] Tests run: 7, Failures: 1, Errors: 1, Skipped: 2
";
const BUILD: &str = "[INFO] BUILD SUCCESS\n[INFO] Total time:  01:02 min\n";

fn surefire() -> Want<'static> {
    Want {
        runner: "surefire",
        counts: known([3, 1, 2, 1]),
        failing: Some(&["shop.CartTest.raises", "shop.CartTest.totals"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn only_totals_under_results_are_totals() {
    // With -Dmaven.test.failure.ignore the build is a success all the same.
    let report = surefire().of(format!("{SUREFIRE}{BUILD}"));
    assert_eq!(report.duration(), Some(62.0));
    let failing = report.failing().unwrap();
    assert_eq!(failing[0].error_class.as_deref(), Some("IllegalStateException"));
    assert_eq!(failing[0].place, Some(("CartTest.java".to_owned(), 6)));
    assert_eq!(rerun(&report), ["mvn test '-Dtest=shop.CartTest#raises+totals'"]);
}

#[test]
fn modules_are_summed_and_short_names_get_their_package() {
    let short: String = SUREFIRE.lines().filter(|l| !l.contains("<<<")).map(|l| format!("{l}\n")).collect();
    let want = Want { failing: Some(&["shop.CartTest.totals", "shop.CartTest.raises"]), ..surefire() };
    want.of(&short);
    assert_eq!(four(&of(format!("{short}{short}")).counts()), known([6, 2, 4, 2]));
}

#[test]
fn a_vm_that_went_has_no_results() {
    let log = "[INFO]  T E S T S\n[INFO] Running shop.CrashTest\n[INFO] Results:\n[INFO] Tests run: 0, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE\n\
               [ERROR] The forked VM terminated without properly saying goodbye. VM crash or System.exit called?\n[ERROR] Crashed tests:\n[ERROR] shop.CrashTest\n";
    let want = Want {
        counts: [None, None, Some(0), Some(0)],
        failing: Some(&[]),
        verdict: Verdict::Infra,
        complete: false,
        ..surefire()
    };
    assert_eq!(want.of(log).sessions[0].unfinished, ["shop.CrashTest"]);
    let build = "[INFO] -------------------------------------------------------------\n[ERROR] COMPILATION ERROR : \n[INFO] BUILD FAILURE\n";
    Want {
        counts: [None, None, None, Some(1)],
        failing: Some(&[]),
        verdict: Verdict::BuildError,
        ..surefire()
    }
    .of(build);
}

const GRADLE: &str = "> Task :compileTestJava
> Task :test FAILED

shop.CartTest > raises FAILED
    java.lang.IllegalStateException at CartTest.java:6

shop.CartTest > totals FAILED
    java.lang.AssertionError at CartTest.java:5

";

fn gradle() -> Want<'static> {
    Want {
        runner: "gradle",
        counts: known([3, 2, 2, 0]),
        failing: Some(&["shop.CartTest > raises", "shop.CartTest > totals"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn gradle_counts_when_a_test_failed() {
    let report =
        gradle().of(format!("{GRADLE}7 tests completed, 2 failed, 2 skipped\n\nBUILD FAILED in 8s\n"));
    assert_eq!(report.failing().unwrap()[0].place, Some(("CartTest.java".to_owned(), 6)));
    assert_eq!(rerun(&report), ["gradle test --tests shop.CartTest.raises --tests shop.CartTest.totals"]);
}

#[test]
fn green_gradle_counts_only_what_it_shows() {
    let want = Want {
        counts: [None, Some(0), None, Some(0)],
        failing: Some(&[]),
        verdict: Verdict::Pass,
        ..gradle()
    };
    want.of("> Task :test\n\nBUILD SUCCESSFUL in 4s\n");
    let shown =
        "> Task :test\n\nshop.OkTest > a PASSED\n\nshop.OkTest > b SKIPPED\n\nBUILD SUCCESSFUL in 4s\n";
    Want { counts: known([1, 0, 1, 0]), ..want }.of(shown);
    assert!(of("> Task :assemble\n\nBUILD SUCCESSFUL in 4s\n").sessions.is_empty(), "a build is no test run");
}

#[test]
fn gradles_other_ends() {
    let crash = ":test FAILED\n\n* What went wrong:\n> Process 'Gradle Test Executor 1' finished with non-zero exit value 3\n\nBUILD FAILED in 4s\n";
    Want {
        counts: [None, None, None, Some(0)],
        failing: Some(&[]),
        verdict: Verdict::Infra,
        complete: false,
        ..gradle()
    }
    .of(crash);
    let build = "> Task :compileTestJava FAILED\n\nBUILD FAILED in 4s\n";
    assert_eq!(of(build).verdict(), Some(Verdict::BuildError));
    let gate = "> Task :test\n> Task :jacocoTestCoverageVerification FAILED\n\nBUILD FAILED in 4s\n";
    assert_eq!(of(gate).verdict(), Some(Verdict::Fail));
}
