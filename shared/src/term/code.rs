//! The one table of exit codes (CONTRACT.md §9).

use std::process::ExitCode;

/// An exit code of the tools. `tb-guard` alone also passes its command's own codes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// Passed; done; nothing left to do.
    Ok = 0,
    /// The job failed, was killed or ran out of time; a dry sweep found something.
    Failed = 1,
    /// Usage or input error.
    Usage = 2,
    /// Still running, already running.
    Running = 3,
    /// No such job in this scope.
    NotTracked = 4,
    /// Ended without a footer or marker; a test log that is not complete.
    NoVerdict = 5,
    /// The cap on live jobs is reached.
    Refused = 6,
    /// Something that had to go could not be killed.
    Survivors = 7,
    /// The tool's own time limit expired.
    TimeUp = 124,
    /// The tool itself failed.
    Broken = 125,
    /// The command could not be executed.
    NotExecutable = 126,
    /// The command was not found.
    NotFound = 127,
    /// Interrupted while attached; the job goes on.
    Interrupted = 130,
}

impl Code {
    /// Place in the order "worst first" for answers about several jobs.
    fn badness(self) -> u8 {
        match self {
            Code::Interrupted => 13,
            Code::Broken => 12,
            Code::NotFound => 11,
            Code::NotExecutable => 10,
            Code::Usage => 9,
            Code::Survivors => 8,
            Code::Refused => 7,
            Code::NoVerdict => 6,
            Code::TimeUp => 5,
            Code::Failed => 4,
            Code::NotTracked => 3,
            Code::Running => 2,
            Code::Ok => 0,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// The worst of several codes, [`Code::Ok`] of none.
pub fn worst(codes: impl IntoIterator<Item = Code>) -> Code {
    codes.into_iter().max_by_key(|c| c.badness()).unwrap_or(Code::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_jobs_give_the_worst_in_the_contracts_order() {
        let order = [
            Code::Broken,
            Code::NotFound,
            Code::NotExecutable,
            Code::Usage,
            Code::Survivors,
            Code::Refused,
            Code::NoVerdict,
            Code::TimeUp,
            Code::Failed,
            Code::NotTracked,
            Code::Running,
            Code::Ok,
        ];
        for (i, &worse) in order.iter().enumerate() {
            for &better in &order[i..] {
                assert_eq!(worst([better, worse, better]), worse);
            }
        }
        assert_eq!(worst([]), Code::Ok);
    }
}
