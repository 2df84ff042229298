//! What tb-launch does with what it is given, and what it must refuse without a trace.

mod arguments;
mod cap;
mod capture;
mod commands;
mod disk;
mod environment;
mod hook;
mod limits;
mod maxlog;
mod names;
mod owners;
mod pid_files;
mod places;
mod pytest;
mod queue;
mod running;
mod sweep;
mod together;

use tb_tests::{Cmd, Proc, Scene};

/// A launch with these options of `tb-fixture WORDS`.
fn launch<'s>(scene: &'s Scene, options: &[&str], words: &str) -> Cmd<'s> {
    scene.tool("tb-launch").args(options).arg("--").args(scene.fixture_argv(words))
}

/// A launch with these options of a shell's script.
fn launch_sh<'s>(scene: &'s Scene, options: &[&str], script: &str) -> Cmd<'s> {
    scene.tool("tb-launch").args(options).args(["--", "sh", "-c", script])
}

/// A job's front and monitor.
fn halves(scene: &Scene, name: &str) -> [Proc; 2] {
    let status = scene.status(name);
    let half = |at: usize| {
        let pid = status["supervisors"][at].as_u64().or(status["supervisors"][at][0].as_u64());
        let pid = pid.and_then(|p| u32::try_from(p).ok()).unwrap_or_else(|| panic!("no half: {status}"));
        Proc::of(pid).expect("it lives")
    };
    [half(0), half(1)]
}

/// The number in a line of a process's `/proc/PID/status`.
fn number(proc: Proc, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", proc.pid)).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// How often a process has been given a processor.
fn turns(proc: Proc) -> u64 {
    ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"].iter().filter_map(|f| number(proc, f)).sum()
}

/// Demands that a process sleeps: that it comes to a second in which it is not woken.
#[track_caller]
fn assert_asleep(proc: Proc) {
    tb_tests::until("a second passes without a wake-up", || {
        let before = turns(proc);
        std::thread::sleep(std::time::Duration::from_secs(1));
        (proc.alive() && turns(proc) == before).then_some(())
    });
}

/// What a job wrote: its log without the contract's lines.
fn output(scene: &Scene, name: &str) -> String {
    let bytes = std::fs::read(scene.log_of(name)).expect("a log");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split_inclusive('\n')
        .filter(|l| !l.starts_with("=== GATE ") && !l.starts_with("=== GATE:"))
        .collect()
}
