//! What belongs to jobs: running, unsupervised, over, left on purpose, started by somebody else.

use crate::scene::{Process, Scene, end, lives, until};
use serde_json::Value;
use tb_shared::process::{Ident, read_stat};

fn ident(pid: i32) -> Ident {
    Ident { pid, start: read_stat(pid).expect("it runs").start }
}

/// Launches a job below a subreaper without a name, so that it is known who adopts what it leaves. Returns what
/// `tb-launch --json` says.
fn launch(scene: &Scene, args: &[&str]) -> Value {
    let launch = scene.tool("tb-launch");
    let launch = launch.get_program().to_str().unwrap();
    let out = scene.dir().join("launched");
    let script = format!("exec {launch} --json \"$@\" > launched");
    scene.start(&[Process::new("shell", &["/bin/sh", "-c", "echo $$ >&2; sleep 120"])]);
    let host = scene.command("/bin/sh").args(["-c", &script, "sh"]).args(args).output().unwrap();
    assert!(host.status.success(), "{host:?}");
    serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap()
}

fn kill_supervisors(job: &Value) {
    let halves = job["supervisors"].as_array().unwrap();
    let idents: Vec<Ident> = halves
        .iter()
        .map(|half| {
            let pid = half.as_i64().or_else(|| half[0].as_i64()).or_else(|| half["pid"].as_i64());
            ident(i32::try_from(pid.unwrap_or_else(|| panic!("{job}"))).unwrap())
        })
        .collect();
    // Both before either can act: a stopped half takes nothing over.
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        for &half in &idents {
            tb_shared::process::Handle::open(half).unwrap().unwrap().signal(signal).unwrap();
        }
    }
    until("the supervisors are gone", || idents.iter().all(|&half| !lives(half)).then_some(()));
}

#[test]
fn a_job_whose_supervisors_were_killed_goes_when_asked_only() {
    let scene = Scene::new();
    scene.file("test_hangs.py", crate::orphans::HANGS);
    let python = Scene::python();
    let job = launch(&scene, &["--name", "j", "--", &python, "-m", "pytest", "test_hangs.py"]);
    let leader = ident(i32::try_from(job["pid"].as_i64().unwrap()).unwrap());
    assert_eq!(scene.found(&["--unsupervised"]), [0; 0], "it is supervised");
    kill_supervisors(&job);
    assert!(lives(leader));
    assert_eq!(scene.found(&[]), [0; 0]);
    assert_eq!(scene.found(&["--unsupervised", "--owner", "other"]), [0; 0]);
    if adopted_by_an_init(leader) {
        assert_eq!(scene.found(&["--unsupervised"]), [leader.pid]);
        let swept = scene.sweep(&["--unsupervised"]);
        assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
        assert!(!lives(leader));
    } else {
        eprintln!("not shown here: a subreaper without a name has adopted the job, and may own it");
        assert_eq!(scene.found(&["--unsupervised"]), [0; 0]);
    }
}

/// Whether a process's parent is PID 1; under a session's subreaper, who leads a session is owned.
fn adopted_by_an_init(ident: Ident) -> bool {
    read_stat(ident.pid).is_some_and(|row| row.ppid == 1)
}

#[test]
fn what_a_crashed_job_left_goes_by_its_session() {
    let scene = Scene::new();
    // Not a test by its arguments: the session of the dead leader is all that is known of it.
    let script = "sleep 118 & echo $! > child; wait";
    let job = launch(&scene, &["--name", "j", "--", "/bin/sh", "-c", script]);
    let leader = ident(i32::try_from(job["pid"].as_i64().unwrap()).unwrap());
    let child = scene.pids_in("child")[0];
    kill_supervisors(&job);
    assert_eq!(scene.found(&[]), [0; 0]);
    end(leader);
    until("the leader is gone", || (!lives(leader)).then_some(()));
    until("its child is adopted", || (read_stat(child.pid)?.ppid != leader.pid).then_some(()));
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(swept.line(child).contains("in the session of job j;"), "{swept:?}");
    assert!(!lives(child));
}

#[test]
fn what_a_job_left_on_purpose_stays() {
    let scene = Scene::new();
    scene.file("test_hangs.py", crate::orphans::HANGS);
    let python = Scene::python();
    let script = format!("{python} -m pytest test_hangs.py & echo $! > child");
    let args = ["--leaks", "allow", "--name", "j", "--wait", "--", "/bin/sh", "-c", &script];
    let job = scene.tool("tb-launch").args(args).output().unwrap();
    assert!(job.status.success(), "{job:?}");
    let server = scene.pids_in("child")[0];
    until("it is adopted", || (read_stat(server.pid)?.sid != server.pid).then_some(()));
    assert_eq!(scene.found(&[]), [0; 0], "{job:?}");
    // A later run of the same name does not make it forgotten.
    let again = scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    assert_eq!(scene.found(&[]), [0; 0]);
    assert!(lives(server));
}

#[test]
fn what_a_live_pid_file_names_stays() {
    let scene = Scene::new();
    scene.file("test_hangs.py", crate::orphans::HANGS);
    let python = Scene::python();
    let run = || Process::new("orphan", &[&python, "-m", "pytest", "test_hangs.py"]);
    let [kept, orphan] = scene.start(&[run(), run()]).try_into().unwrap();
    scene.file(".gate-logs/.test-test_hangs_py.pid", &format!("{}\n", kept.pid));
    assert_eq!(scene.found(&[]), [orphan.pid]);
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(lives(kept) && !lives(orphan));
}

#[test]
fn a_process_of_a_running_job_of_any_run_directory_stays() {
    let scene = Scene::new();
    scene.file("test_hangs.py", crate::orphans::HANGS);
    let python = Scene::python();
    let runs = scene.other().join("runs");
    let args = ["--log-dir", runs.to_str().unwrap(), "--json", "--name", "j", "--", "sleep", "119"];
    let job = scene.tool("tb-launch").args(args).output().unwrap();
    let job: Value = serde_json::from_slice(&job.stdout).unwrap();
    let id = job["job"].as_str().unwrap();
    // Out of the supervisor's reach: all that tells is the job's id.
    let run = Process::new("orphan", &[&python, "-m", "pytest", "test_hangs.py"]);
    let run = run.env("TB_JOB", id).env("TB_LOG_DIR", runs.to_str().unwrap());
    let member = scene.start(&[run])[0];
    assert_eq!(scene.found(&[]), [0; 0]);
    let mut kill = scene.tool("tb-kill");
    let killed = kill.args(["--log-dir", runs.to_str().unwrap(), "--grace", "1", "j"]).output().unwrap();
    assert!(killed.status.success(), "{killed:?}");
    assert_eq!(scene.found(&[]), [member.pid]);
}
