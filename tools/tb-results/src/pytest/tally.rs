//! What was counted while the run went on: for the runs that never came to say it themselves.

use tb_shared::pytest::{Summary, Word};

/// Reports by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) errors: u64,
    pub(super) skipped: u64,
    pub(super) xfailed: u64,
    pub(super) xpassed: u64,
    pub(super) reruns: u64,
    pub(super) sub_passed: u64,
    pub(super) sub_failed: u64,
    pub(super) sub_skipped: u64,
    /// `u`: failed, or passed.
    pub(super) sub_unclear: u64,
}

impl Tally {
    pub(super) fn add(&mut self, word: Word) {
        match word {
            Word::Passed => self.passed += 1,
            Word::Failed => self.failed += 1,
            Word::Error => self.errors += 1,
            Word::Skipped => self.skipped += 1,
            Word::Xfail => self.xfailed += 1,
            Word::Xpass => self.xpassed += 1,
            Word::Rerun => self.reruns += 1,
            Word::SubPassed => self.sub_passed += 1,
            // pytest counts a failed or skipped subtest among the failed and skipped tests.
            Word::SubFailed => {
                self.sub_failed += 1;
                self.failed += 1;
            }
            Word::SubSkipped => {
                self.sub_skipped += 1;
                self.skipped += 1;
            }
        }
    }

    /// The letters of the short form. `u` is a failed subtest with the old plugin, and with pytest 9 a failed or
    /// a passed one: only the colour tells, so it is not counted here.
    pub(super) fn letters(&mut self, letters: &[u8]) {
        for letter in letters {
            match letter {
                b'.' => self.passed += 1,
                // The small one is a crash with xdist 1.
                b'F' | b'f' => self.failed += 1,
                b'E' => self.errors += 1,
                b's' => self.skipped += 1,
                b'x' => self.xfailed += 1,
                b'X' => self.xpassed += 1,
                b'R' => self.reruns += 1,
                b'u' => self.sub_unclear += 1,
                b',' => self.sub_passed += 1,
                b'-' => self.add(Word::SubSkipped),
                _ => {}
            }
        }
    }

    /// All reports, the reruns and passed subtests aside.
    pub(super) fn reports(&self) -> u64 {
        self.passed + self.failed + self.errors + self.skipped + self.xfailed + self.xpassed
    }

    /// Whether a summary tells of just what was counted.
    pub(super) fn fits(&self, summary: &Summary) -> bool {
        self.reports() > 0
            && (self.passed, self.errors) == (summary.passed, summary.errors)
            && (self.failed..=self.failed + self.sub_unclear).contains(&summary.failed)
            && self.reports() - self.failed == summary.reports() - summary.failed
    }
}
