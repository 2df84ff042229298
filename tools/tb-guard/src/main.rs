//! timeout(1) that means it: when time is up the whole tree goes.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-guard", tb_guard::run)
}
