//! Names in and out: as arguments, on standard input, alone.

use tb_tests::Scene;

const ODD: [&str; 3] = ["a b", "it's", "tests/a.py::T::t[1]"];

fn scene() -> Scene {
    let scene = Scene::new();
    for name in ODD {
        scene.launch(name, "exit 3");
        scene.wait_for(name, 1);
    }
    scene
}

#[test]
fn names_come_out_alone_and_go_in_again() {
    let scene = scene();
    let names = scene.tool("tb-status").arg("--names").run().ok().stdout;
    assert_eq!(names, "a b\nit's\ntests/a.py::T::t[1]\n");
    let out = scene.tool("tb-status").args(["--stdin-names", "--names"]).stdin(names.clone()).run().expect(1);
    assert_eq!(out.stdout, names);
    let zero = scene.tool("tb-status").arg("--print0").run().ok().stdout;
    assert_eq!(zero, names.replace('\n', "\0"));
    let out = scene.tool("tb-status").args(["--stdin-names", "-0", "--json"]).stdin(zero).run().expect(1);
    assert_eq!(out.json().iter().map(|o| o["exit_code"].as_i64()).collect::<Vec<_>>(), [Some(3); 3]);
    scene.sh("tb-status --failed --print0 | xargs -0 tb-status --names --").run().expect(123).says("it's\n");
}

#[test]
fn an_empty_list_on_standard_input_is_a_list() {
    let scene = scene();
    let out = scene.tool("tb-status").arg("--stdin-names").run().ok();
    assert_eq!(out.stdout, "");
    let out = scene.tool("tb-status").args(["--stdin-names", "a b"]).stdin("it's").run().expect(1);
    assert!(out.stdout.contains("a b  FINISHED") && out.stdout.contains("it's  FINISHED"), "{out}");
}

#[test]
fn bad_names_and_flags_that_do_not_go_together_are_refused() {
    let scene = scene();
    for bad in [
        &[""][..],
        &["a\nb"],
        &["--", "-x"],
        &["-0"],
        &["--names", "--print0"],
        &["--owner", "a", "--all-owners"],
    ] {
        let out = scene.tool("tb-status").args(bad).run().expect(2);
        assert!(out.stdout.is_empty() && out.stderr.starts_with("tb-status: cannot "), "{out}");
    }
    let out = scene.tool("tb-status").arg("--stdin-names").stdin(b"a\xff\n".to_vec()).run().expect(2);
    assert!(out.stderr.contains("not UTF-8"), "{out}");
    scene.tool("tb-status").args(["--since", "soon"]).run().expect(2).complains("--since");
}

#[test]
fn help_lists_the_exit_codes() {
    let scene = Scene::new();
    let long = scene.tool("tb-status").arg("--help").run().ok();
    for word in [
        "Examples:",
        "Exit status:",
        "0 passed",
        "1 failed",
        "3 running",
        "4 not tracked",
        "5 no verdict",
        "/dev/stderr",
    ] {
        assert!(long.stdout.contains(word), "{word} in {long}");
    }
    let short = scene.tool("tb-status").arg("-h").run().ok();
    assert!(short.stdout.len() < long.stdout.len(), "{short}");
    scene.tool("tb-status").arg("-V").run().ok().says("tb-status ");
    assert!(!scene.run_dir().exists());
}
