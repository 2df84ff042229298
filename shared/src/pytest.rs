//! The summary line and the progress grammar of pytest's terminal output.

/// What the last summary line in these bytes says: passed or not; `None` where there is none.
pub fn verdict(_tail: &[u8]) -> Option<bool> {
    None
}
