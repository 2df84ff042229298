//! Starting a leader, watching it, stopping a tree (CONTRACT.md §6).
//!
//! `machine` decides, as a pure function of events; `tree` acts on processes and `record` on the two files;
//! `acting` drives the three; `halves` is a
//! background job's supervisor and `guard` a foreground one's; `launch` and `start` bring a job into being, `stop` ends one from
//! outside.

mod acting;
mod capture;
mod dump;
mod evidence;
mod guard;
mod halves;
mod hook;
mod launch;
mod machine;
mod record;
mod request;
mod stall;
mod start;
mod stop;
mod tree;
mod trim;
mod words;

pub use capture::CaptureWish;
pub use evidence::{Evidence, belongs};
pub use guard::{GuardEnd, GuardPlan, Heartbeat, guard};
pub use hook::Hook;
use launch::nesting_above;
pub use launch::{ExecFailure, Launched, Nesting, Plan, launch, nesting};
pub use machine::{ABORT, Action, Ask, BOUND, Event, LINGER, LeaderEnd, Machine, Policy, Timer, verdict};
pub use request::Request;
pub use stall::{Stall, StallLimits};
pub use stop::{Stopped, contains_caller, refusal_to_signal, stop, stop_all, supervisors};
pub use tree::{Left, Spare, Tree, environment};

/// The name (comm) of both halves of a supervisor.
pub const COMM: &str = "tb-supervise";
/// How a supervisor's command line begins from the moment before it writes the footer: one that is there already was
/// printed by the job itself. What counts comes first: a title has only the room that the launch's arguments took.
const RECORDING: &str = "R: tb-supervise: recording";

/// Whether a supervisor has come to its record. One that is ending has no command line any more.
pub fn is_recording(pid: i32) -> bool {
    let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    title.is_empty() || title.starts_with(b"R: ")
}

/// The title of a supervisor whose record cannot be written, for [`cannot_record`] and for people.
fn cannot_record_title(cause: &std::io::Error) -> String {
    let errno = cause.raw_os_error().unwrap_or(0);
    format!("E{errno}: {COMM}: cannot record: {cause}")
}

/// Why a supervisor cannot write its record, if that is what keeps it.
pub fn cannot_record(pid: i32) -> Option<String> {
    let title = crate::process::command_line(pid);
    let (errno, _) = title.strip_prefix('E')?.split_once(':')?;
    match errno.parse().ok()? {
        0 => Some("no cause is known".to_owned()),
        errno => Some(nix::errno::Errno::from_raw(errno).desc().to_owned()),
    }
}
/// The name (comm) of both halves of a guard.
pub const GUARD_COMM: &str = "tb-guard";
