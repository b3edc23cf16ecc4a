//! The files of a tar archive that stands alone: an archive on a server, or the one that git makes
//! of a commit.

use std::{io::BufRead, sync::Arc};

use oci::{
    BlobRef, FileSink, ImageLimits, LayerError, LayerScan, LimitExceeded, OverlayState, Root,
    UnpackBudget, UnpackError,
};

use work::Budget;

use crate::Error;

/// The reason for which an archive or a git repository holds no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeFault {
    /// An archive that is broken, hostile or of an unsupported format.
    #[error(transparent)]
    Unpack(#[from] LayerError),
    /// No entry for the folder of the source.
    #[error("has no folder {0}, which its source names after #")]
    NoFolder(String),
    /// A file or a link in place of the folder of the source.
    #[error("has no folder at {0} but something else; its source has to name a folder after #")]
    NotFolder(String),
    /// Other bytes, or another commit, than those that were resolved.
    #[error("changed between two requests: poll again to read the new content")]
    Changed,
    /// A name that no checkout of git can have.
    #[error("has an entry of the name {0}, which git does not allow")]
    Name(String),
    /// A submodule of git, whose files are in another repository.
    #[error(
        "has the submodule {0}, which cannot be read: move it out of the folder of the catalog"
    )]
    Submodule(String),
    /// A commit that git has fetched and cannot read, or that lacks the folder. Cleaned for logs.
    #[error("git cannot read the commit: {0}")]
    Commit(String),
    /// A failure of git or a message of the server, cleaned for logs.
    #[error("git failed: {0}")]
    Git(String),
    /// No program `git` on the path.
    #[error(
        "it is read by git(1), which is not on the path: install git, or write the URL of an archive of the branch, \
         such as https://HOST/PATH.tar.gz"
    )]
    NoGit,
    /// A server that does not speak git's protocol at the URL.
    #[error(
        "it does not answer as a git repository: check the URL; some servers need .git at its end"
    )]
    NotGit,
    /// A redirect of a git repository to another server.
    #[error("its server redirects to {0}: write the URL there")]
    Redirected(String),
    /// No branch or tag of the name.
    #[error(
        "has no branch or tag {0}: `git ls-remote` lists them. A commit is named by all 40 digits of its hash"
    )]
    NoRef(String),
}

impl TreeFault {
    /// Returns true if the same revision would fail again. The answers of a server may be others
    /// the next time.
    pub const fn is_of_content(&self) -> bool {
        matches!(
            self,
            Self::Unpack(_)
                | Self::NoFolder(_)
                | Self::NotFolder(_)
                | Self::Name(_)
                | Self::Submodule(_)
                | Self::Commit(_)
        )
    }

    /// Names the archive or repository.
    pub(crate) fn at(self, place: &impl ToString) -> Error {
        Error::Tree {
            place: place.to_string(),
            source: self,
        }
    }
}

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
