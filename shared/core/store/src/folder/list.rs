use std::{fs::DirEntry, io};

use model::{Key, Kind};

use super::{Inner, read::modified};
use crate::Listed;

/// Folder of the mutable documents of each catalog.
const CATALOGS: &str = "catalogs";

impl Inner {
    /// Returns all objects whose path starts with `prefix`: an entry takes a hundred bytes.
    pub(super) fn list(&self, prefix: &str) -> io::Result<Vec<Listed>> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let entries = match self.path.join(&folder).read_dir() {
                // A delete removes the folders that it empties; the root is never one of them.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.is_empty() => {
                    continue;
                }
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                let path = match name.to_str() {
                    Some(name) if folder.is_empty() => name.to_owned(),
                    Some(name) => format!("{folder}/{name}"),
                    None => continue,
                };
                // The type of the entry itself: a symbolic link is neither a folder nor a file.
                let kind = entry.file_type()?;
                if kind.is_dir() && may_hold(&path, prefix) {
                    folders.push(path);
                } else if kind.is_file() && path.starts_with(prefix) {
                    found.extend(listed(&entry, &path)?);
                }
            }
        }
        Ok(found)
    }
}

/// True if a key with the prefix can lie in the folder.
fn may_hold(folder: &str, prefix: &str) -> bool {
    let inside = format!("{folder}/");
    // Other folders in the root are not read, such as the `lost+found` of a volume.
    let top = folder.split('/').next().unwrap_or(folder);
    let has_objects = Kind::ALL
        .iter()
        .any(|kind| kind.folder().split('/').next() == Some(top));
    if top != CATALOGS && !has_objects {
        return false;
    }
    inside.starts_with(prefix) || prefix.starts_with(&inside)
}

fn listed(entry: &DirEntry, path: &str) -> io::Result<Option<Listed>> {
    let Some(key) = Key::parse(path) else {
        return Ok(None);
    };
    let metadata = match entry.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    Ok(Some(Listed {
        key,
        size: metadata.len(),
        modified: modified(&metadata),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn may_hold_folder_off_the_prefix_is_false() {
        for (folder, prefix, expected) in [
            ("catalogs/a", "catalogs/ab", false),
            ("packages", "catalogs/", false),
            ("blobs", "", true),
            (".tmp", "", false),
            ("lost+found", "", false),
        ] {
            assert_eq!(may_hold(folder, prefix), expected, "{folder} {prefix}");
        }
    }
}
