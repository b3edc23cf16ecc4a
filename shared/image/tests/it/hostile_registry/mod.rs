//! Registries that lie, stall, flood, lead astray and want to be told what is not theirs: one row per trick.
//!
//! Whatever the trick, what was sent to one host as a secret must not be seen by another, nor in the error.

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
use image::{EmptyLayers, Error, Fault as Told, Images, Logins, Pace, Proxy, Pull, Refusal, Settings, Source};
use testkit::{Fault, Image, Kind, Registry, RegistryBuilder, Request};

use crate::kit::{Collect, chain, push, settings, small};

pub(crate) const USER: &str = "robot";
pub(crate) const PASSWORD: &str = "hunter2-hunter2";

/// A registry with credentials, another host without, and a client that has credentials for the first.
pub(crate) struct Lab {
    pub(crate) registry: Registry,
    pub(crate) other: Registry,
    pub(crate) image: Image,
    images: Images,
    host: String,
}

impl Lab {
    /// Both on this machine; the registry wants basic credentials.
    pub(crate) async fn new() -> Self {
        Self::with(wanting(), |_| {}).await
    }

    pub(crate) async fn with(builder: RegistryBuilder, change: impl Fn(&mut Settings)) -> Self {
        let (registry, other) = (builder.start().await, Registry::start().await);
        let host = registry.host().to_owned();
        Self::of(registry, other, &host, change)
    }

    /// As seen from a machine behind a proxy, where only names lead: the registry is `registry.example.com`.
    pub(crate) async fn public() -> Self {
        let registry = wanting().start().await;
        let proxy = Proxy::Url(format!("http://{}", registry.host()));
        let other = Registry::start().await;
        Self::of(registry, other, "registry.example.com", |settings| {
            settings.proxy = proxy.clone();
            settings.plain_http = vec!["registry.example.com".to_owned(), "cdn.example.com".to_owned()];
        })
    }

    fn of(registry: Registry, other: Registry, host: &str, change: impl Fn(&mut Settings)) -> Self {
        let image = small();
        push(&registry, &image);
        push(&other, &image);
        let mut settings = Settings {
            auth_files: Vec::new(),
            logins: login(host, &format!(r#""username": "{USER}", "password": "{PASSWORD}""#)),
            plain_http: vec!["127.0.0.1".to_owned()],
            read_timeout: Duration::from_millis(500),
            pace: Pace {
                least_bytes: 20,
                over: Duration::from_millis(300),
            },
            ..settings(&registry)
        };
        change(&mut settings);
        Self {
            images: Images::new(settings).unwrap(),
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

    pub(crate) fn client(&self) -> &Images {
        &self.images
    }

    pub(crate) fn source(&self) -> Source {
        format!("{}/ns/cat:v1", self.host).parse().unwrap()
    }

    pub(crate) async fn pull(&self) -> Result<(Collect, Pull), Error> {
        let source = self.source();
        let digest = self.images.resolve(&source).await?;
        let none = EmptyLayers::default();
        self.images.read(&source, &digest, &none, Collect::default()).await
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
            assert!(!seen, "{name}: the other host was told a secret");
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

/// One word for what came of a pull.
pub(crate) fn verdict<T>(result: &Result<T, Error>) -> String {
    let Err(error) = result else {
        return "read".to_owned();
    };
    match error {
        Error::Registry(error) => fault(&error.fault).to_owned(),
        Error::Digest { .. } => "digest".to_owned(),
        Error::Size { .. } => "size".to_owned(),
        Error::Limit(limit) => format!("limit {}", limit.name),
        Error::Timeout(_) => "took too long".to_owned(),
        Error::Image(_) => "image".to_owned(),
        Error::Layer { .. } => "layer".to_owned(),
        other => panic!("{}", chain(other)),
    }
}

fn fault(fault: &Told) -> &'static str {
    match fault {
        Told::Unauthorized { .. } => "unauthorized",
        Told::Forbidden { .. } => "forbidden",
        Told::NotFound { .. } => "not found",
        Told::RateLimited { .. } => "rate limited",
        Told::Unavailable { .. } => "unavailable",
        Told::Status(_) => "status",
        Told::Tls(_) => "tls",
        Told::PlainHttp => "plain http",
        Told::PlainRefused => "plain refused",
        Told::Connect(_) => "connect",
        Told::Timeout(_) => "silence",
        Told::Broken(_) => "broken",
        Told::Cut { .. } => "cut",
        Told::Slow { .. } => "slow",
        Told::Range => "range",
        Told::Digest(_) => "malformed digest",
        Told::Address { why } | Told::Redirect { why, .. } => refusal(*why),
        Told::Page => "page",
        Told::Challenge => "challenge",
        Told::TokenService { .. } => "token service",
        Told::Url(_) => "url",
    }
}

fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::NotUrl => "refused: not a URL",
        Refusal::Scheme => "refused: scheme",
        Refusal::PlainHttp => "refused: plain http",
        Refusal::Downgrade => "refused: downgrade",
        Refusal::Userinfo => "refused: userinfo",
        Refusal::LinkLocal => "refused: link-local",
        Refusal::Private => "refused: private",
        Refusal::TooMany => "refused: too many",
        Refusal::Elsewhere => "refused: elsewhere",
        Refusal::ReadBefore => "refused: read before",
    }
}
