//! The job's environment: the caller's, without make's jobserver, with what was asked for.

use crate::cli::Cli;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use tb_shared::term::{Failure, Result};

/// The variables through which make hands its jobserver on.
const MAKE: [&str; 3] = ["MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS"];

/// The environment of the job.
pub(crate) fn of(cli: &Cli) -> Result<BTreeMap<OsString, OsString>> {
    let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    if !cli.jobserver {
        for name in MAKE {
            if let Some(value) = all.get_mut(OsStr::new(name)) {
                *value = OsString::from_vec(without_jobserver(value.as_bytes()));
            }
        }
    }
    if cli.testfile.is_some() {
        all.insert("PYTHONUNBUFFERED".into(), "1".into());
    }
    if cli.cwd.is_some()
        && let Ok(cwd) = std::env::current_dir()
    {
        all.insert("PWD".into(), cwd.into());
    }
    for pair in &cli.env {
        let bytes = pair.as_bytes();
        match bytes.iter().position(|&b| b == b'=') {
            Some(at) if at > 0 => {
                all.insert(
                    OsStr::from_bytes(&bytes[..at]).to_owned(),
                    OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
                );
            }
            _ => {
                // The value may be a secret: it is not repeated.
                return Err(Failure::usage("use --env", "it must be NAME=VALUE"));
            }
        }
    }
    Ok(all)
}

/// MAKEFLAGS without `-j` and `--jobserver-*`: a job that outlives its recipe must not hold make's tokens, and
/// must not be told of descriptors that it does not have.
fn without_jobserver(flags: &[u8]) -> Vec<u8> {
    // What follows ` -- ` are variable definitions, which are no options.
    let (options, rest) = match flags.windows(4).position(|w| w == b" -- ") {
        Some(at) => flags.split_at(at),
        None => (flags, &b""[..]),
    };
    let kept: Vec<&[u8]> = options
        .split(|&b| b == b' ')
        .filter(|w| !w.starts_with(b"-j") && !w.starts_with(b"--jobserver-") && !w.starts_with(b"--jobs"))
        .collect();
    [&kept.join(&b' '), rest].concat()
}

/// The descriptors that MAKEFLAGS names (`--jobserver-auth=R,W`); a named pipe needs none.
pub(crate) fn jobserver_fds() -> Vec<RawFd> {
    let flags = std::env::var_os("MAKEFLAGS").unwrap_or_default();
    fds_of(&flags.to_string_lossy())
}

fn fds_of(flags: &str) -> Vec<RawFd> {
    let value = flags.split(' ').rev().find_map(|word| {
        word.strip_prefix("--jobserver-auth=").or_else(|| word.strip_prefix("--jobserver-fds="))
    });
    let numbers = value.into_iter().flat_map(|v| v.split(','));
    numbers.filter_map(|n| n.parse().ok()).filter(|&fd| fd > 2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i58_the_jobserver_does_not_pass_and_other_flags_do() {
        let f = |t: &str| String::from_utf8(without_jobserver(t.as_bytes())).unwrap();
        assert_eq!(f(" -j4 --jobserver-auth=3,4"), "");
        assert_eq!(f("ks -j --jobserver-fds=3,4 --no-print-directory"), "ks --no-print-directory");
        assert_eq!(f("w -j2 --jobserver-auth=fifo:/tmp/x -- A=-j4 B=c"), "w -- A=-j4 B=c");
    }

    #[test]
    fn the_last_jobserver_counts_and_a_named_pipe_needs_no_descriptor() {
        assert_eq!(fds_of(" -j4 --jobserver-auth=3,4"), [3, 4]);
        assert_eq!(fds_of("--jobserver-fds=5,6 --jobserver-auth=7,8"), [7, 8]);
        assert!(fds_of("--jobserver-auth=fifo:/tmp/GMfifo1").is_empty());
        assert!(fds_of("-k").is_empty());
    }
}
