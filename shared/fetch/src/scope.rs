//! Classes of network addresses by their distance from this machine.
//!
//! The ranges come from IANA's special-purpose registries (RFC 6890 and its successors). The metadata services are at
//! the addresses that the cloud providers document. Host names are classified when a connection is made, in
//! [`network`](crate::network).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// The distance of an address, from far to near.
///
/// A server may redirect to its own scope and to farther ones, never to a nearer one.
///
/// ```
/// use catalog_mirror_fetch::AddressScope;
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
    /// Link-local and multicast addresses and cloud metadata services. They answer by who asks and can hand out this
    /// machine's identity, so no request may go there, not even a configured one.
    Forbidden,
}

/// Names of metadata services. They are checked as text because behind a proxy the name is not resolved here.
const METADATA_NAMES: [&str; 4] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "instance-data.ec2.internal",
];

impl AddressScope {
    /// Returns the scope of an address. An IPv6 address that embeds an IPv4 address has the scope of the latter.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => embedded_v4(v6).map_or_else(|| of_v6(v6), of_v4),
        }
    }

    /// Returns the scope of a URL's host if it is visible without DNS: an address, `localhost` or a known metadata name.
    pub fn written_in(url: &Url) -> Option<Self> {
        let host = url.host_str()?;
        // The URL parser has already turned `0x7f.1`, `2130706433` and the like into dotted addresses.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Some(Self::of(address));
        }
        let name = host.trim_end_matches('.');
        // RFC 6761 reserves these names for loopback, whatever a DNS server answers.
        if name == "localhost" || name.ends_with(".localhost") {
            return Some(Self::Machine);
        }
        METADATA_NAMES.contains(&name).then_some(Self::Forbidden)
    }
}

fn of_v4(address: Ipv4Addr) -> AddressScope {
    match address.octets() {
        // Linux connects 0.0.0.0 to loopback.
        [0 | 127, ..] => AddressScope::Machine,
        // The last three are metadata services outside of the ranges: Alibaba, Azure, Oracle.
        [169, 254, ..] | [224..=255, ..] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            AddressScope::Forbidden
        }
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
        // Link-local and multicast addresses, then metadata services: AWS, which uses several addresses, Google, Scaleway.
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

/// Returns the IPv4 address inside an IPv6 address: mapped (RFC 4291), NAT64 (RFC 6052) or 6to4 (RFC 3056).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(join(high, low))
        }
        // The old IPv4-compatible form. Below 1.0.0.0 it would swallow `::` and `::1`.
        [0, 0, 0, 0, 0, 0, high @ 0x100..=0xffff, low] => Some(join(high, low)),
        _ => None,
    }
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
                assert_eq!(AddressScope::of(address.parse().unwrap()), scope, "{address}");
            }
        }
    }

    #[test]
    fn written_in_disguised_address_returns_real_scope() {
        use AddressScope::{Forbidden, Internet, Machine};
        for (host, scope) in [
            ("0x7f.1", Some(Machine)),
            ("2130706433", Some(Machine)),
            ("017700000001", Some(Machine)),
            ("127.1", Some(Machine)),
            ("2852039166", Some(Forbidden)),
            ("0xa9.0xfe.0xa9.0xfe", Some(Forbidden)),
            ("169.254.169.254.", Some(Forbidden)),
            ("[::ffff:a9fe:a9fe]", Some(Forbidden)),
            ("①⑥⑨.②⑤④.①⑥⑨.②⑤④", Some(Forbidden)),
            ("LOCALHOST", Some(Machine)),
            ("a.localhost.", Some(Machine)),
            ("metadata.google.internal.", Some(Forbidden)),
            ("8.8.8.8", Some(Internet)),
            ("cdn.example.com", None),
        ] {
            let url = Url::parse(&format!("https://{host}/x")).unwrap();
            assert_eq!(AddressScope::written_in(&url), scope, "{host}");
        }
    }
}
