//! What CI systems and wrappers put before every line: a time, the seconds so far, a container's name.
//!
//! It is learnt from the log itself, once: from the line of a session's header, or else from what most of the
//! first lines begin with. A line that does not begin with it is left alone (some systems mark only some).

use tb_shared::pytest::{plain, rule};

/// What stands before the lines of this log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// The same bytes on each line.
    Text(Vec<u8>),
    /// `2024-05-01T12:00:00.0000000Z `, also in brackets, also with a space for the T.
    Time,
    /// `12:00:00 `, also in brackets, also with fractions.
    Clock,
    /// `[ 3379s] `.
    Elapsed,
}

const HEADER: &[u8] = b"= test session starts =";
/// How many first lines are looked at.
const SAMPLE: usize = 200;

impl Prefix {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// From a line, without escape sequences, that holds a session's header behind something else.
    pub(crate) fn of_header(line: &[u8]) -> Option<Prefix> {
        let line = line.trim_ascii_end();
        // The bar at its end is looked for first: this is asked of every line until a runner is known.
        let at = line.ends_with(b"=").then(|| memchr::memmem::find(line, HEADER))??;
        let start = line[..at].iter().rposition(|b| *b != b'=').map_or(0, |i| i + 1);
        // A test's name, or what it wrote, may stand before the header of a run inside it: that is no prefix.
        let ends_like_one =
            [&b"| "[..], b"> ", b"] ", b": ", b"\t"].iter().any(|e| line[..start].ends_with(e));
        let prefix = Prefix::parse(&line[..start]);
        let timed = !matches!(prefix.parts.last()?, Part::Text(_));
        ((timed || ends_like_one) && rule(&line[start..], b'=').is_some()).then_some(prefix)
    }

    /// From the first lines of a log.
    pub(crate) fn of_sample(text: &[u8]) -> Prefix {
        let lines: Vec<Vec<u8>> = text
            .split(|b| *b == b'\n')
            .take(SAMPLE)
            .map(|l| plain(l).trim_ascii_end().to_vec())
            .filter(|l| !l.is_empty())
            .collect();
        if let Some(header) = lines.iter().find(|l| memchr::memmem::find(l, HEADER).is_some()) {
            let prefix = Prefix::of_header(header);
            if prefix.is_some() || header.starts_with(b"=") {
                return prefix.unwrap_or_default();
            }
            // A test printed it behind something else.
        }
        let most = |part: Part| {
            let n = lines.iter().filter(|l| part.len_at(l).is_some()).count();
            let enough = n >= 3 || part == Part::Time && n == lines.len() && n > 0;
            (enough && n * 10 >= lines.len() * 8).then(|| Prefix { parts: vec![part] })
        };
        most(Part::Time)
            .or_else(|| most(Part::Elapsed))
            .or_else(|| most(Part::Clock))
            .or_else(|| Prefix::common(&lines))
            .or_else(|| Prefix::named_and_timed(&lines))
            .unwrap_or_default()
    }

    /// `job<tab>step<tab>2024-05-01T12:00:00.1234567Z `: the same text and a time.
    fn named_and_timed(lines: &[Vec<u8>]) -> Option<Prefix> {
        let first = lines.first()?;
        let tab = memchr::memrchr(b'\t', &first[..first.len().min(200)])?;
        let named = Prefix { parts: vec![Part::Text(first[..=tab].to_vec()), Part::Time] };
        let n = lines
            .iter()
            .filter(|l| l.starts_with(&first[..=tab]) && Part::Time.len_at(&l[tab + 1..]).is_some())
            .count();
        (n >= 3 && n * 10 >= lines.len() * 8).then_some(named)
    }

    /// A container's name or a quotation mark that begins every line.
    fn common(lines: &[Vec<u8>]) -> Option<Prefix> {
        if lines.len() < 4 {
            return None;
        }
        // The end of an empty line is cut: one that holds more tells how the prefix ends.
        let first =
            lines.iter().find(|l| memchr::memmem::find(l, b"| ").is_some() || l.starts_with(b"> "))?;
        let bar = memchr::memmem::find(first, b"| ").map(|at| at + 2);
        let len = if first.starts_with(b"> ") { 2 } else { bar.filter(|n| *n <= 60)? };
        let text = &first[..len];
        lines
            .iter()
            .all(|l| l.starts_with(text) || l == text.trim_ascii_end())
            .then(|| Prefix { parts: vec![Part::Text(text.to_vec())] })
    }

    fn parse(text: &[u8]) -> Prefix {
        let mut parts = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let found =
                [Part::Time, Part::Clock, Part::Elapsed].into_iter().find_map(|p| Some((p.len_at(rest)?, p)));
            if let Some((len, part)) = found {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(part);
                rest = &rest[len..];
            } else {
                plain.push(rest[0]);
                rest = &rest[1..];
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Prefix { parts }
    }

    /// The line without it.
    pub(crate) fn strip<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        let mut rest = line;
        for part in &self.parts {
            match part.len_at(rest) {
                Some(len) => rest = &rest[len..],
                None => return rest,
            }
        }
        rest
    }
}

impl Part {
    /// Its length at the beginning of the line, with the space behind it.
    fn len_at(&self, line: &[u8]) -> Option<usize> {
        match self {
            Part::Text(text) if line.starts_with(text) => Some(text.len()),
            // The space at the end of an otherwise empty line is often cut.
            Part::Text(text) => (line == text.trim_ascii_end()).then_some(line.len()),
            Part::Time => time(line, true),
            Part::Clock => time(line, false),
            Part::Elapsed => {
                let rest = line.strip_prefix(b"[")?;
                let blank = rest.iter().take_while(|b| **b == b' ').count();
                let digits = rest[blank..].iter().take_while(|b| b.is_ascii_digit()).count();
                let len = 1 + blank + digits;
                match &line[len..] {
                    _ if digits == 0 => None,
                    b"s]" => Some(len + 2),
                    rest => rest.starts_with(b"s] ").then_some(len + 3),
                }
            }
        }
    }
}

fn time(line: &[u8], with_date: bool) -> Option<usize> {
    let open = usize::from(line.first() == Some(&b'['));
    let mut at = open;
    if with_date {
        at += shape(&line[at..], b"dddd-dd-dd")?;
        at += matches!(line.get(at), Some(b'T' | b' ')).then_some(1)?;
    }
    at += shape(&line[at..], b"dd:dd:dd")?;
    if matches!(line.get(at), Some(b'.' | b',')) {
        at += 1 + line[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
    }
    match line.get(at) {
        Some(b'Z') => at += 1,
        Some(b'+' | b'-') => {
            at += 1 + line[at + 1..].iter().take_while(|b| b.is_ascii_digit() || **b == b':').count();
        }
        _ => {}
    }
    if open == 1 {
        at += (line.get(at) == Some(&b']')).then_some(1)?;
    }
    match line.get(at) {
        None => Some(at),
        // Jenkins writes two spaces, everybody else one; more belong to the line.
        Some(b' ') if !with_date && line.get(at + 1) == Some(&b' ') => Some(at + 2),
        Some(b' ') => Some(at + 1),
        Some(_) => None,
    }
}

fn shape(text: &[u8], shape: &[u8]) -> Option<usize> {
    let fits = text.len() >= shape.len()
        && shape.iter().zip(text).all(|(s, b)| if *s == b'd' { b.is_ascii_digit() } else { s == b });
    fits.then_some(shape.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(before: &str) -> String {
        let header = format!("{before}========== test session starts ==========");
        let prefix = Prefix::of_header(header.as_bytes()).unwrap_or_default();
        String::from_utf8_lossy(prefix.strip(format!("{before}test_a.py . [100%]").as_bytes())).into_owned()
    }

    #[test]
    fn prefixes_of_ci_systems_are_learnt_from_the_header() {
        for before in [
            "",
            "2024-05-01T12:00:00.1234567Z ",
            "[2024-05-01T12:00:00.123Z] ",
            "2024-05-01 12:00:00 ",
            "12:00:00  ",
            "tests-1  | ",
            "[ 3379s] ",
            "> ",
            "build\tRun tests\t2024-05-01T12:00:00.1234567Z ",
            "tests-1  | 2024-05-01T12:00:00.123456789Z ",
        ] {
            assert_eq!(stripped(before), "test_a.py . [100%]", "{before:?}");
        }
    }

    #[test]
    fn without_a_header_most_of_the_first_lines_decide() {
        let sample = b"2024-05-01T12:00:00.1Z a\n2024-05-01T12:00:01.1Z b\n2024-05-01T12:00:02.1Z c\n";
        assert_eq!(Prefix::of_sample(sample).strip(b"2024-05-01T12:00:09.9Z ..F [100%]"), b"..F [100%]");
        assert!(Prefix::of_sample(b"> a\n> b\n  c\n> d\n> e\n").is_empty());
        assert!(!Prefix::of_sample(b"> a\n> b\n> c\n> d\n>\n").is_empty());
        // A quiet run begins with an empty line, of which the spaces are cut.
        let of = |sample: &[u8], line: &[u8]| Prefix::of_sample(sample).strip(line).to_vec();
        assert_eq!(of(b"t-1  |\nt-1  | ..F\nt-1  |\nt-1  | x\n", b"t-1  | 1 failed"), b"1 failed");
        assert_eq!(of(b"[   0s]\n[   1s] ..\n[   1s]\n[   2s] x\n", b"[  12s] 1 failed"), b"1 failed");
        let gh = b"job\tRun it\t2024-05-01T12:00:00.1Z\njob\tRun it\t2024-05-01T12:00:01.1Z ..F\njob\tRun it\t2024-05-01T12:00:02.1Z a\n";
        assert_eq!(of(gh, b"job\tRun it\t2024-05-01T12:00:09.9Z 1 failed"), b"1 failed");
    }

    #[test]
    fn lines_without_the_prefix_are_left_alone() {
        let prefix = Prefix::of_header(b"12:00:00  === test session starts ===").unwrap();
        assert_eq!(prefix.strip(b"no time here"), b"no time here");
        assert_eq!(prefix.strip(b"12:00:01  [ 3s] x"), b"[ 3s] x");
    }
}
