//! What belongs to jobs: running, unsupervised, over, left on purpose, started by somebody else.

use crate::scene::{Process, Scene, end, lives};
use serde_json::Value;
use tb_shared::process::{Ident, read_stat};
use tb_tests::until;

fn ident(pid: i32) -> Ident {
    Ident { pid, start: read_stat(pid).expect("it runs").start }
}

/// Launches a job below a subreaper without a name, which adopts what the supervisors leave, and returns what
/// `tb-launch --json` says.
fn launch(scene: &Scene, args: &[&str]) -> Value {
    let tool = scene.tool("tb-launch");
    let script = r#""$@" > launched; sleep 119"#;
    let argv = ["/bin/sh", "-c", script, "sh", tool.get_program().to_str().unwrap(), "--json"];
    scene.start(&[Process::new("shell", &[&argv, args].concat())]);
    let said = until("the job is launched", || {
        std::fs::read_to_string(scene.dir().join("launched")).ok().filter(|text| text.ends_with('\n'))
    });
    serde_json::from_str(&said).unwrap()
}

fn kill_supervisors(job: &Value) {
    let halves = job["supervisors"].as_array().unwrap();
    let pids = halves.iter().map(|half| i32::try_from(half.as_i64().unwrap()).unwrap());
    let idents: Vec<Ident> = pids.map(ident).collect();
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
    assert_eq!(scene.found(&["--unsupervised"]), [leader.pid]);
    let swept = scene.sweep(&["--unsupervised"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(!lives(leader));
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
    launch(&scene, &["--leaks", "allow", "--name", "j", "--", "/bin/sh", "-c", &script]);
    let server = scene.pids_in("child")[0];
    let ended = Scene::answer(scene.tool("tb-wait").arg("j"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(scene.found(&[]), [0; 0]);
    // A later run of the same name does not make it forgotten.
    let again = Scene::answer(scene.tool("tb-launch").args(["--name", "j", "--wait", "--", "true"]));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(scene.found(&[]), [0; 0]);
    assert!(lives(server));
    // It was the record that kept it.
    std::fs::remove_dir_all(scene.dir().join(".gate-logs")).unwrap();
    assert_eq!(scene.found(&[]), [server.pid]);
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
    let args = ["--log-dir", runs.to_str().unwrap(), "--name", "j", "--", "sleep", "119"];
    let job = launch(&scene, &args);
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
