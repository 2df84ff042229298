//! What `tb-log` does, run as users run it. Logs are written by hand with the contract's own types; a log whose lock
//! the test holds is a running job's.

mod clean;
mod cursors;
mod drops;
mod filters;
mod follow;
mod huge;
mod json;
mod plain;
mod property;
mod readers;
mod scene;
mod terminal;
mod usual;
mod watch;
