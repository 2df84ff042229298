//! What a test process is, told from its arguments and from nothing else.
//!
//! The arguments are read as the program that got them reads them: an interpreter's options, then what it runs. A
//! word that merely occurs in them (an editor's file, a grep's pattern, an agent's prompt, what follows `-c`)
//! makes no test process.

mod native;
mod python;
#[cfg(test)]
mod tests;
mod wrappers;

/// The arguments of a process.
pub(super) type Args<'a> = &'a [&'a [u8]];

/// Whose test processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum Kind {
    /// pytest, py.test and pytest-xdist's workers.
    Pytest,
    /// `python -m unittest`, Django's `manage.py test`.
    Unittest,
    /// nose and nose2.
    Nose,
    /// Jest and its workers.
    Jest,
    /// Vitest and its workers.
    Vitest,
    /// Mocha.
    Mocha,
    /// `cargo test`, cargo-nextest and the test binaries that both run.
    #[value(alias = "nextest")]
    Cargo,
    /// `go test` and the test binaries that it runs.
    Go,
}

impl Kind {
    /// The word for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Pytest => "pytest",
            Kind::Unittest => "unittest",
            Kind::Nose => "nose",
            Kind::Jest => "jest",
            Kind::Vitest => "vitest",
            Kind::Mocha => "mocha",
            Kind::Cargo => "cargo",
            Kind::Go => "go",
        }
    }
}

/// A process that runs tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Of which runner.
    pub kind: Kind,
    /// Whether it is a worker of pytest-xdist, which has no purpose without its controller.
    pub xdist_worker: bool,
}

impl From<Kind> for Test {
    fn from(kind: Kind) -> Test {
        Test { kind, xdist_worker: false }
    }
}

const XDIST_WORKER: Test = Test { kind: Kind::Pytest, xdist_worker: true };

/// How many programs that run a program are looked through (`timeout 60 uv run coverage run -m pytest`).
const DEPTH: usize = 8;

/// Reads a process's arguments; `None` when it is no test process.
pub fn read(argv: Args<'_>) -> Option<Test> {
    program(argv, DEPTH)
}

/// The content of /proc/PID/cmdline as arguments (proc_pid_cmdline(5)).
pub fn split(cmdline: &[u8]) -> Vec<&[u8]> {
    match cmdline.strip_suffix(b"\0").unwrap_or(cmdline) {
        [] => vec![],
        bytes => bytes.split(|&b| b == 0).collect(),
    }
}

fn program(argv: Args<'_>, depth: usize) -> Option<Test> {
    let depth = depth.checked_sub(1)?;
    let (&first, rest) = argv.split_first()?;
    // Where setproctitle is installed, xdist's workers and Vitest's name themselves.
    if first.starts_with(b"[pytest-xdist ") {
        return Some(XDIST_WORKER);
    }
    if first.starts_with(b"node (vitest") {
        return Some(Kind::Vitest.into());
    }
    let name = base(first);
    if python::is_interpreter(name) {
        return python::interpreter(rest, depth);
    }
    python::script(argv, depth)
        .or_else(|| native::read(first, rest))
        .or_else(|| wrappers::read(name, rest, depth))
}

/// The last component of a path.
fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or(path)
}

/// Whether a path ends in these components.
fn ends_in(path: &[u8], tail: &str) -> bool {
    path.strip_suffix(tail.as_bytes()).is_some_and(|head| head.is_empty() || head.ends_with(b"/"))
}

/// The arguments from the first operand on. `valued` are the options whose value is the next argument, where it is
/// not attached.
fn operands<'a>(args: Args<'a>, valued: &[&str]) -> Args<'a> {
    after_options(args, valued).1
}

/// The same, and whether `-m` (the operand is a module, not a program) stood among the options.
fn after_options<'a>(mut args: Args<'a>, valued: &[&str]) -> (bool, Args<'a>) {
    let mut module = false;
    while let Some((&arg, rest)) = args.split_first() {
        if arg == b"--" {
            return (module, rest);
        }
        if !arg.starts_with(b"-") || arg == b"-" {
            return (module, args);
        }
        module |= matches!(arg, b"-m" | b"--module");
        args = if takes_next(arg, valued) { rest.get(1..).unwrap_or(&[]) } else { rest };
    }
    (module, args)
}

fn takes_next(arg: &[u8], valued: &[&str]) -> bool {
    valued.iter().any(|v| v.as_bytes() == arg)
}
