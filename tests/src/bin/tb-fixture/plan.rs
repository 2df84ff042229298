//! The words: read as a whole before anything is done, so that a typing error has no effects.

use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
tb-fixture WORD...: a process that misbehaves on request

who
  role NAME            what births call it (main; children: their way of being started)
  life SECONDS         end by itself after this time (120)
  births FILE          register there instead of in $TB_TEST_BIRTHS
  ready                register now
  comm NAME            another name in /proc/PID/comm
what it is spared
  ignore SIG, block SIG, default SIG      dispositions and mask
  ignore-term          ignore TERM, INT and HUP
  close FD, close-all  close a descriptor; all above 2, with 0-2 on /dev/null
  as-nobody            user and group 65534 (root only; else nothing)
  limit nproc|fsize|nofile|core N         soft and hard limit
children (without [ ... ]: `[ hold ]`)
  spawn-same [ ... ]   in our group and session          (role same)
  spawn-setpgid [ .. ] in a group of its own             (role setpgid)
  spawn-setsid [ ... ] in a session of its own           (role setsid)
  daemon [ ... ]       setsid, its parent gone           (role daemon)
  daemon-envclear [ ]  likewise, no environment, no descriptors, in /  (role daemon-envclear)
  hold-pipe            spawn-same, then exit 0: the child keeps our output open
  storm N              N links of a chain, each in a new session, each leaving at once; 4 s at most
  wait-children        until none is left
reactions
  on-term [ ... ]      at SIGTERM (in a thread; the plan goes on, then still runs)
  term-handler SECONDS FILE    on-term [ sleep SECONDS stamp FILE exit 0 ] hold
  spawn-on-term        on-term [ spawn-setsid [ ignore-term hold ] exit 0 ] hold
output
  print TEXT, print-err TEXT   a line
  print-line SIZE      one line of SIZE bytes
  truncate-stderr      open /dev/stderr with O_TRUNC, write a line
  stamp FILE           write our pid into a new file, complete when it appears
  append FILE TEXT     a line at the end of a file
  caught-signals       our masks as in /proc/self/status, our descriptors
  ids                  pid ppid pgid sid
  env NAME             its value, or `NAME is not set`
rest
  await FILE           until it exists
  sleep SECONDS, hold  hold: for life
  cpu SECONDS          computing
  stopped              by SIGSTOP
  threads N            the main thread exits, N others live on
  repeat N [ ... ]
end
  exit N, kill-self SIG, gone (without registering)
  exec COMMAND [ARG...]  (also: --)
";

/// How a child is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Same,
    Setpgid,
    Setsid,
    Daemon,
    DaemonEnvclear,
}

/// One word and what belongs to it.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Role(String),
    Life(u32),
    Births(PathBuf),
    Ready,
    Comm(String),
    Ignore(Vec<Signal>),
    Block(Signal),
    Default(Signal),
    Close(i32),
    CloseAll,
    AsNobody,
    Limit(Resource, u64),
    /// The words are the child's; they were read once to see that they are right.
    Spawn(How, Vec<OsString>),
    NewSession,
    Storm(u32, Option<u128>),
    WaitChildren,
    OnTerm(Vec<Act>),
    Print(String),
    PrintErr(String),
    PrintLine(usize),
    TruncateStderr,
    Stamp(PathBuf),
    Append(PathBuf, String),
    CaughtSignals,
    Ids,
    Env(String),
    Await(PathBuf),
    Sleep(Duration),
    Cpu(Duration),
    Hold,
    Stopped,
    Threads(u32),
    Repeat(u32, Vec<Act>),
    Exit(i32),
    Gone,
    KillSelf(Signal),
    Exec(Vec<OsString>),
}

/// Reads a plan.
pub(crate) fn parse(words: &[OsString]) -> Result<Vec<Act>, String> {
    let mut reader = Reader { words, at: 0 };
    let mut plan = Vec::new();
    while let Some(word) = reader.next() {
        reader.act(word, &mut plan)?;
    }
    Ok(plan)
}

struct Reader<'a> {
    words: &'a [OsString],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a OsString> {
        let word = self.words.get(self.at);
        self.at += 1;
        word
    }

    fn text(&mut self, of: &str) -> Result<&'a str, String> {
        let word = self.next().ok_or_else(|| format!("`{of}` wants one word more"))?;
        word.to_str().ok_or_else(|| format!("`{of}`: {word:?} is not UTF-8"))
    }

    fn path(&mut self, of: &str) -> Result<PathBuf, String> {
        self.next().map(PathBuf::from).ok_or_else(|| format!("`{of}` wants a path"))
    }

    fn number<T: std::str::FromStr>(&mut self, of: &str) -> Result<T, String> {
        let word = self.text(of)?;
        word.parse().map_err(|_| format!("`{of}` wants a number, not {word:?}"))
    }

    fn seconds(&mut self, of: &str) -> Result<Duration, String> {
        let number = self.number(of)?;
        Duration::try_from_secs_f64(number).map_err(|e| format!("`{of} {number}`: {e}"))
    }

    fn signal(&mut self, of: &str) -> Result<Signal, String> {
        let word = self.text(of)?;
        let name = if word.starts_with("SIG") { word.to_owned() } else { format!("SIG{word}") };
        name.parse().map_err(|_| format!("`{of}`: there is no signal {word:?}"))
    }

    /// The words of `[ … ]`, if that is what comes next.
    fn block(&mut self, of: &str) -> Result<Option<&'a [OsString]>, String> {
        if self.words.get(self.at).is_none_or(|w| w != "[") {
            return Ok(None);
        }
        let first = self.at + 1;
        let mut depth = 0;
        while let Some(word) = self.next() {
            depth += i32::from(word == "[") - i32::from(word == "]");
            if depth == 0 {
                return Ok(Some(&self.words[first..self.at - 1]));
            }
        }
        Err(format!("`{of} [` has no `]`"))
    }

    fn plan(&mut self, of: &str) -> Result<Vec<Act>, String> {
        parse(self.block(of)?.ok_or_else(|| format!("`{of}` wants `[ … ]`"))?)
    }

    fn child(&mut self, how: How, of: &str) -> Result<Act, String> {
        let words = self.block(of)?.map_or_else(|| vec!["hold".into()], <[_]>::to_vec);
        parse(&words)?;
        Ok(Act::Spawn(how, words))
    }

    fn act(&mut self, word: &OsString, plan: &mut Vec<Act>) -> Result<(), String> {
        let word = word.to_str().ok_or_else(|| format!("{word:?} is no word"))?;
        let act = match word {
            "role" => Act::Role(self.text(word)?.to_owned()),
            "life" => Act::Life(self.number(word)?),
            "births" => Act::Births(self.path(word)?),
            "ready" => Act::Ready,
            "comm" => Act::Comm(self.text(word)?.to_owned()),
            "ignore" => Act::Ignore(vec![self.signal(word)?]),
            "ignore-term" => Act::Ignore(vec![Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]),
            "block" => Act::Block(self.signal(word)?),
            "default" => Act::Default(self.signal(word)?),
            "close" => Act::Close(self.number(word)?),
            "close-all" => Act::CloseAll,
            "as-nobody" => Act::AsNobody,
            "limit" => {
                let what = match self.text(word)? {
                    "nproc" => Resource::RLIMIT_NPROC,
                    "fsize" => Resource::RLIMIT_FSIZE,
                    "nofile" => Resource::RLIMIT_NOFILE,
                    "core" => Resource::RLIMIT_CORE,
                    other => return Err(format!("there is no limit {other:?} here")),
                };
                Act::Limit(what, self.number(word)?)
            }
            "spawn-same" => self.child(How::Same, word)?,
            "spawn-setpgid" => self.child(How::Setpgid, word)?,
            "spawn-setsid" => self.child(How::Setsid, word)?,
            "daemon" => self.child(How::Daemon, word)?,
            "daemon-envclear" => self.child(How::DaemonEnvclear, word)?,
            "hold-pipe" => {
                plan.push(Act::Spawn(How::Same, vec!["hold".into()]));
                Act::Exit(0)
            }
            "new-session" => Act::NewSession,
            "storm" => Act::Storm(self.number(word)?, None),
            "storm-link" => Act::Storm(self.number(word)?, Some(self.number(word)?)),
            "wait-children" => Act::WaitChildren,
            "on-term" => Act::OnTerm(self.plan(word)?),
            "term-handler" => {
                plan.push(Act::OnTerm(vec![
                    Act::Sleep(self.seconds(word)?),
                    Act::Stamp(self.path(word)?),
                    Act::Exit(0),
                ]));
                Act::Hold
            }
            "spawn-on-term" => {
                let child = vec!["ignore-term".into(), "hold".into()];
                plan.push(Act::OnTerm(vec![Act::Spawn(How::Setsid, child), Act::Exit(0)]));
                Act::Hold
            }
            "print" => Act::Print(self.text(word)?.to_owned()),
            "print-err" => Act::PrintErr(self.text(word)?.to_owned()),
            "print-line" => Act::PrintLine(self.number(word)?),
            "truncate-stderr" => Act::TruncateStderr,
            "stamp" => Act::Stamp(self.path(word)?),
            "append" => Act::Append(self.path(word)?, self.text(word)?.to_owned()),
            "caught-signals" => Act::CaughtSignals,
            "ids" => Act::Ids,
            "env" => Act::Env(self.text(word)?.to_owned()),
            "await" => Act::Await(self.path(word)?),
            "sleep" => Act::Sleep(self.seconds(word)?),
            "cpu" => Act::Cpu(self.seconds(word)?),
            "hold" => Act::Hold,
            "stopped" => Act::Stopped,
            "threads" => Act::Threads(self.number(word)?),
            "repeat" => Act::Repeat(self.number(word)?, self.plan(word)?),
            "exit" => Act::Exit(self.number(word)?),
            "gone" => Act::Gone,
            "kill-self" => Act::KillSelf(self.signal(word)?),
            "exec" | "--" => {
                let command = self.words[self.at..].to_vec();
                if command.is_empty() {
                    return Err("`exec` wants a command".to_owned());
                }
                self.at = self.words.len();
                Act::Exec(command)
            }
            other => return Err(format!("there is no word {other:?} (tb-fixture --help)")),
        };
        plan.push(act);
        Ok(())
    }
}
