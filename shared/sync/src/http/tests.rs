//! Servers that redirect to near addresses or send too slowly, on a network of its own.
//!
//! 127.0.0.2 stands for the internet, .4 for the local network, .6 for a metadata service.
#![cfg(target_os = "linux")]

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body as ServerBody;
use axum::http::{Response, StatusCode, header};
use fetch::{AddressScope, FetchError, MinThroughput, Network, Proxy, RedirectRefusal, RetrySchedule};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::*;

struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start(host: &str, answer: impl Fn() -> Response<ServerBody> + Clone + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let router = Router::new().fallback(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            let answer = answer();
            async move { answer }
        });
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, requests }
    }

    async fn redirecting(to: String) -> Self {
        let answer = move || {
            Response::builder()
                .status(StatusCode::TEMPORARY_REDIRECT)
                .header(header::LOCATION, &to)
                .body(ServerBody::empty())
                .unwrap()
        };
        Self::start("127.0.0.2", answer).await
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn scope(address: IpAddr) -> AddressScope {
    match address {
        IpAddr::V4(v4) if v4.octets()[3] == 2 => AddressScope::Internet,
        IpAddr::V4(v4) if v4.octets()[3] == 4 => AddressScope::Site,
        IpAddr::V4(v4) if v4.octets()[3] == 6 => AddressScope::Forbidden,
        _ => AddressScope::Machine,
    }
}

fn network() -> Network {
    Network {
        scope,
        lookup: Arc::new(|name| {
            let found = match name.as_str() {
                "cdn.test" => Ok("127.0.0.2"),
                "lab.test" => Ok("127.0.0.4"),
                "meta.test" => Ok("127.0.0.6"),
                _ => Err(io::Error::other("there is no such name")),
            };
            Box::pin(async move { Ok(vec![found?.parse().unwrap()]) })
        }),
    }
}

fn origin(host: &str, port: u16) -> HttpOrigin {
    let settings = HttpSettings {
        http: FetchSettings {
            proxy: Proxy::default(),
            network: network(),
            retry: RetrySchedule {
                first: Duration::from_millis(1),
                attempts: Some(2),
                ..RetrySchedule::default()
            },
            min_throughput: MinThroughput {
                bytes: 1000,
                period: Duration::from_millis(100),
            },
            ..FetchSettings::default()
        },
        ..HttpSettings::default()
    };
    HttpOrigin::new(format!("http://{host}:{port}").parse().unwrap(), settings).unwrap()
}

fn fetch_error(error: OriginError) -> FetchError {
    match error {
        OriginError::Fetch { source, .. } => source.error,
        other => panic!("{other:?}"),
    }
}

async fn refusal(origin: &HttpOrigin) -> Option<RedirectRefusal> {
    let error = origin.document(&Key::Catalogs, None).await.err()?;
    match fetch_error(error) {
        FetchError::Redirect { reason, .. } | FetchError::Address { reason } => Some(reason),
        other => panic!("{other}"),
    }
}

fn ok() -> Response<ServerBody> {
    Response::new(ServerBody::from("{}"))
}

#[tokio::test]
async fn redirect_from_internet_to_private_address_is_refused() {
    for (target, host) in [
        ("127.0.0.4", "127.0.0.4"),
        ("127.0.0.4", "lab.test"),
        ("127.0.0.1", "localhost"),
    ] {
        let near = Server::start(target, ok).await;
        // Loopback addresses are private by their text alone, names by where they lead.
        let front = Server::redirecting(format!("http://{host}:{}/x", near.address.port())).await;
        let found = refusal(&origin("cdn.test", front.address.port())).await;
        assert_eq!(found, Some(RedirectRefusal::Private), "{host}");
        assert_eq!((front.requests(), near.requests()), (1, 0), "{host}");
    }
}

#[tokio::test]
async fn redirect_to_metadata_service_is_refused() {
    for location in [
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://meta.test/latest/meta-data/",
    ] {
        let front = Server::redirecting(location.to_owned()).await;
        let found = refusal(&origin("cdn.test", front.address.port())).await;
        assert_eq!(found, Some(RedirectRefusal::LinkLocal), "{location}");
    }
    assert_eq!(refusal(&origin("meta.test", 1)).await, Some(RedirectRefusal::LinkLocal));
}

#[tokio::test]
async fn redirect_to_same_or_farther_scope_is_followed() {
    let cdn = Server::start("127.0.0.2", ok).await;
    let front = Server::redirecting(format!("http://cdn.test:{}/x", cdn.address.port())).await;
    for host in ["cdn.test", "127.0.0.2"] {
        assert_eq!(refusal(&origin(host, front.address.port())).await, None, "{host}");
    }
    assert_eq!(cdn.requests(), 2);
}

#[tokio::test]
async fn body_below_minimum_throughput_ends_after_last_attempt() {
    let drip = || {
        let bytes = stream::repeat(Bytes::from_static(b"x")).then(|byte| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, Infallible>(byte)
        });
        Response::new(ServerBody::from_stream(bytes))
    };
    let server = Server::start("127.0.0.2", drip).await;
    let origin = origin("cdn.test", server.address.port());
    let started = Instant::now();
    let error = origin.document(&Key::Catalogs, None).await.unwrap_err();
    assert!(matches!(fetch_error(error), FetchError::TooSlow { .. }));
    let body = origin.object(&Key::Catalogs, u64::MAX).await.unwrap();
    let error = body.try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(fetch_error(error), FetchError::TooSlow { .. }));
    assert_eq!(server.requests(), 4, "two attempts each");
    assert!(started.elapsed() < Duration::from_secs(5));
}
