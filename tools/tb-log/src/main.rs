//! Read the output of background jobs.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-log", tb_log::run)
}
