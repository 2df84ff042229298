//! Jobs of a scene, by the tools themselves, and the files that must not confuse them.

use crate::Scene;
use crate::command::Output;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// PID files that name nobody: what they are called, and their content.
pub fn corrupt_pid_files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", b"".to_vec()),
        ("letters", b"abc\n".to_vec()),
        ("minus one", b"-1\n".to_vec()),
        ("zero", b"0\n".to_vec()),
        ("init", b"1\n".to_vec()),
        ("two to the forty", b"1099511627776\n".to_vec()),
        ("a megabyte of digits", vec![b'7'; 1 << 20]),
        ("a megabyte of junk", vec![0xff; 1 << 20]),
        ("two numbers", b"4242 4243\n".to_vec()),
    ]
}

/// Variables that every tool which launches or waits reads, and refuses where they do not parse.
pub const VARIABLES: [&str; 7] = [
    "TB_WAIT_TIMEOUT",
    "GLUDD_TEST_DEFAULT_TIMEOUT_MIN",
    "TB_HEARTBEAT",
    "GLUDD_TEST_HEARTBEAT_INTERVAL",
    "TB_KILL_GRACE",
    "GLUDD_TEST_KILL_GRACE_SEC",
    "TB_OWNER",
];

/// What stands where a file of the contract should be, and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// A directory.
    Directory,
    /// A FIFO, which nobody reads or writes.
    Fifo,
    /// A symbolic link to a plain file beside it.
    Symlink,
    /// A second name of a plain file beside it.
    HardLink,
}

impl Odd {
    /// All of them.
    pub const ALL: [Odd; 4] = [Odd::Directory, Odd::Fifo, Odd::Symlink, Odd::HardLink];

    /// Makes it. A link's target holds `text`.
    ///
    /// # Panics
    /// When it cannot be made.
    #[track_caller]
    pub fn make(self, path: &Path, text: &str) {
        let target = path.with_extension("target");
        let made = match self {
            Odd::Directory => fs::create_dir(path),
            Odd::Fifo => rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .map_err(Into::into),
            Odd::Symlink => fs::write(&target, text).and_then(|()| symlink(&target, path)),
            Odd::HardLink => fs::write(&target, text).and_then(|()| fs::hard_link(&target, path)),
        };
        made.unwrap_or_else(|e| panic!("{self:?} at {}: {e}", path.display()));
    }
}

/// A file in a listing: kind, inode, length.
pub type Seen = (char, u64, u64);

impl Scene {
    /// The default run directory, made if need be, private to whom the scene belongs to.
    ///
    /// # Panics
    /// When it cannot be made.
    #[track_caller]
    pub fn make_run_dir(&self) -> PathBuf {
        let dir = self.run_dir();
        if !dir.is_dir() {
            self.file(".gate-logs/.gitignore", "*\n");
        }
        dir
    }

    /// Launches the fixture with these words under a name.
    ///
    /// # Panics
    /// When that is refused.
    #[track_caller]
    pub fn launch(&self, name: &str, words: &str) -> Output {
        self.launch_of(None, name, words)
    }

    /// The same for an owner.
    ///
    /// # Panics
    /// As [`Scene::launch`].
    #[track_caller]
    pub fn launch_of(&self, owner: Option<&str>, name: &str, words: &str) -> Output {
        let flags = owner.map(|owner| ["--owner", owner]).into_iter().flatten();
        let launch = self.tool("tb-launch").args(flags).args(["--name", name, "--"]);
        launch.args(self.fixture_argv(words)).run().ok()
    }

    /// tb-status's object of a job.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn status(&self, name: &str) -> Value {
        let out = self.tool("tb-status").args(["--all-owners", "--json", name]).run();
        out.json().into_iter().next().unwrap_or_else(|| panic!("no object: {out}"))
    }

    /// Waits for a job's end, which must come to this exit code, and returns tb-wait's answer.
    ///
    /// # Panics
    /// When it ends otherwise, or not at all.
    #[track_caller]
    pub fn wait_for(&self, name: &str, code: i32) -> Output {
        self.tool("tb-wait").args(["--all-owners", name]).run().expect(code)
    }

    /// The log that tb-status names.
    ///
    /// # Panics
    /// When it names none.
    #[track_caller]
    pub fn log_of(&self, name: &str) -> PathBuf {
        let status = self.status(name);
        let path = status["log_file"].as_str().unwrap_or_else(|| panic!("no log: {status}"));
        self.path(path)
    }

    /// Everything in the working directory: what a refusal must not change.
    ///
    /// # Panics
    /// When it cannot be listed.
    pub fn files(&self) -> BTreeMap<PathBuf, Seen> {
        let mut all = BTreeMap::new();
        let mut dirs = vec![self.dir().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).expect("our own directory").flatten() {
                let path = entry.path();
                let Ok(meta) = path.symlink_metadata() else { continue };
                let kind = if meta.is_dir() {
                    dirs.push(path.clone());
                    'd'
                } else if meta.is_symlink() {
                    'l'
                } else if meta.is_file() {
                    'f'
                } else {
                    'o'
                };
                let size = if meta.is_dir() { 0 } else { meta.len() };
                all.insert(path, (kind, meta.ino(), size));
            }
        }
        all
    }

    /// Demands that nothing was made, changed or left running since `before` was listed.
    ///
    /// # Panics
    /// When something was.
    #[track_caller]
    pub fn assert_untouched(&self, before: &BTreeMap<PathBuf, Seen>) {
        self.assert_quiet();
        let after = self.files();
        let news: Vec<_> = after.iter().filter(|(path, seen)| before.get(*path) != Some(seen)).collect();
        let gone: Vec<_> = before.keys().filter(|path| !after.contains_key(*path)).collect();
        assert!(news.is_empty() && gone.is_empty(), "new or changed: {news:?}; gone: {gone:?}");
    }
}
