//! The README's examples work: every block tagged `sh test` is run, every `make test` block is a Makefile.

use std::fs;
use tb_tests::Scene;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");

/// A fenced block: the section that it is in, its tag, its text.
struct Block {
    section: String,
    tag: String,
    text: String,
}

fn blocks(readme: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut section = "";
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        } else if let Some(tag) = line.strip_prefix("```") {
            let text: String =
                lines.by_ref().take_while(|l| !l.starts_with("```")).flat_map(|l| [l, "\n"]).collect();
            found.push(Block { section: section.to_owned(), tag: tag.to_owned(), text });
        }
    }
    found
}

/// What the examples take for granted: a project with tests, and an installed tb.mk.
fn project(blocks: &[Block], section: &str) -> Scene {
    let mut scene = Scene::new();
    // Every example begins with one of the tools: say at once that they are missing.
    for tool in [
        "tb-launch",
        "tb-status",
        "tb-wait",
        "tb-log",
        "tb-kill",
        "tb-results",
        "tb-guard",
        "tb-reap-orphans",
    ] {
        scene.bin(tool);
    }
    let pass = "def test_it():\n    assert True\n";
    scene.pytest_project(&[
        ("tests/unit/test_foo.py", pass),
        ("tests/unit/test with spaces.py", pass),
        ("tests/integration/test_bar.py", pass),
    ]);
    let tb_mk =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/tb.mk")).expect("tb.mk is there");
    scene.file("home/.local/share/tb/tb.mk", tb_mk);
    let home = scene.path("home");
    scene.set_env("HOME", home);
    // `python` is the one that has pytest, as in an activated environment.
    let python = tb_tests::python();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = vec![tb_tests::bin_dir(), python.parent().expect("it is in a directory").to_owned()];
    dirs.extend(std::env::split_paths(&path));
    scene.set_env("PATH", std::env::join_paths(dirs).expect("no colons in our directories"));
    for block in blocks.iter().filter(|b| b.section == section && b.tag == "make test") {
        scene.file("Makefile", &block.text);
    }
    scene
}

fn run(section: &str) {
    let readme = fs::read_to_string(README).expect("the repository has a README");
    let blocks = blocks(&readme);
    let examples: Vec<_> = blocks.iter().filter(|b| b.section == section && b.tag == "sh test").collect();
    assert!(!examples.is_empty(), "README.md has no example in its section {section:?}");
    for example in examples {
        let scene = project(&blocks, section);
        println!("{}", example.text);
        let out = scene.cmd("/bin/sh").args(["-euc", &example.text]).run().ok();
        println!("{out}");
        scene.assert_quiet();
    }
}

#[test]
fn the_first_minutes() {
    run("The first minutes");
}

#[test]
fn in_a_makefile() {
    run("In a Makefile");
}

#[test]
fn in_ci() {
    run("In CI");
}

#[test]
fn for_agents() {
    run("For agents");
}

#[test]
fn every_tagged_block_is_in_a_section_that_is_run() {
    let readme = fs::read_to_string(README).expect("the repository has a README");
    let run = ["The first minutes", "In a Makefile", "In CI", "For agents"];
    for block in blocks(&readme) {
        match block.tag.as_str() {
            "sh test" | "make test" => {
                assert!(run.contains(&block.section.as_str()), "no test runs {:?}", block.section);
            }
            other => panic!("a block tagged {other:?}: tag it `sh test`, or indent what is not to be run"),
        }
    }
}
