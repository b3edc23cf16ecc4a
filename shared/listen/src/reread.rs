//! Files that are read again when they change.

use std::{
    fmt, fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use layout::Sha256;

use crate::{
    metrics::{File, Metrics},
    readers::ReadersError,
    tls::TlsError,
};

/// How often files are looked at. A few kB cost nothing to read, and whoever replaces a certificate or locks somebody
/// out does not want to wait. It is their bytes that are compared: a mounted secret changes by a link elsewhere, and
/// clocks may be coarse.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a certificate and its key.
    #[error("the TLS certificate or its key cannot be used")]
    Tls(#[from] TlsError),
    /// Not a list of readers.
    #[error("the list of readers cannot be used")]
    Readers(#[from] ReadersError),
}

type Parse<T> = fn(&[Vec<u8>]) -> Result<T, FileError>;

/// What files hold.
pub(crate) struct Reread<T> {
    kind: File,
    paths: Vec<PathBuf>,
    parse: Parse<T>,
    now: RwLock<Arc<T>>,
    /// A hash of the bytes that were looked at last, good or bad; none if they could not be read.
    seen: Mutex<Option<Sha256>>,
    metrics: Metrics,
}

impl<T> Reread<T> {
    /// Reads the files for the first time.
    pub(crate) fn new(kind: File, paths: Vec<PathBuf>, parse: Parse<T>, metrics: Metrics) -> Result<Self, FileError> {
        let texts = read(&paths)?;
        let now = Arc::new(parse(&texts)?);
        metrics.broken(kind, false);
        Ok(Self {
            kind,
            paths,
            parse,
            now: RwLock::new(now),
            seen: Mutex::new(Some(hash(&texts))),
            metrics,
        })
    }

    /// What the files held when they could last be used.
    pub(crate) fn now(&self) -> Arc<T> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the files. What is wrong with them is told once.
    pub(crate) fn look(&self) {
        let texts = read(&self.paths);
        let hash = texts.as_ref().ok().map(|texts| hash(texts));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == hash {
            return;
        }
        *seen = hash;
        match texts.and_then(|texts| (self.parse)(&texts)) {
            Ok(new) => {
                *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                self.metrics.broken(self.kind, false);
                tracing::info!(file = self.kind.as_str(), "read again after a change");
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                self.metrics.broken(self.kind, true);
                tracing::error!(
                    error,
                    file = self.kind.as_str(),
                    "a changed file cannot be used; what it held before is"
                );
            }
        }
    }
}

impl<T> fmt::Debug for Reread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reread")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

fn read(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, FileError> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|source| FileError::Read {
            path: path.clone(),
            source,
        })
    };
    paths.iter().map(read).collect()
}

/// Of each file's own hash, so that no byte can move from one to the other.
fn hash(texts: &[Vec<u8>]) -> Sha256 {
    let hashes: Vec<u8> = texts.iter().flat_map(|text| *Sha256::of(text).as_bytes()).collect();
    Sha256::of(&hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[Vec<u8>]) -> Result<String, FileError> {
        let text = String::from_utf8_lossy(&texts[0]).into_owned();
        if text.is_empty() {
            return Err(ReadersError::Nobody.into());
        }
        Ok(text)
    }

    #[test]
    fn a_broken_change_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let new = || Reread::new(File::Readers, vec![path.clone()], parse, Metrics::default());
        assert!(matches!(new(), Err(FileError::Read { .. })));
        fs::write(&path, "").unwrap();
        assert!(matches!(new(), Err(FileError::Readers(_))));
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
            file.look();
            assert_eq!(*file.now(), expected, "{text:?}");
        }
    }
}
