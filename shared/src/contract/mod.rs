//! The contract of the two files (`shared/CONTRACT.md`): names, the run directory, the PID file, the log's
//! header and footer, and a job's state as it follows from them, their locks and /proc.
//!
//! Whoever reads or writes a file of the contract does it through here: the format is written down once.

mod collect;
mod dir;
mod ended;
mod files;
mod job;
mod lock;
mod name;
mod output;
mod queue;
mod records;
mod state;

pub use collect::{clear_pid_file, collect};
pub use dir::{DirEntry, RunDir};
pub use ended::ended_at;
pub(crate) use files::read_from;
pub use files::{FileId, LogEnd, LogFile, Opened, PidContent, PidFile, read_log, read_pid_file};
pub use job::{Job, Listing, Recovered, Scope, Survey, find, is_meant, list, of_log, reread, survey};
pub use lock::{DirLock, Probe, lock_within, probe};
pub use name::{LogName, Name, Stem};
pub use output::{Extent, Role};
pub use queue::{Ticket, is_waited};
pub use records::{
    Dropped, Footer, Header, HeaderCopy, Leaks, Leftover, Line, Outcome, Reason, Stopping, Supervisor,
    TerminalMarker, VERSION, collected_line, hook_line, line_kind, new_job_id, now, rfc3339, stamp,
};
pub use state::{Facts, Foreign, Place, State, Status, VerdictSource, judge};
