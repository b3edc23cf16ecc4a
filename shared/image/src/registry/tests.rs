//! Names that lead near: an internet of its own, on the addresses of this machine.
//!
//! 127.0.0.2 and .3 pass for the internet, .4 and .5 for this network, .6 for a metadata service.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use testkit::{Fault as Trick, ImageBuilder, Kind, Layer, Registry};

use crate::registry::names::World;
use crate::registry::zone::Zone;
use crate::registry::{Client, Fault, Refusal};
use crate::settings::{Proxy, Retry, Settings};
use crate::{Error, Logins};

/// Where names lead: to the first of the addresses, the next time to the next, in the end always to the last.
type Names = Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>>;

struct Net {
    names: Names,
    settings: Settings,
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

fn zone(address: IpAddr) -> Zone {
    match address {
        IpAddr::V4(v4) if matches!(v4.octets()[3], 2 | 3) => Zone::Internet,
        IpAddr::V4(v4) if matches!(v4.octets()[3], 4 | 5) => Zone::Site,
        IpAddr::V4(v4) if v4.octets()[3] == 6 => Zone::Never,
        _ => Zone::Machine,
    }
}

impl Net {
    fn new(names: &[(&'static str, &[u8])]) -> Self {
        let names = names.iter().map(|(name, last)| (*name, last.to_vec())).collect();
        let logins = Logins::default();
        let entry = r#"{"username": "robot", "password": "hunter2"}"#;
        let text = format!(r#"{{"auths": {{"quay.test": {entry}}}}}"#);
        logins.set([("the vault", text.as_str())]).unwrap();
        Self {
            names: Arc::new(Mutex::new(names)),
            settings: Settings {
                logins,
                proxy: Proxy::Off,
                plain_http: ["quay.test", "cdn.test", "lab.test", "meta.test", "own.test"]
                    .map(String::from)
                    .into(),
                retry: Retry {
                    attempts: 1,
                    ..Retry::default()
                },
                ..Settings::default()
            },
        }
    }

    fn world(&self) -> World {
        let names = Arc::clone(&self.names);
        World {
            zone,
            lookup: Arc::new(move |name| {
                let found = look_up(&mut names.lock().unwrap(), &name);
                Box::pin(async move { found })
            }),
        }
    }

    /// Resolves `ns/cat:v1` of a registry of that name and port, with a client that does so `times`.
    async fn resolve(&self, name: &str, registry: &Registry, times: usize) -> Result<(), Fault> {
        let client = Client::within(self.world(), Arc::new(self.settings.clone())).unwrap();
        let mut last = Ok(());
        for _ in 0..times {
            let reference = format!("{name}:{}/ns/cat:v1", port(registry)).parse().unwrap();
            last = match client.session(&reference).resolve(&reference).await {
                Ok(_) => Ok(()),
                Err(Error::Registry(error)) => Err(error.fault),
                Err(other) => panic!("{other}"),
            };
        }
        last
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
    from.script(Kind::Head, Trick::Redirect(url));
}

fn refusal(result: Result<(), Fault>) -> Option<Refusal> {
    match result {
        Ok(()) => None,
        Err(Fault::Address { why } | Fault::Redirect { why, .. }) => Some(why),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_name_is_judged_by_where_it_leads() {
    let names: &[(&str, &[u8])] = &[
        ("quay.test", &[2]),
        ("cdn.test", &[3]),
        ("lab.test", &[4]),
        ("own.test", &[1]),
    ];
    for (home, leads, want) in [
        (2, ("cdn.test", 3), None),
        (2, ("lab.test", 4), Some(Refusal::Private)),
        (2, ("own.test", 1), Some(Refusal::Private)),
        (2, ("127.0.0.1", 1), Some(Refusal::PlainHttp)),
        (4, ("cdn.test", 3), None),
        (4, ("lab.test", 4), None),
        (4, ("own.test", 1), Some(Refusal::Private)),
        (1, ("own.test", 1), None),
        (1, ("lab.test", 4), None),
    ] {
        let net = Net::new(names);
        net.names.lock().unwrap().insert("quay.test", vec![home]);
        let (registry, target) = (at(home).await, at(leads.1).await);
        lead(&registry, leads.0, &target);
        let found = refusal(net.resolve("quay.test", &registry, 1).await);
        assert_eq!(found, want, "from {home} to {leads:?}");
        assert_eq!(target.requests().len(), usize::from(want.is_none()));
    }
}

#[tokio::test]
async fn a_metadata_service_is_out_of_reach_for_all_names() {
    let net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4]), ("meta.test", &[6])]);
    let meta = at(6).await;
    for (home, name) in [(2, "quay.test"), (4, "lab.test")] {
        let registry = at(home).await;
        lead(&registry, "meta.test", &meta);
        assert_eq!(refusal(net.resolve(name, &registry, 1).await), Some(Refusal::LinkLocal));
    }
    // Not even the operator's own word counts: a name may have been taken over.
    assert_eq!(
        refusal(net.resolve("meta.test", &meta, 1).await),
        Some(Refusal::LinkLocal)
    );
    assert_eq!(meta.requests().len(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_judged_again() {
    let net = Net::new(&[("quay.test", &[2]), ("cdn.test", &[3, 4])]);
    let (registry, cdn) = (at(2).await, at(3).await);
    let inner = Registry::builder().at(address(4)).start().await;
    cdn.script(Kind::Head, Trick::Header("connection", "close".to_owned()));
    (0..2).for_each(|_| lead(&registry, "cdn.test", &cdn));
    assert_eq!(
        refusal(net.resolve("quay.test", &registry, 2).await),
        Some(Refusal::Private)
    );
    assert_eq!((cdn.requests().len(), inner.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_realm_is_judged_like_a_redirect() {
    let net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4]), ("cdn.test", &[3])]);
    for (name, last, want) in [("lab.test", 4, Some(Refusal::Private)), ("cdn.test", 3, None)] {
        let (registry, service) = (at(2).await, at(last).await);
        let challenge = format!(r#"Bearer realm="http://{name}:{}/token""#, port(&service));
        registry.script(
            Kind::Head,
            Trick::Answer(401, vec![("www-authenticate", challenge)], String::new()),
        );
        assert_eq!(refusal(net.resolve("quay.test", &registry, 1).await), want, "{name}");
        assert_eq!(service.requests().len(), usize::from(want.is_none()));
    }
}

#[tokio::test]
async fn a_host_that_is_listed_may_be_led_to() {
    let mut net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4]), ("meta.test", &[6])]);
    net.settings.internal_hosts = ["lab.test", "meta.test"].map(String::from).into();
    for (name, last, want) in [("lab.test", 4, None), ("meta.test", 6, Some(Refusal::LinkLocal))] {
        let (registry, target) = (at(2).await, at(last).await);
        lead(&registry, name, &target);
        assert_eq!(refusal(net.resolve("quay.test", &registry, 1).await), want, "{name}");
    }
}

#[tokio::test]
async fn a_connection_of_one_who_may_is_not_lent_to_one_who_may_not() {
    let net = Net::new(&[("quay.test", &[2]), ("lab.test", &[4])]);
    let (registry, lab) = (at(2).await, at(4).await);
    let client = Client::within(net.world(), Arc::new(net.settings.clone())).unwrap();
    let own = format!("lab.test:{}/ns/cat:v1", port(&lab)).parse().unwrap();
    client.session(&own).resolve(&own).await.unwrap();
    lead(&registry, "lab.test", &lab);
    let other = format!("quay.test:{}/ns/cat:v1", port(&registry)).parse().unwrap();
    let Err(Error::Registry(error)) = client.session(&other).resolve(&other).await else {
        panic!("it was lent");
    };
    assert_eq!(refusal(Err(error.fault)), Some(Refusal::Private));
    assert_eq!(lab.requests().len(), 1);
}

#[tokio::test]
async fn a_name_without_addresses_cannot_be_connected_to() {
    let (net, registry) = (Net::new(&[]), at(2).await);
    let failed = net.resolve("quay.test", &registry, 1).await;
    assert!(matches!(failed, Err(Fault::Connect(_))), "{failed:?}");
}
