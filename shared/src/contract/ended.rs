//! When a run ended.

use super::Job;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// When a run ended: as its footer says, or, where there is none, when it was launched as its log's name says; a file's
/// own times tell nothing.
pub fn ended_at(run: &Job) -> Option<Timestamp> {
    let log = run.log.as_ref()?;
    let recorded = log.end.footer.as_ref().and_then(|(footer, _)| footer.finished_at.as_deref());
    recorded.and_then(|time| time.parse().ok()).or_else(|| {
        let stamp = DateTime::strptime("%Y%m%d_%H%M%S", &log.name.stamp).ok()?;
        stamp.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}
