//! One namespace for all owners: a name that another holds is refused, and not offered to be killed.

use tb_tests::Scene;

#[test]
fn t29_t31_a_name_that_another_owners_job_holds_is_refused_without_a_kill_line() {
    let scene = Scene::new();
    let argv = || scene.fixture_argv("hold");
    scene.tool("tb-launch").args(["--owner", "ann", "--name", "x", "--"]).args(argv()).run().ok();
    for owner in [&["--owner", "bob"][..], &[]] {
        let out = scene.tool("tb-launch").args(owner).args(["--name", "x", "--", "true"]).run().expect(3);
        assert!(out.stderr.contains("held by another owner") && !out.stderr.contains("tb-kill"), "{out}");
        assert!(out.stderr.contains("--name"), "{out}");
    }
    scene.tool("tb-launch").args(["--name", "y", "--"]).args(argv()).run().ok();
    let out = scene.tool("tb-launch").args(["--owner", "bob", "--name", "y", "--", "true"]).run().expect(3);
    assert!(out.stderr.contains("held by another owner") && !out.stderr.contains("tb-kill"), "{out}");
    // By variable it is the same owner.
    let out =
        scene.tool("tb-launch").args(["--name", "x", "--", "true"]).env("TB_OWNER", "ann").run().expect(3);
    assert!(out.stderr.contains("tb-kill x"), "{out}");
    // Once it is over, the name is anybody's.
    scene.tool("tb-kill").args(["--owner", "ann", "x"]).run().ok();
    scene.tool("tb-launch").args(["--owner", "bob", "--name", "x", "--"]).args(argv()).run().ok();
    assert_eq!(scene.status("x")["owner"], "bob");
    scene.tool("tb-kill").args(["--all-owners", "--all"]).run().ok();
}

#[test]
fn the_owner_is_the_jobs_too_and_what_is_no_owner_is_refused() {
    let scene = Scene::new();
    let print = ["--", "sh", "-c", "echo owner=${TB_OWNER-none}"];
    scene.tool("tb-launch").args(["--owner", "a@b:c.d_e-1", "--name", "x"]).args(print).run().ok();
    scene.tool("tb-launch").args(["--name", "y"]).args(print).env("TB_OWNER", "").run().ok();
    scene.wait_for("x", 0);
    scene.wait_for("y", 0);
    let log = |name| std::fs::read_to_string(scene.log_of(name)).expect("a log");
    assert!(log("x").contains("\nowner=a@b:c.d_e-1\n"), "{}", log("x"));
    assert!(log("y").contains("\nowner=none\n"), "{}", log("y"));
    let before = scene.files();
    for bad in ["", "a b", "a/b", "é", &"x".repeat(65)] {
        let flag = format!("--owner={bad}");
        scene.tool("tb-launch").args([&flag, "--", "true"]).run().expect(2).complains("--owner");
    }
    scene.assert_untouched(&before);
}

#[test]
fn t59_no_environment_value_is_recorded() {
    let scene = Scene::new();
    let args = [
        "--env",
        "API_TOKEN=s3cr3t-flag",
        "--name",
        "x",
        "--",
        "sh",
        "-c",
        "test \"$API_TOKEN$OTHER_KEY\" = s3cr3t-flags3cr3t-env",
    ];
    scene.tool("tb-launch").args(args).env("OTHER_KEY", "s3cr3t-env").run().ok();
    scene.wait_for("x", 0);
    let text = std::fs::read_to_string(scene.log_of("x")).expect("the log");
    let recorded = text.replace("s3cr3t-flags3cr3t-env", "");
    assert!(!recorded.contains("s3cr3t"), "{recorded}");
}
