//! Objects with other bytes, of the right size or cut off: no request gets them as a complete
//! answer.

use bytes::Bytes;
use http::StatusCode;
use model::{Current, Document, Encoding, Key, Kind, Sha256};
use storekit::conformance::put;

use crate::world::{SITUATIONS, World};

/// Returns every path that answers bytes of immutable objects, and the paths of those objects.
fn paths(world: &World) -> Vec<String> {
    let paths = "all.json packages/alpha api/v1/metas?package=alpha api/v1/metas?schema=olm.bundle"
        .split(' ');
    let mut paths: Vec<String> = paths.map(|path| format!("/catalogs/demo/{path}")).collect();
    for key in world.store.objects().into_keys().filter(Key::is_immutable) {
        paths.push(match key {
            Key::Object(Kind::Blob, hash) => format!("/v2/demo/blobs/sha256:{hash}"),
            key => format!("/{key}"),
        });
    }
    paths
}

/// Returns the answers to every path in every coding, whole and in parts; `None` for refused or
/// cut-off ones.
async fn answers(world: &World) -> Vec<(String, Option<Bytes>)> {
    let mut answers = Vec::new();
    for path in paths(world) {
        for coding in ["identity", "gzip", "zstd"] {
            for range in ["", "bytes=0-9", "bytes=1-3,8-9", "bytes=-5"] {
                let answer = world
                    .get(&path, &[("accept-encoding", coding), ("range", range)])
                    .await;
                let is_given = answer.status != StatusCode::SERVICE_UNAVAILABLE;
                answers.push((
                    format!("{path} {coding} {range}"),
                    answer.body.filter(|_| is_given),
                ));
            }
        }
    }
    answers
}

/// Turns plain bytes into stored ones.
type Pack = fn(&[u8]) -> Vec<u8>;

/// Other bytes of the same size, which can be decompressed like the right ones.
fn forge(key: &Key, bytes: &[u8]) -> Option<Vec<u8>> {
    let Key::Object(kind, _) = key else {
        return None;
    };
    let (plain, pack): (Vec<u8>, Pack) = match kind.encoding() {
        Encoding::Zstd => (zstd::stream::decode_all(bytes).unwrap(), |plain| {
            zstd::bulk::compress(plain, 9).unwrap()
        }),
        Encoding::Gzip => {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut plain)
                .unwrap();
            (plain, testkit::gzip)
        }
        Encoding::Identity => (bytes.to_vec(), <[u8]>::to_vec),
    };
    let with =
        |bytes: &[u8], at: usize, byte: u8| [&bytes[..at], &[byte], &bytes[at + 1..]].concat();
    let places = (0..plain.len()).flat_map(|at| (b'a'..=b'z').map(move |letter| (at, letter)));
    let altered = places.filter(|(at, letter)| plain[*at] != *letter);
    // Enough for all but documents of hashes; compressing every candidate would take minutes.
    let mut forged = altered
        .take(300)
        .map(|(at, letter)| pack(&with(&plain, at, letter)));
    let middle = bytes.len() / 2;
    // Of documents that hold little but hashes, no other letter compresses to the same size.
    let damaged = || with(bytes, middle, bytes[middle] ^ 1);
    Some(
        forged
            .find(|forged| forged.len() == bytes.len())
            .unwrap_or_else(damaged),
    )
}

/// Returns the number of requests that get no complete answer. All others get the right one.
async fn refusals(world: &World, expected: &[(String, Option<Bytes>)], damage: &str) -> usize {
    let answers = answers(world).await.into_iter().zip(expected);
    let refused = answers.filter(|((asked, body), (_, right))| {
        assert!(body.is_none() || body == right, "{asked} with {damage}");
        body.is_none()
    });
    refused.count()
}

#[tokio::test]
async fn forged_or_cut_object_is_never_a_complete_answer() {
    let mut refused = 0;
    for settings in SITUATIONS {
        let mut world = World::situated(settings).await;
        let expected = answers(&world).await;
        assert!(expected.iter().all(|(_, body)| body.is_some()));
        let objects = world.store.objects();
        for (key, bytes) in &objects {
            let Some(forged) = forge(key, bytes) else {
                continue;
            };
            world.store.corrupt(key, forged);
            world = world.caching(settings.0);
            refused += refusals(&world, &expected, &format!("a forged {key}, {settings:?}")).await;
            world.store.corrupt(key, bytes.clone());
        }
        for (key, bytes) in objects.iter().filter(|(key, _)| key.is_immutable()) {
            world.store.corrupt(key, bytes.slice(..bytes.len() - 1));
        }
        world = world.caching(settings.0);
        let cut = refusals(&world, &expected, &format!("cut objects, {settings:?}")).await;
        assert_eq!(cut, expected.len());
    }
    assert!(refused > 100, "forged objects are noticed: {refused}");
}

/// A verified object is hashed again when its stored version has changed.
#[tokio::test]
async fn part_of_a_replaced_object_is_refused() {
    let world = World::situated((0, true)).await;
    let part = [("range", "bytes=0-9")];
    let path = format!("/{}", world.demo.current.all.identity.unwrap().key());
    assert_eq!(
        world.get(&path, &part).await.status,
        StatusCode::PARTIAL_CONTENT
    );
    let key = Key::parse(&path[1..]).unwrap();
    let forged = forge(&key, &world.demo.all).unwrap();
    put(&world.store, &key, forged).await;
    assert_eq!(
        world.get(&path, &part).await.status,
        StatusCode::SERVICE_UNAVAILABLE
    );
}

#[tokio::test]
async fn pointer_with_another_content_hash_gives_no_answer_under_its_tag() {
    for (identity, expected) in [
        (false, StatusCode::SERVICE_UNAVAILABLE),
        (true, StatusCode::OK),
    ] {
        let world = World::situated((1 << 20, identity)).await;
        let (key, content_hash) = (
            Key::Current("demo".parse().unwrap()),
            Sha256::of(b"another"),
        );
        let current = Current {
            content_hash,
            ..world.demo.current.clone()
        };
        put(&world.store, &key, current.to_bytes()).await;
        let world = world.caching(1 << 20);
        let path = "/catalogs/demo/all.json";
        let answer = world.get(path, &[("accept-encoding", "identity")]).await;
        assert_eq!(answer.status, expected);
        let tag = Sha256::of(&world.demo.all).to_entity_tag(Encoding::Identity);
        assert!(!identity || answer.header("etag") == tag);
    }
}
