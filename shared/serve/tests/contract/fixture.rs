//! A published catalog, made by hand: this crate knows neither the parser nor the renderer.

use std::{
    collections::BTreeMap,
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use layout::{
    Availability, CatalogName, Catalogs, Current, Document, Form, Image, Index, IndexedMeta, IndexedShard, Key,
    Previous, RENDER_VERSION, Sha256, ShardRef, Snapshot, SnapshotRef, SourceRef, Stored, Whole,
};
use store::{Condition, Store};

/// What is published of a catalog.
pub(crate) struct Published {
    /// The whole `all.json`.
    pub(crate) all: Vec<u8>,
    pub(crate) current: Current,
    pub(crate) snapshot: Snapshot,
}

/// How a catalog is published.
pub(crate) struct Publication<'a> {
    pub(crate) name: &'a str,
    pub(crate) serial: u64,
    pub(crate) availability: Availability,
    /// Whether `all.json` is stored uncompressed too.
    pub(crate) identity: bool,
    /// What was published before.
    pub(crate) previous: Vec<Previous>,
}

impl Default for Publication<'_> {
    fn default() -> Self {
        Self {
            name: "demo",
            serial: 1,
            availability: Availability::Available,
            identity: false,
            previous: Vec::new(),
        }
    }
}

#[derive(serde::Deserialize)]
struct Fields {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    name: String,
}

impl Fields {
    fn group(&self) -> &str {
        match (self.package.as_str(), self.schema.as_str()) {
            ("", "olm.package") => &self.name,
            (package, _) => package,
        }
    }
}

/// Publishes canonical lines.
pub(crate) async fn publish(store: &dyn Store, publication: Publication<'_>, lines: &str) -> Published {
    let name: CatalogName = publication.name.parse().unwrap();
    let mut groups: BTreeMap<String, (Vec<u8>, Vec<IndexedMeta>)> = BTreeMap::new();
    for line in lines.lines() {
        let fields: Fields = serde_json::from_str(line).unwrap();
        let (shard, metas) = groups.entry(fields.group().to_owned()).or_default();
        metas.push(IndexedMeta {
            offset: shard.len() as u64,
            length: line.len() as u64 + 1,
            schema: fields.schema,
            package: fields.package,
            name: fields.name,
        });
        shard.extend_from_slice(line.as_bytes());
        shard.push(b'\n');
    }
    let all: Vec<u8> = groups.values().flat_map(|(shard, _)| shard.clone()).collect();
    let hash = Sha256::of(&all);
    let image = put_image(store, &groups).await;
    let mut shards = Vec::new();
    let mut index = Index::default();
    for (name, (lines, metas)) in groups {
        let stored = put(store, &Key::Shard(Sha256::of(&lines)), zstd(&lines)).await;
        shards.push(ShardRef {
            name,
            sha256: Sha256::of(&lines),
            size: lines.len() as u64,
            metas: metas.len() as u64,
            stored,
        });
        let sha256 = Sha256::of(&lines);
        index.shards.push(IndexedShard { sha256, metas });
    }
    let key = |form| Key::All(name.clone(), hash, form);
    let identity = match publication.identity {
        true => Some(put(store, &key(Form::Identity), all.clone()).await),
        false => None,
    };
    let whole = Whole {
        zstd: put(store, &key(Form::Zstd), zstd(&all)).await,
        gzip: put(store, &key(Form::Gzip), gzip(&all)).await,
        identity,
    };
    let index = put(store, &Key::Index(name.clone(), hash), zstd(&index.to_bytes())).await;
    let global = shards.first().filter(|shard| shard.name.is_empty()).cloned();
    let snapshot = Snapshot {
        render_version: RENDER_VERSION,
        content_hash: hash,
        size: all.len() as u64,
        metas: shards.iter().map(|shard| shard.metas).sum(),
        all: whole,
        index,
        packages: shards.into_iter().filter(|shard| !shard.name.is_empty()).collect(),
        global,
        image: Some(image),
    };
    put(store, &Key::Snapshot(name.clone(), hash), snapshot.to_bytes()).await;
    let current = Current {
        serial: publication.serial,
        content_hash: hash,
        snapshot: SnapshotRef::new(&name, hash, &snapshot.to_bytes()),
        source: SourceRef {
            reference: "registry.example/demo:latest".into(),
            digest: "sha256:0123".into(),
            verified: None,
        },
        render_version: RENDER_VERSION,
        published_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000 + 60 * publication.serial),
        brought_back: None,
        availability: publication.availability,
        previous: publication.previous,
        signatures: Vec::new(),
    };
    put(store, &Key::Current(name.clone()), current.to_bytes()).await;
    put(store, &Key::Catalogs, Catalogs::from_iter([name]).to_bytes()).await;
    Published { all, current, snapshot }
}

async fn put_image(store: &dyn Store, groups: &BTreeMap<String, (Vec<u8>, Vec<IndexedMeta>)>) -> Image {
    let (mut layer, mut tar) = (oci::Layer::new(), Vec::new());
    for (name, (lines, _)) in groups {
        tar.extend(layer.before(name, lines.len() as u64));
        tar.extend_from_slice(lines);
    }
    tar.extend(layer.end());
    let (bytes, diff_id) = (gzip(&tar), Sha256::of(&tar));
    let layer = put(store, &Key::Blob(Sha256::of(&bytes)), bytes).await;
    let documents = oci::Documents::new(layer, diff_id);
    let image = documents.image(layer, diff_id);
    for bytes in documents.into_all() {
        put(store, &Key::Blob(Sha256::of(&bytes)), bytes).await;
    }
    image
}

pub(crate) async fn put(store: &dyn Store, key: &Key, bytes: Vec<u8>) -> Stored {
    let stored = Stored {
        size: bytes.len() as u64,
        sha256: Sha256::of(&bytes),
    };
    store.put(key, Bytes::from(bytes), Condition::Always).await.unwrap();
    stored
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 9).unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Three packages, a Meta of no package and one without a schema.
pub(crate) const LINES: &str = r#"{"schema":"olm.note","text":"of no package"}
{"defaultChannel":"stable","name":"alpha","schema":"olm.package"}
{"name":"stable","package":"alpha","schema":"olm.channel"}
{"name":"alpha.v1","package":"alpha","schema":"olm.bundle"}
{"package":"alpha","text":"without a schema"}
{"name":"alpha.v2","package":"alpha","schema":"olm.bundle"}
{"name":"beta","schema":"olm.package"}
{"name":"stable","package":"beta","schema":"olm.channel"}
{"name":"beta.v1","package":"beta","schema":"olm.bundle"}
{"name":"gamma","schema":"olm.package"}
"#;
