//! Man pages and shell completions of the tools, from their own command lines: `tb-docs DIR` writes
//! `DIR/man/tb-x.1` and `DIR/completions/{tb-x.bash,_tb-x,tb-x.fish}`.

use clap_complete::Shell;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// A tool's name and its command line.
type Tool = (&'static str, fn() -> clap::Command);

/// One line for each tool, `("tb-x", tb_x::cli::command)`, in the order of the README. A test in `tests/`
/// finds the tool that is missing here.
const TOOLS: &[Tool] = &[
    ("tb-launch", tb_launch::cli::command),
    ("tb-status", tb_status::cli::command),
    ("tb-wait", tb_wait::cli::command),
    ("tb-kill", tb_kill::cli::command),
    ("tb-log", tb_log::cli::command),
    ("tb-results", tb_results::cli::command),
    ("tb-guard", tb_guard::cli::command),
    ("tb-reap-orphans", tb_reap_orphans::cli::command),
    ("tb-clean", tb_clean::cli::command),
];

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("tb-docs: cannot write man pages: no directory was given\n  usage: tb-docs DIR");
        return ExitCode::from(2);
    };
    match write(Path::new(&dir), TOOLS) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tb-docs: cannot write man pages and completions to {}: {e}", dir.to_string_lossy());
            ExitCode::FAILURE
        }
    }
}

fn write(dir: &Path, tools: &[Tool]) -> std::io::Result<()> {
    let (man, completions) = (dir.join("man"), dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    for (name, command) in tools {
        let command = command().name(*name).bin_name(*name);
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).section("1").manual("tb").render(&mut page)?;
        fs::write(man.join(format!("{name}.1")), page)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut command.clone(), *name, &completions)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_gets_a_page_and_three_completions() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let sample: Tool =
            ("tb-sample", || clap::Command::new("x").about("does little").arg(clap::arg!(--often)));
        write(dir.path(), &[sample]).expect("they are written");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect(name);
        let page = read("man/tb-sample.1");
        assert!(page.contains(".TH tb-sample 1") && page.contains("does little"), "{page}");
        for name in ["tb-sample.bash", "_tb-sample", "tb-sample.fish"] {
            assert!(read(&format!("completions/{name}")).contains("often"), "{name}");
        }
    }

    #[test]
    fn the_list_can_be_parsed_by_clap() {
        for (name, command) in TOOLS {
            command().name(*name).debug_assert();
        }
    }
}
