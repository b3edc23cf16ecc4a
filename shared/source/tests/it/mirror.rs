//! Catalogs of another mirror.

use catalog_mirror_source::{
    Error, FetchError, ImageLimits, MirrorError, SkippableLayers, Source, SourceSettings, Sources, WebFault,
};
use model::{Current, Document, Sha256};
use testkit::{BuiltSnapshot, FileAnswer, FileServer, Registry, SnapshotBuilder, current, zstd};
use trust::{Signer, SigningKey, Trust, TrustError};

use crate::kit::{Collect, chain, plain, settings};

const POINTER: &str = "/catalogs/demo/current.json";
const LINE: &str = "{\"name\":\"db\",\"schema\":\"olm.package\"}\n";

fn state(line: &str) -> BuiltSnapshot {
    SnapshotBuilder::new().package("db", line).build()
}

fn publish(server: &FileServer, state: &BuiltSnapshot) {
    publish_as(server, state, &current(&state.snapshot));
}

fn publish_as(server: &FileServer, state: &BuiltSnapshot, current: &Current) {
    for (key, bytes) in &state.objects {
        server.put(&format!("/{key}"), bytes.clone());
    }
    server.put(POINTER, current.to_bytes());
}

fn source(server: &FileServer) -> Source {
    format!("mirror:{}", server.url("/catalogs/demo")).parse().unwrap()
}

async fn images(server: &FileServer, change: impl Fn(&mut SourceSettings)) -> Sources {
    let mut settings = settings(&Registry::start().await);
    settings.http.plain_http = plain(&[server.host()]);
    change(&mut settings);
    Sources::new(settings).unwrap()
}

async fn pull(images: &Sources, server: &FileServer) -> Result<Vec<String>, Error> {
    let source = source(server);
    let digest = images.resolve(&source).await?;
    let none = SkippableLayers::default();
    let (sink, _) = images.read(&source, &digest, &none, Collect::default()).await?;
    Ok(sink.list())
}

fn object_path(state: &BuiltSnapshot) -> String {
    format!("/{}", current(&state.snapshot).all.zstd.key())
}

#[tokio::test]
async fn lines_of_mirror_are_one_file_and_its_content_hash_is_the_revision() {
    let server = FileServer::start().await;
    let first = state(LINE);
    publish(&server, &first);
    let images = images(&server, |_| {}).await;
    let digest = images.resolve(&source(&server)).await.unwrap();
    assert_eq!(digest.to_string(), format!("sha256:{}", Sha256::of(LINE.as_bytes())));
    assert_eq!(pull(&images, &server).await.unwrap(), [format!("all.json={LINE}")]);
    assert_eq!(
        server.statuses(),
        [200, 304, 200],
        "an unchanged pointer is not sent again"
    );
    let second = LINE.replace("db", "store");
    publish(&server, &state(&second));
    assert_eq!(pull(&images, &server).await.unwrap(), [format!("all.json={second}")]);
    assert!(images.exists(&source(&server)).await.unwrap());
    server.script(POINTER, FileAnswer::Status(404));
    assert!(!images.exists(&source(&server)).await.unwrap());
}

#[tokio::test]
async fn signature_of_mirror_is_required_if_keys_are_trusted() {
    let key = || SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
    let (good, other) = (key(), key());
    let state = state(LINE);
    let signed = |key: &SigningKey, catalog: &str| {
        let signer = Signer::new(vec![key.clone()], Vec::new());
        signer.sign(&catalog.parse().unwrap(), current(&state.snapshot))
    };
    let mut altered = signed(&good, "demo");
    altered.serial += 1;
    for (name, pointer) in [
        ("unsigned", current(&state.snapshot)),
        ("another key", signed(&other, "demo")),
        ("another catalog", signed(&good, "other")),
        ("altered", altered),
    ] {
        let server = FileServer::start().await;
        publish_as(&server, &state, &pointer);
        let trusting = images(&server, |settings| {
            settings.trust = Some(Trust::new(vec![good.public()]));
        })
        .await;
        let error = pull(&trusting, &server).await.unwrap_err();
        let source = match &error {
            Error::Mirror { source, .. } => source,
            other => panic!("{name}: {}", chain(other)),
        };
        let is_fitting = match name {
            "unsigned" => matches!(source, MirrorError::Trust(TrustError::Unsigned)),
            "another key" => matches!(source, MirrorError::Trust(TrustError::Unknown(_))),
            _ => matches!(source, MirrorError::Trust(TrustError::Wrong(_))),
        };
        assert!(is_fitting, "{name}: {}", chain(&error));
        assert!(chain(&error).contains("/catalogs/demo"), "{}", chain(&error));
        // Without keys, only hashes are checked.
        assert!(pull(&images(&server, |_| {}).await, &server).await.is_ok(), "{name}");
        publish_as(&server, &state, &signed(&good, "demo"));
        assert!(pull(&trusting, &server).await.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn other_lines_than_the_pointer_names_are_refused() {
    let state = state(LINE);
    let path = object_path(&state);
    let whole = state.objects[&current(&state.snapshot).all.zstd.key()].clone();
    let other = zstd(LINE.replace("db", "xx").as_bytes());
    let longer = [whole.to_vec(), vec![0; 100]].concat();
    for (name, bytes) in [
        ("another object", other),
        ("shorter", whole[..whole.len() - 1].to_vec()),
        ("longer", longer),
        ("not compressed", LINE.as_bytes().to_vec()),
    ] {
        let server = FileServer::start().await;
        publish(&server, &state);
        server.put(&path, bytes);
        let error = pull(&images(&server, |_| {}).await, &server).await.unwrap_err();
        let is_fitting = match &error {
            Error::Digest { .. } | Error::Size { .. } => true,
            Error::Web(failure) => matches!(failure.fault, WebFault::Fetch(FetchError::Truncated { .. })),
            _ => false,
        };
        assert!(is_fitting, "{name}: {}", chain(&error));
    }
}

/// The object has the right hash, but the pointer states another content: of other lines, or longer or shorter ones.
#[tokio::test]
async fn pointer_that_contradicts_its_object_is_refused() {
    let state = state(LINE);
    let length = LINE.len() as u64;
    type Change = fn(&mut Current, u64);
    let rows: [(&str, Change); 4] = [
        ("hash", |current, _| current.content_hash = Sha256::of(b"other")),
        ("shorter", |current, length| current.size = length - 1),
        ("longer", |current, length| current.size = length + 1),
        ("empty", |current, _| current.size = 0),
    ];
    for (name, change) in rows {
        let server = FileServer::start().await;
        let mut pointer = current(&state.snapshot);
        change(&mut pointer, length);
        publish_as(&server, &state, &pointer);
        let error = pull(&images(&server, |_| {}).await, &server).await.unwrap_err();
        let is_fitting = match name {
            "shorter" | "empty" => matches!(
                &error,
                Error::Mirror {
                    source: MirrorError::Longer(_),
                    ..
                }
            ),
            "longer" => matches!(
                &error,
                Error::Mirror {
                    source: MirrorError::Content(_),
                    ..
                }
            ),
            _ => matches!(&error, Error::Digest { what: "all.json", .. }),
        };
        assert!(is_fitting, "{name}: {}", chain(&error));
    }
}

#[tokio::test]
async fn malformed_and_foreign_pointers_are_refused() {
    for text in ["", "{}", "[]", "{\"formatVersion\": 99}", "<html>"] {
        let server = FileServer::start().await;
        server.put(POINTER, text.to_owned());
        let error = pull(&images(&server, |_| {}).await, &server).await.unwrap_err();
        let is_document = matches!(
            &error,
            Error::Mirror {
                source: MirrorError::Document(_),
                ..
            }
        );
        assert!(is_document, "{text}: {}", chain(&error));
    }
}

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    let state = state(&format!("{{\"name\":\"db\",\"schema\":\"{}\"}}\n", "x".repeat(10_000)));
    let pointer = current(&state.snapshot);
    let (stored, lines) = (pointer.all.zstd.digest.size, pointer.size);
    type Change = fn(&mut ImageLimits, u64);
    let rows: [(&str, Change, u64); 5] = [
        ("compressedBytes", |limits, at| limits.compressed_bytes = at, stored),
        ("decompressedBytes", |limits, at| limits.decompressed_bytes = at, lines),
        ("fileBytes", |limits, at| limits.file_bytes = at, lines),
        (
            "ratio",
            |limits, at| (limits.ratio, limits.ratio_floor_bytes) = (0, at),
            lines,
        ),
        (
            "manifestBytes",
            |limits, at| limits.manifest_bytes = at,
            pointer.to_bytes().len() as u64,
        ),
    ];
    let server = FileServer::start().await;
    publish(&server, &state);
    for (name, change, at) in rows {
        pull(
            &images(&server, |settings| change(&mut settings.limits, at)).await,
            &server,
        )
        .await
        .unwrap();
        let images = images(&server, |settings| change(&mut settings.limits, at - 1)).await;
        match pull(&images, &server).await.unwrap_err() {
            Error::Limit(limit) => assert_eq!(limit.name, name),
            other => panic!("{name}: {}", chain(&other)),
        }
    }
}

#[tokio::test]
async fn broken_object_is_continued_and_new_state_between_the_requests_is_named() {
    let server = FileServer::start().await;
    let first = state(LINE);
    publish(&server, &first);
    server.script(&object_path(&first), FileAnswer::Status(503));
    server.script(&object_path(&first), FileAnswer::Cut(7));
    let source = source(&server);
    let (one, two) = (images(&server, |_| {}).await, images(&server, |_| {}).await);
    assert_eq!(pull(&one, &server).await.unwrap().len(), 1);
    let digest = one.resolve(&source).await.unwrap();
    publish(&server, &state(&LINE.replace("db", "xx")));
    let none = SkippableLayers::default();
    let error = two.read(&source, &digest, &none, Collect::default()).await.unwrap_err();
    assert!(
        matches!(
            &error,
            Error::Mirror {
                source: MirrorError::Changed,
                ..
            }
        ),
        "{}",
        chain(&error)
    );
    // The process that has resolved the state still reads it while its object is there.
    assert!(one.read(&source, &digest, &none, Collect::default()).await.is_ok());
}
