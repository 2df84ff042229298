//! `tb-log`: read jobs' output.

pub mod cli;
mod follow;
mod human;
mod json;
pub mod printer;
pub mod read;
pub mod sink;

use cli::Cli;
use printer::{Counts, Form, Printer, Style};
use read::{Extent, Progress};
use regex::bytes::{Regex, RegexBuilder};
use sink::{Sink, Stdout};
use std::ffi::OsString;
use std::io::IsTerminal;
use tb_shared::contract::{Job, LogName, Name, RunDir, of_log, read_log};
use tb_shared::log::{Cursor, Searched, is_cursor_id, log_id, unread_before};
use tb_shared::sys;
use tb_shared::term::{self, Code, Context, Failure, Result};

const TOOL: &str = "tb-log";
/// How many last lines are shown unless asked otherwise.
const LINES: usize = 100;
/// The longest pattern, in characters.
const PATTERN_MAX: usize = 512;
/// How much of a line JSON has unless asked otherwise, in bytes.
const JSON_LINE: usize = 64 << 10;

/// What is asked, checked.
struct Config {
    /// Read through the cursor with this id.
    cursor: Option<String>,
    /// How many last lines; `None` is all.
    last: Option<usize>,
    matching: bool,
    run: Option<String>,
    max_line: Option<usize>,
    json: bool,
    /// Whether names stand over their lines.
    heads: bool,
}

/// Runs the tool.
///
/// # Errors
/// Whatever keeps the answer from being given, as a message for a person.
pub fn run(args: Vec<OsString>) -> Result<Code> {
    let Some(cli) = term::parse::<Cli>(&args)? else { return Ok(Code::Ok) };
    // Everything that can be wrong with what was asked is said before a line is claimed.
    let filter = cli.filter.as_deref().map(pattern).transpose()?;
    let names = cli.names.get()?;
    if !cli.names.given() {
        return Err(Failure::usage("read a log", "no job was named").hint("tb-status lists what there is"));
    }
    let context = cli.common.context()?;
    let config = config(&cli, &context, names.len())?;
    let form = match (cli.common.json, std::io::stdout().is_terminal()) {
        (true, _) => Form::Json,
        (false, true) => Form::Visible,
        (false, false) => Form::Bytes,
    };
    // What the caller closed reads nothing, though the runtime has put /dev/null there.
    let sink = Sink::new(Stdout, sys::was_closed(1));
    let style = Style { form, filter, max_line: config.max_line };
    let printer = Printer::new(sink, style, cli.follow || form != Form::Json);
    let mut reading = Reading { config, context: &context, printer };
    if cli.follow { reading.follow(&names) } else { reading.once(&names) }
}

fn pattern(text: &str) -> Result<Regex> {
    let length = text.chars().count();
    if length > PATTERN_MAX {
        let why = format!("it has {length} characters, more than {PATTERN_MAX}");
        return Err(Failure::usage("use the pattern of --filter", why));
    }
    RegexBuilder::new(text).build().map_err(|e| {
        let text = e.to_string();
        let mut lines = text.lines().rev();
        // The last line says what is wrong, those before it show where.
        let why = lines.next().unwrap_or_default();
        let mut failure = Failure::usage("use the pattern of --filter", why.trim_start_matches("error: "));
        for line in text.lines().filter(|l| l.starts_with("    ")) {
            failure = failure.hint(line.trim_end());
        }
        failure
    })
}

fn config(cli: &Cli, context: &Context, names: usize) -> Result<Config> {
    let cursor = match (&cli.cursor, cli.new) {
        (_, false) => None,
        (Some(id), true) if !is_cursor_id(id) => {
            let why = format!("'{}' is none: 1 to 64 of A-Z a-z 0-9 _ . @ : -", id.escape_debug());
            return Err(Failure::usage("use this cursor", why));
        }
        (Some(id), true) => Some(id.clone()),
        (None, true) => Some(context.scope.owner.clone().unwrap_or_else(|| "-".to_owned())),
    };
    let matching = cli.filter.is_some();
    let default = if cli.all || matching { None } else { Some(LINES) };
    let max_line = match cli.max_line {
        Some(0) => None,
        Some(bytes) => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
        None => cli.common.json.then_some(JSON_LINE),
    };
    Ok(Config {
        cursor,
        last: cli.lines.or(default),
        matching,
        run: cli.job.clone(),
        max_line,
        json: cli.common.json,
        heads: names > 1,
    })
}

/// One call's work.
struct Reading<'a> {
    config: Config,
    context: &'a Context,
    printer: Printer<Stdout>,
}

impl<'a> Reading<'a> {
    fn dir(&self) -> Result<&'a RunDir> {
        // A job was read from the directory, so there is one.
        self.context.dir.as_ref().ok_or_else(|| Failure::cannot("read the run directory", "it is gone"))
    }

    /// Reads what there is of each.
    fn once(&mut self, names: &[Name]) -> Result<Code> {
        let mut codes = Vec::new();
        for name in names {
            let runs = self.runs(name);
            let done = runs.and_then(|runs| {
                for (run, earlier) in &runs {
                    codes.push(self.read(run, *earlier, runs.len() > 1)?);
                }
                Ok(())
            });
            if let Err(failure) = done {
                failure.print(TOOL);
                codes.push(failure.code);
            }
            if self.printer.sink.is_closed() {
                break;
            }
        }
        Ok(term::worst(codes))
    }

    /// The runs of a name to read, oldest first, each with whether a newer one has followed it: the one that was
    /// asked for, or the latest, before which a cursor has the rest of those that it had begun.
    fn runs(&self, name: &Name) -> Result<Vec<(Job, bool)>> {
        let job = self.context.need(name)?;
        let dir = self.dir()?;
        if let Some(id) = &self.config.run {
            return Ok(vec![(self.run_with(dir, job, id)?, false)]);
        }
        let mut runs = Vec::new();
        if let (Some(id), Some(log)) = (&self.config.cursor, &job.log) {
            for earlier in unread_before(dir, &job.logs, &log.name, id)? {
                let run = self.run_of(dir, &earlier)?;
                let seen = |run: &Job| run.name == job.name && self.context.scope.sees(run.owner());
                runs.extend(run.filter(seen).map(|run| (run, true)));
            }
        }
        runs.push((job, false));
        Ok(runs)
    }

    fn run_of(&self, dir: &RunDir, log: &LogName) -> Result<Option<Job>> {
        Ok(read_log(dir, log)?.and_then(|log| of_log(&self.context.here, log)))
    }

    /// The run of a job's name that has this id.
    fn run_with(&self, dir: &RunDir, job: Job, id: &str) -> Result<Job> {
        let is_it = |job: &Job| {
            job.header().is_some_and(|h| h.job == id)
                || job.log.as_ref().is_some_and(|l| log_id(&l.name) == id)
        };
        if is_it(&job) {
            return Ok(job);
        }
        for log in &job.logs {
            if let Some(run) = self.run_of(dir, log)?
                && is_it(&run)
                && run.header().is_none_or(|h| h.name == job.name)
                && self.context.scope.sees(run.owner())
            {
                return Ok(run);
            }
        }
        Err(Failure::new(Code::NotTracked, format!("cannot find run {id} of {}: it has no log", job.name))
            .hint(format!("the latest is {}", job.header().map_or("without an id", |h| h.job.as_str()))))
    }

    fn head(&mut self, job: &Job, earlier: bool, several: bool) -> Result<()> {
        if self.config.heads || several {
            self.printer.head_if_any(Some(human::head(job, earlier)));
            // The rest of an earlier run may be nothing; of what was asked for, that is an answer.
            if self.config.heads && !earlier {
                self.printer.print_head()?;
            }
        } else {
            self.printer.head_if_any(None);
        }
        Ok(())
    }

    /// How a log is read from here on: where its last lines begin, or where the cursor stands.
    fn progress(&self, dir: &'a RunDir, job: &Job) -> Result<Option<Progress<'a>>> {
        let Some(log) = &job.log else { return Ok(None) };
        Ok(Some(match (&self.config.cursor, self.config.last) {
            (Some(id), _) => Progress::Shared(Cursor::of(dir, log, id)?),
            (None, None) => Progress::Own(None, Searched::default()),
            (None, Some(n)) => {
                let at = read::position_of_last(dir, log, n, self.config.matching, &self.printer)?;
                Progress::Own(Some(at), Searched::default())
            }
        }))
    }

    /// Reads what there is of one run.
    fn read(&mut self, job: &Job, earlier: bool, several: bool) -> Result<Code> {
        let dir = self.dir()?;
        self.printer.counts = Counts::default();
        self.head(job, earlier, several)?;
        let progress = self.progress(dir, job)?;
        let json = self.config.json;
        if json {
            self.printer.begin_object(&json::head(job))?;
        }
        let end = |printer: &mut Printer<Stdout>| match json {
            true => printer.end_object(&json::rest(dir, job, printer.counts)),
            false => Ok(()),
        };
        let (Some(log), Some(mut progress)) = (&job.log, progress) else {
            end(&mut self.printer)?;
            self.printer.sink.flush()?;
            term::say(TOOL, &format!("{}: no log found", job.name));
            return Ok(Code::NoVerdict);
        };
        // A plain read shows a last line that is not complete; a cursor waits for the rest of it.
        let over = self.config.cursor.is_none() || (!job.state.is_running() && !log.held);
        read::read(dir, log, &mut progress, Extent { over, whole: json }, &mut self.printer, end)?;
        let counts = self.printer.counts;
        if !json && !self.printer.sink.is_closed() {
            human::gaps(job, Counts::default(), counts);
            human::clipped(job, counts, self.config.max_line);
            if self.config.cursor.is_some() && !earlier && counts.lines == 0 {
                human::nothing_new(job);
            }
        }
        Ok(Code::Ok)
    }
}
