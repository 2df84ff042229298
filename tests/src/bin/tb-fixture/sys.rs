//! The fixture's unsafe code: what no safe crate offers.
#![expect(
    unsafe_code,
    reason = "dispositions and the exit of a single thread have no safe wrapper; each block says why it holds"
)]

use nix::sys::signal::{SigHandler, Signal, signal};

/// Ignores a signal.
pub(crate) fn ignore(which: Signal) -> nix::Result<()> {
    // SAFETY: SIG_IGN is no handler, so no code of ours can run in signal context.
    unsafe { signal(which, SigHandler::SigIgn) }.map(drop)
}

/// Gives a signal its default disposition.
pub(crate) fn default(which: Signal) -> nix::Result<()> {
    // SAFETY: SIG_DFL is no handler, so no code of ours can run in signal context.
    unsafe { signal(which, SigHandler::SigDfl) }.map(drop)
}

/// Ends the calling thread alone: the process goes on while another lives.
pub(crate) fn exit_thread() -> ! {
    // SAFETY: the thread ends here without unwinding or destructors. Its stack stays mapped (the main
    // thread's always does), so that nothing another thread borrowed from it can dangle.
    unsafe {
        libc::syscall(libc::SYS_exit, 0);
    }
    unreachable!("SYS_exit does not return")
}
