//! What a person's terminal gets.

use crate::scene::{Bounded, Scene, start};
use nix::pty::openpty;
use std::fs::File;
use std::io::Read;
use std::process::Command;

/// Starts a command on a terminal of its own.
fn on_terminal(mut command: Command) -> (Bounded, File) {
    let pty = openpty(None, None).unwrap();
    let child = start(command.stdout(pty.slave));
    // The command keeps the other end open as long as it is there.
    drop(command);
    (child, File::from(pty.master))
}

/// Reads until a text has come, or everything if there is none.
fn read_until(master: &mut File, text: Option<&str>) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    // A terminal without another end is an error, EIO.
    while let Ok(n) = master.read(&mut buffer) {
        seen.extend(&buffer[..n]);
        let now = String::from_utf8_lossy(&seen);
        if n == 0 || text.is_some_and(|text| now.contains(text)) {
            break;
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn control_characters_are_made_visible() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    run.write(b"\x1b[31mred\x07\r\ncaf\xe9\tx\r\n");
    let (child, mut master) = on_terminal(scene.tb_log(&["a.py"]));
    assert_eq!(read_until(&mut master, None), "^[[31mred^G\r\ncaf\u{fffd}\tx\r\n");
    child.done().ok();
}

#[test]
fn a_watch_is_redrawn() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    let (child, mut master) = on_terminal(scene.tool("tb-status", &["--watch"]));
    let first = read_until(&mut master, Some("a.py"));
    assert!(first.starts_with("\x1b[H\x1b[JBACKGROUND TESTS (1 tracked):\r\n"), "{first:?}");
    run.write("=== GATE PHASE: lint ===\n");
    read_until(&mut master, Some("RUNNING (lint)"));
    let pid = rustix::process::Pid::from_child(&child.0);
    // A child that has not been waited for: the number is its own.
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.done().ok();
}
