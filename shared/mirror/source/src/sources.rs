//! The entry point: a source to its digest, and a digest to its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fetch::Fetcher;
use model::{EmptyLayers, ImageSignatures};
use oci::{Digest, Documents, FileSink};
use oci_client::Reference;
use tracing::Instrument;

use crate::archive::Archives;
use crate::blob_source::{BlobSource, Layout};
use crate::git::GitCommits;
use crate::index::indexed_images;
use crate::referrer_list::{list_referrer, merge_list};
use crate::registry::{
    AuthStates, Deletion, InsecureHosts, ManifestLinks, Pushed, Registries, Session, check_push,
    check_sparse, if_found, push,
};
use crate::server::WebClient;
use crate::signatures::{attached_manifests, attached_signatures};
use crate::stream::{blocking, within};
use crate::{Download, Error, IndexedImage, Lookaside, Pull, Source, SourceSettings};
use crate::{dir, download, image, layers};

/// Reads catalogs from their sources. Clones share connections and tokens, so a process needs only
/// one.
#[derive(Clone)]
pub struct Sources {
    fetcher: Fetcher,
    auth_states: AuthStates,
    insecure_hosts: InsecureHosts,
    archives: Archives,
    commits: GitCommits,
    /// Settings that it was made with, or that [`Self::with_settings`] has changed.
    pub settings: Arc<SourceSettings>,
}

impl Sources {
    /// Checks the settings; sends nothing.
    ///
    /// # Errors
    /// CA files and proxies that cannot be used.
    pub fn new(settings: SourceSettings) -> Result<Self, Error> {
        Ok(Self {
            fetcher: Fetcher::new(settings.http.clone())?,
            auth_states: AuthStates::default(),
            insecure_hosts: InsecureHosts::default(),
            archives: Archives::default(),
            commits: GitCommits::default(),
            settings: Arc::new(settings),
        })
    }

    /// Trusts these CA bundles from now on, in place of those of the settings. Clones and copies do
    /// so too.
    ///
    /// # Errors
    /// CA files that cannot be used. Then nothing has changed.
    pub fn trust_ca_files(&self, ca_files: &[PathBuf]) -> Result<(), Error> {
        Ok(self.fetcher.trust_ca_files(ca_files)?)
    }

    /// Changes the settings. Clones keep theirs, and share connections and tokens with this one.
    #[must_use]
    pub fn with_settings(mut self, change: impl FnOnce(&mut SourceSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Returns the digest that the source has now: of the top-level manifest or index, of an
    /// archive, of a commit of git with its folder, or of a folder's files. Sends one HEAD for a
    /// tag, two small requests for a branch, and nothing for a pinned digest. Downloads an archive
    /// unless it is known and unchanged. [`Self::read`] verifies the digest.
    ///
    /// # Errors
    /// A source that cannot be read, and [`Error::Timeout`].
    pub async fn resolve(&self, source: &Source) -> Result<Digest, Error> {
        if let Some(pinned) = source.pinned() {
            return Ok(pinned.clone());
        }
        // Most are on the heap, so that polls of images do not carry the state of the others.
        let resolving = async {
            match source {
                Source::Registry { reference, .. } => {
                    let asking = Box::pin(self.registries().resolve(reference, None));
                    self.in_time(asking).await
                }
                Source::OciLayout { dir, tag } => self.layout(dir).resolve(tag.as_deref()).await,
                Source::Archive(location) => {
                    let asking = Box::pin(self.archives.resolve(self.web(), location));
                    // As long as a pull, because the digest is known only after the last byte.
                    within(self.settings.pull_timeout, asking).await
                }
                Source::Git(location) => {
                    let asking = Box::pin(self.commits.resolve(self.web(), location));
                    self.in_time(asking).await
                }
                Source::Dir(path) => {
                    let path = path.clone();
                    let settings = Arc::clone(&self.settings);
                    blocking(move || dir::digest(&path, &settings)).await
                }
            }
        };
        let span = tracing::debug_span!("resolve", source = %source);
        resolving.instrument(span).await
    }

    /// Returns true if the source exists. Sends the requests of [`Self::resolve`] for an image in a
    /// registry, also for a pinned digest, for which that sends none.
    ///
    /// # Errors
    /// A registry that refuses to answer is an error and does not count as absent.
    pub async fn exists(&self, source: &Source) -> Result<bool, Error> {
        let resolved = match source {
            Source::Registry { reference, pinned } => {
                let asking = self.registries().resolve(reference, pinned.as_ref());
                self.in_time(asking).await
            }
            Source::Archive(_) | Source::Git(_) | Source::OciLayout { .. } | Source::Dir(_) => {
                self.resolve(source).await
            }
        };
        Ok(if_found(resolved)?.is_some())
    }

    /// Reads the image `digest` and passes each FBC file to `sink` once. Layers in `empty` are not
    /// fetched.
    ///
    /// # Errors
    /// After an error the sink is gone, and the caller must drop everything that it has produced:
    /// some of it may come from bytes that were never verified.
    pub async fn read<S: FileSink + 'static>(
        &self,
        source: &Source,
        digest: &Digest,
        empty: &EmptyLayers,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let reading = async {
            match source {
                Source::Registry { reference, .. } => {
                    let blobs = self.registry_with(reference, digest).await?;
                    self.read_image(blobs, digest, empty, sink).await
                }
                Source::OciLayout { dir, .. } => {
                    let blobs = BlobSource::Layout(self.layout(dir));
                    self.read_image(blobs, digest, empty, sink).await
                }
                Source::Archive(location) => {
                    let reading = self.archives.read(self.web(), location, digest, sink);
                    Box::pin(reading).await
                }
                Source::Git(location) => {
                    let reading = self.commits.read(self.web(), location, digest, sink);
                    Box::pin(reading).await
                }
                Source::Dir(path) => {
                    let path = path.clone();
                    let digest = digest.clone();
                    let settings = Arc::clone(&self.settings);
                    blocking(move || dir::read(&path, &digest, &settings, sink)).await
                }
            }
        };
        let reading = reading.instrument(tracing::info_span!("pull", source = %source, %digest));
        within(self.settings.pull_timeout, reading).await
    }

    async fn read_image<S: FileSink + 'static>(
        &self,
        blobs: BlobSource,
        digest: &Digest,
        empty: &EmptyLayers,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let read = read_image(&blobs, digest, empty, sink, &self.settings).await;
        blobs.redacted(read)
    }

    /// Copies what [`Self::read`] needs of the image `digest` to a folder for temporary files.
    /// Layers in `empty` are not copied. Holds no more of the image in memory than its manifests
    /// and a few chunks.
    ///
    /// # Errors
    /// As [`Self::read`], an image that is too large for the space of the settings, and a file that
    /// cannot be written.
    pub async fn download(
        &self,
        reference: &Reference,
        digest: &Digest,
        empty: &EmptyLayers,
    ) -> Result<Download, Error> {
        let blobs = self.registry_with(reference, digest).await?;
        let span = tracing::info_span!("download", source = %reference, %digest);
        let copying = download::copy_image(&blobs, digest, empty, &self.settings).instrument(span);
        blobs.redacted(within(self.settings.pull_timeout, copying).await)
    }

    /// Returns the manifest that [`Self::read`] chooses for the platform if `digest` is an index in
    /// a registry.
    ///
    /// # Errors
    /// A manifest that cannot be read, and an index without the platform.
    pub async fn of_platform(
        &self,
        source: &Source,
        digest: &Digest,
    ) -> Result<Option<Digest>, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(None);
        };
        let blobs = self.registry_with(reference, digest).await?;
        let found = self.in_time(image::find(&blobs, digest, &self.settings));
        let chosen = blobs.redacted(found.await)?.digest;
        if chosen == *digest {
            return Ok(None);
        }
        Ok(Some(chosen))
    }

    /// Returns the signatures that cosign attached to the image `digest`, under a tag derived from
    /// the digest and as referrers. Sources other than registries have none.
    ///
    /// # Errors
    /// Every failure except the absence of signatures.
    pub async fn signatures(
        &self,
        source: &Source,
        digest: &Digest,
    ) -> Result<ImageSignatures, Error> {
        let Some(session) = self.session_with(source, digest).await? else {
            return Ok(ImageSignatures::default());
        };
        let asking = self.in_time(attached_signatures(&session, digest));
        session.server.redacted(asking.await)
    }

    /// Returns the tags and digests of the manifests that are attached to the image `digest`: those
    /// of cosign, and the referrers with the tag for their list in a registry without that API.
    /// Sources other than registries have none.
    ///
    /// # Errors
    /// Every failure except the absence of attachments.
    pub async fn attachments(
        &self,
        source: &Source,
        digest: &Digest,
    ) -> Result<Vec<String>, Error> {
        let Some(session) = self.session_with(source, digest).await? else {
            return Ok(Vec::new());
        };
        let asking = self.in_time(attached_manifests(&session, digest));
        session.server.redacted(asking.await)
    }

    /// Returns the simple signatures of the image `digest` (containers/image, "signature
    /// protocols"): files from `signature-1` up to the first that does not exist.
    ///
    /// # Errors
    /// Every failure except a file that does not exist.
    pub async fn simple_signatures(
        &self,
        source: &Source,
        digest: &Digest,
        lookaside: &Lookaside,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(Vec::new());
        };
        let session = self.registries().reading(reference).await?;
        self.in_time(lookaside.all(&session, reference, digest))
            .await
    }

    /// Returns the images of the index `digest`, or nothing if it is the digest of one image. Sources
    /// other than registries have none.
    ///
    /// # Errors
    /// A manifest that cannot be read.
    pub async fn indexed_images(
        &self,
        source: &Source,
        digest: &Digest,
    ) -> Result<Vec<IndexedImage>, Error> {
        let Some(session) = self.session_with(source, digest).await? else {
            return Ok(Vec::new());
        };
        let asking = self.in_time(indexed_images(&session, digest));
        session.server.redacted(asking.await)
    }

    /// Adds the manifest `digest` to the tagged list of the manifests that refer to its subject, if
    /// it has one and the registry keeps no such list by itself (OCI distribution specification,
    /// "Referrers Tag Schema"). Returns true if the list was changed.
    ///
    /// # Errors
    /// A registry that cannot be reached or refuses the list.
    pub async fn list_referrer(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<bool, Error> {
        let session = self.registries().pushing(reference).await?;
        self.in_time(list_referrer(&session, digest)).await
    }

    /// Adds the entries of the list of referrers `digest` to the one under a tag. Returns true if that
    /// one lacked some. Changes it only if `writes`.
    ///
    /// # Errors
    /// A registry that cannot be reached or refuses the list, and a list that is none.
    pub async fn merge_referrers(
        &self,
        reference: &Reference,
        tag: &str,
        digest: &Digest,
        writes: bool,
    ) -> Result<bool, Error> {
        let session = self.registries().pushing(reference).await?;
        self.in_time(merge_list(&session, tag, digest, writes))
            .await
    }

    /// Checks that a registry takes an index that names an image which it does not have.
    ///
    /// # Errors
    /// A registry that cannot be reached, or refuses it.
    pub async fn check_sparse(&self, reference: &Reference) -> Result<(), Error> {
        let session = self.registries().pushing(reference).await?;
        self.in_time(check_sparse(&session)).await
    }

    /// Checks that a registry takes a push to the repository of `reference`.
    ///
    /// # Errors
    /// A registry that cannot be reached, or refuses it.
    pub async fn check_push(&self, reference: &Reference) -> Result<(), Error> {
        let session = self.registries().pushing(reference).await?;
        self.in_time(check_push(&session)).await
    }

    /// Returns the tags of a repository, or nothing if there is no such repository.
    ///
    /// # Errors
    /// A registry that does not answer.
    pub async fn tags(&self, reference: &Reference) -> Result<Vec<String>, Error> {
        let session = self.registries().reading(reference).await?;
        within(self.settings.pull_timeout, session.tags()).await
    }

    /// Returns the repositories of a registry; `None` if it does not list them.
    ///
    /// # Errors
    /// A registry that does not answer, or refuses the list.
    pub async fn repositories(&self, reference: &Reference) -> Result<Option<Vec<String>>, Error> {
        let session = self.registries().listing(reference).await?;
        within(self.settings.pull_timeout, session.repositories()).await
    }

    /// Returns the manifests that a manifest names; `None` if there is no such manifest.
    ///
    /// # Errors
    /// A registry that does not answer.
    pub async fn manifest_links(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Option<ManifestLinks>, Error> {
        let session = self.registries().reading(reference).await?;
        self.in_time(session.links(digest)).await
    }

    /// Returns the sizes of an image in bytes by digest: of its manifests, and of what they name. Of
    /// a sparse index only its own.
    ///
    /// # Errors
    /// A registry that does not answer.
    pub async fn image_sizes(
        &self,
        source: &Source,
        digest: &Digest,
        is_sparse: bool,
    ) -> Result<BTreeMap<Digest, u64>, Error> {
        let Some(session) = self.session_with(source, digest).await? else {
            return Ok(BTreeMap::new());
        };
        let asking = self.in_time(session.sizes(digest, is_sparse));
        session.server.redacted(asking.await)
    }

    /// Gives a manifest another tag, unless the tag is there.
    ///
    /// # Errors
    /// A registry that cannot be reached or refuses the tag.
    pub async fn add_tag(
        &self,
        reference: &Reference,
        digest: &Digest,
        tag: &str,
    ) -> Result<(), Error> {
        let session = self.registries().pushing(reference).await?;
        self.in_time(session.add_tag(digest, tag)).await
    }

    /// Removes a manifest with its tags.
    ///
    /// # Errors
    /// A registry that cannot be reached, or that refuses the account.
    pub async fn delete_manifest(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Deletion, Error> {
        let session = self.registries().deleting(reference).await?;
        self.in_time(session.delete_manifest(digest)).await
    }

    /// Pushes an image of one layer under the tag of `reference`, or under its digest alone if it
    /// has no tag.
    ///
    /// # Errors
    /// A registry that cannot be reached or refuses the push. The tag is set last, so it never
    /// names half an image.
    pub async fn push(
        &self,
        reference: &Reference,
        documents: Documents,
        layer: Bytes,
    ) -> Result<Pushed, Error> {
        let session = self.registries().pushing(reference).await?;
        push(&session, reference.tag(), documents, layer).await
    }

    fn registries(&self) -> Registries<'_> {
        Registries {
            fetcher: &self.fetcher,
            auth_states: &self.auth_states,
            insecure_hosts: &self.insecure_hosts,
            settings: &self.settings,
        }
    }

    fn web(&self) -> WebClient<'_> {
        WebClient {
            fetcher: &self.fetcher,
            settings: &self.settings,
        }
    }

    fn layout(&self, dir: &Path) -> Layout {
        Layout {
            dir: dir.to_owned(),
            limits: self.settings.limits.clone(),
        }
    }

    /// Returns the place of an image in a registry or its mirrors.
    async fn registry_with(
        &self,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<BlobSource, Error> {
        let asking = self.registries().session_with(reference, digest.as_str());
        let session = Box::pin(asking).await?;
        Ok(BlobSource::Registry(Box::new(session)))
    }

    /// Returns a session with the registry or mirror that has an image; `None` for sources other
    /// than registries.
    async fn session_with(
        &self,
        source: &Source,
        digest: &Digest,
    ) -> Result<Option<Session>, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(None);
        };
        let asking = self.registries().session_with(reference, digest.as_str());
        asking.await.map(Some)
    }

    /// Limits the time of one question. Each request has limits of its own, but redirects, tokens
    /// and retries add up.
    async fn in_time<T>(&self, asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        within(self.settings.resolve_timeout, asking).await
    }
}

async fn read_image<S: FileSink + 'static>(
    blobs: &BlobSource,
    digest: &Digest,
    empty: &EmptyLayers,
    sink: S,
    settings: &SourceSettings,
) -> Result<(S, Pull), Error> {
    let image = image::find(blobs, digest, settings).await?.manifest;
    let config = blobs.config(&image.config).await?;
    let root = image::root(&image, &config, settings)?;
    let path = root.path();
    let folders = root.folders();
    let empty = empty.below(&path);
    let (sink, mut pull) = layers::read(blobs, &image, root, empty, sink, settings).await?;
    pull.traffic = blobs.traffic();
    pull.folders = folders;
    pull.empty_layers.root = path;
    Ok((sink, pull))
}
