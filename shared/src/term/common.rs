//! What every tool is called with, and the settings that flags, TB_ variables and their older names share
//! (CONTRACT.md §10): a flag beats the TB_ variable, which beats the older name.

use super::{Code, Color, Failure, LONGEST, Result, parse_duration};
use crate::contract::{Job, Listing, Name, RunDir, Scope};
use crate::process::Here;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// Options of all tools.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// The run directory [default: $TB_LOG_DIR, $GLUDD_TEST_LOG_DIR or .gate-logs]
    #[arg(long, value_name = "DIR", global = true)]
    pub log_dir: Option<PathBuf>,
    /// Act as this owner: see and touch only its jobs [default: $TB_OWNER]
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "all_owners")]
    pub owner: Option<String>,
    /// See and touch the jobs of all owners
    #[arg(long, global = true)]
    pub all_owners: bool,
    /// Print JSON Lines, one object a job
    #[arg(long, global = true)]
    pub json: bool,
    /// Colour the output
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        global = true,
        hide_possible_values = true
    )]
    pub color: Color,
}

/// Names of jobs, from the arguments or from standard input.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Names {
    /// The jobs' names
    #[arg(value_name = "NAME")]
    pub names: Vec<OsString>,
    /// Read names from standard input, one a line
    #[arg(long)]
    pub stdin_names: bool,
    /// With --stdin-names: names end in NUL
    #[arg(short = '0', long = "null", requires = "stdin_names")]
    pub null: bool,
}

/// Where a tool works, and for whom.
#[derive(Debug)]
pub struct Context {
    /// The run directory's path as given.
    pub path: PathBuf,
    /// The run directory; `None` where there is none, which holds no jobs.
    pub dir: Option<RunDir>,
    /// Whose jobs are seen.
    pub scope: Scope,
    /// This machine.
    pub here: Here,
}

/// The owner that a flag or TB_OWNER names.
///
/// # Errors
/// When it is no owner's name.
pub fn owner(flag: Option<&str>) -> Result<Option<String>> {
    let (text, from) = match flag {
        Some(text) => (text.to_owned(), "--owner"),
        None => match std::env::var_os("TB_OWNER") {
            Some(text) => (text.to_string_lossy().into_owned(), "TB_OWNER"),
            None => return Ok(None),
        },
    };
    if text.is_empty() && from == "TB_OWNER" {
        return Ok(None);
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"_.@:-".contains(&b);
    if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) {
        return Err(Failure::usage(
            format!("use {from}"),
            format!("'{}' is no owner: 1 to 64 of A-Z a-z 0-9 _ . @ : -", text.escape_debug()),
        ));
    }
    Ok(Some(text))
}

impl Common {
    /// Opens the run directory and settles whose jobs are seen.
    ///
    /// # Errors
    /// When the owner is none, or the directory exists and cannot be opened.
    pub fn context(&self) -> Result<Context> {
        let scope = Scope { owner: owner(self.owner.as_deref())?, all: self.all_owners };
        let path = RunDir::resolve(self.log_dir.as_deref());
        Ok(Context { dir: RunDir::open(&path)?, path, scope, here: Here::read() })
    }
}

impl Names {
    /// The names, checked.
    ///
    /// # Errors
    /// When one is no name, or standard input cannot be read.
    pub fn get(&self) -> Result<Vec<Name>> {
        let mut texts = self.names.clone();
        if self.stdin_names {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|e| Failure::cannot("read names from standard input", e))?;
            let end = if self.null { 0 } else { b'\n' };
            texts.extend(
                bytes.split(|&b| b == end).filter(|n| !n.is_empty()).map(|n| OsString::from_vec(n.to_vec())),
            );
        }
        texts.iter().map(|t| Name::parse(t).map_err(|why| Failure::usage("use a job's name", why))).collect()
    }

    /// Whether names were asked for at all: an empty list on standard input is a list.
    pub fn given(&self) -> bool {
        self.stdin_names || !self.names.is_empty()
    }
}

impl Context {
    /// A job by its name; one outside the scope is not tracked.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn find(&self, name: &Name) -> Result<Option<Job>> {
        let Some(dir) = &self.dir else { return Ok(None) };
        Ok(crate::contract::find(dir, &self.here, name)?.filter(|job| self.scope.sees(job.owner())))
    }

    /// A job by its name, or the refusal that names the live jobs there are.
    ///
    /// # Errors
    /// When it is not tracked (4) or cannot be read.
    pub fn need(&self, name: &Name) -> Result<Job> {
        match self.find(name)? {
            Some(job) => Ok(job),
            None => Err(self.not_tracked(name)),
        }
    }

    /// All jobs in the scope.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Listing> {
        let Some(dir) = &self.dir else { return Ok(Listing::default()) };
        let mut listing = crate::contract::list(dir, &self.here)?;
        listing.jobs.retain(|job| self.scope.sees(job.owner()));
        Ok(listing)
    }

    /// The message for a name that is not tracked.
    pub fn not_tracked(&self, name: &Name) -> Failure {
        let failure = Failure::new(
            Code::NotTracked,
            format!("cannot find {name}: not tracked in {}", self.path.display()),
        );
        let live: Vec<String> = self
            .list()
            .map(|l| l.jobs.into_iter().filter(|j| j.state.is_running()).map(|j| j.name).collect())
            .unwrap_or_default();
        if live.is_empty() {
            failure.hint("no job is running here; tb-status lists what there is, tb-status --all also what was collected")
        } else {
            failure.hint(format!("running: {}", live.join(", ")))
        }
    }
}

fn setting(flag: Option<Duration>, names: &[(&str, Duration)], default: Duration) -> Result<Duration> {
    if let Some(value) = flag {
        return Ok(value);
    }
    for &(name, unit) in names {
        let Some(value) = std::env::var_os(name).filter(|v| !v.is_empty()) else { continue };
        let text = value.to_string_lossy();
        let number = text.trim();
        let bare = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let parsed = match number.parse::<f64>() {
            Ok(number) if bare => {
                let seconds = Duration::try_from_secs_f64(number * unit.as_secs_f64());
                Ok(seconds.map_or(LONGEST, |d| d.min(LONGEST)))
            }
            _ => parse_duration(&text),
        };
        return parsed.map_err(|why| Failure::usage(format!("use {name}"), why));
    }
    Ok(default)
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Between heartbeat lines while waiting: the flag, TB_HEARTBEAT, or 30 s.
///
/// # Errors
/// When the variable does not parse.
pub fn heartbeat(flag: Option<Duration>) -> Result<Duration> {
    let names = [("TB_HEARTBEAT", SECOND), ("GLUDD_TEST_HEARTBEAT_INTERVAL", SECOND)];
    setting(flag, &names, Duration::from_secs(30))
}

/// How long a wait waits: the flag, TB_WAIT_TIMEOUT, or 30 min.
///
/// # Errors
/// When the variable does not parse.
pub fn wait_timeout(flag: Option<Duration>) -> Result<Duration> {
    let names = [("TB_WAIT_TIMEOUT", SECOND), ("GLUDD_TEST_DEFAULT_TIMEOUT_MIN", MINUTE)];
    setting(flag, &names, Duration::from_secs(30 * 60))
}

/// Between TERM and KILL: the flag, TB_KILL_GRACE, or 5 s.
///
/// # Errors
/// When the variable does not parse.
pub fn kill_grace(flag: Option<Duration>) -> Result<Duration> {
    let names = [("TB_KILL_GRACE", SECOND), ("GLUDD_TEST_KILL_GRACE_SEC", SECOND)];
    setting(flag, &names, Duration::from_secs(5))
}

/// A word that a shell reads as it is: quoted where it has to be.
pub fn quoted(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}
