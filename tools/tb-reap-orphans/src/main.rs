//! Stop test processes that nobody owns.

fn main() -> std::process::ExitCode {
    tb_shared::term::main("tb-reap-orphans", tb_reap_orphans::run)
}
