//! What the monitor tells the front, down a pipe, before it acts: so much that the front can go on alone.
//!
//! The front reads only after the monitor has died: nothing wakes it while all is well.

use super::machine::Ask;
use super::tree::Moment;
use crate::contract::{Header, Leftover, LogName, Reason};
use crate::process::{Ident, boottime};
use crate::sys::Ended;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

/// How the leader ended, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Death {
    /// Its exit status; `None` when it died of a signal or nobody knows.
    pub exit_code: Option<i32>,
    /// The signal's number.
    pub signal: Option<i32>,
    /// Whether it left a core.
    pub core: bool,
    /// CPU time in seconds.
    pub cpu: Option<f64>,
    /// The largest resident set, in KiB.
    pub max_rss_kb: Option<u64>,
    /// When, RFC 3339.
    pub at: Timestamp,
    /// How long it ran, in seconds.
    pub elapsed: f64,
}

impl Death {
    pub(super) fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Exit(code) => self.exit_code = Some(code),
            Ended::Signal(signal, core) => (self.signal, self.core) = (Some(signal), core),
        }
    }
}

/// One word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Word {
    /// The leader is about to be let go: who it is, and where its log is.
    Begin { header: Box<Header>, log: String },
    /// The leader has ended.
    Dead(Death),
    /// A stop begins.
    Stop { by: String, reason: Reason, signal: i32, grace_ms: u64 },
    /// The first signal of a stop goes out.
    Begun(Moment),
    /// This process (PID, start) is about to get its one signal.
    Sent(i32, u64),
    /// The tree has had its one signal, and has until then (milliseconds since boot).
    Signalled { until_ms: u64 },
    /// This outlived the leader.
    Leaked(Leftover),
    /// This nested job ends with it.
    Nested(Leftover),
    /// The record is whole.
    Recorded,
}

impl Word {
    /// The tree was signalled and has this long from now.
    pub(super) fn signalled(grace: Duration) -> Word {
        let until = boottime().saturating_add(grace).as_millis();
        Word::Signalled { until_ms: u64::try_from(until).unwrap_or(u64::MAX) }
    }

    pub(super) fn stop(ask: &Ask) -> Word {
        Word::Stop {
            by: ask.by.clone(),
            reason: ask.reason,
            signal: ask.signal,
            grace_ms: u64::try_from(ask.grace.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Writes the word. The other end may be gone, or stopped with a full pipe: then nobody listens.
    pub(super) fn tell(&self, pipe: &File) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let mut pipe = pipe;
            let _ = pipe.write_all(&line);
        }
    }
}

/// All that a monitor has told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub begun: Option<(Header, LogName)>,
    pub dead: Option<Death>,
    /// The stop, if it was told before the leader's end.
    pub stop: Option<Ask>,
    /// Whether the tree has had its one signal, and how long it still has.
    pub signalled: Option<Duration>,
    /// When the first signal went out, and who has had it.
    pub signals_begun: Option<Moment>,
    pub sent: Vec<Ident>,
    pub leaked: Vec<Leftover>,
    pub nested: Vec<Leftover>,
    pub recorded: bool,
}

impl Told {
    /// Reads everything from a pipe whose writer is dead. A last word that was cut off was not said.
    pub(super) fn read(mut pipe: &File) -> Told {
        let mut bytes = Vec::new();
        // What cannot be read was not said either: the log and the kernel are asked next.
        let _ = pipe.read_to_end(&mut bytes);
        let mut told = Told::default();
        for word in bytes.split(|&b| b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
            match word {
                Word::Begin { header, log } => told.begun = LogName::parse(&log).map(|log| (*header, log)),
                Word::Dead(death) => told.dead = Some(death),
                Word::Stop { by, reason, signal, grace_ms } => {
                    let grace = Duration::from_millis(grace_ms);
                    told.stop = Some(Ask { by, reason, signal, grace });
                }
                Word::Begun(moment) => told.signals_begun = Some(moment),
                Word::Sent(pid, start) => told.sent.push(Ident { pid, start }),
                Word::Signalled { until_ms } => {
                    told.signalled = Some(Duration::from_millis(until_ms).saturating_sub(boottime()));
                }
                Word::Leaked(l) => told.leaked.push(l),
                Word::Nested(l) => told.nested.push(l),
                Word::Recorded => told.recorded = true,
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    fn told(bytes: &[u8]) -> Told {
        let (read, write) = pipe().unwrap();
        File::from(write).write_all(bytes).unwrap();
        Told::read(&File::from(read))
    }

    fn said(words: &[Word]) -> Vec<u8> {
        let (read, write) = pipe().unwrap();
        let write = File::from(write);
        words.iter().for_each(|word| word.tell(&write));
        drop(write);
        let mut bytes = Vec::new();
        File::from(read).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn words() -> Vec<Word> {
        let grace = Duration::from_secs(3600);
        let ask = Ask { by: "x\n\"y".into(), reason: Reason::Outer, signal: 2, grace };
        let left = Leftover { pid: 7, start: 8, command: "a\nb".into(), why: "outlived".into() };
        let death = Death {
            exit_code: Some(3),
            core: false,
            signal: None,
            cpu: Some(0.5),
            max_rss_kb: Some(1),
            at: Timestamp::UNIX_EPOCH,
            elapsed: 1.5,
        };
        vec![
            Word::stop(&ask),
            Word::Begun(Moment::now()),
            Word::Sent(7, 8),
            Word::signalled(grace),
            Word::Dead(death),
            Word::Leaked(left.clone()),
            Word::Nested(left),
            Word::Recorded,
        ]
    }

    #[test]
    fn what_was_said_is_heard() {
        let told = told(&said(&words()));
        let stop = told.stop.unwrap();
        assert_eq!((stop.by.as_str(), stop.reason, stop.signal), ("x\n\"y", Reason::Outer, 2));
        assert_eq!(told.dead.unwrap().exit_code, Some(3));
        assert!(told.signals_begun.is_some());
        assert_eq!(told.sent, [Ident { pid: 7, start: 8 }]);
        let left = told.signalled.unwrap();
        assert!(left > Duration::from_secs(3000) && left <= Duration::from_secs(3600), "{left:?}");
        assert_eq!((told.leaked.len(), told.nested.len(), told.recorded), (1, 1, true));
    }

    #[test]
    fn a_word_that_was_cut_off_was_not_said_and_those_before_it_were() {
        let bytes = said(&words());
        for end in 0..bytes.len() {
            let told = told(&bytes[..end]);
            assert!(!told.recorded || end + 1 == bytes.len());
            assert!(told.dead.is_none() || told.signalled.is_some(), "words come in order");
        }
    }

    #[test]
    fn a_grace_that_is_over_leaves_nothing() {
        assert_eq!(told(&said(&[Word::Signalled { until_ms: 1 }])).signalled, Some(Duration::ZERO));
    }

    #[test]
    fn nobody_waits_for_a_front_that_does_not_read() {
        let (read, write) = pipe().unwrap();
        rustix::io::ioctl_fionbio(&write, true).unwrap();
        let write = File::from(write);
        for _ in 0..20_000 {
            Word::Sent(i32::MAX, u64::MAX).tell(&write);
        }
        drop(write);
        assert!(Told::read(&File::from(read)).sent.len() > 1000);
    }
}
