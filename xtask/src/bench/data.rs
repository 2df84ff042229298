//! Logs as the tools write them and as pytest fills them, the same in every run.

use crate::{Result, doing, tree};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The name of the job with the long log.
pub(crate) const NAME: &str = "tests/unit/test_foo.py";

/// Numbers that look random and are the same each time (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Outcomes in a thousand, as a large suite has them, and the words of the summary.
const OUTCOMES: &[(&str, &str, u64)] = &[
    ("FAILED", "failed", 10),
    ("PASSED", "passed", 945),
    ("SKIPPED", "skipped", 30),
    ("XFAIL", "xfailed", 10),
    ("XPASS", "xpassed", 2),
    ("ERROR", "errors", 3),
];

/// A `pytest -v` run as text.
struct Suite {
    numbers: Numbers,
    counts: [u64; 6],
    failing: Vec<String>,
    module: u64,
}

impl Suite {
    fn new() -> Suite {
        Suite { numbers: Numbers(5), counts: [0; 6], failing: Vec::new(), module: 0 }
    }

    fn head() -> &'static str {
        "============================= test session starts ==============================\n\
         platform linux -- Python 3.12.3, pytest-9.2.0, pluggy-1.7.0 -- /home/user/project/.venv/bin/python\n\
         cachedir: .pytest_cache\nrootdir: /home/user/project\ncollecting ... collected 1500000 items\n\n"
    }

    /// The lines of one module of 2,000 tests.
    fn module(&mut self, to: &mut String) {
        self.module += 1;
        let i = self.module;
        for k in 0..2000_u64 {
            let mut at = self.numbers.below(1000);
            let which = OUTCOMES.iter().position(|(_, _, share)| {
                let here = at < *share;
                at = at.saturating_sub(*share);
                here
            });
            let which = which.unwrap_or(1);
            self.counts[which] += 1;
            let class = if k % 2 == 0 { "TestOther".to_owned() } else { format!("TestThing{}", i % 91) };
            let param = if k % 3 == 0 {
                format!("[case-{}-{}]", k % 17, "b".repeat((k % 9) as usize))
            } else {
                String::new()
            };
            let case = if k % 5 == 0 { "empty" } else { "a_PASSED_b" };
            let id = format!(
                "tests/unit/pkg_{:02}/test_module_{i:05}.py::{class}::test_behaviour_{k:04}_when_{case}{param}",
                i % 37
            );
            let (word, reason) = (OUTCOMES[which].0, if which == 2 { " (no database)" } else { "" });
            let line = format!("{id} {word}{reason}");
            // Nothing that is written into a String can fail.
            let _ = writeln!(to, "{line:<100} [{:3}%]", k * 100 / 2000);
            if k % 50 == 7 {
                let _ = writeln!(
                    to,
                    "INFO     app.worker:worker.py:{k} handled request id={:x} status=200",
                    self.numbers.below(1 << 31)
                );
            }
            if which == 0 {
                self.failing.push(id);
            }
        }
    }

    fn tail(&self) -> String {
        let mut text =
            "\n=================================== FAILURES ===================================\n".to_owned();
        for id in self.failing.iter().take(300) {
            let _ = writeln!(
                text,
                "_____ {id} _____\n\n    def test(self):\n>       assert compute(42) == 43\nE       assert 42 == 43\n\ntests/unit/test.py:7: AssertionError"
            );
        }
        text += "=========================== short test summary info ============================\n";
        for id in &self.failing {
            let _ = writeln!(text, "FAILED {id} - AssertionError: assert 42 == 43");
        }
        let counts: Vec<_> =
            OUTCOMES.iter().zip(self.counts).map(|((_, word, _), n)| format!("{n} {word}")).collect();
        let _ = writeln!(text, "========= {} in 1234.56s (0:20:34) =========", counts.join(", "));
        text
    }

    /// What tb-results must say of it.
    fn truth(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.counts[1], self.counts[0], self.counts[2])
    }

    /// Writes modules until there are about `size` bytes.
    fn write(&mut self, to: &mut impl Write, size: u64) -> std::io::Result<()> {
        to.write_all(Suite::head().as_bytes())?;
        let (mut done, mut text) = (0, String::new());
        while done < size {
            text.clear();
            self.module(&mut text);
            to.write_all(text.as_bytes())?;
            done += text.len() as u64;
        }
        to.write_all(self.tail().as_bytes())
    }
}

/// A plain pytest log of about `size` bytes, and what is to be said of it.
pub(crate) fn pytest_log(dir: &Path, size: u64) -> Result<(PathBuf, String)> {
    let (log, truth) = (dir.join("plain.log"), dir.join("truth"));
    if let Ok(truth) = fs::read_to_string(&truth) {
        return Ok((log, truth));
    }
    tree::make_dir(dir)?;
    let mut suite = Suite::new();
    let written = create(&log, |to| suite.write(to, size));
    doing(format!("write {}", log.display()), written)?;
    // Last: a log that was left half written has no truth beside it.
    doing(format!("write {}", truth.display()), fs::write(&truth, suite.truth()))?;
    Ok((log, suite.truth()))
}

/// A run directory with one finished job, its log of about `size` bytes.
pub(crate) fn one(dir: &Path, size: u64) -> Result<PathBuf> {
    let log = dir.join("test-tests_unit_test_foo_py-20260101_000000.log");
    if fs::metadata(&log).is_ok_and(|m| m.len() >= size) {
        return Ok(log);
    }
    tree::make_dir(dir)?;
    let written = create(&log, |to| {
        let head = header(NAME, "2026-01-01T00:00:00Z");
        writeln!(to, "=== GATE LAUNCH: {head} ===\n=== GATE PHASE: test ===")?;
        Suite::new().write(to, size)?;
        to.write_all(footer(&head, "2026-01-01T00:20:34Z", true).as_bytes())
    });
    doing(format!("write {}", log.display()), written)?;
    Ok(log)
}

/// A run directory with finished jobs, one in ten failed, their logs of about 20 KB.
pub(crate) fn many(dir: &Path, count: u32) -> Result {
    tree::remove_dir(dir)?;
    tree::make_dir(dir)?;
    let mut body = String::new();
    Suite::new().module(&mut body);
    let body = &body[..body[..20 << 10].rfind('\n').map_or(0, |end| end + 1)];
    for i in 0..count {
        let (hour, minute) = (i / 60 % 24, i % 60);
        let name = format!("tests/unit/test_{i:05}.py");
        let head = header(&name, &format!("2026-01-01T{hour:02}:{minute:02}:00Z"));
        let tail = footer(&head, &format!("2026-01-01T{hour:02}:{minute:02}:45Z"), i % 10 != 3);
        let log = dir.join(format!("test-tests_unit_test_{i:05}_py-20260101_{hour:02}{minute:02}00.log"));
        let text = format!("=== GATE LAUNCH: {head} ===\n{body}{tail}");
        doing(format!("write {}", log.display()), fs::write(&log, text))?;
    }
    Ok(())
}

pub(super) fn create(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, File::create(path)?);
    fill(&mut to)?;
    to.flush()
}

/// The header's object of a job that ran on this machine since it started; its names need no escapes.
fn header(name: &str, started: &str) -> String {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim_end().to_owned();
    let namespace = |kind: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
        link.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>()
    };
    // A number above any pid_max: it cannot be somebody's.
    format!(
        r#"{{"v":1,"job":"{}","name":"{name}","owner":null,"host":"{}","pid":4194305,"start":12345,"boot":"{}","pidns":{},"timens":{},"supervisors":[[4194306,12343],[4194307,12344]],"command":["python","-m","pytest","{name}","-v"],"cwd":"/home/user/project","started_at":"{started}","nested_in":null,"leaks":"kill"}}"#,
        job(name),
        line("/proc/sys/kernel/hostname"),
        line("/proc/sys/kernel/random/boot_id"),
        namespace("pid"),
        namespace("time"),
    )
}

/// A job id that depends on the name alone (FNV-1a).
fn job(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

fn footer(head: &str, finished: &str, passed: bool) -> String {
    let id = head.split('"').nth(5).unwrap_or_default();
    let (outcome, code, marker) = if passed { ("passed", 0, "PASSED") } else { ("failed", 1, "FAILED") };
    format!(
        "=== GATE RESULT: {{\"v\":1,\"job\":\"{id}\",\"outcome\":\"{outcome}\",\"exit_code\":{code},\"signal\":null,\"reason\":\"exit\",\
         \"finished_at\":\"{finished}\",\"elapsed_seconds\":45.0,\"cpu_seconds\":40.1,\"max_rss_kb\":54321,\"leaked\":[],\"nested\":[],\
         \"survivors\":[],\"truncated\":false,\"added_newline\":false,\"header\":{head}}} ===\n=== GATE: {marker} ===\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_names_the_job_of_its_header() {
        let head = header("a.py", "2026-01-01T00:00:00Z");
        let id = job("a.py");
        assert!(head.contains(&format!("\"job\":\"{id}\"")));
        assert!(
            footer(&head, "2026-01-01T00:00:45Z", false)
                .starts_with(&format!("=== GATE RESULT: {{\"v\":1,\"job\":\"{id}\",\"outcome\":\"failed\""))
        );
    }

    #[test]
    fn a_suite_counts_what_it_writes() {
        let (mut suite, mut text) = (Suite::new(), Vec::new());
        suite.write(&mut text, 1).expect("memory takes everything");
        let text = String::from_utf8(text).expect("it is text");
        let tests = text.lines().filter(|l| l.ends_with("%]")).count();
        assert_eq!(tests as u64, suite.counts.iter().sum::<u64>());
        assert_eq!(text.matches("\nFAILED ").count() as u64, suite.counts[0]);
        assert!(text.contains(&format!(" {} passed,", suite.counts[1])));
    }
}
