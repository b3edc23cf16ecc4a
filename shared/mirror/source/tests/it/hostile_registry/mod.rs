//! Hostile registries: false answers, stalls, floods, redirects and demands for foreign secrets,
//! one row for each.
//!
//! In every row, a secret that was sent to one host must reach no other host and no error.

mod bodies;
mod headers;
mod lies;
mod pages;
mod realms;
mod redirects;
mod storms;
mod tls;

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use source::{Error, MinThroughput, Proxy, Pull, Source, SourceSettings, Sources};
use testkit::{Fault, Image, Kind, Registry, RegistryBuilder, Request, Say, Wire};

use crate::kit::{
    Collect, chain, client_with, password, plain, pull_source, push, small, tls_client, verdict,
};

pub(crate) const USER: &str = "robot";
pub(crate) const PASSWORD: &str = "hunter2-hunter2";

/// Longer than any pull takes.
const SOON: Duration = Duration::from_secs(10);

/// A registry with credentials, another host without, and a client that has credentials for the
/// first.
pub(crate) struct Lab {
    pub(crate) registry: Registry,
    pub(crate) other: Registry,
    pub(crate) image: Image,
    pub(crate) images: Sources,
    host: String,
}

impl Lab {
    /// Both on this machine; the registry wants basic credentials, and the client knows that.
    pub(crate) async fn new() -> Self {
        let lab = Self::with(wanting(), |_| {}).await;
        lab.warm().await;
        lab
    }

    pub(crate) async fn with(
        builder: RegistryBuilder,
        change: impl Fn(&mut SourceSettings),
    ) -> Self {
        let (registry, other) = (builder.start().await, Registry::start().await);
        let host = registry.host().to_owned();
        Self::of(registry, other, &host, change)
    }

    /// As seen from a machine behind a proxy, where only names lead: the registry is
    /// `registry.example.com`.
    pub(crate) async fn public() -> Self {
        let registry = wanting().start().await;
        let proxy = Proxy::of(|name| (name == "ALL_PROXY").then(|| registry.host().to_owned()));
        let other = Registry::start().await;
        Self::of(registry, other, "registry.example.com", |settings| {
            settings.http.proxy = proxy.clone();
            settings.http.plain_http = plain(&["registry.example.com", "cdn.example.com"]);
        })
    }

    /// The registry speaks TLS. The client trusts its CA, and allows no plain HTTP unless that is
    /// changed.
    pub(crate) async fn tls(
        builder: RegistryBuilder,
        other: Registry,
        change: impl Fn(&mut SourceSettings),
    ) -> Self {
        let registry = builder.start().await;
        let host = registry.host().to_owned();
        let images = tls_client(registry.ca_pem(), |settings| {
            limit(settings, &host);
            change(settings);
        });
        Self::with_client(registry, other, &host, images)
    }

    fn of(
        registry: Registry,
        other: Registry,
        host: &str,
        change: impl Fn(&mut SourceSettings),
    ) -> Self {
        let images = client_with("127.0.0.1", |settings| {
            limit(settings, host);
            change(settings);
        });
        Self::with_client(registry, other, host, images)
    }

    fn with_client(registry: Registry, other: Registry, host: &str, images: Sources) -> Self {
        let image = small();
        push(&registry, &image);
        push(&other, &image);
        Self {
            images,
            host: host.to_owned(),
            registry,
            other,
            image,
        }
    }

    /// Makes the client learn what the registry wants, so that the next request is the one that
    /// meets the trick.
    pub(crate) async fn warm(&self) {
        self.images.resolve(&self.source()).await.unwrap();
        self.registry.reset();
    }

    pub(crate) fn source(&self) -> Source {
        format!("{}/ns/cat:v1", self.host).parse().unwrap()
    }

    pub(crate) async fn pull(&self) -> Result<(Collect, Pull), Error> {
        pull_source(&self.images, &self.source()).await
    }

    pub(crate) fn script(&self, faults: impl IntoIterator<Item = (Kind, Fault)>) {
        for (kind, fault) in faults {
            self.registry.script(kind, fault);
        }
    }

    /// Pulls, compares what came of it, and looks for secrets where there must be none.
    pub(crate) async fn expect(&self, name: &str, want: &str) -> String {
        let result = self.pull().await;
        let text = result.as_ref().err().map(chain).unwrap_or_default();
        assert_eq!(verdict(&result), want, "{name}: {text}");
        self.assert_no_secret(name, &text);
        text
    }

    fn assert_no_secret(&self, name: &str, text: &str) {
        for secret in secrets() {
            assert!(!text.contains(&secret), "{name}: {text}");
            let seen = self
                .other
                .requests()
                .iter()
                .any(|request| spells(request, &secret));
            assert!(!seen, "{name}: the other host has received a secret");
        }
        let said = self.other.requests();
        assert!(
            said.iter().all(|request| request.authorization.is_none()),
            "{name}"
        );
        let mut all = said.into_iter().chain(self.registry.requests());
        assert!(
            all.all(|request| request.cookie.is_none()),
            "{name}: cookies are kept"
        );
    }
}

/// Gives a client the credentials for a host, and little patience.
fn limit(settings: &mut SourceSettings, host: &str) {
    settings.auth_files = Vec::new();
    settings.logins = password(host, PASSWORD);
    settings.http.read_timeout = Duration::from_millis(500);
    settings.http.min_throughput = MinThroughput {
        bytes: 20,
        period: Duration::from_millis(300),
    };
}

/// Answers of a CDN in place of all answers of one kind: a name, the steps, and the words for what
/// comes of it.
pub(crate) type Row<'a> = (&'a str, Vec<Say>, &'a str);

/// Pulls from a registry that leads to such a CDN, except for the config. At most `most` bytes may
/// be taken from there.
pub(crate) async fn expect_of_cdn(
    kind: Kind,
    row: Row<'_>,
    most: usize,
    change: impl Fn(&mut SourceSettings),
) {
    let (name, says, want) = row;
    let wire = Wire::start(says).await;
    let lab = Lab::with(wanting(), change).await;
    lab.warm().await;
    if kind == Kind::Blob {
        lab.script([(kind, Fault::Pass)]);
    }
    let url = format!("http://{}/x", wire.host());
    lab.script((0..12).map(|_| (kind, Fault::Redirect(url.clone()))));
    let started = Instant::now();
    let result = lab.pull().await;
    let found = verdict(&result);
    let is_wanted = want.split(" or ").any(|want| want == found);
    assert!(is_wanted, "{name}: {found}, {:?}", result.err());
    assert!(started.elapsed() < SOON, "{name}");
    let said = wire.bytes_said();
    assert!(said < most, "{name}: {said} bytes were taken");
    let mut asked = wire.requests().into_iter();
    assert!(asked.all(|text| !text.to_lowercase().contains("authorization")));
}

/// A registry that wants the credentials there are, on every request.
pub(crate) fn wanting() -> RegistryBuilder {
    Registry::builder().basic(USER, PASSWORD)
}

/// The password, alone and as basic authentication spells it.
pub(crate) fn secrets() -> [String; 2] {
    [
        PASSWORD.to_owned(),
        STANDARD.encode(format!("{USER}:{PASSWORD}")),
    ]
}

fn spells(request: &Request, secret: &str) -> bool {
    let texts = [&request.path, &request.query, &request.host, &request.body];
    texts.iter().any(|text| text.contains(secret))
}
