//! Starting a leader, watching it, stopping a tree.

/// The name (comm) of both halves of a supervisor.
pub const COMM: &str = "tb-supervise";
