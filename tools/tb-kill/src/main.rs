//! Stop background jobs, all of each.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-kill", tb_kill::run)
}
