//! What every tool shares at its edges: exit codes, messages, units, output.

mod code;
mod common;
mod failure;
mod main;
mod out;
mod signals;
mod units;
mod visible;

pub use code::{Code, worst};
pub use common::{Common, Context, Names, heartbeat, kill_grace, owner, quoted, wait_timeout};
pub use failure::{Failure, Result, cause, say, say_plain, say_within};
pub use main::{main, parse};
pub use out::{Color, Out};
pub use signals::parse_signal;
pub use units::{LONGEST, human_duration, parse_duration, parse_size};
pub use visible::visible;
