//! Bad arguments: code 2, and not even a run directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use tb_tests::{Output, Scene};

/// Refused with this code and these words on stderr, nothing on stdout, and without a trace.
#[track_caller]
fn refused(scene: &Scene, args: &[&OsStr], code: i32, words: &[&str]) -> Output {
    let before = scene.files();
    let out = scene.tool("tb-launch").args(args).run().expect(code);
    for word in words {
        assert!(out.stderr.contains(word), "expected {word:?} on standard error of {out}");
    }
    assert!(out.stdout.is_empty() && out.stderr.starts_with("tb-launch: cannot "), "{out}");
    scene.assert_untouched(&before);
    out
}

fn os<'a>(args: &'a [&'a str]) -> Vec<&'a OsStr> {
    args.iter().map(OsStr::new).collect()
}

#[test]
fn g01_without_a_testfile_it_says_that_one_is_required() {
    let scene = Scene::new();
    refused(&scene, &[], 2, &["TESTFILE is required", "tb-launch [--name NAME] -- COMMAND"]);
    refused(&scene, &os(&["--name", "x"]), 2, &["TESTFILE is required"]);
    refused(&scene, &os(&["--name", "x", "--"]), 2, &["TESTFILE is required"]);
}

#[test]
fn g14_a_test_file_that_is_not_there_is_named_with_the_directory() {
    let scene = Scene::new();
    let here = scene.dir().to_str().expect("a path");
    refused(&scene, &os(&["tests/none.py"]), 2, &["tests/none.py", "No such file or directory", here]);
    refused(&scene, &os(&["tests/none.py::TestX::test_y[a-b]"]), 2, &["launch tests/none.py: ", here]);
    scene.file("sub/there.txt", "");
    let sub = format!("{here}/sub");
    refused(&scene, &os(&["--cwd", "sub", "none.py"]), 2, &["none.py", &sub]);
}

#[test]
fn bad_names_are_refused() {
    let scene = Scene::new();
    for (name, why) in [
        ("", "empty"),
        ("-", "begins with '-'"),
        ("-x", "begins with '-'"),
        ("a\nb", "control character"),
        ("a\x1b[31mb", "control character"),
        ("a\u{85}b", "control character"),
        ("job_7", "given by tb-launch itself"),
        (&"x".repeat(1025), "1025 bytes"),
    ] {
        let flag = format!("--name={name}");
        let out = refused(&scene, &os(&[&flag, "--", "true"]), 2, &[why]);
        assert!(!out.stderr.contains('\x1b'), "the terminal is not driven by a name: {out}");
    }
    let bytes = [OsStr::new("--name"), OsStr::from_bytes(b"a\xffb"), OsStr::new("--"), OsStr::new("true")];
    refused(&scene, &bytes, 2, &["not UTF-8"]);
    refused(&scene, &os(&["--name", "-x", "--", "true"]), 2, &[]);
    // A test file is a name too.
    scene.file("job_7", "");
    refused(&scene, &os(&["job_7"]), 2, &["given by tb-launch itself", "--name"]);
    scene.file("a\nb.py", "");
    refused(&scene, &os(&["a\nb.py"]), 2, &["control character"]);
}

#[test]
fn a_directory_for_the_job_that_is_not_there_is_refused() {
    let scene = Scene::new();
    refused(&scene, &os(&["--cwd", "no/such", "--", "true"]), 2, &["no/such", "No such file or directory"]);
    scene.file("plain", "");
    refused(&scene, &os(&["--cwd", "plain", "--", "true"]), 2, &["plain", "Not a directory"]);
}

#[test]
fn a_variable_for_the_job_without_a_value_is_refused_and_not_repeated() {
    let scene = Scene::new();
    for bad in ["SECRET-TOKEN", "=SECRET-TOKEN", ""] {
        let out = refused(&scene, &os(&["--env", bad, "--", "true"]), 2, &["--env", "NAME=VALUE"]);
        assert!(!out.stderr.contains("SECRET"), "{out}");
    }
    // Neither is the next handle used up by it.
    refused(&scene, &os(&["--env", "X", "--", "true"]), 2, &[]);
    scene.tool("tb-launch").args(["--", "true"]).run().ok().says("Launched job_1 ");
    scene.wait_for("job_1", 0);
}

#[test]
fn durations_and_patterns_that_are_none_are_refused() {
    let scene = Scene::new();
    for flag in ["--timeout", "--limit", "--grace"] {
        for bad in ["soon", "-1", "1x", "", "nan", "1e3"] {
            let text = format!("{flag}={bad}");
            refused(&scene, &os(&[&text, "--", "true"]), 2, &[flag]);
        }
    }
    refused(&scene, &os(&["--keep", "(", "--", "true"]), 2, &["--keep"]);
    refused(&scene, &os(&["--leaks", "perhaps", "--", "true"]), 2, &["--leaks"]);
    refused(&scene, &os(&["--wait", "--foreground", "--", "true"]), 2, &["--foreground", "--wait"]);
    refused(&scene, &os(&["--jobserver", "--", "true"]), 2, &["--wait or --foreground"]);
    refused(&scene, &os(&["--no-such-flag", "--", "true"]), 2, &["--no-such-flag"]);
    refused(&scene, &os(&["one.py", "two.py"]), 2, &["two.py"]);
}

#[test]
fn the_longest_limits_are_limits() {
    let scene = Scene::new();
    let long = "9999999999999999999999";
    let args = ["--limit", long, "--grace", long, "--timeout", long, "--wait", "--name", "x", "--", "true"];
    scene.tool("tb-launch").args(args).run().ok();
    scene.assert_quiet();
}

#[test]
fn a_job_in_a_directory_whose_name_is_all_control_characters_can_be_read() {
    let scene = Scene::new();
    let mut deep = scene.path("deep");
    for _ in 0..12 {
        deep.push("\x01".repeat(250));
    }
    std::fs::create_dir_all(&deep).expect("our own directory");
    scene.tool("tb-launch").arg("--cwd").arg(&deep).args(["--wait", "--name", "x", "--", "true"]).run().ok();
    assert_eq!(scene.status("x")["name"], "x");
    assert!(scene.status("x")["command"].is_array());
}

#[test]
fn help_and_version_are_answers_and_make_nothing() {
    let scene = Scene::new();
    let before = scene.files();
    let long = scene.tool("tb-launch").arg("--help").run().ok();
    for word in ["Examples:", "Exit status:", "126", "127", "--foreground", "TB_PYTHON", "/dev/stderr"] {
        assert!(long.stdout.contains(word), "{word} in {long}");
    }
    let short = scene.tool("tb-launch").arg("-h").run().ok();
    assert!(short.stdout.contains("Usage:") && short.stdout.len() < long.stdout.len(), "{short}");
    scene.tool("tb-launch").arg("-V").run().ok().says("tb-launch ");
    assert!(long.stderr.is_empty() && short.stderr.is_empty());
    scene.assert_untouched(&before);
}
