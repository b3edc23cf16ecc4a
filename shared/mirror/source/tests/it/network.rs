//! Host names that lead to near addresses, on a network of its own.
//!
//! 127.0.0.2 and .3 stand for the internet, .4 and .5 for the local network, .6 for a metadata
//! service.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use fetch::{AddressScope, Network};
use source::{Source, Sources};
use testkit::{Fault, Kind, Registry};

use crate::kit::{client_with, plain, push, small, verdict};

/// Names with the last number of their addresses. Several are for one lookup each, and the last one
/// is for all later ones.
const NAMES: [(&str, &[u8]); 7] = [
    ("cdn.test", &[3]),
    ("moving.test", &[3, 4]),
    ("lab.test", &[4]),
    ("own.test", &[1]),
    ("meta.test", &[6]),
    ("internal-lab.test", &[4]),
    ("internal-meta.test", &[6]),
];

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

/// Returns the next address of a name.
fn look_up(names: &mut BTreeMap<&str, Vec<u8>>, name: &str) -> io::Result<Vec<IpAddr>> {
    let found = names.get_mut(name);
    let last = found.ok_or_else(|| io::Error::other("there is no such name"))?;
    let now = if last.len() > 1 {
        last.remove(0)
    } else {
        last[0]
    };
    Ok(vec![address(now)])
}

/// A client for which `quay.test` is at the address `home`.
fn client(home: u8) -> Sources {
    let mut names: BTreeMap<_, _> = NAMES.map(|(name, last)| (name, last.to_vec())).into();
    names.insert("quay.test", vec![home]);
    let (hosts, names) = (names.keys().copied().collect::<Vec<_>>(), Mutex::new(names));
    client_with("unknown.test", |settings| {
        settings.http.plain_http.extend(plain(&hosts));
        settings.http.internal_hosts = plain(&["internal-lab.test", "internal-meta.test"]);
        settings.http.retry.attempts = Some(1);
        settings.http.network = Network {
            scope,
            lookup: Arc::new(move |name| {
                let found = look_up(&mut names.lock().unwrap(), &name);
                Box::pin(async move { found })
            }),
        };
    })
}

async fn registry_at(last: u8) -> Registry {
    let registry = Registry::builder().at(address(last)).start().await;
    push(&registry, &small());
    registry
}

fn port(registry: &Registry) -> &str {
    registry.host().rsplit_once(':').unwrap().1
}

/// Resolves `ns/cat:v1` of a registry under this name. Returns what came of it, in words.
async fn resolve(images: &Sources, name: &str, registry: &Registry) -> String {
    let source: Source = format!("{name}:{}/ns/cat:v1", port(registry))
        .parse()
        .unwrap();
    verdict(&images.resolve(&source).await)
}

/// Returns a redirect to the same image under another name.
fn redirect(name: &str, to: &Registry) -> Fault {
    Fault::Redirect(format!("http://{name}:{}/v2/ns/cat/manifests/v1", port(to)))
}

#[tokio::test]
async fn redirect_and_token_realm_are_checked_by_their_address() {
    for (home, name, last, want) in [
        (2, "cdn.test", 3, "read"),
        (2, "lab.test", 4, "refused: private"),
        (2, "own.test", 1, "refused: private"),
        (2, "127.0.0.1", 1, "refused: plain http"),
        (2, "meta.test", 6, "refused: link local"),
        (2, "internal-lab.test", 4, "read"),
        (2, "internal-meta.test", 6, "refused: link local"),
        (4, "cdn.test", 3, "read"),
        (4, "lab.test", 4, "read"),
        (4, "own.test", 1, "refused: private"),
        (4, "meta.test", 6, "refused: link local"),
        (1, "own.test", 1, "read"),
        (1, "lab.test", 4, "read"),
    ] {
        let (registry, target) = (registry_at(home).await, registry_at(last).await);
        let realm = format!(r#"Bearer realm="http://{name}:{}/token""#, port(&target));
        let challenge = Fault::Answer(401, vec![("www-authenticate", realm)], String::new());
        for fault in [redirect(name, &target), challenge] {
            let case = format!("from {home} to {name}: {fault:?}");
            registry.script(Kind::Head, fault);
            let before = target.requests().len();
            assert_eq!(
                resolve(&client(home), "quay.test", &registry).await,
                want,
                "{case}"
            );
            let asked = target.requests().len() - before;
            assert_eq!(asked, usize::from(want == "read"), "{case}");
        }
    }
}

/// Not even a configured name may lead to a metadata service: another owner may have taken the
/// name.
#[tokio::test]
async fn configured_name_of_metadata_service_is_refused() {
    let meta = registry_at(6).await;
    assert_eq!(
        resolve(&client(2), "meta.test", &meta).await,
        "refused: link local"
    );
    assert_eq!(meta.requests().len(), 0);
    assert_eq!(resolve(&client(2), "unknown.test", &meta).await, "connect");
}

#[tokio::test]
async fn name_with_changed_address_is_checked_again() {
    let (registry, cdn) = (registry_at(2).await, registry_at(3).await);
    let images = client(2);
    cdn.script(Kind::Head, Fault::Header("connection", "close".to_owned()));
    for want in ["read", "refused: private"] {
        registry.script(Kind::Head, redirect("moving.test", &cdn));
        assert_eq!(resolve(&images, "quay.test", &registry).await, want);
    }
    assert_eq!(cdn.requests().len(), 1);
}

#[tokio::test]
async fn open_connection_is_not_reused_across_scopes() {
    let (registry, lab, images) = (registry_at(2).await, registry_at(4).await, client(2));
    assert_eq!(resolve(&images, "lab.test", &lab).await, "read");
    registry.script(Kind::Head, redirect("lab.test", &lab));
    assert_eq!(
        resolve(&images, "quay.test", &registry).await,
        "refused: private"
    );
    assert_eq!(lab.requests().len(), 1);
}
