//! The list of the manifests that refer to an image, under a tag, in registries without an API for
//! it (OCI distribution specification v1.1, "Referrers Tag Schema").

use bytes::Bytes;
use oci::{Digest, media_type, parse_document};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::image::PARSING;
use crate::registry::Session;
use crate::signatures::list_tag;

/// Fields of a manifest that refers to another one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReferringManifest {
    #[serde(default)]
    media_type: String,
    artifact_type: Option<String>,
    config: Option<ConfigType>,
    subject: Option<ManifestSubject>,
    annotations: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigType {
    media_type: String,
}

#[derive(Deserialize)]
struct ManifestSubject {
    digest: Digest,
}

#[derive(Default, Deserialize)]
struct ReferrerList {
    #[serde(default)]
    manifests: Vec<Map<String, Value>>,
}

/// Adds a manifest to the list of its subject. Returns true if the list was changed.
pub(crate) async fn list_referrer(session: &Session, digest: &Digest) -> Result<bool, Error> {
    let body = session.manifest(digest).await?;
    let size = body.len();
    let parsing = PARSING.lock().await;
    let manifest: ReferringManifest = parse_document("manifest", digest, &body)?;
    drop(parsing);
    let Some(subject) = &manifest.subject else {
        return Ok(false);
    };
    let mut pages = session.referrers(&subject.digest);
    if session.next_page(&mut pages).await?.is_some() {
        return Ok(false);
    }
    let tag = list_tag(&subject.digest);
    let mut list = ReferrerList::under(session, &tag).await?;
    if !list.add(entry(manifest, digest, size)) {
        return Ok(false);
    }
    list.push(session, &tag).await?;
    Ok(true)
}

/// Adds the entries of the list `digest` to the one under a tag. Returns true if the list lacked some.
/// Pushes it only if `writes`.
pub(crate) async fn merge_list(
    session: &Session,
    tag: &str,
    digest: &Digest,
    writes: bool,
) -> Result<bool, Error> {
    let body = session.manifest(digest).await?;
    let parsing = PARSING.lock().await;
    let added: ReferrerList = parse_document("manifest", digest, &body)?;
    drop(parsing);
    let mut list = ReferrerList::under(session, tag).await?;
    let mut lacks = false;
    for entry in added.manifests {
        lacks |= list.add(entry);
    }
    if lacks && writes {
        list.push(session, tag).await?;
    }
    Ok(lacks)
}

impl ReferrerList {
    /// Returns the list under a tag, which is empty if there is none.
    async fn under(session: &Session, tag: &str) -> Result<Self, Error> {
        let Some(body) = session.tagged(tag).await? else {
            return Ok(Self::default());
        };
        let _parsing = PARSING.lock().await;
        Ok(parse_document("manifest", &tag, &body)?)
    }

    /// Adds an entry unless the list has its manifest. Returns true if it was added.
    fn add(&mut self, entry: Map<String, Value>) -> bool {
        let digest = entry.get("digest");
        let mut known = self.manifests.iter().map(|known| known.get("digest"));
        if known.any(|known| known == digest) {
            return false;
        }
        self.manifests.push(entry);
        true
    }

    async fn push(self, session: &Session, tag: &str) -> Result<(), Error> {
        let index = json!({
            "schemaVersion": 2,
            "mediaType": media_type::INDEX,
            "manifests": self.manifests,
        });
        let index = Bytes::from(index.to_string());
        session.push_manifest(tag, media_type::INDEX, index).await
    }
}

fn entry(manifest: ReferringManifest, digest: &Digest, size: usize) -> Map<String, Value> {
    let mut entry = Map::new();
    let media_type = match manifest.media_type.as_str() {
        "" => media_type::MANIFEST,
        media_type => media_type,
    };
    entry.insert("mediaType".to_owned(), json!(media_type));
    entry.insert("digest".to_owned(), json!(digest.as_str()));
    entry.insert("size".to_owned(), json!(size));
    let of_config = manifest.config.map(|config| config.media_type);
    if let Some(artifact_type) = manifest.artifact_type.or(of_config) {
        entry.insert("artifactType".to_owned(), json!(artifact_type));
    }
    if let Some(annotations) = manifest.annotations {
        entry.insert("annotations".to_owned(), Value::Object(annotations));
    }
    entry
}
