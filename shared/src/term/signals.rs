//! Signals as people name them.

use nix::sys::signal::Signal;

/// A signal by name (`TERM`, `SIGTERM`, any case, `RTMIN+3`) or number, 1 to 64.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_signal(text: &str) -> Result<i32, String> {
    let wrong = || format!("'{text}' is no signal: write TERM, SIGTERM or a number from 1 to 64");
    let upper = text.trim().to_ascii_uppercase();
    if let Ok(number) = upper.parse::<i32>() {
        return (1..=64).contains(&number).then_some(number).ok_or_else(wrong);
    }
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let real_time = |rest: &str, base: i32, sign: i32| match rest {
        "" => Some(base),
        _ => rest.get(1..)?.parse::<i32>().ok().map(|n| base + sign * n),
    };
    let number = if let Some(rest) = name.strip_prefix("RTMIN").filter(|r| r.is_empty() || r.starts_with('+'))
    {
        real_time(rest, 34, 1)
    } else if let Some(rest) = name.strip_prefix("RTMAX").filter(|r| r.is_empty() || r.starts_with('-')) {
        real_time(rest, 64, -1)
    } else {
        format!("SIG{name}").parse::<Signal>().ok().map(|s| s as i32)
    };
    number.filter(|n| (1..=64).contains(n)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse_signal;

    #[test]
    fn signals_by_name_and_number() {
        assert_eq!(parse_signal("TERM"), Ok(15));
        assert_eq!(parse_signal("sigterm"), Ok(15));
        assert_eq!(parse_signal("9"), Ok(9));
        assert_eq!(parse_signal("RTMIN"), Ok(34));
        assert_eq!(parse_signal("SIGRTMIN+6"), Ok(40));
        assert_eq!(parse_signal("RTMAX-1"), Ok(63));
        for bad in ["", "0", "65", "-1", "NOPE", "RTMIN-1", "RTMAX+1", "RTMIN+40"] {
            assert!(parse_signal(bad).is_err(), "{bad:?}");
        }
    }
}
