//! The entry point: a source to its digest, and a digest to its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fetch::{Fetcher, Traffic};
use model::EmptyLayers;
use oci::{
    BlobRef, Digest, FileSink, ImageDocument, ImageError, ImageManifest, Root, choose_platform,
    content_root, parse_manifest,
};
use tokio::sync::Mutex;
use tracing::Instrument;

use crate::archive::Archives;
use crate::blob_source::{BlobSource, Layout, wrong_size};
use crate::dir;
use crate::git::GitCommits;
use crate::layers;
use crate::registry::{AuthStates, if_found};
use crate::stream::{blocking, within};
use crate::{Error, Source, SourceSettings};

/// Maximum depth of nested indexes. One is usual, and `docker buildx` makes two.
const MAX_INDEXES: usize = 3;

/// Held while a manifest or an index is parsed and what is needed of it is kept. A hostile one
/// takes 20 times its size in memory, so only one of them is parsed at a time in a process.
pub(crate) static PARSING: Mutex<()> = Mutex::const_new(());

/// Reads catalogs from their sources. Clones share connections and tokens, so a process needs only
/// one.
#[derive(Clone)]
pub struct Sources {
    pub(crate) fetcher: Fetcher,
    pub(crate) auth_states: AuthStates,
    pub(crate) archives: Archives,
    pub(crate) commits: GitCommits,
    /// Settings that it was made with, or that [`Self::with_settings`] has changed.
    pub settings: Arc<SourceSettings>,
}

/// The cost of reading one image.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Bytes of manifests, config and layers received over the network, and requests sent, those
    /// for tokens included.
    pub traffic: Traffic,
    /// Layers that were read to their end.
    pub layers_fetched: usize,
    /// Layers that were not read: they are known to be empty, or upper layers hide them.
    pub layers_skipped: usize,
    /// Paths of the folders that were read, as the files have them; empty for all.
    pub folders: Vec<String>,
    /// Layers of this image without files below the FBC root, known before or found now.
    pub empty_layers: EmptyLayers,
}

/// The image of an index that fits the platform.
pub(crate) struct PlatformImage {
    pub(crate) digest: Digest,
    pub(crate) manifest: ImageManifest,
    /// The indexes that lead to the manifest, and the manifest, as they were received.
    pub(crate) documents: Vec<(Digest, Bytes)>,
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
        let resolving = async {
            match source {
                Source::Registry { reference, .. } => {
                    self.in_time(Box::pin(self.resolve_image(reference, None)))
                        .await
                }
                Source::OciLayout { dir, tag } => self.layout(dir).resolve(tag.as_deref()).await,
                Source::Archive(location) => {
                    // On the heap, so that polls of images do not carry this state.
                    let resolving = Box::pin(self.resolve_archive(location));
                    // As long as a pull, because the digest is known only after the last byte.
                    within(self.settings.pull_timeout, resolving).await
                }
                Source::Git(location) => self.in_time(Box::pin(self.resolve_git(location))).await,
                Source::Dir(path) => {
                    let (path, settings) = (path.clone(), Arc::clone(&self.settings));
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
                self.in_time(self.resolve_image(reference, pinned.as_ref()))
                    .await
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
            let blobs = match source {
                Source::Registry { reference, .. } => self.registry_with(reference, digest).await?,
                Source::OciLayout { dir, .. } => BlobSource::Layout(self.layout(dir)),
                Source::Archive(location) => {
                    return Box::pin(self.read_archive(location, digest, sink)).await;
                }
                Source::Git(location) => {
                    return Box::pin(self.read_git(location, digest, sink)).await;
                }
                Source::Dir(path) => {
                    let (path, digest, settings) =
                        (path.clone(), digest.clone(), Arc::clone(&self.settings));
                    return blocking(move || dir::read(&path, &digest, &settings, sink)).await;
                }
            };
            blobs.redacted(self.read_image(&blobs, digest, empty, sink).await)
        };
        let reading = reading.instrument(tracing::info_span!("pull", source = %source, %digest));
        within(self.settings.pull_timeout, reading).await
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
        let found = self.in_time(self.image(&blobs, digest)).await;
        let chosen = blobs.redacted(found)?.digest;
        Ok(Some(chosen).filter(|chosen| chosen != digest))
    }

    /// Limits the time of one question. Each request has limits of its own, but redirects, tokens
    /// and retries add up.
    pub(crate) async fn in_time<T>(
        &self,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        within(self.settings.resolve_timeout, asking).await
    }

    async fn read_image<S: FileSink + 'static>(
        &self,
        blobs: &BlobSource,
        digest: &Digest,
        empty: &EmptyLayers,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let image = self.image(blobs, digest).await?.manifest;
        let config = blobs.config(&image.config).await?;
        let root = self.root(&image, &config)?;
        let (path, folders) = (root.path(), root.folders());
        let (sink, mut pull) = layers::read(
            blobs,
            &image,
            root,
            empty.below(&path),
            sink,
            &self.settings,
        )
        .await?;
        pull.traffic = blobs.traffic();
        (pull.folders, pull.empty_layers.root) = (folders, path);
        Ok((sink, pull))
    }

    pub(crate) fn root(&self, image: &ImageManifest, config: &[u8]) -> Result<Root, Error> {
        let SourceSettings {
            content, limits, ..
        } = &*self.settings;
        Ok(content_root(
            *content,
            &image.config.digest,
            config,
            limits,
        )?)
    }

    /// Follows indexes down to the image for the platform.
    pub(crate) async fn image(
        &self,
        blobs: &BlobSource,
        digest: &Digest,
    ) -> Result<PlatformImage, Error> {
        let (mut digest, mut declared) = (digest.clone(), None::<BlobRef>);
        let mut documents = Vec::new();
        for _ in 0..=MAX_INDEXES {
            let body = blobs.manifest(&digest).await?;
            // The digest fits already. A wrong size is refused all the same, because container
            // engines refuse it.
            let actual = body.len() as u64;
            if let Some(declared) = declared.filter(|declared| declared.size != actual) {
                return Err(wrong_size("manifest", &declared, actual));
            }
            let _parsing = PARSING.lock().await;
            let parsed = parse_manifest(&digest, &body, &self.settings.limits)?;
            documents.push((digest.clone(), body));
            match parsed {
                ImageDocument::Image(manifest) => {
                    return Ok(PlatformImage {
                        digest,
                        manifest,
                        documents,
                    });
                }
                ImageDocument::Index(index) => {
                    let chosen = choose_platform(&index, &digest, &self.settings.platform)?;
                    (digest, declared) = (chosen.digest.clone(), Some(chosen));
                }
            }
        }
        Err(ImageError::Nested(digest).into())
    }

    pub(crate) fn layout(&self, dir: &Path) -> Layout {
        Layout {
            dir: dir.to_owned(),
            limits: self.settings.limits.clone(),
        }
    }
}
