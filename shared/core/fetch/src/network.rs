//! Classes of network addresses by their distance from this machine, and host names to addresses,
//! checked again for every new connection.
//!
//! The ranges come from IANA's special-purpose registries (RFC 6890 and its successors). The
//! metadata services are at the addresses that the cloud providers document.
//!
//! A redirect is checked when it arrives, but the name in it can resolve to another address a
//! moment later (DNS rebinding). So the address that is connected to is checked as well.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::error::RedirectRefusal;

/// The distance of an address, from far to near.
///
/// A server may redirect to its own scope and to farther ones, never to a nearer one.
///
/// ```
/// use fetch::AddressScope;
///
/// assert_eq!(AddressScope::of("1.1.1.1".parse().unwrap()), AddressScope::Internet);
/// assert_eq!(AddressScope::of("10.0.0.1".parse().unwrap()), AddressScope::Site);
/// assert_eq!(AddressScope::of("169.254.169.254".parse().unwrap()), AddressScope::Forbidden);
/// assert!(AddressScope::Internet < AddressScope::Machine);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressScope {
    /// Globally routed addresses: the internet.
    Internet,
    /// Private and reserved addresses: the local network.
    Site,
    /// Loopback and unspecified addresses: this machine.
    Machine,
    /// Link-local and multicast addresses and cloud metadata services. They answer by who asks and
    /// can hand out this machine's identity, so no request may go there, not even a configured one.
    Forbidden,
}

/// Names of metadata services. They are checked as text because behind a proxy the name is not
/// resolved here.
const METADATA_NAMES: [&str; 4] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "instance-data.ec2.internal",
];

/// The pending answer of a [`Network::lookup`].
pub type AddressLookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Name resolution and the classification of addresses.
///
/// The default asks the system's resolver and uses [`AddressScope::of`]. Tests pass their own, so
/// that loopback addresses can stand for the internet.
#[derive(Clone)]
pub struct Network {
    /// Resolves a host name to its addresses, in order of preference.
    pub lookup: Arc<dyn Fn(String) -> AddressLookup + Send + Sync>,
    /// Classifies an address. Default: [`AddressScope::of`].
    pub scope: fn(IpAddr) -> AddressScope,
}

/// A DNS resolver for the HTTP client that drops addresses nearer than `nearest`.
pub(crate) struct ScopedResolver {
    pub(crate) network: Network,
    pub(crate) nearest: AddressScope,
}

impl AddressScope {
    /// Returns the reason to refuse an address of this scope that is too near.
    pub(crate) const fn refusal(self) -> RedirectRefusal {
        match self {
            Self::Forbidden => RedirectRefusal::LinkLocal,
            Self::Internet | Self::Site | Self::Machine => RedirectRefusal::Private,
        }
    }

    /// Returns the scope of an address. An IPv6 address that embeds an IPv4 address has the scope
    /// of the latter.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => embedded_v4(v6).map_or_else(|| of_v6(v6), of_v4),
        }
    }

    /// Returns the scope of a URL's host if it is visible without DNS: an address, `localhost` or a
    /// known metadata name.
    pub fn written_in(url: &Url) -> Option<Self> {
        let host = url.host_str()?;
        // The URL parser has already turned `0x7f.1`, `2130706433` and the like into dotted
        // addresses.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Some(Self::of(address));
        }
        let name = host.trim_end_matches('.');
        // RFC 6761 reserves these names for loopback, whatever a DNS server answers.
        if name == "localhost" || name.ends_with(".localhost") {
            return Some(Self::Machine);
        }
        if METADATA_NAMES.contains(&name) {
            return Some(Self::Forbidden);
        }
        None
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            lookup: Arc::new(|name| Box::pin(system_lookup(name))),
            scope: AddressScope::of,
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network")
    }
}

impl Network {
    /// Returns the addresses to connect to. Fails if all of them are nearer than the request may
    /// go.
    fn allowed(
        &self,
        found: &[IpAddr],
        nearest: AddressScope,
    ) -> Result<Vec<SocketAddr>, RedirectRefusal> {
        let mut allowed = Vec::new();
        let mut refused = None;
        // One by one: a name may have both a public and a private address, and the public one may
        // be used.
        for address in found {
            let scope = (self.scope)(*address);
            if scope <= nearest {
                // The client replaces port 0 by the port of the URL.
                allowed.push(SocketAddr::new(*address, 0));
            } else {
                refused = refused.max(Some(scope));
            }
        }
        match refused {
            Some(scope) if allowed.is_empty() => Err(scope.refusal()),
            _ => Ok(allowed),
        }
    }
}

impl Resolve for ScopedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let network = self.network.clone();
        let nearest = self.nearest;
        let found = (network.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let addresses: Addrs = Box::new(network.allowed(&found.await?, nearest)?.into_iter());
            Ok(addresses)
        })
    }
}

fn of_v4(address: Ipv4Addr) -> AddressScope {
    match address.octets() {
        // Linux connects 0.0.0.0 to loopback.
        [0 | 127, ..] => AddressScope::Machine,
        // The last three are metadata services outside of the ranges: Alibaba, Azure, Oracle.
        [169, 254, ..]
        | [224..=255, ..]
        | [100, 100, 100, 200]
        | [168, 63, 129, 16]
        | [192, 0, 0, 192] => AddressScope::Forbidden,
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [198, 18 | 19, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => AddressScope::Site,
        _ => AddressScope::Internet,
    }
}

/// Returns the scope of an IPv6 address without an embedded IPv4 address.
fn of_v6(address: Ipv6Addr) -> AddressScope {
    match address.segments() {
        // Link-local and multicast addresses, then metadata services: AWS, which uses several
        // addresses, Google, Scaleway.
        [0xfe80..=0xfebf | 0xff00..=0xffff, ..]
        | [0xfd00, 0xec2, ..]
        | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
        | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42] => AddressScope::Forbidden,
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => AddressScope::Machine,
        // Teredo and documentation.
        [0x2001, 0 | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressScope::Site,
        // Only 2000::/3 is globally routed.
        [0x2000..=0x3fff, ..] => AddressScope::Internet,
        _ => AddressScope::Site,
    }
}

/// Returns the IPv4 address inside an IPv6 address: mapped (RFC 4291), NAT64 (RFC 6052) or 6to4
/// (RFC 3056).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..]
        // The old IPv4-compatible form. Below 1.0.0.0 it would swallow `::` and `::1`.
        | [0, 0, 0, 0, 0, 0, high @ 0x100..=0xffff, low] => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    }
}

async fn system_lookup(name: String) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_of_address_follows_iana_registries() {
        for (scope, addresses) in [
            (
                AddressScope::Internet,
                "1.1.1.1 52.216.1.1 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 192.0.1.1 198.20.0.1 223.255.255.255 \
                 168.63.129.17 2606:4700::1 2a00::1 ::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101::1",
            ),
            (
                AddressScope::Site,
                "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 198.18.0.1 192.0.2.1 203.0.113.9 fc00::1 \
                 fd12::1 fec0::1 2001:db8::1 2001:0:1::1 3fff::1 100::1 5f00::1 64:ff9b:1::1 ::ffff:10.0.0.1 \
                 2002:a00:1::",
            ),
            (
                AddressScope::Machine,
                "127.0.0.1 127.255.0.9 0.0.0.0 0.1.2.3 :: ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 ::127.0.0.1",
            ),
            (
                AddressScope::Forbidden,
                "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 224.0.0.1 240.0.0.1 \
                 255.255.255.255 fe80::1 febf::1 ff02::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 \
                 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 2002:a9fe:a9fe:: ::169.254.169.254",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(
                    AddressScope::of(address.parse().unwrap()),
                    scope,
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn written_in_disguised_address_returns_real_scope() {
        use AddressScope::{Forbidden, Internet, Machine};
        let of_machine = "0x7f.1 2130706433 017700000001 127.1 LOCALHOST a.localhost.";
        let forbidden = "2852039166 0xa9.0xfe.0xa9.0xfe 169.254.169.254. [::ffff:a9fe:a9fe] ①⑥⑨.②⑤④.①⑥⑨.②⑤④ \
            metadata.google.internal.";
        for (scope, hosts) in [
            (Some(Machine), of_machine),
            (Some(Forbidden), forbidden),
            (Some(Internet), "8.8.8.8"),
            (None, "cdn.example.com"),
        ] {
            for host in hosts.split(' ') {
                let url = Url::parse(&format!("https://{host}/x")).unwrap();
                assert_eq!(AddressScope::written_in(&url), scope, "{host}");
            }
        }
    }

    fn allowed(nearest: AddressScope, found: &[&str]) -> Result<Vec<String>, RedirectRefusal> {
        let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let allowed = Network::default().allowed(&found, nearest);
        allowed.map(|kept| {
            kept.iter()
                .map(|address| address.ip().to_string())
                .collect()
        })
    }

    #[test]
    fn resolver_drops_addresses_nearer_than_allowed() {
        use AddressScope::{Internet, Machine, Site};
        let mixed = ["127.0.0.1", "10.0.0.1", "1.1.1.1", "169.254.169.254"];
        assert_eq!(allowed(Internet, &mixed).unwrap(), ["1.1.1.1"]);
        assert_eq!(allowed(Site, &mixed).unwrap(), ["10.0.0.1", "1.1.1.1"]);
        assert_eq!(allowed(Machine, &mixed).unwrap().len(), 3);
        assert_eq!(
            allowed(Internet, &["10.0.0.1", "::1"]),
            Err(RedirectRefusal::Private)
        );
        assert_eq!(
            allowed(Machine, &["169.254.169.254"]),
            Err(RedirectRefusal::LinkLocal)
        );
        assert_eq!(allowed(Internet, &[]), Ok(Vec::new()));
    }

    #[tokio::test]
    async fn default_lookup_resolves_localhost() {
        let found = (Network::default().lookup)("localhost".to_owned())
            .await
            .unwrap();
        assert!(
            found.iter().all(IpAddr::is_loopback) && !found.is_empty(),
            "{found:?}"
        );
    }
}
