//! What tb-wait waits for, what it refuses to wait for, and what it says.

mod ends;
mod refusals;
mod said;
