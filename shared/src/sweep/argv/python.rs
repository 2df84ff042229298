//! Python: the interpreter's options (`python --help`), the modules and scripts that run tests, and those that run
//! another module or script in their place.

use super::{Args, Kind, Test, XDIST_WORKER, after_options, base, ends_in, takes_next, wrappers};

/// The program text with which execnet starts a worker (`popen_bootstrapline` in execnet's gateway_io.py).
const BOOTSTRAP: &str = "import sys;exec(eval(sys.stdin.readline()))";

/// `python`, `python3.12`, `python3.13t`, `pypy3`, …
pub(super) fn is_interpreter(name: &[u8]) -> bool {
    let Some(version) =
        [&b"python"[..], b"Python", b"pypy"].iter().find_map(|prefix| name.strip_prefix(*prefix))
    else {
        return false;
    };
    let digits = version.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    matches!(&version[digits..], b"" | b"t" | b"d" | b"td" | b"m" | b"-dbg" | b"-intel64")
}

/// The arguments after the interpreter.
pub(super) fn interpreter(mut args: Args<'_>, depth: usize) -> Option<Test> {
    while let Some((&arg, mut rest)) = args.split_first() {
        if arg == b"--" {
            return script(rest, depth);
        }
        let Some(letters) = arg.strip_prefix(b"-") else { return script(args, depth) };
        if letters.is_empty() {
            // A program on standard input.
            return None;
        }
        if letters.starts_with(b"-") {
            let valued = ["--check-hash-based-pycs", "--jit"];
            args = if takes_next(arg, &valued) { rest.get(1..)? } else { rest };
            continue;
        }
        for (at, letter) in letters.iter().enumerate() {
            if !matches!(letter, b'c' | b'm' | b'W' | b'X') {
                continue;
            }
            // The value is attached, or the next argument.
            let attached = &letters[at + 1..];
            let value = if attached.is_empty() {
                let (&next, after) = rest.split_first()?;
                rest = after;
                next
            } else {
                attached
            };
            match letter {
                // Both end the options: what follows is the program's own.
                b'c' => return code(value),
                b'm' => return module(value, rest, depth),
                _ => break,
            }
        }
        args = rest;
    }
    None
}

fn code(text: &[u8]) -> Option<Test> {
    let bare = |text: &[u8]| text.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect::<Vec<u8>>();
    (text.len() < 2 * BOOTSTRAP.len() && bare(text) == bare(BOOTSTRAP.as_bytes())).then_some(XDIST_WORKER)
}

/// `-m NAME ARGS`
pub(super) fn module(name: &[u8], args: Args<'_>, depth: usize) -> Option<Test> {
    let depth = depth.checked_sub(1)?;
    match name {
        b"pytest" | b"py.test" | b"pytest.__main__" => Some(Kind::Pytest.into()),
        b"unittest" => Some(Kind::Unittest.into()),
        b"nose" | b"nose2" => Some(Kind::Nose.into()),
        b"django" if args.first() == Some(&&b"test"[..]) => Some(Kind::Unittest.into()),
        b"coverage" => coverage(args, depth),
        b"memray" => memray(args, depth),
        b"cProfile" | b"profile" => target(args, &["-o", "--outfile", "-s", "--sort"], depth),
        b"pdb" => target(args, &["-c", "--command"], depth),
        b"debugpy" => target(args, &["--listen", "--connect", "--log-to", "--adapter-access-token"], depth),
        _ => wrappers::read(name, args, depth),
    }
}

/// A script and its arguments: console scripts are known by their names, as are the scripts with which editors run
/// pytest.
pub(super) fn script(argv: Args<'_>, depth: usize) -> Option<Test> {
    let depth = depth.checked_sub(1)?;
    let (&path, args) = argv.split_first()?;
    match base(path) {
        b"pytest" | b"py.test" | b"pytest-3" | b"py.test-3" => Some(Kind::Pytest.into()),
        b"_jb_pytest_runner.py" => Some(Kind::Pytest.into()),
        b"run_pytest_script.py" if ends_in(path, "vscode_pytest/run_pytest_script.py") => {
            Some(Kind::Pytest.into())
        }
        b"__main__.py" if ends_in(path, "pytest/__main__.py") => Some(Kind::Pytest.into()),
        b"_jb_unittest_runner.py" => Some(Kind::Unittest.into()),
        b"manage.py" if args.first() == Some(&&b"test"[..]) => Some(Kind::Unittest.into()),
        b"nosetests" | b"nosetests3" | b"nose2" => Some(Kind::Nose.into()),
        b"coverage" | b"coverage3" | b"python3-coverage" => coverage(args, depth),
        b"memray" => memray(args, depth),
        name => wrappers::launcher(name, args, depth),
    }
}

fn coverage(args: Args<'_>, depth: usize) -> Option<Test> {
    let (&command, args) = args.split_first()?;
    let valued = [
        "--concurrency",
        "--context",
        "--data-file",
        "--debug",
        "--include",
        "--omit",
        "--rcfile",
        "--save-signal",
        "--source",
    ];
    if command == b"run" { target(args, &valued, depth) } else { None }
}

fn memray(args: Args<'_>, depth: usize) -> Option<Test> {
    let (&command, args) = args.split_first()?;
    if command == b"run" { target(args, &["-o", "--output", "-p", "--live-port"], depth) } else { None }
}

/// What a module runs that runs another: `[OPTIONS] -m MODULE` or `[OPTIONS] SCRIPT`.
fn target(args: Args<'_>, valued: &[&str], depth: usize) -> Option<Test> {
    match after_options(args, valued) {
        (true, args) => args.split_first().and_then(|(&name, rest)| module(name, rest, depth)),
        (false, args) => script(args, depth),
    }
}
