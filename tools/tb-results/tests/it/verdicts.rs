//! The one word, and what the exit status has to say about it.

use crate::{HEAD, SHORT, bar, of};
use tb_results::code;
use tb_results::report::{JobFacts, Report, Verdict};
use tb_shared::term::Code;

fn ended(progress: &str, middle: &str, summary: &str) -> Report {
    of(format!("{HEAD}{progress}\n\n{middle}{}", bar(summary)))
}

#[test]
fn interrupted_by_a_person_or_by_the_tests_themselves() {
    for bang in [
        "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!\nt.py:4: KeyboardInterrupt\n",
        "!!!!!!!!!!!!!!!!!!! _pytest.outcomes.Exit: enough for today !!!!!!!!!!!!!!!!!!!!\n",
    ] {
        let report = ended(
            "t.py .F",
            &format!("{SHORT}FAILED t.py::test_b - assert 0\n{bang}"),
            "1 failed, 1 passed in 2.52s",
        );
        assert_eq!(report.verdict(), Some(Verdict::Interrupted), "{bang}");
        assert!(report.complete() && report.sessions[0].unfinished.is_empty());
    }
}

#[test]
fn an_exit_with_a_status_of_its_own_is_told_behind_the_summary() {
    let bang = "!!!!!!!!!!!!!!!!!!!!!!!! _pytest.outcomes.Exit: enough !!!!!!!!!!!!!!!!!!!!!!!!!\n";
    let report = of(format!("{HEAD}t.py .....F\n\n{}{bang}", bar("1 failed, 5 passed in 0.19s")));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Interrupted), true));
    let report = of(format!(".....F\n{bang}"));
    assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Interrupted), true));
    assert_eq!(report.counts().passed, Some(5));
}

#[test]
fn the_word_interrupted_is_mostly_none() {
    for bang in [
        "!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 2 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!\n\
         !!!!!!!!!!!! xdist.dsession.Interrupted: stopping after 1 failures !!!!!!!!!!!!!\n",
        "!!!!!!!! Interrupted: Test failed, continuing from this test next run. !!!!!!!!!\n",
    ] {
        let report = ended(
            "t.py .F",
            &format!("{SHORT}FAILED t.py::test_b - assert 0\n{bang}"),
            "1 failed, 1 passed in 2.52s",
        );
        assert_eq!(report.verdict(), Some(Verdict::Fail), "{bang}");
    }
}

#[test]
fn a_ctrl_c_in_a_worker_is_a_crash() {
    let report = ended(
        ".[gw1] node down: keyboard-interrupt\nF",
        &format!(
            "{SHORT}FAILED t.py::test_c\n! xdist.dsession.Interrupted: <WorkerController gw1> received keyboard-interrupt !\n"
        ),
        "1 failed, 1 passed in 3.31s",
    );
    assert_eq!(report.verdict(), Some(Verdict::Infra));
}

#[test]
fn nothing_ran_is_no_pass() {
    let report = of(format!("{HEAD}\n{}", bar("no tests ran in 0.01s")));
    assert_eq!((report.verdict(), code(&report)), (Some(Verdict::NoTests), Code::Failed));
    assert_eq!(of("\n4 deselected in 0.02s\n").verdict(), Some(Verdict::NoTests));
    assert_eq!(
        of("t.py::test_a\nt.py::test_b\n\n2 tests collected in 0.02s\n").verdict(),
        Some(Verdict::Pass)
    );
    let report = of(
        "ssss                                                                     [100%]\n4 skipped in 0.04s\n",
    );
    assert_eq!(report.verdict(), Some(Verdict::Pass));
}

#[test]
fn before_5_5_a_listing_ends_in_no_tests_ran() {
    let tree = format!(
        "{HEAD}<Module test_s.py>\n  <Function test_fast>\n\n{}",
        bar("no tests ran in 0.01 seconds")
    );
    assert_eq!(of(tree).verdict(), Some(Verdict::Pass));
    assert_eq!(
        of("t.py::test_a\nt.py::test_b\n\nno tests ran in 0.01 seconds\n").verdict(),
        Some(Verdict::Pass)
    );
}

#[test]
fn wrong_command_lines_and_configurations() {
    for (log, complete) in [
        ("ERROR: file or directory not found: missing.py\n\n\nno tests ran in 0.00s\n", true),
        (
            "ERROR: usage: pytest [options] [file_or_dir] [file_or_dir] [...]\npytest: error: unrecognized arguments: --x\n",
            false,
        ),
        (
            "ImportError while loading conftest '/srv/app/conftest.py'.\nE   ModuleNotFoundError: No module named 'x'\n",
            false,
        ),
        ("ERROR: Error importing plugin \"nope\": No module named 'nope'\n\n", false),
    ] {
        let report = of(log);
        assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Usage), complete), "{log}");
        assert_eq!(report.counts().passed, Some(0));
    }
}

#[test]
fn a_gate_beside_the_tests_fails_a_green_run() {
    for gate in [
        "FAIL Required test coverage of 100% not reached. Total coverage: 75.00%\n",
        "Tests pass, but maximum allowed warnings exceeded: 3 > 0\n",
    ] {
        let report = ended(
            "t.py ..                [100%]",
            &format!("{}{gate}", bar("tests coverage")),
            "2 passed in 0.11s",
        );
        assert_eq!(report.verdict(), Some(Verdict::Fail), "{gate}");
    }
}

#[test]
fn a_failure_that_looks_like_the_machines_stays_a_failure() {
    let report = ended(
        "t.py F                [100%]",
        &format!("{SHORT}FAILED t.py::test_a - OSError: [Errno 28] No space left on device\n"),
        "1 failed in 0.11s",
    );
    assert_eq!(report.verdict(), Some(Verdict::Fail));
}

fn job(exit_code: Option<i32>, signal: Option<&str>, outcome: &str) -> Option<JobFacts> {
    Some(JobFacts {
        exit_code,
        signal: signal.map(str::to_owned),
        outcome: Some(outcome.to_owned()),
        ..JobFacts::default()
    })
}

#[test]
fn the_exit_status_decides_and_a_disagreement_is_told() {
    let green = || ended("t.py ..                [100%]", "", "2 passed in 0.11s");
    let red = || {
        ended("t.py F                [100%]", &format!("{SHORT}FAILED t.py::test_a\n"), "1 failed in 0.11s")
    };
    // (text, exit status) -> verdict, code, disagreement
    let check = |mut report: Report, facts, verdict, exit, disagrees| {
        report.job = facts;
        assert_eq!(
            (report.verdict(), code(&report), report.disagreement().is_some()),
            (Some(verdict), exit, disagrees)
        );
    };
    check(green(), job(Some(0), None, "passed"), Verdict::Pass, Code::Ok, false);
    check(green(), job(Some(1), None, "failed"), Verdict::Fail, Code::Failed, true);
    check(green(), job(None, Some("SIGABRT"), "failed"), Verdict::Infra, Code::Failed, true);
    check(green(), job(Some(134), None, "failed"), Verdict::Infra, Code::Failed, true);
    check(green(), job(None, Some("SIGKILL"), "timeout"), Verdict::Infra, Code::Failed, true);
    check(red(), job(Some(1), None, "failed"), Verdict::Fail, Code::Failed, false);
    check(red(), job(Some(0), None, "passed"), Verdict::Pass, Code::Ok, true);
    check(red(), job(None, Some("SIGKILL"), "killed"), Verdict::Mixed, Code::Failed, false);
    let empty = of(format!("{HEAD}\n{}", bar("no tests ran in 0.01s")));
    check(empty, job(Some(5), None, "passed"), Verdict::NoTests, Code::Ok, false);
}

#[test]
fn a_running_job_is_running_and_a_job_without_a_runner_is_complete() {
    let mut report = of(format!("{HEAD}t.py .."));
    report.job = Some(JobFacts { running: true, ..JobFacts::default() });
    assert_eq!(code(&report), Code::Running);
    let mut report = of("hello\nworld\n");
    assert_eq!((report.verdict(), report.complete(), code(&report)), (None, false, Code::NoVerdict));
    report.job = job(Some(0), None, "passed");
    assert_eq!((report.complete(), code(&report), report.counts().passed), (true, Code::Ok, None));
}

#[test]
fn the_contracts_own_lines_are_no_output_and_its_footer_decides() {
    let log = format!(
        "=== GATE LAUNCH: {{\"v\":1,\"job\":\"a1\",\"name\":\"t\",\"pid\":7,\"command\":[\"python\",\"-m\",\"pytest\",\"-v\",\"t.py\"]}} ===\n\
         === GATE PHASE: test ===\n{HEAD}t.py ..                [100%]\n\n{}\
         === GATE RESULT: {{\"v\":1,\"job\":\"a1\",\"outcome\":\"failed\",\"exit_code\":1,\"signal\":null,\"reason\":\"exit\",\"header\":{{\"v\":1,\"job\":\"a1\",\"name\":\"t\",\"pid\":7,\"command\":[\"python\",\"-m\",\"pytest\",\"-v\",\"t.py\"]}}}} ===\n=== GATE: FAILED ===\n",
        bar("2 passed in 0.11s")
    );
    let report = of(log);
    assert_eq!((report.verdict(), code(&report)), (Some(Verdict::Fail), Code::Failed));
    assert!(report.disagreement().is_some());
}

#[test]
fn modules_that_skip_themselves_are_no_tests() {
    // exit 5: what was skipped were files, of whose tests none was collected.
    let report = of(format!(
        "{}\n{}",
        HEAD.replace("collected 4 items", "collected 0 items / 1 skipped"),
        bar("1 skipped in 0.01s")
    ));
    assert_eq!(report.verdict(), Some(Verdict::NoTests));
    assert_eq!(of("\n1 skipped in 0.01s\n").verdict(), Some(Verdict::NoTests));
    let report =
        of("s                                                              [100%]\n1 skipped in 0.01s\n");
    assert_eq!(report.verdict(), Some(Verdict::Pass));
}

#[test]
fn the_reason_for_no_tests_may_come_behind_the_end() {
    for said in ["ERROR: file or directory not found: x.py", "ERROR: file not found: x.py"] {
        let report = of(format!("{HEAD}\n{}{said}\n\n", bar("no tests ran in 0.01s")));
        assert_eq!((report.verdict(), report.complete()), (Some(Verdict::Usage), true), "{said}");
        assert_eq!(report.sessions.len(), 1);
    }
}

#[test]
fn usage_of_older_versions_has_no_word_before_it() {
    for log in [
        "usage: pytest.py [options] [file_or_dir] [file_or_dir] [...]\npytest.py: error: ambiguous option: --co\n",
        "Traceback (most recent call last):\n  File \"x\", line 1, in y\nImportError: Error importing plugin \"nosuch\": No module named 'nosuch'\n",
    ] {
        let report = of(log);
        assert_eq!((report.runner(), report.verdict()), (Some("pytest"), Some(Verdict::Usage)), "{log}");
    }
}
