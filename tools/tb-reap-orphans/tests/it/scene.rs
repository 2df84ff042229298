//! A directory to sweep in, processes of every standing in it, and the certainty that none is there afterwards.
//!
//! Everything that is started carries the scene's token in its environment, is bounded by itself (two minutes), and
//! is ended by pidfd, after its start time was compared, when the scene is dropped.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tb_shared::process::{self, Handle, Ident, Snapshot};
use tb_tests::{DEADLINE, NOBODY, until};

const TOKEN: &str = "TB_TEST_SCENE";

/// A scratch directory (`w` in it is the work tree) and the processes in it.
pub(crate) struct Scene {
    base: tempfile::TempDir,
    root: PathBuf,
    token: String,
    hosts: RefCell<Vec<Child>>,
}

/// Where a process stands (see host.py).
pub(crate) struct Process {
    spec: Value,
}

impl Process {
    pub(crate) fn new(how: &str, argv: &[&str]) -> Process {
        Process { spec: json!({ "how": how, "argv": argv }) }
    }

    pub(crate) fn cwd(mut self, dir: &Path) -> Process {
        self.spec["cwd"] = json!(dir);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Process {
        self.spec["env"][name] = json!(value);
        self
    }

    pub(crate) fn nobody(mut self) -> Process {
        self.spec["uid"] = json!(NOBODY);
        self
    }

    pub(crate) fn child(mut self, argv: &[&str]) -> Process {
        self.spec["child"] = json!(argv);
        self
    }
}

/// Whether this very process runs.
pub(crate) fn lives(ident: Ident) -> bool {
    ident.is_alive()
}

fn tool(name: &str) -> PathBuf {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_tb-reap-orphans"));
    let path = match (name, std::env::var_os("TB_TEST_BIN_DIR")) {
        ("tb-reap-orphans", _) => own,
        (_, Some(dir)) => Path::new(&dir).join(name),
        (_, None) => own.with_file_name(name),
    };
    assert!(path.exists(), "{} is not built: cargo build -p {name}", path.display());
    path
}

impl Scene {
    #[track_caller]
    pub(crate) fn new() -> Scene {
        for pid in process::self_and_ancestors() {
            let name = process::comm(pid).unwrap_or_default();
            assert!(
                name != "tb-guard" && name != "tb-supervise",
                "these tests cannot run below {name} ({pid}): a sweep leaves everything below it alone"
            );
        }
        tb_tests::ordinary();
        let base = tempfile::Builder::new().prefix("tb-sweep-").tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(root.join("w")).unwrap();
        let token = format!("{}-{}", std::process::id(), root.file_name().unwrap().to_string_lossy());
        Scene { base, root, token, hosts: RefCell::default() }
    }

    /// The work tree.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root.join("w")
    }

    /// A directory beside the work tree.
    pub(crate) fn other(&self) -> PathBuf {
        let dir = self.root.join("other");
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Writes a file into the work tree.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// An interpreter that has pytest and pytest-xdist.
    pub(crate) fn python() -> String {
        tb_tests::python().to_str().expect("a path that is text").to_owned()
    }

    /// A command in the work tree, with nothing of ours in its environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let ours = std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|n| n.to_str().is_some_and(|n| n.starts_with("TB_") || n.starts_with("GLUDD_")));
        for name in ours {
            command.env_remove(name);
        }
        let bin = tool("tb-reap-orphans");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(bin.parent().unwrap().to_owned()).chain(std::env::split_paths(&path)),
        );
        command.env("PATH", path.unwrap()).env(TOKEN, &self.token).current_dir(self.dir());
        command.stdin(Stdio::null());
        command
    }

    /// A command's answer, which it gives in time.
    #[track_caller]
    pub(crate) fn answer(command: &mut Command) -> Answer {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        let ident = Ident { pid, start: process::read_stat(pid).map_or(0, |s| s.start) };
        let (send, get) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        match get.recv_timeout(DEADLINE) {
            Ok(output) => Answer::of(&output.unwrap()),
            Err(_) => {
                end(ident);
                panic!("{command:?} has not ended within {} s", DEADLINE.as_secs());
            }
        }
    }

    /// The tool.
    #[track_caller]
    pub(crate) fn sweep(&self, args: &[&str]) -> Answer {
        Scene::answer(self.command(tool("tb-reap-orphans")).args(args))
    }

    /// Another of the tools.
    pub(crate) fn tool(&self, name: &str) -> Command {
        self.command(tool(name))
    }

    /// What a dry run finds, by PID.
    #[track_caller]
    pub(crate) fn found(&self, args: &[&str]) -> Vec<i32> {
        let answer = self.sweep(&[args, &["--dry-run", "--json"]].concat());
        let mut pids: Vec<i32> =
            answer.objects().iter().map(|o| i32::try_from(o["pid"].as_i64().unwrap()).unwrap()).collect();
        pids.sort_unstable();
        assert_eq!(answer.code, Some(i32::from(!pids.is_empty())), "{answer:?}");
        pids
    }

    /// Starts processes below a subreaper of their own, and returns when each executes its command.
    #[track_caller]
    pub(crate) fn start(&self, processes: &[Process]) -> Vec<Ident> {
        self.start_below(true, processes)
    }

    /// The same; the subreaper waits for nobody unless it `reaps`.
    #[track_caller]
    pub(crate) fn start_below(&self, reaps: bool, processes: &[Process]) -> Vec<Ident> {
        let specs: Vec<Value> = processes
            .iter()
            .map(|p| {
                let mut spec = p.spec.clone();
                if spec["cwd"].is_null() {
                    spec["cwd"] = json!(self.dir());
                }
                spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                spec
            })
            .collect();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/host.py");
        let spec = json!({ "processes": specs, "reaps": reaps }).to_string();
        let output = self.root.join(format!("host-{:?}", Instant::now()).replace(['{', '}', ' ', ':'], ""));
        let out = std::fs::File::create(&output).unwrap();
        let mut host = self.command(Scene::python());
        let host = host.args([script, &spec]).current_dir("/").stdout(out).spawn().unwrap();
        self.hosts.borrow_mut().push(host);
        let pids: Vec<i32> = until("the host has started its processes", || {
            serde_json::from_str(std::fs::read_to_string(&output).ok()?.lines().next()?).ok()
        });
        let idents = pids.iter().zip(&specs).map(|(&pid, spec)| {
            let argv: Vec<&str> =
                spec["argv"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
            let wanted = argv.join(" ");
            until(&format!("{pid} executes {wanted}"), || {
                let shown = process::command_line(pid);
                // A script is shown behind its interpreter, a long command cut.
                shown
                    .ends_with(&wanted)
                    .then_some(())
                    .or((shown.len() > 200 && wanted.starts_with(&shown)).then_some(()))
            });
            Ident { pid, start: process::read_stat(pid).expect("it runs").start }
        });
        idents.collect()
    }

    /// Waits for a file of the work tree that holds PIDs, and returns these processes.
    #[track_caller]
    pub(crate) fn pids_in(&self, name: &str) -> Vec<Ident> {
        let text = until(name, || {
            std::fs::read_to_string(self.dir().join(name)).ok().filter(|text| text.ends_with('\n'))
        });
        let pids = text.split_ascii_whitespace().map(|pid| pid.parse().unwrap());
        pids.map(|pid| Ident { pid, start: process::read_stat(pid).expect("it runs").start }).collect()
    }

    fn members(&self) -> Vec<Ident> {
        let wanted = format!("{TOKEN}={}", self.token);
        let Ok(all) = Snapshot::take() else { return vec![] };
        let me = std::process::id().cast_signed();
        let has_token = |pid: i32| {
            let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            threads
                .map(|task| std::fs::read(task.path().join("environ")).unwrap_or_default())
                .any(|environ| environ.split(|&b| b == 0).any(|entry| entry == wanted.as_bytes()))
        };
        let rows = all.rows().filter(|row| row.pid != me && row.is_alive() && has_token(row.pid));
        rows.map(|row| Ident { pid: row.pid, start: row.start }).collect()
    }
}

/// Ends a process: exactly this one.
pub(crate) fn end(ident: Ident) {
    if let Ok(Some(handle)) = Handle::open(ident) {
        let _ = handle.signal(libc::SIGKILL);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let start = Instant::now();
        loop {
            let members = self.members();
            if members.is_empty() {
                break;
            }
            if start.elapsed() > DEADLINE {
                eprintln!("{} leaves processes: {members:?}", self.base.path().display());
                break;
            }
            members.into_iter().for_each(end);
            std::thread::sleep(Duration::from_millis(5));
        }
        for host in self.hosts.get_mut() {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

/// What a tool said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    fn of(output: &Output) -> Answer {
        Answer {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Its lines as JSON.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}\n{self:?}")))
            .collect()
    }

    /// The line about a process.
    #[track_caller]
    pub(crate) fn line(&self, ident: Ident) -> &str {
        let start = format!("{}  ", ident.pid);
        self.out.lines().find(|l| l.starts_with(&start)).unwrap_or_else(|| panic!("no {start}in {self:?}"))
    }

    /// Its last line.
    pub(crate) fn last(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}
