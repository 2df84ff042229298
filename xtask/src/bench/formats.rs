//! Long logs of every runner, made of the lines that it prints for a test, and what reading them costs beside a
//! log of pytest's.

use super::measure::{self, Case, quantile, table};
use super::{Bench, LIMIT, data, quiet, timed};
use crate::{Result, doing, run};
use std::fs;
use std::io::Write;

/// About so long is each log.
const SIZE: u64 = 32 << 20;
/// No format may take more than so many times pytest's time for a byte.
const GOAL: f64 = 2.0;
/// Tests of a module: of a hundred two fail and three are skipped.
const MODULE: usize = 100;
const FAILED: [usize; 2] = [7, 57];
const SKIPPED: [usize; 3] = [5, 35, 85];

/// What a runner prints, with `$n`, `$test` and `$module` for a test's number, name and module, and with `$tests`,
/// `$passed`, `$failed` and `$skipped` for the counts of the whole.
struct Format {
    name: &'static str,
    head: &'static str,
    /// Before and behind a module's tests.
    open: &'static str,
    close: &'static str,
    passed: &'static str,
    failed: &'static str,
    skipped: &'static str,
    /// Behind all modules; then a report of each failure.
    end: &'static str,
    report: &'static str,
    tail: &'static str,
}

const NONE: Format = Format {
    name: "",
    head: "",
    open: "",
    close: "",
    passed: "",
    failed: "",
    skipped: "",
    end: "",
    report: "",
    tail: "",
};

/// An event of `go test -json` about a test.
macro_rules! event {
    ($action:literal, $more:literal) => {
        concat!(
            "{\"Time\":\"2026-01-01T12:00:00.123456789Z\",\"Action\":\"",
            $action,
            "\",\"Package\":\"example.com/module$module\",\"Test\":\"Test_$test\"",
            $more,
            "}\n"
        )
    };
}

const FORMATS: &[Format] = &[
    Format {
        name: "bats",
        head: "\x1b[34;1mshop.bats\n",
        passed: "\x1b[0m\x1b[1G   $test\x1b[K\x1b[77G$n/$tests\x1b[2G\x1b[1G ✓ $test\x1b[K\n",
        failed: "\x1b[0m\x1b[1G   $test\x1b[K\x1b[77G$n/$tests\x1b[2G\x1b[31;1m\x1b[1G ✗ $test\x1b[K\n\
                 \x1b[0m\x1b[31;22m   (in test file shop.bats, line $n)\n\
                 \x1b[0m\x1b[31;22m     `[ 42 -eq 43 ]' failed\n",
        skipped: "\x1b[0m\x1b[1G   $test\x1b[K\x1b[77G$n/$tests\x1b[2G\x1b[1G - $test (skipped: no net)\x1b[K\n",
        tail: "\x1b[0m\x1b[31;1m\n$tests tests, $failed failures, $skipped skipped\n\x1b[0m",
        ..NONE
    },
    Format {
        name: "cargo-test",
        head: "     Running unittests src/lib.rs (target/debug/deps/shop-8348ca7a80742723)\n\nrunning $tests tests\n",
        passed: "test module_$module::tests::$test ... ok\n",
        failed: "test module_$module::tests::$test ... FAILED\n",
        skipped: "test module_$module::tests::$test ... ignored, no net\n",
        end: "\nfailures:\n\n",
        report: "---- module_$module::tests::$test stdout ----\n\n\
                 thread 'module_$module::tests::$test' (123) panicked at src/lib.rs:$n:54:\n\
                 assertion `left == right` failed\n  left: 42\n right: 43\n\n",
        tail: "\ntest result: FAILED. $passed passed; $failed failed; $skipped ignored; 0 measured; 0 filtered out; \
               finished in 9.01s\n\nerror: test failed, to rerun pass `--lib`\n",
        ..NONE
    },
    Format {
        name: "ctest",
        head: "Test project /home/user/shop/build\n",
        passed: "    Start $n: unit.$test\n$n/$tests Test #$n: unit.$test ..............   Passed    0.01 sec\n",
        failed: "    Start $n: unit.$test\n$n/$tests Test #$n: unit.$test ..............***Failed    0.01 sec\n",
        skipped: "    Start $n: unit.$test\n$n/$tests Test #$n: unit.$test ..............***Skipped   0.01 sec\n",
        end: "\n97% tests passed, $failed tests failed out of $tests\n\nTotal Test time (real) = 9.01 sec\n\n\
              The following tests FAILED:\n",
        report: "\t $n - unit.$test (Failed)\n",
        tail: "Errors while running CTest\n",
        ..NONE
    },
    Format {
        name: "go",
        passed: "=== RUN   Test_$test\n--- PASS: Test_$test (0.01s)\n",
        failed: "=== RUN   Test_$test\n    shop_test.go:4: Add(40, 2) = 42, want 43\n--- FAIL: Test_$test (0.01s)\n",
        skipped: "=== RUN   Test_$test\n    shop_test.go:9: no net\n--- SKIP: Test_$test (0.00s)\n",
        close: "FAIL\nFAIL\texample.com/shop/module$module\t0.127s\n",
        tail: "FAIL\n",
        ..NONE
    },
    Format {
        name: "go -json",
        passed: concat!(
            event!("run", ""),
            event!("output", ",\"Output\":\"=== RUN   Test_$test\\n\""),
            event!("output", ",\"Output\":\"--- PASS: Test_$test (0.01s)\\n\""),
            event!("pass", ",\"Elapsed\":0.01"),
        ),
        failed: concat!(
            event!("run", ""),
            event!("output", ",\"Output\":\"=== RUN   Test_$test\\n\""),
            event!("output", ",\"Output\":\"    shop_test.go:4: Add(40, 2) = 42, want 43\\n\""),
            event!("output", ",\"Output\":\"--- FAIL: Test_$test (0.01s)\\n\""),
            event!("fail", ",\"Elapsed\":0.01"),
        ),
        skipped: concat!(
            event!("run", ""),
            event!("output", ",\"Output\":\"=== RUN   Test_$test\\n\""),
            event!("output", ",\"Output\":\"--- SKIP: Test_$test (0.00s)\\n\""),
            event!("skip", ",\"Elapsed\":0"),
        ),
        close: "{\"Time\":\"2026-01-01T12:00:00.123456789Z\",\"Action\":\"fail\",\
                \"Package\":\"example.com/module$module\",\"Elapsed\":0.127}\n",
        ..NONE
    },
    Format {
        name: "gradle",
        head: "> Task :test FAILED\n\n",
        passed: "shop.Module$module > $test PASSED\n\n",
        failed: "shop.Module$module > $test FAILED\n    java.lang.AssertionError at ShopTest.java:$n\n\n",
        skipped: "shop.Module$module > $test SKIPPED\n\n",
        tail: "$tests tests completed, $failed failed, $skipped skipped\n\n\
               FAILURE: Build failed with an exception.\n\nBUILD FAILED in 9s\n",
        ..NONE
    },
    Format {
        name: "gtest",
        head: "Running main() from gtest_main.cc\n[==========] Running $tests tests from 99 test suites.\n",
        open: "[----------] 100 tests from Module$module\n",
        passed: "[ RUN      ] Module$module.$test\n[       OK ] Module$module.$test (1 ms)\n",
        failed: "[ RUN      ] Module$module.$test\n/home/user/shop/t.cc:$n: Failure\nValue of: false\n\
                 [  FAILED  ] Module$module.$test (1 ms)\n",
        skipped: "[ RUN      ] Module$module.$test\n[  SKIPPED ] Module$module.$test (0 ms)\n",
        close: "[----------] 100 tests from Module$module (100 ms total)\n\n",
        end: "[==========] $tests tests from 99 test suites ran. (9012 ms total)\n[  PASSED  ] $passed tests.\n\
              [  SKIPPED ] $skipped tests, listed below:\n[  FAILED  ] $failed tests, listed below:\n",
        report: "[  FAILED  ] Module$module.$test\n",
        tail: "\n$failed FAILED TESTS\n",
    },
    Format {
        name: "jest",
        open: "FAIL src/module$module.test.js\n  the shop\n",
        passed: "    ✓ $test (3 ms)\n",
        failed: "    ✕ $test (6 ms)\n",
        skipped: "    ○ skipped $test\n",
        close: "\n",
        report: "  ● the shop › $test\n\n    expect(received).toBe(expected) // Object.is equality\n\n\
                 \x20   Expected: 43\n    Received: 42\n\n      at toBe (src/module$module.test.js:9:86)\n\n",
        tail: "Test Suites: 99 failed, 99 total\n\
               Tests:       $failed failed, $skipped skipped, $passed passed, $tests total\n\
               Snapshots:   0 total\nTime:        9.12 s\n",
        ..NONE
    },
    Format {
        name: "junitxml",
        head: "<?xml version=\"1.0\" encoding=\"utf-8\"?><testsuites name=\"shop\">\n",
        open: "<testsuite name=\"module$module\" tests=\"100\" failures=\"2\" skipped=\"3\" time=\"0.127\">\n",
        passed: "<testcase classname=\"tests.unit.module_$module\" name=\"$test\" time=\"0.001\" />\n",
        failed: "<testcase classname=\"tests.unit.module_$module\" name=\"$test\" time=\"0.002\">\
                 <failure message=\"AssertionError: assert 42 == 43\">def test(self):\n\
                 &gt;       assert compute(42) == 43\nE       AssertionError: assert 42 == 43\n\n\
                 tests/unit/module_$module.py:$n: AssertionError</failure></testcase>\n",
        skipped: "<testcase classname=\"tests.unit.module_$module\" name=\"$test\" time=\"0.000\">\
                  <skipped type=\"pytest.skip\" message=\"no net\">tests/unit/module.py:3: no net</skipped></testcase>\n",
        close: "</testsuite>\n",
        tail: "</testsuites>\n",
        ..NONE
    },
    Format {
        name: "mocha",
        open: "\n  module $module\n",
        passed: "    ✔ $test (12ms)\n",
        failed: "    1) $test\n",
        skipped: "    - $test\n",
        tail: "\n\n  $passed passing (9s)\n  $skipped pending\n  $failed failing\n\n",
        ..NONE
    },
    Format {
        name: "nextest",
        head: " Nextest run ID 1da1bdcd-0355-41e4-8ac2-3f3e50831718 with nextest profile: default\n\
               \x20   Starting $tests tests across 99 binaries ($skipped tests skipped)\n",
        passed: "        PASS [   0.008s] ($n/$tests) shop module_$module::tests::$test\n",
        failed: "        FAIL [   0.011s] ($n/$tests) shop module_$module::tests::$test\n  stdout ───\n\n\
                 \x20   running 1 test\n    test module_$module::tests::$test ... FAILED\n\n  stderr ───\n\n\
                 \x20   thread 'module_$module::tests::$test' (123) panicked at src/lib.rs:$n:54:\n    left: 42\n\n",
        end: "────────────\n     Summary [   9.060s] $tests tests run: $passed passed, $failed failed, $skipped skipped\n",
        report: "        FAIL [   0.011s] ($n/$tests) shop module_$module::tests::$test\n",
        tail: "error: test run failed\n",
        ..NONE
    },
    Format {
        name: "node-test",
        open: "▶ module $module\n",
        passed: "  ✔ $test (1.658643ms)\n",
        failed: "  ✖ $test (1.315751ms)\n",
        skipped: "  ﹣ $test (0.167185ms) # SKIP\n",
        close: "✖ module $module (99.658643ms)\n",
        tail: "ℹ tests $tests\nℹ suites 99\nℹ pass $passed\nℹ fail $failed\nℹ cancelled 0\nℹ skipped $skipped\n\
               ℹ todo 0\nℹ duration_ms 9106.796938\n",
        ..NONE
    },
    Format {
        name: "rspec",
        open: "\nModule $module\n",
        passed: "  handles $test and says so\n",
        failed: "  handles $test and says so (FAILED - $n)\n",
        skipped: "  handles $test and says so (PENDING: no net)\n",
        end: "\nFinished in 9.01 seconds (files took 0.11 seconds to load)\n\
              $tests examples, $failed failures, $skipped pending\n\nFailed examples:\n\n",
        report: "rspec ./spec/module_$module_spec.rb:$n # Module handles $test and says so\n",
        tail: "\n",
        ..NONE
    },
    Format {
        name: "surefire",
        head: "[INFO]  T E S T S\n",
        open: "[INFO] Running shop.Module$moduleTest\n",
        passed: "12:00:00.123 [main] INFO shop.Worker - $test: handled request id=$n status=200\n",
        failed: "[ERROR] $test(shop.Module$moduleTest)  Time elapsed: 0.015 s  <<< FAILURE!\n\
                 java.lang.AssertionError: expected:<43> but was:<42>\n\
                 \tat shop.Module$moduleTest.$test(ModuleTest.java:$n)\n\n",
        skipped: "[WARNING] Tests are skipped: no net\n",
        close: "[ERROR] Tests run: 100, Failures: 2, Errors: 0, Skipped: 3, Time elapsed: 0.127 s <<< FAILURE! \
                - in shop.Module$moduleTest\n",
        tail: "[INFO] Results:\n[INFO]\n[ERROR] Tests run: $tests, Failures: $failed, Errors: 0, Skipped: $skipped\n[INFO]\n\
               [INFO] BUILD FAILURE\n",
        ..NONE
    },
    Format {
        name: "tap",
        head: "TAP version 13\n1..$tests\n",
        passed: "ok $n - $test\n",
        failed: "not ok $n - $test\n#   Failed test '$test'\n#   at shop.t line $n.\n#          got: '42'\n",
        skipped: "ok $n - $test # skip no net\n",
        ..NONE
    },
    Format {
        name: "unittest",
        passed: "$test (tests.unit.module_$module.ShopTest.$test) ... ok\n",
        failed: "$test (tests.unit.module_$module.ShopTest.$test) ... FAIL\n",
        skipped: "$test (tests.unit.module_$module.ShopTest.$test) ... skipped 'no net'\n",
        end: "\n",
        report: "======================================================================\n\
                 FAIL: $test (tests.unit.module_$module.ShopTest.$test)\n\
                 ----------------------------------------------------------------------\n\
                 Traceback (most recent call last):\n\
                 \x20 File \"/home/user/shop/tests/unit/module_$module.py\", line $n, in $test\n\
                 \x20   self.assertEqual(compute(42), 43)\nAssertionError: 42 != 43\n\n",
        tail: "----------------------------------------------------------------------\nRan $tests tests in 9.012s\n\n\
               FAILED (failures=$failed, skipped=$skipped)\n",
        ..NONE
    },
    Format {
        name: "vitest",
        head: "\n RUN  v4.1.12 /home/user/shop\n\n",
        passed: " ✓ src/module$module.test.js > the shop > $test 3ms\n",
        failed: " × src/module$module.test.js > the shop > $test 6ms\n   → expected 42 to be 43\n",
        skipped: " ↓ src/module$module.test.js > the shop > $test\n",
        tail: "\n Test Files  99 failed (99)\n      Tests  $failed failed | $passed passed | $skipped skipped ($tests)\n\
               \x20  Start at  12:00:00\n   Duration  9.12s\n",
        ..NONE
    },
];

/// Every format beside pytest: the time for as many bytes.
pub(super) fn formats(bench: &Bench) -> Result {
    println!("\nformats: a log of {} MB of each runner, found out by itself, page cache warm", SIZE >> 20);
    let Some(tool) = bench.tool("tb-results") else { return Ok(()) };
    let dir = bench.dir.join("formats");
    let (pytest, truth) = data::pytest_log(&dir.join("pytest"), SIZE)?;
    let mut logs = vec![("pytest".to_owned(), pytest, truth)];
    for format in FORMATS {
        let log = dir.join(format!("{}.log", format.name));
        let mut truth = String::new();
        let written = data::create(&log, |to| format.write(to).map(|said| truth = said));
        doing(format!("write {}", log.display()), written)?;
        logs.push((format.name.to_owned(), log, truth));
    }
    let mut cases = Vec::new();
    let mut peak = (0, String::new());
    for (name, log, truth) in &logs {
        let mut command = quiet(&tool, &dir);
        command.arg("--file").arg(log);
        let (code, said) = run::output(&mut command, LIMIT)?;
        if !said.contains(truth) {
            let said = said.lines().next().unwrap_or_default();
            println!("  {name}: skipped, its answer (exit code {code}) is not {truth:?} but {said:?}");
            continue;
        }
        peak = peak.max((measure::peak_rss_kb(&mut command)?, name.clone()));
        let bytes = doing(format!("look at {}", log.display()), fs::metadata(log))?.len();
        cases.push(Case::new(name, move || {
            Ok(timed(&mut command, &[0, 1])?.map(|seconds| seconds * SIZE as f64 / bytes as f64))
        }));
    }
    let series = measure::interleave(bench.rounds(9), cases)?;
    table(&format!("reading {} MB", SIZE >> 20), &series);
    let median = |samples: &[f64]| quantile(samples, 0.5);
    let peer = series.first().and_then(|(_, samples)| median(samples)).unwrap_or(f64::INFINITY);
    let over = series.iter().filter(|(_, samples)| median(samples).is_some_and(|m| m > GOAL * peer));
    let over: Vec<&str> = over.map(|(name, _)| name.as_str()).collect();
    println!("\nmore than {GOAL} times pytest's time: {}", if over.is_empty() { "none" } else { "" });
    over.iter().for_each(|name| println!("  {name}"));
    println!("most memory: {:.1} MB, {}", peak.0 as f64 / 1024.0, peak.1);
    Ok(())
}

/// What stands for the words with a `$`. A word that another begins with comes behind it.
type Values<'v> = [(&'static str, &'v str)];

impl Format {
    /// Writes the log, and says what is to be said of it.
    fn write(&self, to: &mut impl Write) -> std::io::Result<String> {
        let mut text = String::new();
        self.module(&mut text, 0, &[]);
        let modules = SIZE / text.len() as u64;
        let count = |of_hundred: usize| (modules * of_hundred as u64).to_string();
        let (failed, skipped) = (count(FAILED.len()), count(SKIPPED.len()));
        let (tests, passed) = (count(MODULE), count(MODULE - FAILED.len() - SKIPPED.len()));
        let counts: &Values<'_> =
            &[("tests", &tests), ("passed", &passed), ("failed", &failed), ("skipped", &skipped)];
        text.clear();
        fill(&mut text, self.head, counts);
        for module in 0..modules {
            self.module(&mut text, module, counts);
            to.write_all(text.as_bytes())?;
            text.clear();
        }
        fill(&mut text, self.end, counts);
        for module in 0..modules {
            FAILED.iter().for_each(|k| test(&mut text, self.report, module, *k, counts));
        }
        fill(&mut text, self.tail, counts);
        to.write_all(text.as_bytes())?;
        // How many passed and were skipped, not every runner says.
        Ok(format!(" passed, {failed} failed"))
    }

    fn module(&self, to: &mut String, module: u64, counts: &Values<'_>) {
        fill(to, self.open, &[("module", &format!("{module:05}"))]);
        for k in 0..MODULE {
            let line = match k {
                k if FAILED.contains(&k) => self.failed,
                k if SKIPPED.contains(&k) => self.skipped,
                _ => self.passed,
            };
            test(to, line, module, k, counts);
        }
        fill(to, self.close, &[("module", &format!("{module:05}"))]);
    }
}

/// What is printed for one test.
fn test(to: &mut String, line: &str, module: u64, k: usize, counts: &Values<'_>) {
    let cases = ["empty", "list_is_long", "a_user_logs_in", "nobody_answers", "unicode"];
    let n = (module * MODULE as u64 + k as u64 + 1).to_string();
    let name = format!("test_behaviour_{k:04}_when_{}", cases[k % cases.len()]);
    let own = [("module", &format!("{module:05}")[..]), ("n", &n), ("test", &name)];
    fill(to, line, &[counts, &own].concat());
}

/// Appends a text with its words filled in.
fn fill(to: &mut String, text: &str, values: &Values<'_>) {
    let mut parts = text.split('$');
    to.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let found = values.iter().find_map(|(word, value)| Some((value, part.strip_prefix(word)?)));
        let (value, rest) = found.unwrap_or((&"", part));
        to.push_str(value);
        to.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in() {
        let mut text = String::new();
        let values = [("tests", "9"), ("n", "3"), ("test", "a"), ("module", "m")];
        fill(&mut text, "$n/$tests $moduleTest.$test: 1$", &values);
        assert_eq!(text, "3/9 mTest.a: 1");
    }
}
