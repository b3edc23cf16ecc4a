//! Host names that lead to near addresses, on a network of its own.
//!
//! 127.0.0.2 and .3 stand for the internet, .4 and .5 for the local network, .6 for a metadata service.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use fetch::{AddressScope, FetchError, FetchSettings, Network, Proxy, RedirectRefusal, RetrySchedule};
use testkit::{Fault as ScriptedFault, ImageBuilder, Kind, Layer, Registry};

use crate::failure::ServerFault;
use crate::settings::SourceSettings;
use crate::{Error, Logins, Sources};

/// Addresses of each name: the first lookup returns the first address, the next one the next, and then always the last.
type Names = Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>>;

struct Net {
    names: Names,
    settings: SourceSettings,
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

fn scope(address: IpAddr) -> AddressScope {
    match address {
        IpAddr::V4(v4) if matches!(v4.octets()[3], 2 | 3) => AddressScope::Internet,
        IpAddr::V4(v4) if matches!(v4.octets()[3], 4 | 5) => AddressScope::Site,
        IpAddr::V4(v4) if v4.octets()[3] == 6 => AddressScope::Forbidden,
        _ => AddressScope::Machine,
    }
}

impl Net {
    fn new(names: &[(&'static str, &[u8])]) -> Self {
        let names = names.iter().map(|(name, last)| (*name, last.to_vec())).collect();
        let names: Names = Arc::new(Mutex::new(names));
        let logins = Logins::default();
        let entry = r#"{"username": "robot", "password": "hunter2"}"#;
        let text = format!(r#"{{"auths": {{"quay.test": {entry}}}}}"#);
        logins.set([("the vault", text.as_str())]).unwrap();
        let http = FetchSettings {
            proxy: Proxy::default(),
            plain_http: ["quay.test", "cdn.test", "lab.test", "meta.test", "own.test"]
                .map(String::from)
                .into(),
            retry: RetrySchedule {
                attempts: Some(1),
                ..RetrySchedule::default()
            },
            network: network(&names),
            ..FetchSettings::default()
        };
        let settings = SourceSettings {
            logins,
            http,
            ..SourceSettings::default()
        };
        Self { names, settings }
    }

    fn images(&self) -> Sources {
        Sources::new(self.settings.clone()).unwrap()
    }

    /// Resolves `ns/cat:v1` of a registry of that name and port several times with one client. Returns the last result.
    async fn resolve(&self, name: &str, registry: &Registry, times: usize) -> Result<(), ServerFault> {
        let images = self.images();
        let mut last = Ok(());
        for _ in 0..times {
            let reference = format!("{name}:{}/ns/cat:v1", port(registry)).parse().unwrap();
            last = match images.session(&reference).resolve("v1").await {
                Ok(_) => Ok(()),
                Err(Error::Server(error)) => Err(error.fault),
                Err(other) => panic!("{other}"),
            };
        }
        last
    }
}

fn network(names: &Names) -> Network {
    let names = Arc::clone(names);
    Network {
        scope,
        lookup: Arc::new(move |name| {
            let found = look_up(&mut names.lock().unwrap(), &name);
            Box::pin(async move { found })
        }),
    }
}

fn look_up(names: &mut BTreeMap<&'static str, Vec<u8>>, name: &str) -> io::Result<Vec<IpAddr>> {
    let last = names
        .get_mut(name)
        .ok_or_else(|| io::Error::other("there is no such name"))?;
    let now = if last.len() > 1 { last.remove(0) } else { last[0] };
    Ok(vec![address(now)])
}

fn port(registry: &Registry) -> &str {
    registry.host().rsplit_once(':').unwrap().1
}

async fn at(last: u8) -> Registry {
    let registry = Registry::builder().at(address(last)).start().await;
    let image = ImageBuilder::catalog("/configs").layer(Layer::new().file("configs/a", "a"));
    registry.push("ns/cat", "v1", &image.build());
    registry
}

fn lead(from: &Registry, name: &str, to: &Registry) {
    let url = format!("http://{name}:{}/v2/ns/cat/manifests/v1", port(to));
    from.script(Kind::Head, ScriptedFault::Redirect(url));
}

fn refusal(result: Result<(), ServerFault>) -> Option<RedirectRefusal> {
    match result {
        Ok(()) => None,
        Err(ServerFault::Fetch(FetchError::Address { reason } | FetchError::Redirect { reason, .. })) => Some(reason),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn redirect_to_name_is_checked_by_its_address() {
    use RedirectRefusal as R;
    let names: &[(&str, &[u8])] = &[
        ("quay.test", &[2]),
        ("cdn.test", &[3]),
        ("lab.test", &[4]),
        ("own.test", &[1]),
    ];
    for (home, leads, expected) in [
        (2, ("cdn.test", 3), None),
        (2, ("lab.test", 4), Some(R::Private)),
        (2, ("own.test", 1), Some(R::Private)),
        (2, ("127.0.0.1", 1), Some(R::PlainHttp)),
        (4, ("cdn.test", 3), None),
        (4, ("lab.test", 4), None),
        (4, ("own.test", 1), Some(R::Private)),
        (1, ("own.test", 1), None),
        (1, ("lab.test", 4), None),
    ] {
        let net = Net::new(names);
        net.names.lock().unwrap().insert("quay.test", vec![home]);
        let (registry, target) = (at(home).await, at(leads.1).await);
        lead(&registry, leads.0, &target);
        let found = refusal(net.resolve("quay.test", &registry, 1).await);
        assert_eq!(found, expected, "from {home} to {leads:?}");
        assert_eq!(target.requests().len(), usize::from(expected.is_none()));
    }
}

#[tokio::test]
async fn metadata_service_is_refused_for_all_names() {
    let net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4]), ("meta.test", &[6])]);
    let meta = at(6).await;
    for (home, name) in [(2, "quay.test"), (4, "lab.test")] {
        let registry = at(home).await;
        lead(&registry, "meta.test", &meta);
        let found = refusal(net.resolve(name, &registry, 1).await);
        assert_eq!(found, Some(RedirectRefusal::LinkLocal));
    }
    // Not even a configured name may lead there: another owner may have taken the name.
    let found = refusal(net.resolve("meta.test", &meta, 1).await);
    assert_eq!(found, Some(RedirectRefusal::LinkLocal));
    assert_eq!(meta.requests().len(), 0);
}

#[tokio::test]
async fn name_with_changed_address_is_checked_again() {
    let net = Net::new(&[("quay.test", &[2]), ("cdn.test", &[3, 4])]);
    let (registry, cdn) = (at(2).await, at(3).await);
    let inner = Registry::builder().at(address(4)).start().await;
    cdn.script(Kind::Head, ScriptedFault::Header("connection", "close".to_owned()));
    (0..2).for_each(|_| lead(&registry, "cdn.test", &cdn));
    let found = refusal(net.resolve("quay.test", &registry, 2).await);
    assert_eq!(found, Some(RedirectRefusal::Private));
    assert_eq!((cdn.requests().len(), inner.requests().len()), (1, 0));
}

#[tokio::test]
async fn token_realm_is_checked_like_a_redirect() {
    let net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4]), ("cdn.test", &[3])]);
    for (name, last, expected) in [("lab.test", 4, Some(RedirectRefusal::Private)), ("cdn.test", 3, None)] {
        let (registry, service) = (at(2).await, at(last).await);
        let challenge = format!(r#"Bearer realm="http://{name}:{}/token""#, port(&service));
        registry.script(
            Kind::Head,
            ScriptedFault::Answer(401, vec![("www-authenticate", challenge)], String::new()),
        );
        let found = refusal(net.resolve("quay.test", &registry, 1).await);
        assert_eq!(found, expected, "{name}");
        assert_eq!(service.requests().len(), usize::from(expected.is_none()));
    }
}

#[tokio::test]
async fn redirect_to_internal_host_is_followed() {
    let mut net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4]), ("meta.test", &[6])]);
    net.settings.http.internal_hosts = ["lab.test", "meta.test"].map(String::from).into();
    for (name, last, expected) in [
        ("lab.test", 4, None),
        ("meta.test", 6, Some(RedirectRefusal::LinkLocal)),
    ] {
        let (registry, target) = (at(2).await, at(last).await);
        lead(&registry, name, &target);
        let found = refusal(net.resolve("quay.test", &registry, 1).await);
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn open_connection_is_not_reused_across_scopes() {
    let net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4])]);
    let (registry, lab) = (at(2).await, at(4).await);
    let images = net.images();
    let own = format!("lab.test:{}/ns/cat:v1", port(&lab)).parse().unwrap();
    images.session(&own).resolve("v1").await.unwrap();
    lead(&registry, "lab.test", &lab);
    let other = format!("quay.test:{}/ns/cat:v1", port(&registry)).parse().unwrap();
    let Err(Error::Server(error)) = images.session(&other).resolve("v1").await else {
        panic!("the connection was reused");
    };
    assert_eq!(refusal(Err(error.fault)), Some(RedirectRefusal::Private));
    assert_eq!(lab.requests().len(), 1);
}

#[tokio::test]
async fn name_without_addresses_is_a_connection_error() {
    let (net, registry) = (Net::new(&[]), at(2).await);
    let failed = net.resolve("quay.test", &registry, 1).await;
    assert!(
        matches!(failed, Err(ServerFault::Fetch(FetchError::Connect(_)))),
        "{failed:?}"
    );
}
