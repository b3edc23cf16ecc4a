use std::{io, path::PathBuf, process::ExitStatus};

use model::CatalogName;

use crate::skopeo::VERSION_MIN;

/// Error of copying images, and of naming manifests.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// skopeo takes one file.
    #[error("skopeo reads one credential file: name one --auth-file with the logins of all registries")]
    AuthFiles,
    /// The program is missing.
    #[error("{0} is not there: install skopeo {major}.{minor} or newer, or name it with --skopeo PATH", major = VERSION_MIN.0, minor = VERSION_MIN.1)]
    NoSkopeo(String),
    /// The program does not print a version as skopeo does.
    #[error("{0} does not say the version of skopeo")]
    NoVersion(String),
    /// The program is too old.
    #[error("{program} is skopeo {}.{}; {}.{} or newer is needed", .version.0, .version.1, VERSION_MIN.0, VERSION_MIN.1)]
    OldSkopeo {
        /// The program.
        program: String,
        /// Its version.
        version: (u32, u32),
    },
    /// The program cannot be started.
    #[error("cannot run skopeo")]
    Run(#[source] io::Error),
    /// The program failed.
    #[error("skopeo: {message} ({status})")]
    Skopeo {
        /// Last line that it printed.
        message: String,
        /// Exit status of skopeo.
        status: ExitStatus,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot use {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The folder was not filled to the end.
    #[error("{} has no carry.json: `catalog-mirror carry out ISC DIR` writes it at its end", .0.display())]
    NoFolder(PathBuf),
    /// Another process fills the folder.
    #[error("another `carry out` fills {}", .0.display())]
    Busy(PathBuf),
    /// `carry.json` cannot be understood.
    #[error("{}: {reason}", .path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Description for people.
        reason: String,
    },
    /// A text is no reference of an image.
    #[error("{0:?} is no image reference")]
    Reference(String),
    /// No catalog has the chosen package. Holds a hint for people too.
    #[error("none of the catalogs has a package {0:?}{1}")]
    NoPackage(String, String),
    /// No package has the chosen channel.
    #[error("none of the packages has a channel {0:?}")]
    NoChannel(String),
    /// A registry failed.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// An image is missing in the folder.
    #[error("it is not in the folder: run `carry out` again")]
    NotCarried,
    /// The copy has another digest.
    #[error("the registry sent another image than it named")]
    OtherImage,
    /// The names of manifests would be too long for Kubernetes.
    #[error("the name of {catalog} is too long: its manifests would have {length} characters")]
    LongName {
        /// The catalog.
        catalog: CatalogName,
        /// Length of the names.
        length: usize,
    },
}

impl CarryError {
    /// Returns the error of a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| Self::File(path, error)
    }
}
