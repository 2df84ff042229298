//! Who goes, and who stays.

use crate::scene::{Process, Scene, lives};
use tb_shared::process::Ident;
use tb_tests::until;

pub(crate) const HANGS: &str = "
import time
def test_hangs():
    time.sleep(120)
";

/// Twenty processes that mention pytest and are none.
fn look_alikes(scene: &Scene) -> Vec<Process> {
    // A program under any name: it hangs whatever its arguments say.
    let hang = scene.file("hang.py", "import time\ntime.sleep(120)\n");
    let hang = hang.to_str().unwrap();
    let python = Scene::python();
    let bin = scene.dir().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let named = |name: &str| {
        let path = bin.join(name);
        std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = "read line < fifo";
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.dir().join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let mut all = vec![
        vec![
            python.clone(),
            "-c".into(),
            "import time; time.sleep(120)".into(),
            "-m".into(),
            "pytest".into(),
        ],
        vec![python.clone(), "-uc".into(), "import time; time.sleep(120)".into(), "pytest".into()],
        vec![python.clone(), hang.into(), "-m".into(), "pytest".into()],
        vec![python.clone(), hang.into(), "pytest".into(), "tests/".into()],
        vec![python.clone(), "-W".into(), "ignore::pytest".into(), hang.into()],
        vec![python.clone(), "-X".into(), "pytest".into(), hang.into()],
        vec![python, "-u".into(), hang.into(), "python -m pytest".into()],
        vec!["/bin/sh".into(), "-c".into(), "read line < fifo # python -m pytest".into()],
        vec!["/bin/sh".into(), "-c".into(), script.into(), "pytest".into(), "tests".into()],
        vec!["/usr/bin/env".into(), "sleep".into(), "120".into()],
        vec!["sleep".into(), "120".into()],
    ];
    for name in ["vim", "grep", "tail", "less", "node", "claude", "rg", "pytest-watch", "pytestx"] {
        all.push(vec![
            named(name),
            "-c".into(),
            script.into(),
            "-m".into(),
            "pytest".into(),
            "pytest.ini".into(),
        ]);
    }
    assert_eq!(all.len(), 20);
    let start = |argv: &Vec<String>| {
        // env executes what it runs: what is seen is that.
        let argv: Vec<&str> = argv.iter().map(String::as_str).filter(|a| *a != "/usr/bin/env").collect();
        Process::new("orphan", &argv)
    };
    all.iter().map(start).collect()
}

fn pids(idents: &[Ident]) -> Vec<i32> {
    let mut pids: Vec<i32> = idents.iter().map(|i| i.pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn six_hung_runs_whose_session_is_dead_go_and_everybody_else_stays() {
    let scene = Scene::new();
    scene.file("tests/test_hangs.py", HANGS);
    std::fs::create_dir(scene.other().join("tests")).unwrap();
    std::fs::write(scene.other().join("tests/test_hangs.py"), HANGS).unwrap();
    let python = Scene::python();
    let argv = [&python, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_hangs.py"];
    let script = std::path::Path::new(&python).with_file_name("pytest");
    let by_name = [script.to_str().unwrap(), "-p", "no:cacheprovider", "tests"];
    let run = |how| Process::new(how, &argv);
    let named = || Process::new("orphan", &by_name);
    let six = scene.start(&[run("orphan"), run("orphan"), run("orphan"), named(), named(), named()]);
    let mut stay = scene.start(&[
        run("orphan").cwd(&scene.other()),
        run("shell"),
        run("adopted"),
        // It leads its session, under a subreaper that nobody knows: that may be who started it.
        run("leader"),
    ]);
    stay.extend(scene.start(&look_alikes(&scene)));
    let job = scene.tool("tb-launch").args(["--", &python, "-m", "pytest", "tests"]).output().unwrap();
    let said = String::from_utf8(job.stdout).unwrap();
    let pid: i32 =
        said.split("[PID: ").nth(1).and_then(|s| s.split(']').next()).expect(&said).parse().unwrap();
    stay.push(Ident { pid, start: tb_shared::process::read_stat(pid).expect("the job runs").start });

    assert_eq!(scene.found(&[]), pids(&six));
    assert_eq!(scene.found(&["--cwd", scene.other().to_str().unwrap()]), [stay[0].pid]);
    assert_eq!(scene.found(&["--older", "1h"]), [0; 0]);
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(six.iter().all(|&i| !lives(i)), "{swept:?}");
    for ident in &stay {
        assert!(lives(*ident), "{} was hit: {swept:?}", ident.pid);
    }
    let line = swept.line(six[0]);
    assert!(line.contains(scene.dir().to_str().unwrap()) && line.contains("-m pytest"), "{line}");
    assert!(line.contains("its session's leader") && line.ends_with("stopped by TERM"), "{line}");
    let killed = scene.tool("tb-kill").args(["--all", "--grace", "1"]).output().unwrap();
    assert!(killed.status.success(), "{killed:?}");
}

#[test]
fn a_pattern_finds_other_orphans_and_only_orphans() {
    let scene = Scene::new();
    let [orphan, owned] = scene
        .start(&[Process::new("orphan", &["sleep", "117"]), Process::new("shell", &["sleep", "117"])])
        .try_into()
        .unwrap();
    assert_eq!(scene.found(&[]), [0; 0]);
    assert_eq!(scene.found(&["--match", r"^sleep 11\d$"]), [orphan.pid]);
    let swept = scene.sweep(&["--match", "sleep 117"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(!lives(orphan) && lives(owned));
    for (bad, why) in [("(", "unclosed group"), ("x*", "matches every command line")] {
        let refused = scene.sweep(&["--match", bad]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.starts_with("tb-reap-orphans: cannot use --match") && refused.err.contains(why));
    }
}

#[test]
fn c31_a_recipe_and_a_shell_that_mention_pytest_live_on() {
    let scene = Scene::new();
    scene.file("tests/test_hangs.py", HANGS);
    scene.file("Mk", "reap:\n\t@tb-reap-orphans --grace 10 && echo made # python -m pytest tests\n");
    let python = Scene::python();
    let orphan = || scene.start(&[Process::new("orphan", &[&python, "-m", "pytest", "tests"])])[0];
    let first = orphan();
    let made = Scene::answer(scene.command("make").args(["-f", "Mk", "reap", "TESTS=pytest"]));
    assert_eq!((made.code, made.last()), (Some(0), "made"), "{made:?}");
    let second = orphan();
    let script = "tb-reap-orphans; echo \"$? python -m pytest\"";
    let said = Scene::answer(scene.command("bash").args(["-c", script, "pytest"]));
    assert_eq!((said.code, said.last()), (Some(0), "0 python -m pytest"), "{said:?}");
    assert!(!lives(first) && !lives(second));
}

#[test]
fn what_is_found_is_told_as_json_too() {
    let scene = Scene::new();
    scene.file("tests/test_hangs.py", HANGS);
    let python = Scene::python();
    let run = Process::new("orphan", &[&python, "-m", "pytest", "tests"]).child(&["sleep", "116"]);
    let orphan = scene.start(&[run])[0];
    let helper = until("its child runs", || {
        let all = tb_shared::process::Snapshot::take().ok()?;
        all.descendants(orphan.pid).iter().find(|r| r.comm == "sleep").map(|r| r.pid)
    });
    let swept = scene.sweep(&["--json"]);
    assert_eq!(swept.code, Some(0));
    let objects = swept.objects();
    let of =
        |pid: i32| objects.iter().find(|o| o["pid"] == pid).unwrap_or_else(|| panic!("{pid}: {swept:?}"));
    let main = of(orphan.pid);
    assert_eq!((&main["v"], &main["kind"], &main["action"]), (&1.into(), &"pytest".into(), &"term".into()));
    assert_eq!((&main["left"], &main["cwd"]), (&false.into(), &scene.dir().to_str().unwrap().into()));
    assert!(main["orphan"].as_str().unwrap().starts_with("its session's leader"), "{main}");
    let below = of(helper);
    assert_eq!(below["evidence"], format!("below {}", orphan.pid));
    assert_eq!((&below["kind"], &below["orphan"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert!(!lives(orphan));
}
