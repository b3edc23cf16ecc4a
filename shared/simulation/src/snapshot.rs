use std::{collections::BTreeMap, io::Read};

use bytes::Bytes;
use layout::{CatalogName, Form, Key, Sha256};
use serde_json::Value;

/// What a published state holds, as plain lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) all: Vec<u8>,
    pub(crate) packages: BTreeMap<String, Vec<u8>>,
}

/// How an object is stored.
#[derive(Clone, Copy)]
pub(crate) enum Coding {
    Plain,
    Zstd,
    Gzip,
}

impl Coding {
    pub(crate) const fn of(key: &Key) -> Self {
        match key {
            Key::Shard(_) | Key::Index(..) | Key::All(_, _, Form::Zstd) => Self::Zstd,
            Key::All(_, _, Form::Gzip) => Self::Gzip,
            _ => Self::Plain,
        }
    }
}

/// Everything that a snapshot names, and whether it is what the snapshot says.
struct Reader<'a> {
    objects: &'a BTreeMap<Key, Bytes>,
    sound: BTreeMap<Key, Bytes>,
}

/// Checks one published state: that every object is there, has the recorded size and hash, and holds what it should.
/// Returns its content, and the objects as they were found.
pub(crate) fn read(
    name: &CatalogName,
    hash: Sha256,
    snapshot: &Bytes,
    objects: &BTreeMap<Key, Bytes>,
) -> Result<(Content, BTreeMap<Key, Bytes>), String> {
    let document: Value = serde_json::from_slice(snapshot).map_err(|error| format!("no snapshot: {error}"))?;
    let mut reader = Reader {
        objects,
        sound: BTreeMap::new(),
    };
    reader.blobs(&document["image"])?;
    let index = Key::Index(name.clone(), hash);
    reader.check(index, &document["index"], Coding::Zstd, None)?;
    let forms = [
        (Form::Zstd, "zstd", Coding::Zstd),
        (Form::Gzip, "gzip", Coding::Gzip),
        (Form::Identity, "identity", Coding::Plain),
    ];
    for (form, field, coding) in forms {
        let recorded = &document["all"][field];
        if !recorded.is_null() || form != Form::Identity {
            reader.check(Key::All(name.clone(), hash, form), recorded, coding, Some(hash))?;
        }
    }
    let content = reader.shards(&document)?;
    if Sha256::of(&content.all) != hash {
        return Err(format!("the shards of {hash} are another content"));
    }
    Ok((content, reader.sound))
}

impl Reader<'_> {
    fn blobs(&mut self, image: &Value) -> Result<(), String> {
        let lists = ["manifests", "configs"].map(|list| image[list].as_array().cloned().unwrap_or_default());
        for blob in lists.into_iter().flatten().chain([image["index"].clone()]) {
            self.blob(&blob)?;
        }
        let layer = self.blob(&image["layer"])?;
        if Sha256::of(&plain(&layer, Coding::Gzip)?) != sha256(&image["diffId"])? {
            return Err("the layer holds another archive than the snapshot says".to_owned());
        }
        Ok(())
    }

    fn blob(&mut self, blob: &Value) -> Result<Vec<u8>, String> {
        let digest = sha256(&blob["sha256"])?;
        self.check(Key::Blob(digest), blob, Coding::Plain, Some(digest))
    }

    fn shards(&mut self, document: &Value) -> Result<Content, String> {
        let mut content = Content::default();
        let global = Some(&document["global"]).filter(|global| !global.is_null());
        for shard in global
            .into_iter()
            .chain(document["packages"].as_array().into_iter().flatten())
        {
            let hash = sha256(&shard["sha256"])?;
            let lines = self.check(Key::Shard(hash), &shard["stored"], Coding::Zstd, Some(hash))?;
            content.all.extend_from_slice(&lines);
            let package = shard["name"].as_str().unwrap_or_default();
            content.packages.insert(package.to_owned(), lines);
        }
        Ok(content)
    }

    fn check(&mut self, key: Key, recorded: &Value, coding: Coding, holds: Option<Sha256>) -> Result<Vec<u8>, String> {
        let bytes = self
            .objects
            .get(&key)
            .ok_or_else(|| format!("{key} is published and gone"))?;
        let size = recorded["size"].as_u64();
        if Sha256::of(bytes) != sha256(&recorded["sha256"])? || Some(bytes.len() as u64) != size {
            return Err(format!("{key} is not what the snapshot says"));
        }
        let content = plain(bytes, coding).map_err(|what| format!("{key}: {what}"))?;
        if holds.is_some_and(|holds| Sha256::of(&content) != holds) {
            return Err(format!("{key} holds something else"));
        }
        self.sound.insert(key, bytes.clone());
        Ok(content)
    }
}

pub(crate) fn plain(bytes: &[u8], coding: Coding) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let read = match coding {
        Coding::Plain => return Ok(bytes.to_vec()),
        Coding::Zstd => zstd::stream::read::Decoder::new(bytes).and_then(|mut decoder| decoder.read_to_end(&mut plain)),
        Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain),
    };
    read.map_err(|error| format!("it does not decompress: {error}"))?;
    Ok(plain)
}

pub(crate) fn sha256(value: &Value) -> Result<Sha256, String> {
    text(value)?.parse().map_err(|_| format!("{value} is no hash"))
}

pub(crate) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is no text"))
}
