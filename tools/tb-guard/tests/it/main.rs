//! tb-guard: timeout(1)'s manners, a tree that goes as a whole, and a truthful word about it.

mod arguments;
mod dump;
mod innocent;
mod killed;
mod leaks;
mod nested;
mod output;
mod signals;
mod stall;
mod status;
mod sweep;
mod terminal;
mod tree;

use rustix::process::Signal;
use tb_tests::{Cmd, Proc, Running, Scene, processes, until};

/// A guard of `tb-fixture WORDS`.
fn guard<'s>(scene: &'s Scene, options: &str, words: &str) -> Cmd<'s> {
    scene.tool("tb-guard").args(options.split_ascii_whitespace()).args(scene.fixture_argv(words))
}

/// The same tool under the name timeout.
fn timeout<'s>(scene: &'s Scene, arguments: &str) -> Cmd<'s> {
    let link = scene.path("timeout");
    if link.symlink_metadata().is_err() {
        std::os::unix::fs::symlink(scene.bin("tb-guard"), &link).expect("a link can be made");
    }
    scene.cmd(link).args(arguments.split_ascii_whitespace())
}

/// The lower half of a guard that runs.
fn monitor(guard: &Running) -> Proc {
    until("the guard has a monitor", || {
        let mut children = processes().into_iter().filter(|(_, stat)| stat.ppid == guard.pid());
        children.find(|(proc, _)| proc.command().contains("tb-guard")).map(|(proc, _)| proc)
    })
}

/// Stops a process and waits until it stands.
fn halt(proc: Proc) {
    assert!(proc.signal(Signal::STOP));
    until("the process stands", || proc.stat().filter(|s| s.state == 'T'));
}

/// A field of a process's `/proc/PID/status`, read as hexadecimal: a set of signals.
fn set(proc: Proc, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", proc.pid)).unwrap_or_default();
    let value = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    value.and_then(|v| u64::from_str_radix(v.trim(), 16).ok()).unwrap_or(0)
}
