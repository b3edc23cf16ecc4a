use std::{collections::BTreeMap, io::Read};

use bytes::Bytes;
use flate2::read::GzDecoder;
use model::Encoding::{self, Gzip, Identity, Zstd};
use model::{Key, Kind, Sha256};
use serde_json::{Map, Value};

/// Content of a published state, as plain lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) all: Vec<u8>,
    pub(crate) packages: BTreeMap<String, Vec<u8>>,
}

/// Objects that a snapshot names, as they are checked one after the other.
struct ObjectChecker<'a> {
    objects: &'a BTreeMap<Key, Bytes>,
    sound: BTreeMap<Key, Bytes>,
}

/// Checks a published state: every object is there, has the recorded size and hash, and holds the
/// right content. Returns the content, and the objects as they were found.
pub(crate) fn read(
    hash: Sha256,
    snapshot: &Bytes,
    objects: &BTreeMap<Key, Bytes>,
) -> Result<(Content, BTreeMap<Key, Bytes>), String> {
    let document = decode(snapshot, Zstd)?;
    let document: Value =
        serde_json::from_slice(&document).map_err(|error| format!("not a snapshot: {error}"))?;
    if sha256(&document["contentHash"])? != hash {
        return Err(format!("the snapshot is not that of {hash}"));
    }
    let mut checker = ObjectChecker {
        objects,
        sound: BTreeMap::new(),
    };
    checker.blobs(&document["image"])?;
    checker.check(Kind::Index, &document["index"], None)?;
    for facts in document["facts"]
        .as_object()
        .into_iter()
        .flat_map(Map::values)
    {
        checker.check(Kind::Facts, facts, None)?;
    }
    for (encoding, field) in [(Zstd, "zstd"), (Gzip, "gzip"), (Identity, "identity")] {
        let recorded = &document["all"][field];
        if !recorded.is_null() || encoding != Identity {
            checker.check(Kind::All(encoding), recorded, Some(hash))?;
        }
    }
    let content = checker.shards(&document)?;
    if Sha256::of(&content.all) != hash {
        return Err(format!("the shards of {hash} are another content"));
    }
    Ok((content, checker.sound))
}

impl ObjectChecker<'_> {
    fn blobs(&mut self, image: &Value) -> Result<(), String> {
        if image.is_null() {
            return Ok(());
        }
        let lists = ["manifests", "configs"]
            .map(|list| image[list].as_array().cloned().unwrap_or_default());
        for blob in lists.into_iter().flatten().chain([image["index"].clone()]) {
            self.check(Kind::Blob, &blob, None)?;
        }
        let layer = self.check(Kind::Blob, &image["layer"], None)?;
        if Sha256::of(&decode(&layer, Gzip)?) != sha256(&image["diffId"])? {
            return Err("the layer holds another archive than the snapshot says".to_owned());
        }
        Ok(())
    }

    fn shards(&mut self, document: &Value) -> Result<Content, String> {
        let mut content = Content::default();
        let global = Some(&document["global"]).filter(|global| !global.is_null());
        let packages = document["packages"].as_array().into_iter().flatten();
        for shard in global.into_iter().chain(packages) {
            let lines = self.check(
                Kind::Package,
                shard,
                Some(sha256(&shard["lines"]["sha256"])?),
            )?;
            content.all.extend_from_slice(&lines);
            let package = shard["name"].as_str().unwrap_or_default();
            content.packages.insert(package.to_owned(), lines);
        }
        Ok(content)
    }

    /// Checks one object, and its decoded content against `holds`. Returns the content.
    fn check(
        &mut self,
        kind: Kind,
        recorded: &Value,
        holds: Option<Sha256>,
    ) -> Result<Vec<u8>, String> {
        let hash = sha256(&recorded["sha256"])?;
        let key = Key::Object(kind, hash);
        let found = self.objects.get(&key);
        let bytes = found.ok_or_else(|| format!("{key} is published and gone"))?;
        if Sha256::of(bytes) != hash || Some(bytes.len() as u64) != recorded["size"].as_u64() {
            return Err(format!("{key} is not what the snapshot says"));
        }
        let content = decode(bytes, kind.encoding()).map_err(|what| format!("{key}: {what}"))?;
        if holds.is_some_and(|holds| Sha256::of(&content) != holds) {
            return Err(format!("{key} holds another content"));
        }
        self.sound.insert(key, bytes.clone());
        Ok(content)
    }
}

pub(crate) fn decode(bytes: &[u8], encoding: Encoding) -> Result<Vec<u8>, String> {
    let content = match encoding {
        Identity => Ok(bytes.to_vec()),
        Zstd => zstd::decode_all(bytes),
        Gzip => {
            let mut content = Vec::new();
            GzDecoder::new(bytes)
                .read_to_end(&mut content)
                .map(|_| content)
        }
    };
    content.map_err(|error| format!("it does not decompress: {error}"))
}

pub(crate) fn sha256(value: &Value) -> Result<Sha256, String> {
    text(value)?
        .parse()
        .map_err(|_| format!("{value} is not a hash"))
}

/// Returns the hash in the key of a reference to an immutable object.
pub(crate) fn referenced(reference: &Value) -> Result<Sha256, String> {
    match Key::parse(text(&reference["key"])?) {
        Some(Key::Object(Kind::Snapshot, hash)) => Ok(hash),
        _ => Err(format!("{reference} is not the reference of a snapshot")),
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("{value} is not a text"))
}
