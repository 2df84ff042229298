//! Clocks, interleaved rounds, medians, and what `/proc` says of a process.

use crate::{Result, doing, run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::process::Command;

/// Seconds on the clock that all processes share and nobody sets.
pub(crate) fn clock() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// One way to do the thing that is measured. The first of a table is the peer.
pub(crate) struct Case<'a> {
    pub(crate) name: String,
    once: Box<dyn FnMut() -> Result<Option<f64>> + 'a>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(name: &str, once: impl FnMut() -> Result<Option<f64>> + 'a) -> Case<'a> {
        Case { name: name.to_owned(), once: Box::new(once) }
    }
}

/// A name and its samples, in seconds.
pub(crate) type Series = (String, Vec<f64>);

/// Runs all cases in each round, each time beginning with another, after one round that warms up.
pub(crate) fn interleave(rounds: usize, mut cases: Vec<Case<'_>>) -> Result<Vec<Series>> {
    let mut series: Vec<Series> = cases.iter().map(|c| (c.name.clone(), Vec::new())).collect();
    let count = cases.len();
    for round in 0..=rounds {
        for turn in 0..count {
            let which = (round + turn) % count;
            run::check_interrupt()?;
            if let Some(sample) = (cases[which].once)()?
                && round > 0
            {
                series[which].1.push(sample);
            }
        }
    }
    Ok(series)
}

/// Prints medians in milliseconds and their ratio to the first case's.
pub(crate) fn table(title: &str, series: &[Series]) {
    println!("\n| {title} | median ms | min - p90 | ratio | n |\n|---|---|---|---|---|");
    let peer = series.first().and_then(|(_, samples)| quantile(samples, 0.5));
    for (name, samples) in series {
        match (quantile(samples, 0.0), quantile(samples, 0.5), quantile(samples, 0.9)) {
            (Some(least), Some(median), Some(high)) => {
                let ratio = peer.map_or_else(|| "-".to_owned(), |peer| format!("{:.2}", median / peer));
                let ms = |s: f64| format!("{:.3}", s * 1e3);
                println!(
                    "| {name} | {} | {} - {} | {ratio} | {} |",
                    ms(median),
                    ms(least),
                    ms(high),
                    samples.len()
                );
            }
            _ => println!("| {name} | - | - | - | 0 |"),
        }
    }
}

pub(super) fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((q * last as f64).round() as usize).copied()
}

fn field(pid: u32, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|l| l.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Resident memory.
pub(crate) fn rss_kb(pid: u32) -> u64 {
    field(pid, "status", "VmRSS")
}

/// Context switches so far, of either kind.
pub(crate) fn switches(pid: u32) -> u64 {
    field(pid, "status", "voluntary_ctxt_switches") + field(pid, "status", "nonvoluntary_ctxt_switches")
}

/// The kernel's short name of a process.
pub(crate) fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// A process and its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u64)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .map(|pid| (pid, field(pid, "status", "PPid")))
        .collect();
    let mut found = vec![root];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, ppid)| *ppid == u64::from(parent)).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

/// The most memory that a command held: its high-water mark, looked at each millisecond until it ends.
pub(crate) fn peak_rss_kb(command: &mut Command) -> Result<u64> {
    let mut child = doing("start what is measured", command.spawn())?;
    let pidfd = doing("watch what is measured", pidfd_open(Pid::from_child(&child), PidfdFlags::empty()))?;
    let mut peak = 0;
    let pause = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&pause)).is_ok_and(|n| n == 0) {
        peak = peak.max(field(child.id(), "status", "VmHWM"));
    }
    doing("wait for what is measured", child.wait())?;
    Ok(peak)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_of_few_samples() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[3.0], 0.9), Some(3.0));
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.0), Some(1.0));
    }
}
