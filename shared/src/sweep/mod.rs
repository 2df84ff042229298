//! The sweep.
pub mod argv;
