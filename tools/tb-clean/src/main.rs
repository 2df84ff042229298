//! Forget finished jobs.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-clean", tb_clean::run)
}
