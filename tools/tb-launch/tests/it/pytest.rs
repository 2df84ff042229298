//! pytest on a test file: found, or refused with what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use tb_tests::{Scene, python};

/// An interpreter that notes how it is called, in an environment of its own.
fn noting(scene: &Scene, has_pytest: bool, code: i32) -> PathBuf {
    let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexit {code}\n", scene.path("called").display());
    let real = scene.file("venv/bin/python3.12", script);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).expect("our own file");
    let python = scene.path("venv/bin/python");
    symlink("python3.12", &python).expect("our own directory");
    scene.file("venv/pyvenv.cfg", "home = /nowhere\n");
    if has_pytest {
        scene.file("venv/lib/python3.12/site-packages/pytest/__init__.py", "");
    }
    python
}

#[test]
fn g15_pytest_that_cannot_be_imported_is_refused_with_how_to_install_it() {
    let scene = Scene::new();
    scene.file("a.py", "");
    let python = noting(&scene, false, 1);
    let before = scene.files();
    let out = scene.tool("tb-launch").arg("a.py").env("TB_PYTHON", &python).run().expect(2);
    let shown = python.display();
    assert!(out.stderr.contains("cannot import pytest"), "{out}");
    assert!(
        out.stderr.contains(&format!("{shown} -m pip install pytest")) && out.stderr.contains("TB_PYTHON"),
        "{out}"
    );
    assert_eq!(scene.read("called"), "-c import pytest\n", "asked once");
    fs::remove_file(scene.path("called")).expect("our own file");
    scene.assert_untouched(&before);
}

#[test]
fn g15_pytest_in_the_site_directory_is_found_without_starting_the_interpreter() {
    let scene = Scene::new();
    scene.file("a.py", "");
    let python = noting(&scene, true, 0);
    scene.tool("tb-launch").arg("a.py").env("TB_PYTHON", &python).run().ok();
    scene.wait_for("a.py", 0);
    assert_eq!(scene.read("called"), "-m pytest a.py -v\n", "started for the run alone");
}

#[test]
fn an_interpreter_that_is_not_there_is_127_and_named() {
    let scene = Scene::new();
    scene.file("a.py", "");
    let before = scene.files();
    let out = scene.tool("tb-launch").arg("a.py").env("TB_PYTHON", "no/such/python").run().expect(127);
    assert!(out.stderr.contains("TB_PYTHON=no/such/python"), "{out}");
    let tools = scene.bin("tb-launch");
    let only_tools = tools.parent().expect("a directory");
    let out = scene.cmd(&tools).arg("a.py").env("PATH", only_tools).run().expect(127);
    assert!(out.stderr.contains("Python") && out.stderr.contains("TB_PYTHON"), "{out}");
    scene.assert_untouched(&before);
}

#[test]
fn the_first_interpreter_there_is_runs_pytest() {
    let scene = Scene::new();
    scene.file("a.py", "");
    noting(&scene, true, 0);
    let venv = scene.path("venv");
    scene.tool("tb-launch").arg("a.py").env("VIRTUAL_ENV", &venv).run().ok();
    scene.wait_for("a.py", 0);
    fs::rename(&venv, scene.path(".venv")).expect("our own directory");
    scene.tool("tb-launch").arg("a.py").env("VIRTUAL_ENV", "/no/such").run().ok();
    scene.wait_for("a.py", 0);
    assert_eq!(scene.status("a.py")["command"][0], ".venv/bin/python");
}

#[test]
fn g08_p07_the_default_command_is_pytest_verbose_on_that_file() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("tests/test_a.py", "def test_one():\n    pass\n\ndef test_two():\n    pass\n")]);
    let out = scene.tool("tb-launch").args(["tests/test_a.py", "--", "-k", "one"]).run().ok();
    assert!(out.stdout.starts_with("Launched tests/test_a.py [PID: "), "{out}");
    scene.wait_for("tests/test_a.py", 0);
    let command = scene.status("tests/test_a.py")["command"].clone();
    let interpreter = python();
    let expected =
        serde_json::json!([interpreter.to_str(), "-m", "pytest", "tests/test_a.py", "-v", "-k", "one"]);
    assert_eq!(command, expected);
    let text = fs::read_to_string(scene.log_of("tests/test_a.py")).expect("the log");
    assert!(text.contains("tests/test_a.py::test_one PASSED") && !text.contains("test_two"), "{text}");
}

#[test]
fn p04_the_verdict_is_pytests_own_exit_status_and_not_its_words() {
    let mut scene = Scene::new();
    scene.pytest_project(&[
        ("conftest.py", "import pytest, os\n\ndef pytest_sessionfinish(session):\n    if os.environ.get('GATE'):\n        session.exitstatus = 1\n"),
        ("test_ok.py", "def test_a():\n    print('=== 3 failed ===')\n"),
        ("test_bad.py", "def test_a():\n    assert False, '=== 3 passed in 1s ==='\n"),
        ("test_none.py", "x = 1\n"),
    ]);
    let run = |file: &str, env: &str, flags: &[&str]| {
        let out = scene.tool("tb-launch").args(["--wait"]).args(flags).arg(file).env("GATE", env).run();
        (out.code, scene.status(file)["exit_code"].as_i64())
    };
    assert_eq!(run("test_ok.py", "", &[]), (Some(0), Some(0)));
    assert_eq!(run("test_ok.py", "1", &[]), (Some(1), Some(1)), "a gate after `1 passed`");
    assert_eq!(run("test_bad.py", "", &[]), (Some(1), Some(1)));
    assert_eq!(run("test_none.py", "", &[]), (Some(1), Some(5)), "nothing ran");
    assert_eq!(run("test_none.py", "", &["--allow-empty"]), (Some(0), Some(5)));
}
