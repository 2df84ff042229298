//! `--sweep`: what nobody owns goes before the command, what is somebody's stays.

use tb_tests::{Proc, Scene, until};

const TEST: &str = "import os, time\ndef test_it():\n    with open('new', 'w') as f: f.write(f'{os.getpid()}\\n')\n    os.rename('new', 'pid')\n    time.sleep(120)\n";

fn await_test(scene: &Scene) -> Proc {
    let pid = until("the test runs", || scene.read("pid").trim().parse().ok());
    std::fs::remove_file(scene.path("pid")).expect("our own file");
    Proc::of(pid).expect("it lives")
}

#[test]
fn orphans_of_this_work_tree_go_before_the_command_and_a_guarded_run_stays() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("test_it.py", TEST)]);
    scene.cmd("git").args(["init", "-q"]).run();
    let guard = scene.sh("exec tb-guard 120 \"$TB_PYTHON\" -m pytest -s test_it.py").spawn();
    let guarded = await_test(&scene);
    scene
        .sh("setsid sh -c '\"$TB_PYTHON\" -m pytest -s test_it.py </dev/null >/dev/null 2>&1 &' </dev/null >/dev/null 2>&1")
        .run()
        .ok();
    let orphan = await_test(&scene);
    let out = scene.tool("tb-guard").args(["--sweep", "60", "sh", "-c", "echo ran; exit 3"]).run().expect(3);
    assert_eq!(out.stdout, "ran\n");
    assert!(
        out.stderr.contains("tb-guard: swept: ") && out.stderr.contains(&orphan.pid.to_string()),
        "{out}"
    );
    assert!(!orphan.alive() && guarded.alive(), "{out}");
    // Nothing to be said when there is nothing.
    let out = scene.tool("tb-guard").args(["--sweep", "60", "true"]).run().ok();
    assert_eq!(out.stderr, "");
    guard.signal(rustix::process::Signal::TERM);
    guard.wait();
    scene.assert_quiet();
}
