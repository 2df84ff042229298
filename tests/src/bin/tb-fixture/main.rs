//! A process that misbehaves on request. What it does is said in words, carried out from left to right;
//! `[ … ]` holds the words of a child or of a reaction:
//!
//! ```text
//! tb-fixture spawn-setsid [ ignore-term hold ] print started hold
//! tb-fixture on-term [ sleep 0.3 stamp finished exit 0 ] hold
//! tb-fixture as-nobody limit nproc 40 exec tb-launch --name x -- true
//! ```
//!
//! Every process ends by itself after its life bound (120 s, `TB_TEST_LIFE` or `life N`; by SIGALRM, so in
//! any state but stopped), and when it is ready it appends `pid start role` to the file `TB_TEST_BIRTHS`
//! names: at the word `ready`, else before the first word at which it rests or ends.

mod act;
mod plan;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.is_empty() || words[0] == "--help" {
        print!("{}", plan::HELP);
        return ExitCode::SUCCESS;
    }
    let done = plan::parse(&words).and_then(|plan| act::Actor::new()?.perform(&plan));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tb-fixture: {message}");
            ExitCode::from(2)
        }
    }
}
