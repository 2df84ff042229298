//! `--tag-stderr` and `--pty`: output that goes through a supervisor, which holds up neither the job nor its end.

use crate::{assert_asleep, halves, launch, launch_sh, output};
use std::fs;
use tb_tests::{Cmd, Scene, python, until};

/// A launch with these options of a Python script.
fn launch_python<'s>(scene: &'s Scene, options: &[&str], script: &str) -> Cmd<'s> {
    scene.tool("tb-launch").args(options).arg("--").arg(python()).args(["-c", script])
}

/// Waits until the log holds this text.
#[track_caller]
fn await_text(scene: &Scene, name: &str, text: &str) {
    let log = scene.log_of(name);
    until(&format!("the log holds {text:?}"), || {
        String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).contains(text).then_some(())
    });
}

#[test]
fn t10_lines_of_stderr_are_tagged_whole_and_each_stream_keeps_its_order() {
    let scene = Scene::new();
    let script = "for i in $(seq 1 300); do echo out $i; echo err $i >&2; done; printf half >&2; printf rest >&2; \
                  printf '\\n\\nlast' >&2";
    launch_sh(&scene, &["--name", "x", "--tag-stderr"], script).run().ok();
    scene.wait_for("x", 0);
    let text = output(&scene, "x");
    let of = |prefix: &str| text.lines().filter(|l| l.starts_with(prefix)).collect::<Vec<_>>();
    assert_eq!(of("out "), (1..=300).map(|i| format!("out {i}")).collect::<Vec<_>>());
    assert_eq!(of("[stderr] err "), (1..=300).map(|i| format!("[stderr] err {i}")).collect::<Vec<_>>());
    assert!(text.ends_with("[stderr] halfrest\n[stderr] \n[stderr] last\n"), "{text}");
    assert_eq!(text.lines().count(), 603);
    // However long a line is, it has one tag, and what follows it begins with another.
    launch_sh(
        &scene,
        &["--name", "y", "--tag-stderr"],
        "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo y >&2",
    )
    .run()
    .ok();
    scene.wait_for("y", 0);
    let text = output(&scene, "y");
    assert_eq!(text.len(), 9 + 3_000_000 + 1 + 11);
    assert!(text.starts_with("[stderr] xxx") && text.ends_with("xxx\n[stderr] y\n"));
    scene.assert_quiet();
}

#[test]
fn a_program_that_buffers_into_files_prints_line_by_line_to_a_terminal() {
    let scene = Scene::new();
    let script = "import os, time\nprint('first')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('last', end='')";
    for flags in [&["--pty"][..], &["--pty", "--tag-stderr"]] {
        launch_python(&scene, &[&["--name", "x"], flags].concat(), script).run().ok();
        await_text(&scene, "x", "\nfirst\n");
        assert_eq!(scene.status("x")["status"], "RUNNING");
        scene.file("go", "");
        scene.wait_for("x", 0);
        assert_eq!(output(&scene, "x"), "first\nlast\n");
        fs::remove_file(scene.path("go")).expect("our own file");
    }
    scene.assert_quiet();
}

#[test]
fn standard_output_and_error_are_a_terminal_but_nothing_else_is_and_it_controls_nobody() {
    let scene = Scene::new();
    let script = "import os, sys\n\
                  print([os.isatty(fd) for fd in (0, 1, 2)], os.readlink('/proc/self/fd/0'), os.getsid(0) == os.getpid())\n\
                  print(os.get_terminal_size(1).columns, sorted(os.listdir('/proc/self/fd'))[:3])\n\
                  try: open('/dev/tty')\n\
                  except OSError: print('no terminal')\n\
                  print('err', file=sys.stderr)\n";
    let run = |name: &str, flags: &[&str]| {
        let all = [&["--name", name], flags].concat();
        launch_python(&scene, &all, script).env("COLUMNS", "133").run().ok();
        scene.wait_for(name, 0);
        output(&scene, name)
    };
    let first = "[False, True, True] /dev/null True\n133 ['0', '1', '2']\nno terminal\n";
    assert_eq!(run("pty", &["--pty"]), format!("{first}err\n"));
    let both = run("both", &["--pty", "--tag-stderr"]);
    assert!(both.contains("[stderr] err\n") && both.replace("[stderr] err\n", "") == first, "{both}");
    let script = "import os; print([os.isatty(fd) for fd in (0, 1, 2)])";
    launch_python(&scene, &["--name", "tag", "--tag-stderr"], script).run().ok();
    scene.wait_for("tag", 0);
    assert_eq!(output(&scene, "tag"), "[False, False, False]\n");
    scene.assert_quiet();
}

#[test]
fn t36_who_holds_the_other_end_does_not_hold_up_the_end() {
    for flags in [&["--tag-stderr"][..], &["--pty"], &["--pty", "--tag-stderr"]] {
        let scene = Scene::new();
        let all = [&["--name", "x", "--leaks", "allow"], flags].concat();
        launch(&scene, &all, "spawn-setsid [ hold ] print out print-err err exit 3").run().ok();
        scene.wait_for("x", 1);
        assert_eq!(scene.status("x")["exit_code"], 3);
        let text = output(&scene, "x");
        assert!(text.contains("out\n") && text.contains("err\n"), "{text}");
        let left = scene.await_birth("setsid");
        scene.assert_quiet_but(&[left]);
        // One that writes without end, too.
        let all = [&["--name", "y", "--leaks", "allow"], flags].concat();
        launch_sh(&scene, &all, "setsid yes >&2 & echo said; exit 4").run().ok();
        scene.wait_for("y", 1);
        assert_eq!(scene.status("y")["exit_code"], 4);
        assert!(output(&scene, "y").contains("said\n"));
        left.kill();
        scene.assert_quiet();
    }
}

#[test]
fn a_flood_is_stopped_like_anything_else() {
    let scene = Scene::new();
    for (name, flags) in
        [("tag", &["--tag-stderr"][..]), ("pty", &["--pty"]), ("both", &["--pty", "--tag-stderr"])]
    {
        let place = ["--name", name, "--max-log", "1M"];
        let script = "yes & exec yes >&2";
        launch_sh(&scene, &[&place[..], flags].concat(), script).run().ok();
        until("it floods", || (scene.status(name)["dropped_lines"].as_u64()? > 0).then_some(()));
        scene.tool("tb-kill").args(["--grace", "20s", name]).run().ok().says("TERM");
        let status = scene.status(name);
        assert_eq!(
            (&status["outcome"], &status["signal"]),
            (&"killed".into(), &"SIGTERM".into()),
            "{status}"
        );
        launch_sh(&scene, &[&place[..], flags, &["--limit", "0.3"]].concat(), script).run().ok();
        scene.wait_for(name, 1);
        assert_eq!(scene.status(name)["outcome"], "timeout");
        let disk =
            std::os::unix::fs::MetadataExt::blocks(&fs::metadata(scene.log_of(name)).expect("a log")) * 512;
        assert!(disk < 8 << 20, "{disk} bytes");
        scene.assert_quiet();
    }
}

#[test]
fn whichever_half_is_killed_output_goes_on() {
    for flags in [&["--tag-stderr"][..], &["--pty"], &["--pty", "--tag-stderr"]] {
        for which in [0, 1] {
            let scene = Scene::new();
            let all = [&["--name", "x"], flags].concat();
            launch(&scene, &all, "print-err one ready await go print-err two print-err three exit 0")
                .run()
                .ok();
            await_text(&scene, "x", "one\n");
            assert!(halves(&scene, "x")[which].kill());
            until("one half is left", || (scene.status("x")["supervision"] == "single").then_some(()));
            scene.file("go", "");
            scene.wait_for("x", 0);
            let tag = if flags.contains(&"--tag-stderr") { "[stderr] " } else { "" };
            assert_eq!(output(&scene, "x"), format!("{tag}one\n{tag}two\n{tag}three\n"));
            scene.assert_quiet();
        }
    }
}

#[test]
fn a_full_log_holds_up_neither_the_job_nor_its_verdict() {
    let scene = Scene::new();
    for flags in [&["--tag-stderr"][..], &["--pty"], &["--pty", "--tag-stderr"]] {
        let all = [&["--name", "x"], flags].concat();
        let script = "seq 1 500000 >&2 && touch done; exit 3";
        launch_sh(&scene, &all, script).through(["limit", "fsize", "65536"]).run().ok();
        scene.wait_for("x", 1);
        let status = scene.status("x");
        assert_eq!((&status["exit_code"], &status["truncated"]), (&3.into(), &true.into()), "{status}");
        assert!(scene.path("done").exists(), "it was not held up");
        fs::remove_file(scene.path("done")).expect("our own file");
        let text = fs::read_to_string(scene.log_of("x")).expect("a log");
        assert!(
            text.len() <= 65536 && text.starts_with("=== GATE LAUNCH: ") && text.ends_with("FAILED ===\n")
        );
    }
    scene.assert_quiet();
}

#[test]
fn who_opens_dev_stderr_cuts_no_log() {
    for flags in [&["--tag-stderr"][..], &["--pty"], &["--pty", "--tag-stderr"]] {
        let scene = Scene::new();
        let all = [&["--name", "x"], flags].concat();
        launch_sh(
            &scene,
            &all,
            "echo one; echo two > /dev/stderr; echo three >> /dev/stderr; exec seq 1 5000",
        )
        .run()
        .ok();
        scene.wait_for("x", 0);
        let text = output(&scene, "x");
        assert_eq!(scene.status("x")["truncated"], false);
        assert!(text.contains("one\n") && text.contains("two\n") && text.contains("three\n"), "{text}");
        let numbers: Vec<u32> = text.lines().filter_map(|l| l.parse().ok()).collect();
        assert_eq!(numbers, (1..=5000).collect::<Vec<_>>());
        launch(&scene, &[&["--name", "y"], flags].concat(), "print one truncate-stderr exit 0").run().ok();
        scene.wait_for("y", 0);
        assert_eq!(scene.status("y")["truncated"], false);
        scene.assert_quiet();
    }
}

#[test]
fn a_line_that_grows_on_a_terminal_is_there_while_it_grows() {
    let scene = Scene::new();
    launch_sh(&scene, &["--name", "x", "--pty"], "printf ..; tb-fixture ready await go gone; printf ..")
        .run()
        .ok();
    await_text(&scene, "x", " ===\n..");
    scene.file("go", "");
    scene.wait_for("x", 0);
    assert_eq!(output(&scene, "x"), "....\n");
    scene.assert_quiet();
}

#[test]
fn a_job_that_says_nothing_wakes_nobody_even_when_its_streams_have_ended() {
    let scene = Scene::new();
    for (name, words) in [("open", "print x hold"), ("closed", "print x close 1 close 2 ready hold")] {
        launch(&scene, &["--name", name, "--pty", "--tag-stderr"], words).run().ok();
        await_text(&scene, name, "x\n");
        for half in halves(&scene, name) {
            assert_asleep(half);
        }
        scene.tool("tb-kill").arg(name).run().ok();
    }
    scene.assert_quiet();
}
