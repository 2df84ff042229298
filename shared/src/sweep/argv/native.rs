//! Runners that are no Python programs: JavaScript's, Cargo's, Go's.

use super::{Args, Kind, Test, base, ends_in, operands};

/// A program by its path and arguments.
pub(super) fn read(path: &[u8], args: Args<'_>) -> Option<Test> {
    let name = base(path);
    match name {
        b"node" | b"nodejs" => node(args),
        b"cargo" => cargo(args),
        b"cargo-nextest" => Some(Kind::Cargo.into()),
        b"rustdoc" => args.contains(&&b"--test"[..]).then_some(Kind::Cargo.into()),
        b"go" => (args.first() == Some(&&b"test"[..])).then_some(Kind::Go.into()),
        // The names that `go test` and Cargo give the binaries which they build and run.
        _ if name.ends_with(b".test") && args.iter().any(|a| a.starts_with(b"-test.")) => {
            Some(Kind::Go.into())
        }
        _ if is_cargo_test_binary(path) => Some(Kind::Cargo.into()),
        _ => None,
    }
}

fn node(args: Args<'_>) -> Option<Test> {
    let valued = ["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"];
    let ends = ["-e", "--eval", "-p", "--print", "-pe"];
    let operands = operands(args, &valued);
    let options = &args[..args.len() - operands.len()];
    if options.iter().any(|o| ends.iter().any(|e| e.as_bytes() == *o)) {
        return None;
    }
    let &script = operands.first()?;
    match base(script) {
        b"jest" | b"jest.js" => Some(Kind::Jest.into()),
        b"processChild.js" if ends_in(script, "jest-worker/build/workers/processChild.js") => {
            Some(Kind::Jest.into())
        }
        b"vitest" | b"vitest.mjs" => Some(Kind::Vitest.into()),
        b"mocha" | b"mocha.js" | b"_mocha" => Some(Kind::Mocha.into()),
        _ => None,
    }
}

fn cargo(args: Args<'_>) -> Option<Test> {
    let args = match args.split_first() {
        Some((toolchain, rest)) if toolchain.starts_with(b"+") => rest,
        _ => args,
    };
    let valued = ["-C", "-Z", "--color", "--config", "--manifest-path", "--target-dir"];
    match operands(args, &valued).first() {
        Some(&(b"test" | b"t" | b"nextest")) => Some(Kind::Cargo.into()),
        _ => None,
    }
}

/// `…/deps/NAME-0123456789abcdef`
fn is_cargo_test_binary(path: &[u8]) -> bool {
    let name = base(path);
    let directory = path[..path.len() - name.len()].strip_suffix(b"/").unwrap_or_default();
    let hash = name.rsplit(|&b| b == b'-').next().unwrap_or_default();
    base(directory) == b"deps"
        && hash.len() == 16
        && hash.len() < name.len()
        && hash.iter().all(u8::is_ascii_hexdigit)
}
