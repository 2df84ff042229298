//! Starting a leader, watching it, stopping a tree (CONTRACT.md §6).
//!
//! `machine` decides, as a pure function of events; `tree` acts on processes and `record` on the two files;
//! `acting` drives the three; `halves` is a
//! background job's supervisor and `guard` a foreground one's; `launch` and `start` bring a job into being, `stop` ends one from
//! outside.

mod acting;
mod dump;
mod evidence;
mod guard;
mod halves;
mod launch;
mod machine;
mod record;
mod request;
mod stall;
mod start;
mod stop;
mod tree;
mod words;

pub use evidence::{Evidence, belongs};
pub use guard::{GuardEnd, GuardPlan, Heartbeat, guard};
use launch::nesting_above;
pub use launch::{ExecFailure, Launched, Nesting, Plan, launch, nesting};
pub use machine::{ABORT, Action, Ask, BOUND, Event, LINGER, LeaderEnd, Machine, Policy, Timer, verdict};
pub use request::Request;
pub use stall::{Stall, StallLimits};
pub use stop::{Stopped, cannot_record, contains_caller, refusal_to_signal, stop, supervisors};
pub use tree::{Left, Spare, Tree, environment};

/// The name (comm) of both halves of a supervisor.
pub const COMM: &str = "tb-supervise";
/// The name (comm) of both halves of a guard.
pub const GUARD_COMM: &str = "tb-guard";
