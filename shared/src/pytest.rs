//! The summary line and the progress grammar of pytest's terminal output.
