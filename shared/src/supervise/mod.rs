//! Starting a leader, watching it, stopping a tree (CONTRACT.md §6).
//!
//! `machine` decides, as a pure function of events; `tree` acts on processes and `record` on the two files;
//! `halves` drives the three for a background job; `launch` and `start` bring a job into being, `stop` ends one from
//! outside.

mod evidence;
mod halves;
mod launch;
mod machine;
mod record;
mod request;
mod start;
mod stop;
mod tree;
mod words;

pub use evidence::{Evidence, belongs};
pub use launch::{ExecFailure, Launched, Nesting, Plan, launch, nesting};
pub use machine::{Action, Ask, BOUND, Event, LINGER, LeaderEnd, Machine, Policy, Timer, verdict};
pub use request::Request;
pub use stop::{Stopped, cannot_record, contains_caller, refusal_to_signal, stop, stop_all, supervisors};
pub use tree::{Left, Spare, Tree, environment};

/// The name (comm) of both halves of a supervisor.
pub const COMM: &str = "tb-supervise";
/// The name (comm) of both halves of a guard.
pub const GUARD_COMM: &str = "tb-guard";
