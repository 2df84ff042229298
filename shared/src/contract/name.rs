//! A job's name, and the file names that follow from it (CONTRACT.md §2).

use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fmt;

/// The longest name, in bytes: a header has to hold it.
const NAME_MAX: usize = 1024;
/// The longest plain stem, in bytes: with its prefix and stamp it must fit into a file name.
const PLAIN_MAX: usize = 200;
/// How much of a name a hashed stem keeps, in bytes.
const HASHED_KEEP: usize = 190;

/// The name a job is known by: the test file as typed, `--name`, or an automatic handle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// The part of a file name that stands for a job's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stem(String);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// What is wrong with it: empty, not UTF-8, a control character, `-` or a leading `-`, too long.
    pub fn parse(text: &OsStr) -> Result<Name, String> {
        let Some(text) = text.to_str() else {
            return Err(format!("the name {} is not UTF-8", text.to_string_lossy().escape_debug()));
        };
        let shown = text.escape_debug();
        if text.is_empty() {
            Err("the name is empty".to_owned())
        } else if text.chars().any(char::is_control) {
            Err(format!("the name '{shown}' has a control character"))
        } else if text.starts_with('-') {
            Err(format!("the name '{shown}' begins with '-'"))
        } else if text.len() > NAME_MAX {
            Err(format!("the name has {} bytes, more than {NAME_MAX}", text.len()))
        } else {
            Ok(Name(text.to_owned()))
        }
    }

    /// The automatic handle with this number.
    pub fn handle(number: u64) -> Name {
        Name(format!("job_{number}"))
    }

    /// Whether the name has the form of an automatic handle, which nobody may choose.
    pub fn is_handle(&self) -> bool {
        self.0.strip_prefix("job_").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The stem that existing Makefiles know (`tests_unit_test_foo_py`), where the name has one.
    pub fn plain_stem(&self) -> Option<Stem> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"_./:=@+,-".contains(&b);
        (self.0.len() <= PLAIN_MAX && self.0.bytes().all(fits)).then(|| Stem(self.0.replace(['/', '.'], "_")))
    }

    /// The stem with a hash, which no other name shares.
    pub fn hashed_stem(&self) -> Stem {
        let keeps = |b: u8| b.is_ascii_alphanumeric() || b"_:=@+,-".contains(&b);
        let mut stem: String =
            self.0.bytes().take(HASHED_KEEP).map(|b| if keeps(b) { char::from(b) } else { '_' }).collect();
        stem.push('~');
        for byte in &Sha256::digest(self.0.as_bytes())[..4] {
            stem.push_str(&format!("{byte:02x}"));
        }
        Stem(stem)
    }

    /// The stems under which readers look, the plain one first.
    pub fn stems(&self) -> impl Iterator<Item = Stem> {
        self.plain_stem().into_iter().chain([self.hashed_stem()])
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Stem {
    /// A stem found in a file name.
    pub fn found(text: &str) -> Stem {
        Stem(text.to_owned())
    }

    /// The stem as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `.test-<STEM>.pid`
    pub fn pid_file(&self) -> String {
        format!(".test-{}.pid", self.0)
    }

    /// The stem of a PID file's name.
    pub fn of_pid_file(file: &str) -> Option<Stem> {
        let stem = file.strip_prefix(".test-")?.strip_suffix(".pid")?;
        (!stem.is_empty()).then(|| Stem(stem.to_owned()))
    }
}

/// A log's file name, taken apart: `test-<STEM>-<YYYYMMDD_HHMMSS>[-N].log`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName {
    /// The job's stem.
    pub stem: Stem,
    /// `YYYYMMDD_HHMMSS`, UTC.
    pub stamp: String,
    /// 1 for the first log of a second, then 2, 3, …
    pub sequence: u32,
}

impl LogName {
    /// Takes a file name apart; `None` where it is no log of ours.
    pub fn parse(file: &str) -> Option<LogName> {
        let rest = file.strip_prefix("test-")?.strip_suffix(".log")?;
        let (rest, sequence) = match rest.rsplit_once('-') {
            Some((left, n)) if n.len() <= 9 && !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => {
                // "-0" and "-1" are never written, and a leading zero would give one number two names.
                let number = n.parse().ok().filter(|&k| k >= 2 && !n.starts_with('0'))?;
                (left, number)
            }
            _ => (rest, 1),
        };
        let (stem, stamp) = rest.rsplit_once('-')?;
        let shape = stamp.len() == 15
            && stamp.bytes().enumerate().all(|(i, b)| if i == 8 { b == b'_' } else { b.is_ascii_digit() });
        (shape && !stem.is_empty()).then(|| LogName {
            stem: Stem(stem.to_owned()),
            stamp: stamp.to_owned(),
            sequence,
        })
    }

    /// The file name.
    pub fn file(&self) -> String {
        match self.sequence {
            0 | 1 => format!("test-{}-{}.log", self.stem.0, self.stamp),
            n => format!("test-{}-{}-{n}.log", self.stem.0, self.stamp),
        }
    }

    /// What orders the logs of one stem by age, oldest first.
    pub fn order(&self) -> (&str, u32) {
        (&self.stamp, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Name {
        Name::parse(OsStr::new(text)).unwrap()
    }

    #[test]
    fn g02_an_ordinary_name_gives_the_stem_that_makefiles_know() {
        assert_eq!(name("tests/unit/test_foo.py").plain_stem().unwrap().as_str(), "tests_unit_test_foo_py");
        assert_eq!(
            name("tests/unit/test_foo.py").plain_stem().unwrap().pid_file(),
            ".test-tests_unit_test_foo_py.pid"
        );
    }

    #[test]
    fn a_name_with_other_characters_has_a_hashed_stem_alone() {
        let n = name("tests/a.py::TestX::test_y[1]");
        assert_eq!(n.plain_stem(), None);
        let stem = n.hashed_stem();
        assert!(stem.as_str().starts_with("tests_a_py::TestX::test_y_1_~"), "{stem:?}");
        assert_eq!(stem.as_str().len(), "tests_a_py::TestX::test_y_1_~".len() + 8);
        // The digits are `printf "a b" | sha256sum`.
        assert_eq!(name("a b").hashed_stem().as_str(), "a_b~c8687a08");
    }

    #[test]
    fn names_that_share_a_plain_stem_differ_in_the_hashed_one() {
        let (a, b) = (name("a/b.py"), name("a_b.py"));
        assert_eq!(a.plain_stem(), b.plain_stem());
        assert_ne!(a.hashed_stem(), b.hashed_stem());
    }

    #[test]
    fn long_names_are_cut_and_hashed() {
        let long = "x".repeat(201);
        assert_eq!(name(&long).plain_stem(), None);
        assert_eq!(name(&long).hashed_stem().as_str().len(), 190 + 9);
        assert!(name(&"x".repeat(200)).plain_stem().is_some());
        assert!(Name::parse(OsStr::new(&"x".repeat(1025))).is_err());
    }

    #[test]
    fn bad_names_are_refused() {
        use std::os::unix::ffi::OsStrExt;
        for bad in ["", "-", "-x", "a\nb", "a\x1bb", "a\u{7f}"] {
            assert!(Name::parse(OsStr::new(bad)).is_err(), "{bad:?} was taken");
        }
        assert!(Name::parse(OsStr::from_bytes(b"a\xffb")).is_err());
    }

    #[test]
    fn handles_are_recognised() {
        assert!(name("job_7").is_handle());
        assert!(Name::handle(12).is_handle());
        for other in ["job_", "job_x", "job_7x", "my_job_7"] {
            assert!(!name(other).is_handle(), "{other}");
        }
    }

    #[test]
    fn log_names_are_read_by_exact_stem_and_stamp() {
        let l = LogName::parse("test-foo-bar-20260725_143000.log").unwrap();
        assert_eq!((l.stem.as_str(), l.stamp.as_str(), l.sequence), ("foo-bar", "20260725_143000", 1));
        let l = LogName::parse("test-foo-20260725_143000-12.log").unwrap();
        assert_eq!((l.stem.as_str(), l.sequence), ("foo", 12));
        assert!(
            LogName::parse("test-foo-20260725_143000-12.log").unwrap().order()
                > LogName::parse("test-foo-20260725_143000-9.log").unwrap().order()
        );
        for other in [
            "test-foo.log",
            "test--20260725_143000.log",
            "test-foo-20260725_143000-1.log",
            "test-foo-20260725_143000-02.log",
            "test-foo-20260725-143000.log",
            "foo-20260725_143000.log",
            ".new-abc.log",
        ] {
            assert_eq!(LogName::parse(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn stems_are_file_names(text in "[^\\x00-\\x1f\\x7f-\\x9f-][^\\x00-\\x1f\\x7f-\\x9f]{0,300}") {
            if let Ok(n) = Name::parse(OsStr::new(&text)) {
                for stem in n.stems() {
                    prop_assert!(stem.pid_file().len() <= 255);
                    prop_assert!(!stem.as_str().contains(['/', '.', '\0']));
                    let log = LogName { stem: stem.clone(), stamp: "20260725_143000".into(), sequence: 3 };
                    prop_assert_eq!(LogName::parse(&log.file()), Some(log));
                    prop_assert_eq!(Stem::of_pid_file(&stem.pid_file()), Some(stem));
                }
            }
        }

        #[test]
        fn any_file_name_can_be_read(text in "\\PC{0,60}") {
            if let Some(l) = LogName::parse(&text) {
                prop_assert_eq!(l.file(), text);
            }
        }
    }
}
