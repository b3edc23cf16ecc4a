//! Catalogs that cost far more than their size: each is refused in little time and memory, and the others are published.

use std::process::Command;

use crate::support::{
    binary::{self, Ran},
    work::Work,
};

/// Address space of the program, in KiB. It reserves far more than it uses: stacks, and an arena for each thread.
const MEMORY_KIB: u32 = 2_500_000;
/// Time in which a poll ends on a busy machine, in seconds.
const SECONDS_MAX: u32 = 120;

/// Polls a good catalog and a bad one of these files with little memory and time. Asserts that the bad one is refused with
/// this error, and that the good one is published.
#[track_caller]
fn is_refused(bad: &[(&str, String)], limits: &str, error: &str) {
    let work = Work::new();
    work.write("good/catalog.json", r#"{"schema":"olm.package","name":"good"}"#);
    for (path, content) in bad {
        work.write(&format!("bad/{path}"), content);
    }
    let catalogs = "[{name: bad, source: 'dir:bad'}, {name: good, source: 'dir:good'}]";
    work.write("catalogs.yaml", format!("catalogs: {catalogs}\nlimits: {limits}\n"));
    let script = format!("ulimit -v {MEMORY_KIB} && exec timeout -s KILL {SECONDS_MAX} \"$0\" \"$@\"");
    let mut poll = Command::new("sh");
    poll.args(["-c", &script]).arg(binary::path()).current_dir(work.root());
    poll.args(["poll", "--store", "store", "--config", "catalogs.yaml"]);
    let ran = Ran::of(&mut poll).exits(1);
    ran.complains(error);
    let published = |name: &str| work.exists(&format!("store/catalogs/{name}/current.json"));
    assert!(published("good") && !published("bad"), "{ran:#?}");
}

/// Finding 16: one document took 95 bytes of memory for each of its own, and ended the process.
#[test]
fn document_that_needs_more_memory_than_there_is_is_refused() {
    let flow = |start: &str, part: &str| format!("{start}[{}]\n", part.repeat((60 << 20) / part.len()));
    for document in [flow("<<: ", "{},"), flow("x: &a ", "1,")] {
        is_refused(
            &[("catalog.yaml", document)],
            "{}",
            "document 1, line 1: exceeds the limit memoryBytes of 268435456",
        );
    }
}

/// Finding 16, below the limit of a document: what a merge key or an alias adds counts as well.
#[test]
fn document_whose_parts_need_too_much_memory_is_refused() {
    let keys = format!("v: {{{}}}\n", "n,".repeat(1 << 19));
    let aliases = format!("a: &a '{}'\nb: [{}]\n", "x".repeat(1 << 19), "*a,".repeat(99));
    for document in [keys, aliases] {
        let bad = [("catalog.yaml", document)];
        is_refused(&bad, "{}", "exceeds the limit memoryRatio of 8");
    }
}

/// Finding 17: 32,000 patterns were compiled again for each comparison with each of a few files in deep folders.
#[test]
fn ignore_file_with_too_many_patterns_is_refused() {
    let deep = format!("{}f.json", "a/".repeat(1900));
    let ignore = (".indexignore", "b\n".repeat(32_000));
    let bad = [(&*deep, "{\"a\":1}".into()), ignore];
    is_refused(&bad, "{}", ".indexignore exceeds the limit ignorePatterns of 1000");
}

/// Finding 17: no limit counted the comparisons of patterns with paths.
#[test]
fn ignore_file_whose_comparisons_take_too_long_is_refused() {
    let deep = format!("{}f.json", "aaaaaaaa/".repeat(400));
    let ignore = (".indexignore", "*a*a*a*a*b\n".repeat(900));
    let bad = [(&*deep, "{\"a\":1}".into()), ignore];
    // The path before it is shortened.
    is_refused(&bad, "{steps: 1000000}", " exceeds the limit steps of 1000000");
}
