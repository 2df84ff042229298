//! poll(2): the one way in which tb sleeps until something happens.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A duration as the kernel takes it; what is too long for it is as long as it can be.
pub(crate) fn timespec(d: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX), tv_nsec: d.subsec_nanos().into() }
}

/// Sleeps until a descriptor is readable or the time is up.
pub(crate) fn sleep_on(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) {
    let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    // EINTR is as good a reason to look again as any.
    let _ = poll(&mut fds, timeout.map(timespec).as_ref());
}
