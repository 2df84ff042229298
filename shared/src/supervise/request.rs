//! A request to stop, as the value of a queued signal: signal << 24 | grace in units of 10 ms.

use std::time::Duration;

const GRACE_BITS: u32 = 24;
const UNIT: Duration = Duration::from_millis(10);

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The first signal, 1 to 64.
    pub signal: i32,
    /// Between it and KILL; at most 46 hours, in units of 10 ms, rounded up.
    pub grace: Duration,
}

impl Request {
    /// The value that is queued.
    pub fn value(self) -> i32 {
        let units = self.grace.as_nanos().div_ceil(UNIT.as_nanos()).min((1 << GRACE_BITS) - 1);
        (self.signal & 0x7f) << GRACE_BITS | i32::try_from(units).unwrap_or(0)
    }

    /// What a value asks for; `None` where the signal is none.
    pub fn of_value(value: i32) -> Option<Request> {
        let signal = value >> GRACE_BITS;
        let units = u32::try_from(value & ((1 << GRACE_BITS) - 1)).unwrap_or(0);
        (1..=64).contains(&signal).then(|| Request { signal, grace: UNIT * units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_signal_and_grace() {
        let r = Request { signal: 15, grace: Duration::from_secs(5) };
        assert_eq!(r.value(), 15 << 24 | 500);
        assert_eq!(Request::of_value(0), None);
        assert_eq!(Request::of_value(-1), None);
        assert_eq!(Request { signal: 9, grace: Duration::from_nanos(1) }.value(), 9 << 24 | 1);
    }

    proptest! {
        #[test]
        fn a_request_comes_back(signal in 1i32..=64, units in 0u64..(1 << 24)) {
            let r = Request { signal, grace: Duration::from_millis(units * 10) };
            prop_assert_eq!(Request::of_value(r.value()), Some(r));
        }
    }
}
