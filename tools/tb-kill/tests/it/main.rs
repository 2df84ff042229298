//! What tb-kill stops, and what it never signals.

mod foreign;
mod owners;
mod refusals;
mod stops;
