//! `tb-wait`: until jobs end.

pub mod bars;
pub mod cli;

use bars::Bars;
use cli::Cli;
use std::ffi::OsString;
use tb_shared::term::{self, Code, Failure, Out, Result};
use tb_shared::wait::{self, Ending, Interrupt, Show, Wait};

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    let names = cli.names.get()?;
    if !cli.names.given() {
        return Err(Failure::usage("wait", "no job was named").hint("tb-status lists what there is"));
    }
    let timeout = term::wait_timeout(cli.timeout)?;
    let heartbeat = term::heartbeat(cli.heartbeat)?;
    let grace = term::kill_grace(None)?;
    let context = cli.common.context()?;
    // A name that is not tracked is refused before any waiting.
    for name in &names {
        context.need(name)?;
    }
    let interrupt = Interrupt::on(&[libc::SIGINT])?;
    // Who wants no heartbeat wants no bar, and a reader of objects is no watcher.
    let bars = if heartbeat.is_zero() || cli.common.json { None } else { Bars::on_terminal() };
    let waiting = Wait {
        tool: "tb-wait",
        context: &context,
        any: cli.any,
        timeout: Some(timeout),
        heartbeat: if bars.is_some() { heartbeat.min(bars::BEAT) } else { heartbeat },
        interrupt: Some(interrupt.fd()),
        show: bars.as_ref().map(|b| b as &dyn Show),
    };
    let mut out = Out::new(cli.common.color);
    let mut codes = Vec::new();
    let outcome = waiting.run(&names, |report, job| {
        codes.push(job.state.code());
        match &bars {
            Some(bars) => {
                bars.over(&report.name);
                bars.above(|| wait::print_result(&mut out, report, cli.common.json))
            }
            None => wait::print_result(&mut out, report, cli.common.json),
        }
    });
    if let Some(bars) = &bars {
        bars.clear();
    }
    let (ending, left) = outcome?;
    match ending {
        Ending::Over => {}
        Ending::Interrupted => {
            term::say("tb-wait", "interrupted; the jobs go on");
            return Ok(Code::Interrupted);
        }
        Ending::TimeUp => codes.extend(wait::time_up(
            "tb-wait",
            &context,
            &left,
            timeout,
            cli.kill_on_timeout.then_some(grace),
        )),
    }
    Ok(term::worst(codes))
}
