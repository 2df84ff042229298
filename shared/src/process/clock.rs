//! The kernel's clock of process starts against the wall clock.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// Clock ticks a second: the unit of start times and CPU times in /proc.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// Time since boot, suspend included.
pub fn boottime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Time since boot in clock ticks: the clock of processes' start times, rounded down as those are.
pub fn boottime_ticks() -> u64 {
    let ticks = boottime().as_nanos() * u128::from(ticks_per_second()) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// When a process started, by the wall clock as it is set now.
pub fn started_at(start_ticks: u64) -> SystemTime {
    let hz = ticks_per_second();
    let start =
        Duration::from_secs(start_ticks / hz) + Duration::from_nanos(start_ticks % hz * 1_000_000_000 / hz);
    SystemTime::now() - boottime().saturating_sub(start)
}
