//! Catalogs that cost far more than their size: each is refused in little time and memory, and the others are published.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

use crate::support::binary::{self, Ran};

/// Address space of the program, in KiB. It reserves far more than it uses: stacks, and an arena for each thread.
const MEMORY_KIB: u32 = 2_500_000;
/// Time in which a poll ends on a busy machine, in seconds.
const SECONDS_MAX: u32 = 120;

/// Folder with a good catalog, a bad one, and the configuration of both.
struct Hostile(TempDir);

impl Hostile {
    fn new(bad: &[(&str, String)], limits: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let write = |path: &str, content: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write("good/catalog.json", r#"{"schema":"olm.package","name":"good"}"#);
        for (path, content) in bad {
            write(&format!("bad/{path}"), content);
        }
        let root = folder.path().display();
        let catalogs = format!("[{{name: bad, source: 'dir:{root}/bad'}}, {{name: good, source: 'dir:{root}/good'}}]");
        write("catalogs.yaml", &format!("catalogs: {catalogs}\nlimits: {limits}\n"));
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Polls both catalogs with little memory and time.
    fn poll(&self) -> Ran {
        let script = format!("ulimit -v {MEMORY_KIB} && exec timeout -s KILL {SECONDS_MAX} \"$0\" \"$@\"");
        let mut poll = Command::new("sh");
        poll.args(["-c", &script]).arg(binary::path());
        poll.args([
            "poll",
            "--store",
            &self.path("store"),
            "--config",
            &self.path("catalogs.yaml"),
        ]);
        Ran::of(&poll.output().expect("sh runs"))
    }

    /// Asserts that the bad catalog is refused with this error, and that the good one is published.
    #[track_caller]
    fn is_refused(&self, error: &str) {
        let ran = self.poll().exits(1);
        assert!(ran.stderr.contains(error), "{ran:#?}");
        let published = |name: &str| {
            Path::new(&self.path("store/catalogs"))
                .join(name)
                .join("current.json")
                .exists()
        };
        assert!(published("good") && !published("bad"), "{ran:#?}");
    }
}

/// Finding 16: one document took 95 bytes of memory for each of its own, and ended the process.
#[test]
fn document_that_needs_more_memory_than_there_is_is_refused() {
    let flow = |start: &str, part: &str| format!("{start}[{}]\n", part.repeat((60 << 20) / part.len()));
    for document in [flow("<<: ", "{},"), flow("x: &a ", "1,")] {
        let hostile = Hostile::new(&[("catalog.yaml", document)], "{}");
        hostile.is_refused("document 1, line 1: exceeds the limit memoryBytes of 268435456");
    }
}

/// Finding 16, below the limit of a document: what a merge key or an alias adds counts as well.
#[test]
fn document_whose_parts_need_too_much_memory_is_refused() {
    let keys = format!("v: {{{}}}\n", "n,".repeat(1 << 19));
    Hostile::new(&[("catalog.yaml", keys)], "{}").is_refused("exceeds the limit memoryRatio of 8");
    let aliases = format!("a: &a '{}'\nb: [{}]\n", "x".repeat(1 << 19), "*a,".repeat(99));
    Hostile::new(&[("catalog.yaml", aliases)], "{}").is_refused("exceeds the limit memoryRatio of 8");
}

/// Finding 17: 32,000 patterns were compiled again for each comparison with each of a few files in deep folders.
#[test]
fn ignore_file_with_too_many_patterns_is_refused() {
    let deep = format!("{}f.json", "a/".repeat(1900));
    let ignore = (".indexignore", "b\n".repeat(32_000));
    let hostile = Hostile::new(&[(&deep, "{\"a\":1}".into()), ignore], "{}");
    hostile.is_refused(".indexignore exceeds the limit ignorePatterns of 1000");
}

/// Finding 17: no limit counted the comparisons of patterns with paths.
#[test]
fn ignore_file_whose_comparisons_take_too_long_is_refused() {
    let deep = format!("{}f.json", "aaaaaaaa/".repeat(400));
    let ignore = (".indexignore", "*a*a*a*a*b\n".repeat(900));
    let hostile = Hostile::new(&[(&deep, "{\"a\":1}".into()), ignore], "{ignoreSteps: 1000000}");
    // The path before it is shortened.
    hostile.is_refused(" exceeds the limit ignoreSteps of 1000000");
}
