//! Files that are read again when they change.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use model::Sha256;
use parking_lot::{Mutex, RwLock};

use crate::{error::FileError, metrics::ServerMetrics};

/// Time between two checks of the files. Reading a few kB costs nothing, and an administrator who
/// replaces a certificate or removes a user does not want to wait.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(2);

type Parse<T> = fn(&[Vec<u8>]) -> Result<T, FileError>;

/// The content of files, parsed, and kept up to date.
pub(crate) struct ReloadedFiles<T> {
    /// Name of the files in logs and metrics.
    name: &'static str,
    paths: Vec<PathBuf>,
    parse: Parse<T>,
    current: RwLock<Arc<T>>,
    /// Hash of the last bytes that were read, valid or not; `None` if they could not be read.
    seen: Mutex<Option<Sha256>>,
    metrics: ServerMetrics,
}

impl<T> ReloadedFiles<T> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// [`FileError`] for files that cannot be used.
    pub(crate) fn new(
        name: &'static str,
        paths: Vec<PathBuf>,
        parse: Parse<T>,
        metrics: ServerMetrics,
    ) -> Result<Self, FileError> {
        let texts = read(&paths)?;
        let current = Arc::new(parse(&texts)?);
        metrics.set_broken(name, false);
        Ok(Self {
            name,
            paths,
            parse,
            current: RwLock::new(current),
            seen: Mutex::new(Some(hash(&texts))),
            metrics,
        })
    }

    /// Returns the last content of the files that could be parsed.
    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// Reads the files again. A change that cannot be used is logged once, and the previous content
    /// stays.
    pub(crate) fn check(&self) {
        let texts = read(&self.paths);
        // Bytes are compared, not times: a mounted secret changes by a link, and clocks of file
        // systems are coarse.
        let hash = texts.as_ref().ok().map(|texts| hash(texts));
        let mut seen = self.seen.lock();
        if *seen == hash {
            return;
        }
        *seen = hash;
        let file = self.name;
        match texts.and_then(|texts| (self.parse)(&texts)) {
            Ok(new) => {
                *self.current.write() = Arc::new(new);
                self.metrics.set_broken(file, false);
                tracing::info!(file, "reloaded changed file");
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                self.metrics.set_broken(file, true);
                tracing::error!(
                    error,
                    file,
                    "changed file cannot be used, its previous content stays in use"
                );
            }
        }
    }
}

fn read(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, FileError> {
    let mut contents = Vec::with_capacity(paths.len());
    for path in paths {
        contents.push(fs::read(path).map_err(|source| FileError::Read {
            path: path.clone(),
            source,
        })?);
    }
    Ok(contents)
}

fn hash(texts: &[Vec<u8>]) -> Sha256 {
    // The hash of the hash of each file: no byte can move from one file to the next without a
    // change.
    let hashes: Vec<u8> = texts
        .iter()
        .flat_map(|text| *Sha256::of(text).as_bytes())
        .collect();
    Sha256::of(&hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[Vec<u8>]) -> Result<String, FileError> {
        let text = String::from_utf8_lossy(&texts[0]).into_owned();
        if text.is_empty() {
            return Err(FileError::NoUsers);
        }
        Ok(text)
    }

    #[test]
    fn reload_broken_change_keeps_previous_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let new = || {
            ReloadedFiles::new(
                "readers",
                vec![path.clone()],
                parse,
                ServerMetrics::default(),
            )
        };
        assert!(matches!(new(), Err(FileError::Read { .. })));
        fs::write(&path, "").unwrap();
        assert!(matches!(new(), Err(FileError::NoUsers)));
        fs::write(&path, "one").unwrap();
        let file = new().unwrap();
        for (text, expected) in [
            (Some("two"), "two"),
            (Some(""), "two"),
            (None, "two"),
            (Some("two"), "two"),
            (Some("3"), "3"),
        ] {
            match text {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            file.check();
            assert_eq!(*file.current(), expected, "{text:?}");
        }
    }
}
