//! How arguments are read.

use super::*;
use proptest::prelude::*;

fn of(line: &str) -> Option<Test> {
    let argv = shlex::split(line).unwrap();
    read(&argv.iter().map(String::as_bytes).collect::<Vec<_>>())
}

#[test]
fn the_ways_to_run_pytest() {
    for line in [
        "pytest",
        "py.test tests",
        "/venv/bin/pytest -x",
        "/venv/bin/python /venv/bin/pytest tests/a.py",
        "python /usr/bin/pytest-3",
        "python -m pytest tests",
        "python3 -m pytest",
        "/usr/bin/python3.12 -mpytest -q",
        "python3.13t -Im pytest",
        "pypy3.10 -u -m pytest",
        "python -X dev -W error -W ignore::Warning -m pytest",
        "python -Xdev -Werror -uBm pytest tests",
        "python --check-hash-based-pycs never -m pytest",
        "python -m coverage run -m pytest tests",
        "coverage run -m pytest",
        "coverage run --source pkg --branch -m pytest tests",
        "python /venv/bin/coverage run -p /venv/bin/pytest",
        "python -m cProfile -o out.prof -m pytest",
        "python -m pdb -c continue -m pytest",
        "python -m debugpy --listen 5678 --wait-for-client -m pytest tests",
        "uv run pytest",
        "uv run --with pytest-xdist -p 3.12 pytest -n4",
        "uv --directory sub run -m pytest",
        "uv run --module pytest tests",
        "uv run python -m pytest",
        "uvx pytest",
        "uv tool run pytest",
        "poetry run pytest tests",
        "python /venv/bin/poetry run python -m pytest",
        "python -m pipenv run pytest",
        "timeout -k 5 60 pytest",
        "timeout --signal=INT 5m uv run coverage run -m pytest",
        "env -u HOME PYTHONHASHSEED=0 python -m pytest",
        "nice -n 10 pytest",
        "python /opt/ide/helpers/pycharm/_jb_pytest_runner.py --path tests",
        "python /ext/python_files/vscode_pytest/run_pytest_script.py --rootdir=.",
        "python /venv/lib/python3.12/site-packages/pytest/__main__.py",
    ] {
        assert_eq!(of(line), Some(Kind::Pytest.into()), "{line}");
    }
}

#[test]
fn workers_of_xdist() {
    for line in [
        "python -u -c 'import sys;exec(eval(sys.stdin.readline()))'",
        "/venv/bin/python -u -B -c 'import sys;exec(eval(sys.stdin.readline()))'",
        "python -uc 'import sys; exec(eval(sys.stdin.readline()))'",
        "'[pytest-xdist running] tests/a.py::test_x'",
        "'[pytest-xdist idle]'",
    ] {
        assert_eq!(of(line), Some(XDIST_WORKER), "{line}");
    }
}

#[test]
fn c37_what_merely_mentions_pytest() {
    for line in [
        "",
        "vim pytest.ini",
        "emacs tests/pytest/conftest.py",
        "grep -r 'python -m pytest' .",
        "rg pytest",
        "tail -f pytest.log",
        "less /venv/bin/pytest",
        "pkill -9 -f pytest",
        "pgrep -af 'pytest tests/'",
        "bash -c 'pytest tests'",
        "sh -c 'python -m pytest tests | tee log'",
        "make test PYTEST=pytest",
        "python -c 'import time; time.sleep(9)' -m pytest",
        "python -uc 'import time' -m pytest tests",
        "python -c 'import sys;exec(eval(sys.stdin.readline()));print(1)'",
        "python server.py -m pytest",
        "python -m http.server --directory pytest",
        "python -m pip install pytest",
        "python -m pytest_docs",
        "python -W pytest app.py",
        "python - -m pytest",
        "python",
        "python -m",
        "python -m coverage report -m pytest",
        "coverage run --source pytest app.py",
        "coverage run -m app pytest",
        "uv pip install pytest",
        "uv add pytest",
        "uv run app.py pytest",
        "uv run --with pytest app",
        "uvx ruff pytest",
        "poetry add pytest",
        "node agent.js --prompt 'run python -m pytest'",
        "claude -p 'fix pytest'",
        "tmux new -d pytest",
        "ssh host pytest",
        "docker run image pytest",
        "timeout 60 vim pytest",
        "timeout pytest",
        "env PYTEST=pytest app",
        "tb-launch tests/a.py -- -k pytest",
        "'python -m pytest'",
        "pytest-watch",
        "ptw",
    ] {
        assert_eq!(of(line), None, "{line}");
    }
}

#[test]
fn other_runners() {
    for (line, kind) in [
        ("python -m unittest discover", Kind::Unittest),
        ("python manage.py test app", Kind::Unittest),
        ("python -m django test", Kind::Unittest),
        ("coverage run -m unittest", Kind::Unittest),
        ("python -m nose2", Kind::Nose),
        ("python /venv/bin/nosetests", Kind::Nose),
        ("node /app/node_modules/.bin/jest --ci", Kind::Jest),
        ("node --max-old-space-size=4096 -r esm node_modules/jest/bin/jest.js", Kind::Jest),
        ("node /app/node_modules/jest-worker/build/workers/processChild.js", Kind::Jest),
        ("node node_modules/vitest/vitest.mjs run", Kind::Vitest),
        ("'node (vitest 1)'", Kind::Vitest),
        ("node node_modules/.bin/mocha", Kind::Mocha),
        ("node node_modules/mocha/bin/mocha.js", Kind::Mocha),
        ("cargo test --workspace", Kind::Cargo),
        ("cargo +nightly t", Kind::Cargo),
        ("cargo nextest run", Kind::Cargo),
        ("/home/u/.cargo/bin/cargo-nextest nextest run", Kind::Cargo),
        ("/w/target/debug/deps/tb_kill-0123456789abcdef --nocapture", Kind::Cargo),
        ("rustdoc --edition=2024 --test src/lib.rs", Kind::Cargo),
        ("go test ./...", Kind::Go),
        ("/tmp/go-build1/b001/pkg.test -test.timeout=10m0s", Kind::Go),
    ] {
        assert_eq!(of(line), Some(kind.into()), "{line}");
    }
    for line in [
        "node -e 'x' jest",
        "node server.js jest",
        "cargo build --test x",
        "cargo run -- test",
        "/w/target/debug/tb-kill test",
        "/w/target/debug/deps/tb_kill-xyz",
        "go build test",
        "./notes.test",
        "python manage.py runserver",
        "rustdoc src/lib.rs",
    ] {
        assert_eq!(of(line), None, "{line}");
    }
}

#[test]
fn a_command_line_as_the_kernel_shows_it() {
    assert_eq!(split(b""), Vec::<&[u8]>::new());
    assert_eq!(split(b"a\0"), [b"a"]);
    assert_eq!(split(b"a\0\0b\0"), [&b"a"[..], b"", b"b"]);
    assert_eq!(split(b"title without an end"), [b"title without an end"]);
}

#[test]
fn a_long_row_of_wrappers_ends() {
    assert_eq!(read(&vec![&b"env"[..]; 200_000]), None);
}

/// Words that take the reader down its branches more often than chance would.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "python",
        "-m",
        "-mpytest",
        "pytest",
        "-c",
        "-W",
        "-X",
        "--",
        "-",
        "",
        "uv",
        "run",
        "tool",
        "uvx",
        "coverage",
        "env",
        "A=B",
        "timeout",
        "5",
        "-k",
        "node",
        "jest",
        "cargo",
        "+x",
        "test",
        "go",
        "-u",
        "--source",
        "-um",
        "a/deps/b-0123456789abcdef",
        "manage.py",
        "poetry",
        "x.test",
        "-test.v",
        "-p",
    ])
    .prop_map(|w| w.as_bytes().to_vec());
    prop_oneof![3 => known, 1 => prop::collection::vec(any::<u8>(), 0..12)]
}

proptest! {
    #[test]
    fn no_arguments_make_the_reader_panic(argv in prop::collection::vec(word(), 0..12)) {
        let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
        let _ = read(&argv);
    }

    #[test]
    fn nothing_after_dash_c_is_read(code in "[a-z (){};]{0,20}", rest in prop::collection::vec(word(), 0..6)) {
        let mut argv: Vec<&[u8]> = vec![b"python3", b"-c", code.as_bytes()];
        argv.extend(rest.iter().map(Vec::as_slice));
        prop_assert_eq!(read(&argv), None);
    }

    #[test]
    fn what_follows_dash_m_pytest_changes_nothing(rest in prop::collection::vec(word(), 0..6)) {
        let mut argv: Vec<&[u8]> = vec![b"python3", b"-m", b"pytest"];
        argv.extend(rest.iter().map(Vec::as_slice));
        prop_assert_eq!(read(&argv), Some(Kind::Pytest.into()));
    }

    #[test]
    fn a_command_line_comes_apart_as_it_was_put_together(argv in prop::collection::vec("[^\0]{0,8}", 1..6)) {
        let line: Vec<u8> = argv.iter().flat_map(|a| [a.as_bytes(), b"\0"].concat()).collect();
        prop_assume!(line != b"\0");
        let parts: Vec<&[u8]> = argv.iter().map(String::as_bytes).collect();
        prop_assert_eq!(split(&line), parts);
    }
}
