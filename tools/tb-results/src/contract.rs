//! The contract's own lines inside a job's log. They are not output of the runner, and a log that has both a
//! header and that job's footer tells how the job ended.

use crate::report::JobFacts;
use tb_shared::contract::{Footer, Header, Line, TerminalMarker, line_kind};

/// The lines met so far.
#[derive(Default)]
pub(crate) struct Lines {
    header: Option<Header>,
    footer: Option<JobFacts>,
    marker: Option<bool>,
    seen: bool,
}

impl Lines {
    /// Takes the line if it is one of the contract's.
    pub(crate) fn line(&mut self, line: &[u8]) -> bool {
        match line_kind(line.trim_ascii_end()) {
            Line::Output => return false,
            Line::Marker(marker) => self.marker = Some(marker == TerminalMarker::Pass),
            Line::Launch(json) if !self.seen => self.header = serde_json::from_slice(json).ok(),
            Line::Result(json) => self.result(json),
            Line::Launch(_)
            | Line::Phase(_)
            | Line::Stopping(_)
            | Line::Hook(_)
            | Line::Collected(_)
            | Line::Dropped(_) => {}
        }
        self.seen = true;
        true
    }

    /// What was run, by the header.
    pub(crate) fn command(&self) -> Option<&[String]> {
        self.header.as_ref().map(|h| h.command.as_slice())
    }

    /// The footer with the header's job id counts; another job's fools nobody.
    fn result(&mut self, json: &[u8]) {
        let Some(header) = &self.header else { return };
        let Ok(footer) = serde_json::from_slice::<Footer>(json) else { return };
        if footer.job == header.job {
            self.footer = Some(JobFacts::of_footer(&footer));
        }
    }

    /// What the lines tell of the job. `understood`: a runner's output was found, and it says more than a marker,
    /// which any test may print.
    pub(crate) fn finish(self, understood: bool) -> Option<JobFacts> {
        match (self.footer, self.header, self.marker) {
            (Some(footer), ..) => Some(footer),
            (None, None, Some(passed)) if !understood => Some(JobFacts {
                outcome: Some(if passed { "passed" } else { "failed" }.to_owned()),
                ..JobFacts::default()
            }),
            // A header alone: running or crashed, and the log does not know which.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &[&str]) -> Option<JobFacts> {
        let mut contract = Lines::default();
        for line in lines {
            assert!(contract.line(line.as_bytes()), "{line}");
        }
        contract.finish(false)
    }

    const LAUNCH: &str =
        r#"=== GATE LAUNCH: {"v":1,"job":"a1","name":"t","pid":7,"command":["pytest","-q"]} ==="#;

    fn footer(job: &str, exit_code: i32, outcome: &str) -> String {
        let header = LAUNCH.trim_start_matches("=== GATE LAUNCH: ").trim_end_matches(" ===");
        format!(
            r#"=== GATE RESULT: {{"v":1,"job":"{job}","exit_code":{exit_code},"signal":null,"reason":"exit","outcome":"{outcome}","header":{header}}} ==="#
        )
    }

    #[test]
    fn the_footer_of_the_headers_job_counts() {
        let (other, own) = (footer("b2", 0, "passed"), footer("a1", 1, "failed"));
        let facts =
            facts(&[LAUNCH, "=== GATE PHASE: test ===", &own, "=== GATE: FAILED ===", &other]).unwrap();
        assert_eq!(facts.exit_code, Some(1));
        assert_eq!(facts.command.as_deref(), Some(&["pytest".to_owned(), "-q".to_owned()][..]));
        assert_eq!(super::tests::facts(&[LAUNCH, &other]), None);
    }

    #[test]
    fn a_marker_counts_only_where_there_is_no_header() {
        assert_eq!(
            facts(&["=== GATE: FAILED ===", "=== GATE: PASSED ==="]).and_then(|f| f.passed()),
            Some(true)
        );
        assert_eq!(facts(&[LAUNCH, "=== GATE: PASSED ==="]), None);
    }

    #[test]
    fn what_is_no_line_of_the_contract_is_output() {
        let mut contract = Lines::default();
        for line in
            ["=== GATE", "=== GATE ===", "=== GATEWAY: up ===", "=== GATE PHASE: test", "=== GATE FOO: x ==="]
        {
            assert!(!contract.line(line.as_bytes()), "{line}");
        }
    }
}
