//! From files to bytes, through the public API.

use std::io::{self, Read};
use std::sync::Arc;

use model::{Content, Index, Kind, ObjectDigest, Sha256, StoredDocument};
use render::{NoStoredShards, RenderError, RenderSettings, Renderer, Sink, Sinks};

use crate::kit::{
    CATALOG, Files, GZIP, KINDS, LINES, Store, all, gunzip, noise, render, settings, try_render,
    written,
};

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
                assert_eq!(
                    all(&rendering),
                    LINES,
                    "{chunk_bytes} {memory_bytes} {workers}"
                );
            }
        }
    }
}

#[test]
fn shard_is_one_frame_with_its_lines_hash_and_index() {
    let rendering = render(CATALOG);
    let names: Vec<&str> = rendering
        .shards()
        .iter()
        .map(|shard| shard.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["", "a", "b"],
        "the global group and then byte order"
    );
    assert_eq!(rendering.packages().collect::<Vec<_>>(), ["a", "b"]);
    let mut whole = String::new();
    for shard in rendering.shards() {
        let lines = zstd::bulk::decompress(&rendering.compressed(shard).unwrap(), 1 << 20).unwrap();
        assert_eq!(Content::of(&lines), shard.lines);
        for meta in &shard.metas {
            let line = &lines[meta.offset as usize..(meta.offset + meta.length) as usize];
            assert!(line.starts_with(b"{") && line.ends_with(b"}\n"), "{meta:?}");
            let text = String::from_utf8_lossy(line);
            let name = format!("\"name\":\"{}\"", meta.name);
            assert!(meta.name.is_empty() || text.contains(&name), "{text}");
        }
        whole.push_str(std::str::from_utf8(&lines).unwrap());
    }
    assert_eq!(whole, LINES);
    let index = rendering.index().unwrap();
    let read = Index::from_stored(&index).unwrap();
    let lines: Vec<_> = rendering
        .shards()
        .iter()
        .map(|shard| shard.lines.sha256)
        .collect();
    assert_eq!(
        read.shards
            .iter()
            .map(|shard| shard.lines)
            .collect::<Vec<_>>(),
        lines
    );
}

/// Paths in the layer of [`CATALOG`].
const PATHS: &str = "configs/ configs/%/ configs/%/catalog.json configs/a/ configs/a/catalog.json configs/b/ configs/b/catalog.json";

/// Returns two large Packages, each of several blocks: lines that are alike, and digits that hardly
/// compress.
fn large() -> [(&'static str, String); 2] {
    let line = |at: u32| {
        format!(
            "{{\"schema\":\"x\",\"package\":\"l\",\"name\":\"v{}\"}}\n",
            at % 97
        )
    };
    let digits = format!("schema: x\npackage: m\nfield: \"{}\"\n", noise());
    [
        ("l.json", (0..16_000).map(line).collect()),
        ("m.yaml", digits),
    ]
}

/// Returns the paths in a layer, the lines of all its files, and the hash of the tar archive.
fn read_layer(bytes: &[u8]) -> (Vec<String>, Vec<u8>, Sha256) {
    let tar = gunzip(bytes);
    let (mut paths, mut lines) = (Vec::new(), Vec::new());
    for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        paths.push(entry.path().unwrap().display().to_string());
        entry.read_to_end(&mut lines).unwrap();
    }
    (paths, lines, Sha256::of(&tar))
}

#[test]
fn write_all_makes_the_same_lines_of_each_kind_with_any_workers_and_files() {
    let large = large();
    let large: Vec<_> = large
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let paths_of_large =
        "configs/ configs/l/ configs/l/catalog.json configs/m/ configs/m/catalog.json";
    for (files, expected_paths) in [(CATALOG, PATHS), (&large, paths_of_large)] {
        let (made, facts) = written(&render(files), KINDS).unwrap();
        for (kind, bytes) in KINDS.iter().zip(&made) {
            assert_eq!(facts.made[kind], ObjectDigest::of(bytes), "{kind:?}");
        }
        let [zstd, gzip, lines, layer] = &made;
        assert_eq!(facts.content_hash, Sha256::of(lines));
        assert!(model::decode_zstd(zstd, lines.len() as u64).unwrap() == *lines);
        assert!(gunzip(gzip) == *lines);
        let (paths, in_layer, diff_id) = read_layer(layer);
        assert!(in_layer == *lines && facts.diff_id == Some(diff_id));
        assert_eq!(paths.join(" "), expected_paths);
        let one_worker = RenderSettings {
            workers: 1,
            chunk_bytes: 1 << 20,
            memory_bytes: 0,
            ..RenderSettings::default()
        };
        // The same content in one file, as the layer would be read again.
        let one_file = [("all.json", std::str::from_utf8(lines).unwrap())];
        let again = try_render(&one_file, Arc::new(NoStoredShards), one_worker).unwrap();
        assert!(written(&again, KINDS).unwrap().0 == made);
        assert!(
            written(&again, [Kind::Blob]).unwrap().0[0] == *layer,
            "the layer alone"
        );
    }
}

#[test]
fn indexignore_excludes_files_and_their_errors() {
    let files = [
        CATALOG,
        &[("README.md", "# A: b: c\n"), (".indexignore", "*.md\nb/\n")],
    ]
    .concat();
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
    let Err(RenderError::Invalid { problems }) =
        try_render(&files, Arc::new(NoStoredShards), settings())
    else {
        panic!("bad files must be refused");
    };
    let paths: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(paths, ["a/bad.json", "b/bad.json", "b.yaml"]);
    let reason = &problems[0].reason;
    assert!(
        reason.contains("document 1") && reason.contains("name"),
        "{reason}"
    );
}

#[test]
fn link_has_the_lines_of_its_target() {
    let target = ("p/a.yaml", "schema: t\nname: one\npackage: p\n");
    let line = "{\"name\":\"one\",\"package\":\"p\",\"schema\":\"t\"}\n";
    let linked = render(&[target, ("p/b.yaml", "-> p/a.yaml")]);
    assert_eq!(all(&linked), line.repeat(2));
}

#[test]
fn file_repeats_an_interrupted_read_and_returns_other_errors() {
    struct FailingOnce(Option<io::Error>, &'static [u8]);
    impl Read for FailingOnce {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.take().map_or_else(|| self.1.read(buffer), Err)
        }
    }
    let render = |error| {
        let mut renderer = Renderer::start(settings(), Arc::new(NoStoredShards));
        renderer.file("a.yaml", &mut FailingOnce(Some(error), b"schema: x\n"))?;
        Ok(all(&renderer.finish().unwrap()))
    };
    let interrupted: io::Result<_> = render(io::ErrorKind::Interrupted.into());
    assert_eq!(interrupted.unwrap(), "{\"schema\":\"x\"}\n");
    let error = render(io::Error::new(io::ErrorKind::TimedOut, "gone")).unwrap_err();
    let (kind, text) = (error.kind(), error.to_string());
    assert_eq!((kind, &*text), (io::ErrorKind::TimedOut, "gone"));
}

#[test]
fn equals_compares_names_and_lines_of_shards() {
    let rendering = render(CATALOG);
    let index = ObjectDigest::of(b"index");
    let without = rendering.write_all(Sinks::default()).unwrap();
    let made = rendering.snapshot(&without, index, None);
    assert_eq!(made, None, "it names both encodings");
    let (_, facts) = written(&rendering, KINDS).unwrap();
    let snapshot = rendering.snapshot(&facts, index, None).unwrap();
    assert_eq!(snapshot.metas, 6);
    assert_eq!(snapshot.package("a").unwrap().metas, 3);
    assert!(render(CATALOG).equals(&snapshot));
    assert!(!render(&CATALOG[..3]).equals(&snapshot));
}

#[test]
fn write_all_names_the_sink_that_failed() {
    // More than waits for a writer, so that one that has stopped is seen while a Shard is read.
    let text = "x".repeat(1000);
    let line = format!("{{\"schema\":\"x\",\"package\":\"p\",\"text\":\"{text}\"}}\n");
    let files = [("f", line.repeat(10_000))];
    let new = render(&files);
    let stored = try_render(&files, Arc::new(Store::of(&new)), settings()).unwrap();
    assert!(stored.shards()[0].is_stored());
    for rendering in [new, stored] {
        let full = io::Cursor::new(Box::<[u8]>::default());
        let sinks = Sinks::from([(GZIP, Box::new(full) as Sink)]);
        let error = rendering.write_all(sinks).unwrap_err();
        let RenderError::Sink { part, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(part, "all.json.gz");
    }
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
    assert_eq!(
        places,
        [("a.yaml", 1, 1), ("a.yaml", 2, 4), ("b.yaml", 1, 1)]
    );
    assert!(render(files).shards()[0].places.is_empty());
}
