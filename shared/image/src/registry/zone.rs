//! How near to this machine an address lies, and so who may lead there.
//!
//! The ranges are those of IANA's special-purpose registries (RFC 6890 and its successors); the metadata services are
//! where the clouds document them. What a name means is judged when it is connected to, in [`super::names`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// From far to near. Whoever lies in one zone may lead to it and to the farther ones, never to a nearer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Zone {
    /// Everybody's.
    Internet,
    /// Of this network, or of none that is routed.
    Site,
    /// This machine itself.
    Machine,
    /// What answers there depends on who asks, and may hand out this machine's identity: link-local addresses,
    /// metadata services, groups of machines. Nobody may lead there.
    Never,
}

/// Metadata services outside of the ranges that are refused anyway: Alibaba, Azure, Oracle.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same on IPv6: Google, Scaleway. AWS has several in `fd00:ec2::/32`.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

/// Names that only ever mean a metadata service, for when a proxy resolves them.
const METADATA_NAMES: [&str; 4] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "instance-data.ec2.internal",
];

impl Zone {
    /// Where an address lies.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => embedded(v6).map_or_else(|| of_v6(v6), of_v4),
        }
    }

    /// Where a URL leads, as far as it can be seen without asking DNS. The parser of URLs has already turned
    /// `0x7f.1`, `2130706433` and the like into addresses.
    pub(crate) fn written(url: &Url) -> Option<Self> {
        let host = url.host_str()?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Some(Self::of(address));
        }
        let name = host.trim_end_matches('.');
        // RFC 6761: these names mean loopback, whoever is asked.
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let is_metadata = METADATA_NAMES.contains(&name);
        match (is_local, is_metadata) {
            (true, _) => Some(Self::Machine),
            (_, true) => Some(Self::Never),
            _ => None,
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Zone {
    if METADATA_V4.contains(&address) {
        return Zone::Never;
    }
    match address.octets() {
        // Linux takes 0.0.0.0 for loopback.
        [0 | 127, ..] => Zone::Machine,
        [169, 254, ..] | [224..=255, ..] => Zone::Never,
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [198, 18 | 19, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Zone::Site,
        _ => Zone::Internet,
    }
}

/// Only 2000::/3 is routed to everybody, and not all of it.
fn of_v6(address: Ipv6Addr) -> Zone {
    let segments = address.segments();
    match segments {
        _ if METADATA_V6.contains(&address) => Zone::Never,
        [0xfd00, 0xec2, ..] | [0xfe80..=0xfebf | 0xff00..=0xffff, ..] => Zone::Never,
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Zone::Machine,
        // Teredo, documentation.
        [0x2001, 0 | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Zone::Site,
        [0x2000..=0x3fff, ..] => Zone::Internet,
        _ => Zone::Site,
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped (RFC 4291), by NAT64 (RFC 6052) or by 6to4 (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(join(high, low))
        }
        // The old compatible form, which has no address below 1.0.0.0.
        [0, 0, 0, 0, 0, 0, high @ 0x100..=0xffff, low] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lie_where_the_registries_of_addresses_say() {
        for (zone, addresses) in [
            (
                Zone::Internet,
                "1.1.1.1 52.216.1.1 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 192.0.1.1 198.20.0.1 223.255.255.255 \
                 168.63.129.17 2606:4700::1 2a00::1 ::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101::1",
            ),
            (
                Zone::Site,
                "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 198.18.0.1 192.0.2.1 203.0.113.9 fc00::1 \
                 fd12::1 fec0::1 2001:db8::1 2001:0:1::1 3fff::1 100::1 5f00::1 64:ff9b:1::1 ::ffff:10.0.0.1 \
                 2002:a00:1::",
            ),
            (
                Zone::Machine,
                "127.0.0.1 127.255.0.9 0.0.0.0 0.1.2.3 :: ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 ::127.0.0.1",
            ),
            (
                Zone::Never,
                "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 224.0.0.1 240.0.0.1 \
                 255.255.255.255 fe80::1 febf::1 ff02::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 \
                 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 2002:a9fe:a9fe:: ::169.254.169.254",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(Zone::of(address.parse().unwrap()), zone, "{address}");
            }
        }
    }

    #[test]
    fn a_disguise_of_numbers_is_seen_through() {
        for (host, zone) in [
            ("0x7f.1", Some(Zone::Machine)),
            ("2130706433", Some(Zone::Machine)),
            ("017700000001", Some(Zone::Machine)),
            ("127.1", Some(Zone::Machine)),
            ("2852039166", Some(Zone::Never)),
            ("0xa9.0xfe.0xa9.0xfe", Some(Zone::Never)),
            ("169.254.169.254.", Some(Zone::Never)),
            ("[::ffff:a9fe:a9fe]", Some(Zone::Never)),
            ("①⑥⑨.②⑤④.①⑥⑨.②⑤④", Some(Zone::Never)),
            ("LOCALHOST", Some(Zone::Machine)),
            ("a.localhost.", Some(Zone::Machine)),
            ("metadata.google.internal.", Some(Zone::Never)),
            ("8.8.8.8", Some(Zone::Internet)),
            ("cdn.example.com", None),
        ] {
            let url = Url::parse(&format!("https://{host}/x")).unwrap();
            assert_eq!(Zone::written(&url), zone, "{host}");
        }
    }
}
