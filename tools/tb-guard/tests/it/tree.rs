//! Time up: the whole tree goes, wherever its members went, and those who can finish do.

use crate::{guard, timeout};
use std::time::Duration;
use tb_tests::Scene;

/// Every way out of a tree that is worth a name.
const ESCAPES: [(&str, &str); 10] = [
    ("setsid", "spawn-setsid [ ignore-term hold ] hold"),
    ("setpgid", "spawn-setpgid [ ignore-term hold ] hold"),
    ("daemon", "daemon [ ignore-term hold ] hold"),
    ("daemon-envclear", "daemon-envclear [ ignore-term hold ] hold"),
    ("same", "spawn-same [ ignore-term hold ] hold"),
    ("stopped", "spawn-setsid [ role stopped ready stopped ] hold"),
    ("threads", "spawn-setsid [ role threads ignore-term threads 2 ] hold"),
    ("main", "spawn-on-term"),
    ("wrapper", "role wrapper spawn-same [ spawn-setsid [ hold ] hold ] wait-children"),
    ("grand", "spawn-setsid [ daemon [ role grand ignore-term hold ] exit 0 ] hold"),
];

fn all_go(scene: &Scene) {
    let mut runs = Vec::new();
    for (role, words) in ESCAPES {
        for options in ["-k 0.5 1.5", "--grace 0.5 1.5"] {
            runs.push((role, options, guard(scene, options, words).spawn()));
        }
    }
    for (role, options, running) in runs {
        let out = running.wait();
        let wanted = [Some(124), Some(137)];
        assert!(wanted.contains(&out.code), "{role} {options}: {out}");
    }
    assert!(scene.living().is_empty(), "nothing is left when they return");
    for (role, _) in ESCAPES {
        assert!(scene.births().iter().any(|b| b.role == role), "{role} was there");
    }
}

#[test]
fn every_way_out_of_the_tree_is_shut() {
    all_go(&Scene::new());
}

#[test]
fn every_way_out_of_the_tree_is_shut_for_an_ordinary_user_too() {
    all_go(&Scene::nobody());
}

#[test]
fn a_storm_of_processes_that_fork_and_leave_is_over_when_the_guard_returns() {
    let scene = Scene::nobody();
    for limit in ["60", "400"] {
        let words = "spawn-setsid [ storm 5000 ] spawn-setsid [ storm 5000 ] storm 5000 hold";
        let cmd = guard(&scene, "-k 0.2 0.3", words);
        // Root has no such limit: as somebody else it holds.
        let cmd = if tb_tests::root() { cmd.through(["limit", "nproc", limit]) } else { cmd };
        let out = cmd.run();
        assert!([Some(124), Some(137)].contains(&out.code), "{out}");
        assert!(scene.living().is_empty(), "nothing is left when it returns");
    }
}

#[test]
fn a_term_handler_finishes_its_work() {
    let scene = Scene::new();
    guard(&scene, "0.7", "spawn-setsid [ term-handler 0.5 deep ] term-handler 0.5 done").run().expect(124);
    assert!(scene.path("done").exists() && scene.path("deep").exists());
    // Also the processes that it starts in order to.
    guard(&scene, "0.7", "on-term [ spawn-same [ sleep 0.4 stamp cleaned ] wait-children exit 0 ] hold")
        .run()
        .expect(124);
    assert!(scene.path("cleaned").exists());
}

#[test]
fn a_member_that_ignores_term_gets_kill_though_the_leader_went_at_once() {
    let scene = Scene::new();
    let out = guard(&scene, "--grace 0.3 0.7", "spawn-same [ ignore-term hold ] hold").run().expect(124);
    out.complains("stopped with SIGKILL");
    scene.assert_quiet();
    // The leader died of TERM: timeout's table says 124 here, with -k too.
    timeout(&scene, "-k 0.3 0.7")
        .args(scene.fixture_argv("spawn-same [ ignore-term hold ] hold"))
        .run()
        .expect(124);
    assert!(scene.living().is_empty());
}

#[test]
fn a_setsid_child_that_keeps_the_pipe_does_not_hold_the_reader() {
    let scene = Scene::new();
    for command in ["tb-guard --grace 0.3", "./timeout -k 0.3"] {
        timeout(&scene, "--version").run().ok();
        let script = format!(
            "out=$({command} 0.7 tb-fixture spawn-setsid [ ignore-term hold ] print x hold); echo \"$? $out\""
        );
        let out = scene.sh(&script).run().ok();
        assert!(out.stdout.starts_with("124 x"), "{out}");
        assert!(out.took < Duration::from_secs(30), "{out}");
    }
    // After an ordinary end as well.
    scene.sh("out=$(tb-guard 60 tb-fixture spawn-setsid [ hold ] exit 3); exit $?").run().expect(3);
}

#[test]
fn timeout_1_sh_c_yes_leaves_no_yes() {
    let scene = Scene::new();
    scene.sh("tb-guard 0.3 sh -c 'yes >/dev/null'; exit $?").run().expect(124);
    scene.assert_quiet();
}

#[test]
fn a_zombie_that_nobody_waits_for_is_no_survivor_and_no_leak() {
    let scene = Scene::new();
    let words = "spawn-setsid [ spawn-same [ role dead exit 0 ] ignore-term hold ]";
    guard(&scene, "--grace 0.3 0.7", &format!("{words} hold")).run().expect(124);
    let out = guard(&scene, "--leaks fail 60", "spawn-same [ role dead exit 0 ] sleep 0.3 exit 0").run().ok();
    assert_eq!(out.stderr, "");
    assert!(scene.living().is_empty());
}

#[test]
fn a_wrapper_that_forwards_nothing_does_not_shield_what_it_started() {
    let scene = Scene::new();
    let words =
        "ignore-term spawn-same [ role inner on-term [ stamp told exit 0 ] hold ] wait-children exit 5";
    let running = guard(&scene, "60", words).spawn();
    scene.await_birth("inner");
    running.signal(rustix::process::Signal::TERM);
    running.wait().expect(5);
    assert!(scene.path("told").exists());
}

#[test]
fn a_stopped_command_sees_term_and_ends() {
    let scene = Scene::new();
    guard(&scene, "--grace 30 1", "on-term [ stamp done exit 0 ] role r ready stopped hold")
        .run()
        .expect(124);
    assert!(scene.path("done").exists());
}

#[test]
fn foreground_signals_the_command_alone_and_the_rest_is_what_outlived_it() {
    let scene = Scene::new();
    let words = "spawn-same [ on-term [ stamp told exit 0 ] hold ] hold";
    // Under our name what outlives the command is stopped, gently.
    guard(&scene, "-f 0.7", words).run().expect(124);
    assert!(scene.path("told").exists());
    scene.assert_quiet();
    // Under timeout's, its children are not timed out.
    let scene = Scene::new();
    let out = timeout(&scene, "-f -k 0.2 0.7").args(scene.fixture_argv(words)).held_pipes().run().expect(124);
    assert_eq!(out.stderr, "");
    assert!(scene.await_birth("same").alive());
    assert!(!scene.path("told").exists());
}

#[test]
fn a_tree_of_many_ends_at_once_and_the_report_stays_whole() {
    let scene = Scene::new();
    let many = "spawn-setsid [ ignore-term hold ] ".repeat(20);
    let words = format!("spawn-same [ {many} hold ] ").repeat(13) + "role leader hold";
    let out = guard(&scene, "--grace 0.2 --report r.json 3", &words).run().expect(124);
    assert!(scene.living().is_empty(), "{out}");
    let report: serde_json::Value = serde_json::from_str(&scene.read("r.json")).expect("a report");
    assert_eq!(report["verdict"], "timeout");
    assert_eq!(report["stopped"].as_array().expect("a list").len(), 200);
}

#[test]
fn a_process_of_another_user_is_named_and_does_not_hold_up_the_end_for_ever() {
    use std::os::unix::fs::{PermissionsExt, chown};
    if !tb_tests::root() {
        return;
    }
    let scene = Scene::nobody();
    // What sudo does: a program of root's that anyone may start.
    let sudo = scene.path("sudo");
    std::fs::copy("/usr/bin/setpriv", &sudo).expect("room for a copy");
    chown(&sudo, Some(0), Some(0)).expect("root may");
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o4755)).expect("root may");
    let as_root = "./sudo --reuid 0 --regid 0 --clear-groups";
    if !scene.sh(&format!("{as_root} id -ru")).run().stdout.starts_with('0') {
        eprintln!("programs of root's are nobody's here: not tested");
        return;
    }
    let script = format!("{as_root} tb-fixture role theirs hold & exec tb-fixture role ours hold");
    let tool =
        scene.tool("tb-guard").args(["--grace", "0.3", "--report", "r.json", "1.5", "sh", "-c", &script]);
    let out = tool.held_pipes().run().expect(124);
    let (theirs, ours) = (scene.await_birth("theirs"), scene.await_birth("ours"));
    assert!(theirs.alive() && !ours.alive());
    let said = format!("cannot stop: {} ", theirs.pid);
    assert!(out.stderr.contains(&said) && out.stderr.contains("another user's (uid 0)"), "{out}");
    let report: serde_json::Value = serde_json::from_str(&scene.read("r.json")).expect("a report");
    assert_eq!(report["survivors"][0]["pid"], theirs.pid);
    assert_eq!(report["code"], 124);
}
