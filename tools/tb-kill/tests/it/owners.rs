//! Kills stay inside the scope.

use tb_tests::Scene;

#[test]
fn t28_t29_only_the_scopes_jobs_are_stopped() {
    let scene = Scene::new();
    for (owner, name) in [(Some("ann"), "a1"), (Some("ann"), "a2"), (Some("bob"), "b"), (None, "n")] {
        scene.launch_of(owner, name, "hold");
    }
    scene.tool("tb-kill").arg("a1").run().expect(4);
    scene.tool("tb-kill").args(["--owner", "bob", "n"]).run().expect(4);
    scene.tool("tb-kill").args(["--owner", "eve", "--all"]).run().ok();
    let running = || scene.tool("tb-status").args(["--all-owners", "--running", "--names"]).run().ok().stdout;
    assert_eq!(running().lines().count(), 4);
    scene.tool("tb-kill").args(["--owner", "ann", "a1"]).run().ok();
    scene.tool("tb-kill").arg("--all").env("TB_OWNER", "ann").run().ok();
    assert_eq!(running(), "b\nn\n");
    scene.tool("tb-kill").arg("--all").run().ok();
    assert_eq!(running(), "b\n");
    scene.tool("tb-kill").args(["--all", "--all-owners"]).run().ok();
    assert_eq!(running(), "");
    scene.assert_quiet();
}
