//! A process that was identified, held by a pidfd.

use super::{Ident, read_stat};
use crate::sys;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A pidfd whose process was verified after it was opened: it cannot be redirected to another.
#[derive(Debug)]
pub struct Handle {
    fd: OwnedFd,
    ident: Ident,
}

impl Handle {
    /// Opens exactly this process; `None` where it is gone, or the number is another's.
    ///
    /// # Errors
    /// When the kernel has no pidfds or the tool no descriptors left: unknown is not the same as gone.
    pub fn open(ident: Ident) -> io::Result<Option<Handle>> {
        if ident.pid <= 1 {
            return Ok(None);
        }
        let Some(pid) = Pid::from_raw(ident.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {
                return Ok(None);
            }
            Err(e) => return Err(e.into()),
        };
        let same = read_stat(ident.pid).is_some_and(|s| s.start == ident.start);
        Ok(same.then_some(Handle { fd, ident }))
    }

    /// Who it is.
    pub fn ident(&self) -> Ident {
        self.ident
    }

    /// The descriptor: readable when the process has ended.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether the process has ended (all of its threads have).
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|n| n > 0)
    }

    /// Sends a signal by number.
    ///
    /// # Errors
    /// ESRCH when it is gone, EPERM when it is not ours to signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        sys::signal_pidfd(self.fd.as_fd(), signal)
    }

    /// Queues a request to stop.
    ///
    /// # Errors
    /// As [`Handle::signal`].
    pub fn request(&self, value: i32) -> io::Result<()> {
        let me = (std::process::id().cast_signed(), rustix::process::getuid().as_raw());
        self.request_for(me, value)
    }

    /// Queues a request to stop in the name of another process (PID, uid), whose request it is.
    ///
    /// # Errors
    /// As [`Handle::signal`].
    pub fn request_for(&self, sender: (i32, u32), value: i32) -> io::Result<()> {
        sys::queue_pidfd(self.fd.as_fd(), value, sender)
    }
}
