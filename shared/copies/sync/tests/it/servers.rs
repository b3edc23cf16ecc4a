//! Copies from servers, honest and lying ones.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use fetch::{FetchSettings, RetrySchedule};
use model::{CatalogName, Catalogs, Document, Encoding, Key, Kind, Outcome, Sha256};
use storekit::MemoryStore;
use sync::{Copier, HttpMirror, Origin, SyncOptions, SyncReport};

use crate::kit::{V1, assert_sound, copy_one, mirror, name, published, put_raw};

/// Answer of a server; `None` is the object as it is.
pub(crate) type Lie = Arc<dyn Fn(&Key, &Request, Bytes) -> Option<Response<Body>> + Send + Sync>;

/// Starts a static file server over a store, which tells lies.
pub(crate) async fn server(store: MemoryStore, lie: Lie) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(move |request: Request| {
        let (objects, lie) = (store.objects(), lie.clone());
        async move {
            let key = Key::parse(request.uri().path().trim_start_matches('/'));
            let found = key.and_then(|key| Some((objects.get(&key)?.clone(), key)));
            let Some((bytes, key)) = found else {
                return status(StatusCode::NOT_FOUND);
            };
            lie(&key, &request, bytes.clone()).unwrap_or_else(|| Response::new(Body::from(bytes)))
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn whole(body: Vec<u8>) -> Response<Body> {
    Response::new(Body::from(body))
}

fn status(status: StatusCode) -> Response<Body> {
    let page = Body::from("<html>an error page</html>");
    Response::builder().status(status).body(page).unwrap()
}

/// Returns a client for a server.
pub(crate) fn http_mirror(address: SocketAddr, headers: HeaderMap) -> HttpMirror {
    let settings = FetchSettings {
        retry: RetrySchedule {
            first: Duration::from_millis(1),
            ..RetrySchedule::default()
        },
        read_timeout: Duration::from_secs(5),
        ..FetchSettings::default()
    };
    let address = format!("http://{address}").parse().unwrap();
    HttpMirror::new(address, settings, headers).unwrap()
}

/// Returns a copier from a server into a new store.
async fn copier(address: SocketAddr, headers: HeaderMap) -> (MemoryStore, Copier) {
    let origin = Origin::Mirror(Arc::new(http_mirror(address, headers)));
    let (memory, to) = mirror(&[]).await;
    (memory, Copier::new(origin, to, SyncOptions::default()))
}

async fn copy(address: SocketAddr, headers: HeaderMap) -> (MemoryStore, SyncReport) {
    let (memory, copier) = copier(address, headers).await;
    let report = copy_one(&copier).await;
    assert_sound(&memory).await;
    (memory, report)
}

/// Copies a mirror from a server that tells these lies, which must not matter.
async fn copy_in_spite_of(
    lie: impl Fn(&Key, &Request, Bytes) -> Option<Response<Body>> + Send + Sync + 'static,
) {
    let (original, _) = mirror(&[V1]).await;
    let address = server(original.clone(), Arc::new(lie)).await;
    let (memory, report) = copy(address, HeaderMap::new()).await;
    assert_eq!(
        (report.error.clone(), report.outcome),
        (None, Outcome::Published)
    );
    assert_eq!(published(&memory).await, published(&original).await);
}

const fn is_shard(key: &Key) -> bool {
    matches!(key, Key::Object(Kind::Package, _))
}

const fn is_snapshot(key: &Key) -> bool {
    matches!(key, Key::Object(Kind::Snapshot, _))
}

/// A mirror of an earlier version lists a catalog that it does not serve, because its availability
/// is `Unavailable`.
#[tokio::test(flavor = "multi_thread")]
async fn copy_listed_passes_over_catalogs_that_the_origin_does_not_serve() {
    let (original, from) = mirror(&[V1]).await;
    let unavailable: CatalogName = "unavailable".parse().unwrap();
    let listed = Catalogs::from_iter([name(), unavailable.clone()]);
    put_raw(&from, &Key::Catalogs, listed.to_bytes()).await;
    let address = server(original, Arc::new(|_, _, _| None)).await;
    let (memory, copier) = copier(address, HeaderMap::new()).await;
    let reports = copier.copy_listed().await.unwrap();
    let outcomes = reports
        .iter()
        .map(|report| (report.outcome, report.not_served));
    assert!(
        outcomes.eq([(Outcome::Published, false), (Outcome::Unchanged, true)]),
        "{reports:?}"
    );
    assert!(
        !memory
            .objects()
            .contains_key(&Key::Status(unavailable.clone()))
    );
    // A name that the user asks for has to be there.
    let report = &copier.copy_all(&[unavailable]).await[0];
    let text = report.error.clone().unwrap();
    assert!(text.contains("no catalog unavailable"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_from_lying_server_fails_and_names_the_object() {
    let shards = |lie: fn(&Request, Bytes) -> Response<Body>| {
        Arc::new(move |key: &Key, request: &Request, bytes| {
            is_shard(key).then(|| lie(request, bytes))
        }) as Lie
    };
    let page_for = |is: fn(&Key) -> bool| -> Lie {
        Arc::new(move |key, _, _| is(key).then(|| status(StatusCode::OK)))
    };
    let (original, _) = mirror(&[V1]).await;
    for (case, says, lie) in [
        (
            "short",
            ".json",
            shards(|_, bytes| whole(bytes[1..].to_vec())),
        ),
        (
            "long",
            ".json",
            shards(|_, bytes| whole([&bytes[..], b"x"].concat())),
        ),
        (
            "other",
            ".json",
            shards(|_, bytes| whole(vec![0; bytes.len()])),
        ),
        (
            "missing",
            ".json",
            shards(|_, _| status(StatusCode::NOT_FOUND)),
        ),
        (
            "forbidden",
            ".json",
            shards(|_, _| status(StatusCode::FORBIDDEN)),
        ),
        (
            "always busy",
            "502",
            shards(|_, _| status(StatusCode::BAD_GATEWAY)),
        ),
        ("html", ".json", page_for(is_shard)),
        (
            "html pointer",
            ".json",
            page_for(|key| matches!(key, Key::Current(_))),
        ),
        ("html snapshot", "belong together", page_for(is_snapshot)),
        (
            "loop",
            ".json",
            shards(|request, _| redirect(request.uri().path())),
        ),
        (
            "downhill",
            "link-local",
            shards(|_, _| redirect("http://169.254.169.254/latest")),
        ),
    ] {
        let address = server(original.clone(), lie).await;
        let (memory, report) = copy(address, HeaderMap::new()).await;
        assert_eq!(report.outcome, Outcome::Failed, "{case}");
        let error = report.error.clone().unwrap();
        assert!(error.contains(says), "{case}: {error}");
        assert!(
            !memory.objects().contains_key(&Key::Current(name())),
            "{case}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_from_server_that_compresses_documents_decodes_them() {
    copy_in_spite_of(|key, _, bytes| {
        (!key.is_immutable()).then(|| {
            let response = Response::builder().header(header::CONTENT_ENCODING, "gzip");
            response.body(testkit::gzip(&bytes).into()).unwrap()
        })
    })
    .await;
}

/// As the router answers: the tag tells the coding.
#[tokio::test(flavor = "multi_thread")]
async fn copy_that_knows_the_pointer_gets_no_body_in_either_coding() {
    for encoding in [Encoding::Gzip, Encoding::Identity] {
        let (original, _) = mirror(&[V1]).await;
        let pointer = original.objects()[&Key::Current(name())].clone();
        let tag = Sha256::of(&pointer).to_entity_tag(encoding);
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        let lie = move |key: &Key, request: &Request, bytes: Bytes| {
            if !matches!(key, Key::Current(_)) {
                return None;
            }
            let field = |name| {
                request
                    .headers()
                    .get(name)
                    .map_or("", |value| value.to_str().unwrap())
            };
            assert_eq!(field(header::ACCEPT_ENCODING), "gzip");
            if field(header::IF_NONE_MATCH)
                .split(", ")
                .any(|known| known == tag)
            {
                return Some(status(StatusCode::NOT_MODIFIED));
            }
            counted.fetch_add(1, Ordering::Relaxed);
            Some(Response::new(Body::from(bytes)))
        };
        let address = server(original, Arc::new(lie)).await;
        let (_, copier) = copier(address, HeaderMap::new()).await;
        let outcomes = [
            copy_one(&copier).await.outcome,
            copy_one(&copier).await.outcome,
        ];
        assert_eq!(outcomes, [Outcome::Published, Outcome::Unchanged]);
        assert_eq!(sent.load(Ordering::Relaxed), 1, "{encoding:?}");
    }
}

fn redirect(to: &str) -> Response<Body> {
    let response = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
    response
        .header(header::LOCATION, to)
        .body(Body::empty())
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_waits_for_server_that_is_unavailable() {
    for busy in [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ] {
        let asked = AtomicUsize::new(0);
        let is_busy = move || asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        copy_in_spite_of(move |_, _, _| is_busy().then(|| status(busy))).await;
    }
}

/// The connection breaks in the middle of every first answer.
#[tokio::test(flavor = "multi_thread")]
async fn copy_resumes_body_that_breaks_off() {
    for ranges in [false, true] {
        let broken = Mutex::new(BTreeSet::new());
        copy_in_spite_of(move |key, request, bytes| {
            let range = request.headers().get(header::RANGE);
            if broken.lock().unwrap().insert(key.clone()) {
                let half = bytes.slice(..bytes.len() / 2);
                let parts = [Ok(half), Err(std::io::Error::other("cut"))];
                let body = Body::from_stream(futures_util::stream::iter(parts));
                let response = Response::builder().header(header::CONTENT_LENGTH, bytes.len());
                return Some(response.body(body).unwrap());
            }
            let from = range.filter(|_| ranges)?.to_str().ok()?;
            let from: usize = from
                .strip_prefix("bytes=")?
                .strip_suffix('-')?
                .parse()
                .ok()?;
            let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
            let response = Response::builder().status(StatusCode::PARTIAL_CONTENT);
            let response = response.header(header::CONTENT_RANGE, range);
            Some(response.body(bytes.slice(from..).into()).unwrap())
        })
        .await;
    }
}

/// A CDN sends some objects on to a bucket: credentials stay behind.
#[tokio::test(flavor = "multi_thread")]
async fn redirects_to_other_origins_carry_no_credentials() {
    let (original, _) = mirror(&[V1]).await;
    let has_secret = |request: &Request| request.headers().contains_key("x-token");
    let bucket = server(
        original.clone(),
        Arc::new(move |_, request, _| has_secret(request).then(|| status(StatusCode::BAD_REQUEST))),
    )
    .await;
    let front = server(
        original,
        Arc::new(move |key, request, _| {
            if !has_secret(request) {
                return Some(status(StatusCode::UNAUTHORIZED));
            }
            is_shard(key).then(|| redirect(&format!("http://{bucket}/{key}")))
        }),
    )
    .await;
    let (_, refused) = copy(front, HeaderMap::new()).await;
    assert!(refused.error.clone().unwrap().contains("401"));
    let secret = HeaderMap::from_iter([(
        HeaderName::from_static("x-token"),
        HeaderValue::from_static("secret"),
    )]);
    let (_, report) = copy(front, secret).await;
    assert_eq!(
        (report.error.clone(), report.outcome),
        (None, Outcome::Published)
    );
}
