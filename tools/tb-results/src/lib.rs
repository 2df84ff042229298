//! `tb-results`: what the test run said.

use std::ffi::OsString;
use tb_shared::term::{Code, Result};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(_args: Vec<OsString>) -> Result<Code> {
    Ok(Code::Ok)
}
