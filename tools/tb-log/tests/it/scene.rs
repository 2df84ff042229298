//! A directory with logs in it, and bounded children.

use rustix::fs::FallocateFlags;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tb_shared::contract::{Dropped, Footer, Header, Leaks, Outcome, Reason, now, rfc3339};
use tb_tests::until;

pub(crate) struct Scene {
    base: tempfile::TempDir,
}

/// What a child left behind.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Done {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("output is UTF-8")
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text().lines().collect()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.text(), self.err))
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Done {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self
    }
}

/// A child that does not outlive its test.
pub(crate) struct Bounded(pub(crate) Child);

impl Drop for Bounded {
    fn drop(&mut self) {
        // A child that has ended already cannot be killed: that is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bounded {
    /// Waits for the end and reads everything.
    #[track_caller]
    pub(crate) fn done(mut self) -> Done {
        let take = |from: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut from) = from {
                    from.read_to_end(&mut bytes).expect("a pipe can be read");
                }
                bytes
            })
        };
        let out = take(self.0.stdout.take().map(|o| Box::new(o) as _));
        let err = take(self.0.stderr.take().map(|e| Box::new(e) as _));
        let status = until("a child ends", || self.0.try_wait().expect("our own child"));
        let err = String::from_utf8_lossy(&err.join().expect("no panic")).into_owned();
        Done { code: status.code(), out: out.join().expect("no panic"), err }
    }
}

impl Scene {
    pub(crate) fn new() -> Scene {
        tb_tests::ordinary();
        let base = tempfile::tempdir().expect("a temporary directory can be made");
        fs::create_dir(base.path().join(".gate-logs")).expect("our own directory");
        Scene { base }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.base.path().join(".gate-logs")
    }

    /// A command in the scene, without any setting of the caller's.
    pub(crate) fn command(&self, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command.args(args).current_dir(self.dir());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("TB_") || key.to_string_lossy().starts_with("GLUDD_") {
                command.env_remove(key);
            }
        }
        command
    }

    pub(crate) fn tb_log(&self, args: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_tb-log"), args)
    }

    /// Another tool; it has to have been built.
    pub(crate) fn tool(&self, name: &str, args: &[&str]) -> Command {
        let path = Path::new(env!("CARGO_BIN_EXE_tb-log")).with_file_name(name);
        assert!(path.exists(), "build the workspace first: {} is missing", path.display());
        self.command(path, args)
    }

    #[track_caller]
    pub(crate) fn log(&self, args: &[&str]) -> Done {
        start(&mut self.tb_log(args)).done()
    }

    /// The new lines of a name.
    #[track_caller]
    pub(crate) fn new_lines(&self, name: &str) -> Vec<String> {
        let done = self.log(&["--new", name]).ok();
        done.lines().into_iter().map(str::to_owned).collect()
    }

    /// The object of a name's new lines.
    #[track_caller]
    pub(crate) fn new_json(&self, name: &str) -> serde_json::Value {
        self.log(&["--new", "--json", name]).ok().json()
    }

    /// A run of this name, that is running as long as its log is held.
    pub(crate) fn run(&self, name: &str, job: &str, second: u32) -> Run {
        self.run_of(name, job, second, |_| {}, false)
    }

    pub(crate) fn run_of(
        &self,
        name: &str,
        job: &str,
        second: u32,
        change: impl FnOnce(&mut Header),
        drops: bool,
    ) -> Run {
        let mut header = header(name, job, second);
        change(&mut header);
        let stem = name.replace(['/', '.'], "_");
        let path = self.run_dir().join(format!("test-{stem}-20260725_1430{second:02}.log"));
        let file = File::options().read(true).append(true).create_new(true).open(&path).expect("a new log");
        file.lock().expect("locks work here");
        let mut run = Run { path, file, header, dropped: Dropped::default() };
        let first = if drops {
            let mut block = run.header.block(4096, &run.dropped);
            run.dropped.until = block.len() as u64;
            block = run.header.block(4096, &run.dropped);
            block
        } else {
            run.header.line()
        };
        run.write(first);
        run
    }

    /// A log that somebody else wrote.
    pub(crate) fn foreign(&self, stem: &str, text: &str) -> PathBuf {
        let path = self.run_dir().join(format!("test-{stem}-20260725_143000.log"));
        fs::write(&path, text).expect("our own directory");
        path
    }

    /// The names of the files that begin so.
    pub(crate) fn files(&self, prefix: &str) -> Vec<String> {
        let names = fs::read_dir(self.run_dir()).expect("our own directory");
        let names = names.map(|e| e.expect("our own directory").file_name().to_string_lossy().into_owned());
        names.filter(|n| n.starts_with(prefix)).collect()
    }
}

#[track_caller]
pub(crate) fn start(command: &mut Command) -> Bounded {
    Bounded(command.spawn().expect("a program of ours can be started"))
}

pub(crate) fn header(name: &str, job: &str, second: u32) -> Header {
    Header {
        v: 1,
        job: job.to_owned(),
        name: name.to_owned(),
        owner: None,
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        // Nobody: above every PID that the kernel gives.
        pid: i32::MAX,
        start: 1,
        boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        pidns: 1,
        timens: 1,
        supervisors: vec![],
        command: vec!["true".to_owned()],
        command_truncated: false,
        cwd: "/".to_owned(),
        started_at: format!("2026-07-25T14:30:{second:02}Z"),
        nested_in: None,
        leaks: Leaks::Kill,
        lossy: false,
    }
}

/// A log in the making: dropped, its lock is free.
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) header: Header,
    pub(crate) dropped: Dropped,
}

impl Run {
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.file.write_all(bytes.as_ref()).expect("our own log");
    }

    pub(crate) fn footer(&self, outcome: Outcome, exit: i32) -> Footer {
        Footer {
            v: 1,
            job: self.header.job.clone(),
            outcome,
            exit_code: Some(exit),
            signal: None,
            reason: Some(Reason::Exit),
            finished_at: Some(rfc3339(now())),
            elapsed_seconds: Some(1.0),
            cpu_seconds: None,
            max_rss_kb: None,
            leaked: vec![],
            nested: vec![],
            survivors: vec![],
            truncated: false,
            added_newline: false,
            overwrote: None,
            stopped_with: None,
            header: (&self.header).into(),
        }
    }

    /// Writes the footer, as the supervisor does, and lets the lock go.
    pub(crate) fn finish(mut self, outcome: Outcome, exit: i32) -> PathBuf {
        let mut footer = self.footer(outcome, exit);
        let text = fs::read(&self.path).expect("our own log");
        footer.added_newline = text.last().is_some_and(|&b| b != b'\n');
        footer.truncated = !text.starts_with(&self.header.line()[..20]);
        self.write(footer.lines());
        self.path
    }

    /// Gives the output before this offset back to the disk, as a supervisor does: the line first, then the hole.
    pub(crate) fn drop_until(&mut self, until: u64) {
        let text = fs::read(&self.path).expect("our own log");
        let (from, to) = (usize::try_from(self.dropped.until).unwrap(), usize::try_from(until).unwrap());
        self.dropped.lines += text[from..to].iter().filter(|&&b| b == b'\n').count() as u64;
        self.dropped.bytes += (to - from) as u64;
        self.dropped.until = until;
        let line_at = self.header.block(4096, &self.dropped).len() - Dropped::LEN;
        // With O_APPEND, pwrite appends all the same.
        let file = File::options().write(true).open(&self.path).expect("our own log");
        file.write_all_at(&self.dropped.line(), line_at as u64).expect("our own log");
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(&file, punch, from as u64, (to - from) as u64).is_err() {
            // A file system without holes: what is there is the same to a reader.
            file.write_all_at(&vec![0; to - from], from as u64).expect("our own log");
        }
    }
}
