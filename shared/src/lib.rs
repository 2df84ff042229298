//! The small crate that the tb tools share: the contract of the two files, who a process is, how a job is
//! supervised and stopped, and what the tools say to people and programs.

pub mod contract;
pub mod log;
pub(crate) mod poll;
pub mod process;
pub mod progress;
pub mod pytest;
pub mod report;
pub mod supervise;
pub mod sweep;
pub mod sys;
pub mod term;
pub mod usual;
pub mod wait;
