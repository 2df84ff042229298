//! What runs out: a disk, in the form of a file size limit, at the header and at the footer; descriptors; processes.

use std::fs;
use tb_tests::{Scene, until};

#[test]
fn g67_a_header_that_cannot_be_written_is_125_and_leaves_nothing() {
    let scene = Scene::new();
    scene.launch("x", "exit 0");
    scene.wait_for("x", 0);
    let before = scene.files();
    for limit in ["0", "1", "100", "200"] {
        let out = scene
            .tool("tb-launch")
            .args(["--name", "y", "--", "true"])
            .through(["limit", "fsize", limit])
            .run()
            .expect(125);
        assert!(out.stdout.is_empty() && out.stderr.contains("tb-launch: cannot "), "{limit}: {out}");
        scene.assert_untouched(&before);
    }
    // Not even the directory's first files fit; neither a signal nor half a directory is the answer.
    for limit in ["0", "1"] {
        let args = ["--log-dir", "new", "--", "true"];
        let out = scene.tool("tb-launch").args(args).through(["limit", "fsize", limit]).run().expect(125);
        assert!(out.stderr.contains("tb-launch: cannot "), "{limit}: {out}");
        scene.assert_untouched(&before);
    }
    let out = scene.tool("tb-launch").args(["--", "true"]).through(["limit", "fsize", "0"]).run().expect(125);
    assert!(out.stderr.contains("tb-launch: cannot "), "{out}");
    scene.assert_untouched(&before);
}

#[test]
fn g67_a_footer_that_does_not_fit_goes_over_the_outputs_end_and_says_so() {
    let scene = Scene::new();
    let argv = scene.fixture_argv("ignore XFSZ print-line 300000 exit 0");
    scene
        .tool("tb-launch")
        .args(["--name", "x", "--"])
        .args(argv)
        .through(["limit", "fsize", "65536"])
        .run()
        .ok();
    scene.wait_for("x", 1);
    let status = scene.status("x");
    assert_eq!((&status["outcome"], &status["truncated"]), (&"failed".into(), &false.into()), "{status}");
    let text = fs::read_to_string(scene.log_of("x")).expect("the log");
    assert!(text.len() <= 65536 && text.contains("\"overwrote\":"), "the record says what it cost");
    assert!(text.ends_with("=== GATE: FAILED ===\n"));
    assert!(text.starts_with("=== GATE LAUNCH: "), "the header stays");
    scene.assert_quiet();
}

#[test]
fn too_few_descriptors_are_told_and_leave_nothing() {
    let scene = Scene::new();
    scene.launch("live", "hold");
    scene.await_birth("main");
    let before = scene.files();
    let mut launched = 0;
    for limit in 4..=24 {
        let limit = limit.to_string();
        let few = |tool: &str| scene.tool(tool).through(["limit", "nofile", &limit]);
        let out = few("tb-launch").args(["--name", "x", "--", "true"]).run();
        match out.code {
            Some(0) => {
                launched += 1;
                scene.wait_for("x", 0);
            }
            Some(125) => {
                assert!(out.stderr.contains("Too many open files") && out.stdout.is_empty(), "{out}");
                if launched == 0 {
                    assert_eq!(scene.files(), before, "{limit}: {out}");
                }
            }
            _ => panic!("{limit}: {out}"),
        }
        let out = few("tb-status").args(["-n", "0", "live"]).run();
        assert!(matches!(out.code, Some(3 | 125)), "{limit}: {out}");
        let out = few("tb-wait").args(["--timeout", "0", "live"]).run();
        assert!(matches!(out.code, Some(124 | 125)), "{limit}: {out}");
    }
    assert!(launched > 0);
    for limit in 4..=24 {
        let out = scene.tool("tb-kill").arg("live").through(["limit", "nofile", &limit.to_string()]).run();
        let running = scene.status("live")["status"] == "RUNNING";
        // Whatever it could do: it says 0 only when the job is over.
        assert!(matches!((out.code, running), (Some(0), false) | (Some(7 | 125), _)), "{limit}: {out}");
    }
    scene.tool("tb-kill").arg("live").run().ok();
    scene.assert_quiet();
}

#[test]
fn too_few_processes_are_told_and_leave_nothing() {
    let scene = Scene::nobody();
    scene.make_run_dir();
    scene.file(".gate-logs/.lock", "");
    let before = scene.files();
    let mut refused = 0;
    for limit in 1..=8 {
        let limit = limit.to_string();
        let launch = scene.tool("tb-launch").through(["limit", "nproc", &limit]);
        let out = launch.args(["--name", "x", "--", "true"]).run();
        match out.code {
            Some(0) => drop(scene.wait_for("x", 0)),
            Some(125) => {
                refused += 1;
                assert!(out.stderr.contains("cannot start") && out.stdout.is_empty(), "{out}");
                scene.assert_quiet();
                if !scene.files().keys().any(|p| p.extension().is_some_and(|e| e == "log")) {
                    scene.assert_untouched(&before);
                }
            }
            _ => panic!("{limit}: {out}"),
        }
    }
    assert!(refused > 0);
}

#[test]
fn g67_a_full_disk_still_gets_its_record_and_its_verdict() {
    let scene = Scene::new();
    scene.make_run_dir();
    // A file system of our own, which goes with its last process.
    let mount = "mount -t tmpfs -o size=256k tmpfs .gate-logs";
    let possible = scene.cmd("unshare").args(["-m", "sh", "-c", mount]).run();
    if possible.code != Some(0) {
        return;
    }
    let script = format!(
        "{mount} && tb-launch --name x -- sh -c 'head -c 1000000 /dev/zero | tr \\\\0 x; exit 3'; tb-wait x; echo code=$?; \
         tb-status --json -n 0 x; head -c 17 .gate-logs/test-x-*.log; echo; tail -n 1 .gate-logs/test-x-*.log; \
         tb-launch --name y -- true; echo code=$?; ls -A .gate-logs | grep -c -e y -e new"
    );
    let out = scene.cmd("unshare").args(["-m", "sh", "-c", &script]).run();
    let lines: Vec<&str> = out.stdout.lines().skip(2).collect();
    assert!(lines[0].starts_with("x: FINISHED (FAIL)"), "{out}");
    assert_eq!(lines[1], "code=1");
    assert!(lines[2].contains("\"exit_code\":3") && lines[2].contains("\"truncated\":false"), "{out}");
    assert_eq!(&lines[3..5], ["=== GATE LAUNCH: ", "=== GATE: FAILED ==="], "{out}");
    // The next launch finds no room for its header, and leaves nothing.
    assert_eq!(&lines[5..], ["code=125", "0"], "{out}");
    assert!(out.stderr.contains("No space left on device"), "{out}");
    scene.assert_quiet();
}

#[test]
fn g67_an_end_that_cannot_be_recorded_is_not_an_end() {
    let scene = Scene::new();
    // Room for the header and the job's last words; none for a footer, which repeats the header.
    scene.launch("y", "exit 0");
    scene.wait_for("y", 0);
    let log = fs::read_to_string(scene.log_of("y")).expect("the log");
    let header = log.lines().next().expect("a header").len();
    let limit = (header + 64).to_string();
    let argv = scene.fixture_argv("exit 0");
    scene
        .tool("tb-launch")
        .args(["--name", "x", "--"])
        .args(argv)
        .through(["limit", "fsize", &limit])
        .run()
        .ok();
    let said = until("status says that it cannot record", || {
        let out = scene.tool("tb-status").arg("x").run();
        out.stdout.contains("cannot record").then_some(out)
    });
    assert_eq!(said.code, Some(3), "{said}");
    assert!(said.stdout.contains("RUNNING (cannot record: File too large"), "{said}");
    scene.tool("tb-launch").args(["--name", "x", "--", "true"]).run().expect(3);
    scene.tool("tb-wait").args(["--timeout", "10ms", "x"]).run().expect(124);
    // However short the launch's command line was.
    let script = scene.file("j", "#!/bin/sh\n");
    fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("our own file");
    let limit = (header + 128).to_string();
    scene.cmd("tb-launch").args(["--", "./j"]).through(["limit", "fsize", &limit]).run().ok();
    until("status says why", || {
        let out = scene.tool("tb-status").arg("job_1").run();
        out.stdout.contains("RUNNING (cannot record: File too large)").then_some(())
    });
    scene.tool("tb-kill").arg("job_1").run().ok();
    let text = fs::read_to_string(scene.log_of("x")).expect("the log");
    assert!(text.starts_with("=== GATE LAUNCH: "), "no torn record over the header: {text}");
    // Whoever insists gets an end of it.
    scene.tool("tb-kill").arg("x").run().ok();
    scene.assert_quiet();
    let code = scene.tool("tb-status").arg("x").run();
    assert!(matches!(code.code, Some(0 | 1 | 5)), "{code}");
}
