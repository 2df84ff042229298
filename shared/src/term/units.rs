//! Durations and sizes as people type and read them.

use jiff::{SignedDuration, SpanRelativeTo};
use std::time::Duration;

/// The longest duration, about a hundred years: beyond it nothing waits, and a sum with any clock still fits.
pub const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Parses `90`, `90s`, `1.5m`, `2h`, `1d`, `1h30m`: a bare number is seconds, a day is 24 hours. What is longer than
/// [`LONGEST`] is that.
///
/// # Errors
/// What is wrong with it, in words; negative and non-finite values are refused.
pub fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("'{text}' is no duration: write 90, 90s, 1.5m, 2h, 1d or 1h30m");
    let t = text.trim();
    if t.starts_with(['-', '+']) || t.is_empty() {
        return Err(wrong());
    }
    if t.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        let seconds: f64 = t.parse().map_err(|_| wrong())?;
        return Ok(Duration::try_from_secs_f64(seconds).map_or(LONGEST, |d| d.min(LONGEST)));
    }
    // ISO 8601 ("PT1H") and calendar units (months, years) are no durations of ours.
    if t.starts_with(['P', 'p']) || t.contains("mo") || t.contains('y') || t.contains('w') {
        return Err(wrong());
    }
    let span: jiff::Span = t.parse().map_err(|_| wrong())?;
    let exact: SignedDuration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(exact).map(|d| d.min(LONGEST)).map_err(|_| wrong())
}

/// Parses `64K`, `10M`, `2G` (powers of 1024) or a bare number of bytes.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let wrong = || format!("'{text}' is no size: write 4096, 64K, 10M or 2G");
    let t = text.trim();
    let (digits, shift) = match t.as_bytes().last() {
        Some(b'k' | b'K') => (&t[..t.len() - 1], 10),
        Some(b'm' | b'M') => (&t[..t.len() - 1], 20),
        Some(b'g' | b'G') => (&t[..t.len() - 1], 30),
        Some(b't' | b'T') => (&t[..t.len() - 1], 40),
        _ => (t, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// A duration for a person: `3s`, `2m`, `1h 5m`, `2d 3h`.
pub fn human_duration(d: Duration) -> String {
    let s = d.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3600 if s.is_multiple_of(60) || s >= 600 => format!("{}m", s / 60),
        60..3600 => format!("{}m {}s", s / 60, s % 60),
        3600..86_400 => format!("{}h {}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d {}h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_as_the_tools_page_lists_them() {
        let ms = |t: &str| parse_duration(t).map(|d| d.as_millis());
        assert_eq!(ms("90"), Ok(90_000));
        assert_eq!(ms("0"), Ok(0));
        assert_eq!(ms("0.25"), Ok(250));
        assert_eq!(ms("90s"), Ok(90_000));
        assert_eq!(ms("1.5m"), Ok(90_000));
        assert_eq!(ms("2h"), Ok(7_200_000));
        assert_eq!(ms("1d"), Ok(86_400_000));
        assert_eq!(ms("1h30m"), Ok(5_400_000));
        assert_eq!(ms("1h 30m"), Ok(5_400_000));
        assert_eq!(ms("250ms"), Ok(250));
    }

    #[test]
    fn what_is_longer_than_anybody_waits_is_the_longest() {
        for long in ["1000000000000", "9999999999999999999999", &"9".repeat(400), "99999d"] {
            assert_eq!(parse_duration(long), Ok(LONGEST), "{long}");
        }
        assert!(std::time::Instant::now().checked_add(LONGEST * 2).is_some());
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for bad in [
            "", " ", "-1", "+1", "-1s", "abc", "1x", "1mo", "1y", "2w", "PT1H", "nan", "inf", "1e3",
            "1h-30m", ".",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64K"), Ok(65_536));
        assert_eq!(parse_size("10M"), Ok(10 << 20));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for bad in ["", "K", "-1", "1.5M", "10MB", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn durations_for_people() {
        let h = |s| human_duration(Duration::from_secs(s));
        assert_eq!(h(3), "3s");
        assert_eq!(h(120), "2m");
        assert_eq!(h(125), "2m 5s");
        assert_eq!(h(3900), "1h 5m");
        assert_eq!(h(90_000), "1d 1h");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,20}") {
            let _ = parse_duration(&text);
            let _ = parse_size(&text);
        }

        #[test]
        fn whole_seconds_come_back(s in 0u64..10_000_000) {
            prop_assert_eq!(parse_duration(&s.to_string()), Ok(Duration::from_secs(s)));
            prop_assert_eq!(parse_duration(&format!("{s}s")), Ok(Duration::from_secs(s)));
        }
    }
}
