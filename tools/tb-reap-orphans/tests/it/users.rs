//! Other users' processes.

use crate::scene::{Process, Scene, lives};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use tb_shared::process::Snapshot;
use tb_tests::{root, until};

const NOBODY: u32 = 65534;

#[test]
fn other_users_orphans_stay_unless_root_asks() {
    if !root() {
        eprintln!("not root: shown on written pictures alone (tb_shared::sweep)");
        return;
    }
    let scene = Scene::new();
    let look = look_alike(&scene);
    let argv = [look.as_str(), "-c", "read line < fifo"];
    let other = scene.start(&[Process::new("orphan", &argv).nobody()])[0];
    assert_eq!(scene.found(&[]), [0; 0]);
    assert_eq!(scene.found(&["--all-users"]), [other.pid]);
    let swept = scene.sweep(&["--all-users"]);
    assert_eq!((swept.code, swept.last()), (Some(0), "0 left"), "{swept:?}");
    assert!(!lives(other));
}

#[test]
fn what_is_not_ours_to_signal_is_named() {
    if !root() {
        eprintln!("not root: shown on written pictures alone (tb_shared::sweep)");
        return;
    }
    let scene = Scene::new();
    let tool = scene.dir().join("tb-reap-orphans");
    std::fs::copy(env!("CARGO_BIN_EXE_tb-reap-orphans"), &tool).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let look = look_alike(&scene);
    let argv = [look.as_str(), "-c", "read line < fifo"];
    let orphan = scene.start(&[Process::new("orphan", &argv).nobody().child(&["sleep", "115"])])[0];
    let child = until("root's child of it runs", || {
        let all = Snapshot::take().ok()?;
        all.descendants(orphan.pid).iter().find(|row| row.comm == "sleep").map(|row| row.pid)
    });
    let mut command = scene.command(&tool);
    let swept = Scene::answer(command.args(["--grace", "0.5"]).uid(NOBODY).gid(NOBODY));
    assert_eq!((swept.code, swept.last()), (Some(7), "1 left"), "{swept:?}");
    assert!(swept.err.starts_with("tb-reap-orphans: cannot stop all orphans: 1 left\n"), "{swept:?}");
    let named = format!("  {child} sleep 115: another user's (uid 0), not ours to signal");
    assert!(swept.err.contains(&named), "{swept:?}");
    assert!(!lives(orphan));
}

/// A program of this name that waits, for whom the test's Python may be out of reach.
fn look_alike(scene: &Scene) -> String {
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.dir().join("fifo"), rustix::fs::Mode::from_raw_mode(0o777))
        .unwrap();
    std::os::unix::fs::chown(scene.dir().join("fifo"), Some(NOBODY), Some(NOBODY)).unwrap();
    let path = scene.dir().join("pytest");
    std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
    path.to_str().unwrap().to_owned()
}
