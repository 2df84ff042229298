//! Two runs compared.

use crate::report::{Failing, Report};
use std::collections::BTreeMap;
use tb_shared::term::{Code, Failure, Result};

/// How what fails now compares with what failed before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff<'a> {
    /// Failing now, not before.
    pub(crate) newly: Vec<&'a str>,
    /// Failing before, not now. Where the newer run did not reach its end, they may just not have been run.
    pub(crate) fixed: Vec<&'a str>,
    /// Failing in both, in the same way.
    pub(crate) still: Vec<&'a str>,
    /// Failing in both, but with another class or in another way.
    pub(crate) differently: Vec<(&'a str, String, String)>,
}

/// Compares two runs.
///
/// # Errors
/// When one of them does not name what failed.
pub(crate) fn diff<'a>(before: &'a Report, now: &'a Report) -> Result<Diff<'a>> {
    let (old, new) = (index(before, "the run before")?, index(now, "the log")?);
    let mut out = Diff::default();
    for (id, how) in &new {
        match old.get(id) {
            None => out.newly.push(id),
            Some(was) if was == how => out.still.push(id),
            Some(was) => out.differently.push((id, was.clone(), how.clone())),
        }
    }
    out.fixed = old.keys().filter(|id| !new.contains_key(*id)).copied().collect();
    Ok(out)
}

fn index<'a>(report: &'a Report, which: &str) -> Result<BTreeMap<&'a str, String>> {
    let failing = report.failing().ok_or_else(|| {
        Failure::new(Code::NoVerdict, format!("cannot compare runs: {which} does not name what failed"))
    })?;
    Ok(failing.into_iter().map(|f| (f.id.as_str(), how(f))).collect())
}

fn how(f: &Failing) -> String {
    f.error_class.clone().unwrap_or_else(|| crate::json::outcome(f.outcome).to_owned())
}
