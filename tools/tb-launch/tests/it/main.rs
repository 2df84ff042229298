//! What tb-launch does with what it is given, and what it must refuse without a trace.

mod arguments;
mod commands;
mod disk;
mod environment;
mod limits;
mod names;
mod owners;
mod pid_files;
mod places;
mod pytest;
mod running;
mod together;
