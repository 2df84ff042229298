//! Sleeping until a log may have grown or its job may have ended, woken by the kernel: inotify on the logs and their
//! directory, pidfds of the processes whose end matters.

use crate::contract::{Job, RunDir};
use crate::poll::timespec;
use crate::process::Handle;
use crate::wait;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How often a job is looked at whose end no descriptor here announces, and a log where there is no inotify.
const LOOK: Duration = Duration::from_secs(1);

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Woken {
    /// Logs may have grown; nothing else is known to have happened.
    Grown,
    /// Anything may have happened: a process ended, a file came or went, time has passed.
    Changed,
    /// Whoever reads our output has gone away.
    Closed,
    /// Somebody interrupted.
    Interrupted,
}

/// What wakes a reader.
#[derive(Debug)]
pub struct Watch {
    inotify: Option<OwnedFd>,
    directory: Option<i32>,
    handles: Vec<Handle>,
}

impl Watch {
    /// Watches a directory from now on: what happened before is not announced.
    pub fn new(dir: &RunDir) -> Watch {
        // Where the user's watches are used up, looking once a second has to do.
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
        let what = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM;
        let directory = inotify.as_ref().and_then(|fd| inotify::add_watch(fd, dir.absolute(), what).ok());
        Watch { inotify, directory, handles: vec![] }
    }

    /// Watches nothing: only time passes.
    pub fn of_nothing() -> Watch {
        Watch { inotify: None, directory: None, handles: vec![] }
    }

    /// Watches a job's log and processes, too; again where that changes nothing.
    pub fn job(&mut self, dir: &RunDir, job: &Job) {
        if let (Some(inotify), Some(log)) = (&self.inotify, &job.log) {
            let what = WatchFlags::MODIFY | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            let _ = inotify::add_watch(inotify, dir.absolute().join(log.name.file()), what);
        }
        self.processes(job);
    }

    /// Watches a job's processes alone: its end, and not each of its words.
    pub fn processes(&mut self, job: &Job) {
        for ident in wait::announcers(job) {
            if !self.handles.iter().any(|h| h.ident() == ident) {
                self.handles.extend(Handle::open(ident).ok().flatten().filter(|h| !h.has_ended()));
            }
        }
    }

    /// Sleeps until something happens, at most until `until`. `reader` is where output goes: its end is noticed even
    /// while there is nothing to write.
    pub fn sleep(
        &mut self,
        interrupt: Option<BorrowedFd<'_>>,
        reader: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
    ) -> Woken {
        let look = (self.handles.is_empty() || self.directory.is_none()).then(|| Instant::now() + LOOK);
        let timeout = until
            .into_iter()
            .chain(look)
            .min()
            .map(|u| timespec(u.saturating_duration_since(Instant::now())));
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let optional = [
            interrupt.map(|fd| (fd, PollFlags::IN)),
            // The end of a pipe without a reader is an error, which is reported unasked.
            reader.map(|fd| (fd, PollFlags::empty())),
            self.inotify.as_ref().map(|fd| (fd.as_fd(), PollFlags::IN)),
        ];
        for (fd, what) in optional.iter().flatten() {
            fds.push(PollFd::new(fd, *what));
        }
        let handles: Vec<BorrowedFd<'_>> = self.handles.iter().map(Handle::fd).collect();
        fds.extend(handles.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        // EINTR is as good a reason to look as any.
        let happened = poll(&mut fds, timeout.as_ref()).unwrap_or(0) > 0;
        let mut seen = fds.iter().map(PollFd::revents);
        let mut next =
            |there: bool| if there { seen.next().unwrap_or(PollFlags::empty()) } else { PollFlags::empty() };
        let interrupted = !next(interrupt.is_some()).is_empty();
        let closed = next(reader.is_some()).intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        let noticed = !next(self.inotify.is_some()).is_empty();
        let ended = seen.any(|flags| !flags.is_empty());
        let only_grown = noticed && self.drain();
        if ended {
            self.handles.retain(|h| !h.has_ended());
        }
        if interrupted {
            Woken::Interrupted
        } else if closed {
            Woken::Closed
        } else if happened && only_grown && !ended {
            Woken::Grown
        } else {
            Woken::Changed
        }
    }

    /// Reads all that inotify has to tell. True when that is only that logs were written.
    fn drain(&self) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        let mut only_grown = true;
        while let Ok(event) = events.next() {
            only_grown &= event.events() == ReadFlags::MODIFY;
        }
        only_grown
    }
}
