//! What holds for all bytes: no panic, no time that grows faster than the log, for every runner of the table.

use crate::grammars::{GRAMMARS, Grammar};
use proptest::prelude::*;
use std::time::Instant;
use tb_results::runner::{Format, TABLE, by_name};

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "============================= test session starts ==============================\n",
        "=================================== FAILURES ===================================\n",
        "==================================== ERRORS ====================================\n",
        "=========================== short test summary info ============================\n",
        "========================= 1 failed, 2 passed in 0.10s ==========================\n",
        "____________________________________ test_a ____________________________________\n",
        "____________________________ ERROR collecting a.py _____________________________\n",
        "1 failed, 2 passed in 0.10s\n",
        "FAILED a.py::test_a - E: x\n",
        "ERROR a.py\n",
        "[m] (i=2) SUBFAIL a.py::t - x\n",
        "a.py::test_a PASSED   [ 12%]\n",
        "a.py::test_a[",
        "a.py::test_b ",
        "a.py ..F",
        "..F [ 50%]\n",
        "[gw0] [ 12%] PASSED a.py::test_a \n",
        "[gw0] node down: Not properly terminated\n",
        "worker 'gw0' crashed while running 'a.py::test_a'\n",
        "INTERNALERROR> KeyError: 1\n",
        "!!!!! KeyboardInterrupt !!!!!\n",
        "Results (0.22s):\n",
        "       3 passed\n",
        "Fatal Python error: Aborted\n",
        "Current thread 0x1 (most recent call first):\n",
        "  File \"/a/_pytest/python.py\", line 1 in pytest_pyfunc_call\n",
        "=== GATE RESULT: {\"job\":1} ===\n",
        "2024-05-01T12:00:00.1Z ",
        " \u{2713}\u{2a2f}",
        "\r",
        "\x1b[31m",
        "\n",
        "[",
        "]",
        " - ",
        "(",
        "::",
    ]);
    prop_oneof![
        8 => words.prop_map(|w| w.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ]
}

fn log(parts: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..parts).prop_map(|p| p.concat())
}

/// A log of one or two runners' pieces, in any order, some of them cut short.
fn foreign(parts: usize) -> impl Strategy<Value = Vec<u8>> {
    let one = prop::sample::select(GRAMMARS.iter().collect::<Vec<&Grammar>>());
    (one.clone(), one).prop_flat_map(move |(a, b)| {
        let pieces: Vec<&str> = a.pieces.iter().chain(b.pieces).copied().collect();
        let piece = (prop::sample::select(pieces), prop_oneof![2 => Just(100usize), 1 => 0..100usize]);
        let piece = piece.prop_map(|(text, percent)| {
            let cut = text.len() * percent / 100;
            let end: &[u8] = if percent < 100 && cut.is_multiple_of(2) { b"\n" } else { b"" };
            [&text.as_bytes()[..cut], end].concat()
        });
        prop::collection::vec(piece, 0..parts).prop_map(|p| p.concat())
    })
}

fn read_all(log: &[u8]) {
    read_as(log, std::iter::once(None).chain(TABLE.iter().map(Some)));
}

fn read_as(log: &[u8], formats: impl Iterator<Item = Option<&'static Format>>) {
    for format in formats {
        let report = tb_results::read(log, format, |_| {}).expect("a slice can be read");
        let _ = (report.verdict(), report.failing().map(|f| f.len()), report.complete());
        let _ = tb_results::rerun::lines(&report).map(|lines| lines.len());
        let _ =
            serde_json::to_string(&tb_results::json::Object::new("x", &report, None)).expect("it is JSON");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_read(log in prop::collection::vec(any::<u8>(), 0..600)) {
        read_all(&log);
    }

    #[test]
    fn any_mixture_of_the_grammar_is_read(log in log(80)) {
        read_all(&log);
    }

    #[test]
    fn any_mixture_of_two_runners_grammars_is_read(log in foreign(60)) {
        read_all(&log);
    }

    /// However the reader hands out the bytes, the report is the same.
    #[test]
    fn where_reads_end_does_not_matter(log in prop_oneof![log(60), foreign(40)], step in 1usize..50) {
        struct Slow<'a>(&'a [u8], usize);
        impl std::io::Read for Slow<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                let n = self.1.min(to.len()).min(self.0.len());
                to[..n].copy_from_slice(&self.0[..n]);
                self.0 = &self.0[n..];
                Ok(n)
            }
        }
        // The first block decides about a prefix, and slow reads make it small: compare logs without one.
        prop_assume!(!log.windows(5).any(|w| w == b"2024-"));
        let whole = tb_results::read(&log[..], None, |_| {}).expect("read");
        let pieces = tb_results::read(Slow(&log, step), None, |_| {}).expect("read");
        prop_assert_eq!(whole.counts(), pieces.counts());
        prop_assert_eq!(whole.verdict(), pieces.verdict());
        prop_assert_eq!(
            whole.failing().map(|f| f.iter().map(|f| f.id.clone()).collect::<Vec<_>>()),
            pieces.failing().map(|f| f.iter().map(|f| f.id.clone()).collect::<Vec<_>>())
        );
    }
}

/// Logs of one fragment repeated, and of one long line, twice as long each time: the time must not grow like the
/// square. What is quadratic takes minutes here, so the bound leaves room for a machine that stalls.
#[test]
fn no_fragment_makes_it_quadratic() {
    let fragments: &[&str] = &[
        "[",
        "]",
        " - ",
        "a.py::t[",
        "= ",
        "FAILED a.py::t - x\n",
        "a.py::t ",
        "a.py::t \n",
        "\r",
        "\x1b[",
        "_ ",
        "== test session starts ==\n",
        "[gw0] node down: x\n",
        "SKIPPED (",
        " SKIPPED (a.py::t",
        "::",
        "1 failed in 1s\n",
        "worker 'gw0' crashed while running 'a.py::t'\n",
        "(",
        "FAILED a.py::t[ - ",
        "] - ",
    ];
    for fragment in fragments {
        for end in ["", "PASSED  [ 50%]", ")", "=", "D"] {
            let time = |bytes: usize| {
                let mut log = b"============================= test session starts ==============================\nFAILED ".to_vec();
                while log.len() < bytes {
                    log.extend_from_slice(fragment.as_bytes());
                }
                log.extend_from_slice(end.as_bytes());
                let start = Instant::now();
                read_all(&log);
                start.elapsed().as_secs_f64()
            };
            let (short, long) = (time(16 << 10), time(256 << 10));
            assert!(long < 5.0 + 64.0 * short, "{fragment:?} {end:?}: {short} s, then {long} s");
        }
    }
}

#[test]
fn every_row_of_the_table_has_a_grammar() {
    for format in TABLE.iter().filter(|f| f.name != "pytest") {
        assert!(GRAMMARS.iter().any(|g| g.runner == format.name), "{}", format.name);
    }
}

/// A row that a line's first byte rules out is not asked about the line: it must not be one that would say yes.
#[test]
fn no_row_opens_on_a_line_whose_first_byte_it_rules_out() {
    for line in GRAMMARS.iter().flat_map(|g| g.pieces).flat_map(|p| p.split('\n')) {
        for first in 0..=u8::MAX {
            // The line itself, and lines that are it but for their first byte, indented and not.
            let body = line.trim_start();
            let blanks = &line.as_bytes()[..line.len() - body.len()];
            let other = [blanks, &[first], body.as_bytes().get(1..).unwrap_or_default()].concat();
            for line in [line.as_bytes(), &other] {
                let Some(first) = line.trim_ascii_start().first() else { continue };
                for format in TABLE.iter().filter(|f| !(f.begins)(*first)) {
                    assert!(!(format.opens)(line), "{}: {:?}", format.name, String::from_utf8_lossy(line));
                }
            }
        }
    }
}

/// Every line of every runner, cut at every byte.
#[test]
fn a_line_may_end_anywhere() {
    for grammar in GRAMMARS {
        let all = grammar.pieces.concat().into_bytes();
        let format = by_name(grammar.runner);
        for piece in grammar.pieces {
            for end in 0..piece.len() {
                let cut = &piece.as_bytes()[..end];
                for log in [cut.to_vec(), [&all[..], cut].concat(), [&all[..], cut, b"\n", &all[..]].concat()]
                {
                    read_as(&log, [None, format].into_iter());
                }
            }
        }
    }
}

/// The same for each runner: behind every one of its lines, one of its pieces again and again.
#[test]
fn no_piece_of_any_grammar_makes_it_quadratic() {
    for grammar in GRAMMARS {
        let format = by_name(grammar.runner);
        for opening in grammar.pieces.iter().filter(|p| p.ends_with('\n')).take(3) {
            for piece in grammar.pieces {
                let time = |bytes: usize| {
                    let mut log = opening.as_bytes().to_vec();
                    while log.len() < bytes {
                        log.extend_from_slice(piece.as_bytes());
                    }
                    let start = Instant::now();
                    read_as(&log, [None, format].into_iter());
                    start.elapsed().as_secs_f64()
                };
                let (short, long) = (time(8 << 10), time(128 << 10));
                assert!(
                    long < 2.0 + 64.0 * short,
                    "{}: {opening:?} {piece:?}: {short} s, then {long} s",
                    grammar.runner
                );
            }
        }
    }
}
