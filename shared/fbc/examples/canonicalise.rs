//! Prints the canonical lines of all FBC files in a folder, in the order of `fs.WalkDir`.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use catalog_mirror_fbc::{Chunks, FbcLimits, IndexIgnore, walk_order};
use work::Budget;

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args().nth(1).ok_or("usage: canonicalise FOLDER")?;
    let root = Path::new(&root);
    let mut paths = Vec::new();
    walk(root, "", &mut paths)?;
    paths.sort_by(|a, b| walk_order(a, b));
    let ignore = ignore(root, &paths)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for path in &paths {
        if ignore.excludes(path, &Budget::default())? {
            continue;
        }
        print(&root.join(path), &mut out).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(out.flush()?)
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if entry.file_type()?.is_dir() {
            walk(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

fn ignore(root: &Path, paths: &[String]) -> Result<IndexIgnore, Box<dyn Error>> {
    let mut files = Vec::new();
    for path in paths {
        if path.rsplit('/').next() == Some(IndexIgnore::FILE_NAME) {
            files.push((path.clone(), fs::read(root.join(path))?));
        }
    }
    Ok(IndexIgnore::new(files, 1000)?)
}

fn print(path: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let limits = FbcLimits::default();
    for chunk in Chunks::new(File::open(path)?, limits, 4 << 20) {
        let mut written = Ok(());
        chunk?
            .metas(&limits, &mut |meta| {
                if written.is_ok() {
                    written = out.write_all(meta.line);
                }
            })
            .map_err(|error| match error.source() {
                Some(kind) => format!("{error}: {kind}"),
                None => error.to_string(),
            })?;
        written?;
    }
    Ok(())
}
