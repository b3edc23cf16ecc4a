//! Objects of the right size with other bytes in them: whatever is asked for, they never make a complete answer.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use layout::{Form, Key};
use serve::{Metrics, Settings, router};

use crate::{
    fixture::{LINES, Publication, gzip, put, zstd},
    world::World,
};

/// From memory, and streamed; with the plain `all.json` and without.
const WORLDS: [(u64, bool); 4] = [(64 << 20, false), (64 << 20, true), (0, false), (0, true)];

async fn world((cache_bytes, identity): (u64, bool)) -> World {
    let settings = Settings {
        cache_bytes,
        ..Settings::default()
    };
    let publication = Publication {
        identity,
        ..Publication::default()
    };
    World::with(settings, publication, LINES).await
}

/// Nothing of what was read before the forgery is remembered.
fn restarted(world: World, cache_bytes: u64) -> World {
    let settings = Settings {
        cache_bytes,
        ..Settings::default()
    };
    let router = router(Arc::new(world.store.clone()), settings, Metrics::default());
    World { router, ..world }
}

/// Every path below which bytes of immutable objects are found, and those objects themselves.
fn paths(world: &World) -> Vec<String> {
    let mut paths: Vec<String> = [
        "all.json",
        "packages/alpha",
        "api/v1/metas?package=alpha",
        "api/v1/metas?schema=olm.bundle",
    ]
    .map(|path| format!("/catalogs/demo/{path}"))
    .into();
    for key in world.store.objects().into_keys().filter(is_forged) {
        paths.push(match key {
            Key::Blob(hash) => format!("/v2/demo/blobs/sha256:{hash}"),
            key => format!("/{key}"),
        });
    }
    paths
}

/// What is sent as it lies there. A snapshot is the root of trust that `current.json` names; what it says is compared there.
fn is_forged(key: &Key) -> bool {
    key.is_immutable() && !matches!(key, Key::Snapshot(..))
}

/// The answers to every path in every coding, whole and in parts; `None` for what was refused or cut off.
async fn answers(world: &World) -> Vec<(String, Option<Bytes>)> {
    let mut answers = Vec::new();
    for path in paths(world) {
        for coding in ["identity", "gzip", "zstd"] {
            for range in ["", "bytes=0-9", "bytes=1-3,8-9", "bytes=-5"] {
                let answer = world.get(&path, &[("accept-encoding", coding), ("range", range)]).await;
                let body = (answer.status != StatusCode::SERVICE_UNAVAILABLE)
                    .then_some(answer.body)
                    .flatten();
                answers.push((format!("{path} {coding} {range}"), body));
            }
        }
    }
    answers
}

/// Makes stored bytes of plain ones.
type Pack = fn(&[u8]) -> Vec<u8>;

/// Other bytes of the same size, which can be decompressed like the right ones.
fn forge(key: &Key, bytes: &[u8]) -> Option<Vec<u8>> {
    let (plain, pack): (Vec<u8>, Pack) = match key {
        Key::Shard(_) | Key::Index(..) | Key::All(_, _, Form::Zstd) => (zstd::stream::decode_all(bytes).unwrap(), zstd),
        Key::All(_, _, Form::Gzip) => {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain).unwrap();
            (plain, gzip)
        }
        Key::Blob(_) | Key::All(_, _, Form::Identity) => (bytes.to_vec(), <[u8]>::to_vec),
        _ => {
            assert!(!is_forged(key), "{key} can be forged, but nobody says how");
            return None;
        }
    };
    let altered = (0..plain.len()).flat_map(|at| {
        let plain = plain.clone();
        (b'a'..=b'z').map(move |letter| {
            let mut altered = plain.clone();
            altered[at] = letter;
            altered
        })
    });
    let forged = altered
        .filter(|altered| *altered != plain)
        .map(|altered| pack(&altered));
    let mut fitting = forged.filter(|forged| forged.len() == bytes.len());
    Some(fitting.next().expect("some letter makes no difference to the size"))
}

#[tokio::test]
async fn a_forgery_of_the_right_size_is_never_a_complete_answer() {
    let mut refused = 0;
    for settings in WORLDS {
        let honest = world(settings).await;
        let expected = answers(&honest).await;
        assert!(expected.iter().all(|(_, body)| body.is_some()));
        for (key, bytes) in honest.store.objects() {
            let Some(forged) = forge(&key, &bytes) else {
                continue;
            };
            let world = restarted(world(settings).await, settings.0);
            world.store.corrupt(&key, forged);
            for ((asked, body), (_, right)) in answers(&world).await.into_iter().zip(&expected) {
                match body {
                    Some(body) => assert_eq!(Some(&body), right.as_ref(), "{asked} with a forged {key}, {settings:?}"),
                    None => refused += 1,
                }
            }
        }
    }
    assert!(refused > 100, "forged objects are noticed: {refused}");
}

/// What was found right once is looked at again when it has been written since.
#[tokio::test]
async fn a_part_is_refused_after_the_object_was_replaced() {
    let world = world((0, true)).await;
    let part = [("range", "bytes=0-9")];
    let path = format!("/catalogs/demo/{}/all.json", world.demo.current.content_hash);
    assert_eq!(world.get(&path, &part).await.status, StatusCode::PARTIAL_CONTENT);
    let key = Key::parse(&path[1..]).unwrap();
    let forged = forge(&key, &world.demo.all).unwrap();
    put(&world.store, &key, forged).await;
    assert_eq!(world.get(&path, &part).await.status, StatusCode::SERVICE_UNAVAILABLE);
}
