//! From files to bytes, through the public door.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    sync::{Arc, Mutex},
};

use layout::{Sha256, Snapshot, Stored, Whole};
use render::{Nothing, Published, RenderError, Renderer, Rendering, Settings, Sinks};

type Files<'a> = &'a [(&'a str, &'a str)];

fn settings() -> Settings {
    Settings {
        chunk_bytes: 64,
        ..Settings::default()
    }
}

fn try_render(files: Files<'_>, published: Arc<dyn Published>, settings: Settings) -> Result<Rendering, RenderError> {
    let mut renderer = Renderer::start(settings, published);
    for (path, content) in files {
        renderer.file(path, &mut content.as_bytes()).unwrap();
    }
    renderer.finish()
}

fn render(files: Files<'_>) -> Rendering {
    try_render(files, Arc::new(Nothing), settings()).unwrap()
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

fn all(rendering: &Rendering) -> String {
    let buffer = Buffer::default();
    let sinks = Sinks {
        identity: Some(Box::new(buffer.clone())),
        ..Sinks::default()
    };
    let facts = rendering.write_all(sinks).unwrap();
    let bytes = buffer.0.lock().unwrap().clone();
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
fn the_global_group_comes_first_then_packages_in_order() {
    let rendering = render(CATALOG);
    assert_eq!(all(&rendering), LINES);
    let names: Vec<&str> = rendering.shards().iter().map(|shard| shard.name.as_str()).collect();
    assert_eq!(names, ["", "a", "b"]);
    assert_eq!(rendering.packages().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn the_order_in_which_files_come_and_the_size_of_chunks_do_not_matter() {
    let mut backwards: Vec<_> = CATALOG.to_vec();
    backwards.reverse();
    for chunk_bytes in [1, 50, 100_000] {
        for memory_bytes in [0, 1 << 20] {
            for workers in [1, 4] {
                let settings = Settings {
                    chunk_bytes,
                    memory_bytes,
                    workers,
                    ..Settings::default()
                };
                let rendering = try_render(&backwards, Arc::new(Nothing), settings).unwrap();
                assert_eq!(all(&rendering), LINES, "{chunk_bytes} {memory_bytes} {workers}");
            }
        }
    }
}

#[test]
fn every_shard_is_one_frame_named_by_its_lines_and_indexed() {
    let mut rendering = render(CATALOG);
    let mut whole = String::new();
    for shard in rendering.shards() {
        let lines = zstd::bulk::decompress(&rendering.compressed(shard).unwrap(), 1 << 20).unwrap();
        assert_eq!(Sha256::of(&lines), shard.sha256);
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
    assert_eq!(
        Sha256::of(&zstd::stream::decode_all(&index.bytes[..]).unwrap()),
        index.content
    );
}

#[test]
fn the_forms_of_all_hold_the_same_lines_and_are_measured() {
    let rendering = render(CATALOG);
    let (zstd, gzip) = (Buffer::default(), Buffer::default());
    let sinks = Sinks {
        zstd: Some(Box::new(zstd.clone())),
        gzip: Some(Box::new(gzip.clone())),
        ..Sinks::default()
    };
    let facts = rendering.write_all(sinks).unwrap();
    let (zstd, gzip) = (zstd.0.lock().unwrap(), gzip.0.lock().unwrap());
    assert_eq!(
        facts.zstd,
        Some(Stored {
            size: zstd.len() as u64,
            sha256: Sha256::of(&zstd)
        })
    );
    assert_eq!(
        facts.gzip,
        Some(Stored {
            size: gzip.len() as u64,
            sha256: Sha256::of(&gzip)
        })
    );
    assert_eq!(facts.identity, None);
    assert_eq!(zstd::bulk::decompress(&zstd, LINES.len()).unwrap(), LINES.as_bytes());
    let mut read = String::new();
    flate2::read::GzDecoder::new(&gzip[..])
        .read_to_string(&mut read)
        .unwrap();
    assert_eq!(read, LINES);
}

/// The layer alone, or beside all else.
fn layer(files: Files<'_>, settings: Settings, alone: bool) -> (Vec<u8>, render::LayerFacts) {
    let buffer = Buffer::default();
    let sink = || -> Option<Box<dyn Write + Send>> { (!alone).then(|| Box::new(io::sink()) as _) };
    let sinks = Sinks {
        zstd: sink(),
        gzip: sink(),
        identity: sink(),
        layer: Some(Box::new(buffer.clone())),
    };
    let rendering = try_render(files, Arc::new(Nothing), settings).unwrap();
    let facts = rendering.write_all(sinks).unwrap().layer.unwrap();
    let bytes = buffer.0.lock().unwrap().clone();
    (bytes, facts)
}

#[test]
fn the_layer_holds_the_lines_of_each_package_in_a_file_of_its_own() {
    let (bytes, facts) = layer(CATALOG, settings(), true);
    let measured = Stored {
        size: bytes.len() as u64,
        sha256: Sha256::of(&bytes),
    };
    assert_eq!(facts.stored, measured);
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut tar).unwrap();
    assert_eq!(facts.diff_id, Sha256::of(&tar));
    let mut archive = tar::Archive::new(&tar[..]);
    let mut lines = String::new();
    let mut paths = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        paths.push(entry.path().unwrap().display().to_string());
        entry.read_to_string(&mut lines).unwrap();
    }
    assert_eq!(lines, LINES);
    let expected = [
        "configs/",
        "configs/%/",
        "configs/%/catalog.json",
        "configs/a/",
        "configs/a/catalog.json",
        "configs/b/",
        "configs/b/catalog.json",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn the_layer_depends_on_the_content_alone() {
    let (bytes, facts) = layer(CATALOG, settings(), true);
    let one_worker = Settings {
        workers: 1,
        chunk_bytes: 1 << 20,
        memory_bytes: 0,
        ..Settings::default()
    };
    assert_eq!(layer(CATALOG, one_worker, false), (bytes.clone(), facts));
    // The same content in one file, as the layer would be read again.
    let one_file = [("all.json", LINES)];
    assert_eq!(layer(&one_file, settings(), true), (bytes, facts));
}

#[test]
fn ignored_files_do_not_count_not_even_their_errors() {
    let files = [CATALOG, &[("README.md", "# A: b: c\n"), (".indexignore", "*.md\nb/\n")]].concat();
    assert!(!all(&render(&files)).contains("\"b\""));
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_walk() {
    let files = [
        CATALOG,
        &[
            ("b.yaml", "x: [\n"),
            ("a/bad.json", "{\"name\": 5}"),
            ("b/bad.json", "{"),
        ],
    ]
    .concat();
    let Err(RenderError::Invalid { problems }) = try_render(&files, Arc::new(Nothing), settings()) else {
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
fn a_link_has_the_lines_of_its_target() {
    let mut renderer = Renderer::start(settings(), Arc::new(Nothing));
    renderer
        .file("p/a.yaml", &mut "schema: t\nname: one\npackage: p\n".as_bytes())
        .unwrap();
    renderer.link("p/b.yaml", "p/a.yaml");
    let line = "{\"name\":\"one\",\"package\":\"p\",\"schema\":\"t\"}\n";
    assert_eq!(all(&renderer.finish().unwrap()), [line, line].concat());
}

#[test]
fn an_error_of_the_reader_is_the_callers() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::TimedOut, "gone"))
        }
    }
    let mut renderer = Renderer::start(settings(), Arc::new(Nothing));
    let error = renderer.file("a.yaml", &mut Broken).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (io::ErrorKind::TimedOut, "gone")
    );
}

/// What an earlier rendering published.
struct Store(HashMap<Sha256, Vec<u8>>);

impl Store {
    fn of(rendering: &Rendering) -> Self {
        let shards = rendering.shards().iter();
        Self(
            shards
                .map(|shard| (shard.sha256, rendering.compressed(shard).unwrap().into_owned()))
                .collect(),
        )
    }
}

impl Published for Store {
    fn contains(&self, sha256: &Sha256) -> bool {
        self.0.contains_key(sha256)
    }

    fn load(&self, sha256: &Sha256) -> io::Result<Vec<u8>> {
        self.0
            .get(sha256)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[test]
fn what_is_published_is_recognised_and_read_back() {
    let published = Store::of(&render(CATALOG));
    let mut files = CATALOG.to_vec();
    files[0].1 = "schema: olm.package\nname: b\n";
    let rendering = try_render(&files, Arc::new(published), settings()).unwrap();
    let new: Vec<&str> = rendering
        .shards()
        .iter()
        .filter(|shard| !shard.is_published())
        .map(|shard| shard.name.as_str())
        .collect();
    assert_eq!(new, ["b"]);
    assert_eq!(all(&rendering), LINES.rsplit_once("{\"name\":\"b.v1\"").unwrap().0);
}

#[test]
fn a_damaged_published_shard_is_noticed() {
    let mut published = Store::of(&render(CATALOG));
    let other = zstd::bulk::compress(b"other\n", 3).unwrap();
    published.0.values_mut().for_each(|bytes| bytes.clone_from(&other));
    let rendering = try_render(CATALOG, Arc::new(published), Settings::default()).unwrap();
    let error = rendering.write_all(Sinks::default()).unwrap_err();
    assert!(matches!(error, RenderError::Damaged { .. }), "{error}");
    // The compressors are told how much will come, and get less.
    let sink = || -> Option<Box<dyn io::Write + Send>> { Some(Box::new(io::sink())) };
    let sinks = Sinks {
        zstd: sink(),
        gzip: sink(),
        identity: sink(),
        layer: sink(),
    };
    let error = rendering.write_all(sinks).unwrap_err();
    assert!(matches!(error, RenderError::Damaged { .. }), "{error}");
}

#[test]
fn equal_content_is_recognised_by_its_shards() {
    let rendering = render(CATALOG);
    let facts = rendering.write_all(Sinks::default()).unwrap();
    let stored = Stored {
        size: 0,
        sha256: Sha256::of(b""),
    };
    let whole = Whole {
        zstd: stored,
        gzip: stored,
        identity: None,
    };
    let snapshot: Snapshot = rendering.snapshot(&facts, whole, stored, |_| stored);
    assert_eq!(snapshot.metas, 6);
    assert_eq!(snapshot.package("a").unwrap().metas, 3);
    assert!(render(CATALOG).equals(&snapshot));
    assert!(!render(&CATALOG[..3]).equals(&snapshot));
}

#[test]
fn a_writer_that_fails_is_named() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sinks = Sinks {
        gzip: Some(Box::new(Full)),
        ..Sinks::default()
    };
    let error = render(CATALOG).write_all(sinks).unwrap_err();
    assert!(
        matches!(
            error,
            RenderError::Sink {
                form: "all.json.gz",
                ..
            }
        ),
        "{error}"
    );
}
