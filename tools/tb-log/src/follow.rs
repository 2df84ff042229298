//! `--follow`: lines as they are written, until the job ends.

use crate::printer::{Counts, Printer};
use crate::read::{self, Extent, Progress};
use crate::sink::Stdout;
use crate::{Reading, TOOL, human, json};
use tb_shared::contract::{Job, LogName, Name, RunDir};
use tb_shared::log::{Watch, Woken};
use tb_shared::term::{self, Code, Failure, Result};
use tb_shared::wait::Interrupt;

/// A run that is followed.
struct Followed<'a> {
    name: Name,
    job: Job,
    progress: Option<Progress<'a>>,
    counts: Counts,
    saw_footer: bool,
    over: bool,
}

impl<'a> Reading<'a> {
    /// Follows the runs of these names: all at once, but as JSON, where a run is one object, one after the other.
    pub(crate) fn follow(&mut self, names: &[Name]) -> Result<Code> {
        let interrupt = Interrupt::ctrl_c()?;
        let mut codes = Vec::new();
        let groups = names.chunks(if self.config.json { 1 } else { names.len().max(1) });
        for group in groups {
            let mut runs = Vec::new();
            for name in group {
                match self.begin(name, &mut codes) {
                    Ok(run) => runs.push(run),
                    Err(failure) => {
                        failure.print(TOOL);
                        codes.push(failure.code);
                    }
                }
            }
            if let Some(ending) = self.until_over(&mut runs, &interrupt)? {
                return Ok(ending);
            }
            codes.extend(runs.iter().map(|run| run.job.state.code()));
        }
        Ok(term::worst(codes))
    }

    /// Reads what a cursor had left of earlier runs, and takes up the one to follow.
    fn begin(&mut self, name: &Name, codes: &mut Vec<Code>) -> Result<Followed<'a>> {
        let dir = self.dir()?;
        let mut runs = self.runs(name)?;
        let several = runs.len() > 1;
        let last = runs.pop();
        for (run, earlier) in &runs {
            codes.push(self.read(run, *earlier, several)?);
        }
        let Some((job, _)) = last else { return Err(self.context.not_tracked(name)) };
        let progress = self.progress(dir, &job)?;
        let counts = Counts::default();
        Ok(Followed { name: name.clone(), job, progress, counts, saw_footer: false, over: false })
    }

    /// Until all of them are over; or the code with which following ends before.
    fn until_over(&mut self, runs: &mut [Followed<'a>], interrupt: &Interrupt) -> Result<Option<Code>> {
        if runs.is_empty() {
            return Ok(None);
        }
        let dir = self.dir()?;
        let mut watch = Watch::new(dir);
        let heads = self.config.heads;
        if self.config.json {
            self.printer.begin_object(&json::head(&runs[0].job))?;
        }
        // The first look is at what happened before the watch began.
        let mut look = true;
        let ending = loop {
            let mut again = false;
            for run in runs.iter_mut().filter(|run| !run.over) {
                if look {
                    self.look(dir, run)?;
                    watch.job(dir, &run.job);
                }
                again |= self.read_more(dir, run, heads)?;
            }
            if self.printer.sink.is_closed() {
                break Some(Code::Ok);
            }
            if runs.iter().all(|run| run.over) {
                break None;
            }
            look = again || {
                let out = rustix::stdio::stdout();
                match watch.sleep(Some(interrupt.fd()), Some(out), None) {
                    Woken::Grown => false,
                    Woken::Changed => true,
                    Woken::Closed => break Some(Code::Ok),
                    Woken::Interrupted => break Some(Code::Interrupted),
                }
            };
        };
        for run in runs.iter() {
            if self.config.json {
                self.printer.end_object(&json::rest(dir, &run.job, run.counts))?;
                self.printer.sink.flush()?;
            } else if !self.printer.sink.is_closed() {
                human::clipped(&run.job, run.counts, self.config.max_line);
            }
        }
        if ending == Some(Code::Interrupted) {
            term::say(TOOL, "interrupted; the jobs go on");
        }
        Ok(ending)
    }

    /// Reads a run's state anew. A later run of the name is another: this one's own log tells how it ended.
    fn look(&self, dir: &RunDir, run: &mut Followed<'a>) -> Result<()> {
        let log_name = |job: &Job| job.log.as_ref().map(|l| l.name.clone());
        if let Some(found) = self.context.find(&run.name)? {
            let id = |job: &Job| job.header().map(|h| h.job.clone());
            let same = match (id(&run.job), id(&found)) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => {
                    log_name(&run.job).is_none()
                        || log_name(&found).is_none_or(|l| Some(l) == log_name(&run.job))
                }
            };
            if same {
                run.job = found;
                return Ok(());
            }
        }
        let name: Option<LogName> = log_name(&run.job);
        let job = name.map(|name| self.run_of(dir, &name)).transpose()?.flatten();
        run.job = job.ok_or_else(|| {
            Failure::cannot(format!("follow {}", run.name), "its log is gone").code(Code::NoVerdict)
        })?;
        Ok(())
    }

    /// Reads what there is now. True when the state must be read again at once: the job's last words were read.
    fn read_more(&mut self, dir: &'a RunDir, run: &mut Followed<'a>, heads: bool) -> Result<bool> {
        let ended = !run.job.state.is_running();
        if run.progress.is_none() {
            run.progress = self.progress(dir, &run.job)?;
        }
        let mut again = false;
        if let (Some(log), Some(progress)) = (&run.job.log, &mut run.progress) {
            self.printer.head_if_any(heads.then(|| human::head(&run.job, false)));
            self.printer.counts = run.counts;
            let over = ended && !log.held;
            let nothing = |_: &mut Printer<Stdout>| Ok(());
            let footer =
                read::read(dir, log, progress, Extent { over, whole: false }, &mut self.printer, nothing)?;
            human::gaps(&run.job, run.counts, self.printer.counts);
            run.counts = self.printer.counts;
            again = footer && !std::mem::replace(&mut run.saw_footer, true) && !ended;
        }
        run.over = ended;
        Ok(again)
    }
}
