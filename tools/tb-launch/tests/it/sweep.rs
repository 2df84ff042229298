//! `--sweep`: what nobody owns goes before the run, what is somebody's stays.

use tb_tests::{Proc, Scene, until};

const TEST: &str = "import os, time\ndef test_it():\n    with open('new', 'w') as f: f.write(f'{os.getpid()}\\n')\n    os.rename('new', 'pid')\n    time.sleep(120)\n";

fn await_test(scene: &Scene) -> Proc {
    let pid = until("the test runs", || scene.read("pid").trim().parse().ok());
    std::fs::remove_file(scene.path("pid")).expect("our own file");
    Proc::of(pid).expect("it lives")
}

#[test]
fn orphans_of_this_work_tree_go_before_a_run_and_jobs_stay() {
    let mut scene = Scene::new();
    scene.pytest_project(&[("test_it.py", TEST)]);
    scene.cmd("git").args(["init", "-q"]).run();
    scene.tool("tb-launch").arg("test_it.py").run().ok();
    let job = await_test(&scene);
    scene
        .sh("setsid sh -c '\"$TB_PYTHON\" -m pytest -s test_it.py </dev/null >/dev/null 2>&1 &' </dev/null >/dev/null 2>&1")
        .run()
        .ok();
    let orphan = await_test(&scene);
    let out = scene.tool("tb-launch").args(["--sweep", "--name", "x", "--", "true"]).run().ok();
    assert!(
        out.stderr.contains("tb-launch: swept: ") && out.stderr.contains(&orphan.pid.to_string()),
        "{out}"
    );
    assert!(!orphan.alive() && job.alive(), "{out}");
    assert!(!out.stderr.contains(&format!(" {} ", job.pid)), "{out}");
    // Nothing to be said when there is nothing.
    let out = scene.tool("tb-launch").args(["--sweep", "--name", "y", "--", "true"]).run().ok();
    assert_eq!(out.stderr, "");
    assert!(job.alive());
    scene.tool("tb-kill").arg("test_it.py").run().ok();
    scene.wait_for("x", 0);
    scene.wait_for("y", 0);
    scene.assert_quiet();
}
