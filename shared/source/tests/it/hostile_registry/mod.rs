//! Hostile registries: false answers, stalls, floods, redirects and demands for foreign secrets, one row for each.
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

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catalog_mirror_source::{
    Error, FetchError, Logins, MinThroughput, Proxy, Pull, ServerFault, Source, SourceSettings, Sources,
};
use testkit::{Fault, Image, Kind, Registry, RegistryBuilder, Request, variant};

use crate::kit::{Collect, chain, client_with, plain, pull_source, push, small};

pub(crate) const USER: &str = "robot";
pub(crate) const PASSWORD: &str = "hunter2-hunter2";

/// A registry with credentials, another host without, and a client that has credentials for the first.
pub(crate) struct Lab {
    pub(crate) registry: Registry,
    pub(crate) other: Registry,
    pub(crate) image: Image,
    images: Sources,
    host: String,
}

impl Lab {
    /// Both on this machine; the registry wants basic credentials, and the client knows that.
    pub(crate) async fn new() -> Self {
        let lab = Self::with(wanting(), |_| {}).await;
        lab.warm().await;
        lab
    }

    pub(crate) async fn with(builder: RegistryBuilder, change: impl Fn(&mut SourceSettings)) -> Self {
        let (registry, other) = (builder.start().await, Registry::start().await);
        let host = registry.host().to_owned();
        Self::of(registry, other, &host, change)
    }

    /// As seen from a machine behind a proxy, where only names lead: the registry is `registry.example.com`.
    pub(crate) async fn public() -> Self {
        let registry = wanting().start().await;
        let proxy = Proxy::of(|name| (name == "ALL_PROXY").then(|| registry.host().to_owned()));
        let other = Registry::start().await;
        Self::of(registry, other, "registry.example.com", |settings| {
            settings.http.proxy = proxy.clone();
            settings.http.plain_http = plain(&["registry.example.com", "cdn.example.com"]);
        })
    }

    fn of(registry: Registry, other: Registry, host: &str, change: impl Fn(&mut SourceSettings)) -> Self {
        let image = small();
        push(&registry, &image);
        push(&other, &image);
        let images = client_with("127.0.0.1", |settings| {
            settings.auth_files = Vec::new();
            settings.logins = login(host, &format!(r#""username": "{USER}", "password": "{PASSWORD}""#));
            settings.http.read_timeout = Duration::from_millis(500);
            settings.http.min_throughput = MinThroughput {
                bytes: 20,
                period: Duration::from_millis(300),
            };
            change(settings);
        });
        Self {
            images,
            host: host.to_owned(),
            registry,
            other,
            image,
        }
    }

    /// Makes the client learn what the registry wants, so that the next request is the one that meets the trick.
    pub(crate) async fn warm(&self) {
        self.images.resolve(&self.source()).await.unwrap();
        self.registry.reset();
    }

    pub(crate) fn client(&self) -> &Sources {
        &self.images
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
            let seen = self.other.requests().iter().any(|request| spells(request, &secret));
            assert!(!seen, "{name}: the other host has received a secret");
        }
        let said = self.other.requests();
        assert!(
            said.iter().all(|request| request.authorization.is_none()),
            "{name}: {said:?}"
        );
        let all = said
            .iter()
            .chain(&self.registry.requests())
            .cloned()
            .collect::<Vec<_>>();
        assert!(
            all.iter().all(|request| request.cookie.is_none()),
            "{name}: nobody's cookies are kept"
        );
    }
}

/// A registry that wants the credentials there are, on every request.
pub(crate) fn wanting() -> RegistryBuilder {
    Registry::builder().basic(USER, PASSWORD)
}

pub(crate) fn login(host: &str, entry: &str) -> Logins {
    let logins = Logins::default();
    let text = format!(r#"{{"auths": {{"{host}": {{{entry}}}}}}}"#);
    logins.set([("the vault", text.as_str())]).unwrap();
    logins
}

/// The password, alone and as basic authentication spells it.
pub(crate) fn secrets() -> [String; 2] {
    [PASSWORD.to_owned(), STANDARD.encode(format!("{USER}:{PASSWORD}"))]
}

fn spells(request: &Request, secret: &str) -> bool {
    let texts = [&request.path, &request.query, &request.host, &request.body];
    texts.iter().any(|text| text.contains(secret))
}

/// A few words for what came of a pull.
pub(crate) fn verdict<T>(result: &Result<T, Error>) -> String {
    match result {
        Ok(_) => "read".to_owned(),
        Err(Error::Server(failure)) => match &failure.fault {
            ServerFault::Digest(_) => "malformed digest".to_owned(),
            ServerFault::Fetch(FetchError::Address { reason } | FetchError::Redirect { reason, .. }) => {
                format!("refused: {}", variant(reason))
            }
            ServerFault::Fetch(error) => variant(error),
            fault => variant(fault),
        },
        Err(Error::Limit(limit)) => format!("limit {}", limit.name),
        Err(Error::Timeout(_)) => "took too long".to_owned(),
        Err(error) => variant(error),
    }
}
