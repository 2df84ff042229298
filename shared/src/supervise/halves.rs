//! The two halves of a background job's supervisor.
//!
//! The monitor (below) alone acts and writes. The front (above) sleeps until the monitor has died; then
//! everything that the monitor had is its child, and it goes on from what it was told, alone. Both are
//! single-threaded, subreapers, and in sessions of their own.

use super::acting::{Acting, End, Known, News, Role};
use super::capture::Capture;
use super::hook::{self, Hook};
use super::machine::{Ask, LeaderEnd, verdict};
use super::record::Record;
use super::tree::{SPARED, Tree};
use super::trim;
use super::words::{Told, Word};
use super::{RECORDING, Request, cannot_record_title};
use crate::contract::{Footer, Stopping, VERSION, rfc3339};
use crate::poll::sleep_on;
use crate::process::{self, Handle, Ident};
use crate::sys::{self, Children, SignalFd, Which, signal_name};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long a record that cannot be written waits for room.
const RETRY: Duration = Duration::from_secs(5);
/// How many requests that were passed on to the monitor the front remembers.
const PASSED_ON: usize = 8;
/// The value by which the monitor sends its front away: as a request it asks for nothing.
const GO_AWAY: i32 = 0;
/// How long a front may take to go.
const GOING: Duration = Duration::from_secs(1);
/// Room for words about as many leaks as a record lists, and about each process of a large tree.
const PIPE: usize = 1 << 20;

/// What a half has to do with but processes.
pub(super) struct Files {
    pub record: Record,
    pub hook: Option<Hook>,
    pub capture: Capture,
}

/// A half of a job: it has the job's two files.
pub(super) struct JobHalf {
    record: Record,
    /// What is called at the end.
    hook: Option<Hook>,
    /// What of the output comes through here.
    capture: Capture,
    /// What keeps the log from growing.
    trim: Option<trim::Watch>,
    /// To the front; `None` in the front itself.
    twin: Option<File>,
    /// Where a leader that could not execute its command has left errno; empty if it could.
    exec_error: Option<File>,
}

/// The monitor's life, from the leader's start to the record.
pub(super) fn monitor(known: Known, files: Files, signals: SignalFd, twin: File, exec_error: File) -> ! {
    let Files { record, hook, capture } = files;
    let trim = record.trim();
    let role = JobHalf { record, hook, capture, trim, twin: Some(twin), exec_error: Some(exec_error) };
    Acting::new(known, role, signals).live(vec![], vec![])
}

/// The front's life: asleep until the monitor has died, then whatever is left to do. The leader in `known` is not
/// known yet.
pub(super) fn front(mut known: Known, files: Files, signals: SignalFd, words: &File, monitor: i32) -> ! {
    let Files { mut record, hook, capture } = files;
    // A child's number is ours until we wait for it, so this handle is the monitor's.
    let handle = process::read_stat(monitor)
        .and_then(|stat| Handle::open(Ident { pid: monitor, start: stat.start }).ok().flatten());
    // Without it a front that somebody has stopped sees its monitor's death when it is continued.
    let _ = sys::wake_by(words.as_fd());
    let mut passed_on = Vec::new();
    while !matches!(sys::look(Which::Pid(monitor), true), Ok(Children::Dead(_) | Children::None)) {
        let Some(heard) = signals.next() else {
            sleep_on(&[signals.fd()], None);
            continue;
        };
        // A request to this half is one to the job: the monitor acts.
        let value = match heard.signal {
            // All is recorded, and nothing may be locked while the hook runs.
            sys::REQUEST if heard.pid == monitor && heard.value == GO_AWAY => sys::exit_now(0),
            sys::REQUEST => heard.value,
            libc::SIGCHLD => continue,
            _ => Request { signal: libc::SIGTERM, grace: known.policy.grace }.value(),
        };
        if let Some(handle) = &handle {
            let _ = handle.request_for((heard.pid, heard.uid), value);
        }
        passed_on.truncate(PASSED_ON - 1);
        passed_on.push(heard);
    }
    // Whoever waits for the job was woken by the same end, and goes first: what is left to do here is mostly a sync.
    rustix::thread::sched_yield();
    let mut told = Told::read(words);
    let Some((header, log_name)) = told.begun.take() else {
        // The leader was never let go: it vanishes with the barrier, and nobody has heard of the job.
        record.abandon();
        sys::exit_now(1)
    };
    (record.header, record.log_name) = (header, log_name);
    // A footer that stands there while nobody has told of the leader's end is one that the job printed itself.
    if told.recorded || (told.dead.is_some() && record.is_finished()) {
        record.unpublish();
        record.sync();
        sys::exit_now(0);
    }
    known.leader = Ident { pid: record.header.pid, start: record.header.start };
    known.tree.take_over(told.signals_begun.take(), std::mem::take(&mut told.sent));
    let trim = record.trim();
    let role = JobHalf { record, hook, capture, trim, twin: None, exec_error: None };
    // What the monitor was asked and did not live to say that it had heard is still asked.
    let unheard = if told.stop.is_none() { passed_on } else { vec![] };
    let (acting, actions) = Acting::resume(known, role, signals, told);
    acting.live(actions, unheard)
}

impl JobHalf {
    /// Calls the hook, once nothing of the job is locked any more. Whatever comes of it, the job's end stands.
    fn call_hook(self, hook: &Hook, footer: &Footer, signals: &SignalFd) {
        let front = self.record.header.supervisors.first().map(|&(pid, start)| Ident { pid, start });
        if self.twin.is_some()
            && let Some(Ok(Some(front))) = front.map(Handle::open)
            && front.request(GO_AWAY).is_ok()
        {
            sleep_on(&[front.fd()], Some(GOING));
        }
        let closed = self.record.close();
        if let Some(trouble) = hook.run(footer, &closed.log_path(), closed.unread(), signals) {
            closed.add_hook_line(&trouble);
        }
    }

    /// Wakes a front that somebody stopped, which would stay for ever, and says whether there is one.
    fn wake_twin(&self) -> bool {
        let front = self.record.header.supervisors.first().map(|&(pid, start)| Ident { pid, start });
        match front.filter(|_| self.twin.is_some()).map(Handle::open) {
            Some(Ok(Some(front))) => front.signal(libc::SIGCONT).is_ok(),
            _ => false,
        }
    }
}

impl Role for JobHalf {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.capture.fds().into_iter().chain(self.trim.as_ref().and_then(trim::Watch::fd)).collect()
    }

    fn due(&self) -> Option<Instant> {
        self.trim.as_ref().and_then(trim::Watch::due)
    }

    fn news(&mut self) -> Vec<News> {
        self.capture.pump(&self.record.log);
        if self.record.max_log.is_none() {
            // The log that grew was deleted: neither it nor the clock is to wake anybody on its behalf.
            self.trim = None;
        }
        if let Some(trim) = &mut self.trim {
            trim.look(&self.record.log);
        }
        Vec::new()
    }

    fn tell(&self, word: &Word) {
        if let Some(twin) = &self.twin {
            word.tell(twin);
        }
    }

    fn make_room(&mut self) {
        if let Some(twin) = &self.twin {
            // A pipe that stays as it is holds less: what does not fit is not told.
            let _ = rustix::pipe::fcntl_setpipe_size(twin, PIPE);
        }
    }

    fn unpublish(&mut self) {
        // A job whose log was deleted has one again before its PID file goes: in between a reader would find nothing,
        // or the run before it.
        self.record.rehome();
        self.record.unpublish();
    }

    fn announce(&mut self, ask: &Ask) {
        // The other half may have written the line before it died.
        if self.twin.is_none() && self.record.is_announced() {
            return;
        }
        let stopping =
            Stopping { job: self.record.header.job.clone(), by: ask.by.clone(), reason: ask.reason };
        self.record.announce(&stopping);
    }

    /// A leader that never executed its command was no job: the launcher says why, and nothing is left.
    fn check_executed(&mut self) {
        let mut errno = [0u8; 4];
        // The leader is dead, and nobody else has the other end: this does not block.
        if self.exec_error.take().is_some_and(|mut pipe| pipe.read_exact(&mut errno).is_ok()) {
            self.record.abandon();
            self.tell(&Word::Recorded);
            sys::exit_now(1)
        }
    }

    fn diagnose(&mut self, text: &[u8]) {
        self.record.add(text);
    }

    fn output_tail(&self) -> Vec<u8> {
        self.record.tail()
    }

    fn output_age(&self) -> Option<Duration> {
        self.record.age()
    }

    fn outer(&self) -> (Option<String>, Option<i32>) {
        let header = &self.record.header;
        (header.nested_in.clone(), header.supervisors.first().map(|s| s.0))
    }

    /// Writes the record and ends. Where it cannot be written, the log's lock stays and says so, and it is tried
    /// again: a job whose end is not recorded is not over.
    fn finish(mut self, end: End, _tree: &Tree, signals: &SignalFd) -> ! {
        self.capture.finish(&self.record.log);
        if let Some(trim) = self.trim.as_ref().filter(|_| self.record.max_log.is_some()) {
            trim.finish(&self.record.log);
        }
        // Output that the log could not take is as much gone as a beginning that was cut away.
        self.record.replaced |= self.capture.lost;
        let mut footer = footer(end, &self.record);
        sys::set_title(RECORDING);
        while let Err(cause) = self.record.finish(&mut footer) {
            sys::set_title(&cannot_record_title(&cause));
            let until = Instant::now() + RETRY;
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
                sleep_on(&[signals.fd()], Some(left));
                // Whoever asks for a stop has perhaps just made room.
                if std::iter::from_fn(|| signals.next()).any(|heard| heard.signal == sys::REQUEST) {
                    break;
                }
            }
            sys::set_title(RECORDING);
        }
        self.tell(&Word::Recorded);
        let hook = self.hook.take().filter(|_| hook::is_called_by(footer.outcome));
        // Waiters are woken by this process's end: the front, which is woken by it too, makes the record last.
        if !self.wake_twin() || hook.is_some() || self.record.replaced {
            self.record.sync();
        }
        if let Some(hook) = hook {
            self.call_hook(&hook, &footer, signals);
        }
        sys::exit_now(0)
    }
}

/// How the leader ended, for the verdict.
pub(super) fn leader_end(end: &End) -> LeaderEnd {
    match &end.death {
        Some(death) => match (death.exit_code, death.signal) {
            (Some(code), _) => LeaderEnd::Exit(code),
            (None, Some(signal)) => LeaderEnd::Signal(signal),
            (None, None) => LeaderEnd::Unknown,
        },
        None => LeaderEnd::Unknown,
    }
}

fn footer(end: End, record: &Record) -> Footer {
    let leaked = end.leaked.iter().any(|l| l.why != SPARED);
    let (outcome, reason) = verdict(&end.policy, end.stop.as_ref(), leader_end(&end), leaked);
    let death = end.death.as_ref();
    Footer {
        v: VERSION,
        job: record.header.job.clone(),
        outcome,
        exit_code: death.and_then(|d| d.exit_code),
        signal: death.and_then(|d| d.signal).map(signal_name),
        reason: Some(reason),
        finished_at: death.map(|d| rfc3339(d.at)),
        elapsed_seconds: death.map(|d| (d.elapsed * 1000.0).round() / 1000.0),
        cpu_seconds: death.and_then(|d| d.cpu),
        max_rss_kb: death.and_then(|d| d.max_rss_kb),
        leaked: end.leaked,
        nested: end.nested,
        survivors: end.survivors,
        truncated: false,
        added_newline: false,
        overwrote: None,
        stopped_with: end.stop.as_ref().and(end.strongest).map(signal_name),
        header: (&record.header).into(),
    }
}
