//! Every line that names an exception class, with what stands around it.

use std::collections::VecDeque;

const BEFORE: usize = 2;
const AFTER: usize = 10;

/// Picks the lines out of a log that is read block by block.
pub(crate) struct Grep {
    class: Vec<u8>,
    before: VecDeque<Vec<u8>>,
    after: usize,
    /// A line was left out since the last one that was kept.
    gap: bool,
    any: bool,
    n: u64,
}

impl Grep {
    /// For this class, as a word: `Error` is not found in `KeyError`, `KeyError` is in `pkg.KeyError`.
    pub(crate) fn new(class: &str) -> Grep {
        let class = class.as_bytes().to_vec();
        Grep { class, before: VecDeque::new(), after: 0, gap: false, any: false, n: 0 }
    }

    /// The lines of a block. `--` stands between lines that are not neighbours.
    pub(crate) fn block(&mut self, text: &[u8], mut see: impl FnMut(&[u8])) {
        for line in text.split_inclusive(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.n += 1;
            if self.names(line) {
                if self.gap && self.any {
                    see(b"--");
                }
                for line in self.before.drain(..) {
                    see(&line);
                }
                see(line);
                self.any = true;
                self.gap = false;
                self.after = AFTER;
            } else if self.after > 0 {
                self.after -= 1;
                see(line);
            } else {
                if self.before.len() == BEFORE {
                    self.before.pop_front();
                    self.gap = true;
                }
                self.before.push_back(line.to_vec());
            }
        }
    }

    fn names(&self, line: &[u8]) -> bool {
        let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        memchr::memmem::find_iter(line, &self.class).any(|at| {
            !word(at.checked_sub(1).and_then(|i| line.get(i))) && !word(line.get(at + self.class.len()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: &str, text: &str) -> Vec<String> {
        let mut grep = Grep::new(class);
        let mut out = Vec::new();
        // Line by line: blocks may end anywhere between lines.
        for line in text.split_inclusive('\n') {
            grep.block(line.as_bytes(), |l| out.push(String::from_utf8_lossy(l).into_owned()));
        }
        out
    }

    #[test]
    fn two_before_ten_after_and_a_mark_between() {
        let text: String = (0..60)
            .map(|i| if i == 5 || i == 8 || i == 40 { format!("{i} KeyError\n") } else { format!("{i}\n") })
            .collect();
        let got = of("KeyError", &text);
        let mut want: Vec<String> =
            (3..19).map(|i| if i == 5 || i == 8 { format!("{i} KeyError") } else { i.to_string() }).collect();
        want.push("--".to_owned());
        want.extend((38..51).map(|i| if i == 40 { format!("{i} KeyError") } else { i.to_string() }));
        assert_eq!(got, want);
    }

    #[test]
    fn the_class_is_a_word() {
        assert_eq!(of("Error", "KeyError\n").len(), 0);
        assert_eq!(of("KeyError", "E   pkg.KeyError: x\n").len(), 1);
        assert_eq!(of("KeyError", "KeyErrors\n").len(), 0);
    }
}
