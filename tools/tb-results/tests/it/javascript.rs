//! Jest, Vitest, Mocha and Node's own runner.

use crate::{Want, failing, four, known, of, rerun};
use tb_results::report::{Outcome, Verdict};

const JEST: &str = "FAIL ./a.test.js
  ● Console

    console.log
      Tests:       9 failed, 9 total

      at Object.log (a.test.js:1:55)

  ● cart › totals wrong

    expect(received).toBe(expected) // Object.is equality

    Expected: 4

      at Object.toBe (a.test.js:1:155)

  ● cart › deep › null

    TypeError: Cannot read properties of null (reading 'x')

      at Object.x (a.test.js:2:71)

PASS ./c.test.js (5.2 s)
FAIL ./b.test.js
  ● Test suite failed to run

    Cannot find module './nope' from 'b.test.js'

";
const JEST_END: &str = "Test Suites: 2 failed, 1 passed, 3 total
Tests:       2 failed, 1 skipped, 1 todo, 3 passed, 7 total
Snapshots:   0 total
Time:        1.387 s, estimated 2 s
Ran all test suites.
";

fn jest() -> Want<'static> {
    Want {
        runner: "jest",
        counts: known([3, 2, 1, 1]),
        failing: Some(&["cart › totals wrong", "cart › deep › null"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn jest_a_suite_that_cannot_run_is_an_error() {
    let report = jest().of(format!("{JEST}{JEST_END}"));
    assert_eq!(report.duration(), Some(1.387));
    let failing = report.failing().unwrap();
    assert_eq!(
        (failing[0].error_class.as_deref(), failing[1].error_class.as_deref()),
        (None, Some("TypeError"))
    );
    assert_eq!(failing[1].place, Some(("a.test.js".to_owned(), 2)));
    assert_eq!(rerun(&report), ["npx jest --runInBand -t '^(cart totals wrong|cart deep null)$'"]);
    // More than 20 tests, and everything is said twice.
    let twice = format!("{JEST}Summary of all failing tests\n{JEST}{JEST_END}");
    jest().of(twice);
}

#[test]
fn jest_that_died_does_not_know_what_passed() {
    let log = format!("{JEST}  ●  process.exit called with \"3\"\n\n      at Object.exit (c.test.js:1:56)\n");
    let want =
        Want { counts: [None, Some(2), None, Some(1)], verdict: Verdict::Mixed, complete: false, ..jest() };
    assert_eq!(want.of(log).sessions[0].faults, ["process.exit called with \"3\""]);
    let verbose = "PASS ./c.test.js\n  cart\n    ✓ adds (25 ms)\n    ○ skipped later\n";
    assert_eq!(four(&of(verbose).counts()), known([1, 0, 1, 0]));
}

#[test]
fn jest_json_and_no_tests() {
    let json = r#"{"numFailedTestSuites":1,"numFailedTests":1,"numPassedTests":2,"numPendingTests":1,"numTotalTests":4,"startTime":1000,"testResults":[{"assertionResults":[{"ancestorTitles":["cart","deep"],"title":"null","status":"failed","failureMessages":["TypeError: x\n at y"]}],"endTime":2500,"name":"/srv/a.test.js","status":"failed"},{"assertionResults":[],"name":"/srv/b.test.js","status":"failed"}]}"#;
    let report =
        Want { counts: known([2, 1, 1, 1]), failing: Some(&["cart › deep › null"]), ..jest() }.of(json);
    assert_eq!(report.duration(), Some(1.5));
    // So long that its middle is not kept.
    let long =
        json.replace("\"testResults\":[", &format!("\"testResults\":[{}", "{\"ab\":1},".repeat(30_000)));
    let report = of(long);
    assert_eq!((four(&report.counts()), failing(&report)), ([Some(2), Some(1), Some(1), None], None));
    let none = of("No tests found, exiting with code 1\nRun with `--passWithNoTests` to exit with code 0\n");
    assert_eq!((none.verdict(), none.complete()), (Some(Verdict::NoTests), true));
}

const VITEST: &str = "
 RUN  v4.1.12 /srv/app

stdout | a.test.js > cart > adds
 Tests  9 failed | 9 passed (18)

 ❯ a.test.js (6 tests | 2 failed | 1 skipped | 1 todo) 27ms
     ✓ adds 2ms
     × totals wrong 11ms
 ❯ b.test.js (0 test)
 ✓ c.test.js (2 tests) 3ms
";
const VITEST_END: &str = "
⎯⎯⎯⎯⎯⎯⎯ Failed Suites 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  b.test.js [ b.test.js ]
Error: Cannot find module './nope.js'

 FAIL  a.test.js > cart > totals wrong
AssertionError: expected 3 to be 4 // Object.is equality

 ❯ a.test.js:2:89

 FAIL  |unit| a.test.js > cart > deep > null
TypeError: Cannot read properties of null (reading 'x')

 Test Files  1 failed | 1 passed (2)
      Tests  2 failed | 3 passed | 1 expected fail | 1 skipped | 1 todo (8)
     Errors  1 error
   Start at  20:47:01
   Duration  1.46s (transform 115ms, setup 0ms)
";

fn vitest() -> Want<'static> {
    Want {
        runner: "vitest",
        counts: known([3, 2, 1, 2]),
        failing: Some(&["a.test.js > cart > totals wrong", "a.test.js > cart > deep > null"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn vitest_suites_and_unhandled_errors_are_errors() {
    let report = vitest().of(format!("{VITEST}{VITEST_END}"));
    assert_eq!((report.counts().xfailed, report.duration()), (Some(1), Some(1.46)));
    assert_eq!(report.failing().unwrap()[0].place, Some(("a.test.js".to_owned(), 2)));
    assert_eq!(
        rerun(&report),
        ["npx vitest run --no-file-parallelism a.test.js -t '^(cart totals wrong|cart deep null)$'"]
    );
}

#[test]
fn vitest_that_died_or_found_nothing() {
    let report = of(VITEST);
    assert_eq!((four(&report.counts()), report.complete()), (known([4, 2, 1, 0]), false));
    let none = of("\n RUN  v4.1.12 /srv/app\n\nNo test files found, exiting with code 1\n");
    assert_eq!((none.verdict(), none.complete()), (Some(Verdict::NoTests), true));
}

const MOCHA: &str = "

  ✔ top
  1) top bad
  cart
  9 passing (1ms)
  9 failing
    ✔ adds
    2) totals
    - later
    hooks
      3) \"before all\" hook: db for \"never\"

";
const MOCHA_END: &str = "
  2 passing (137ms)
  1 pending
  3 failing

  1) top bad:
     RangeError: r
      at Context.<anonymous> (m.js:4:27)

  2) cart
       totals:

      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 !== 2

      at Context.<anonymous> (m.js:2:89)

  3) cart
       hooks
         \"before all\" hook: db for \"never\":
     Error: no db
      at Context.<anonymous> (m.js:3:110)
";

#[test]
fn mocha_names_run_over_several_lines_and_hooks_fail_too() {
    let want = Want {
        runner: "mocha",
        counts: known([2, 3, 1, 0]),
        failing: Some(&["top bad", "cart totals", "cart hooks \"before all\" hook: db for \"never\""]),
        verdict: Verdict::Fail,
        complete: true,
    };
    let report = want.of(format!("{MOCHA}{MOCHA_END}"));
    assert_eq!(report.duration(), Some(0.137));
    assert_eq!(report.failing().unwrap()[1].place, Some(("m.js".to_owned(), 2)));
    assert_eq!(rerun(&report), ["npx mocha -g '^(top bad$|cart totals$|cart hooks)'"]);
    let json = "{\n  \"stats\": {\n    \"tests\": 6,\n    \"passes\": 2,\n    \"pending\": 1,\n    \"failures\": 1,\n    \"duration\": 125\n  },\n  \"tests\": [\n    {\n      \"fullTitle\": \"top\"\n    }\n  ],\n\
                \x20 \"failures\": [\n    {\n      \"title\": \"x\",\n      \"fullTitle\": \"cart \\\"x\\\"\",\n      \"err\": {}\n    }\n  ]\n}\n";
    let report = of(json);
    assert_eq!((four(&report.counts()), report.duration()), (known([2, 1, 1, 0]), Some(0.125)));
    assert_eq!(failing(&report), Some(vec!["cart \"x\""]));
    let dead = of("\n\n  ✔ a\n  1) b\n");
    assert_eq!(
        (dead.runner(), dead.verdict(), four(&dead.counts())),
        (Some("mocha"), Some(Verdict::Mixed), known([1, 1, 0, 0]))
    );
}

const SPEC: &str = "✔ fine (3.409115ms)
✖ bad (3.767604ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
      at TestContext.<anonymous> (file:///srv/n.test.mjs:2:47)

﹣ skipped (0.118712ms) # SKIP
✖ todo fails (0.099273ms) # TODO
  Error: t

▶ parent
  ✔ child ok (0.171997ms)
  ✖ child bad (0.192848ms)
    TypeError [Error]: x
        at TestContext.<anonymous> (file:///srv/n.test.mjs:3:101)
        at TestContext.test (node:internal/test_runner/test:292:20)

✖ parent (8.26737ms)
▶ group
  ✖ in bad (0.194397ms)
    TypeError [Error]: Cannot read properties of null (reading 'x')
        at Suite.processPendingSubtests (node:internal/test_runner/test:526:18)

✖ group (0.714484ms)
✖ slow (66.615635ms)
  'test timed out after 50ms'

";
const SPEC_END: &str = "ℹ tests 9
ℹ suites 1
ℹ pass 2
ℹ fail 4
ℹ cancelled 1
ℹ skipped 1
ℹ todo 1
ℹ duration_ms 572.68093

✖ failing tests:

✖ bad (3.767604ms)
";

fn node() -> Want<'static> {
    Want {
        runner: "node-test",
        counts: known([2, 4, 1, 0]),
        failing: Some(&["bad", "child bad", "in bad", "slow", "parent"]),
        verdict: Verdict::Fail,
        complete: true,
    }
}

#[test]
fn nodes_suites_are_no_tests() {
    let report = node().of(format!("{SPEC}{SPEC_END}"));
    assert_eq!(report.duration(), Some(0.57268093));
    assert_eq!(report.counts().timed_out, Some(1));
    assert!(rerun(&report)[0].contains("'^child bad$'"));
    // Where no stack tells a suite from a test, the list is not known.
    let blind = SPEC.replace("Suite.process", "X.process");
    Want { failing: None, ..node() }.of(format!("{blind}{SPEC_END}"));
}

#[test]
fn nodes_tap_counts_every_level() {
    let tap = "TAP version 13
# Subtest: bad
not ok 1 - bad
  ---
  duration_ms: 5.666224
  location: '/srv/n.test.mjs:2:23'
  failureType: 'testCodeFailure'
  name: 'AssertionError'
  ...
# Subtest: group
    # Subtest: in bad
    not ok 1 - in bad
      ---
      failureType: 'testTimeoutFailure'
      ...
    1..1
not ok 2 - group
  ---
  type: 'suite'
  failureType: 'subtestsFailed'
  ...
ok 3 - later # SKIP
1..3
# tests 3
# suites 1
# pass 0
# fail 1
# cancelled 1
# skipped 1
# todo 0
# duration_ms 605.483125
";
    let report = Want { counts: known([0, 1, 1, 0]), failing: Some(&["bad", "in bad"]), ..node() }.of(tap);
    let failing = report.failing().unwrap();
    assert_eq!(
        (failing[0].error_class.as_deref(), failing[1].outcome),
        (Some("AssertionError"), Outcome::TimedOut)
    );
}

#[test]
fn nodes_dots_hide_how_many() {
    let log = ".X.X\n\nFailed tests:\n\n✖ bad (1.315751ms)\n  AssertionError: x\n✖ todo (0.2ms) # TODO\n";
    Want { counts: [None, None, None, Some(0)], failing: None, ..node() }.of(log);
}
