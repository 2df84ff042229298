//! How long a job usually takes, by its own earlier runs.

use crate::contract::{Job, LogFile, Outcome, Reason, RunDir, read_log};
use crate::term::human_duration;
use std::time::Duration;

/// From how many runs the median is taken, at most.
const RUNS: usize = 9;
/// How many earlier logs are looked at for them: most of them may have no verdict.
const LOGS: usize = 30;
/// From how many times the usual on a run is said to be late.
const LATE: f64 = 2.0;

/// What is usual for a job, in seconds: the median of its name's last runs before this one that ended by themselves,
/// passed or failed. Their logs are read for it, so this is asked for where it will be shown.
pub fn usual_seconds(dir: &RunDir, job: &Job) -> Option<f64> {
    let this = job.log.as_ref().map(|l| &l.name)?;
    let earlier = job.logs.iter().filter(|l| l.order() < this.order()).take(LOGS);
    let took = |log: LogFile| {
        let same = log.header.is_some_and(|header| header.name == job.name);
        let (footer, _) = log.end.footer?;
        let by_itself = footer.reason == Some(Reason::Exit) && footer.signal.is_none();
        let finished = matches!(footer.outcome, Outcome::Passed | Outcome::Failed);
        (by_itself && finished && same).then_some(footer.elapsed_seconds?)
    };
    // An earlier log that cannot be read tells nothing about this job.
    median(earlier.filter_map(|name| took(read_log(dir, name).ok()??)).take(RUNS).collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

/// What is to be expected of a running job: `about 2m left`, `usually 85s`, `2.3x its usual 85s`.
pub fn outlook(elapsed: f64, usual: f64) -> String {
    let left = usual - elapsed;
    if left > 0.0 {
        let minutes = (left / 60.0).round() * 60.0;
        let about = if left < 90.0 { left.ceil() } else { minutes };
        return format!(
            "about {} left",
            human_duration(Duration::try_from_secs_f64(about).unwrap_or_default())
        );
    }
    let seconds = if usual < 10.0 {
        format!("{usual:.1}s")
    } else if usual < 120.0 {
        format!("{usual:.0}s")
    } else {
        human_duration(Duration::try_from_secs_f64(usual).unwrap_or_default())
    };
    if usual > 0.0 && elapsed >= LATE * usual {
        return format!("{:.1}x its usual {seconds}", elapsed / usual);
    }
    format!("usually {seconds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p26_the_median_of_the_last_runs() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![5.0]), Some(5.0));
        assert_eq!(median(vec![9.0, 1.0]), Some(5.0));
        assert_eq!(median(vec![100.0, 1.0, 3.0]), Some(3.0));
    }

    #[test]
    fn p26_what_is_left_and_from_twice_the_usual_how_late() {
        assert_eq!(outlook(10.0, 130.0), "about 2m left");
        assert_eq!(outlook(10.0, 85.0), "about 1m 15s left");
        assert_eq!(outlook(84.5, 85.0), "about 1s left");
        assert_eq!(outlook(100.0, 85.0), "usually 85s");
        assert_eq!(outlook(195.5, 85.0), "2.3x its usual 85s");
        assert_eq!(outlook(1.0, 0.4), "2.5x its usual 0.4s");
        assert_eq!(outlook(1.0, 0.0), "usually 0.0s");
        assert_eq!(outlook(3000.0, 1200.0), "2.5x its usual 20m");
    }
}
