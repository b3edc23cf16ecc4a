//! Where a request may be sent, be it by a redirect or by a token realm.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION};

use crate::registry::Fault;
use crate::settings::Settings;

/// The target of a redirect, if it may be followed.
pub(crate) fn target(from: &Url, headers: &HeaderMap, settings: &Settings) -> Result<Url, Fault> {
    let refused = |to: &str, why| Fault::Redirect { to: to.to_owned(), why };
    let location = headers
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let to = from
        .join(location)
        .map_err(|_| refused("nowhere", "the location is not a URL"))?;
    match objection(&to, from.scheme() == "http", settings) {
        Some(why) => Err(refused(to.host_str().unwrap_or("nowhere"), why)),
        None => Ok(to),
    }
}

/// Credentials and everything else go over TLS or to a listed host, and never to an address that only
/// this machine's neighbourhood can mean, such as a cloud's metadata service.
pub(crate) fn objection(to: &Url, already_plain: bool, settings: &Settings) -> Option<&'static str> {
    let host = to.host_str().unwrap_or_default();
    let with_port = to
        .port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    match to.scheme() {
        "https" => {}
        "http" if settings.is_plain(&with_port) => {}
        "http" if already_plain => return Some("the host is not listed under plainHttp"),
        "http" => return Some("it leads from https to plain http"),
        _ => return Some("it is not http"),
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if is_link_local(address) => Some("the address is link-local"),
        _ => None,
    }
}

/// Credentials stay with the scheme, host and port they were meant for.
pub(crate) fn same_origin(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.is_link_local(),
            // fd00:ec2::254 is where AWS answers on IPv6.
            None => v6.is_unicast_link_local() || v6.is_unspecified() || v6.segments()[..2] == [0xfd00, 0x0ec2],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_on_trusted_ground() {
        let settings = Settings {
            plain_http: vec!["mirror:5000".to_owned()],
            ..Settings::default()
        };
        let from = Url::parse("https://quay.io/v2/a/blobs/x").unwrap();
        for (location, ok) in [
            ("https://cdn.quay.io/x?sig=1", true),
            ("/other", true),
            ("http://mirror:5000/x", true),
            ("http://quay.io/x", false),
            ("https://169.254.169.254/latest/meta-data", false),
            ("https://[fe80::1]/x", false),
            ("https://[::ffff:169.254.169.254]/x", false),
            ("https://[fd00:ec2::254]/x", false),
            ("file:///etc/passwd", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            assert_eq!(target(&from, &headers, &settings).is_ok(), ok, "{location}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| same_origin(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
        assert!(same("https://a/x", "https://a:443/y"));
        assert!(!same("https://a/x", "https://a:444/x"));
        assert!(!same("https://a/x", "http://a/x"));
        assert!(!same("https://a/x", "https://b/x"));
    }
}
