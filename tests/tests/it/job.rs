//! A job in a scene, as the tests of several behaviours handle it: launched, looked at, read from its two files.

use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use tb_tests::{Cmd, Output, Proc, Scene, until};

/// A job by its name.
pub(crate) struct Job<'s> {
    pub(crate) scene: &'s Scene,
    pub(crate) name: String,
}

/// Launches `tb-fixture WORDS` as a job and waits until its leader is ready (its role is `main`).
#[track_caller]
pub(crate) fn launch<'s>(scene: &'s Scene, name: &str, options: &[&str], words: &str) -> Job<'s> {
    let born = scene.births().iter().filter(|b| b.role == "main").count();
    let job = launch_argv(scene, name, options, &scene.fixture_argv(words));
    scene.await_births("main", born + 1);
    job
}

/// Launches a command as a job.
#[track_caller]
pub(crate) fn launch_argv<'s>(
    scene: &'s Scene,
    name: &str,
    options: &[&str],
    argv: &[impl AsRef<std::ffi::OsStr>],
) -> Job<'s> {
    scene.tool("tb-launch").args(["--name", name]).args(options).arg("--").args(argv).run().ok();
    Job { scene, name: name.to_owned() }
}

/// Launches a shell script as a job.
#[track_caller]
pub(crate) fn launch_sh<'s>(scene: &'s Scene, name: &str, options: &[&str], script: &str) -> Job<'s> {
    launch_argv(scene, name, options, &["/bin/sh", "-c", script])
}

/// A value as a process that lives or lived: (pid, start).
fn proc_of(pair: &Value) -> Proc {
    let number = |i: usize| pair[i].as_u64().expect("a number");
    Proc { pid: u32::try_from(number(0)).expect("a PID"), start: number(1) }
}

impl<'s> Job<'s> {
    pub(crate) fn named(scene: &'s Scene, name: &str) -> Job<'s> {
        Job { scene, name: name.to_owned() }
    }

    /// A tool called with this job's name.
    pub(crate) fn tool(&self, tool: &str, options: &[&str]) -> Cmd<'s> {
        self.scene.tool(tool).args(options).arg(&self.name)
    }

    /// tb-status's object.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.tool("tb-status", &["--json"]).run().json().pop().expect("the job is tracked")
    }

    /// Waits until a field of tb-status's object has this value.
    #[track_caller]
    pub(crate) fn until_status(&self, field: &str, value: &str) -> Value {
        until(&format!("{field} of {} is {value:?}", self.name), || {
            let status = self.status();
            (status[field] == value).then_some(status)
        })
    }

    /// Waits for the end by tb-wait, and demands its exit code.
    #[track_caller]
    pub(crate) fn wait(&self, code: i32) -> Output {
        self.tool("tb-wait", &[]).run().expect(code)
    }

    /// tb-kill with a grace, and its exit code.
    #[track_caller]
    pub(crate) fn kill(&self, grace: &str, code: i32) -> Output {
        self.tool("tb-kill", &["--grace", grace]).run().expect(code)
    }

    fn stem(&self) -> String {
        self.name.replace(['/', '.'], "_")
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        self.scene.run_dir().join(format!(".test-{}.pid", self.stem()))
    }

    /// The job's newest log.
    #[track_caller]
    pub(crate) fn log_path(&self) -> PathBuf {
        let prefix = format!("test-{}-", self.stem());
        let mut logs: Vec<PathBuf> = std::fs::read_dir(self.scene.run_dir())
            .expect("there is a run directory")
            .map(|e| e.expect("it can be read").path())
            .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&prefix)))
            .collect();
        logs.sort_by_key(|p| {
            let name = p.file_stem().expect("a name").to_string_lossy().into_owned();
            let rest = name[prefix.len()..].to_owned();
            let (stamp, n) = rest
                .split_once('-')
                .map_or((rest.clone(), 1), |(s, n)| (s.to_owned(), n.parse::<u32>().expect("a number")));
            (stamp, n)
        });
        logs.pop().expect("the job has a log")
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    /// The lines of a kind (`LAUNCH`, `STOPPING`, `RESULT`) in the log, as JSON.
    pub(crate) fn records(&self, kind: &str) -> Vec<Value> {
        let prefix = format!("=== GATE {kind}: ");
        let log = self.log();
        let bodies = log.lines().filter_map(|l| l.strip_prefix(prefix.as_str())?.strip_suffix(" ==="));
        bodies.map(|json| serde_json::from_str(json).expect("a record is JSON")).collect()
    }

    #[track_caller]
    pub(crate) fn header(&self) -> Value {
        self.records("LAUNCH").into_iter().next().expect("the log begins with a header")
    }

    /// The footer: exactly one, followed by the marker that goes with it.
    #[track_caller]
    pub(crate) fn footer(&self) -> Value {
        let mut footers = self.records("RESULT");
        assert_eq!(footers.len(), 1, "one footer in\n{}", self.log());
        let footer = footers.remove(0);
        let marker =
            if footer["outcome"] == "passed" { "=== GATE: PASSED ===" } else { "=== GATE: FAILED ===" };
        assert_eq!(self.log().lines().filter(|l| *l == marker).count(), 1);
        footer
    }

    #[track_caller]
    pub(crate) fn leader(&self) -> Proc {
        let header = self.header();
        proc_of(&Value::Array(vec![header["pid"].clone(), header["start"].clone()]))
    }

    /// The two halves: the front and the monitor.
    #[track_caller]
    pub(crate) fn halves(&self) -> (Proc, Proc) {
        let header = self.header();
        (proc_of(&header["supervisors"][0]), proc_of(&header["supervisors"][1]))
    }

    /// Demands the end that a footer tells, and that nothing but the log is left of the job.
    #[track_caller]
    pub(crate) fn assert_ended(&self, outcome: &str, reason: &str) -> Value {
        let footer = self.footer();
        assert_eq!((&footer["outcome"], &footer["reason"]), (&outcome.into(), &reason.into()), "{footer}");
        assert!(!self.pid_file().exists(), "the PID file is gone");
        self.scene.assert_quiet();
        footer
    }
}

/// Sends SIGKILL and waits until it has worked.
#[track_caller]
pub(crate) fn kill_hard(proc: Proc) {
    assert!(proc.kill(), "it lived");
    until("it is dead", || (!proc.alive()).then_some(()));
}

/// Stops a process and waits until it is.
#[track_caller]
pub(crate) fn freeze(proc: Proc) {
    assert!(proc.signal(Signal::STOP), "it lives");
    until("it is stopped", || proc.stat().filter(|s| s.state == 'T'));
}
