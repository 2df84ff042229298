//! The only unsafe code of the project: what the kernel offers and no safe crate wraps as we need it.
#![expect(
    unsafe_code,
    reason = "fork, exec, waitid with usage, queued signals and argv need it; each block says why it holds"
)]

use nix::sys::signal::{SigHandler, Signal, signal};

/// Gives SIGCHLD its default disposition: a parent that ignores it would make every wait say ECHILD
/// (signal(7), "SIGCHLD").
pub fn default_sigchld() {
    // SAFETY: SIG_DFL is no handler, so no code of ours can run in signal context.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) };
}
