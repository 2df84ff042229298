//! Runs that did not come to their end: what was counted by then, what was running, what died.

use crate::{FAILURES, HEAD, SHORT, bar, failing, four, of};
use tb_results::report::{Outcome, Verdict};

#[test]
fn the_test_that_was_running_is_the_id_without_a_word() {
    let report = of(format!(
        "{HEAD}t.py::test_a PASSED                                                      [ 25%]\n\
         t.py::test_b[x y] FAILED                                                 [ 50%]\nt.py::test_c[tail - dash] "
    ));
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_c[tail - dash]"]);
    assert_eq!(failing(&report).unwrap(), ["t.py::test_b[x y]"]);
    assert_eq!(four(&report.counts()), [Some(1), Some(1), Some(0), Some(0)]);
    let counts = report.counts();
    assert_eq!((counts.warnings, counts.deselected, report.duration()), (None, None, None));
    assert_eq!(report.verdict(), Some(Verdict::Mixed));
    assert!(!report.complete());
}

#[test]
fn under_xdist_what_was_begun_and_not_reported_was_running() {
    let report = of(format!(
        "{HEAD}created: 2/2 workers\n2 workers [4 items]\n\nscheduling tests via LoadScheduling\n\n\
         t.py::test_a \nt.py::test_b \n[gw0] [ 25%] PASSED t.py::test_a \nt.py::test_c \n[gw1] [ 50%] FAILED t.py::test_b "
    ));
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_c"]);
    assert_eq!(report.failing().unwrap()[0].worker.as_deref(), Some("gw1"));
    assert_eq!(report.verdict(), Some(Verdict::Mixed));
}

#[test]
fn a_shells_message_may_come_before_or_behind_the_running_test() {
    for tail in [
        "/w/x.sh: line 1:  2930 Killed                  pytest\nt.py::test_b \n##[error]Process completed with exit code 137.\n",
        "t.py::test_b /w/x.sh: line 109:  6316 Segmentation fault      (core dumped) pytest -v\nexited with 139.\n",
        "t.py::test_b Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n",
        "t.py::test_b +++++++++++++++++ Timeout +++++++++++++++++\n~~~~~~ Stack of MainThread (1) ~~~~~~\n",
    ] {
        let report = of(format!(
            "{HEAD}t.py::test_a PASSED                                                      [ 25%]\n{tail}"
        ));
        assert_eq!(report.sessions[0].unfinished, ["t.py::test_b"], "{tail}");
        assert_eq!(report.verdict(), Some(Verdict::Infra), "{tail}");
        assert!(!report.complete());
        assert!(!report.sessions[0].faults.is_empty(), "{tail}");
    }
}

#[test]
fn letters_are_counted_up_to_a_crash_that_was_glued_to_them() {
    let report =
        of("......FFatal Python error: Aborted\n\nCurrent thread 0x00007f13 (most recent call first):\n  \
        File \"/srv/app/test_c.py\", line 6 in test_crasher\n  \
        File \"/venv/lib/python3.11/site-packages/_pytest/python.py\", line 159 in pytest_pyfunc_call\n");
    assert_eq!(four(&report.counts()), [Some(6), Some(1), Some(0), Some(0)]);
    assert_eq!(report.verdict(), Some(Verdict::Mixed));
    assert_eq!(report.sessions[0].unfinished, ["/srv/app/test_c.py::test_crasher"]);
}

#[test]
fn a_dump_of_a_slow_tests_threads_is_no_crash() {
    let report = of(format!(
        "{HEAD}t.py Timeout (0:00:02)!\nThread 0x00007f (most recent call first):\n  File \"/srv/app/t.py\", line 5 in test_slow\n\
         .                                                                        [100%]\n\n{}",
        bar("1 passed in 4.00s")
    ));
    assert_eq!(report.verdict(), Some(Verdict::Pass));
}

#[test]
fn a_thread_timeout_names_the_test_by_its_stack() {
    let report = of(format!(
        "{HEAD}t.py .+++++++++++++++++++++++++++++++++++ Timeout ++++++++++++++++++++++++++++++++++++\n\
         ~~~~~~~~~~~~~~~~~~~~~ Stack of MainThread (1401) ~~~~~~~~~~~~~~~~~~~~~~\n  \
         File \"/venv/lib/python3.11/site-packages/_pytest/python.py\", line 187, in pytest_pyfunc_call\n    \
         result = testfunction(**testargs)\n  File \"/srv/app/t.py\", line 6, in test_hang\n    time.sleep(30)\n\
         +++++++++++++++++++++++++++++++++++ Timeout ++++++++++++++++++++++++++++++++++++\n"
    ));
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_hang"]);
    assert_eq!(report.counts().passed, Some(1));
    assert_eq!(report.verdict(), Some(Verdict::Infra));
}

pub(crate) fn crashed(more_failures: bool) -> String {
    let (letters, report, entry, summary) = if more_failures {
        (
            "F.",
            "____________________________________ test_b ____________________________________\n[gw1] linux -- Python 3.11.7 /p\n\n\
             E   assert 0\n\nt.py:9: AssertionError\n",
            "FAILED t.py::test_b - assert 0\n",
            "2 failed, 3 passed in 2.15s",
        )
    } else {
        (".", "", "", "1 failed, 3 passed in 2.15s")
    };
    format!(
        "{HEAD}created: 2/2 workers\n2 workers [5 items]\n\n..[gw0] node down: Not properly terminated\nF\n\
         replacing crashed worker gw0\n{letters}                                    [100%]\n{FAILURES}\
         _____________________________________ t.py _____________________________________\n[gw0] linux -- Python 3.11.7 /p\n\
         worker 'gw0' crashed while running 't.py::test_die[0]'\n{report}{SHORT}FAILED t.py::test_die[0]\n{entry}{}",
        bar(summary)
    )
}

#[test]
fn a_crashed_worker_is_no_failure_of_the_code() {
    let report = of(crashed(false));
    assert_eq!(report.verdict(), Some(Verdict::Infra));
    assert_eq!(report.sessions[0].crashed_workers, ["gw0"]);
    let all = report.failing().unwrap();
    assert_eq!((all[0].outcome, all[0].worker.as_deref()), (Outcome::Crashed, Some("gw0")));
    assert!(report.complete());
    assert_eq!(of(crashed(true)).verdict(), Some(Verdict::Mixed));
}

#[test]
fn one_test_that_kills_many_workers_is_one_id_and_many_failures() {
    let mut log = HEAD.to_owned();
    let mut reports = String::new();
    for gw in 0..4 {
        log.push_str(&format!("t.py::test_die \n[gw{gw}] node down: Not properly terminated\n[gw{gw}] [ 57%] FAILED t.py::test_die \n\nreplacing crashed worker gw{gw}\n\n"));
        reports.push_str(&format!(
            "_____________________________________ t.py _____________________________________\n[gw{gw}] linux -- Python 3.11.7 /p\n\
             worker 'gw{gw}' crashed while running 't.py::test_die'\n"
        ));
    }
    let entries = "FAILED t.py::test_die\n".repeat(4);
    let report = of(format!("{log}\n{FAILURES}{reports}{SHORT}{entries}{}", bar("4 failed in 5.21s")));
    assert_eq!(failing(&report).unwrap(), ["t.py::test_die"]);
    assert_eq!(report.counts().failed, Some(4));
    assert_eq!(report.sessions[0].crashed_workers, ["gw0", "gw1", "gw2", "gw3"]);
    assert_eq!(report.verdict(), Some(Verdict::Infra));
}

#[test]
fn before_xdist_2_crashes_are_told_in_capitals_with_a_small_letter() {
    let report = of(
        "gw0 [10] / gw1 [10]\n[gw1] node down: Not properly terminated\nfReplacing crashed worker gw1\n\
                     gw0 [10] / gw2 C   [gw0] node down: Not properly terminated\nfMaximum crashed workers reached: 1\n",
    );
    assert_eq!(report.counts().failed, Some(2));
    assert_eq!(report.sessions[0].crashed_workers, ["gw1", "gw0"]);
    assert_eq!(report.verdict(), Some(Verdict::Infra));
}

#[test]
fn an_internal_error_is_infrastructure_even_with_a_summary() {
    let log = format!(
        "{HEAD}INTERNALERROR> Traceback (most recent call last):\nINTERNALERROR>   File \"/p/main.py\", line 206, in wrap\n\
         INTERNALERROR> KeyError: 'modifyitems broke'\n\n{}",
        bar("no tests ran in 0.03s")
    );
    let report = of(log);
    assert_eq!(report.verdict(), Some(Verdict::Infra));
    assert_eq!(report.sessions[0].faults, ["internal error: KeyError: 'modifyitems broke'"]);
    assert!(report.complete());
}

#[test]
fn a_traceback_glued_to_the_last_letters_is_no_end() {
    let report = of(format!(
        "{HEAD}.F                                                                       [100%]Traceback (most recent call last):\n  \
         File \"<frozen runpy>\", line 198, in _run_module_as_main\nValueError: late plugin bug\n"
    ));
    assert_eq!(four(&report.counts()), [Some(1), Some(1), Some(0), Some(0)]);
    assert!(!report.complete());
    assert_eq!(report.verdict(), Some(Verdict::Mixed));
}

#[test]
fn a_death_behind_a_green_summary_is_seen_if_somebody_tells() {
    let green = format!(
        "{HEAD}t.py ..                                                                  [100%]\n\n{}",
        bar("2 passed in 0.03s")
    );
    assert_eq!(of(&green).verdict(), Some(Verdict::Pass));
    for tail in ["Aborted (core dumped)\n", "##[error]Process completed with exit code 134.\n"] {
        let report = of(format!("{green}{tail}"));
        assert_eq!(report.verdict(), Some(Verdict::Infra), "{tail}");
        assert!(report.complete());
    }
}

#[test]
fn names_given_before_the_death_are_the_list_of_a_run_without_end() {
    let report = of(format!("{HEAD}t.py .F"));
    assert_eq!(failing(&report).unwrap(), [""; 0]);
    assert_eq!(report.counts().failed, Some(1));
    assert!(!report.complete());
}

#[test]
fn a_log_of_nothing_but_letters_is_a_quiet_run_that_died() {
    let report = of(".....F");
    assert_eq!(four(&report.counts()), [Some(5), Some(1), Some(0), Some(0)]);
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Mixed), false));
    let report = of(".....F+++++++++++++++ Timeout +++++++++++++++\n~~~~~ Stack of MainThread (1) ~~~~~\n");
    assert_eq!(four(&report.counts()), [Some(5), Some(1), Some(0), Some(0)]);
    for log in ["...", "", "\n\n", "done.", "hello\n....\n", "Es\n"] {
        assert!(of(log).sessions.is_empty(), "{log:?}");
    }
}

#[test]
fn a_workers_words_may_be_glued_to_the_letters() {
    let report = of("bringing up nodes...\n\n.....F/venv/lib/python3.11/main.py:368: SomeWarning: x\n");
    assert_eq!(four(&report.counts()), [Some(5), Some(1), Some(0), Some(0)]);
}

#[test]
fn a_quiet_run_that_died_behind_its_last_test_has_no_end() {
    let letters = ".F                                                                       [100%]";
    for tail in [
        "Traceback (most recent call last):\n  File \"x\"\n",
        "\nTraceback (most recent call last):\n",
        "\nFatal Python error: Aborted\n",
    ] {
        let report = of(format!("{letters}{tail}"));
        assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Mixed), false), "{tail}");
        assert_eq!(report.counts().failed, Some(1), "{tail}");
    }
}

#[test]
fn death_behind_a_result_is_in_its_teardown() {
    let head = format!("{HEAD}t.py::test_a PASSED                          [ 25%]\n");
    for last in [
        "t.py::test_b[a b] XFAIL (k)                      [ 50%]Terminated\n",
        "t.py::test_b[a b] XFAIL (k)                      [ 50%]Fatal Python error: Segmentation fault\n",
        "t.py::test_b[a b] XFAIL (k)                      [ 50%]/a/run.sh: line 1: 99 Killed  pytest\n",
    ] {
        let report = of(format!("{head}{last}"));
        assert_eq!(report.sessions[0].unfinished, ["t.py::test_b[a b]"], "{last}");
        assert_eq!((report.counts().passed, report.counts().xfailed), (Some(1), Some(1)), "{last}");
        assert_eq!(report.verdict(), Some(Verdict::Infra));
    }
}

#[test]
fn a_shells_words_behind_letters_cut_none_off() {
    for last in [
        "t.py x..F/tmp/run.sh: line 1: 19065 Segmentation fault      pytest -x\n",
        "t.py x..FTerminated\n",
        "t.py x..FAborted (core dumped)\n",
    ] {
        let counts = of(format!("{HEAD}{last}")).counts();
        assert_eq!((counts.passed, counts.failed, counts.xfailed), (Some(2), Some(1), Some(1)), "{last}");
    }
    let quiet = of("..FTerminated\n");
    assert_eq!((quiet.runner(), quiet.counts().failed), (Some("pytest"), Some(1)));
    // One letter is too little to go by, until more is heard of it.
    let lone = of(".\n!!!!!!!!!!!!! _pytest.outcomes.Exit: stop - it !!!!!!!!!!!!!\n");
    assert_eq!((lone.counts().passed, lone.verdict()), (Some(1), Some(Verdict::Interrupted)));
}

#[test]
fn letters_with_words_between_them_count_nothing() {
    let report = of(format!("{HEAD}t.py .x.warning: x.FF\nb.py noise\n"));
    assert_eq!((report.counts().passed, report.counts().failed), (None, None));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Infra), false));
}

#[test]
fn a_dump_alone_tells_that_it_was_pytest() {
    let report = of(
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f59e0e6fb80 (most recent call first):\n\
         \x20 File \"/p/test_m.py\", line 2 in <module>\n\
         \x20 File \"/v/lib/python3.10/site-packages/_pytest/assertion/rewrite.py\", line 186 in exec_module\n",
    );
    assert_eq!((report.runner(), report.verdict()), (Some("pytest"), Some(Verdict::Infra)));
    assert_eq!(of("  File \"/v/_pytest/x.py\", line 186, in f\n").runner(), None);
}

#[test]
fn a_file_that_could_not_be_collected_was_reported_by_the_collection() {
    let report = of(HEAD.replace("4 items", "0 items / 1 error"));
    assert_eq!((report.counts().errors, report.verdict()), (Some(1), Some(Verdict::Mixed)));
}

#[test]
fn crashes_of_xdist_1_are_told_with_a_capital() {
    let report = of(format!(
        "gw0 [3] / gw1 [3]\n\nscheduling tests via LoadScheduling\n..[gw1] node down: keyboard-interrupt\nf\n{FAILURES}\
         ___________________________________ test_m.py __________________________________\n\
         [gw1] linux -- Python 3.6.15 /p\nWorker 'gw1' crashed while running 'test_m.py::test_1[a b]'\n\
         ! xdist.dsession.Interrupted: <WorkerController gw1> received keyboard-interrupt !\n"
    ));
    assert_eq!((report.counts().passed, report.counts().failed), (Some(2), Some(1)));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Infra), true));
}

#[test]
fn a_test_that_wrote_behind_its_name_has_a_result_in_the_word_that_follows() {
    let report = of(format!(
        "{HEAD}t.py::test_a noise\nPASSED\nt.py::test_b[a b] noise\nFAILED\nt.py::test_c noise\n"
    ));
    assert_eq!((report.counts().passed, report.counts().failed), (Some(1), Some(1)));
    assert_eq!(crate::failing(&report).unwrap(), ["t.py::test_b[a b]"]);
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_c"]);
    let report = of(format!("{HEAD}t.py::test_a warn: xPASSED\nt.py::test_b \n"));
    assert_eq!(report.counts().passed, Some(1));
    assert_eq!(report.sessions[0].unfinished, ["t.py::test_b"]);
}

#[test]
fn rules_and_long_words_are_no_letters() {
    let long = "x".repeat(300);
    let report = of(format!(
        "{HEAD}t.py::test_a PASSED\n------------------------------------------\n{long}\nt.py::test_b \n"
    ));
    assert_eq!(
        (report.counts().passed, report.counts().skipped, report.counts().xfailed),
        (Some(1), Some(0), Some(0))
    );
    let muddled = of(format!("{HEAD}t.py .noise\n....F\n"));
    assert_eq!(muddled.counts().passed, None);
    // But a line of a live log is none of a test's words between letters.
    let logged = of(format!(
        "{HEAD}t.py .\n------- live log call -------\nt.py                  26 WARNING  hello\n.\n"
    ));
    assert_eq!(logged.counts().passed, Some(2));
    // Of 3.x.
    assert_eq!(of(format!("{HEAD}t.py::test_a xfail          [ 25%]\n")).counts().xfailed, Some(1));
}

#[test]
fn a_log_that_is_cut_in_a_line_has_no_whole_name_there() {
    let quiet = |end: &str| {
        of(format!(
            ".FF                                                                      [100%]\n{FAILURES}\
             ____________________________________ test_b ____________________________________\nE   assert 0\n\
             ___________________________________ test_cut ___________________________________\nE   assert 0\n{SHORT}{end}"
        ))
    };
    let cut = quiet("FAILED t.py::test_b - assert 0\nFAILED t.py::te");
    assert_eq!(failing(&cut).unwrap(), ["t.py::test_b"]);
    assert_eq!((cut.verdict(), cut.complete()), (Some(Verdict::Mixed), false));
    let whole = quiet("FAILED t.py::test_b - assert 0\nFAILED t.py::test_cut - assert 0\n");
    assert_eq!((failing(&whole).unwrap().len(), whole.complete()), (2, true));
    let xml =
        of(format!("{HEAD}t.py ....          [100%]\n\n------- generated xml file: /srv/j.xml -------\n"));
    assert_eq!((xml.counts().passed, xml.counts().skipped), (Some(4), Some(0)));
}

#[test]
fn a_dump_names_the_test_from_the_root_also_where_the_line_names_the_configuration() {
    let head = HEAD.replace("rootdir: /srv/app", "rootdir: /srv/app, configfile: pytest.ini");
    let report = of(format!(
        "{head}tests/t.py Fatal Python error: Aborted\n\nCurrent thread 0x00007f59e0e6fb80 (most recent call first):\n\
         \x20 File \"/srv/app/tests/t.py\", line 10 in test_a\n\
         \x20 File \"/v/_pytest/python.py\", line 183 in pytest_pyfunc_call\n"
    ));
    assert_eq!(report.sessions[0].unfinished, ["tests/t.py::test_a"]);
}
