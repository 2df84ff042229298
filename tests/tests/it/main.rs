//! What crosses the tools, and the helpers that all their tests rest on.

mod detachment;
mod fixture;
mod foreign;
mod house;
mod identity;
mod job;
mod make;
mod nesting;
mod readme;
mod scene;
mod stops;
mod supervision;
mod verdicts;
mod waiting;
