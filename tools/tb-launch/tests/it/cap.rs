//! `--max-live`: what counts, what is refused, and what the refusal offers.

use crate::together::all_at_once;
use crate::{launch, launch_sh};
use tb_tests::{Output, Scene, until};

/// The kill lines of a refusal.
fn kill_lines(out: &Output) -> Vec<&str> {
    out.stderr.lines().map(str::trim).filter(|l| l.starts_with("tb-kill ")).collect()
}

#[test]
fn t05_t06_one_too_many_is_refused_one_killed_frees_a_place_and_finished_ones_do_not_count() {
    let scene = Scene::new();
    let capped = |name: &str, words: &str| launch(&scene, &["--max-live", "2", "--name", name], words).run();
    capped("done", "exit 0").ok();
    scene.wait_for("done", 0);
    scene.launch("crashed", "hold");
    capped("a b", "hold").ok();
    // The first was that of the job that is over.
    let leader = scene.await_births("main", 2)[1];
    let before = scene.files();
    let out = capped("c", "hold").expect(6);
    assert!(out.stdout.is_empty() && out.stderr.contains("2 jobs run here, and no more than 2 may"), "{out}");
    let mut lines = kill_lines(&out);
    lines.sort_unstable();
    assert_eq!(lines, ["tb-kill 'a b'", "tb-kill crashed"], "{out}");
    assert!(!out.stderr.contains("other owners"), "{out}");
    assert_eq!(scene.files(), before, "nothing launched");
    scene.sh(lines[0]).run().ok();
    capped("c", "hold").ok();
    capped("d", "hold").expect(6);
    // However a job ends.
    assert!(leader.kill());
    scene.wait_for("crashed", 1);
    capped("d", "hold").ok();
    scene.tool("tb-kill").arg("c").run().ok();
    // By variable, which the flag beats.
    let by_variable = |flags: &[&str]| launch(&scene, flags, "hold").env("TB_MAX_LIVE", "1").run();
    by_variable(&[]).expect(6);
    by_variable(&["--max-live", "2"]).ok();
    scene.tool("tb-kill").arg("--all").run().ok();
    scene.assert_quiet();
}

#[test]
fn t05_t52_of_fifty_launches_at_an_instant_exactly_as_many_run_as_may() {
    let scene = Scene::new();
    let outs = all_at_once(&scene, 50, "tb-launch --max-live 5 -- tb-fixture hold");
    let won = outs.iter().filter(|o| o.code == Some(0)).count();
    assert_eq!(won, 5, "{}", outs.iter().map(ToString::to_string).collect::<String>());
    assert!(outs.iter().all(|o| matches!(o.code, Some(0 | 6))));
    scene.await_births("main", 5);
    assert_eq!(scene.births().len(), 5);
    let running = scene.tool("tb-status").args(["--running", "--names"]).run();
    assert_eq!(running.stdout.lines().count(), 5, "{running}");
    scene.tool("tb-kill").arg("--all").run().ok();
    scene.assert_quiet();
}

#[test]
fn t05_foreign_jobs_count_while_they_live() {
    let scene = Scene::new();
    scene.make_run_dir();
    let foreign = scene.fixture("hold").spawn();
    scene.await_birth("main");
    scene.file(".gate-logs/.test-theirs.pid", format!("{}\n", foreign.pid()));
    // What names nobody is nobody.
    scene.file(".gate-logs/.test-stale.pid", "abc\n");
    let out = launch(&scene, &["--max-live", "1"], "hold").run().expect(6);
    assert!(out.stderr.contains("1 job runs here"), "{out}");
    launch(&scene, &["--max-live", "2", "--name", "x"], "hold").run().ok();
    launch(&scene, &["--max-live", "2"], "hold").run().expect(6);
    foreign.signal(rustix::process::Signal::KILL);
    foreign.wait();
    launch(&scene, &["--max-live", "2"], "hold").run().ok();
    scene.tool("tb-kill").arg("--all").run().ok();
    scene.assert_quiet();
}

#[test]
fn t40_only_what_the_caller_may_kill_is_named_and_every_line_can_be_copied() {
    let scene = Scene::new();
    let dir = ["--log-dir", "other dir"];
    for (owner, name) in [("ann", "a 1"), ("ann", "a2"), ("bob", "b"), ("bob", "b's 2")] {
        launch(&scene, &[&dir[..], &["--owner", owner, "--name", name]].concat(), "hold").run().ok();
    }
    launch(&scene, &[&dir[..], &["--name", "nobody's"]].concat(), "hold").run().ok();
    let refused = |flags: &[&str]| {
        launch(&scene, &[&dir[..], &["--max-live", "2"], flags].concat(), "hold").run().expect(6)
    };
    let out = refused(&["--owner", "ann"]);
    assert_eq!(kill_lines(&out).len(), 2, "{out}");
    assert!(out.stderr.contains("and 3 of other owners") && !out.stderr.contains("b's"), "{out}");
    for line in kill_lines(&out) {
        scene.sh(line).run().ok().says("Killed a");
    }
    let out = refused(&[]);
    assert_eq!(kill_lines(&out).len(), 1, "{out}");
    assert!(out.stderr.contains("and 2 of other owners"), "{out}");
    scene.sh(kill_lines(&out)[0]).run().ok().says("Killed nobody's");
    // A scope that sees none names none.
    let out = refused(&["--owner", "eve"]);
    assert!(kill_lines(&out).is_empty() && out.stderr.contains("and 2 of other owners"), "{out}");
    // One that sees all.
    let out = refused(&["--all-owners"]);
    assert!(kill_lines(&out).len() == 2 && !out.stderr.contains("other owners"), "{out}");
    for line in kill_lines(&out) {
        scene.sh(line).run().ok().says("Killed b");
    }
    launch(&scene, &[&dir[..], &["--max-live", "1", "--name", "x"]].concat(), "exit 0").run().ok();
    scene.assert_quiet();
}

#[test]
fn t05_a_cap_that_is_none_is_a_usage_error_that_names_it() {
    let scene = Scene::new();
    let before = scene.files();
    for bad in ["0", "-1", "x", "1.5", "1 2", "99999999999999999999", "0x1"] {
        let flag = format!("--max-live={bad}");
        scene.tool("tb-launch").args([&flag, "--", "true"]).run().expect(2).complains("--max-live");
        let out = scene.tool("tb-launch").args(["--", "true"]).env("TB_MAX_LIVE", bad).run().expect(2);
        assert!(out.stderr.contains("TB_MAX_LIVE") && out.stderr.contains(bad), "{out}");
    }
    scene.tool("tb-launch").args(["--max-live=", "--", "true"]).run().expect(2).complains("--max-live");
    scene.assert_untouched(&before);
    launch(&scene, &["--name", "x"], "exit 0").env("TB_MAX_LIVE", "").run().ok();
    scene.wait_for("x", 0);
}

#[test]
fn t05_a_job_launched_inside_a_job_does_not_count_its_outer_one() {
    let scene = Scene::new();
    let script = "tb-launch --max-live 1 --name inner -- tb-fixture hold; echo $? > inner; \
                  tb-launch --max-live 1 --name second -- tb-fixture hold 2> said; echo $? > second; \
                  tb-fixture role outer hold";
    launch_sh(&scene, &["--name", "outer"], script).run().ok();
    scene.await_birth("outer");
    assert_eq!((scene.read("inner").as_str(), scene.read("second").as_str()), ("0\n", "6\n"));
    let said = scene.read("said");
    assert!(said.contains("tb-kill inner") && !said.contains("tb-kill outer"), "{said}");
    // From outside both count.
    launch(&scene, &["--max-live", "2"], "hold").run().expect(6);
    scene.tool("tb-kill").arg("outer").run().ok();
    until("the inner job is over, too", || (scene.status("inner")["status"] == "FINISHED").then_some(()));
    scene.assert_quiet();
}
