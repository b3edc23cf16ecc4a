//! Shards and segments that the store has.

use std::{sync::Arc, thread};

use model::Kind;
use render::{
    NoStoredShards, RenderError, RenderSettings, Renderer, Rendering, Sinks, StoredShards,
};

use crate::kit::{
    CATALOG, GZIP, IDENTITY, KINDS, LINES, Store, all, gunzip, noise, render, settings, shard_refs,
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

/// Packages of the published catalog, one of them of several segments.
fn before(large: &str) -> [(&str, &str); 5] {
    [("a", "1"), ("b", large), ("c", "3"), ("d", "4"), ("f", "6")]
}

#[test]
fn segments_of_a_published_catalog_make_the_same_bytes_and_damage_is_found() {
    let large = noise();
    let before = before(&large);
    let store = Store::published(&packages(&before, Arc::new(NoStoredShards)));
    let (snapshot, bytes) = store.published.clone().unwrap();
    let published = |bytes: Vec<u8>| {
        Arc::new(Store {
            published: Some((snapshot.clone(), bytes)),
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
        for at in (0..bytes.len())
            .step_by(bytes.len() / 5)
            .chain((bytes.len() - 24..bytes.len()).step_by(2))
        {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            let longer = [&bytes[..at], &[0], &bytes[at..]].concat();
            let shorter = [&bytes[..at], &bytes[at + 1..]].concat();
            for bytes in [flipped, longer, shorter, bytes[..at].to_vec()] {
                let made = gzip_and_layer(update, published(bytes)).map(drop);
                let error = made.unwrap_err();
                assert!(
                    matches!(error, RenderError::Damaged(sha256) if sha256 == snapshot.all.gzip.sha256),
                    "{} at {at}: {error}",
                    update.len()
                );
            }
        }
    };
    thread::scope(|scope| {
        for update in updates {
            scope.spawn(|| check(update));
        }
    });
}

#[test]
fn record_of_segments_that_is_wrong_is_found_or_not_used() {
    let large = noise();
    let before = before(&large);
    let store = Store::published(&packages(&before, Arc::new(NoStoredShards)));
    let (snapshot, bytes) = store.published.clone().unwrap();
    let update = [("b", &*large), ("c", "other"), ("d", "4"), ("f", "6")];
    let anew = gzip_and_layer(&update, Arc::new(NoStoredShards)).unwrap();
    let made = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut snapshot = snapshot.clone();
        change(&mut snapshot.segments);
        let published = Some((snapshot, bytes.clone()));
        let store = store.clone();
        gzip_and_layer(&update, Arc::new(Store { published, ..store }))
    };
    type Change<'a> = &'a dyn Fn(&mut Vec<u32>);
    let unused: [Change<'_>; 5] = [
        &|segments| segments.clear(),
        &|segments| segments.truncate(5),
        &|segments| segments.push(1),
        &|segments| segments[1] = u32::MAX,
        &|segments| segments[1] = (513 << 10) + 1,
    ];
    for change in unused {
        assert!(made(change).unwrap() == anew);
    }
    assert_eq!(snapshot.segments.len(), 6);
    let lines = anew.each_ref().map(|made| gunzip(made));
    let mut found = 0;
    for segment in 0..5 {
        // The sum is right, so only what the segments decode to tells that the border is not.
        for moved in [1, 4, 5, 9] {
            let made = made(&|segments| {
                segments[segment] -= moved;
                segments[segment + 1] += moved;
            });
            match made {
                // The end of a segment is a block of its own, which may belong to either side.
                Ok(made) => assert!(made.map(|made| gunzip(&made)) == lines, "{moved}"),
                Err(error) if error.is_damage() => found += 1,
                Err(error) => panic!("{moved} bytes of {segment}: {error}"),
            }
        }
        let error = made(&|segments| segments[segment] += 1).map(drop);
        let error = error.unwrap_err();
        assert!(error.is_damage(), "{segment}: {error}");
    }
    assert!(found > 15, "{found}");
}

#[test]
fn segments_of_another_level_are_copied_and_decode() {
    let files: Vec<_> = before("2")
        .map(|(name, text)| (format!("{name}.json"), text))
        .into();
    let files = files.iter().map(|(path, text)| {
        let lines = format!("{{\"schema\":\"x\",\"package\":\"{path}\",\"text\":\"{text}\"}}");
        (path.as_str(), lines.repeat(100))
    });
    let files: Vec<_> = files.collect();
    let at_level = |gzip_level| RenderSettings {
        gzip_level,
        ..RenderSettings::default()
    };
    let dense = try_render(&files, Arc::new(NoStoredShards), at_level(12)).unwrap();
    let store = Arc::new(Store::published(&dense));
    let published = store.published.clone().unwrap().1;
    let again = try_render(&files, store, at_level(0)).unwrap();
    let ([gzip, lines], _) = written(&again, [GZIP, IDENTITY]).unwrap();
    assert!(gzip == published && gunzip(&gzip) == lines);
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
