//! Header fields from files, for servers that want a token or an API key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Files of header fields by the `HOST[:PORT]` that they are for. A host without a port stands for
/// all of its ports.
///
/// A file has one field a line, such as `Authorization: Bearer ...`; empty lines do not count. It
/// is read again for each use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderFiles(BTreeMap<String, PathBuf>);

/// A file of header fields that cannot be used. The fields are secret, so no message repeats them.
#[derive(Debug, thiserror::Error)]
pub enum HeaderFileError {
    /// A file that cannot be read.
    #[error("cannot read the header file {path}", path = .path.display())]
    Read {
        /// Path of the file on this machine.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
    /// A line that is not a header field (RFC 9110, section 5).
    #[error("line {number} of {path} is not a header field: write NAME: VALUE", path = .path.display())]
    Line {
        /// Path of the file on this machine.
        path: PathBuf,
        /// Number of the line, from 1.
        number: usize,
    },
}

impl HeaderFiles {
    /// Adds a file for a host. The last file for a host counts.
    pub fn insert(&mut self, host: &str, path: PathBuf) {
        self.0.insert(host.to_ascii_lowercase(), path);
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.values().map(PathBuf::as_path)
    }

    /// Reads the fields for `host`, with its port if one is written. None if no file is for it.
    ///
    /// # Errors
    /// [`HeaderFileError`].
    pub fn read(&self, host: &str) -> Result<HeaderMap, HeaderFileError> {
        let host = host.to_ascii_lowercase();
        let name = match host.rsplit_once(':') {
            Some((name, _)) => name,
            None => &host,
        };
        match self.0.get(&host).or_else(|| self.0.get(name)) {
            Some(path) => read_header_file(path),
            None => Ok(HeaderMap::new()),
        }
    }
}

/// Reads header fields from a file, one a line. Their values are marked as sensitive.
///
/// # Errors
/// [`HeaderFileError`].
pub fn read_header_file(path: &Path) -> Result<HeaderMap, HeaderFileError> {
    let text = fs::read_to_string(path).map_err(|source| HeaderFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut fields = HeaderMap::new();
    for (line, number) in text.lines().zip(1_usize..) {
        if line.trim().is_empty() {
            continue;
        }
        let (name, value) = field(line).ok_or_else(|| HeaderFileError::Line {
            path: path.to_owned(),
            number,
        })?;
        fields.append(name, value);
    }
    Ok(fields)
}

fn field(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_for_their_host_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fields");
        fs::write(&path, "X-Api-Key: hunter2\n\nAuthorization:Bearer abc\n").unwrap();
        let mut files = HeaderFiles::default();
        files.insert("Git.example", path.clone());
        files.insert("other.example:8443", path);
        for host in ["git.example", "GIT.example:8443", "other.example:8443"] {
            assert_eq!(files.read(host).unwrap().len(), 2, "{host}");
        }
        for host in ["other.example", "evil.example"] {
            assert!(files.read(host).unwrap().is_empty(), "{host}");
        }
        let fields = files.read("git.example").unwrap();
        assert_eq!(fields["authorization"], "Bearer abc");
        assert!(!format!("{fields:?}").contains("hunter2"));
    }

    #[test]
    fn wrong_line_is_named_and_not_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fields");
        for text in ["hunter2", "a: b\nhunter 2: c", "x: \u{1}hunter2"] {
            fs::write(&path, text).unwrap();
            let error = read_header_file(&path).unwrap_err().to_string();
            assert!(
                error.contains("NAME: VALUE") && !error.contains("hunter"),
                "{error}"
            );
        }
        let error = read_header_file(&dir.path().join("none")).unwrap_err();
        assert!(matches!(error, HeaderFileError::Read { .. }), "{error}");
    }
}
