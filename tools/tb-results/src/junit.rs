//! The report as a JUnit XML document.
//!
//! Passed tests are counted in the attributes but have no element of their own: most logs do not name them.

use crate::report::{Failing, Outcome, Report, Session};
use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;
use tb_shared::term::{Failure, Result};

/// The document.
///
/// # Errors
/// When it cannot be written down.
pub(crate) fn document(reports: &[(String, Report)]) -> Result<String> {
    let mut document = Document::new("tb-results");
    for (name, report) in reports {
        for session in &report.sessions {
            document.add_test_suite(suite(name, session));
        }
    }
    document.tests = document.test_suites.iter().map(|s| s.tests).sum();
    document.failures = document.test_suites.iter().map(|s| s.failures).sum();
    document.errors = document.test_suites.iter().map(|s| s.errors).sum();
    document.to_string().map_err(|e| Failure::cannot("write JUnit XML", e))
}

fn suite(name: &str, session: &Session) -> TestSuite {
    let mut suite = TestSuite::new(name);
    for failing in session.failing.iter().flatten() {
        suite.add_test_case(case(failing));
    }
    for id in &session.unfinished {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("unfinished").set_message("it was running when the run ended");
        suite.add_test_case(TestCase::new(split(id).1, status).set_classname(split(id).0).clone());
    }
    let counts = &session.counts;
    let size = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let all = [counts.passed, counts.failed, counts.skipped, counts.errors, counts.xfailed, counts.xpassed];
    suite.tests = suite.tests.max(all.into_iter().map(size).sum());
    suite.failures = suite.failures.max(size(counts.failed));
    suite.errors = suite.errors.max(size(counts.errors));
    if let Some(seconds) = session.duration {
        suite.time = Duration::try_from_secs_f64(seconds).ok();
    }
    if !session.faults.is_empty() {
        suite.set_system_err(session.faults.join("\n"));
    }
    suite
}

fn case(failing: &Failing) -> TestCase {
    let kind = match failing.outcome {
        Outcome::Failed | Outcome::TimedOut => NonSuccessKind::Failure,
        Outcome::Error | Outcome::Crashed => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(failing.error_class.as_deref().unwrap_or(crate::json::outcome(failing.outcome)));
    status.set_message(failing.message.as_deref().unwrap_or_default());
    let (class, name) = split(&failing.id);
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}

/// Class and name as pytest's own JUnit file has them: `tests/a.py::T::t` is `t` of `tests.a.T`.
fn split(id: &str) -> (String, String) {
    let params = id.find('[').unwrap_or(id.len());
    match id[..params].rfind("::") {
        Some(at) => (
            id[..at]
                .replace(".py::", "::")
                .replace("::", ".")
                .replace('/', ".")
                .trim_end_matches(".py")
                .to_owned(),
            id[at + 2..].to_owned(),
        ),
        None => (String::new(), id.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn classes_are_named_as_pytest_names_them() {
        let split = |id| {
            let (class, name) = split(id);
            format!("{class} {name}")
        };
        assert_eq!(split("tests/a.py::t"), "tests.a t");
        assert_eq!(split("tests/a.py::T::t[x::y]"), "tests.a.T t[x::y]");
        assert_eq!(split("tests/a.py"), " tests/a.py");
    }
}
