//! A run that makes no progress: neither output nor CPU time for too long.
//!
//! Output is the growth of the files that stdout and stderr are, and, where one of them is none (a pipe, a terminal),
//! of what the tree's processes have written at all (wchar in /proc/PID/io). CPU progress is more than one percent of
//! one CPU over the window. Nobody stands between the run and its output.

use super::Tree;
use crate::process::{Ident, Stat, ticks_per_second};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// The longest and the shortest time between two looks.
const EVERY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How much of one CPU is progress.
const SHARE: f64 = 0.01;

/// How long without progress is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallLimits {
    /// Neither output nor CPU time.
    pub any: Option<Duration>,
    /// No output, whatever CPU time.
    pub output: Option<Duration>,
}

impl StallLimits {
    /// A watch over a job whose output is this log; where it cannot be watched by its size, by what the tree writes.
    pub(super) fn watch_log(self, log: &File) -> Option<Stall> {
        self.any.or(self.output)?;
        self.watch(log.try_clone().into_iter().collect(), false)
    }

    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        self.any.is_some() || self.output.is_some()
    }

    /// A watch over a tree whose output goes to these files, and, if it is `elsewhere` as well (or there are none), to
    /// what cannot be measured by size.
    pub fn watch(self, files: Vec<File>, elsewhere: bool) -> Option<Stall> {
        let shortest = self.any.into_iter().chain(self.output).min()?;
        let now = Instant::now();
        Some(Stall {
            limits: self,
            every: (shortest / 10).clamp(EVERY.0, EVERY.1),
            next: now,
            elsewhere: elsewhere || files.is_empty(),
            files,
            seen: Seen::default(),
            last_output: now,
            cpu: VecDeque::new(),
            used: 0.0,
        })
    }
}

#[derive(Debug, Default)]
struct Seen {
    sizes: Vec<u64>,
    written: HashMap<Ident, u64>,
    ticks: HashMap<Ident, u64>,
}

/// The watch.
#[derive(Debug)]
pub struct Stall {
    limits: StallLimits,
    every: Duration,
    next: Instant,
    files: Vec<File>,
    elsewhere: bool,
    seen: Seen,
    last_output: Instant,
    /// CPU seconds used so far, at the looks of the last window.
    cpu: VecDeque<(Instant, f64)>,
    used: f64,
}

impl Stall {
    /// When the next look is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The files that are looked at: to be kept open.
    pub fn fds(&self) -> Vec<RawFd> {
        self.files.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// Looks, if a look is due; says what has been still for too long.
    pub fn check(&mut self, now: Instant, tree: &Tree) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now + self.every;
        let rows = tree.living();
        let sizes: Vec<u64> = self.files.iter().map(|f| f.metadata().map_or(0, |m| m.len())).collect();
        let written = if self.elsewhere { written(&rows) } else { HashMap::new() };
        self.look(now, &rows, sizes, written)
    }

    /// The pure part: a picture of the tree, the files' sizes, and what each process has written.
    fn look(
        &mut self,
        now: Instant,
        rows: &[Stat],
        sizes: Vec<u64>,
        written: HashMap<Ident, u64>,
    ) -> Option<String> {
        let grown = sizes != self.seen.sizes
            || written.iter().any(|(who, n)| *n > self.seen.written.get(who).copied().unwrap_or(0));
        if grown {
            self.last_output = now;
        }
        let mut ticks = 0;
        for row in rows {
            let who = Ident { pid: row.pid, start: row.start };
            let before = self.seen.ticks.insert(who, row.cpu_ticks).unwrap_or(0);
            ticks += row.cpu_ticks.saturating_sub(before);
        }
        #[expect(clippy::cast_precision_loss, reason = "a difference of CPU ticks is far below 2^52")]
        let seconds = ticks as f64 / ticks_per_second() as f64;
        self.used += seconds;
        self.cpu.push_back((now, self.used));
        (self.seen.sizes, self.seen.written) = (sizes, written);

        let still = now.duration_since(self.last_output);
        if let Some(limit) = self.limits.output
            && still >= limit
        {
            return Some(format!("no output for {}s", limit.as_secs_f64()));
        }
        let limit = self.limits.any?;
        let window = now.checked_sub(limit);
        // The last look before the window began is where its CPU time is counted from.
        while self.cpu.len() > 1 && window.is_some_and(|w| self.cpu[1].0 <= w) {
            self.cpu.pop_front();
        }
        let &(from, used) = self.cpu.front()?;
        let covered = now.duration_since(from);
        let busy = self.used - used > SHARE * covered.as_secs_f64();
        (still >= limit && covered >= limit && !busy)
            .then(|| format!("no output and no CPU time for {}s", limit.as_secs_f64()))
    }
}

/// What each process has written so far, where that can be read.
fn written(rows: &[Stat]) -> HashMap<Ident, u64> {
    let of = |row: &Stat| {
        let text = std::fs::read_to_string(format!("/proc/{}/io", row.pid)).ok()?;
        let written = text.lines().find_map(|l| l.strip_prefix("wchar: ")?.trim().parse().ok())?;
        Some((Ident { pid: row.pid, start: row.start }, written))
    };
    rows.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu_ticks: u64) -> Stat {
        Stat {
            pid: 9,
            comm: "x".into(),
            state: 'S',
            ppid: 1,
            pgid: 9,
            sid: 9,
            cpu_ticks,
            threads: 1,
            start: 1,
            rss_pages: 0,
        }
    }

    /// Looks once a second for 30 s; says when the watch struck.
    fn strikes(limits: StallLimits, size: impl Fn(u64) -> u64, ticks: impl Fn(u64) -> u64) -> Option<u64> {
        let mut stall = limits.watch(vec![], false).unwrap();
        let begun = stall.last_output;
        (0..30).find(|&s| {
            let now = begun + Duration::from_secs(s);
            stall.look(now, &[row(ticks(s))], vec![size(s)], HashMap::new()).is_some()
        })
    }

    const FIVE: Option<Duration> = Some(Duration::from_secs(5));

    #[test]
    fn silence_and_sleep_are_a_stall() {
        let any = StallLimits { any: FIVE, output: None };
        assert_eq!(strikes(any, |_| 7, |_| 3), Some(5));
    }

    #[test]
    fn a_silent_run_that_works_is_none() {
        let any = StallLimits { any: FIVE, output: None };
        let hz = ticks_per_second();
        assert_eq!(strikes(any, |_| 7, |s| s * hz / 10), None);
        assert_eq!(strikes(any, |_| 7, |s| s.min(10) * hz / 10), Some(15));
    }

    #[test]
    fn less_than_a_hundredth_of_a_cpu_is_no_progress() {
        let any = StallLimits { any: Some(Duration::from_secs(20)), output: None };
        assert_eq!(strikes(any, |_| 7, |s| u64::from(s >= 10)), Some(20));
    }

    #[test]
    fn output_is_progress_and_spinning_is_not_where_only_output_counts() {
        let output = StallLimits { any: None, output: FIVE };
        let hz = ticks_per_second();
        assert_eq!(strikes(output, |s| s, |_| 0), None);
        assert_eq!(strikes(output, |_| 7, |s| s * hz), Some(5));
        assert_eq!(strikes(output, |s| s.min(4), |s| s * hz), Some(9));
    }
}
