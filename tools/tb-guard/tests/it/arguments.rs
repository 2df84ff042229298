//! What it is called with: getopt's rules, strtod's numbers, and the exit codes of what cannot be done.

use crate::timeout;
use tb_tests::Scene;

/// A scene whose PATH has no directory that this user may not read: there execvp(3) says EACCES, not ENOENT.
fn readable_path() -> Scene {
    let mut scene = Scene::new();
    scene.set_env("PATH", "/usr/bin:/bin");
    scene
}

#[test]
fn durations_are_what_strtod_reads_and_one_suffix() {
    let scene = Scene::new();
    for good in [
        "5", ".5m", "5.", "1e2", "0x10", "0x1p0d", "+1m", "inf", "infinity", "infd", "-0", "1e400",
        "2.34e+5d",
    ] {
        timeout(&scene, "--").args([good, "true"]).run().ok();
    }
    timeout(&scene, "").args([" 10", "true"]).run().ok();
    for bad in ["", "1 ", "1S", "1ms", "42D", "nan", "1_0", "1,5", "-0.1", "-1e-10000", "0x", "1e", "invalid"]
    {
        let out = timeout(&scene, "--").args([bad, "true"]).run().expect(125);
        assert!(out.stderr.contains(&format!("invalid time interval '{bad}'")), "{out}");
        assert!(out.stderr.contains("Try 'timeout --help' for more information."), "{out}");
        timeout(&scene, "-k").args([bad, "1", "true"]).run().expect(125);
    }
    for at_once in ["1e-10000", "1e-5000", "0.000000001"] {
        timeout(&scene, "").args([at_once, "sleep", "100"]).run().expect(124);
    }
    // Zero sets no limit at all.
    timeout(&scene, "0 sh -c").arg("sleep 0.2; exit 3").run().expect(3);
    timeout(&scene, "-v -s0 -k0 0 sleep .1").run().ok();
}

#[test]
fn options_are_read_as_getopt_reads_them_and_end_at_the_duration() {
    let scene = readable_path();
    let exit = |arguments: &str, code: i32| timeout(&scene, arguments).run().expect(code);
    exit("-fpv .05 sh -c exit", 0);
    exit("-p .05 sleep 100", 143);
    exit("-fp .05 sleep 100", 143);
    exit("-pfs INT .05 sleep 100", 130);
    exit("-psINT .05 sleep 100", 130);
    exit("-k5 .05 sleep 100", 124);
    exit("-fk 5 .05 sleep 100", 124);
    exit("--sig=KILL .05 sleep 100", 137);
    exit("--si KILL .05 sleep 100", 137);
    exit("--kill 5 --pres .05 sleep 100", 143);
    exit("--f --p --verb .05 sleep 100", 143);
    exit("-s TERM -s INT --preserve-status .05 sleep 100", 130);
    exit("-- 5 true", 0);
    // From the duration on nothing is an option of ours.
    exit("5 -- true", 127);
    exit("1 -k 1 true", 127);
    exit("5 sh -c exit --help", 0);
    for usage in [
        "",
        "5",
        "-x 5 true",
        "--xx 5 true",
        "--v 5 true",
        "-k",
        "-h",
        "--foreground=1 5 true",
        "-s 65 1 true",
        "-s 99999 1 true",
        "-s invalid 1 true",
        "-5 true",
    ] {
        let out = exit(usage, 125);
        assert!(out.stderr.starts_with("timeout: "), "{out}");
        assert!(out.stderr.ends_with("Try 'timeout --help' for more information.\n"), "{out}");
    }
    // What tb-guard adds is not there under the name timeout.
    exit("--stall 5 1 true", 125);
    exit("--leaks allow 1 true", 125);
}

#[test]
fn signals_are_named_or_numbered_also_as_a_shell_counts_them() {
    let scene = Scene::new();
    for (signal, code) in [
        ("9", 137),
        ("137", 137),
        ("sigkill", 137),
        ("Kill", 137),
        ("RTMIN+1", 163),
        ("RTMAX", 192),
        ("15", 143),
        ("SIGUSR1", 138),
    ] {
        timeout(&scene, "-p -s").args([signal, ".05", "sleep", "100"]).run().expect(code);
    }
}

#[test]
fn abbreviations_mean_timeouts_options_first_and_then_our_own() {
    let scene = Scene::new();
    let exit = |arguments: &str, code: i32| {
        scene.tool("tb-guard").args(arguments.split_ascii_whitespace()).run().expect(code)
    };
    exit("--s INT --p .05 sleep 100", 130);
    exit("--k 5 .05 sleep 100", 124);
    exit("--st 5 1 true", 125).complains("ambiguous");
    exit("--stall-o 5 1 true", 0);
    exit("--gr 1 --hea 5 --q 1 true", 0);
}

#[test]
fn help_and_version_are_no_failures() {
    let scene = Scene::new();
    for name in ["timeout", "tb-guard"] {
        let tool =
            |option| if name == "timeout" { timeout(&scene, option) } else { scene.tool(name).arg(option) };
        tool("--help").run().ok().says("Usage: ").says(name).says("--kill-after");
        tool("--version").run().ok().says(&format!("{name} "));
    }
    scene.tool("tb-guard").arg("--help").run().ok().says("CPU").says("Exit status");
    scene.sh("tb-guard --help > /dev/full").run().expect(125);
}

#[test]
fn a_command_that_cannot_be_executed_is_126_and_one_that_is_not_there_127() {
    let scene = readable_path();
    scene.file("plain", "true\n");
    for (command, code, cause) in [
        ("no-such-command", 127, "No such file or directory"),
        ("", 127, "No such file or directory"),
        ("./nowhere/x", 127, "No such file or directory"),
        (".", 126, "Permission denied"),
        ("./plain", 126, "Permission denied"),
        ("./plain/x", 126, "Not a directory"),
    ] {
        let out = timeout(&scene, "5").arg(command).run().expect(code);
        assert_eq!(out.stderr, format!("timeout: failed to run command '{command}': {cause}\n"));
    }
    let out = scene.tool("tb-guard").args(["5", "no-such-command"]).run().expect(127);
    assert_eq!(out.stderr, "tb-guard: failed to run command 'no-such-command': No such file or directory\n");
}

#[test]
fn a_script_without_an_interpreter_line_is_the_shells() {
    let scene = Scene::new();
    scene.file("script", "echo \"$1\"; exit 5\n");
    scene.sh("chmod +x script; tb-guard 9 ./script 'a b'").run().expect(5).says("a b\n");
}

#[test]
fn what_cannot_be_written_is_known_before_anything_starts() {
    let scene = Scene::new();
    for option in ["--log", "--report"] {
        let out =
            scene.tool("tb-guard").args([option, "no/where", "9", "touch", "started"]).run().expect(125);
        assert!(out.stderr.contains("no/where: No such file or directory\n"), "{out}");
    }
    scene.tool("tb-guard").args(["--keep", "(", "9", "touch", "started"]).run().expect(125);
    assert!(!scene.path("started").exists());
}
