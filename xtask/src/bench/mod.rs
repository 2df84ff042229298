//! `bench`: the tools beside what people use today, in one run, interleaved; medians and their ratios.
//!
//! A ratio says more than a time: both sides have the same machine, the same load and the same page cache.

mod data;
mod formats;
mod measure;
mod peers;

use crate::run;
use crate::{Failure, Result, doing, tree};
use measure::{Case, clock, table};
use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) use peers::peer;

/// For each measured command.
const LIMIT: Duration = Duration::from_secs(120);

/// What can be measured, in this order.
type Chapter = (&'static str, fn(&Bench) -> Result);
const CHAPTERS: &[Chapter] = &[
    ("launch", launch),
    ("wait", wait),
    ("status", status),
    ("list", list),
    ("guard", guard),
    ("sweep", sweep),
    ("results", results),
    ("formats", formats::formats),
];

/// Runs the chapters asked for, all of them when none was.
pub(crate) fn bench(words: &[&str]) -> Result {
    let (mut rounds, mut wanted) = (None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if *word == "-n" {
            let number = words.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
            rounds = Some(
                number.ok_or_else(|| Failure::new("cannot read -n: it wants a number of rounds").code(2))?,
            );
        } else if CHAPTERS.iter().any(|(name, _)| name == word) {
            wanted.push(*word);
        } else {
            let known: Vec<_> = CHAPTERS.iter().map(|(name, _)| *name).collect();
            return Err(Failure::new(format!(
                "there is no benchmark {word:?}\n  there are: {}",
                known.join(" ")
            ))
            .code(2));
        }
    }
    let mut packages = tree::tools()?;
    packages.push("xtask".to_owned());
    let built = crate::release::build(&packages)?;
    let target = tree::target()?;
    let bench = Bench {
        bin: built,
        dir: target.join("bench"),
        rounds,
        next: Cell::new(0),
        children: RefCell::default(),
    };
    tree::make_dir(&bench.dir)?;
    for (name, chapter) in CHAPTERS {
        if wanted.is_empty() || wanted.contains(name) {
            let done = chapter(&bench);
            bench.stop_children();
            done?;
        }
    }
    Ok(())
}

struct Bench {
    bin: PathBuf,
    dir: PathBuf,
    rounds: Option<usize>,
    next: Cell<u32>,
    /// Started by us and to be stopped and waited for at the end of a chapter.
    children: RefCell<Vec<Child>>,
}

impl Bench {
    fn rounds(&self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual)
    }

    /// A built tool, or a line that says why its chapter is left out.
    fn tool(&self, name: &str) -> Option<PathBuf> {
        let path = self.bin.join(name);
        if path.is_file() {
            return Some(path);
        }
        println!("  {name}: skipped, it is not built");
        None
    }

    /// A peer, or a line that says that it is not there.
    fn peer(&self, name: &str) -> Option<PathBuf> {
        let path = tree::on_path(name);
        if path.is_none() {
            println!("  {name}: skipped, it is not installed");
        }
        path
    }

    /// Ourselves, in another role.
    fn own(&self) -> PathBuf {
        self.bin.join("xtask")
    }

    fn fresh(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// An empty directory of that name.
    fn empty(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        tree::remove_dir(&dir)?;
        tree::make_dir(&dir)?;
        Ok(dir)
    }

    fn spawn(&self, command: &mut Command) -> Result<u32> {
        let child = doing("start a process to look at", command.stdin(Stdio::null()).spawn())?;
        let pid = child.id();
        self.children.borrow_mut().push(child);
        Ok(pid)
    }

    fn stop_children(&self) {
        for child in self.children.borrow_mut().iter_mut() {
            let _ = child.kill();
        }
        for mut child in self.children.borrow_mut().drain(..) {
            let _ = child.wait();
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop_children();
    }
}

/// A command of the measured kind: quiet, in a directory.
fn quiet(program: &Path, dir: &Path) -> Command {
    let mut command = run::command(program);
    command.current_dir(dir).env("LC_ALL", "C").stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Seconds that a command took; one that gave another code than those expected is not measured.
fn timed(command: &mut Command, codes: &[i32]) -> Result<Option<f64>> {
    let ended = run::run(command, LIMIT)?;
    if codes.contains(&ended.code) {
        return Ok(Some(ended.seconds));
    }
    eprintln!(
        "xtask: {} gave exit code {}: not counted",
        command.get_program().to_string_lossy(),
        ended.code
    );
    Ok(None)
}

fn simple<'a>(name: &str, program: &Path, dir: &Path, args: &[&str], codes: &'a [i32]) -> Case<'a> {
    let mut command = quiet(program, dir);
    command.args(args);
    Case::new(name, move || timed(&mut command, codes))
}

/// Until the file holds a number and the end of its line.
fn stamp(file: &Path) -> Result<f64> {
    let end = clock() + LIMIT.as_secs_f64();
    loop {
        run::check_interrupt()?;
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(number) = text.strip_suffix('\n').and_then(|t| t.parse().ok()) {
            return Ok(number);
        }
        if clock() > end {
            return Err(Failure::new(format!(
                "no job wrote {} within {} s",
                file.display(),
                LIMIT.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The call returns; the job's first instruction.
fn launch(bench: &Bench) -> Result {
    println!("\nlaunch: from the call to its return, and to the job's first instruction");
    let dir = bench.empty("launch")?;
    let runs: RefCell<Vec<(String, f64)>> = RefCell::default();
    let one = |name: &str, make: &dyn Fn(&str, &str) -> Command| -> Result<Option<f64>> {
        let job = format!("j{}", bench.fresh());
        let file = dir.join(format!("{job}.stamp"));
        let start = clock();
        let seconds = timed(&mut make(&job, &file.to_string_lossy()), &[0])?;
        if seconds.is_some() {
            runs.borrow_mut().push((name.to_owned(), stamp(&file)? - start));
        }
        Ok(seconds)
    };
    let own = bench.own();
    let mut cases = Vec::new();
    if let (Some(sh), Some(_), Some(_)) = (bench.peer("sh"), bench.peer("setsid"), bench.peer("nohup")) {
        let (dir, own, one) = (&dir, &own, &one);
        cases.push(Case::new("setsid nohup sh -c &", move || {
            one("setsid nohup sh -c &", &|job, file| {
                let mut command = quiet(&sh, dir);
                // The words go by the environment: no quoting to get wrong.
                let script = r#"setsid nohup sh -c 'exec "$OWN" peer stamp "$FILE"' </dev/null >"$JOB.log" 2>&1 & echo $! >"$JOB.pid""#;
                command.args(["-c", script]).env("OWN", own).env("FILE", file).env("JOB", job);
                command
            })
        }));
    }
    if let Some(tool) = bench.tool("tb-launch") {
        let (dir, own, one) = (&dir, &own, &one);
        cases.push(Case::new("tb-launch", move || {
            one("tb-launch", &|job, file| {
                let mut command = quiet(&tool, dir);
                command
                    .args([
                        "--log-dir",
                        "run",
                        "--name",
                        job,
                        "--",
                        "sh",
                        "-c",
                        r#"exec "$0" peer stamp "$1""#,
                    ])
                    .arg(own)
                    .arg(file);
                command
            })
        }));
    }
    let names: Vec<String> = cases.iter().map(|c| c.name.clone()).collect();
    let returns = measure::interleave(bench.rounds(30), cases)?;
    table("the call returns", &returns);
    let runs = runs.into_inner();
    // The first sample of each is the round that warms up.
    let of = |name: &String| runs.iter().filter(|(n, _)| n == name).map(|(_, s)| *s).skip(1).collect();
    let series: Vec<_> = names.iter().map(|n| (n.clone(), of(n))).collect();
    table("the job runs", &series);
    Ok(())
}

/// A job's last instruction; its waiter has returned.
fn wait(bench: &Bench) -> Result {
    println!("\nwait: from a job's last instruction to its waiter's return");
    let dir = bench.empty("wait")?;
    let own = bench.own();
    // Of different lengths, so that no waiter's rhythm can suit them all.
    let length = || format!("{}", 300 + (bench.next.get() * 137) % 400);
    let latency = |waiter: &mut Command, codes: &[i32], file: &Path| -> Result<Option<f64>> {
        let ended = timed(waiter, codes)?;
        let end = clock();
        Ok(ended.map(|_| stamp(file)).transpose()?.map(|stamped| end - stamped))
    };
    let mut cases = Vec::new();
    {
        let (dir, own, latency, length) = (&dir, &own, &latency, &length);
        cases.push(Case::new("bare pidfd", move || {
            let file = dir.join(format!("p{}.stamp", bench.fresh()));
            let pid = bench.spawn(quiet(own, dir).args(["peer", "stamp-after", &length()]).arg(&file))?;
            latency(quiet(own, dir).args(["peer", "wait", &pid.to_string()]), &[0], &file)
        }));
    }
    if let (Some(launch), Some(wait)) = (bench.tool("tb-launch"), bench.tool("tb-wait")) {
        let (dir, own, latency, length) = (&dir, &own, &latency, &length);
        cases.push(Case::new("tb-wait", move || {
            let job = format!("w{}", bench.fresh());
            let file = dir.join(format!("{job}.stamp"));
            let mut start = quiet(&launch, dir);
            start
                .args(["--log-dir", "run", "--name", &job, "--"])
                .arg(own)
                .args(["peer", "stamp-after", &length()])
                .arg(&file);
            if timed(&mut start, &[0])?.is_none() {
                return Ok(None);
            }
            latency(quiet(&wait, dir).args(["--log-dir", "run", &job]), &[0], &file)
        }));
    }
    table("job's end to waiter's return", &measure::interleave(bench.rounds(15), cases)?);
    Ok(())
}

/// One job with a log of 1 GB.
fn status(bench: &Bench) -> Result {
    println!("\nstatus: one finished job with a log of 1 GB, page cache warm");
    let Some(tool) = bench.tool("tb-status") else { return Ok(()) };
    let dir = bench.dir.join("one");
    let log = data::one(&dir, 1 << 30)?;
    let log = log.to_string_lossy();
    let mut cases = Vec::new();
    if let Some(tail) = bench.peer("tail") {
        cases.push(simple("tail -n 15", &tail, &dir, &["-n", "15", &log], &[0]));
    }
    cases.push(simple("tb-status NAME", &tool, &dir, &["--log-dir", ".", data::NAME], &[0]));
    table("status of one job, log of 1 GB", &measure::interleave(bench.rounds(31), cases)?);
    Ok(())
}

/// All of a thousand.
fn list(bench: &Bench) -> Result {
    println!("\nlist: 1,000 finished jobs with logs of 20 KB");
    let Some(tool) = bench.tool("tb-status") else { return Ok(()) };
    let dir = bench.dir.join("many");
    data::many(&dir, 1000)?;
    let mut cases = Vec::new();
    if let (Some(sh), Some(_)) = (bench.peer("sh"), bench.peer("xargs")) {
        cases.push(simple(
            "xargs tail -qn2",
            &sh,
            &dir,
            &["-c", r"ls | grep '\.log$' | xargs tail -qn2"],
            &[0],
        ));
    }
    cases.push(simple("tb-status", &tool, &dir, &["--log-dir", "."], &[0]));
    cases.push(simple("tb-status --json", &tool, &dir, &["--log-dir", ".", "--json"], &[0]));
    table("status of 1,000 finished jobs", &measure::interleave(bench.rounds(31), cases)?);
    Ok(())
}

/// What a guard costs, and what it is while it waits.
fn guard(bench: &Bench) -> Result {
    println!("\nguard: GUARD 10 true, and GUARD 10 sleep 4 looked at for 3 s");
    let (Some(timeout), Some(bare)) = (bench.peer("timeout"), bench.peer("true")) else { return Ok(()) };
    let Some(tool) = bench.tool("tb-guard") else { return Ok(()) };
    let dir = bench.empty("guard")?;
    let cases = vec![
        simple("timeout 10 true", &timeout, &dir, &["10", "true"], &[0]),
        simple("tb-guard 10 true", &tool, &dir, &["10", "true"], &[0]),
        simple("true alone", &bare, &dir, &[], &[0]),
    ];
    table("guard overhead", &measure::interleave(bench.rounds(300), cases)?);
    println!("\n| guard that waits | processes | RSS kB | context switches in 3 s |\n|---|---|---|---|");
    for (name, program) in [("timeout", timeout), ("tb-guard", tool)] {
        let pid = bench.spawn(quiet(&program, &dir).args(["10", "sleep", "4"]))?;
        let sleeping = |pids: &[u32]| pids.iter().any(|p| measure::comm(*p) == "sleep");
        let end = clock() + LIMIT.as_secs_f64();
        while !sleeping(&measure::tree(pid)) && clock() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let look = || {
            let guards: Vec<u32> =
                measure::tree(pid).into_iter().filter(|p| measure::comm(*p) != "sleep").collect();
            let sum = |of: fn(u32) -> u64| guards.iter().map(|p| of(*p)).sum::<u64>();
            (guards.len(), sum(measure::rss_kb), sum(measure::switches))
        };
        // The window is what is measured here, not a way to wait for something; its start is after the
        // guard has settled.
        std::thread::sleep(Duration::from_millis(300));
        let before = look();
        std::thread::sleep(Duration::from_secs(3));
        let after = look();
        println!("| {name} | {} | {} | {} |", after.0, after.1, after.2.saturating_sub(before.2));
    }
    Ok(())
}

/// A look at many processes.
fn sweep(bench: &Bench) -> Result {
    const SLEEPERS: usize = 1000;
    println!("\nsweep: among {SLEEPERS} sleeping processes");
    let Some(tool) = bench.tool("tb-reap-orphans") else { return Ok(()) };
    let (Some(pgrep), Some(sleep)) = (bench.peer("pgrep"), bench.peer("sleep")) else { return Ok(()) };
    let dir = bench.empty("sweep")?;
    for _ in 0..SLEEPERS {
        // They end by themselves should nobody be left to stop them.
        bench.spawn(quiet(&sleep, &dir).arg("300"))?;
    }
    let cases = vec![
        simple("pgrep -f", &pgrep, &dir, &["-f", "pytest tests/"], &[0, 1]),
        simple("tb-reap-orphans --dry-run", &tool, &dir, &["--dry-run"], &[0, 1]),
    ];
    table("sweep", &measure::interleave(bench.rounds(15), cases)?);
    Ok(())
}

/// All counts of a long log.
fn results(bench: &Bench) -> Result {
    println!("\nresults: a `pytest -v` log of 212 MB, page cache warm");
    let Some(tool) = bench.tool("tb-results") else { return Ok(()) };
    let (log, truth) = data::pytest_log(&bench.dir.join("pytest"), 212_000_000)?;
    let dir = bench.dir.clone();
    // First whether it is right: a wrong answer is not worth timing.
    let args = ["--format", "pytest", "--file"];
    let (code, said) = run::output(quiet(&tool, &dir).args(args).arg(&log), LIMIT)?;
    if !said.contains(&truth) {
        println!("  tb-results: skipped, its answer (exit code {code}) does not say {truth:?}");
        return Ok(());
    }
    let text = log.to_string_lossy();
    let mut cases = Vec::new();
    if let Some(grep) = bench.peer("grep") {
        cases.push(simple("LC_ALL=C grep -c PASSED", &grep, &dir, &["-c", "PASSED", &text], &[0]));
    }
    cases.push(simple("tb-results", &tool, &dir, &["--format", "pytest", "--file", &text], &[0, 1]));
    table("results of 212 MB", &measure::interleave(bench.rounds(9), cases)?);
    let peak = measure::peak_rss_kb(quiet(&tool, &dir).args(args).arg(&log))?;
    println!("\npeak memory of tb-results: {:.1} MB", peak as f64 / 1024.0);
    Ok(())
}
