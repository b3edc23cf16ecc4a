//! Where a redirect may lead.

use std::net::IpAddr;

use reqwest::{
    StatusCode, Url,
    header::{HeaderMap, LOCATION},
};

use super::HttpError;

pub(super) const fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect, if it may be followed.
pub(super) fn target(from: &Url, headers: &HeaderMap) -> Result<Url, HttpError> {
    let refused = |to: &str, why| HttpError::Redirect { to: to.to_owned(), why };
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|location| from.join(location).ok());
    let to = to.ok_or_else(|| refused("nowhere", "the location is not a URL"))?;
    match objection(from, &to) {
        Some(why) => Err(refused(to.host_str().unwrap_or("nowhere"), why)),
        None => Ok(to),
    }
}

/// Never from TLS to plain http, nor to an address that only this machine's neighbourhood can mean, such as a cloud's
/// metadata service.
fn objection(from: &Url, to: &Url) -> Option<&'static str> {
    match (from.scheme(), to.scheme()) {
        (_, "https") | ("http", "http") => {}
        (_, "http") => return Some("it leads from https to plain http"),
        _ => return Some("it is not http"),
    }
    let host = to.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if is_link_local(address) => Some("the address is link-local"),
        _ => None,
    }
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
        for (from, location, ok) in [
            ("https://cdn/x", "https://bucket.s3.example/x?X-Amz-Signature=1", true),
            ("https://cdn/x", "/other", true),
            ("https://cdn/x", "http://cdn/x", false),
            ("http://cdn/x", "http://other/x", true),
            ("http://cdn/x", "http://169.254.169.254/latest/meta-data", false),
            ("http://cdn/x", "https://[::ffff:169.254.169.254]/x", false),
            ("http://cdn/x", "https://[fd00:ec2::254]/x", false),
            ("http://cdn/x", "file:///etc/passwd", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            let found = target(&Url::parse(from).unwrap(), &headers);
            assert_eq!(found.is_ok(), ok, "{from} -> {location}");
        }
    }
}
