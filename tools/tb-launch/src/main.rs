//! Start a test run in the background.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-launch", tb_launch::run)
}
