//! One report of a job, for two renderers: people read lines, programs read JSON. What is serialised is this and
//! not the contract's own types, so that the answer's names stay as they are whatever becomes of those.

use crate::contract::{Job, Leftover, Outcome, RunDir, Status, TerminalMarker, rfc3339};
use crate::log::tail;
use crate::process::{self, Here, Snapshot};
use crate::supervise;
use crate::term::{Failure, Result, human_duration};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// How long a job must have been quiet before it is called idle.
const IDLE: Duration = Duration::from_secs(60);

/// Everything that is said of a job; `None` is "not known".
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this object.
    pub v: u32,
    /// The job's name.
    pub name: String,
    /// Its id.
    pub job: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// The host that recorded it.
    pub host: Option<String>,
    /// `RUNNING` or `FINISHED`.
    pub status: &'static str,
    /// `passed`, `failed`, `killed`, `timeout`, `crashed`.
    pub outcome: Option<&'static str>,
    /// `PASS` or `FAIL`.
    pub terminal_marker: Option<TerminalMarker>,
    /// What the verdict rests on.
    pub verdict_source: &'static str,
    /// The leader's exit status.
    pub exit_code: Option<i32>,
    /// The signal that it died of.
    pub signal: Option<String>,
    /// What brought the end about.
    pub reason: Option<crate::contract::Reason>,
    /// The leader.
    pub pid: Option<i32>,
    /// The halves of the supervisor that live.
    pub supervisors: Vec<i32>,
    /// `double`, `single` or `none`; null when it is over.
    pub supervision: Option<&'static str>,
    /// The job inside which it runs.
    pub nested_in: Option<String>,
    /// Its arguments.
    pub command: Option<Vec<String>>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// When it was launched.
    pub started_at: Option<String>,
    /// When its leader ended.
    pub finished_at: Option<String>,
    /// How long it has been running, or ran.
    pub elapsed_seconds: Option<f64>,
    /// What is usual.
    pub expected_seconds: Option<f64>,
    /// The last phase.
    pub current_phase: Option<String>,
    /// How far the runner says it is.
    pub percent: Option<u8>,
    /// The last test that its output names.
    pub last_test: Option<String>,
    /// When it last wrote.
    pub last_output_at: Option<String>,
    /// For how long it has written nothing, while it runs.
    pub idle_seconds: Option<f64>,
    /// CPU time.
    pub cpu_seconds: Option<f64>,
    /// Resident memory, while it runs; the largest, when it is over.
    pub rss_kb: Option<u64>,
    /// Living processes.
    pub processes: Option<usize>,
    /// What outlived the leader.
    pub leaked: Option<Vec<Leftover>>,
    /// What could not be stopped.
    pub survivors: Option<Vec<Leftover>>,
    /// The log's path.
    pub log_file: Option<String>,
    /// Its length.
    pub log_bytes: Option<u64>,
    /// How many lines were given back to the disk.
    pub dropped_lines: Option<u64>,
    /// Whether the log lost its beginning or was replaced.
    pub truncated: Option<bool>,
    /// The PID file's path, where there is one.
    pub pid_file: Option<String>,
    /// Whether its results were collected.
    pub collected: bool,
    /// Its last lines.
    pub last_log_lines: Vec<String>,
    #[serde(skip)]
    extra: Extra,
}

/// What only people are told.
#[derive(Clone, Debug, Default)]
struct Extra {
    unsupervised: bool,
    stopped: bool,
    /// How long neither output nor CPU was seen.
    quiet: Option<Duration>,
    notes: Vec<String>,
    started: Option<Timestamp>,
}

/// How much is looked up.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// How many last lines.
    pub lines: usize,
    /// Whether processes are counted and measured, and what is usual is looked up for a job that is over, too.
    pub processes: bool,
}

impl Report {
    /// Looks at a job.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn of(dir: &RunDir, here: &Here, job: &Job, depth: Depth) -> Result<Report> {
        let running = job.state.is_running();
        let header = job.header();
        let footer =
            job.log.as_ref().and_then(|l| l.end.footer.as_ref()).map(|(f, _)| f).filter(|_| !running);
        let started = started(job);
        let mut extra = Extra {
            unsupervised: job.state.unsupervised,
            started,
            notes: notes(job, here),
            ..Extra::default()
        };

        // How far a job is, its last line says; one that is over has none to tell, and a list of many is long.
        let lines = depth.lines.max(usize::from(running));
        let tail = match &job.log {
            Some(log) if lines > 0 => match tail(log, lines) {
                // Removed since it was listed.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => crate::log::Tail::default(),
                read => read.map_err(|e| {
                    Failure::cannot(format!("read {}", dir.path_of(&log.name.file()).display()), e)
                })?,
            },
            _ => crate::log::Tail::default(),
        };
        let progress =
            if running { crate::progress::progress(&tail.bytes) } else { crate::pytest::Progress::default() };
        let phase = job.log.as_ref().and_then(|l| l.end.phase.clone()).or(progress.phase.map(|phase| {
            let word = match phase {
                crate::pytest::Phase::Collect => "collect",
                crate::pytest::Phase::Test => "test",
                crate::pytest::Phase::Summary => "summary",
            };
            word.to_owned()
        }));

        let modified = job.log.as_ref().map(|l| l.id.modified);
        let quiet = modified.and_then(|m| SystemTime::now().duration_since(m).ok()).filter(|_| running);

        let supervisors: Vec<i32> =
            if running { supervise::supervisors(job).iter().map(|i| i.pid).collect() } else { vec![] };
        let mut measured = None;
        let leader = job.pid().filter(|_| running);
        if let Some(pid) = leader {
            extra.stopped = process::read_stat(pid).is_some_and(|s| s.is_stopped());
            let idle = quiet.is_some_and(|q| q >= IDLE);
            if depth.processes || idle {
                let all = Snapshot::take().map_err(|e| Failure::cannot("read /proc", e))?;
                let rows = process::members(&all, &supervisors, leader);
                measured = Some(process::activity(rows.iter().copied()));
                if idle {
                    let pids: Vec<i32> = rows.iter().map(|r| r.pid).collect();
                    let still = process::since_last_ran(&pids).zip(quiet).map(|(ran, quiet)| ran.min(quiet));
                    extra.quiet = still.filter(|s| *s >= IDLE);
                }
            }
        }
        if running && leader.is_some_and(|pid| process::read_stat(pid).is_none()) {
            // The end could not be recorded: the supervisor says why in its own command line.
            let cause = supervisors.first().and_then(|&pid| supervise::cannot_record(pid));
            extra.notes.extend(cause.map(|cause| format!("cannot record: {cause}")));
        }

        let usual = if running || depth.processes { crate::usual::usual_seconds(dir, job) } else { None };
        let dropped_lines = job.log.as_ref().and_then(|l| l.lines_gone().ok());
        let elapsed = match footer {
            Some(footer) => footer.elapsed_seconds,
            None if running => started.map(|t| Timestamp::now().duration_since(t).as_secs_f64().max(0.0)),
            None => None,
        };
        Ok(Report {
            v: 1,
            name: job.name.clone(),
            job: header.map(|h| h.job.clone()),
            owner: job.owner().map(str::to_owned),
            host: header.map(|h| h.host.clone()),
            status: if running { "RUNNING" } else { "FINISHED" },
            outcome: job.state.outcome.map(Outcome::word),
            terminal_marker: job.state.marker,
            verdict_source: job.state.source.word(),
            exit_code: footer.and_then(|f| f.exit_code),
            signal: footer.and_then(|f| f.signal.clone()),
            reason: footer.and_then(|f| f.reason),
            pid: job.pid(),
            supervision: running.then_some(match supervisors.len() {
                0 => "none",
                1 => "single",
                _ => "double",
            }),
            supervisors,
            nested_in: header.and_then(|h| h.nested_in.clone()),
            command: header.map(|h| h.command.clone()),
            cwd: header.map(|h| h.cwd.clone()),
            started_at: started.map(rfc3339),
            finished_at: footer.and_then(|f| f.finished_at.clone()),
            elapsed_seconds: elapsed.map(thousandths),
            expected_seconds: usual.map(thousandths),
            current_phase: phase,
            percent: progress.percent,
            last_test: progress.last_test,
            last_output_at: modified
                .and_then(|m| Timestamp::try_from(m).ok())
                .map(whole_seconds)
                .map(rfc3339),
            idle_seconds: quiet.map(|q| thousandths(q.as_secs_f64())),
            cpu_seconds: footer.and_then(|f| f.cpu_seconds).or(measured.map(|m| m.cpu_seconds)),
            rss_kb: footer.and_then(|f| f.max_rss_kb).or(measured.map(|m| m.rss_kb)),
            processes: measured.map(|m| m.processes),
            leaked: footer.map(|f| f.leaked.clone()),
            survivors: footer.map(|f| f.survivors.clone()),
            log_file: job.log.as_ref().map(|l| dir.path_of(&l.name.file()).to_string_lossy().into_owned()),
            log_bytes: job.log.as_ref().map(|l| l.id.size),
            dropped_lines,
            truncated: footer.map(|f| f.truncated),
            pid_file: job
                .pid_file
                .as_ref()
                .map(|p| dir.path_of(&p.stem.pid_file()).to_string_lossy().into_owned()),
            collected: job.is_collected(),
            last_log_lines: if depth.lines == 0 { vec![] } else { tail.lines },
            extra,
        })
    }

    /// `RUNNING (test 45%)`, `FINISHED (PASS)`, …
    pub fn headline(&self) -> String {
        if self.status == "FINISHED" {
            return match self.terminal_marker {
                Some(TerminalMarker::Pass) => "FINISHED (PASS)".to_owned(),
                Some(TerminalMarker::Fail) => "FINISHED (FAIL)".to_owned(),
                None => "FINISHED (no marker)".to_owned(),
            };
        }
        if self.extra.unsupervised {
            return "RUNNING (unsupervised)".to_owned();
        }
        if self.extra.stopped {
            return "RUNNING (stopped)".to_owned();
        }
        if let Some(note) = self.extra.notes.iter().find(|n| n.starts_with("cannot record")) {
            return format!("RUNNING ({note})");
        }
        if let Some(quiet) = self.extra.quiet {
            return format!("RUNNING (idle {}s: no output, no CPU)", quiet.as_secs());
        }
        match (&self.current_phase, self.percent) {
            (Some(phase), Some(percent)) => format!("RUNNING ({phase} {percent}%)"),
            (Some(phase), None) => format!("RUNNING ({phase})"),
            (None, Some(percent)) => format!("RUNNING ({percent}%)"),
            (None, None) => "RUNNING".to_owned(),
        }
    }

    /// When it started, in local time: `14:35`, or `Jul 25 14:30` if not today.
    pub fn started_local(&self) -> String {
        let Some(started) = self.extra.started else { return "?".to_owned() };
        let zone = TimeZone::system();
        let (at, today) = (started.to_zoned(zone.clone()), Timestamp::now().to_zoned(zone));
        let form = if at.date() == today.date() { "%H:%M" } else { "%b %d %H:%M" };
        at.strftime(form).to_string()
    }

    /// What follows the columns: how long it took, or how it goes.
    pub fn remark(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if self.status == "FINISHED" {
            parts.extend(self.elapsed_seconds.map(|s| format!("took {s:.1}s")));
            match self.outcome {
                Some("killed" | "timeout" | "crashed") => parts.extend(self.outcome.map(str::to_owned)),
                _ => parts.extend(self.signal.as_ref().map(|s| format!("died of {s}"))),
            }
            if let (Some("failed"), Some(code)) = (self.outcome, self.exit_code) {
                parts.push(format!("exit {code}"));
            }
            let leaked = self.leaked.as_ref().map_or(0, Vec::len);
            if leaked > 0 {
                parts.push(format!("{leaked} leaked"));
            }
            let survivors = self.survivors.as_ref().map_or(0, Vec::len);
            if survivors > 0 {
                parts.push(format!("{survivors} survived"));
            }
        } else {
            parts.extend(self.idle_seconds.map(|s| {
                format!(
                    "last output {} ago",
                    human_duration(Duration::try_from_secs_f64(s).unwrap_or_default())
                )
            }));
            parts.extend(self.outlook());
        }
        parts.join(", ")
    }

    /// How a running job stands to what is usual for it.
    pub fn outlook(&self) -> Option<String> {
        let (elapsed, usual) = self.elapsed_seconds.zip(self.expected_seconds)?;
        (self.status == "RUNNING").then(|| crate::usual::outlook(elapsed, usual))
    }

    /// What a person should know besides.
    pub fn notes(&self) -> &[String] {
        &self.extra.notes
    }

    /// When it was launched.
    pub fn started(&self) -> Option<Timestamp> {
        self.extra.started
    }

    /// The SGR colour of the headline.
    pub fn colour(&self) -> &'static str {
        match (self.status, self.terminal_marker) {
            ("RUNNING", _) => "36",
            (_, Some(TerminalMarker::Pass)) => "32",
            (_, Some(TerminalMarker::Fail)) => "31",
            _ => "33",
        }
    }
}

fn thousandths(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    time.round(jiff::Unit::Millisecond).unwrap_or(time)
}

/// The header's time; for a foreign run, its process's start.
fn started(job: &Job) -> Option<Timestamp> {
    if let Some(header) = job.header() {
        return header.started_at.parse().ok();
    }
    if job.state.status != Status::Running {
        return None;
    }
    let stat = process::read_stat(job.pid()?)?;
    Timestamp::try_from(process::started_at(stat.start)).ok()?.round(jiff::Unit::Second).ok()
}

fn notes(job: &Job, here: &Here) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(content) = job.overwritten_by() {
        notes.push(match content {
            crate::contract::PidContent::Pid(pid) => format!("PID file overwritten by PID {pid}"),
            crate::contract::PidContent::Corrupt(why) => format!("PID file overwritten: {why}"),
        });
    } else if let Some(crate::contract::PidContent::Corrupt(why)) =
        job.pid_file.as_ref().filter(|p| !p.held).map(|p| &p.content)
    {
        notes.push(format!("PID file corrupt: {why}; tb-clean or the next launch clears it"));
    }
    if job.state.machine_restarted {
        notes.push("the machine restarted".to_owned());
    }
    if let Some(header) = job.header() {
        if job.state.elsewhere {
            notes.push(format!("recorded on {}, look there", header.host));
        } else if header.host != here.host && job.state.is_running() {
            notes.push(format!("runs on {}", header.host));
        }
        if job.is_newer() {
            notes.push(format!("written by version {} of the contract", header.v));
        }
        if let Some(outer) = &header.nested_in
            && job.state.is_running()
        {
            notes.push(format!("runs inside {outer} and ends with it"));
        }
    } else if job.facts.pid_held {
        notes.push(
            "the log lost its header: was it truncated? (> /dev/stderr in a test does that)".to_owned(),
        );
    }
    if let Some(log) = &job.log
        && log.links > 1
    {
        notes.push(format!("{} has {} links, not one", log.name.file(), log.links));
    }
    let stopping = job.log.as_ref().and_then(|l| l.end.stopping.as_ref()).filter(|_| job.state.is_running());
    notes.extend(stopping.map(|s| format!("stopping, asked by {}", s.by)));
    notes
}
