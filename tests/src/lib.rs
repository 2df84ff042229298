//! What all tests of the tools share.
//!
//! A [`Scene`] is a directory to run the built tools in, with a clean environment. Every child is bounded:
//! one that has not ended within [`DEADLINE`] is killed and fails its test by name. What a scene started is
//! gone when it is dropped, however the test ended: processes are found by the scene's token in their
//! environment or by what they wrote of themselves, and are signalled by pidfd after their start time was
//! compared, never by name.
//!
//! Nothing here sleeps in place of an event: tests wait with [`until`] for what they need to see.
//!
//! `tb-fixture` (`src/bin/tb-fixture`) is the process that misbehaves on request.

mod command;
mod jobs;
mod process;
mod scene;

pub use command::{Cmd, Output, Running};
pub use jobs::{Odd, Seen, VARIABLES, corrupt_pid_files};
pub use process::{Proc, Stat, processes, stat};
pub use scene::{Birth, Scene, bin_dir, binary, ordinary, python};

use std::time::{Duration, Instant};

/// How long a child of a test may run, and how long an awaited event may take to happen. Generous: it only
/// ends what would hang, and no test depends on its being short.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// User and group of those who have no rights of their own.
pub const NOBODY: u32 = 65534;

/// Looks until `look` sees something, and returns that.
///
/// # Panics
/// When it has seen nothing within [`DEADLINE`]; the message says `what` was awaited.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < DEADLINE, "waited {} s in vain until {what}", DEADLINE.as_secs());
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Whether these tests run as root: what needs another user is then possible.
pub fn root() -> bool {
    rustix::process::geteuid().is_root()
}
