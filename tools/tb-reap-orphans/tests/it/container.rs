//! A PID namespace whose first process is no init.

use crate::orphans::HANGS;
use crate::scene::Scene;
use tb_tests::root;

#[test]
fn what_a_shell_as_pid_1_reads_is_owned_and_the_rest_is_not() {
    if !root() {
        eprintln!("not root: shown on written pictures alone (tb_shared::sweep)");
        return;
    }
    let scene = Scene::new();
    scene
        .file("test_hangs.py", &HANGS.replace("time.sleep", "open('ready', 'a').write('x')\n    time.sleep"));
    let python = Scene::python();
    // Both sessions' leaders exit at once, and PID 1 adopts what they leave; pytest captures its output meanwhile.
    scene.file(
        "first.sh",
        &format!(
            "run() {{ setsid sh -c '{python} -m pytest -p no:cacheprovider test_hangs.py & echo $! > \"$0\"' \"$1\"; }}
            run read </dev/null
            run unread </dev/null >/dev/null 2>&1
            until [ \"$(cat ready 2>/dev/null)\" = xx ]; do sleep 0.02; done
            tb-reap-orphans --dry-run --json > found
            "
        ),
    );
    let mut unshare = scene.command("unshare");
    let said = Scene::answer(unshare.args(["-pf", "--kill-child", "--mount-proc", "sh", "first.sh"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    let read = |name: &str| std::fs::read_to_string(scene.dir().join(name)).unwrap();
    let found: Vec<serde_json::Value> =
        read("found").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let pids: Vec<i64> = found.iter().filter_map(|o| o["pid"].as_i64()).collect();
    assert_eq!(pids, [read("unread").trim().parse::<i64>().unwrap()], "{said:?} {found:?}");
}
