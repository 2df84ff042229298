//! The small crate that the tb tools share: the contract of the two files, who a process is, how a job is
//! supervised and stopped, and what the tools say to people and programs.

pub mod pytest;
pub mod sys;
pub mod term;
