//! The files of a tar archive that stands alone: an archive on a server, or the one that git makes
//! of a commit.

use std::{io::BufRead, sync::Arc};

use oci::{
    BlobRef, FileSink, ImageLimits, LayerScan, LimitExceeded, OverlayState, Root, UnpackBudget,
    UnpackError,
};

use work::Budget;

use crate::{Error, TreeFault};

/// An archive and the limits for it.
pub(crate) struct TreeArchive {
    /// Source of the archive in words, for errors.
    pub(crate) place: String,
    /// Digest of the archive, and the size that its content is compared with.
    pub(crate) blob: BlobRef,
    pub(crate) limits: ImageLimits,
    pub(crate) work: Budget,
}

impl TreeArchive {
    /// Returns the one folder that holds all entries, or the top if there is more than that.
    pub(crate) fn common_folder(&self, archive: &mut impl BufRead) -> Result<Root, Error> {
        let common = self
            .scan(Root::plain(Vec::new()))
            .common_folder(archive)
            .map_err(|error| self.failed(error))?;
        Ok(Root::plain(common.into_iter().collect()))
    }

    /// Passes the files below `root` to `sink`.
    pub(crate) fn unpack<S: FileSink>(
        &self,
        archive: &mut impl BufRead,
        root: Root,
        sink: S,
    ) -> Result<S, Error> {
        let scan = self.scan(root);
        let mut fresh = Some(OverlayState::new(sink));
        let scanned = scan
            .run(archive, || fresh.take())
            .map_err(|error| self.failed(error))?;
        // The state is still here if no entry was below the folder.
        let state = scanned.or(fresh).ok_or(UnpackError::Abandoned)?;
        state
            .check_root(&scan.root, TreeFault::NoFolder, TreeFault::NotFolder)
            .map_err(|fault| fault.at(&self.place))?;
        state
            .finish(&scan.root, &self.limits)
            .map_err(|error| self.failed(error))
    }

    fn scan(&self, root: Root) -> LayerScan {
        LayerScan {
            depth: 0,
            layer: self.blob.clone(),
            root,
            // One for each pass: two passes over an archive do not make it larger.
            budget: Arc::new(UnpackBudget::new(&self.limits, self.work.clone())),
        }
    }

    fn failed(&self, error: UnpackError) -> Error {
        match error {
            // The archive is known by its source, not by its digest.
            UnpackError::Layer { source, .. } => TreeFault::from(source).at(&self.place),
            UnpackError::Limit(limit) => Error::Limit(LimitExceeded {
                place: format!("{}, {}", self.place, limit.place),
                ..limit
            }),
            other => other.into(),
        }
    }
}
