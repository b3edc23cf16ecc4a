use std::io;

use model::Key;

use super::{Inner, durable::ancestors, split};

impl Inner {
    /// Removes an object, and the folders that this empties: a store of objects has no empty folders.
    pub(super) fn delete(&self, key: &Key) -> io::Result<()> {
        self.must_be_writable()?;
        let path = key.to_string();
        let (folder, name) = split(&path);
        let _lock = if key.is_immutable() {
            None
        } else {
            Some(self.lock_mutable()?)
        };
        match self.root.descend(folder).and_then(|folder| folder.remove(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) | Ok(false) => return Ok(()),
            Ok(true) => {}
        }
        self.known.forget(key);
        if !key.is_immutable() {
            self.remember(key)?;
        }
        self.prune(folder);
        Ok(())
    }

    /// Removes empty folders upwards. Stops at the first one that has entries or may not be removed.
    fn prune(&self, folder: &str) {
        for folder in ancestors(folder).filter(|folder| !folder.is_empty()) {
            let (above, name) = split(folder);
            let removed = self.root.descend(above).and_then(|above| above.remove_dir(name));
            if removed.is_err() {
                return;
            }
        }
    }
}
