//! What the README says is true: its shell examples are run.

use std::{fs, process::Command};

use crate::support::{
    binary::{self, Server},
    cargo,
};

/// The shell blocks of the README that are marked `sh test`, against a running demo.
#[test]
fn the_examples_work_against_the_demo() {
    let server = Server::start(["demo", "--update-after", "1h"]);
    let blocks = blocks("sh test");
    assert!(blocks.len() >= 3, "the README has examples to run");
    for block in blocks {
        let script = block.replace("http://127.0.0.1:8080", &server.url);
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .output()
            .expect("bash runs");
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{script}\n{stdout}\n{stderr}");
        check_comments(&block, &stdout);
    }
}

/// A line `# -> text` promises that the block prints that text.
fn check_comments(block: &str, stdout: &str) {
    for promise in block
        .lines()
        .filter_map(|line| line.split_once("# -> "))
        .map(|(_, promise)| promise.trim())
    {
        assert!(
            stdout.contains(promise),
            "{block}\npromises {promise:?} but prints\n{stdout}"
        );
    }
}

/// Every subcommand and option that a command line in the README names exists.
#[test]
fn the_command_lines_parse() {
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let Some((_, arguments)) = line.split_once("catalog-mirror ") else {
            continue;
        };
        let words: Vec<&str> = arguments
            .split_whitespace()
            .take_while(|word| !["|", ">", "&&", "#", "\\"].contains(word))
            .collect();
        let help = binary::run([words[0], "--help"]).exits(0).stdout;
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{line}: {} has no {option}", words[0]);
        }
    }
}

/// The fenced blocks of the README whose info string starts so.
fn blocks(info: &str) -> Vec<String> {
    let readme = fs::read_to_string(cargo::root().join("README.md")).expect("there is a README");
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in readme.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.push_str(&format!("{line}\n")),
            (None, Some(found)) if found.starts_with(info) => open = Some(String::new()),
            (None, _) => {}
        }
    }
    blocks
}
