//! Reading logs: from the end, whole lines.

mod tail;

pub use tail::{Tail, tail};
