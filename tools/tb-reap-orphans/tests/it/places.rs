//! Where orphans work.

use crate::orphans::HANGS;
use crate::scene::{Process, Scene, lives};
use std::os::unix::fs::symlink;
use tb_tests::until;

#[test]
fn an_orphan_is_found_in_its_work_tree_and_no_other() {
    let scene = Scene::new();
    for dir in [".git", "sub/tests", "linked/tests", "gone"] {
        std::fs::create_dir_all(scene.dir().join(dir)).unwrap();
    }
    scene.file("linked/.git", "gitdir: ../.git/worktrees/linked\n");
    scene.file("sub/tests/test_hangs.py", HANGS);
    scene.file("linked/tests/test_hangs.py", HANGS);
    let link = scene.other().join("link");
    symlink(scene.dir(), &link).unwrap();
    // Python cannot start in a directory that is gone.
    let ready = scene.dir().join("ready");
    let test = scene.file(
        "test_ready.py",
        &HANGS.replace("time.sleep", &format!("open({ready:?}, 'w').close()\n    time.sleep")),
    );
    let python = Scene::python();
    // With relative paths, the tree's name is nowhere on the command line.
    let relative = [&python, "-m", "pytest", "tests/test_hangs.py"];
    let absolute = [&python, "-m", "pytest", "-p", "no:cacheprovider", test.to_str().unwrap()];
    let [below, linked, by_link, deleted] = scene
        .start(&[
            Process::new("orphan", &relative).cwd(&scene.dir().join("sub")),
            Process::new("orphan", &relative).cwd(&scene.dir().join("linked")),
            Process::new("orphan", &relative).cwd(&link.join("sub")),
            Process::new("orphan", &absolute).cwd(&scene.dir().join("gone")),
        ])
        .try_into()
        .unwrap();
    until("the test runs", || ready.exists().then_some(()));
    std::fs::remove_dir(scene.dir().join("gone")).unwrap();
    let mut mine = [below.pid, by_link.pid, deleted.pid];
    mine.sort_unstable();
    assert_eq!(scene.found(&[]), mine);
    let from = |dir: &std::path::Path| {
        let mut command = scene.tool("tb-reap-orphans");
        Scene::answer(command.arg("--dry-run").current_dir(dir))
    };
    assert_eq!(from(&link.join("sub")).last(), "3 left");
    let other = from(&scene.dir().join("linked"));
    assert_eq!((other.code, other.last()), (Some(1), "1 left"), "{other:?}");
    assert!(other.line(linked).ends_with("would be stopped"), "{other:?}");
    let swept = scene.sweep(&[]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(![below, by_link, deleted].into_iter().any(lives) && lives(linked));
    let named = scene.sweep(&["--cwd", link.to_str().unwrap()]);
    assert_eq!((named.code, named.last()), (Some(0), "0 left"), "{named:?}");
    assert!(!lives(linked));
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let scene = Scene::new();
    let refused = scene.sweep(&["--cwd", "nowhere"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.starts_with("tb-reap-orphans: cannot sweep in nowhere: "), "{refused:?}");
    let both = scene.sweep(&["--cwd", ".", "--any-cwd"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}
