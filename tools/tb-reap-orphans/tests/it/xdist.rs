//! Workers of pytest-xdist, whose controller was killed.

use crate::scene::{Process, Scene, end, lives};
use tb_shared::process::{Ident, Snapshot};
use tb_tests::until;

/// A test that starts a helper, says who it and its worker are, and hangs.
const HANGS: &str = "
import os, subprocess, sys, time
import pytest

@pytest.mark.parametrize('n', range(int(os.environ['TESTS'])))
def test_hangs(n):
    helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'])
    name = f\"{os.environ['TAG']}-{n}\"
    with open(name, 'w') as f:
        f.write(f'{os.getpid()} {helper.pid}\\n')
    time.sleep(120)
";

/// Runs the tests under `start`, and returns the controller, and the workers with their helpers.
fn pytest(scene: &Scene, start: &[&str], tag: &str, workers: usize) -> (Ident, Vec<Ident>) {
    let python = Scene::python();
    let number = workers.to_string();
    let options = ["-p", "no:cacheprovider", "-n", &number, "test_hangs.py"];
    let argv = [&[python.as_str()], start, &options].concat();
    let run = Process::new("shell", &argv).env("TAG", tag).env("TESTS", &number);
    let controller = scene.start(&[run])[0];
    let members = (0..workers).flat_map(|n| scene.pids_in(&format!("{tag}-{n}"))).collect();
    (controller, members)
}

fn adopted(members: &[Ident], controller: Ident) {
    until("the workers are adopted", || {
        let all = Snapshot::take().ok()?;
        members.iter().all(|m| all.get(m.pid).is_some_and(|row| row.ppid != controller.pid)).then_some(())
    });
}

fn pids(idents: &[Ident]) -> Vec<i32> {
    let mut pids: Vec<i32> = idents.iter().map(|i| i.pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn exactly_the_workers_of_a_killed_controller_go_and_their_helpers() {
    let scene = Scene::new();
    scene.file("test_hangs.py", HANGS);
    let (controller, mut orphans) = pytest(&scene, &["-m", "pytest"], "killed", 4);
    let (living, others) = pytest(&scene, &["-m", "pytest"], "living", 2);
    assert_eq!(scene.found(&[]), [0; 0], "somebody owns them all");
    end(controller);
    adopted(&orphans, controller);
    assert_eq!(scene.found(&[]), pids(&orphans));
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert_eq!(swept.out.lines().count(), orphans.len() + 1, "{swept:?}");
    assert!(swept.out.contains("worker of pytest-xdist; its controller is gone"), "{swept:?}");
    orphans.retain(|&o| lives(o));
    assert_eq!(orphans, []);
    assert!(lives(living) && others.into_iter().all(lives), "another run was hit: {swept:?}");
}

#[test]
fn a_script_that_runs_pytest_owns_its_workers_as_long_as_it_lives() {
    let scene = Scene::new();
    scene.file("test_hangs.py", HANGS);
    scene.file("checks.py", "import sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))\n");
    let (script, members) = pytest(&scene, &["checks.py"], "script", 2);
    assert_eq!(scene.found(&[]), [0; 0]);
    end(script);
    adopted(&members, script);
    assert_eq!(scene.found(&[]), pids(&members));
}
