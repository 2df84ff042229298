//! A process as JSON.

use serde::Serialize;
use tb_shared::sweep::argv::Kind;
use tb_shared::sweep::{Done, Found};

/// One object a process. Null is "not known".
#[derive(Serialize)]
pub(crate) struct Process<'a> {
    v: u32,
    pid: i32,
    start: u64,
    parent: i32,
    parent_command: &'a str,
    state: String,
    age_seconds: f64,
    cwd: Option<String>,
    command: &'a str,
    kind: Option<&'a str>,
    evidence: String,
    orphan: Option<String>,
    action: &'static str,
    left: bool,
    reason: Option<&'a str>,
}

impl<'a> Process<'a> {
    pub(crate) fn of(found: &'a Found) -> Process<'a> {
        let (action, reason) = match &found.done {
            Done::Nothing => ("none", None),
            Done::Gone => ("gone", None),
            Done::Term => ("term", None),
            Done::Kill => ("kill", None),
            Done::Zombie => ("zombie", None),
            Done::Left(why) => ("left", Some(why.as_str())),
        };
        Process {
            v: 1,
            pid: found.ident.pid,
            start: found.ident.start,
            parent: found.parent,
            parent_command: &found.parent_command,
            state: found.state.to_string(),
            age_seconds: found.age.as_secs_f64(),
            cwd: found.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
            command: &found.command,
            kind: found.why.kind().map(Kind::word),
            evidence: found.why.to_string(),
            orphan: found.orphan.map(|orphan| orphan.to_string()),
            action,
            left: found.is_left(),
            reason,
        }
    }
}
