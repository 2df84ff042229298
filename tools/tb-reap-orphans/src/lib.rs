//! `tb-reap-orphans`: stop test processes that nobody owns.

pub mod cli;
mod json;

use cli::Cli;
use std::ffi::OsString;
use tb_shared::contract::{RunDir, Scope};
use tb_shared::sweep::{self, Options, Place};
use tb_shared::term::{self, Code, Failure, Out, Result};

/// The longest pattern, in bytes.
const PATTERN_MAX: usize = 512;

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the sweep from being made, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    let swept = sweep::run(&options(&cli)?)?;
    let mut out = Out::new(cli.common.color);
    if cli.common.json {
        for found in &swept.found {
            out.json(&json::Process::of(found))?;
        }
    } else {
        for found in &swept.found {
            let line = found.line();
            let line = if found.is_left() && !swept.dry_run { out.paint("31", &line) } else { line };
            out.line(&line)?;
        }
        out.line(&format!("{} left", swept.left()))?;
    }
    out.flush()?;
    if let Some(failure) = swept.survivors() {
        failure.print("tb-reap-orphans");
    }
    Ok(swept.code())
}

/// What was asked for, checked.
fn options(cli: &Cli) -> Result<Options> {
    let place = match (&cli.cwd, cli.any_cwd) {
        (Some(dir), _) => Place::below(dir)?,
        (None, true) => Place::Anywhere,
        (None, false) => Place::current()?,
    };
    let scope = Scope { owner: term::owner(cli.common.owner.as_deref())?, all: cli.common.all_owners };
    Ok(Options {
        place,
        kinds: cli.kinds.clone(),
        pattern: cli.pattern.as_deref().map(pattern).transpose()?,
        older: cli.older,
        grace: term::kill_grace(cli.grace)?,
        unsupervised: cli.unsupervised,
        scope,
        all_users: cli.all_users,
        dry_run: cli.dry_run,
        run_dir: RunDir::resolve(cli.common.log_dir.as_deref()),
    })
}

fn pattern(text: &str) -> Result<sweep::Pattern> {
    let doing = || format!("use --match '{}'", term::visible(text));
    if text.len() > PATTERN_MAX {
        return Err(Failure::usage("use --match", format!("it has more than {PATTERN_MAX} characters")));
    }
    let regex = regex::Regex::new(text).map_err(|e| Failure::usage(doing(), e))?;
    if regex.is_match("") {
        return Err(Failure::usage(doing(), "it matches every command line")
            .hint("name what is to be found in the command lines of orphans"));
    }
    Ok(Box::new(move |command| regex.is_match(command)))
}
