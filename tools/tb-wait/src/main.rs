//! Wait until background jobs end.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-wait", tb_wait::run)
}
