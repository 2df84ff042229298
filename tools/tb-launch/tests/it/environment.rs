//! Variables: which one is wrong is said, a flag beats TB_, which beats the older name.

use tb_tests::{Scene, VARIABLES};

#[test]
fn a_variable_that_does_not_parse_is_named_and_nothing_is_launched() {
    let scene = Scene::new();
    let before = scene.files();
    for variable in VARIABLES {
        for bad in ["a b", "-1 s", "nan/2"] {
            scene
                .tool("tb-launch")
                .args(["--name", "x", "--", "true"])
                .env(variable, bad)
                .run()
                .expect(2)
                .complains(variable)
                .complains(bad);
        }
    }
    for bad in ["-1", "nan", "inf", "1e3"] {
        let out = scene.tool("tb-launch").args(["--", "true"]).env("TB_KILL_GRACE", bad).run().expect(2);
        assert!(out.stderr.contains("TB_KILL_GRACE"), "{out}");
    }
    scene.assert_untouched(&before);
}

#[test]
fn a_flag_beats_the_variable_which_beats_the_older_name() {
    let scene = Scene::new();
    // The wrong value of what is beaten is never looked at.
    let launch = |name: &'static str| scene.tool("tb-launch").args(["--name", name]);
    launch("a").args(["--grace", "1s", "--", "true"]).env("TB_KILL_GRACE", "soon").run().ok();
    launch("b")
        .args(["--", "true"])
        .env("TB_KILL_GRACE", "1")
        .env("GLUDD_TEST_KILL_GRACE_SEC", "soon")
        .run()
        .ok();
    launch("c")
        .args(["--", "true"])
        .env("TB_KILL_GRACE", "")
        .env("GLUDD_TEST_KILL_GRACE_SEC", "2")
        .run()
        .ok();
    launch("d").args(["--owner", "me", "--", "true"]).env("TB_OWNER", "not one").run().ok();
    launch("e").args(["--", "true"]).env("TB_OWNER", "").run().ok();
    assert_eq!(scene.status("d")["owner"], "me");
    assert!(scene.status("e")["owner"].is_null());
    for name in ["a", "b", "c", "d", "e"] {
        scene.wait_for(name, 0);
    }
}

#[test]
fn g16_the_run_directory_can_be_chosen_by_flag_and_by_either_variable() {
    let scene = Scene::new();
    let launch = || scene.tool("tb-launch");
    launch().args(["--name", "a", "--log-dir", "one", "--", "true"]).env("TB_LOG_DIR", "two").run().ok();
    launch()
        .args(["--name", "a", "--", "true"])
        .env("TB_LOG_DIR", "two")
        .env("GLUDD_TEST_LOG_DIR", "three")
        .run()
        .ok();
    launch().args(["--name", "a", "--", "true"]).env("GLUDD_TEST_LOG_DIR", "three").run().ok();
    launch()
        .args(["--name", "a", "--", "true"])
        .env("TB_LOG_DIR", "")
        .run()
        .ok()
        .says("Log: .gate-logs/test-a-");
    for dir in ["one", "two", "three", ".gate-logs"] {
        assert_eq!(scene.read(format!("{dir}/.gitignore")), "*\n", "{dir}");
        scene.tool("tb-wait").args(["--log-dir", dir, "a"]).run().ok();
    }
}
