//! Generated archives, read by this reader and by Go's `archive/tar`.
//!
//! The file `answers` has a line for each seed from 0: the answer of Go, which is `error` or a hash of the list of entries.
//! Then comes the reason if this reader refuses an archive that Go reads. `scripts/long-checks differential` compares many more
//! archives with Go itself, and writes the file again if `TAR_ANSWERS` names it.

mod archives;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use super::{TarError, TarReader, kind};
use crate::digest::Digest;

const RECORDED: &str = include_str!("answers");

/// Errors for archives that Go reads, with the reason for each. No builder writes such archives.
const REFUSED_ON_PURPOSE: &[(&str, &str)] = &[
    (
        "an entry is described twice",
        "GNU tar and libarchive take another one of the two than Go",
    ),
    (
        "an entry is described and does not come",
        "it is cut off, and Go takes the cut for the end",
    ),
    (
        "a global header stands between an entry and its description",
        "Go forgets the description, and other readers apply it",
    ),
    (
        "a global header renames or resizes all entries",
        "Go ignores it, and other readers apply it",
    ),
    (
        "a size is negative",
        "Go ignores it for entries without content, and other readers do not",
    ),
    (
        "the times of a GNU header are malformed",
        "Go before 1.8, and later versions for a few texts, take them for a part of the path",
    ),
];

/// Returns the answer of this reader, and true if there were sparse files: their maps are not read, so that a wrong map
/// of a file outside the catalog is no error.
fn answer(archive: &[u8]) -> (Result<String, String>, bool) {
    let mut reader = TarReader::new(archive, 1 << 20);
    let (mut list, mut has_sparse) = (Vec::new(), false);
    loop {
        let entry = match reader.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => return (Ok(Digest::of(&list).hex()[..8].to_owned()), has_sparse),
            Err(TarError::Malformed(what)) => return (Err(what.to_owned()), has_sparse),
            Err(error) => return (Err(format!("{error:?}")), has_sparse),
        };
        if entry.sparse.is_some() {
            has_sparse = true;
            list.extend(b"sparse\n");
            continue;
        }
        let mut content = Vec::new();
        if reader.content().read_to_end(&mut content).is_err() || content.len() as u64 != entry.size {
            return (Err("content".to_owned()), has_sparse);
        }
        list.push(if entry.kind == kind::OLD_FILE {
            kind::FILE
        } else {
            entry.kind
        });
        list.extend([&entry.path[..], b"\0", &entry.target, b"\0"].concat());
        list.extend(format!("{}\n", content.len()).into_bytes());
        list.extend(content);
    }
}

/// Compares the answer for one seed with Go's. Returns the line for the file of answers, or a text about the difference.
fn compare(seed: u64, go: &str) -> Result<String, String> {
    let (ours, has_sparse) = answer(&archives::archive(seed));
    match ours {
        Ok(ours) if ours == go => Ok(ours),
        Ok(_) if go == "error" && has_sparse => Ok("error sparse".to_owned()),
        Err(_) if go == "error" => Ok(go.to_owned()),
        Err(what) if REFUSED_ON_PURPOSE.iter().any(|(on_purpose, _)| *on_purpose == what) => Ok(format!("{go} {what}")),
        ours => Err(format!("seed {seed}: {ours:?}, Go {go}")),
    }
}

#[test]
fn reader_agrees_with_recorded_answers_of_go() {
    let mut wrong = Vec::new();
    let mut read = 0;
    for (seed, line) in RECORDED.lines().enumerate() {
        let go = line.split(' ').next().unwrap_or_default();
        read += usize::from(go == line && go != "error");
        match compare(seed as u64, go) {
            Ok(found) if found == line => {}
            Ok(found) => wrong.push(format!("seed {seed}: {found}, recorded {line}")),
            Err(difference) => wrong.push(difference),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(read > 500, "only {read} archives were read by both");
    for (what, why) in REFUSED_ON_PURPOSE {
        assert!(RECORDED.contains(what), "no archive shows {what:?}: {why}");
    }
}

/// Asks the program of `scripts/lib/tar`, which `TAR_LISTER` names, about many archives. `ARCHIVES` and `FIRST_SEED` choose them.
#[test]
#[ignore = "needs Go: run scripts/long-checks differential"]
fn reader_agrees_with_go() {
    const BATCH: u64 = 2000;
    let number = |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("FIRST_SEED", 0);
    let last = first + number("ARCHIVES", BATCH);
    let (mut wrong, mut recorded, mut counts) = (Vec::new(), String::new(), BTreeMap::new());
    for start in (first..last).step_by(BATCH as usize) {
        let seeds = start..last.min(start + BATCH);
        for (seed, go) in seeds.clone().zip(ask_go(seeds)) {
            match compare(seed, &go) {
                Ok(line) => {
                    let kind = line.split_once(' ').map_or("", |(_, reason)| reason);
                    let kind = if line == "error" { "refused by both" } else { kind };
                    *counts.entry(kind.to_owned()).or_insert(0u64) += 1;
                    writeln!(recorded, "{line}").unwrap();
                }
                Err(difference) => wrong.push(difference),
            }
        }
    }
    println!("{} differ; {counts:#?}", wrong.len());
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{wrong:#?}");
    if let Ok(path) = env::var("TAR_ANSWERS") {
        fs::write(path, recorded).unwrap();
    }
}

fn ask_go(seeds: std::ops::Range<u64>) -> Vec<String> {
    let program = env::var_os("TAR_LISTER").expect("TAR_LISTER names the program of scripts/lib/tar");
    let mut asked = Command::new(program);
    let mut asked = asked.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = asked.stdin.take().unwrap();
    let expected = (seeds.end - seeds.start) as usize;
    // In a thread of its own: both pipes would fill up.
    let writer = thread::spawn(move || {
        for archive in seeds.map(archives::archive) {
            input.write_all(&(archive.len() as u32).to_be_bytes()).unwrap();
            input.write_all(&archive).unwrap();
        }
    });
    let output = asked.wait_with_output().unwrap();
    writer.join().unwrap();
    let lines: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(ToOwned::to_owned)
        .collect();
    assert_eq!(lines.len(), expected, "{}", output.status);
    lines
}
