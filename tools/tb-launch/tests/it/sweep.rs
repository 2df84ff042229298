//! `--sweep`: what nobody owns goes before the run, what is somebody's stays.

use tb_tests::Scene;

#[test]
fn orphans_of_this_work_tree_go_before_a_run_and_jobs_stay() {
    let mut scene = Scene::new();
    scene.hanging_test_project();
    scene.tool("tb-launch").arg("test_it.py").run().ok();
    let job = scene.await_hanging_test();
    let orphan = scene.orphan_hanging_test();
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
