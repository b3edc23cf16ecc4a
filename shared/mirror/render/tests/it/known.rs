//! Chunks that were rendered before.

use std::sync::Arc;

use model::Hasher;
use render::{KnownChunks, RenderSettings, Rendering, ShardPart, known_chunks};
use work::Budget;

use crate::kit::{CATALOG, Store, all, render, settings, shard_refs, try_render};

/// Returns the chunks of a rendering, all of whose Shards are published.
fn known(rendering: &Rendering) -> KnownChunks {
    known_chunks(rendering.chunks(), shard_refs(rendering))
}

/// Returns an empty store for which chunks are hashed.
fn hashing() -> Arc<Store> {
    Arc::new(Store {
        known: Some(KnownChunks::new()),
        ..Store::default()
    })
}

/// Renders files whose chunks are hashed.
fn render_hashed<T: AsRef<str>>(files: &[(&str, T)]) -> Rendering {
    try_render(files, hashing(), settings()).unwrap()
}

/// Returns the published state of some files, with their chunks.
fn published<T: AsRef<str>>(files: &[(&str, T)]) -> Store {
    let rendering = render_hashed(files);
    Store {
        known: Some(known(&rendering)),
        ..Store::of(&rendering)
    }
}

/// Returns documents that are a chunk each, because they are longer than the start of a file that
/// decides on its format.
fn documents(package: &str, numbers: impl IntoIterator<Item = u32>) -> String {
    let text = "x".repeat(4096);
    let line = |number| {
        format!(r#"{{"name":"{number}","package":"{package}","schema":"example","text":"{text}"}}"#)
            + "\n"
    };
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
        let store = Arc::new(published(before));
        for (to, after) in states.iter().enumerate() {
            let again = try_render(after, store.clone(), settings()).unwrap();
            let parsed = render_hashed(after);
            assert_eq!(all(&again), all(&parsed), "{from} {to}");
            assert_eq!(again.chunks(), parsed.chunks(), "{from} {to}");
            let stored = |rendering: &Rendering| -> Vec<_> {
                rendering
                    .shards()
                    .iter()
                    .map(|shard| shard.stored)
                    .collect()
            };
            assert_eq!(stored(&again), stored(&parsed), "{from} {to}");
            assert_eq!(
                again.index().unwrap(),
                parsed.index().unwrap(),
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
    chunk
        .unwrap()
        .unwrap()
        .hash_with(|bytes| hasher.update(bytes));
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
        let file = |at: usize| (at.to_string(), text.clone() + &" ".repeat(at));
        let files: Vec<_> = (0..files).map(file).collect();
        let rendering = try_render(&files, hashing(), RenderSettings::default()).unwrap();
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
        let rendering = try_render(
            &[("f", &reversed)],
            Arc::new(published(&[("f", &whole)])),
            settings,
        );
        assert_eq!(rendering.is_ok(), is_enough);
    }
}
