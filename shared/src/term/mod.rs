//! What every tool shares at its edges: exit codes, messages, units, output.

mod code;
mod failure;
mod main;
mod out;
mod units;
mod visible;

pub use code::{Code, worst};
pub use failure::{Failure, Result, say};
pub use main::{main, parse};
pub use out::{Color, Out};
pub use units::{Span, human_duration, parse_duration, parse_size, seconds_or_duration};
pub use visible::visible;
