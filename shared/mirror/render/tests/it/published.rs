//! Shards and segments that the store has.

use std::{sync::Arc, thread};

use model::Kind;
use render::{
    NoStoredShards, RenderError, RenderSettings, Renderer, Rendering, Sinks, StoredShards,
};

use crate::kit::{
    CATALOG, GZIP, KINDS, LINES, Store, all, gunzip, noise, render, settings, shard_refs,
    try_render, written,
};

#[test]
fn stored_shards_are_recognised_and_read_back() {
    let published = Store::of(&render(CATALOG));
    let mut files = CATALOG.to_vec();
    files[0].1 = "schema: olm.package\nname: b\n";
    let rendering = try_render(&files, Arc::new(published), settings()).unwrap();
    let new = rendering.shards().iter().filter(|shard| !shard.is_stored());
    assert_eq!(new.map(|shard| &*shard.name).collect::<Vec<_>>(), ["b"]);
    assert_eq!(
        all(&rendering),
        LINES.rsplit_once("{\"name\":\"b.v1\"").unwrap().0
    );
}

#[test]
fn whole_stored_shards_and_files_make_the_same_catalog_as_files_alone() {
    let whole = render(CATALOG);
    let store = Arc::new(Store::of(&whole));
    for taken in 0..whole.shards().len() {
        let mut renderer = Renderer::start(settings(), store.clone());
        for (at, (shard, (shard_ref, metas))) in
            whole.shards().iter().zip(shard_refs(&whole)).enumerate()
        {
            if at == taken {
                renderer.stored_shard(&shard_ref, metas);
                continue;
            }
            let lines = zstd::decode_all(&whole.compressed(shard).unwrap()[..]).unwrap();
            renderer
                .file(&format!("{}.json", shard.name), &mut &lines[..])
                .unwrap();
        }
        let again = renderer.finish().unwrap();
        assert_eq!(all(&again), LINES, "{taken}");
        let first = render(CATALOG);
        assert_eq!(again.index().unwrap(), first.index().unwrap(), "{taken}");
    }
}

/// Renders packages, given by name and text.
fn packages(packages: &[(&str, &str)], stored: Arc<dyn StoredShards>) -> Rendering {
    let file = |(name, text): &(&str, &str)| {
        let text = format!("schema: olm.package\nname: {name}\nfield: \"{text}\"\n");
        (format!("{name}.yaml"), text)
    };
    let files: Vec<_> = packages.iter().map(file).collect();
    try_render(&files, stored, RenderSettings::default()).unwrap()
}

/// Returns the `all.json.gz` of packages, with a published one, and their layer.
fn gzip_and_layer(
    of: &[(&str, &str)],
    stored: Arc<dyn StoredShards>,
) -> Result<[Vec<u8>; 2], RenderError> {
    let rendering = packages(of, stored);
    let (made, facts) = written(&rendering, [GZIP, Kind::Blob])?;
    let lines = rendering
        .shards()
        .iter()
        .map(|shard| shard.lines.size)
        .sum::<u64>();
    assert_eq!(facts.size, lines);
    Ok(made)
}

#[test]
fn segments_of_a_published_catalog_make_the_same_bytes_and_damage_is_found() {
    let large = noise();
    let before = [
        ("a", "1"),
        ("b", &*large),
        ("c", "3"),
        ("d", "4"),
        ("f", "6"),
    ];
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
        &[
            ("a", "1"),
            ("b", &large),
            ("c", "other"),
            ("d", "4"),
            ("f", "6"),
        ],
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
    let check = |update: &[(&str, &str)]| {
        let anew = gzip_and_layer(update, Arc::new(NoStoredShards)).unwrap();
        assert!(
            gzip_and_layer(update, published(bytes.clone())).unwrap() == anew,
            "{}",
            update.len()
        );
        let mut damaged = 0;
        for at in (0..bytes.len())
            .step_by(bytes.len() / 5)
            .chain((bytes.len() - 24..bytes.len()).step_by(2))
        {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            for bytes in [
                flipped,
                bytes[..at].to_vec(),
                [&bytes[..at], &bytes[at + 1..]].concat(),
            ] {
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
    };
    thread::scope(|scope| {
        for update in updates {
            scope.spawn(|| check(update));
        }
    });
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
