//! A line with a bar a job, on a terminal: the heartbeat of one who watches.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;
use tb_shared::contract::Name;
use tb_shared::report::Report;
use tb_shared::wait::Show;

/// How often the bars are brought up to date.
pub const BEAT: Duration = Duration::from_secs(1);

/// The bars of the jobs that still run.
pub struct Bars {
    all: MultiProgress,
    one: RefCell<BTreeMap<String, ProgressBar>>,
}

impl Bars {
    /// Bars, where standard error is a terminal that can move its cursor.
    pub fn on_terminal() -> Option<Self> {
        let can_move = std::env::var_os("TERM").is_some_and(|t| !t.is_empty() && t != "dumb");
        (can_move && std::io::stderr().is_terminal()).then(|| Self {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            one: RefCell::new(BTreeMap::new()),
        })
    }

    /// Takes a job's bar away, which is over: its result line follows.
    pub fn over(&self, name: &str) {
        if let Some(bar) = self.one.borrow_mut().remove(name) {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }

    /// Has something written above the bars.
    pub fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        self.all.suspend(write)
    }

    /// Takes all bars away.
    pub fn clear(&self) {
        for bar in std::mem::take(&mut *self.one.borrow_mut()).into_values() {
            bar.finish_and_clear();
        }
    }
}

impl Show for Bars {
    fn beat(&self, name: &Name, report: &Report, elapsed: Duration) {
        let outlook = report.outlook().map(|o| format!(", {o}")).unwrap_or_default();
        let text = format!("{name}: {} [{}s]{outlook}", report.headline(), elapsed.as_secs());
        let percent = u64::from(report.percent.unwrap_or(0));
        let mut one = self.one.borrow_mut();
        let bar = one.entry(name.to_string()).or_insert_with(|| {
            // A job's own text in a template would be read as one; it is the message.
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
            self.all.add(ProgressBar::new(100).with_style(style).with_message(text.clone()))
        });
        bar.set_message(text);
        bar.set_position(percent);
        bar.tick();
    }

    fn aside(&self, write: &mut dyn FnMut()) {
        self.above(write);
    }
}
