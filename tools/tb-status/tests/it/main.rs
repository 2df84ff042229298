//! What tb-status says of jobs, and of files that are no jobs.

mod elsewhere;
mod foreign;
mod json;
mod list;
mod logs;
mod names;
mod owners;
mod pid_files;
mod progress;
mod terminal;
mod written;
