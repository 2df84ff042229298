//! Logs as another supervisor would have written them.

use std::path::PathBuf;
use tb_shared::contract::{Footer, Header, Leaks, Outcome, Reason};
use tb_shared::process::Here;
use tb_tests::Scene;

/// A header of this machine and boot whose processes are long gone.
pub(crate) fn header(name: &str) -> Header {
    let here = Here::read();
    Header {
        v: 1,
        job: "00112233aabbccdd".into(),
        name: name.into(),
        owner: None,
        host: here.host,
        // Above any pid_max: nobody bears it.
        pid: 1 << 29,
        start: 77,
        boot: here.boot,
        pidns: here.pidns,
        timens: here.timens,
        supervisors: vec![(1 << 29 | 1, 75), (1 << 29 | 2, 76)],
        command: vec!["true".into()],
        command_truncated: false,
        cwd: "/".into(),
        started_at: "2020-07-25T14:30:00Z".into(),
        nested_in: None,
        leaks: Leaks::Kill,
        lossy: false,
    }
}

/// A footer to go with it.
pub(crate) fn footer(header: &Header, outcome: Outcome) -> Footer {
    Footer {
        v: 1,
        job: header.job.clone(),
        outcome,
        exit_code: Some(i32::from(outcome != Outcome::Passed)),
        signal: None,
        reason: Some(Reason::Exit),
        finished_at: Some("2020-07-25T14:31:25.200Z".into()),
        elapsed_seconds: Some(85.2),
        cpu_seconds: Some(1.5),
        max_rss_kb: Some(2048),
        leaked: vec![],
        nested: vec![],
        survivors: vec![],
        truncated: false,
        added_newline: false,
        overwrote: None,
        stopped_with: None,
        header: header.into(),
    }
}

/// Puts a log into the run directory.
pub(crate) fn log(scene: &Scene, stem: &str, parts: &[&[u8]]) -> PathBuf {
    scene.make_run_dir();
    scene.file(format!(".gate-logs/test-{stem}-20200725_143000.log"), parts.concat())
}
