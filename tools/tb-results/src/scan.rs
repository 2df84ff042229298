//! What the parsers of several runners need: numbers, durations, names in order, classes of errors.

use crate::report::{Failing, Outcome, Slow};
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// How many failing tests are kept. A log that names more is noise, or nobody reads the list.
pub(crate) const NAMES: usize = 100_000;
/// Powers of ten, as many as have a use for a number of 15 bytes.
const POWERS: [f64; 15] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];
/// How much of one kind is told beside the tests: faults, workers that died, what was running.
const TOLD: usize = 1000;
/// How many of the slowest tests are told.
pub(crate) const SLOWEST: usize = 100;
/// So much of a message is kept.
const MESSAGE: usize = 400;

/// Bytes of a log as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The same, not copied if it is UTF-8, as it mostly is.
pub(crate) fn owned(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| text(e.as_bytes()))
}

/// One more of what is told, unless that is very much already.
pub(crate) fn tell(all: &mut Vec<String>, text: String) {
    if all.len() < TOLD {
        all.push(text);
    }
}

/// The number that the text begins with, and what follows it.
pub(crate) fn leading(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    // 18 digits fit.
    if digits == 0 || digits > 18 {
        return None;
    }
    Some((text[..digits].iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')), &text[digits..]))
}

/// A number and nothing else.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    leading(text).filter(|(_, rest)| rest.is_empty()).map(|(n, _)| n)
}

/// A number that may have a fraction, and nothing else.
pub(crate) fn decimal(text: &[u8]) -> Option<f64> {
    let other = || std::str::from_utf8(text).ok()?.parse().ok();
    // Every test has such a number. Few digits over a power of ten are both exact, and so is what they round to.
    if text.len() > 15 {
        return other();
    }
    let (mut digits, mut point) = (0u64, None);
    for (i, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(i),
            _ => return other(),
        }
    }
    if text.len() == usize::from(point.is_some()) {
        return None;
    }
    let places = point.map_or(0, |at| text.len() - at - 1);
    Some(digits as f64 / POWERS[places])
}

/// `4 failed`: the number and the words.
pub(crate) fn counted(text: &[u8]) -> Option<(u64, &[u8])> {
    let (n, rest) = leading(text)?;
    Some((n, rest.strip_prefix(b" ")?))
}

/// A duration as runners write it: `0.338 s`, `1.45s`, `566ms`, `2m`, `1m 3s`, `1 minute 2.5 seconds`, `3 h`.
pub(crate) fn seconds(text: &[u8]) -> Option<f64> {
    let mut rest = text.trim_ascii();
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let len = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
        let n = decimal(&rest[..len])?;
        rest = rest[len..].trim_ascii_start();
        let len = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        sum += n * match &rest[..len] {
            b"ms" => 0.001,
            b"s" | b"sec" | b"secs" | b"second" | b"seconds" => 1.0,
            b"m" | b"min" | b"mins" | b"minute" | b"minutes" => 60.0,
            b"h" | b"hour" | b"hours" => 3600.0,
            _ => return None,
        };
        rest = rest[len..].trim_ascii_start();
    }
    Some(sum)
}

/// Text between two marks at both ends of a line.
pub(crate) fn between<'t>(text: &'t [u8], open: &[u8], close: &[u8]) -> Option<&'t [u8]> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// The class that a message begins with, without its module: `pkg.errors.BoomError: x`, `TypeError [ERR_X]: y`.
pub(crate) fn class(message: &[u8]) -> Option<String> {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'$');
    let mut len = message.iter().take(200).take_while(|b| is_name(b)).count();
    while len > 0 && message[len - 1] == b':' {
        len -= 1;
    }
    let name = &message[..message[..len].windows(2).position(|w| w == b": ").unwrap_or(len)];
    if !matches!(message.get(name.len()), None | Some(b':' | b' ')) {
        return None;
    }
    let last = name.rsplit(|b| matches!(b, b'.' | b':' | b'$')).next()?;
    let endings: [&[u8]; 6] = [b"Error", b"Exception", b"Failure", b"Exit", b"Interrupt", b"Failed"];
    let is_class = last.first()?.is_ascii_uppercase() && endings.iter().any(|e| last.ends_with(e));
    is_class.then(|| text(last))
}

/// `src/lib.rs:32` in front of another colon or the end.
pub(crate) fn place(text_: &[u8]) -> Option<(String, u64)> {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b':', text_.get(at..)?) {
        let colon = at + found;
        if let Some((line, rest)) = leading(&text_[colon + 1..])
            && matches!(rest.first(), None | Some(b':' | b' ' | b',' | b')'))
            && colon > 0
        {
            return Some((text(&text_[..colon]), line));
        }
        at = colon + 1;
    }
    None
}

/// A number that stands for a name where only membership is asked. It is made for each test: eight bytes at a time.
pub(crate) fn hash(name: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    };
    let (words, rest) = name.as_chunks();
    let hash = words.iter().fold(name.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    mix(hash, rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

/// Text as a pattern that matches just it, in the dialects of regular expressions that runners take.
pub(crate) fn pattern(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\^$.*+?()[]{}|".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A set of such numbers; they need no second hashing.
pub(crate) type Hashes = HashSet<u64, BuildHasherDefault<Same>>;

/// The hash of a hash.
#[derive(Default)]
pub(crate) struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// A message short enough to be kept.
pub(crate) fn message(line: &[u8]) -> String {
    text(&line[..line.len().min(MESSAGE)])
}

/// Whether a line between runs tells that what ran before is over, however it ended: make's and npm's last words,
/// a shell's.
pub(crate) fn torn(line: &[u8]) -> bool {
    match line.first() {
        Some(b'm') => line.starts_with(b"make: *** ") || line.starts_with(b"make["),
        Some(b'n') => line.starts_with(b"npm ERR!") || line.starts_with(b"npm error"),
        Some(b'K' | b'S' | b'A') => {
            let words: [&[u8]; 6] = [
                b"Killed",
                b"Segmentation fault",
                b"Segmentation fault (core dumped)",
                b"Aborted",
                b"Aborted (core dumped)",
                b"Killed: 9",
            ];
            words.contains(&line)
        }
        _ => false,
    }
}

/// The slowest tests of a log of any length.
#[derive(Default)]
pub(crate) struct Slowest {
    all: Vec<Slow>,
    /// Faster tests are not among them.
    bar: f64,
}

impl Slowest {
    /// One more test; its name is asked for only if it is slow.
    pub(crate) fn add(&mut self, seconds: f64, id: impl FnOnce() -> String) {
        if seconds > self.bar {
            self.all.push(Slow { id: id(), phase: None, seconds });
            if self.all.len() >= 1000 {
                self.cut();
                self.bar = self.all.last().map_or(0.0, |s| s.seconds);
            }
        }
    }

    fn cut(&mut self) {
        self.all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.all.truncate(SLOWEST);
    }

    /// Those that are told, the slowest first.
    pub(crate) fn into_vec(mut self) -> Vec<Slow> {
        self.cut();
        self.all
    }
}

/// Failing tests in the order of the log, each once.
#[derive(Default)]
pub(crate) struct Names {
    all: Vec<Failing>,
    /// Where the name of that hash is.
    index: HashMap<u64, usize, BuildHasherDefault<Same>>,
}

impl Names {
    /// The test of that id, new if it was not there. `None`: there are too many already.
    pub(crate) fn add(&mut self, id: &[u8], outcome: Outcome) -> Option<&mut Failing> {
        let next = self.all.len();
        let at = match self.index.entry(hash(id)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if next >= NAMES => return None,
            Entry::Vacant(free) => {
                self.all.push(Failing::new(text(id), outcome));
                *free.insert(next)
            }
        };
        self.all.get_mut(at)
    }

    /// The test of that id.
    pub(crate) fn get(&mut self, id: &[u8]) -> Option<&mut Failing> {
        let at = *self.index.get(&hash(id))?;
        self.all.get_mut(at)
    }

    /// The test that was added last.
    pub(crate) fn last(&mut self) -> Option<&mut Failing> {
        self.all.last_mut()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.all.len() as u64
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<Failing> {
        self.all
    }

    /// All of them, unless tests failed and none was named. (Two tests of one name are one entry, so that fewer
    /// names than failures are no proof of a gap.)
    pub(crate) fn if_named(self, failed: u64) -> Option<Vec<Failing>> {
        (failed == 0 || !self.all.is_empty()).then_some(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_all_runners() {
        for (text, want) in [
            ("0.338 s", 0.338),
            ("566ms", 0.566),
            ("1m 3s", 63.0),
            ("2m", 120.0),
            ("1 minute 2.5 seconds", 62.5),
            ("1h 1s", 3601.0),
        ] {
            assert!((seconds(text.as_bytes()).unwrap() - want).abs() < 1e-9, "{text}");
        }
        for text in ["", "s", "1", "1 apple", "1.2.3s", "-1s"] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_what_a_parser_makes_of_them() {
        let texts = ["0", "0.1", "12.", ".5", "0.30", "123456789.12345", "12345678901234.5678", "1e3", "inf"];
        for text in texts.into_iter().chain(["", ".", "1.2.3", "-1", "1,5", " 1", "1s", "\u{661}"]) {
            assert_eq!(decimal(text.as_bytes()), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn classes_and_places() {
        let class = |m: &str| class(m.as_bytes());
        assert_eq!(class("pkg.errors.BoomError: x").as_deref(), Some("BoomError"));
        assert_eq!(class("TypeError: Cannot read").as_deref(), Some("TypeError"));
        assert_eq!(class("AssertionError [ERR_ASSERTION]: x").as_deref(), Some("AssertionError"));
        assert_eq!(class("java.lang.IllegalStateException").as_deref(), Some("IllegalStateException"));
        for none in ["Expected: 5", "it's an Error", "", ":", "error: x"] {
            assert_eq!(class(none), None, "{none}");
        }
        assert_eq!(place(b"src/lib.rs:32:103:"), Some(("src/lib.rs".to_owned(), 32)));
        assert_eq!(place(b"C:\\a.rs:3"), Some(("C:\\a.rs".to_owned(), 3)));
        assert_eq!(place(b"a: 3"), None);
    }

    #[test]
    fn a_name_is_kept_once_in_its_place() {
        let mut names = Names::default();
        for id in ["b", "a", "b"] {
            names.add(id.as_bytes(), Outcome::Failed);
        }
        let ids: Vec<String> = names.into_vec().into_iter().map(|f| f.id).collect();
        assert_eq!(ids, ["b", "a"]);
    }
}
