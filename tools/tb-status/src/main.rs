//! Look at background jobs, without waiting.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-status", tb_status::run)
}
