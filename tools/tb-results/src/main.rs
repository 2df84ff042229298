//! Read the log of a test run and say what it said.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-results", tb_results::run)
}
