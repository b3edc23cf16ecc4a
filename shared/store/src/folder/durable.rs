use std::{
    collections::BTreeSet,
    io,
    sync::{Mutex, PoisonError},
};

use model::Key;

use super::{Dir, Inner, split};

/// Folders with entries that a power cut could still take away. A flush syncs each of them once.
///
/// Contents are made durable before they get a key, each by itself and several at a time. Measured, that costs less than
/// all of them at the end, and no object is ever torn.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    folders: Mutex<BTreeSet<String>>,
    /// Held during a flush. A second flush must not return before the first has made durable what both rely on.
    flushing: Mutex<()>,
}

impl Inner {
    /// Notes a new entry for the next flush. The entry of a mutable object is made durable at once.
    pub(super) fn remember(&self, key: &Key) -> io::Result<()> {
        let path = key.to_string();
        let (folder, _) = split(&path);
        if key.is_immutable() {
            let mut folders = self.unflushed.folders.lock().unwrap_or_else(PoisonError::into_inner);
            if !folders.contains(folder) {
                folders.extend(ancestors(folder).map(str::to_owned));
            }
            return Ok(());
        }
        ancestors(folder).try_for_each(|folder| sync(&self.root, folder))
    }

    /// Makes all noted entries durable. The next flush tries the folders of a failed one again.
    pub(super) fn flush(&self) -> io::Result<()> {
        let _flushing = self.unflushed.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *self.unflushed.folders.lock().unwrap_or_else(PoisonError::into_inner));
        let result = taken.iter().try_for_each(|folder| sync(&self.root, folder));
        if result.is_err() {
            let mut folders = self.unflushed.folders.lock().unwrap_or_else(PoisonError::into_inner);
            folders.extend(taken);
        }
        result
    }
}

/// Makes the entries of a folder durable. A missing folder has no entries to lose.
fn sync(root: &Dir, folder: &str) -> io::Result<()> {
    match root.descend(folder).and_then(|folder| folder.sync()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Returns the folder and all folders above it, the root (the empty path) last. Each may have been made for the one below.
pub(super) fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| {
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        (!folder.is_empty()).then_some(above)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_of_a_path_end_at_the_root() {
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a/b/c", "a/b", "a", ""]);
        assert_eq!(ancestors("").collect::<Vec<_>>(), [""]);
    }
}
