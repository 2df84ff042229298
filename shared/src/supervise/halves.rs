//! The two halves of a background job's supervisor.
//!
//! The monitor (below) alone acts and writes. The front (above) sleeps until the monitor has died; then
//! everything that the monitor had is its child, and it goes on from what it was told, alone. Both are
//! single-threaded, subreapers, and in sessions of their own.

use super::acting::{Acting, End, Known, Role, sleep_on};
use super::machine::{Ask, LeaderEnd, verdict};
use super::record::Record;
use super::tree::{SPARED, Tree};
use super::words::{Told, Word};
use super::{COMM, Request};
use crate::contract::{Footer, Stopping, VERSION, rfc3339};
use crate::process::{self, Handle, Ident};
use crate::sys::{self, Children, SignalFd, Which, signal_name};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// How long a record that cannot be written waits for room.
const RETRY: Duration = Duration::from_secs(5);
/// How many requests that were passed on to the monitor the front remembers.
const PASSED_ON: usize = 8;
/// Room for words about as many leaks as a record lists: the kernel's default holds half of them.
const PIPE: usize = 1 << 20;

/// A half of a job: it has the job's two files.
pub(super) struct JobHalf {
    record: Record,
    /// To the front; `None` in the front itself.
    twin: Option<File>,
    /// Where a leader that could not execute its command has left errno; empty if it could.
    exec_error: Option<File>,
}

/// The monitor's life, from the leader's start to the record.
pub(super) fn monitor(known: Known, record: Record, signals: SignalFd, twin: File, exec_error: File) -> ! {
    let role = JobHalf { record, twin: Some(twin), exec_error: Some(exec_error) };
    Acting::new(known, role, signals).live(vec![], vec![])
}

/// The front's life: asleep until the monitor has died, then whatever is left to do. The leader in `known` is not
/// known yet.
pub(super) fn front(
    mut known: Known,
    mut record: Record,
    signals: SignalFd,
    words: &File,
    monitor: i32,
) -> ! {
    // A child's number is ours until we wait for it, so this handle is the monitor's.
    let handle = process::read_stat(monitor)
        .and_then(|stat| Handle::open(Ident { pid: monitor, start: stat.start }).ok().flatten());
    let mut passed_on = Vec::new();
    while !matches!(sys::look(Which::Pid(monitor), true), Ok(Children::Dead(_) | Children::None)) {
        let Some(heard) = signals.next() else {
            sleep_on(&[signals.fd()], None);
            continue;
        };
        // A request to this half is one to the job: the monitor acts.
        let value = match heard.signal {
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
        sys::exit_now(0);
    }
    known.leader = Ident { pid: record.header.pid, start: record.header.start };
    let role = JobHalf { record, twin: None, exec_error: None };
    // What the monitor was asked and did not live to say that it had heard is still asked.
    let unheard = if told.stop.is_none() { passed_on } else { vec![] };
    let (acting, actions) = Acting::resume(known, role, signals, told);
    acting.live(actions, unheard)
}

impl JobHalf {
    /// A front that somebody stopped would stay for ever: it is woken to see that all is over.
    fn wake_twin(&self) {
        if self.twin.is_some()
            && let Some(&(pid, start)) = self.record.header.supervisors.first()
            && let Ok(Some(front)) = Handle::open(Ident { pid, start })
        {
            let _ = front.signal(libc::SIGCONT);
        }
    }
}

impl Role for JobHalf {
    fn tell(&mut self, word: &Word) {
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
        let mut footer = footer(end, &self.record);
        while let Err(cause) = self.record.finish(&mut footer) {
            let cause = match cause.raw_os_error() {
                Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
                None => cause.to_string(),
            };
            sys::set_title(&format!("{COMM}: cannot record: {cause}"));
            let until = Instant::now() + RETRY;
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
                sleep_on(&[signals.fd()], Some(left));
                // Whoever asks for a stop has perhaps just made room.
                if std::iter::from_fn(|| signals.next()).any(|heard| heard.signal == sys::REQUEST) {
                    break;
                }
            }
        }
        self.tell(&Word::Recorded);
        self.wake_twin();
        self.record.sync();
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
        header: record.header.clone(),
    }
}
