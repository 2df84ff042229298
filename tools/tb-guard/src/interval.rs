//! Durations as timeout(1) reads them: C's strtod and one optional suffix.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use tb_shared::sys::strtod;

/// A time so long that it never comes: what does not fit is taken for this.
const NEVER: Duration = Duration::from_secs(u64::MAX / 4);

/// Reads `.5`, `1e2`, `0x10`, `inf`, `2m`, `1d`: never less than what is meant, so that nobody waits less than
/// asked. A value that underflows is the shortest time there is.
///
/// # Errors
/// `invalid time interval '…'`.
pub fn parse(text: &OsStr) -> Result<Duration, String> {
    let wrong = || format!("invalid time interval '{}'", text.to_string_lossy());
    let bytes = text.as_bytes();
    let number = strtod(&CString::new(bytes).map_err(|_| wrong())?);
    let unit = match bytes.get(number.read..) {
        Some(b"" | b"s") => 1.0,
        Some(b"m") => 60.0,
        Some(b"h") => 3600.0,
        Some(b"d") => 86_400.0,
        _ => return Err(wrong()),
    };
    let negative = number.value < 0.0 || (number.out_of_range && number.value.is_sign_negative());
    if number.read == 0 || number.value.is_nan() || negative {
        return Err(wrong());
    }
    if number.value == 0.0 && !number.out_of_range {
        return Ok(Duration::ZERO);
    }
    Ok(rounded_up(number.value * unit))
}

/// Seconds as a duration, rounded up to a nanosecond.
fn rounded_up(seconds: f64) -> Duration {
    let whole = seconds.floor();
    let nanos = ((seconds - whole) * 1e9).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts of floats saturate, and it is not negative"
    )]
    let duration = Duration::from_secs(whole as u64).checked_add(Duration::from_nanos(nanos as u64));
    duration.unwrap_or(NEVER).clamp(Duration::from_nanos(1), NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn p(text: &str) -> Result<Duration, String> {
        parse(OsStr::new(text))
    }

    #[test]
    fn what_strtod_reads_is_a_duration() {
        let s = Duration::from_secs_f64;
        for (text, want) in [
            ("1", s(1.0)),
            (".5", s(0.5)),
            ("5.", s(5.0)),
            ("1e2", s(100.0)),
            ("0x10", s(16.0)),
            ("+1", s(1.0)),
            (" 1", s(1.0)),
            ("2m", s(120.0)),
            ("1.5h", s(5400.0)),
            ("1d", s(86_400.0)),
            ("0", s(0.0)),
            ("-0", s(0.0)),
            ("0x1p0d", s(86_400.0)),
        ] {
            assert_eq!(p(text), Ok(want), "{text:?}");
        }
        for never in ["inf", "infinity", "infd", "1e400", "99999999999999999999d", "18446744073709551616"] {
            assert_eq!(p(never), Ok(NEVER), "{never}");
        }
    }

    #[test]
    fn what_underflows_is_the_shortest_time_there_is() {
        for tiny in ["1e-10000", "1e-5000", "1e-12"] {
            assert_eq!(p(tiny), Ok(Duration::from_nanos(1)), "{tiny}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for bad in ["", "1 ", "1S", "1ms", "42D", "nan", "1_0", "1,5", "-0.1", "-1e-10000", "-1", "x", "1sm"]
        {
            assert_eq!(p(bad), Err(format!("invalid time interval '{bad}'")));
        }
    }

    proptest! {
        #[test]
        fn nobody_waits_less_than_asked(seconds in 0.0f64..1e9) {
            let got = p(&format!("{seconds:e}")).unwrap();
            prop_assert!(got.as_secs_f64() >= seconds || (seconds - got.as_secs_f64()) < seconds * 1e-15);
            prop_assert!(got.as_secs_f64() <= seconds + 2e-9 + seconds * 1e-15);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            let _ = p(&text);
        }
    }
}
