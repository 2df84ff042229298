//! How what goes ends: by TERM, by KILL, with what it starts meanwhile; and what is dead but not buried.

use crate::scene::{Process, Scene, lives};
use tb_shared::process::{Snapshot, read_stat};
use tb_tests::until;

fn orphan(scene: &Scene, test: &str) -> tb_shared::process::Ident {
    scene.file("test_it.py", test);
    let python = Scene::python();
    let ident = scene.start(&[Process::new("orphan", &[&python, "-m", "pytest", "-s", "test_it.py"])])[0];
    until("the test runs", || scene.dir().join("ready").exists().then_some(()));
    ident
}

#[test]
fn what_ignores_term_gets_kill_after_the_grace() {
    let scene = Scene::new();
    let stubborn = orphan(
        &scene,
        "
import signal, time
def test_it():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open('ready', 'w').close()
    time.sleep(120)
",
    );
    let swept = scene.sweep(&["--grace", "0.2"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(swept.line(stubborn).ends_with("stopped by KILL"), "{swept:?}");
    assert!(!lives(stubborn));
}

#[test]
fn a_fixture_may_clean_up_and_what_is_stopped_wakes_up_for_it() {
    let scene = Scene::new();
    let ident = orphan(
        &scene,
        "
import os, signal, time
def clean(*_):
    open('cleaned', 'w').close()
    os._exit(0)
def test_it():
    signal.signal(signal.SIGTERM, clean)
    open('ready', 'w').close()
    os.kill(os.getpid(), signal.SIGSTOP)
    # Not pause(): another thread may take the signal just before it, and nothing would end it.
    while True:
        time.sleep(0.05)
",
    );
    until("it is stopped", || read_stat(ident.pid)?.is_stopped().then_some(()));
    let swept = scene.sweep(&["--grace", "60"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(swept.line(ident).ends_with("stopped by TERM"), "{swept:?}");
    assert!(scene.dir().join("cleaned").exists());
}

#[test]
fn what_is_born_during_the_sweep_goes_too() {
    let scene = Scene::new();
    // Each TERM is answered by a child that ignores TERM, and by the parent's end.
    orphan(
        &scene,
        "
import os, signal, time
def flee(*_):
    # Ignored before the fork: what is born here never heeds it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        time.sleep(120)
        os._exit(0)
    with open('child', 'w') as f:
        f.write(f'{child}\\n')
    os._exit(0)
def test_it():
    signal.signal(signal.SIGTERM, flee)
    open('ready', 'w').close()
    # Not pause(): the kernel may hand the signal to another thread, and the handler waits for this one.
    while True:
        time.sleep(0.01)
",
    );
    // Long enough for the handler to have done its part on a busy machine; the child is ended by KILL after it.
    let swept = scene.sweep(&["--grace", "8"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    let pid: i32 = std::fs::read_to_string(scene.dir().join("child")).unwrap().trim().parse().unwrap();
    assert!(read_stat(pid).is_none_or(|row| !row.is_alive()), "{swept:?}");
    assert!(swept.out.lines().any(|line| line.starts_with(&format!("{pid} "))), "{swept:?}");
}

#[test]
fn a_process_whose_main_thread_has_exited_is_a_survivor() {
    let scene = Scene::new();
    let ident = orphan(
        &scene,
        "
import ctypes, os, platform, threading, time
def work():
    main = f'/proc/self/task/{os.getpid()}/stat'
    while open(main).read().rsplit(')', 1)[1].split()[0] != 'Z':
        time.sleep(0.01)
    open('ready', 'w').close()
    time.sleep(120)
def test_it():
    threading.Thread(target=work).start()
    ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)
",
    );
    assert_eq!(read_stat(ident.pid).unwrap().state, 'Z');
    assert_eq!(scene.found(&[]), [ident.pid]);
    let swept = scene.sweep(&["--grace", "10"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(swept.line(ident).contains("-m pytest"), "{swept:?}");
    assert!(!lives(ident));
}

#[test]
fn a_zombie_is_no_survivor_and_is_named_with_its_parent() {
    let scene = Scene::new();
    scene.file("test_it.py", crate::orphans::HANGS);
    let python = Scene::python();
    let run = Process::new("orphan", &[&python, "-m", "pytest", "test_it.py"]);
    let ident = scene.start_below(false, &[run])[0];
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    let host = Snapshot::take().unwrap().get(ident.pid).expect("nobody has waited for it").ppid;
    let line = swept.line(ident);
    assert!(line.contains(&format!("a zombie: {host} (")) && line.ends_with("has to wait for it"), "{line}");
    let again = scene.sweep(&[]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "0 left\n"));
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let scene = Scene::new();
    let said = Scene::answer(scene.command("bash").args(["-c", "tb-reap-orphans >&-; echo $?"]));
    assert_eq!(said.out, "0\n", "{said:?}");
}
