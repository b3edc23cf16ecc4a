//! The front door: a source to its digest, and a digest to its files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use oci_client::Reference;
use tokio::time::timeout;

use crate::digest::Digest;
use crate::dir;
use crate::error::{Error, ImageError};
use crate::layers;
use crate::layout::{Layout, blocking};
use crate::limits::Limits;
use crate::manifest::{self, Document, Image};
use crate::overlay::Root;
use crate::place::Place;
use crate::registry::{Client, Session};
use crate::settings::Settings;
use crate::sink::FileSink;
use crate::source::Source;

/// Indexes that an image may be nested in. One is usual, two occur with `docker buildx`.
const MOST_INDEXES: usize = 3;

/// Reads images. Cheap to clone; keeps connections and tokens, so one per process is right.
#[derive(Clone)]
pub struct Images {
    client: Client,
    settings: Arc<Settings>,
}

/// What reading one image took.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Bytes of manifests, config and layers received over the wire.
    pub bytes: u64,
    /// Requests sent, retries and token fetches included.
    pub requests: u64,
    /// Layers that were fetched to their end.
    pub layers_fetched: usize,
    /// Layers that were not, being known as empty or hidden by an upper layer.
    pub layers_skipped: usize,
    /// Layers of this image that hold nothing under the FBC root, known before or found now.
    pub empty_layers: EmptyLayers,
}

/// Layers that hold nothing of a catalog whose FBC lies under one root: under another root they may.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EmptyLayers {
    /// The root, without a slash in front.
    pub root: String,
    /// The layers.
    pub digests: BTreeSet<Digest>,
}

impl Images {
    /// Sets up TLS, proxies and connections; fetches nothing.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let settings = Arc::new(settings);
        Ok(Self {
            client: Client::new(Arc::clone(&settings))?,
            settings,
        })
    }

    /// The digest the source has now: of the top-level manifest or index. One HEAD for a tag,
    /// nothing for a pinned digest. The digest is the registry's word until `read` verifies it.
    pub async fn resolve(&self, source: &Source) -> Result<Digest, Error> {
        if let Some(pinned) = source.pinned() {
            return Ok(pinned.clone());
        }
        match source {
            Source::Registry { reference, .. } => {
                let session = self.client.session(reference);
                self.in_time(session.resolve(reference)).await
            }
            Source::OciLayout { dir, tag } => self.layout(dir).resolve(tag.as_deref()).await,
            Source::Dir(path) => {
                let path = path.clone();
                let limits = self.settings.limits.clone();
                blocking(move || dir::digest(&path, &limits)).await
            }
        }
    }

    /// Whether the source is there: of a registry's image one HEAD, also for a pinned digest, which [`Self::resolve`]
    /// believes. A registry that refuses to say is an error, not a no.
    pub async fn exists(&self, source: &Source) -> Result<bool, Error> {
        match source {
            Source::Registry { reference, pinned } => {
                let tag = reference.tag().unwrap_or("latest");
                let version = pinned.as_ref().map_or(tag, Digest::as_str);
                let session = self.client.session(reference);
                self.in_time(session.exists(version)).await
            }
            Source::OciLayout { .. } | Source::Dir(_) => self.resolve(source).await.map(|_| true),
        }
    }

    /// Pulls the image by `digest` and feeds each FBC file to `sink` once. Layers in `empty` are not
    /// fetched. If this fails the sink is gone, and nothing it took may be used.
    pub async fn read<S: FileSink + 'static>(
        &self,
        source: &Source,
        digest: &Digest,
        empty: &EmptyLayers,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let limit = self.settings.pull_timeout;
        let reading = self.read_source(source, digest, empty, sink);
        timeout(limit, reading).await.map_err(|_| Error::Timeout(limit))?
    }

    /// The manifest that [`Self::read`] takes for the platform, if `digest` is that of an index in a registry.
    ///
    /// # Errors
    /// As for every request, and if the index has nothing for the platform.
    pub async fn of_platform(&self, source: &Source, digest: &Digest) -> Result<Option<Digest>, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(None);
        };
        let place = Place::Registry(self.session(reference));
        let (chosen, _) = self.in_time(self.image(&place, digest)).await?;
        Ok(Some(chosen).filter(|chosen| chosen != digest))
    }

    /// Each request is bounded, but redirects, tokens and retries make many of one.
    pub(crate) async fn in_time<T>(&self, asking: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let limit = self.settings.resolve_timeout;
        timeout(limit, asking).await.map_err(|_| Error::Timeout(limit))?
    }

    async fn read_source<S: FileSink + 'static>(
        &self,
        source: &Source,
        digest: &Digest,
        empty: &EmptyLayers,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let place = match source {
            Source::Registry { reference, .. } => Place::Registry(self.client.session(reference)),
            Source::OciLayout { dir, .. } => Place::Layout(self.layout(dir)),
            Source::Dir(path) => {
                let (path, digest) = (path.clone(), digest.clone());
                let limits = self.settings.limits.clone();
                let sink = blocking(move || dir::read(&path, &digest, &limits, sink)).await?;
                return Ok((sink, Pull::default()));
            }
        };
        self.read_image(&place, digest, empty, sink).await
    }

    async fn read_image<S: FileSink + 'static>(
        &self,
        place: &Place,
        digest: &Digest,
        empty: &EmptyLayers,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let (_, image) = self.image(place, digest).await?;
        let config = place.config(&image.config).await?;
        let root = Root::new(manifest::root(&image.config.digest, &config, &self.settings.limits)?);
        let path = root.path();
        let none = BTreeSet::new();
        let empty = if empty.root == path { &empty.digests } else { &none };
        let (sink, mut pull) = layers::read(place, (&image, root), empty, sink, &self.settings).await?;
        (pull.bytes, pull.requests) = place.traffic();
        pull.empty_layers.root = path;
        Ok((sink, pull))
    }

    /// Follows indexes down to the image for the platform.
    async fn image(&self, place: &Place, digest: &Digest) -> Result<(Digest, Image), Error> {
        let mut digest = digest.clone();
        for _ in 0..=MOST_INDEXES {
            let body = place.manifest(&digest).await?;
            match manifest::parse(&digest, &body, &self.settings.limits)? {
                Document::Image(image) => return Ok((digest, image)),
                Document::Index(index) => digest = manifest::choose(&index, &digest, &self.settings.platform)?,
            }
        }
        Err(ImageError::Nested(digest).into())
    }

    pub(crate) fn session(&self, reference: &Reference) -> Session {
        self.client.session(reference)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    fn layout(&self, dir: &Path) -> Layout {
        Layout::new(dir, &self.settings.limits)
    }
}

impl Pull {
    pub(crate) fn skip(&mut self, layer: &Digest) {
        self.layers_skipped += 1;
        self.empty_layers.digests.insert(layer.clone());
    }

    pub(crate) fn note(&mut self, layer: &Digest, is_empty: bool) {
        self.layers_fetched += 1;
        if is_empty {
            self.empty_layers.digests.insert(layer.clone());
        }
    }
}
