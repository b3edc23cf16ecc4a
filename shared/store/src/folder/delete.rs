use std::io;

use layout::Key;

use super::{Inner, durable::ancestors, split};

impl Inner {
    /// Removes an object and the folders that this empties, as a store of objects has no folders.
    pub(super) fn delete(&self, key: &Key) -> io::Result<()> {
        self.must_be_writable()?;
        let path = key.to_string();
        let (folder, name) = split(&path);
        let _turn = if key.is_immutable() { None } else { Some(self.turn()?) };
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

    /// Stops at the first folder that does not go: it has entries, or it is not ours to remove.
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
