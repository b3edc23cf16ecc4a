//! Archives on web servers.
//!
//! ```text
//! resolve  GET, conditional if a version is known --304--> the known digest
//!                                                 --200--> temporary file -> sha256 -> digest
//! read     the file of `resolve`, or another GET -> the same digest -> tar reader -> FileSink
//! ```
//!
//! The digest of an archive is known only after all of it was received, so the bytes are kept for
//! the read that mostly follows. A broken download starts again: without a digest nothing tells
//! whether the rest belongs to the same version.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fetch::RequestSpec;
use oci::{Digest, FileSink, Root, UnpackError};
use parking_lot::Mutex;
use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use tokio::time::sleep;
use work::Budget;

use crate::download::BodyCopy;
use crate::server::WebSession;
use crate::stream::{bounded, within};
use crate::tree::TreeArchive;
use crate::{ArchiveLocation, Error, Pull, Sources, TreeFault};

/// Time for which the bytes of a resolved archive wait to be read. Longer than the queue of pulls
/// mostly is; later reads download again. The bytes of an archive that is published already are
/// never read, and others wait for their space.
const KEPT: Duration = Duration::from_secs(2 * 60);

/// Last answers for all archives, by their URLs. Clones share them.
pub(crate) type Archives = Arc<Mutex<BTreeMap<String, SharedArchive>>>;

/// Locked during a request, so that two catalogs in one archive download it once.
pub(crate) type SharedArchive = Arc<tokio::sync::Mutex<KnownArchive>>;

/// Last answer for the archive at one URL.
#[derive(Default)]
pub(crate) struct KnownArchive {
    digest: Option<Digest>,
    /// Version that the server gave to the body, if it did. A time is none: a file may change twice
    /// within its second.
    tag: Option<HeaderValue>,
    copy: Option<Arc<BodyCopy>>,
}

impl Sources {
    /// Returns the revision that an archive has now.
    pub(crate) async fn resolve_archive(
        &self,
        location: &ArchiveLocation,
    ) -> Result<Digest, Error> {
        let shared = self.archive_at(location);
        let mut known = shared.lock().await;
        let session = WebSession::open(self, &location.url).await?;
        let digest = known.ask(&session, location).await?;
        if let Some(copy) = &known.copy {
            tokio::spawn(forget_later(Arc::clone(&shared), Arc::downgrade(copy)));
        }
        Ok(location.revision(&digest))
    }

    /// Passes the files of an archive to `sink` if it still has the revision `expected`.
    pub(crate) async fn read_archive<S: FileSink + 'static>(
        &self,
        location: &ArchiveLocation,
        expected: &Digest,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let shared = self.archive_at(location);
        let session = WebSession::open(self, &location.url).await?;
        let copy = {
            let mut known = shared.lock().await;
            let kept = known.copy.take();
            match kept.filter(|copy| location.revision(&copy.blob.digest) == *expected) {
                Some(copy) => copy,
                None => {
                    // Without conditions: the bytes are needed even if they have not changed.
                    known.tag = None;
                    known.ask(&session, location).await?;
                    known.copy.take().ok_or(UnpackError::Abandoned)?
                }
            }
        };
        let traffic = copy.traffic;
        let archive = TreeArchive {
            place: format!("archive {}", location.url),
            blob: copy.blob.clone(),
            limits: self.settings.limits.clone(),
            work: Budget::default(),
        };
        let work = archive.work.clone();
        if location.revision(&copy.blob.digest) != *expected {
            return Err(TreeFault::Changed.at(&archive.place));
        }
        let folder = location.folder.clone();
        let unpacked = bounded(&work, move || {
            let root = match folder {
                Some(parts) => Root::plain(parts),
                None => archive.common_folder(&mut copy.open()?)?,
            };
            archive.unpack(&mut copy.open()?, root, sink)
        })
        .await;
        if unpacked.is_err() {
            // The bytes may have been mixed from two versions while the server replaced its file,
            // so the next resolve does not rely on their version.
            shared.lock().await.tag = None;
        }
        let sink = session.server.redacted(unpacked)?;
        let pull = Pull {
            traffic,
            layers_fetched: 1,
            ..Pull::default()
        };
        Ok((sink, pull))
    }

    fn archive_at(&self, location: &ArchiveLocation) -> SharedArchive {
        let mut archives = self.archives.lock();
        Arc::clone(archives.entry(location.url.to_string()).or_default())
    }
}

impl KnownArchive {
    /// Asks until an answer, a permanent failure or the end of the retries. Returns the digest of
    /// the whole archive.
    async fn ask(
        &mut self,
        session: &WebSession<'_>,
        location: &ArchiveLocation,
    ) -> Result<Digest, Error> {
        let mut retries = session.server.retries();
        loop {
            match self.attempt(session, location).await {
                Ok(digest) => return Ok(digest),
                Err(error) => session.server.redacted(retries.pause(error).await)?,
            }
        }
    }

    async fn attempt(
        &mut self,
        session: &WebSession<'_>,
        location: &ArchiveLocation,
    ) -> Result<Digest, Error> {
        let mut request = RequestSpec::default();
        request
            .headers
            .extend(self.tag.clone().map(|tag| (IF_NONE_MATCH, tag)));
        // Only until the headers: the body has its own minimum throughput.
        let answered = within(
            session.settings.resolve_timeout,
            session.send(&location.url, request),
        );
        let response = answered.await?;
        if let (StatusCode::NOT_MODIFIED, Some(digest)) = (response.status(), &self.digest) {
            return Ok(digest.clone());
        }
        let tag = response.headers().get(ETAG).cloned();
        // Before the new copy: it may need the space of the old one.
        *self = Self::default();
        // Some servers take the compression of the file for a coding. Its first bytes decide about
        // it when it is read.
        let response = response.keeping(&["gzip", "x-gzip", "zstd"]);
        let copy = BodyCopy::receive(session, response).await?;
        let digest = copy.blob.digest.clone();
        (self.digest, self.tag) = (Some(digest.clone()), tag);
        self.copy = Some(Arc::new(copy));
        Ok(digest)
    }
}

/// Removes a copy that was not read in time.
async fn forget_later(shared: SharedArchive, copy: Weak<BodyCopy>) {
    sleep(KEPT).await;
    let mut known = shared.lock().await;
    let is_same = |kept: &Arc<BodyCopy>| copy.ptr_eq(&Arc::downgrade(kept));
    if known.copy.as_ref().is_some_and(is_same) {
        known.copy = None;
    }
}
