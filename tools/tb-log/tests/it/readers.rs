//! Many readers of one cursor at once, as processes.

use crate::scene::{Scene, start};
use std::collections::BTreeSet;
use tb_shared::contract::Outcome;

#[test]
fn t11_t45_eight_readers_split_the_lines_exactly() {
    let scene = Scene::new();
    let mut run = scene.run("a.py", "0001", 1);
    let total = 100_000;
    let mut seen = BTreeSet::new();
    let mut count = 0;
    let mut written = 0;
    // Several rounds, so that readers meet lines that are being written; some are killed by a closed pipe's end,
    // none by us.
    for round in 0..5 {
        let readers: Vec<_> = (0..8)
            .map(|i| {
                let json = if (i + round) % 2 == 0 { "--json" } else { "--color=never" };
                start(&mut scene.tb_log(&["--new", json, "a.py"]))
            })
            .collect();
        for _ in 0..total / 5 {
            run.write(format!("line {written}\n"));
            written += 1;
        }
        for reader in readers {
            count += take(&reader.done().ok().out, &mut seen);
        }
    }
    run.finish(Outcome::Passed, 0);
    let readers: Vec<_> = (0..8).map(|_| start(&mut scene.tb_log(&["--new", "a.py"]))).collect();
    for reader in readers {
        count += take(&reader.done().ok().out, &mut seen);
    }
    assert_eq!((count, seen.len()), (total, total));
    assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&(total - 1))));
}

/// The numbers of the lines in a reader's output; how many lines.
fn take(out: &[u8], seen: &mut BTreeSet<usize>) -> usize {
    let text = std::str::from_utf8(out).unwrap();
    let lines: Vec<String> = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(object) if object.is_object() => {
            object["lines"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()).collect()
        }
        _ => text.lines().map(str::to_owned).collect(),
    };
    for line in &lines {
        let number = line.strip_prefix("line ").unwrap_or_else(|| panic!("{line:?}"));
        seen.insert(number.parse().unwrap());
    }
    lines.len()
}
