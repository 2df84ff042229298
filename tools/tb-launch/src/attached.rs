//! Staying with a job that was just launched: `--wait` and `--foreground`.

use crate::cli::Cli;
use std::time::Duration;
use tb_shared::contract::Name;
use tb_shared::supervise::{Stopped, stop};
use tb_shared::term::{self, Code, Context, Failure, Out, Result, quoted};
use tb_shared::wait::{self, Ending, Interrupt, Wait};

/// How long, how often, how patiently.
pub(crate) struct Waiting {
    /// `--wait`'s limit.
    pub(crate) timeout: Duration,
    /// Between heartbeats.
    pub(crate) heartbeat: Duration,
    /// Between TERM and KILL when a foreground job is stopped.
    pub(crate) grace: Duration,
}

/// Hears, from before the job exists, the signals that an attached launcher answers: one that came between the
/// launch and the wait would end the launcher alone, and a foreground job would be left behind.
pub(crate) fn interrupt(cli: &Cli) -> Result<Option<Interrupt>> {
    let signals: &[i32] = match (cli.wait, cli.foreground) {
        (_, true) => &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP],
        (true, false) => &[libc::SIGINT],
        (false, false) => return Ok(None),
    };
    Interrupt::on(signals).map(Some)
}

/// tb-wait after the launch; Ctrl-C detaches.
pub(crate) fn wait(
    cli: &Cli,
    context: &Context,
    name: &Name,
    waiting: &Waiting,
    interrupt: &Interrupt,
) -> Result<Code> {
    let (ending, mut codes) = attend(cli, context, name, Some(waiting.timeout), waiting, interrupt)?;
    match ending {
        Ending::Over => {}
        Ending::TimeUp => codes.extend(wait::time_up(
            "tb-launch",
            context,
            std::slice::from_ref(name),
            waiting.timeout,
            None,
        )),
        Ending::Interrupted => {
            term::say(
                "tb-launch",
                &format!("interrupted; {name} goes on: tb-wait {}", quoted(name.as_str())),
            );
            return Ok(Code::Interrupted);
        }
    }
    Ok(term::worst(codes))
}

/// Attached until the end, however long; INT, TERM and HUP are tb-kill.
pub(crate) fn foreground(
    cli: &Cli,
    context: &Context,
    name: &Name,
    waiting: &Waiting,
    interrupt: &Interrupt,
) -> Result<Code> {
    let (ending, codes) = attend(cli, context, name, None, waiting, interrupt)?;
    if ending != Ending::Interrupted {
        return Ok(term::worst(codes));
    }
    let Some(dir) = &context.dir else { return Err(context.not_tracked(name)) };
    let job = context.need(name)?;
    if let Stopped::Survivors(list) =
        stop(dir, &context.here, &job, libc::SIGTERM, waiting.grace, "tb-launch --foreground")?
    {
        let mut failure =
            Failure::new(Code::Survivors, format!("cannot stop all of {name}: {} left", list.len()));
        for line in list {
            failure = failure.hint(line);
        }
        return Err(failure);
    }
    let (_, codes) = attend(cli, context, name, None, waiting, &interrupt_none()?)?;
    Ok(term::worst(codes))
}

fn interrupt_none() -> Result<Interrupt> {
    Interrupt::on(&[])
}

fn attend(
    cli: &Cli,
    context: &Context,
    name: &Name,
    timeout: Option<Duration>,
    waiting: &Waiting,
    interrupt: &Interrupt,
) -> Result<(Ending, Vec<Code>)> {
    let mut out = Out::new(cli.common.color);
    let mut codes = Vec::new();
    let wait = Wait {
        tool: "tb-launch",
        context,
        any: false,
        timeout,
        heartbeat: waiting.heartbeat,
        interrupt: Some(interrupt.fd()),
        show: None,
    };
    let (ending, _) = wait.run(std::slice::from_ref(name), |report, job| {
        codes.push(job.state.code());
        wait::print_result(&mut out, report, cli.common.json)
    })?;
    Ok((ending, codes))
}
