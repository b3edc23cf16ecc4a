//! Git repositories.
//!
//! ```text
//! resolve  GET info/refs, POST ls-refs -> commit -> revision
//! read     GET info/refs, POST fetch   -> pack of the commit in a temporary file
//!                                      -> every object inflated, counted and hashed -> commit -> trees -> FileSink
//! ```
//!
//! | a server or repository may | result |
//! |---|---|
//! | send a pack without end | cut off at `compressedBytes` while it arrives |
//! | declare objects that are too many, or too large | refused before they are inflated: `entries`, `fileBytes`, `decompressedBytes`, `ratio` |
//! | chain deltas, in a circle too | at most 4,095, each rebuilt once from memory of fixed size; the work counts as `decompressedBytes` |
//! | send other objects than were asked for | not found: an object is known by the hash of its bytes only, with detection of SHA-1 collisions |
//! | use one tree or file many times | counted each time |
//! | name files `..`, `.git` or with a slash | refused |
//! | hold submodules or pointers of Git LFS below the folder | refused, with their path |
//! | hold links | followed inside the folder, as in an archive |
//!
//! Attributes (`export-ignore`, filters, line ends) are not applied: files are as they are stored.

mod error;
mod location;
#[cfg(feature = "git")]
mod pack;
#[cfg(feature = "git")]
mod packet;
#[cfg(feature = "git")]
mod refs;
#[cfg(feature = "git")]
mod request;
#[cfg(feature = "git")]
mod scan;
#[cfg(feature = "git")]
mod server;
#[cfg(feature = "git")]
mod tree;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fetch::Fetcher;

use crate::settings::SourceSettings;

pub use error::GitFault;
pub use location::{GitLocation, GitLocationError};

/// The last resolved commits of all repositories. Clones share them.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "git"), expect(dead_code, reason = "only `request` resolves commits"))]
pub(crate) struct GitCommits(Arc<Mutex<BTreeMap<String, String>>>);

/// One resolve or read of a catalog in a git repository.
#[cfg_attr(not(feature = "git"), expect(dead_code, reason = "only `request` asks a server"))]
pub(crate) struct GitRequest<'a> {
    pub(crate) commits: &'a GitCommits,
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) settings: &'a Arc<SourceSettings>,
    pub(crate) location: &'a GitLocation,
}

/// Takes the place of `request` in a program without the feature. The text of a git source is refused there already.
#[cfg(not(feature = "git"))]
impl GitRequest<'_> {
    pub(crate) async fn resolve(self) -> Result<oci::Digest, crate::Error> {
        Err(self.location.error(GitFault::NotBuilt))
    }

    pub(crate) async fn read<S>(self, _: &oci::Digest, _: S) -> Result<(S, crate::Pull), crate::Error> {
        Err(self.location.error(GitFault::NotBuilt))
    }
}
