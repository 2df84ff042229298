//! `scripts/tb.mk`: what is typed reaches the tools as it was typed, and their answers reach make.
//!
//! Stand-ins print what they were called with, so that this tests the recipes alone; with the tools
//! themselves, tb.mk is run by the README's examples and by the last test here.

use std::os::unix::fs::PermissionsExt;
use tb_tests::{Cmd, Scene};

const STAND_IN: &str = "#!/bin/sh\nprintf %s \"${0##*/}\"; for a; do printf ' <%s>' \"$a\"; done; echo\nexit ${STAND_IN_CODE:-0}\n";

fn makefile(scene: &Scene) {
    let tb_mk = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/tb.mk");
    let tb_mk = std::fs::read_to_string(tb_mk).expect("the repository has a tb.mk");
    scene.file("tb.mk", tb_mk);
    scene.file("Makefile", "include tb.mk\nall:\n\t@echo the default goal\ngate:\n\t@echo gate ran\n");
}

fn scene() -> Scene {
    let scene = Scene::new();
    makefile(&scene);
    for tool in ["launch", "status", "wait", "kill", "results", "guard", "reap-orphans", "clean"] {
        let path = scene.file(format!("bin/tb-{tool}"), STAND_IN);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    scene
}

fn make<'s>(scene: &'s Scene, words: &[&str]) -> Cmd<'s> {
    scene.cmd("make").args(words).env("TB_BIN", "bin")
}

fn prints(scene: &Scene, words: &[&str], expected: &str) {
    assert_eq!(make(scene, words).run().ok().stdout, expected, "make {words:?}");
}

/// Everything that make or a shell would like to do something with.
const AWKWARD: &str =
    r##"tests/a b.py::test[$(shell touch pwned) $x $$; "y" 'z' #1 `touch pwned` \ & | * ?]"##;

#[test]
fn any_name_survives() {
    let scene = scene();
    let from_command_line = make(&scene, &["test-bg"]).arg(format!("TESTFILE={AWKWARD}")).run().ok();
    assert_eq!(from_command_line.stdout, format!("tb-launch <{AWKWARD}> <-->\n"));
    let from_environment = make(&scene, &["test-bg"]).env("TESTFILE", AWKWARD).run().ok();
    assert_eq!(from_environment.stdout, from_command_line.stdout);
    for (action, tool) in [
        ("status", "status"),
        ("wait", "wait"),
        ("kill", "kill"),
        ("results", "results"),
        ("cleanup", "clean"),
    ] {
        let out = make(&scene, &["test-bg-runner", &format!("ACTION={action}")])
            .arg(format!("TESTFILE={AWKWARD}"))
            .run()
            .ok();
        assert_eq!(out.stdout, format!("tb-{tool} <--> <{AWKWARD}>\n"));
    }
    let out =
        make(&scene, &["atd"]).arg(format!("TESTFILE={AWKWARD}")).env("TB_PYTHON", "my python").run().ok();
    assert!(out.stdout.contains(&format!("<my python> <-m> <pytest> <{AWKWARD}> <-v>\n")), "{out}");
    assert!(!scene.path("pwned").exists());
}

#[test]
fn a_missing_testfile_is_an_error() {
    let scene = scene();
    for words in [
        &["test-bg"][..],
        &["test-bg", "TESTFILE="],
        &["test-bg-runner", "ACTION=status"],
        &["test-bg-runner", "ACTION=kill"],
    ] {
        let out = make(&scene, words).run().expect(2);
        assert!(out.stderr.starts_with("ERROR: TESTFILE is required\n"), "{out}");
        assert_eq!(out.stdout, "");
    }
    make(&scene, &["test-bg", "TESTFILE=--log-dir=x"]).run().expect(2).complains("must not begin");
    make(&scene, &["test-bg-runner", "ACTION=stauts"])
        .run()
        .expect(2)
        .complains("ACTION must be launch, status,");
    make(&scene, &["test-bg-runner"]).run().expect(2).complains("ACTION must be launch, status,");
}

#[test]
fn each_target_calls_its_tool() {
    let scene = scene();
    prints(&scene, &[], "the default goal\n");
    prints(
        &scene,
        &["test-bg", "TESTFILE=a.py", "PYTEST_ARGS=-x -k 'a or b'"],
        "tb-launch <a.py> <--> <-x> <-k> <a or b>\n",
    );
    prints(&scene, &["test-bg-runner", "ACTION=launch", "TESTFILE=a.py"], "tb-launch <a.py> <-->\n");
    prints(&scene, &["test-bg-runner", "ACTION=poll-all"], "tb-status\n");
    prints(&scene, &["test-bg-runner", "ACTION=cleanup"], "tb-clean\n");
    prints(&scene, &["gate-background"], "tb-launch <--name> <gate> <--> <make> <gate>\n");
    prints(&scene, &["gate-status-check"], "tb-status <gate>\n");
    prints(&scene, &["reap"], "tb-reap-orphans\n");
    let python = "TB_PYTHON=py";
    prints(
        &scene,
        &["agent-test", python, "CAP=9s", "AGENT_LOG=my log", "TESTFILE=a.py"],
        "tb-guard <--sweep> <--quiet-success> <--heartbeat> <20s> <--log> <my log> <9s> <py> <-m> <pytest> <a.py>\n",
    );
    prints(
        &scene,
        &["agent-test-debug", python],
        "tb-reap-orphans\nLog: .gate-logs/agent-test.log\n\
         tb-guard <--dump> <--log> <.gate-logs/agent-test.log> <480s> <py> <-m> <pytest> <-v>\n\
         tb-results <--file> <.gate-logs/agent-test.log>\n",
    );
    assert_eq!(scene.read(".gate-logs/.gitignore"), "*\n");
}

#[test]
fn the_run_directory_is_handed_on_only_when_it_was_said() {
    let scene = scene();
    scene.file("bin/tb-status", "#!/bin/sh\necho \"${TB_LOG_DIR-not set}\"\n");
    prints(&scene, &["gate-status-check"], "not set\n");
    prints(&scene, &["gate-status-check", "TB_LOG_DIR=my logs"], "my logs\n");
}

#[test]
fn exit_codes_mean_what_the_tools_mean_by_them() {
    let scene = scene();
    let with = |code: &str, words: &[&str]| make(&scene, words).env("STAND_IN_CODE", code).run();
    // A status that says RUNNING is an answer; a launch of what is running already is refused.
    with("3", &["gate-status-check"]).ok();
    with("3", &["test-bg-runner", "ACTION=status", "TESTFILE=a"]).ok();
    with("3", &["test-bg", "TESTFILE=a"]).expect(2).complains("tb.mk: exit code 3: it is running");
    with("1", &["gate-status-check"]).expect(2).complains("tb.mk: exit code 1: the run did not pass");
    with("4", &["test-bg-runner", "ACTION=wait", "TESTFILE=a"])
        .expect(2)
        .complains("tb.mk: exit code 4: not tracked");
    with("124", &["agent-test"])
        .expect(2)
        .complains("Log: .gate-logs/agent-test.log\ntb.mk: exit code 124: time is up");
    // What could not be swept away stops a debug run before it starts.
    let out = with("7", &["atd"]).expect(2).complains("tb.mk: exit code 7: something could not be stopped");
    assert_eq!(out.stdout, "tb-reap-orphans\n");
    make(&scene, &["reap", "TB_BIN=nowhere"])
        .run()
        .expect(2)
        .complains("is TB_BIN right, are the tools on PATH?");
}

#[test]
fn a_dry_run_launches_nothing_and_a_jobserver_is_not_handed_on() {
    let scene = scene();
    let out = make(&scene, &["-n", "gate-background"]).run().ok();
    assert!(!out.stdout.contains("<gate>"), "{out}");
    scene.file("bin/tb-launch", "#!/bin/sh\nls /proc/self/fd | wc -l\n");
    let alone = make(&scene, &["gate-background"]).run().ok().stdout;
    assert_eq!(make(&scene, &["-j4", "gate-background"]).run().ok().stdout, alone);
}

#[test]
fn with_the_tools_a_file_with_spaces_goes_all_the_way() {
    let mut scene = Scene::new();
    makefile(&scene);
    scene.pytest_project(&[("tests/test a $b.py", "def test_a():\n    pass\n")]);
    let file = "TESTFILE=tests/test a $b.py";
    // The recipes find the tools on PATH, where the scene puts them.
    scene.bin("tb-launch");
    let make = |words: &[&str]| scene.cmd("make").args(words).arg(file).run();
    make(&["test-bg"]).ok().says("Launched tests/test a $b.py [PID: ");
    make(&["test-bg-runner", "ACTION=wait"]).ok();
    make(&["test-bg-runner", "ACTION=status"]).ok().says("FINISHED (PASS)");
    make(&["test-bg-runner", "ACTION=results"]).ok().says("1 passed");
    make(&["agent-test"]).ok();
    scene.assert_quiet();
}
