//! Programs that run another program and stay: what counts is what they run.

use super::{Args, Test, after_options, operands, program, python};

/// What `name` runs with these arguments, if it is one that runs another program.
pub(super) fn read(name: &[u8], args: Args<'_>, depth: usize) -> Option<Test> {
    let depth = depth.checked_sub(1)?;
    match name {
        b"timeout" | b"gtimeout" => {
            // DURATION COMMAND
            program(operands(args, &["-k", "--kill-after", "-s", "--signal"]).get(1..)?, depth)
        }
        b"env" => {
            let rest = operands(args, &["-u", "--unset", "-C", "--chdir"]);
            let assignments = rest.iter().take_while(|a| a.contains(&b'=')).count();
            program(&rest[assignments..], depth)
        }
        b"nice" => program(operands(args, &["-n", "--adjustment"]), depth),
        b"ionice" => program(operands(args, &["-c", "--class", "-n", "--classdata"]), depth),
        b"stdbuf" => program(operands(args, &["-i", "--input", "-o", "--output", "-e", "--error"]), depth),
        b"time" => program(operands(args, &["-f", "--format", "-o", "--output"]), depth),
        b"nohup" | b"setsid" => program(operands(args, &[]), depth),
        _ => launcher(name, args, depth),
    }
}

/// `uv run` and its like.
pub(super) fn launcher(name: &[u8], args: Args<'_>, depth: usize) -> Option<Test> {
    let depth = depth.checked_sub(1)?;
    match name {
        b"uvx" => program(operands(args, UV), depth),
        b"uv" => {
            let (&command, rest) = operands(args, UV).split_first()?;
            match command {
                b"run" => uv_run(rest, depth),
                b"tool" if rest.first() == Some(&&b"run"[..]) => program(operands(&rest[1..], UV), depth),
                _ => None,
            }
        }
        b"poetry" | b"pipenv" | b"pdm" | b"rye" | b"hatch" | b"pixi" => {
            let valued = ["-C", "--directory", "-P", "--project", "-p", "-e", "--env", "--environment"];
            let (&command, rest) = operands(args, &valued).split_first()?;
            if command == b"run" { program(operands(rest, &valued), depth) } else { None }
        }
        _ => None,
    }
}

fn uv_run(args: Args<'_>, depth: usize) -> Option<Test> {
    match after_options(args, UV) {
        (true, args) => args.split_first().and_then(|(&name, rest)| python::module(name, rest, depth)),
        (false, args) => program(args, depth),
    }
}

/// The options of uv, `uv run` and `uv tool run` whose value may be the next argument (`uv help run`).
const UV: &[&str] = &[
    "--allow-insecure-host",
    "--cache-dir",
    "--color",
    "--config-file",
    "--config-setting",
    "-C",
    "--config-settings-package",
    "--default-index",
    "--directory",
    "--env-file",
    "--exclude-newer",
    "--exclude-newer-package",
    "--extra",
    "--extra-index-url",
    "--find-links",
    "-f",
    "--fork-strategy",
    "--from",
    "--group",
    "--index",
    "--index-strategy",
    "--index-url",
    "-i",
    "--keyring-provider",
    "--link-mode",
    "--no-binary-package",
    "--no-build-isolation-package",
    "--no-build-package",
    "--no-extra",
    "--no-group",
    "--only-group",
    "--package",
    "--prerelease",
    "--project",
    "--python",
    "-p",
    "--python-platform",
    "--refresh-package",
    "--reinstall-package",
    "--resolution",
    "--upgrade-package",
    "-P",
    "--with",
    "-w",
    "--with-editable",
    "--with-requirements",
];
