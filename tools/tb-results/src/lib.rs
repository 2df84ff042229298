//! `tb-results`: what the test run said.

pub mod cli;
mod contract;
mod decode;
pub mod json;
mod lines;
mod prefix;
pub mod pytest;
mod read;
pub mod report;
pub mod runner;

pub use read::read;

use std::ffi::OsString;
use tb_shared::term::{Code, Failure, Out, Result};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let mut out = Out::new(tb_shared::term::Color::Auto);
    let path = args.last().cloned().unwrap_or_default();
    let file = std::fs::File::open(&path).map_err(|e| Failure::cannot("open", e))?;
    let report = read(file, None, |_| {}).map_err(|e| Failure::cannot("read", e))?;
    let name = path.to_string_lossy();
    out.json(&json::Object::new(&name, &report, None))?;
    out.flush()?;
    Ok(Code::Ok)
}
