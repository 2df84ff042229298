//! A job is its own: whatever becomes of the caller's terminal, group, pipes, descriptors and signals.

use crate::job::{Job, launch_argv};
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::time::{Duration, Instant};
use tb_tests::{Scene, until};

fn descriptors(pid: u32) -> Vec<(i32, String)> {
    let list = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it is ours");
    let mut all: Vec<(i32, String)> = list
        .flatten()
        .filter_map(|e| {
            let fd = e.file_name().to_str()?.parse().ok()?;
            Some((fd, std::fs::read_link(e.path()).ok()?.to_string_lossy().into_owned()))
        })
        .collect();
    all.sort();
    all
}

/// Starts its arguments on a terminal of their own, waits for a file, and closes the terminal.
const TERMINAL: &str = "
import os, pty, sys, time
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
os.close(master)
_, status = os.waitpid(pid, 0)
print('hung up' if os.WIFSIGNALED(status) and os.WTERMSIG(status) == 1 else status)
";

#[test]
fn a_job_survives_its_launchers_terminal() {
    let scene = Scene::new();
    let script =
        "tb-launch --name j -- tb-fixture await go exit 0 && touch launched; exec tb-fixture role shell hold";
    let out = scene.cmd(tb_tests::python()).args(["-c", TERMINAL, "launched", "sh", "-c", script]).run().ok();
    assert_eq!(out.stdout, "hung up\n");
    let job = Job::named(&scene, "j");
    job.tool("tb-status", &[]).run().expect(3);
    assert_eq!(job.status()["supervision"], "double");
    scene.file("go", "");
    job.wait(0);
    job.assert_ended("passed", "exit");
    assert!(job.records("STOPPING").is_empty());
}

#[test]
fn a_job_survives_the_end_of_the_callers_process_group() {
    let scene = Scene::new();
    let script = "tb-launch --name j -- tb-fixture await go exit 0; exec tb-fixture role caller hold";
    let caller = scene.cmd("sh").args(["-c", script]).through(["new-session"]).spawn();
    scene.await_birth("caller");
    let group = Pid::from_raw(i32::try_from(caller.pid()).unwrap()).unwrap();
    // An unreaped child: the number is ours.
    kill_process_group(group, Signal::KILL).expect("it lives");
    assert_eq!(caller.wait().signal, Some(9));
    let job = Job::named(&scene, "j");
    assert_eq!(job.status()["supervision"], "double");
    scene.file("go", "");
    job.wait(0);
    job.assert_ended("passed", "exit");
}

/// Files of a launch that did not come to its end.
fn unfinished(scene: &Scene) -> Vec<String> {
    let list = std::fs::read_dir(scene.run_dir()).into_iter().flatten().flatten();
    list.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n.starts_with(".new-")).collect()
}

#[test]
fn a_launch_that_is_killed_at_any_moment_leaves_a_whole_job_or_nothing() {
    let scene = Scene::new();
    let (mut whole, mut nothing) = (0, 0);
    // How long a launch takes here, to spread the moments over it.
    let warm =
        scene.tool("tb-launch").args(["--name", "warm", "--", "true"]).through(["new-session"]).run().ok();
    let rounds = 80;
    for round in 0..rounds {
        let name = format!("j{round}");
        let words = ["--name", &name, "--", "tb-fixture", "role", &name, "hold"];
        let launcher = scene.tool("tb-launch").args(words).through(["new-session"]).spawn();
        let group = Pid::from_raw(i32::try_from(launcher.pid()).unwrap()).unwrap();
        let moment = Instant::now() + warm.took * 5 / 4 * round / rounds;
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        // Before it has made its own group there is none of that number: then it is killed alone.
        if kill_process_group(group, Signal::KILL).is_err() {
            launcher.proc().kill();
        }
        launcher.wait();
        let job = Job::named(&scene, &name);
        let there = until("the job is there, or nothing is", || {
            if scene.births().iter().any(|b| b.role == name) {
                return Some(true);
            }
            let tracked = job.tool("tb-status", &[]).run();
            assert!(matches!(tracked.code, Some(3 | 4)), "neither there nor unknown: {tracked}");
            (tracked.code == Some(4) && scene.living().is_empty()).then_some(false)
        });
        if there {
            whole += 1;
            assert_eq!(job.status()["supervision"], "double");
            job.kill("5s", 0).says("Killed");
        } else {
            nothing += 1;
            job.tool("tb-status", &[]).run().expect(4);
        }
        scene.assert_quiet();
    }
    eprintln!("{whole} launched, {nothing} vanished");
    // Whatever files were left are nobody's: the next launch removes them.
    scene.tool("tb-launch").args(["--name", "last", "--wait", "--", "true"]).run().ok();
    assert_eq!(unfinished(&scene), Vec::<String>::new());
}

#[test]
fn nobody_waits_for_a_job_that_reads_the_launchers_output() {
    let scene = Scene::new();
    let hold = "tb-fixture hold";
    let out = scene.sh(&format!("out=$(tb-launch --name a -- {hold}); echo \"<$out>\"")).run().ok();
    assert!(out.stdout.starts_with("<Launched a [PID: "), "{out}");
    scene.sh(&format!("tb-launch --name b -- {hold} 2>&1 | cat")).run().ok().says("Launched b");
    scene.sh(&format!("out=$(tb-launch --json --name c -- {hold}) && test -n \"$out\"")).run().ok();
    scene.tool("tb-kill").args(["--all", "--grace", "20s"]).run().ok();
    scene.assert_quiet();
}

#[test]
fn i58_make_does_not_wait_for_a_job_and_its_jobserver_stays_with_make() {
    let scene = Scene::new();
    scene.file(
        "Makefile",
        "said := $(shell tb-launch --name s -- tb-fixture role s hold)\n\
         all: a b\n\t@echo '$(said)'\n\
         a:\n\t+@tb-launch --name a -- tb-fixture role a env MAKEFLAGS env CARGO_MAKEFLAGS caught-signals hold\n\
         b:\n\t@tb-launch --name b -- tb-fixture role b hold\n",
    );
    let make = scene.cmd("make").args(["-j4", "-k"]).env("CARGO_MAKEFLAGS", "-j4 --jobserver-auth=3,4");
    make.run().ok().says("Launched s").says("Launched a").says("Launched b");
    scene.await_birth("a");
    let job = Job::named(&scene, "a");
    let log = job.log();
    let output: Vec<&str> = log.lines().filter(|l| !l.starts_with("=== GATE")).collect();
    assert!(!log.contains("jobserver") && !output[0].contains("-j"), "{log}");
    assert!(output[0].contains('k'), "other flags stay: {log}");
    assert!(!output[1].contains("jobserver"), "{log}");
    scene.tool("tb-kill").args(["--all", "--grace", "20s"]).run().ok();
    scene.assert_quiet();
}

#[test]
fn c32_c43_a_job_has_no_descriptors_signals_or_terminal_of_its_caller() {
    let scene = Scene::new();
    scene.file("callers", "");
    let words = [
        "ignore", "INT", "ignore", "QUIT", "ignore", "HUP", "ignore", "CHLD", "ignore", "PIPE", "block",
        "USR1", "block", "TERM", "block", "CHLD",
    ];
    let script =
        "exec 5>>callers 9<callers 8>>callers; tb-launch --name j -- tb-fixture caught-signals ids hold";
    scene.sh(script).through(words).run().ok();
    let job = Job::named(&scene, "j");
    scene.await_birth("main");
    let log = job.log();
    for mask in ["SigBlk", "SigIgn"] {
        let line = log.lines().find(|l| l.starts_with(mask)).expect("it is printed");
        let set = u64::from_str_radix(line.rsplit(' ').next().unwrap(), 16).unwrap();
        // Rust's runtime ignores SIGPIPE in the fixture itself; SIGALRM it unblocks.
        assert_eq!(set & !(1 << (libc::SIGPIPE - 1)), 0, "{line}");
    }
    let fds: Vec<&str> = log.lines().filter(|l| l.starts_with("fd ")).collect();
    assert_eq!(fds.len(), 3, "{fds:?}");
    assert_eq!(fds[0], "fd 0 /dev/null");
    let own = job.log_path().canonicalize().unwrap().display().to_string();
    // The name may be the one before it was published.
    for fd in &fds[1..] {
        let target = Path::new(fd.splitn(3, ' ').nth(2).unwrap());
        assert!(target.to_str() == Some(&own) || target.parent() == Path::new(&own).parent(), "{fd}");
    }
    let (front, monitor) = job.halves();
    for half in [front, monitor] {
        let held = until("it has settled", || {
            let held = descriptors(half.pid);
            let foreign = |(_, to): &(i32, String)| to.ends_with("/callers") || to.ends_with("/.lock");
            (!held.iter().any(foreign)).then_some(held)
        });
        assert!(held.iter().take(3).all(|(_, to)| to == "/dev/null"), "{held:?}");
        let own = |to: &str| {
            to == "/dev/null"
                || to.starts_with("anon_inode:")
                || to.starts_with("pipe:")
                || to.contains("/.gate-logs")
        };
        assert!(held.iter().all(|(_, to)| own(to)), "{held:?}");
        // Words between the halves, and in the monitor where a failed exec would say why.
        assert!(held.iter().filter(|(_, to)| to.starts_with("pipe:")).count() <= 2, "{held:?}");
    }
    // Its blocked and ignored TERM was the caller's, not the job's.
    job.kill("30s", 0).says("TERM)");
    job.assert_ended("killed", "kill");
}

#[test]
fn sigpipe_is_the_jobs_own_again() {
    let scene = Scene::new();
    // Rust's runtime ignores it in the launcher: `yes | head` in the job must not go on for ever.
    let out =
        scene.sh("tb-launch --wait --timeout 50s --name j -- sh -c 'yes | head -n1; exit 0'").run().ok();
    assert!(out.stdout.contains("FINISHED (PASS)"), "{out}");
}

#[test]
fn c59_a_command_that_cannot_be_executed_leaves_nothing() {
    let scene = Scene::new();
    scene.file("plain", "");
    for (command, code) in [("./nowhere", 127), ("no-such-command", 127), ("./plain", 126), ("/", 126)] {
        // A directory of PATH that may not be searched would be a permission that is denied.
        let launch =
            scene.tool("tb-launch").args(["--name", "j", "--", command]).env("PATH", "/usr/bin:/bin");
        launch.run().expect(code);
        scene.tool("tb-status").arg("j").run().expect(4);
        scene.assert_quiet();
        let left: Vec<String> = std::fs::read_dir(scene.run_dir())
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|n| n != ".lock" && n != ".gitignore")
            .collect();
        assert_eq!(left, Vec::<String>::new(), "{command}");
    }
}

#[test]
fn c21_of_many_launches_at_an_instant_exactly_one_wins() {
    let scene = Scene::new();
    let launches: Vec<_> = (0..12)
        .map(|_| scene.tool("tb-launch").args(["--name", "j", "--", "tb-fixture", "hold"]).spawn())
        .collect();
    let mut codes: Vec<_> = launches.into_iter().map(|l| l.wait().code).collect();
    codes.sort_unstable();
    let mut expected = vec![Some(0)];
    expected.resize(12, Some(3));
    assert_eq!(codes, expected);
    scene.await_birth("main");
    assert_eq!(scene.births().len(), 1);
    scene.tool("tb-kill").arg("j").run().ok();
    scene.assert_quiet();
}

#[test]
fn a_launch_with_every_standard_descriptor_closed_works() {
    let scene = Scene::new();
    scene
        .tool("tb-launch")
        .args(["--name", "j", "--", "tb-fixture", "caught-signals", "exit", "0"])
        .through(["close", "0", "close", "1", "close", "2"])
        .run();
    let job = Job::named(&scene, "j");
    job.wait(0);
    assert_eq!(job.log().lines().filter(|l| l.starts_with("fd ")).count(), 3, "{}", job.log());
}

#[test]
fn cwd_acts_for_the_job_and_not_for_the_run_directory() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("below")).unwrap();
    let job =
        launch_argv(&scene, "j", &["--cwd", "below"], &["sh", "-c", "pwd; echo $PWD; echo $TB_LOG_DIR"]);
    job.wait(0);
    let below = scene.path("below").display().to_string();
    assert!(
        job.log().contains(&format!("{below}\n{below}\n{}\n", scene.run_dir().display())),
        "{}",
        job.log()
    );
    assert!(!scene.path("below/.gate-logs").exists());
    let _ = Duration::ZERO;
}

/// Launches under a limit: the job is there, or nothing is, and the code says which.
fn launch_within(scene: &Scene, name: &str, limit: [&str; 3]) -> bool {
    let words = ["--name", name, "--", "tb-fixture", "hold"];
    let out = scene.tool("tb-launch").args(words).through(limit).run();
    let job = Job::named(scene, name);
    if out.code == Some(0) {
        job.tool("tb-status", &[]).run().expect(3);
        assert_eq!(job.status()["supervision"], "double");
        job.kill("20s", 0);
    } else {
        job.tool("tb-status", &[]).run().expect(4);
    }
    scene.assert_quiet();
    assert_eq!(unfinished(scene), Vec::<String>::new(), "{out}");
    out.code == Some(0)
}

#[test]
fn a_launch_without_enough_descriptors_leaves_nothing() {
    let scene = Scene::new();
    let launched: Vec<bool> = (4..40)
        .map(|n| launch_within(&scene, &format!("n{n}"), ["limit", "nofile", &n.to_string()]))
        .collect();
    assert!(!launched[0] && launched[launched.len() - 1], "{launched:?}");
}

#[test]
fn a_launch_that_cannot_fork_leaves_nothing() {
    let scene = Scene::nobody();
    // The limit counts all processes of the user, whoever started them: they come and go meanwhile.
    let uid = if tb_tests::root() { tb_tests::NOBODY } else { rustix::process::geteuid().as_raw() };
    let threads_of_user = || {
        use std::os::unix::fs::MetadataExt;
        let all = tb_tests::processes().into_iter().map(|(p, _)| format!("/proc/{}/task", p.pid));
        let own = all.filter(|dir| std::fs::metadata(dir).is_ok_and(|m| m.uid() == uid));
        own.map(|dir| std::fs::read_dir(dir).map_or(0, Iterator::count)).sum::<usize>()
    };
    for more in 0..8 {
        let limit = (threads_of_user() + more).to_string();
        launch_within(&scene, &format!("p{more}"), ["limit", "nproc", &limit]);
    }
}
