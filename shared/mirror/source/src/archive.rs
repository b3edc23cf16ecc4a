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
use crate::server::{WebClient, WebSession};
use crate::stream::{bounded, within};
use crate::tree::TreeArchive;
use crate::{ArchiveLocation, Error, Pull, TreeFault};

/// Time for which the bytes of a resolved archive wait to be read. Longer than the queue of pulls
/// mostly is; later reads download again. The bytes of an archive that is published already are
/// never read, and others wait for their space.
const KEPT: Duration = Duration::from_secs(2 * 60);

/// Last answers for all archives, by their URLs. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Archives(Arc<Mutex<BTreeMap<String, SharedArchive>>>);

/// Locked during a request, so that two catalogs in one archive download it once.
type SharedArchive = Arc<tokio::sync::Mutex<KnownArchive>>;

/// Last answer for the archive at one URL.
#[derive(Default)]
struct KnownArchive {
    digest: Option<Digest>,
    /// Version that the server gave to the body, if it did. A time is none: a file may change twice
    /// within its second.
    tag: Option<HeaderValue>,
    copy: Option<Arc<BodyCopy>>,
}

impl Archives {
    /// Returns the revision that an archive has now.
    pub(crate) async fn resolve(
        &self,
        client: WebClient<'_>,
        location: &ArchiveLocation,
    ) -> Result<Digest, Error> {
        let shared = self.at(location);
        let mut known = shared.lock().await;
        let session = WebSession::open(client, &location.url).await?;
        let digest = known.ask(&session, location).await?;
        if let Some(copy) = &known.copy {
            tokio::spawn(forget_later(Arc::clone(&shared), Arc::downgrade(copy)));
        }
        Ok(location.revision(&digest))
    }

    /// Passes the files of an archive to `sink` if it still has the revision `expected`.
    pub(crate) async fn read<S: FileSink + 'static>(
        &self,
        client: WebClient<'_>,
        location: &ArchiveLocation,
        expected: &Digest,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let shared = self.at(location);
        let session = WebSession::open(client, &location.url).await?;
        let copy = shared
            .lock()
            .await
            .take_copy(&session, location, expected)
            .await?;
        let traffic = copy.traffic;
        let archive = TreeArchive {
            place: format!("archive {}", location.url),
            blob: copy.blob.clone(),
            limits: client.settings.limits.clone(),
            work: Budget::default(),
        };
        if location.revision(&copy.blob.digest) != *expected {
            return Err(TreeFault::Changed.at(&archive.place));
        }
        let work = archive.work.clone();
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

    fn at(&self, location: &ArchiveLocation) -> SharedArchive {
        let mut archives = self.0.lock();
        Arc::clone(archives.entry(location.url.to_string()).or_default())
    }
}

impl KnownArchive {
    /// Returns the bytes that were kept, or asks for them again if they have another revision.
    async fn take_copy(
        &mut self,
        session: &WebSession<'_>,
        location: &ArchiveLocation,
        expected: &Digest,
    ) -> Result<Arc<BodyCopy>, Error> {
        if let Some(kept) = self.copy.take()
            && location.revision(&kept.blob.digest) == *expected
        {
            return Ok(kept);
        }
        // Without conditions: the bytes are needed even if they have not changed.
        self.tag = None;
        self.ask(session, location).await?;
        Ok(self.copy.take().ok_or(UnpackError::Abandoned)?)
    }

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
        if let Some(tag) = &self.tag {
            request.headers.insert(IF_NONE_MATCH, tag.clone());
        }
        let asking = session.send(&location.url, request);
        // Only until the headers: the body has its own minimum throughput.
        let response = within(session.settings.resolve_timeout, asking).await?;
        if let Some(digest) = &self.digest
            && response.status() == StatusCode::NOT_MODIFIED
        {
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
        *self = Self {
            digest: Some(digest.clone()),
            tag,
            copy: Some(Arc::new(copy)),
        };
        Ok(digest)
    }
}

/// Removes a copy that was not read in time.
async fn forget_later(shared: SharedArchive, copy: Weak<BodyCopy>) {
    sleep(KEPT).await;
    let mut known = shared.lock().await;
    known
        .copy
        .take_if(|kept| copy.ptr_eq(&Arc::downgrade(kept)));
}
