//! `--on-exit`: a command of the user's after a job's end, at most once, when nothing is locked any more. Whatever it
//! does changes nothing about the job; what went wrong becomes a HOOK line.

use super::BOUND;
use super::tree::{Left, Tree};
use crate::contract::{Footer, Outcome};
use crate::poll::sleep_on;
use crate::sys::{self, Children, Ended, SignalFd, Which, signal_name};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a hook may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// A moment of repeated KILL.
const ROUND: Duration = Duration::from_millis(20);

/// A hook, as it was asked for.
#[derive(Clone, Debug)]
pub struct Hook {
    /// For `sh -c`.
    pub command: OsString,
    /// The environment that the job's leader got, without the job's own variables.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where the job ran: the record's word for it need not be a path, where that is not UTF-8.
    pub cwd: PathBuf,
}

/// What went wrong, for the HOOK line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Trouble {
    pub job: String,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub error: Option<String>,
}

/// Whether this end calls the hook: the user's own kill is no news.
pub(super) fn is_called_by(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Passed | Outcome::Failed | Outcome::Timeout => true,
        Outcome::Killed | Outcome::Crashed => false,
    }
}

impl Hook {
    /// Runs the hook with the job's end in its environment, and ends all that it leaves but for jobs. `None`: it
    /// succeeded.
    pub(super) fn run(
        &self,
        footer: &Footer,
        log: &OsString,
        unread: Option<u64>,
        signals: &SignalFd,
    ) -> Option<Trouble> {
        let trouble = |error: String| Trouble {
            job: footer.job.clone(),
            exit_code: None,
            signal: None,
            error: Some(error),
        };
        // Where the job ran; if that is gone, where this half is.
        let _ = std::env::set_current_dir(&self.cwd);
        let command = self.command(footer, log, unread);
        // What the job was allowed to leave stays.
        let mut tree = match Tree::without_present_children(None) {
            Ok(tree) => tree,
            Err(e) => return Some(trouble(format!("cannot read /proc: {e}"))),
        };
        let pid = match command.spawn(&[]) {
            Ok(pid) => pid,
            Err(e) => return Some(trouble(format!("cannot start it: {e}"))),
        };
        let until = Instant::now() + PATIENCE;
        let mut end = None;
        while end.is_none() && Instant::now() < until {
            match sys::look(Which::Pid(pid), true) {
                Ok(Children::Dead(dead)) => end = Some(dead.ended),
                Ok(Children::Alive) => {
                    sleep_on(&[signals.fd()], Some(until.saturating_duration_since(Instant::now())));
                }
                Ok(Children::None) | Err(_) => break,
            }
            while signals.next().is_some() {}
        }
        let give_up = Instant::now() + BOUND;
        tree.reap(None);
        // A run that the hook launched has its own name, limit and record.
        tree.leave_nested_jobs();
        while tree.left() == Left::Some && Instant::now() < give_up {
            tree.hard(None);
            sleep_on(&[signals.fd()], Some(ROUND));
            while signals.next().is_some() {}
        }
        match end {
            Some(Ended::Exit(0)) => None,
            Some(Ended::Exit(code)) => {
                Some(Trouble { job: footer.job.clone(), exit_code: Some(code), signal: None, error: None })
            }
            Some(Ended::Signal(signal, _)) => Some(Trouble {
                job: footer.job.clone(),
                exit_code: None,
                signal: Some(signal_name(signal)),
                error: None,
            }),
            None if until <= Instant::now() => {
                Some(trouble(format!("stopped after {}s", PATIENCE.as_secs())))
            }
            None => Some(trouble("its end was not seen".to_owned())),
        }
    }

    fn command(&self, footer: &Footer, log: &OsString, unread: Option<u64>) -> sys::Command {
        let mut environment = self.environment.clone();
        let mut set = |name: &str, value: Option<OsString>| match value {
            Some(value) => environment.insert(name.into(), value),
            None => environment.remove(std::ffi::OsStr::new(name)),
        };
        set("TB_JOB", None);
        // What the hook calls finds the job, wherever it is called.
        set("TB_LOG_DIR", Path::new(log).parent().map(Into::into));
        let header = footer.header.read();
        set("TB_OWNER", header.as_ref().and_then(|h| h.owner.clone()).map(Into::into));
        set("TB_NAME", header.map(|h| h.name.into()));
        set("TB_OUTCOME", Some(footer.outcome.word().into()));
        set("TB_EXIT_CODE", Some(footer.exit_code.map(|c| c.to_string()).unwrap_or_default().into()));
        set("TB_SIGNAL", Some(footer.signal.clone().unwrap_or_default().into()));
        set("TB_LOG", Some(log.clone()));
        set("TB_UNREAD_LINES", Some(unread.map(|n| n.to_string()).unwrap_or_default().into()));
        let string = |bytes: Vec<u8>| CString::new(bytes).ok();
        let argv: Vec<CString> = [b"/bin/sh".as_slice(), b"-c", self.command.as_bytes()]
            .into_iter()
            .filter_map(|word| string(word.to_vec()))
            .collect();
        let envp = environment
            .iter()
            .filter_map(|(k, v)| string([k.as_bytes(), b"=", v.as_bytes()].concat()))
            .collect();
        let mut command = sys::Command::new(argv, envp, b"");
        command.new_session = true;
        // Nobody would be left to end it.
        command.death_signal = Some(libc::SIGKILL);
        command
    }
}
