//! Workers of pytest-xdist, whose controller was killed.

use crate::scene::{Process, Scene, end, lives, until};
use tb_shared::process::{Ident, Snapshot};

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

fn pytest(scene: &Scene, tag: &str, workers: usize) -> (Ident, Vec<Ident>) {
    let python = Scene::python();
    let number = workers.to_string();
    let argv = [&python, "-m", "pytest", "-p", "no:cacheprovider", "-n", &number, "test_hangs.py"];
    let run = Process::new("shell", &argv).env("TAG", tag).env("TESTS", &number);
    let controller = scene.start(&[run])[0];
    let members = (0..workers).flat_map(|n| scene.pids_in(&format!("{tag}-{n}"))).collect();
    (controller, members)
}

#[test]
fn exactly_the_workers_of_a_killed_controller_go_and_their_helpers() {
    let scene = Scene::new();
    scene.file("test_hangs.py", HANGS);
    let (controller, mut orphans) = pytest(&scene, "killed", 4);
    let (living, others) = pytest(&scene, "living", 2);
    assert_eq!(scene.found(&[]), [0; 0], "somebody owns them all");
    end(controller);
    until("its workers are adopted", || {
        let all = Snapshot::take().ok()?;
        orphans.iter().all(|o| all.get(o.pid).is_some_and(|row| row.ppid != controller.pid)).then_some(())
    });
    let mut pids: Vec<i32> = orphans.iter().map(|i| i.pid).collect();
    pids.sort_unstable();
    assert_eq!(scene.found(&[]), pids);
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert_eq!(swept.out.lines().count(), orphans.len() + 1, "{swept:?}");
    assert!(swept.out.contains("worker of pytest-xdist; its controller is gone"), "{swept:?}");
    orphans.retain(|&o| lives(o));
    assert_eq!(orphans, []);
    assert!(lives(living) && others.into_iter().all(lives), "another run was hit: {swept:?}");
}
