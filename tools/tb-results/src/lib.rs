//! `tb-results`: what the test run said.
//!
//! A log goes one way: `source` finds its bytes, [`read()`] makes clean lines of them and hands these to the
//! parser of the runner whose output it is, the parser's sessions become a [`report::Report`], and `human`,
//! [`json`] or one of the other renderers prints it.

mod bats;
mod cargo_test;
pub mod cli;
mod contract;
mod ctest;
mod decode;
mod diff;
mod go;
mod gradle;
mod grep;
mod gtest;
mod human;
mod jest;
pub mod json;
mod junit;
mod junitxml;
mod lines;
mod mocha;
mod nextest;
mod node_test;
mod prefix;
pub mod pytest;
mod read;
pub mod report;
pub mod rerun;
mod rspec;
pub mod runner;
mod scan;
mod sessions;
mod source;
mod surefire;
mod tail;
mod tap;
mod unittest;
mod vitest;
mod xml;

pub use read::read;

use cli::{Annotate, Args, ModeArgs};
use report::{Report, Verdict};
use runner::Format;
use source::Source;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tail::Tail;
use tb_shared::term::{Code, Failure, Out, Result, parse, worst};

/// How many of a log's last lines are evidence.
const EVIDENCE: usize = 10;

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
#[expect(clippy::needless_pass_by_value, reason = "the form that every tool's run has")]
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(args) = parse::<Args>(&args)? else { return Ok(Code::Ok) };
    let format = format(&args.format)?;
    let targets = targets(&args)?;
    let mut out = Out::new(args.color);
    let done = answer(&args, format, &targets, &mut out);
    out.flush()?;
    done
}

fn answer(args: &Args, format: Option<&'static Format>, targets: &[Target], out: &mut Out) -> Result<Code> {
    if args.mode.diff
        && let [old, new] = targets
    {
        let (old, new) = (taken(old, args, format)?, taken(new, args, format)?);
        return compare(out, args, &old.report, &new);
    }
    let mut codes = Vec::new();
    let mut documents = Vec::new();
    for target in targets {
        // One name that is wrong does not keep the others from being answered.
        match one(args, format, target, out, &mut documents) {
            Ok(code) => codes.push(code),
            Err(failure) if targets.len() > 1 => {
                out.flush()?;
                failure.print("tb-results");
                codes.push(failure.code);
            }
            Err(failure) => return Err(failure),
        }
    }
    if args.mode.junit {
        out.line(junit::document(&documents)?.trim_end())?;
    }
    Ok(worst(codes))
}

fn one(
    args: &Args,
    format: Option<&'static Format>,
    target: &Target,
    out: &mut Out,
    documents: &mut Vec<(String, Report)>,
) -> Result<Code> {
    if let Some(class) = &args.mode.grep {
        return look_for(class, target, args, format, out);
    }
    let taken = taken(target, args, format)?;
    let (name, report) = (&taken.name, &taken.report);
    let code = code(report);
    let mode = &args.mode;
    if let Some(tracked) = taken.tracked.as_ref().filter(|_| !args.keep) {
        tracked.collect()?;
    }
    if mode.diff {
        let before = match &taken.path {
            Some(path) => source::before(path)?,
            None => None,
        };
        let Some(before) = before else {
            return Err(Failure::usage(format!("compare {name}"), "there is no run before it")
                .hint("two logs are compared with --diff OLD NEW"));
        };
        let old = taken_from(source::file(&before)?, args, format)?;
        return compare(out, args, &old.report, &taken);
    }
    if mode.junit {
        documents.push((taken.name, taken.report));
    } else if args.json {
        let mut object = json::Object::new(name, report, taken.raw.as_deref());
        if let Some(n) = mode.slowest {
            object.limit_slowest(n);
        }
        out.json(&object)?;
    } else {
        render(out, mode, &taken)?;
    }
    Ok(code)
}

/// Every mode that prints one log's answer for people.
fn render(out: &mut Out, mode: &ModeArgs, taken: &Taken) -> Result<()> {
    let (name, report) = (&taken.name, &taken.report);
    if let Some(raw) = &taken.raw {
        out.bytes(raw)
    } else if mode.failed {
        let failing = report.failing();
        let Some(failing) = failing else {
            return Err(Failure::new(
                Code::NoVerdict,
                format!("cannot name what failed in {name}: its log does not"),
            ));
        };
        let mut last = None;
        for f in failing {
            if last.replace(&f.id) != Some(&f.id) {
                out.line(&out.safe(&f.id))?;
            }
        }
        Ok(())
    } else if mode.errors {
        human::errors(out, report)
    } else if let Some(n) = mode.slowest {
        for slow in report.slowest().into_iter().take(n) {
            let line = format!("{:8.2}s {:8} {}", slow.seconds, slow.phase.as_deref().unwrap_or(""), slow.id);
            out.line(&out.safe(&line))?;
        }
        Ok(())
    } else if mode.rerun {
        rerun::lines(report)?.iter().try_for_each(|line| out.line(line))
    } else if mode.report {
        human::four_fields(out, name, report, &taken.tail)
    } else if mode.annotate == Some(Annotate::Github) {
        human::annotate_github(out, report)
    } else {
        human::summary(out, name, report)
    }
}

fn look_for(
    class: &str,
    target: &Target,
    args: &Args,
    format: Option<&'static Format>,
    out: &mut Out,
) -> Result<Code> {
    let source = target.source(args)?;
    let mut grep = grep::Grep::new(class);
    let mut failed = Ok(());
    let name = source.name;
    let mut report = read(source.bytes, format, |block| {
        grep.block(block, |line| {
            if failed.is_ok() {
                let text = String::from_utf8_lossy(line);
                failed = out.line(&out.safe(&text));
            }
        });
    })
    .map_err(|e| Failure::cannot(format!("read {name}"), source::cause(&e)))?;
    failed?;
    report.job = source.job.or(report.job);
    Ok(code(&report))
}

fn compare(out: &mut Out, args: &Args, old: &Report, new: &Taken) -> Result<Code> {
    let diff = diff::diff(old, &new.report)?;
    if args.json {
        out.json(&json::Difference::new(&new.name, &diff))?;
        return Ok(code(&new.report));
    }
    let mut group = |title: &str, ids: &[&str]| -> Result<()> {
        for id in ids {
            let line = format!("{title} {id}");
            out.line(&out.safe(&line))?;
        }
        Ok(())
    };
    group("newly failing:", &diff.newly)?;
    group("fixed:", &diff.fixed)?;
    group("still failing:", &diff.still)?;
    for (id, was, is) in &diff.differently {
        let line = format!("failing differently: {id} ({was}, now {is})");
        out.line(&out.safe(&line))?;
    }
    if !new.report.complete() {
        out.line("NOTE the newer run did not reach its end: what is fixed may just not have been run")?;
    }
    Ok(code(&new.report))
}

/// A log that was read.
struct Taken {
    name: String,
    path: Option<std::path::PathBuf>,
    report: Report,
    tail: Vec<String>,
    raw: Option<Vec<u8>>,
    tracked: Option<source::Tracked>,
}

fn taken(target: &Target, args: &Args, format: Option<&'static Format>) -> Result<Taken> {
    taken_from(target.source(args)?, args, format)
}

fn taken_from(source: Source, args: &Args, format: Option<&'static Format>) -> Result<Taken> {
    let Source { name, bytes, path, job, tracked } = source;
    let mut tail = Tail::default();
    let mut raw = args.raw.then(Vec::new);
    let mut report = read(bytes, format, |block| {
        tail.block(block);
        if let Some(raw) = &mut raw {
            raw.extend_from_slice(block);
        }
    })
    .map_err(|e| Failure::cannot(format!("read {name}"), source::cause(&e)))?;
    // The run directory knows more than the log's own last line.
    report.job = job.or(report.job);
    Ok(Taken { name, path, report, tail: tail.lines(EVIDENCE), raw, tracked })
}

/// The exit code: the job's where there is one, else what the text says.
pub fn code(report: &Report) -> Code {
    if let Some(job) = &report.job {
        if job.running {
            return Code::Running;
        }
        if let Some(passed) = job.passed() {
            return if passed { Code::Ok } else { Code::Failed };
        }
    }
    match report.verdict() {
        _ if !report.complete() => Code::NoVerdict,
        Some(Verdict::Pass) => Code::Ok,
        Some(_) => Code::Failed,
        None => Code::NoVerdict,
    }
}

fn format(name: &str) -> Result<Option<&'static Format>> {
    if name == "auto" {
        return Ok(None);
    }
    runner::by_name(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = runner::TABLE.iter().map(|f| f.name).collect();
        Failure::usage(format!("use --format {name}"), "no such runner is known")
            .hint(format!("known are auto, {}", known.join(", ")))
    })
}

/// What to read.
enum Target {
    Name(OsString),
    File(std::path::PathBuf),
}

impl Target {
    fn source(&self, args: &Args) -> Result<Source> {
        match self {
            Target::Name(name) => source::find(name, &args.scope),
            Target::File(path) => source::file(Path::new(path)),
        }
    }
}

fn targets(args: &Args) -> Result<Vec<Target>> {
    let mut all: Vec<Target> = args.targets.iter().cloned().map(Target::Name).collect();
    all.extend(args.files.iter().cloned().map(Target::File));
    if args.stdin_names {
        let mut text = Vec::new();
        std::io::stdin()
            .read_to_end(&mut text)
            .map_err(|e| Failure::cannot("read names from standard input", source::cause(&e)))?;
        let end = if args.null { 0 } else { b'\n' };
        let names = text.split(|b| *b == end).filter(|n| !n.is_empty());
        all.extend(names.map(|n| Target::Name(OsStr::from_bytes(n).to_owned())));
        return Ok(all);
    }
    if all.is_empty() {
        return Err(Failure::usage("tell results", "no job and no log is named")
            .hint("Usage: tb-results [MODE] NAME|LOG|-..., see tb-results --help"));
    }
    Ok(all)
}
