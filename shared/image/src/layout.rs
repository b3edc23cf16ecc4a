//! An OCI image layout on disk.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oci_client::manifest::OciImageIndex;
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;

use crate::digest::Digest;
use crate::error::{Error, ImageError, Limit};
use crate::limits::Limits;
use crate::manifest::{Blob, json};
use crate::path::shown;
use crate::place::{Check, Fetched};

const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Large enough for few system calls, small enough to hold several.
const CHUNK_BYTES: usize = 128 * 1024;

/// A folder with `index.json` and `blobs`.
pub(crate) struct Layout {
    dir: PathBuf,
    limits: Limits,
}

impl Layout {
    pub(crate) fn new(dir: &Path, limits: &Limits) -> Self {
        Self {
            dir: dir.to_owned(),
            limits: limits.clone(),
        }
    }

    /// The digest that `index.json` names for `tag`, or its only one.
    pub(crate) async fn resolve(&self, tag: Option<&str>) -> Result<Digest, Error> {
        let path = self.dir.join("index.json");
        let limit = ("manifestBytes", self.limits.manifest_bytes);
        let body = blocking(move || read_small(&path, limit)).await?;
        let digest = Digest::of(&body);
        let index: OciImageIndex = json("index.json", &digest, &body)?;
        Ok(pick(&index, tag, &digest)?)
    }

    pub(crate) async fn manifest(&self, digest: &Digest) -> Result<Bytes, Error> {
        let body = self
            .small(digest, ("manifestBytes", self.limits.manifest_bytes))
            .await?;
        digest.verify("manifest", body)
    }

    pub(crate) async fn config(&self, blob: &Blob) -> Result<Bytes, Error> {
        let body = self
            .small(&blob.digest, ("configBytes", self.limits.config_bytes))
            .await?;
        let mut check = Check::new("config", blob);
        check.update(&body)?;
        check.finish().map(|()| body)
    }

    pub(crate) async fn stream(&self, blob: &Blob, to: Sender<Bytes>) -> Result<Fetched, Error> {
        let (path, blob) = (self.path(&blob.digest), blob.clone());
        blocking(move || stream_file(&path, &blob, &to)).await
    }

    async fn small(&self, digest: &Digest, limit: (&'static str, u64)) -> Result<Bytes, Error> {
        let path = self.path(digest);
        blocking(move || read_small(&path, limit)).await
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join("blobs").join(digest.algorithm()).join(digest.hex())
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(Error::Task)?
}

fn read_small(path: &Path, (name, limit): (&'static str, u64)) -> Result<Bytes, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let mut body = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(limit.saturating_add(1))
        .read_to_end(&mut body)
        .map_err(failed)?;
    if body.len() as u64 > limit {
        return Err(Error::Limit(Limit {
            name,
            limit,
            place: path.display().to_string(),
        }));
    }
    Ok(body.into())
}

fn stream_file(path: &Path, blob: &Blob, to: &Sender<Bytes>) -> Result<Fetched, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut check = Check::new("layer", blob);
    loop {
        let chunk = next_chunk(&mut file).map_err(failed)?;
        if chunk.is_empty() {
            return check.finish().map(|()| Fetched::Verified);
        }
        check.update(&chunk)?;
        if to.blocking_send(chunk).is_err() {
            return Ok(Fetched::Unwanted);
        }
    }
}

fn next_chunk(file: &mut File) -> io::Result<Bytes> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
    Ok(chunk.into())
}

fn pick(index: &OciImageIndex, tag: Option<&str>, digest: &Digest) -> Result<Digest, ImageError> {
    let name = |at: usize| {
        index.manifests[at]
            .annotations
            .as_ref()?
            .get(REF_NAME)
            .map(String::as_str)
    };
    let fits = |at: &usize| tag.is_none() || name(*at) == tag;
    let fitting: Vec<_> = (0..index.manifests.len()).filter(fits).collect();
    let [at] = fitting.as_slice() else {
        let tags: Vec<_> = (0..index.manifests.len())
            .map(|at| name(at).unwrap_or("(no tag)"))
            .collect();
        let found = if tags.is_empty() {
            "none".to_owned()
        } else {
            shown(tags.join(", ").as_bytes())
        };
        let wanted = tag.map_or_else(
            || "without a tag that is the only one".to_owned(),
            |tag| format!("tagged {tag}"),
        );
        return Err(ImageError::NoTag { wanted, found });
    };
    let parsed = index.manifests[*at].digest.parse();
    parsed.map_err(|source| ImageError::Digest {
        manifest: digest.clone(),
        source,
    })
}
