//! What stands around and between the text: colours, prefixes, encodings, widths, levels of talk.

use crate::{HEAD, SHORT, bar, failing, four, known, of};
use tb_results::report::Verdict;

fn plain() -> String {
    format!(
        "{HEAD}t.py::test_a[x] PASSED                                                   [ 50%]\n\
         t.py::test_b[a - b] FAILED                                               [100%]\n\n{SHORT}\
         FAILED t.py::test_b[a - b] - assert 0\n{}",
        bar("1 failed, 1 passed, 1 warning in 0.10s")
    )
}

fn assert_plain(log: impl AsRef<[u8]>) {
    let report = of(&log);
    let shown = String::from_utf8_lossy(log.as_ref()).into_owned();
    assert_eq!(failing(&report), Some(vec!["t.py::test_b[a - b]"]), "{shown}");
    assert_eq!(four(&report.counts()), [Some(1), Some(1), Some(0), Some(0)], "{shown}");
    assert_eq!(report.counts().warnings, Some(1), "{shown}");
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true), "{shown}");
}

fn prefixed(prefix: impl Fn(usize) -> String) -> String {
    plain().lines().enumerate().map(|(i, l)| format!("{}{l}\n", prefix(i))).collect()
}

#[test]
fn prefixes_of_ci_systems_on_every_line() {
    assert_plain(prefixed(|i| format!("2024-05-01T12:00:{:02}.1234567Z ", i % 60)));
    assert_plain(prefixed(|i| format!("[2024-05-01T12:00:{:02}.123Z] ", i % 60)));
    assert_plain(prefixed(|_| "tests-1  | ".to_owned()));
    assert_plain(prefixed(|i| format!("[{:5}s] ", 3379 + i)));
    assert_plain(prefixed(|_| "> ".to_owned()));
    assert_plain(prefixed(|i| format!("job\tRun tests\t2024-05-01T12:00:{:02}.1234567Z ", i % 60)));
    // Some lines only.
    assert_plain(prefixed(|i| if i % 5 == 4 { String::new() } else { format!("12:00:{:02}  ", i % 60) }));
}

#[test]
fn a_prefix_that_begins_late_is_learnt_from_the_header() {
    assert_plain(format!("{}{}", "building...\n".repeat(500), prefixed(|_| "app_1  | ".to_owned())));
}

#[test]
fn the_prefix_of_a_quiet_run_is_learnt_from_its_lines() {
    let log: String = [
        "..F                                                                      [100%]",
        "=========================== short test summary info ============================",
        "FAILED t.py::test_b - assert 0",
        "1 failed, 2 passed in 0.10s",
        "##[error]Process completed with exit code 1.",
    ]
    .iter()
    .map(|l| format!("2024-05-01T12:00:00.1234567Z {l}\n"))
    .collect();
    let report = of(log);
    assert_eq!(failing(&report).unwrap(), ["t.py::test_b"]);
}

#[test]
fn crlf_utf16_and_a_byte_order_mark() {
    assert_plain(plain().replace('\n', "\r\n"));
    assert_plain(format!("\u{feff}{}", plain()));
    let wide: Vec<u8> = format!("\u{feff}{}", plain()).encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_plain(wide);
}

#[test]
fn colours_in_every_place_that_pytest_puts_them() {
    let log = "\x1b[1m============================= test session starts ==============================\x1b[0m\r\n\
        \x1b[1mcollecting ... \x1b[0m\x1b[1m\rcollected 2 items                              \x1b[0m\r\n\r\n\
        t.py::test_a[x] \x1b[32mPASSED\x1b[0m\x1b[32m                             [ 50%]\x1b[0m\r\n\
        t.py::test_b[a - b] \x1b[31mFAILED\x1b[0m\x1b[31m                         [100%]\x1b[0m\r\n\r\n\
        \x1b[36m\x1b[1m=========================== short test summary info ============================\x1b[0m\r\n\
        \x1b[31mFAILED\x1b[0m t.py::\x1b[1mtest_b[a - b]\x1b[0m - assert 0\r\n\
        \x1b[31m=============== \x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m1 passed\x1b[0m, \x1b[33m1 warning\x1b[0m\x1b[31m in 0.10s\x1b[0m\x1b[31m ================\x1b[0m\r\n";
    assert_plain(log);
}

#[test]
fn colours_under_xdist_stand_between_the_worker_and_the_word() {
    let report = of(format!(
        "{HEAD}t.py::test_a \n[gw0]\x1b[36m [ 50%] \x1b[0m\x1b[31mFAILED\x1b[0m t.py::test_a \n\n{}",
        bar("1 failed in 0.10s")
    ));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_a"]);
    assert_eq!(report.failing().unwrap()[0].worker.as_deref(), Some("gw0"));
}

#[test]
fn bytes_that_are_no_text_harm_nothing() {
    let mut log = HEAD.as_bytes().to_vec();
    log.extend_from_slice(b"t.py::test_n bad: \xff\xfe\xc0 nul:\0 \x1b[2K\x1b[1G end\nPASSED\n\xff\n");
    let rest = plain();
    log.extend_from_slice(&rest.as_bytes()[HEAD.len()..]);
    assert_plain(log);
}

#[test]
fn without_a_summary_line_letters_and_entries_are_the_counts() {
    // -qq
    let report = of(format!(
        "..FsxX.ER.E                                                              [100%]\n{SHORT}\
         FAILED t.py::test_a - assert 0\nERROR t.py::test_b - OSError: x\nERROR t.py::test_c - OSError: x\n"
    ));
    let counts = report.counts();
    assert_eq!(four(&counts), [Some(4), Some(1), Some(1), Some(2)]);
    assert_eq!((counts.xfailed, counts.xpassed, counts.reruns), (Some(1), Some(1), Some(1)));
    assert_eq!((counts.warnings, counts.deselected, report.duration()), (None, None, None));
    assert_eq!((report.complete(), report.verdict()), (true, Some(Verdict::Fail)));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_a", "t.py::test_b", "t.py::test_c"]);
    let green = of("....                                                                     [100%]\n");
    assert_eq!((green.complete(), green.verdict()), (true, Some(Verdict::Pass)));
}

#[test]
fn a_quiet_log_that_was_cut_in_its_reports_is_not_complete() {
    let log = format!(
        ".F.F                                                                     [100%]\n{}{}",
        "=================================== FAILURES ===================================\n",
        "____________________________________ test_a ____________________________________\nE   assert 0\n"
    );
    let report = of(&log);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Mixed), false));
    // Before 5.4, -qq ends with the last report.
    let whole = format!(
        "{log}____________________________________ test_b ____________________________________\nE   assert 0\n"
    );
    let report = of(whole);
    assert_eq!((report.verdict(), report.complete(), failing(&report)), (Some(Verdict::Fail), true, None));
}

#[test]
fn four_brackets_are_four_different_things() {
    let report = of(format!(
        "{HEAD}t.py::test_a[12%] \n[gw0] [ 50%] PASSED t.py::test_a[12%] \n\n{SHORT}SKIPPED [3] t.py:41: [1] not today\n{}",
        bar("1 passed, 3 skipped in 0.10s")
    ));
    assert_eq!(four(&report.counts()), [Some(1), Some(0), Some(3), Some(0)]);
    assert_eq!(report.sessions[0].last_test.as_deref(), Some("t.py::test_a[12%]"));
}

#[test]
fn reasons_that_wrap_or_look_like_results() {
    let report = of(format!(
        "{HEAD}t.py::test_a SKIPPED (a reason that FAILED to be short and goes on\nand on)                       [ 33%]\n\
         t.py::test_b XFAIL (2 failed)                                            [ 66%]\nt.py::test_c "
    ));
    assert_eq!(report.counts().xfailed, Some(1));
    assert_eq!(report.counts().failed, Some(0));
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_c"]);
}

#[test]
fn plural_rules_and_seconds_of_old_versions() {
    let report = of(format!(
        "======= test session starts =======\nplatform linux -- Python 3.7.16, pytest-3.10.1, py-1.11.0, pluggy-1.2.0\n\
         collected 1 item / 1 errors\n\n{}",
        "======= 1 passed, 1 warnings, 2 error in 0.05 seconds =======\n"
    ));
    let counts = report.counts();
    assert_eq!((counts.passed, counts.warnings, counts.errors), (Some(1), Some(1), Some(2)));
    assert_eq!(report.duration(), Some(0.05));
}

#[test]
fn other_styles_of_progress() {
    for line in [
        "t.py::test_a PASSED                                                      [ 1/4]",
        "t.py::test_a PASSED                                                     12.3ms",
        "t.py::test_a PASSED",
    ] {
        let report = of(format!("{HEAD}{line}\nt.py::test_b "));
        assert_eq!(report.sessions[0].unfinished, ["t.py::test_b"], "{line}");
        assert_eq!(report.counts().passed, Some(1), "{line}");
    }
}

#[test]
fn words_glued_to_the_last_percentage_do_not_hide_the_letters() {
    let report =
        of("s.EF                                                              [100%]a plugin's last words\n\
         =================================== FAILURES ===================================\n\
         ____________________________________ test_d ____________________________________\nE   assert 0\n\
         ==================================== ERRORS ====================================\n\
         ________________________ ERROR at setup of test_c ________________________\nE   KeyError: 1\n\
         =========================== short test summary info ============================\n\
         FAILED t.py::test_d - assert 0\nERROR t.py::test_c - KeyError: 1\n");
    assert_eq!(four(&report.counts()), known([1, 1, 1, 1]));
    assert!(report.complete());
}

#[test]
fn a_quiet_run_whose_tests_write_between_the_letters_knows_what_it_lists() {
    // -qq -s: no percentage, no summary line.
    let report = of(format!(
        "..noise\n.F.some words\nE\n{SHORT}FAILED t.py::test_d - assert 0\nERROR t.py::test_c - KeyError: 1\n"
    ));
    assert_eq!(four(&report.counts()), [None, Some(1), None, Some(1)]);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Fail), true));
}
