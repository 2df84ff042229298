//! The contract's own lines inside a job's log. They are not output of the runner, and a log that has both a
//! header and that job's footer tells how the job ended.

use crate::report::JobFacts;
use serde_json::Value;

/// The lines met so far.
#[derive(Default)]
pub(crate) struct Lines {
    header: Option<Header>,
    footer: Option<JobFacts>,
    marker: Option<bool>,
    seen: bool,
}

struct Header {
    job: String,
    command: Option<Vec<String>>,
}

impl Lines {
    /// Takes the line if it is one of the contract's.
    pub(crate) fn line(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        let Some(body) = line.strip_prefix(b"=== GATE").and_then(|l| l.strip_suffix(b" ===")) else {
            return false;
        };
        match body {
            b": PASSED" => self.marker = Some(true),
            b": FAILED" => self.marker = Some(false),
            _ => {
                let Some((word, rest)) = body.strip_prefix(b" ").and_then(split) else { return false };
                match word {
                    b"LAUNCH" if !self.seen => self.header = header(rest),
                    b"RESULT" => self.result(rest),
                    b"LAUNCH" | b"PHASE" | b"STOPPING" | b"DROPPED" | b"HOOK" | b"COLLECTED" => {}
                    _ => return false,
                }
            }
        }
        self.seen = true;
        true
    }

    /// What was run, by the header.
    pub(crate) fn command(&self) -> Option<&[String]> {
        self.header.as_ref()?.command.as_deref()
    }

    /// The footer with the header's job id counts; another job's fools nobody.
    fn result(&mut self, json: &[u8]) {
        let Some(value) = object(json) else { return };
        let Some(header) = &self.header else { return };
        if value["job"].as_str() != Some(&header.job) {
            return;
        }
        self.footer = Some(JobFacts {
            running: false,
            exit_code: value["exit_code"].as_i64().and_then(|n| i32::try_from(n).ok()),
            signal: value["signal"].as_str().map(str::to_owned),
            outcome: value["outcome"].as_str().map(str::to_owned),
            command: header.command.clone(),
        });
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

fn split(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memmem::find(body, b": ")?;
    Some((&body[..at], &body[at + 2..]))
}

fn object(json: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Value>(json).ok().filter(Value::is_object)
}

fn header(json: &[u8]) -> Option<Header> {
    let value = object(json)?;
    let command =
        value["command"].as_array().map(|c| c.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    Some(Header { job: value["job"].as_str()?.to_owned(), command })
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

    const LAUNCH: &str = r#"=== GATE LAUNCH: {"v":1,"job":"a1","command":["pytest","-q"]} ==="#;

    #[test]
    fn the_footer_of_the_headers_job_counts() {
        let other =
            r#"=== GATE RESULT: {"v":1,"job":"b2","exit_code":0,"signal":null,"outcome":"passed"} ==="#;
        let own = r#"=== GATE RESULT: {"v":1,"job":"a1","exit_code":1,"signal":null,"outcome":"failed"} ==="#;
        let facts = facts(&[LAUNCH, "=== GATE PHASE: test ===", own, "=== GATE: FAILED ===", other]).unwrap();
        assert_eq!(facts.exit_code, Some(1));
        assert_eq!(facts.command.as_deref(), Some(&["pytest".to_owned(), "-q".to_owned()][..]));
        assert_eq!(super::tests::facts(&[LAUNCH, other]), None);
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
