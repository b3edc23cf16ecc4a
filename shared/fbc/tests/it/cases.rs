//! Compares recorded cases with catalogd's own answers. The cases are not part of the repository: `NAME/fbc/` is a file
//! tree, with `NAME/all.jsonl` or, if catalogd refuses it, `NAME/error.txt`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::lines;
use catalog_mirror_fbc::{IndexIgnore, walk_order};
use work::Budget;

/// Cases in which this crate keeps what catalogd loses, or accepts what it need not refuse; see `deviations.md`.
const DEVIATIONS: [&str; 3] = ["bigints", "json-numbers2", "quoted-slash"];

#[test]
#[ignore = "needs the cases, in the folder that CATALOG_MIRROR_CASES names"]
fn recorded_cases_give_the_bytes_of_catalogd() {
    let folder = std::env::var("CATALOG_MIRROR_CASES").expect("CATALOG_MIRROR_CASES is set");
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in fs::read_dir(folder).unwrap() {
        let case = case.unwrap().path();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let expected = fs::read_to_string(case.join("all.jsonl")).ok();
        count += 1;
        if catalog(&case.join("fbc")).ok() != expected && !DEVIATIONS.contains(&&*name) {
            wrong.push(name);
        }
    }
    assert!(count > 0, "there are no cases");
    assert!(wrong.is_empty(), "{wrong:?} of {count}");
}

fn catalog(root: &Path) -> Result<String, String> {
    let mut paths = Vec::new();
    walk(root, root, &mut paths);
    paths.sort_by(|a, b| walk_order(a, b));
    let read = |path: &String| fs::read(root.join(path)).map_err(|error| error.to_string());
    let mut ignore = IndexIgnore::default();
    for path in paths.iter().filter(|path| path.ends_with(IndexIgnore::FILE_NAME)) {
        let added = ignore.add(path, &read(path)?, 1000);
        added.map_err(|error| error.to_string())?;
    }
    let kept = paths
        .iter()
        .filter(|path| !ignore.excludes(path, &Budget::default()).unwrap());
    kept.map(|path| lines(&read(path)?)).collect()
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() && !entry.is_symlink() {
            walk(root, &entry, paths);
        } else {
            let path = entry.strip_prefix(root).unwrap();
            paths.push(path.to_string_lossy().into_owned());
        }
    }
}
