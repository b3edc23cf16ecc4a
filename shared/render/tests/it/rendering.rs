//! From files to bytes, through the public API.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    sync::{Arc, Mutex},
};

use catalog_mirror_render::{
    AllFacts, KnownChunks, NoStoredShards, PublishedGzip, RenderError, RenderSettings, Renderer, Rendering, ShardPart,
    Sink, Sinks, StoredShards,
};
use model::{Content, Encoding, Hasher, Index, Kind, ObjectDigest, Sha256, ShardRef, StoredDocument};
use work::Budget;

type Files<'a> = &'a [(&'a str, &'a str)];

fn settings() -> RenderSettings {
    RenderSettings {
        chunk_bytes: 64,
        ..RenderSettings::default()
    }
}

fn try_render(
    files: Files<'_>,
    stored: Arc<dyn StoredShards>,
    settings: RenderSettings,
) -> Result<Rendering, RenderError> {
    let mut renderer = Renderer::start(settings, stored);
    for (path, content) in files {
        renderer.file(path, &mut content.as_bytes()).unwrap();
    }
    renderer.finish()
}

fn render(files: Files<'_>) -> Rendering {
    try_render(files, Arc::new(NoStoredShards), settings()).unwrap()
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const ZSTD: Kind = Kind::All(Encoding::Zstd);
const GZIP: Kind = Kind::All(Encoding::Gzip);
const IDENTITY: Kind = Kind::All(Encoding::Identity);

/// Everything that can be made.
const KINDS: [Kind; 4] = [ZSTD, GZIP, IDENTITY, Kind::Blob];

/// Makes some kinds; returns what was written to each, and the facts.
fn written<const N: usize>(rendering: &Rendering, kinds: [Kind; N]) -> Result<([Vec<u8>; N], AllFacts), RenderError> {
    let buffers = kinds.map(|kind| (kind, Buffer::default()));
    let sinks = buffers.clone().map(|(kind, buffer)| (kind, Box::new(buffer) as Sink));
    let facts = rendering.write_all(sinks.into())?;
    Ok((buffers.map(|(_, buffer)| buffer.0.lock().unwrap().clone()), facts))
}

fn all(rendering: &Rendering) -> String {
    let ([bytes], facts) = written(rendering, [IDENTITY]).unwrap();
    assert_eq!(facts.content_hash, Sha256::of(&bytes));
    assert_eq!(facts.size, bytes.len() as u64);
    String::from_utf8(bytes).unwrap()
}

const CATALOG: Files<'_> = &[
    (
        "b/catalog.yaml",
        "schema: olm.package\nname: b\n---\nschema: olm.bundle\npackage: b\nname: b.v1\n",
    ),
    (
        "a/catalog.json",
        r#"{"schema":"olm.package","name":"a"} {"schema":"olm.channel","name":"s","package":"a"}"#,
    ),
    ("a/more.json", r#"{"schema":"olm.bundle","package":"a","name":"a.v1"}"#),
    ("global.yaml", "schema: custom\nvalue: 1\n"),
];

const LINES: &str = r#"{"schema":"custom","value":1}
{"name":"a","schema":"olm.package"}
{"name":"s","package":"a","schema":"olm.channel"}
{"name":"a.v1","package":"a","schema":"olm.bundle"}
{"name":"b","schema":"olm.package"}
{"name":"b.v1","package":"b","schema":"olm.bundle"}
"#;

#[test]
fn shards_start_with_the_global_group_then_follow_byte_order() {
    let rendering = render(CATALOG);
    assert_eq!(all(&rendering), LINES);
    let names: Vec<&str> = rendering.shards().iter().map(|shard| shard.name.as_str()).collect();
    assert_eq!(names, ["", "a", "b"]);
    assert_eq!(rendering.packages().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn file_order_chunk_size_and_workers_do_not_change_the_lines() {
    let mut backwards: Vec<_> = CATALOG.to_vec();
    backwards.reverse();
    for chunk_bytes in [1, 50, 100_000] {
        for memory_bytes in [0, 1 << 20] {
            for workers in [1, 4] {
                let settings = RenderSettings {
                    chunk_bytes,
                    memory_bytes,
                    workers,
                    ..RenderSettings::default()
                };
                let rendering = try_render(&backwards, Arc::new(NoStoredShards), settings).unwrap();
                assert_eq!(all(&rendering), LINES, "{chunk_bytes} {memory_bytes} {workers}");
            }
        }
    }
}

#[test]
fn shard_is_one_frame_with_its_lines_hash_and_index() {
    let mut rendering = render(CATALOG);
    let mut whole = String::new();
    for shard in rendering.shards() {
        let lines = zstd::bulk::decompress(&rendering.compressed(shard).unwrap(), 1 << 20).unwrap();
        assert_eq!(Content::of(&lines), shard.lines);
        for meta in &shard.metas {
            let line = &lines[meta.offset as usize..(meta.offset + meta.length) as usize];
            assert!(line.starts_with(b"{") && line.ends_with(b"}\n"), "{meta:?}");
            let text = String::from_utf8_lossy(line);
            assert!(
                meta.name.is_empty() || text.contains(&format!("\"name\":\"{}\"", meta.name)),
                "{text}"
            );
        }
        whole.push_str(std::str::from_utf8(&lines).unwrap());
    }
    assert_eq!(whole, LINES);
    let index = rendering.take_index().unwrap();
    assert_eq!(index.stored, ObjectDigest::of(&index.bytes));
    let read = Index::from_stored(&index.bytes).unwrap();
    let lines: Vec<_> = rendering.shards().iter().map(|shard| shard.lines.sha256).collect();
    assert_eq!(read.shards.iter().map(|shard| shard.lines).collect::<Vec<_>>(), lines);
}

#[test]
fn write_all_encodings_hold_the_same_lines_and_report_their_digests() {
    let ([zstd, gzip], facts) = written(&render(CATALOG), [ZSTD, GZIP]).unwrap();
    let made = [(ZSTD, ObjectDigest::of(&zstd)), (GZIP, ObjectDigest::of(&gzip))];
    assert_eq!(facts.made, made.into());
    assert_eq!(zstd::bulk::decompress(&zstd, LINES.len()).unwrap(), LINES.as_bytes());
    assert_eq!(gunzip(&gzip), LINES.as_bytes());
}

/// Writes the layer, alone or with all other encodings.
fn layer(files: Files<'_>, settings: RenderSettings, alone: bool) -> (Vec<u8>, ObjectDigest, Sha256) {
    let rendering = try_render(files, Arc::new(NoStoredShards), settings).unwrap();
    let (bytes, facts) = if alone {
        let ([bytes], facts) = written(&rendering, [Kind::Blob]).unwrap();
        (bytes, facts)
    } else {
        let ([.., bytes], facts) = written(&rendering, KINDS).unwrap();
        (bytes, facts)
    };
    (bytes, facts.made[&Kind::Blob], facts.diff_id.unwrap())
}

#[test]
fn layer_holds_one_file_per_package() {
    let (bytes, stored, diff_id) = layer(CATALOG, settings(), true);
    assert_eq!(stored, ObjectDigest::of(&bytes));
    let tar = gunzip(&bytes);
    assert_eq!(diff_id, Sha256::of(&tar));
    let mut archive = tar::Archive::new(&tar[..]);
    let mut lines = String::new();
    let mut paths = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        paths.push(entry.path().unwrap().display().to_string());
        entry.read_to_string(&mut lines).unwrap();
    }
    assert_eq!(lines, LINES);
    let folders = ["%", "a", "b"].map(|name| [format!("configs/{name}/"), format!("configs/{name}/catalog.json")]);
    assert_eq!(paths, [&["configs/".to_owned()], folders.as_flattened()].concat());
}

#[test]
fn layer_bytes_depend_on_the_content_alone() {
    let made = layer(CATALOG, settings(), true);
    let one_worker = RenderSettings {
        workers: 1,
        chunk_bytes: 1 << 20,
        memory_bytes: 0,
        ..RenderSettings::default()
    };
    assert_eq!(layer(CATALOG, one_worker, false), made);
    // The same content in one file, as the layer would be read again.
    let one_file = [("all.json", LINES)];
    assert_eq!(layer(&one_file, settings(), true), made);
}

#[test]
fn indexignore_excludes_files_and_their_errors() {
    let files = [CATALOG, &[("README.md", "# A: b: c\n"), (".indexignore", "*.md\nb/\n")]].concat();
    assert!(!all(&render(&files)).contains("\"b\""));
}

#[test]
fn finish_reports_all_problems_in_walk_order() {
    let bad = [
        ("b.yaml", "x: [\n"),
        ("a/bad.json", "{\"name\": 5}"),
        ("b/bad.json", "{"),
    ];
    let files = [CATALOG, &bad].concat();
    let Err(RenderError::Invalid { problems }) = try_render(&files, Arc::new(NoStoredShards), settings()) else {
        panic!("bad files must be refused");
    };
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["a/bad.json", "b/bad.json", "b.yaml"]);
    assert!(
        problems[0].reason.contains("document 1") && problems[0].reason.contains("name"),
        "{:?}",
        problems[0]
    );
}

#[test]
fn link_has_the_lines_of_its_target() {
    let mut renderer = Renderer::start(settings(), Arc::new(NoStoredShards));
    renderer
        .file("p/a.yaml", &mut "schema: t\nname: one\npackage: p\n".as_bytes())
        .unwrap();
    renderer.link("p/b.yaml", "p/a.yaml");
    let line = "{\"name\":\"one\",\"package\":\"p\",\"schema\":\"t\"}\n";
    assert_eq!(all(&renderer.finish().unwrap()), [line, line].concat());
}

#[test]
fn file_returns_the_error_of_its_reader() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::TimedOut, "gone"))
        }
    }
    let mut renderer = Renderer::start(settings(), Arc::new(NoStoredShards));
    let error = renderer.file("a.yaml", &mut Broken).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (io::ErrorKind::TimedOut, "gone")
    );
}

/// An earlier rendering.
#[derive(Clone, Default)]
struct Store {
    /// The Shards by the hash of their lines.
    shards: HashMap<Sha256, (ObjectDigest, Vec<u8>)>,
    /// Names and lines of all Shards.
    contents: Vec<(String, Content)>,
    /// `all.json.gz`, which may be damaged.
    gzip: Option<Vec<u8>>,
    /// A Shard, and the work that its reader has stopped when it is read.
    stopping: Option<(ObjectDigest, Budget)>,
    /// Chunks that are not parsed; `None` if they are not hashed.
    known: Option<KnownChunks>,
}

impl Store {
    fn of(rendering: &Rendering) -> Self {
        let shards = rendering.shards().iter().map(|shard| {
            let bytes = rendering.compressed(shard).unwrap().into_owned();
            (shard.lines.sha256, (shard.stored, bytes))
        });
        let contents = rendering.shards().iter();
        Self {
            shards: shards.collect(),
            contents: contents.map(|shard| (shard.name.clone(), shard.lines)).collect(),
            ..Self::default()
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
        let found = self.shards.values().find(|(digest, _)| digest == stored);
        found
            .map(|(_, bytes)| bytes.clone())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn gzip(&self) -> Option<PublishedGzip> {
        let bytes = self.gzip.clone()?;
        Some(PublishedGzip {
            sha256: Sha256::of(&bytes),
            shards: self.contents.clone(),
            bytes: Box::new(io::Cursor::new(bytes)),
        })
    }

    fn known_chunks(&self) -> Option<&KnownChunks> {
        self.known.as_ref()
    }
}

#[test]
fn stored_shards_are_recognised_and_read_back() {
    let published = Store::of(&render(CATALOG));
    let mut files = CATALOG.to_vec();
    files[0].1 = "schema: olm.package\nname: b\n";
    let rendering = try_render(&files, Arc::new(published), settings()).unwrap();
    let new: Vec<&str> = rendering
        .shards()
        .iter()
        .filter(|shard| !shard.is_stored())
        .map(|shard| shard.name.as_str())
        .collect();
    assert_eq!(new, ["b"]);
    assert_eq!(all(&rendering), LINES.rsplit_once("{\"name\":\"b.v1\"").unwrap().0);
}

/// Returns the chunks of a rendering, all of whose Shards are published.
fn known(rendering: &Rendering) -> KnownChunks {
    let shards = rendering.shards().iter().map(|shard| {
        let shard_ref = ShardRef {
            name: shard.name.clone(),
            stored: shard.stored,
            lines: shard.lines,
            metas: shard.metas.len() as u64,
        };
        (shard.lines.sha256, Arc::new((shard_ref, shard.metas.clone())))
    });
    let shards: HashMap<_, _> = shards.collect();
    let chunks = rendering.chunks().iter().map(|(chunk, lines)| {
        let parts = lines.iter().map(|(lines, range)| ShardPart {
            shard: shards[lines].clone(),
            range: range.clone(),
        });
        (*chunk, parts.collect())
    });
    chunks.collect()
}

/// Renders files whose chunks are hashed.
fn render_hashed(files: Files<'_>) -> Rendering {
    let store = Store {
        known: Some(KnownChunks::new()),
        ..Store::default()
    };
    try_render(files, Arc::new(store), settings()).unwrap()
}

/// Returns the published state of some files, with their chunks.
fn published(files: Files<'_>) -> Store {
    let rendering = render_hashed(files);
    Store {
        known: Some(known(&rendering)),
        ..Store::of(&rendering)
    }
}

/// Returns documents that are a chunk each, because they are longer than the start of a file that decides on its format.
fn documents(package: &str, numbers: impl IntoIterator<Item = u32>) -> String {
    let text = "x".repeat(4096);
    let line =
        |number| format!(r#"{{"name":"{number}","package":"{package}","schema":"example","text":"{text}"}}"#) + "\n";
    numbers.into_iter().map(line).collect()
}

#[test]
fn known_chunks_make_the_same_catalog_as_parsed_ones() {
    let p = |numbers: &[u32]| documents("p", numbers.iter().copied());
    let whole = documents("p", 1..9);
    let q = documents("q", 1..4);
    let states = [
        vec![("f", whole.clone()), ("q", q.clone())],
        vec![("f", p(&[1, 2, 3, 5, 6, 7, 8])), ("q", q.clone())],
        vec![("f", p(&[1, 2, 3, 44, 5, 6, 7, 8]))],
        vec![("f", documents("p", (1..9).rev())), ("q", q.clone())],
        vec![("f", p(&[1, 2, 3])), ("g", p(&[4, 5, 6, 7, 8]))],
        vec![("g", p(&[1, 2, 3])), ("f", p(&[4, 5, 6, 7, 8]))],
        vec![("f", p(&[1]) + &q + &p(&[2, 3]) + "{\"schema\":\"other\"}")],
        vec![("f", p(&[1]) + "---\nschema: other\n")],
        vec![("f", whole.clone()), ("g", whole.clone())],
        vec![("f", format!("---\n{}", whole.replace('\n', "\n---\n")))],
        vec![("f", p(&[1, 2, 3]))],
        vec![("f", p(&[3, 3, 1])), ("q", q.replace(':', ": "))],
    ];
    for (from, before) in states.iter().enumerate() {
        let before: Vec<_> = before.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let store = Arc::new(published(&before));
        for (to, after) in states.iter().enumerate() {
            let after: Vec<_> = after.iter().map(|(path, text)| (*path, text.as_str())).collect();
            let mut again = try_render(&after, store.clone(), settings()).unwrap();
            let mut parsed = render_hashed(&after);
            assert_eq!(all(&again), all(&parsed), "{from} {to}");
            assert_eq!(again.chunks(), parsed.chunks(), "{from} {to}");
            let stored =
                |rendering: &Rendering| -> Vec<_> { rendering.shards().iter().map(|shard| shard.stored).collect() };
            assert_eq!(stored(&again), stored(&parsed), "{from} {to}");
            assert_eq!(
                again.take_index().unwrap().stored,
                parsed.take_index().unwrap().stored,
                "{from} {to}"
            );
        }
    }
    assert!(render(CATALOG).chunks().is_empty());
    // The same bytes are YAML after one JSON value, and malformed after two.
    let yaml = &format!("---\nschema: other\n# {}\n", "x".repeat(3000));
    let store = published(&[("f", &(p(&[1]) + yaml))]);
    assert!(try_render(&[("f", &(p(&[1, 2]) + yaml))], Arc::new(store), settings()).is_err());
}

#[test]
fn known_chunk_is_not_parsed_and_counts_for_the_limits() {
    let files = [("f", "no FBC: ["), ("g", "schema: olm.package\nname: z\n")];
    let first = render(CATALOG);
    let b = &first.shards()[2];
    let parts = known(&render_hashed(CATALOG));
    let part = parts
        .values()
        .flatten()
        .find(|part| part.shard.0.name == "b")
        .unwrap()
        .clone();
    let whole = ShardPart {
        range: 0..b.lines.size,
        ..part
    };
    let mut hasher = Hasher::new();
    let chunk = fbc::Chunks::new(files[0].1.as_bytes(), fbc::FbcLimits::default(), 64).next();
    chunk.unwrap().unwrap().hash_with(|bytes| hasher.update(bytes));
    let store = Arc::new(Store {
        known: Some([(hasher.finish(), vec![whole])].into()),
        ..Store::of(&first)
    });
    for documents in [2, 3] {
        let mut settings = settings();
        settings.limits.documents = documents;
        let rendering = try_render(&files, store.clone(), settings);
        assert_eq!(rendering.is_ok(), documents == 3);
        if let Ok(rendering) = rendering {
            assert_eq!(rendering.packages().collect::<Vec<_>>(), ["b", "z"]);
            assert!(rendering.shards()[0].is_stored() && rendering.shards()[0].lines == b.lines);
        }
    }
}

#[test]
fn chunks_beyond_a_number_are_not_recorded() {
    const RECORDED_PARTS: usize = 20_000;
    let package = |name: usize| format!("{{\"schema\":\"example\",\"package\":\"{name}\"}}\n");
    for (packages, files, recorded) in [(RECORDED_PARTS, 1, 1), (RECORDED_PARTS, 2, 1), (1, 3, 3)] {
        let text: String = (0..packages).map(package).collect();
        let texts: Vec<String> = (0..files).map(|file| text.clone() + &" ".repeat(file)).collect();
        let files: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .zip(texts.iter().map(String::as_str))
            .collect();
        let store = Store {
            known: Some(KnownChunks::new()),
            ..Store::default()
        };
        let rendering = try_render(&files, Arc::new(store), RenderSettings::default()).unwrap();
        assert_eq!(rendering.chunks().len(), recorded, "{packages}");
    }
}

#[test]
fn parts_of_damaged_shards_and_too_much_skipping_are_errors() {
    let whole = documents("p", 1..9);
    let reversed = documents("p", (1..9).rev());
    let mut damaged = published(&[("f", &whole)]);
    for (_, bytes) in damaged.shards.values_mut() {
        bytes.truncate(bytes.len() / 2);
    }
    let error = try_render(&[("f", &reversed)], Arc::new(damaged), settings())
        .err()
        .unwrap();
    assert!(error.is_damage(), "{error:?}");
    for (steps, is_enough) in [(1 << 20, true), (5, false)] {
        let settings = RenderSettings {
            budget: Budget::new(steps, work::MemoryPool::default()),
            ..settings()
        };
        let rendering = try_render(&[("f", &reversed)], Arc::new(published(&[("f", &whole)])), settings);
        assert_eq!(rendering.is_ok(), is_enough);
    }
}

#[test]
fn whole_stored_shards_and_files_make_the_same_catalog_as_files_alone() {
    let whole = render(CATALOG);
    let store = Arc::new(Store::of(&whole));
    let ([_], facts) = written(&whole, [IDENTITY]).unwrap();
    for taken in 0..whole.shards().len() {
        let mut renderer = Renderer::start(settings(), store.clone());
        for (at, (shard, metas)) in whole.shards().iter().zip(&facts.metas).enumerate() {
            if at == taken {
                let shard_ref = ShardRef {
                    name: shard.name.clone(),
                    stored: shard.stored,
                    lines: shard.lines,
                    metas: *metas,
                };
                renderer.stored_shard(&shard_ref, shard.metas.clone());
                continue;
            }
            let lines = zstd::decode_all(&whole.compressed(shard).unwrap()[..]).unwrap();
            renderer.file(&format!("{}.json", shard.name), &mut &lines[..]).unwrap();
        }
        let mut again = renderer.finish().unwrap();
        assert_eq!(all(&again), LINES, "{taken}");
        let mut first = render(CATALOG);
        assert_eq!(
            again.take_index().unwrap().stored,
            first.take_index().unwrap().stored,
            "{taken}"
        );
    }
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    decoder.read_to_end(&mut read).unwrap();
    assert!(decoder.into_inner().is_empty());
    read
}

/// Renders packages, given by name and text.
fn packages(packages: &[(&str, &str)], stored: Arc<dyn StoredShards>) -> Rendering {
    let files = packages.iter().map(|(name, text)| {
        let text = format!("schema: olm.package\nname: {name}\nfield: \"{text}\"\n");
        (format!("{name}.yaml"), text)
    });
    let files: Vec<_> = files.collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    try_render(&files, stored, RenderSettings::default()).unwrap()
}

/// Returns the `all.json.gz` of packages, with a published one, and their layer.
fn gzip_and_layer(of: &[(&str, &str)], stored: Arc<dyn StoredShards>) -> Result<[Vec<u8>; 2], RenderError> {
    let rendering = packages(of, stored);
    let (made, facts) = written(&rendering, [GZIP, Kind::Blob])?;
    let lines = rendering.shards().iter().map(|shard| shard.lines.size).sum::<u64>();
    assert_eq!(facts.size, lines);
    Ok(made)
}

#[test]
fn segments_of_a_published_catalog_make_the_same_bytes_and_damage_is_found() {
    // Two blocks, which do not compress to nothing.
    let large: String = (0_u32..100_000)
        .map(|at| format!("{:06x}", at.wrapping_mul(2_654_435_761) >> 8))
        .collect();
    let before = [("a", "1"), ("b", &*large), ("c", "3"), ("d", "4"), ("f", "6")];
    let [bytes, _] = gzip_and_layer(&before, Arc::new(NoStoredShards)).unwrap();
    let rendering = packages(&before, Arc::new(NoStoredShards));
    let store = Store::of(&rendering);
    let published = |bytes: Vec<u8>| {
        Arc::new(Store {
            gzip: Some(bytes),
            ..store.clone()
        })
    };
    let updates: [&[(&str, &str)]; 5] = [
        &before,
        &[("a", "1"), ("b", &large), ("c", "other"), ("d", "4"), ("f", "6")],
        &[
            ("A", "0"),
            ("a", "other"),
            ("b", &large),
            ("e", "5"),
            ("f", "6"),
            ("g", "7"),
        ],
        &[("c", "3"), ("d", &large)],
        &[("f", "6")],
    ];
    for update in updates {
        let anew = gzip_and_layer(update, Arc::new(NoStoredShards)).unwrap();
        assert!(
            gzip_and_layer(update, published(bytes.clone())).unwrap() == anew,
            "{}",
            update.len()
        );
        let mut damaged = 0;
        for at in (0..bytes.len())
            .step_by(bytes.len() / 5)
            .chain(bytes.len() - 24..bytes.len())
        {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            for bytes in [flipped, bytes[..at].to_vec(), [&bytes[..at], &bytes[at + 1..]].concat()] {
                match gzip_and_layer(update, published(bytes)) {
                    // A bit that no content depends on.
                    Ok(made) => assert!(
                        made.map(|made| gunzip(&made)) == [0, 1].map(|of| gunzip(&anew[of])),
                        "{} at {at}",
                        update.len()
                    ),
                    Err(RenderError::Damaged { .. }) => damaged += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert!(damaged > 40, "{damaged}");
    }
}

#[test]
fn write_all_detects_a_damaged_stored_shard() {
    let mut published = Store::of(&render(CATALOG));
    let other = zstd::bulk::compress(b"other\n", 3).unwrap();
    published
        .shards
        .values_mut()
        .for_each(|(_, bytes)| bytes.clone_from(&other));
    let rendering = try_render(CATALOG, Arc::new(published), RenderSettings::default()).unwrap();
    let error = rendering.write_all(Sinks::default()).unwrap_err();
    assert!(matches!(error, RenderError::Damaged { .. }), "{error}");
    // The compressors are told how much will come, and get less.
    let error = written(&rendering, KINDS).unwrap_err();
    assert!(matches!(error, RenderError::Damaged { .. }), "{error}");
}

#[test]
fn write_all_that_is_stopped_says_so() {
    let published = render(CATALOG);
    let (settings, last) = (settings(), published.shards().last().unwrap().stored);
    let stopping = Store {
        stopping: Some((last, settings.budget.clone())),
        ..Store::of(&published)
    };
    let rendering = try_render(CATALOG, Arc::new(stopping), settings).unwrap();
    // The compressors are told how much will come, and get less.
    let error = written(&rendering, KINDS).unwrap_err();
    assert!(matches!(error, RenderError::Stopped), "{error}");
}

#[test]
fn equals_compares_names_and_lines_of_shards() {
    let rendering = render(CATALOG);
    let index = ObjectDigest::of(b"index");
    let without = rendering.write_all(Sinks::default()).unwrap();
    assert_eq!(
        rendering.snapshot(&without, index, None),
        None,
        "it names both encodings"
    );
    let (_, facts) = written(&rendering, KINDS).unwrap();
    let snapshot = rendering.snapshot(&facts, index, None).unwrap();
    assert_eq!(snapshot.metas, 6);
    assert_eq!(snapshot.package("a").unwrap().metas, 3);
    assert!(render(CATALOG).equals(&snapshot));
    assert!(!render(&CATALOG[..3]).equals(&snapshot));
}

#[test]
fn write_all_names_the_sink_that_failed() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sinks = Sinks::from([(GZIP, Box::new(Full) as Sink)]);
    let error = render(CATALOG).write_all(sinks).unwrap_err();
    let RenderError::Sink { part, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(part, "all.json.gz");
}

#[test]
fn places_name_file_and_document_only_if_asked() {
    let files: Files<'_> = &[
        (
            "b.yaml",
            "schema: x\npackage: p\nname: third\n---\nschema: x\npackage: q\n",
        ),
        (
            "a.yaml",
            "schema: x\npackage: p\n---\nschema: x\npackage: p\nname: second, and longer than one chunk of bytes\n",
        ),
    ];
    let asked = RenderSettings {
        positions: true,
        ..settings()
    };
    let rendering = try_render(files, Arc::new(NoStoredShards), asked).unwrap();
    let places = rendering.shards()[0].places.iter();
    let places: Vec<_> = places
        .map(|place| (&*place.path, place.position.document, place.position.line))
        .collect();
    assert_eq!(places, [("a.yaml", 1, 1), ("a.yaml", 2, 4), ("b.yaml", 1, 1)]);
    assert!(render(files).shards()[0].places.is_empty());
}
