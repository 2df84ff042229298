//! `--sweep`: what nobody owns goes before the command, what is somebody's stays.

use tb_tests::Scene;

#[test]
fn orphans_of_this_work_tree_go_before_the_command_and_a_guarded_run_stays() {
    let mut scene = Scene::new();
    scene.hanging_test_project();
    let guard = scene.sh("exec tb-guard 120 \"$TB_PYTHON\" -m pytest -s test_it.py").spawn();
    let guarded = scene.await_hanging_test();
    let orphan = scene.orphan_hanging_test();
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
