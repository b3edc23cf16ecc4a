//! The files of an archive.

use std::sync::Arc;

use oci::{
    Budget, FileSink, ImageLimits, LayerError, LayerScan, LimitExceeded, OverlayState, Root, RootState, UnpackError,
    shown,
};

use crate::error::Error;
use crate::location::ArchiveLocation;
use crate::web::BodyCopy;

/// The reason for which an archive holds no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveFault {
    /// An archive that is broken, hostile or of an unsupported format.
    #[error(transparent)]
    Unpack(#[from] LayerError),
    /// No entry for the folder after `#`.
    #[error("has no folder {0}, which its URL names after #")]
    NoFolder(String),
    /// A file or a link in place of the folder after `#`.
    #[error("has no folder at {0} but something else; the part of its URL after # has to be a folder")]
    NotFolder(String),
    /// Other bytes than those that were resolved.
    #[error("changed between two requests: poll again to read the new content")]
    Changed,
}

/// Passes the files below the folder of `location` to `sink`.
pub(crate) fn unpack<S: FileSink>(
    copy: &BodyCopy,
    location: &ArchiveLocation,
    limits: &ImageLimits,
    sink: S,
) -> Result<S, Error> {
    let failed = |error| unpack_error(location, error);
    let scan = |root: &Root| LayerScan {
        depth: 0,
        layer: copy.blob.clone(),
        root: root.clone(),
        // One for each pass: two passes over an archive do not make it larger.
        budget: Arc::new(Budget::new(limits)),
    };
    let root = match location.folder() {
        Some(parts) => Root::plain(parts.to_vec()),
        None => {
            let all = scan(&Root::plain(Vec::new()));
            let common = all.common_folder(&mut copy.open()?).map_err(failed)?;
            Root::plain(common.into_iter().collect())
        }
    };
    let mut fresh = Some(OverlayState::new(sink));
    let scanned = scan(&root).run(&mut copy.open()?, || fresh.take()).map_err(failed)?;
    // The state is still here if no entry was below the folder.
    let state = scanned.or(fresh).ok_or(Error::Abandoned)?;
    let folder = || shown(root.path().as_bytes());
    match state.root() {
        RootState::Directory => {}
        RootState::Missing if root.parts().is_empty() => {}
        RootState::Missing => return Err(location.error(ArchiveFault::NoFolder(folder()))),
        RootState::NotDirectory => return Err(location.error(ArchiveFault::NotFolder(folder()))),
    }
    state.finish(&root, limits).map_err(failed)
}

fn unpack_error(location: &ArchiveLocation, error: UnpackError) -> Error {
    match error {
        // The archive is known by its URL, not by its digest.
        UnpackError::Layer { source, .. } => location.error(source.into()),
        UnpackError::Limit(limit) => Error::Limit(LimitExceeded {
            place: format!("the archive {}, {}", location.url(), limit.place),
            ..limit
        }),
        other => other.into(),
    }
}

impl ArchiveLocation {
    pub(crate) fn error(&self, source: ArchiveFault) -> Error {
        Error::Archive {
            url: self.url().to_string(),
            source,
        }
    }
}
