use std::{fs::DirEntry, io, sync::Arc};

use futures_util::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use model::{Key, Kind};

use super::{FolderStore, Inner, Stamp};
use crate::{Listed, Operation, StoreError};

/// Folder of the mutable documents of each catalog.
const CATALOGS: &str = "catalogs";

/// Lists one folder after the other, as the stream is read.
pub(super) fn list(store: &FolderStore, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
    let walk = Walk {
        store: store.clone(),
        prefix: prefix.to_owned(),
        folders: vec![String::new()],
    };
    stream::try_unfold(walk, Walk::next)
        .map_ok(|listed| stream::iter(listed.into_iter().map(Ok)))
        .try_flatten()
        .boxed()
}

struct Walk {
    store: FolderStore,
    prefix: String,
    folders: Vec<String>,
}

/// Objects and folders in one folder.
#[derive(Default)]
struct Content {
    objects: Vec<Listed>,
    folders: Vec<String>,
}

impl Walk {
    async fn next(mut self) -> Result<Option<(Vec<Listed>, Self)>, StoreError> {
        let Some(folder) = self.folders.pop() else {
            return Ok(None);
        };
        let prefix = self.prefix.clone();
        let content = self
            .store
            .blocking(Operation::List, &self.prefix, move |inner| {
                inner.read_folder(&folder, &prefix)
            })
            .await?;
        self.folders.extend(content.folders);
        Ok(Some((content.objects, self)))
    }
}

impl Inner {
    fn read_folder(self: &Arc<Self>, folder: &str, prefix: &str) -> io::Result<Content> {
        let mut content = Content::default();
        let entries = match self.path.join(folder).read_dir() {
            // A delete removes the folders that it empties; the root is never one of them.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.is_empty() => return Ok(content),
            entries => entries?,
        };
        for entry in entries {
            content.add(&entry?, folder, prefix)?;
        }
        Ok(content)
    }
}

impl Content {
    fn add(&mut self, entry: &DirEntry, folder: &str, prefix: &str) -> io::Result<()> {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Ok(());
        };
        let path = if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        };
        // The type of the entry itself: a symbolic link is neither a folder nor a file.
        let kind = entry.file_type()?;
        if kind.is_dir() && may_hold(&path, prefix) {
            self.folders.push(path);
        } else if kind.is_file() && path.starts_with(prefix) {
            self.objects.extend(listed(entry, &path)?);
        }
        Ok(())
    }
}

/// True if a key with the prefix can lie in the folder.
fn may_hold(folder: &str, prefix: &str) -> bool {
    let inside = format!("{folder}/");
    // Other folders in the root are not read, such as the `lost+found` of a volume.
    let top = folder.split('/').next().unwrap_or(folder);
    let has_keys = top == CATALOGS
        || Kind::ALL
            .iter()
            .any(|kind| kind.folder().split('/').next() == Some(top));
    has_keys && (inside.starts_with(prefix) || prefix.starts_with(&inside))
}

fn listed(entry: &DirEntry, path: &str) -> io::Result<Option<Listed>> {
    let Some(key) = Key::parse(path) else {
        return Ok(None);
    };
    match entry.metadata() {
        Ok(metadata) => {
            let stamp = Stamp::of(&metadata);
            Ok(Some(Listed {
                key,
                size: stamp.size(),
                modified: stamp.modified(),
            }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn may_hold_folder_off_the_prefix_is_false() {
        for (folder, prefix, expected) in [
            ("catalogs", "", true),
            ("catalogs", "cat", true),
            ("catalogs", "catalogs/a", true),
            ("catalogs/a", "catalogs/a", true),
            ("catalogs/ab", "catalogs/a", true),
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
