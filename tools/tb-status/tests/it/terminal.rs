//! Control characters and colours: visible on a terminal, untouched in a pipe.

use crate::written::{header, log};
use tb_tests::Scene;

/// Runs a command line on a terminal of its own.
fn on_terminal(scene: &Scene, line: &str) -> String {
    scene.terminal(line).env("TERM", "xterm").run().stdout
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.file("bytes", "\x1b[31mred\x1b[0m\x07\u{85}\ttab\n");
    scene.tool("tb-launch").args(["--name", "x", "--", "cat", "bytes"]).run().ok();
    scene.wait_for("x", 0);
    // A name that tb-launch would refuse, in a log that somebody else wrote.
    log(&scene, "evil", &[&header("e\x1b[2Jvil\n").line(), b"output\n"]);
    scene
}

#[test]
fn control_characters_are_visible_on_a_terminal() {
    let scene = scene();
    let shown = on_terminal(&scene, "tb-status --color never x");
    assert!(shown.contains("^[[31mred^[[0m^G<U+0085>\ttab"), "{shown:?}");
    assert!(!shown.contains('\x1b') && !shown.contains('\x07'), "{shown:?}");
    let list = on_terminal(&scene, "tb-status --color never");
    assert!(list.contains("e^[[2Jvil^J") && !list.contains('\x1b'), "{list:?}");
    let said = on_terminal(&scene, "tb-status --color never nobody");
    assert!(!said.contains('\x1b'), "{said:?}");
}

#[test]
fn messages_do_not_drive_a_terminal_either() {
    let scene = Scene::new();
    let argv = ["-c", "while :; do sleep 1; done", "\x1b[2Jevil"];
    let child = scene.cmd("sh").args(argv).cwd("/").spawn();
    scene.make_run_dir();
    scene.file(".gate-logs/.test-x.pid", format!("{}\n", child.pid()));
    // It is not known to be that run: the refusal shows its command line.
    let plain = scene.tool("tb-kill").arg("x").run().expect(7);
    assert!(plain.stderr.contains("\x1b[2Jevil"), "unchanged in a pipe: {plain}");
    let shown = on_terminal(&scene, "tb-kill x");
    assert!(shown.contains("^[[2Jevil") && !shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn control_characters_pass_unchanged_into_a_pipe() {
    let scene = scene();
    let out = scene.tool("tb-status").arg("x").run().ok();
    assert!(out.stdout.ends_with("\x1b[31mred\x1b[0m\x07\u{85}\ttab\n"), "{out}");
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let scene = scene();
    let plain = |flags: &[&str], env: &str| {
        let out = scene.tool("tb-status").args(flags).args(["-n", "0", "x"]).env("NO_COLOR", env).run().ok();
        !out.stdout.contains('\x1b')
    };
    assert!(plain(&[], "") && plain(&["--color", "never"], "") && plain(&["--color=auto"], ""));
    assert!(
        !plain(&["--color", "always"], "") && !plain(&["--color", "always"], "1"),
        "a flag beats the variable"
    );
    scene.tool("tb-status").args(["--color", "perhaps"]).run().expect(2).complains("--color");
    let coloured = on_terminal(&scene, "tb-status -n 0 x");
    assert!(coloured.contains("\x1b[32mFINISHED (PASS)\x1b[0m"), "{coloured:?}");
    let none = on_terminal(&scene, "NO_COLOR=1 tb-status -n 0 x");
    assert!(none.contains("FINISHED (PASS)") && !none.contains('\x1b'), "{none:?}");
}
