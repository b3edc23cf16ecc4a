//! Small catalogs, how they are rendered, and an earlier rendering.

use std::io::{self, Read, Seek};
use std::{collections::HashMap, fs::File, sync::Arc};

use model::{Encoding, IndexedMeta, Kind, ObjectDigest, Sha256, ShardRef, Snapshot};
use render::{
    AllFacts, KnownChunks, NoStoredShards, PublishedGzip, RenderError, RenderSettings, Renderer,
    Rendering, Sink, StoredShards,
};
use work::Budget;

/// Paths and contents of files. A content such as `-> a.yaml` is a link.
pub(crate) type Files<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn settings() -> RenderSettings {
    RenderSettings {
        chunk_bytes: 64,
        ..RenderSettings::default()
    }
}

pub(crate) fn try_render<P: AsRef<str>, T: AsRef<str>>(
    files: &[(P, T)],
    stored: Arc<dyn StoredShards>,
    settings: RenderSettings,
) -> Result<Rendering, RenderError> {
    let mut renderer = Renderer::start(settings, stored);
    for (path, content) in files {
        let (path, content) = (path.as_ref(), content.as_ref());
        match content.strip_prefix("-> ") {
            Some(target) => renderer.link(path, target),
            None => renderer.file(path, &mut content.as_bytes()).unwrap(),
        }
    }
    renderer.finish()
}

pub(crate) fn render<P: AsRef<str>, T: AsRef<str>>(files: &[(P, T)]) -> Rendering {
    try_render(files, Arc::new(NoStoredShards), settings()).unwrap()
}

pub(crate) const GZIP: Kind = Kind::All(Encoding::Gzip);

pub(crate) const IDENTITY: Kind = Kind::All(Encoding::Identity);

/// Everything that can be made.
pub(crate) const KINDS: [Kind; 4] = [Kind::All(Encoding::Zstd), GZIP, IDENTITY, Kind::Blob];

/// Makes some kinds; returns what was written to each, and the facts.
pub(crate) fn written<const N: usize>(
    rendering: &Rendering,
    kinds: [Kind; N],
) -> Result<([Vec<u8>; N], AllFacts), RenderError> {
    let files = kinds.map(|kind| (kind, tempfile::tempfile().unwrap()));
    let sinks = files
        .each_ref()
        .map(|(kind, file)| (*kind, Box::new(file.try_clone().unwrap()) as Sink));
    let facts = rendering.write_all(sinks.into())?;
    let read = |(_, mut file): (Kind, File)| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    Ok((files.map(read), facts))
}

pub(crate) fn all(rendering: &Rendering) -> String {
    let ([bytes], facts) = written(rendering, [IDENTITY]).unwrap();
    assert_eq!(facts.content_hash, Sha256::of(&bytes));
    assert_eq!(facts.size, bytes.len() as u64);
    String::from_utf8(bytes).unwrap()
}

pub(crate) const CATALOG: Files<'_> = &[
    (
        "b/catalog.yaml",
        "schema: olm.package\nname: b\n---\nschema: olm.bundle\npackage: b\nname: b.v1\n",
    ),
    (
        "a/catalog.json",
        r#"{"schema":"olm.package","name":"a"} {"schema":"olm.channel","name":"s","package":"a"}"#,
    ),
    (
        "a/more.json",
        r#"{"schema":"olm.bundle","package":"a","name":"a.v1"}"#,
    ),
    ("global.yaml", "schema: custom\nvalue: 1\n"),
];

pub(crate) const LINES: &str = r#"{"schema":"custom","value":1}
{"name":"a","schema":"olm.package"}
{"name":"s","package":"a","schema":"olm.channel"}
{"name":"a.v1","package":"a","schema":"olm.bundle"}
{"name":"b","schema":"olm.package"}
{"name":"b.v1","package":"b","schema":"olm.bundle"}
"#;

/// An earlier rendering.
#[derive(Clone, Default)]
pub(crate) struct Store {
    /// The Shards by the hash of their lines.
    pub(crate) shards: HashMap<Sha256, (ObjectDigest, Vec<u8>)>,
    /// The Snapshot, and `all.json.gz`, which may be damaged.
    pub(crate) published: Option<(Snapshot, Vec<u8>)>,
    /// A Shard, and the work that its reader has stopped when it is read.
    pub(crate) stopping: Option<(ObjectDigest, Budget)>,
    /// Chunks that are not parsed; `None` if they are not hashed.
    pub(crate) known: Option<KnownChunks>,
}

impl Store {
    /// Returns the Shards of a rendering.
    pub(crate) fn of(rendering: &Rendering) -> Self {
        let mut store = Self::default();
        for shard in rendering.shards() {
            let bytes = rendering.compressed(shard).unwrap();
            store
                .shards
                .insert(shard.lines.sha256, (shard.stored, bytes));
        }
        store
    }

    /// Returns all of a rendering that the next one may use.
    pub(crate) fn published(rendering: &Rendering) -> Self {
        let kinds = [Kind::All(Encoding::Zstd), GZIP, Kind::Blob];
        let ([_, gzip, _], facts) = written(rendering, kinds).unwrap();
        let index = ObjectDigest::of(b"index");
        let snapshot = rendering.snapshot(&facts, index, None).unwrap();
        Self {
            published: Some((snapshot, gzip)),
            ..Self::of(rendering)
        }
    }
}

impl StoredShards for Store {
    fn stored(&self, lines: &Sha256) -> Option<ObjectDigest> {
        self.shards.get(lines).map(|(stored, _)| *stored)
    }

    fn load(&self, stored: &ObjectDigest) -> io::Result<Vec<u8>> {
        if let Some((last, budget)) = &self.stopping
            && last == stored
        {
            budget.stop();
        }
        let (_, bytes) = self
            .shards
            .values()
            .find(|(digest, _)| digest == stored)
            .unwrap();
        Ok(bytes.clone())
    }

    fn gzip(&self) -> Option<PublishedGzip> {
        let (snapshot, bytes) = self.published.clone()?;
        PublishedGzip::new(&snapshot, Box::new(io::Cursor::new(bytes)))
    }

    fn known_chunks(&self) -> Option<&KnownChunks> {
        self.known.as_ref()
    }
}

/// Returns the Shards of a rendering as a published state names them, with the positions of their
/// Metas.
pub(crate) fn shard_refs(
    rendering: &Rendering,
) -> impl Iterator<Item = (ShardRef, Vec<IndexedMeta>)> {
    rendering.shards().iter().map(|shard| {
        let shard_ref = ShardRef {
            name: shard.name.clone(),
            stored: shard.stored,
            lines: shard.lines,
            metas: shard.metas.len() as u64,
        };
        (shard_ref, shard.metas.clone())
    })
}

/// Returns a text of two blocks, which does not compress to nothing.
pub(crate) fn noise() -> String {
    let numbers = (0_u32..100_000).map(|at| at.wrapping_mul(2_654_435_761) >> 8);
    numbers.map(|number| format!("{number:06x}")).collect()
}

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    decoder.read_to_end(&mut read).unwrap();
    assert!(decoder.into_inner().is_empty());
    read
}
