//! Where a request may be sent, be it by a redirect or by a token realm.

use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION};

use crate::registry::Fault;
use crate::registry::zone::Zone;
use crate::settings::Settings;

/// Where to go, and how near that may turn out to be.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    pub(crate) nearest: Zone,
}

/// Why a redirect, a token realm or a next page is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing that can be followed.
    #[error("the location is not a URL")]
    NotUrl,
    /// `file:`, `ftp:` and the like.
    #[error("it is not http")]
    Scheme,
    /// A secret that was sent in the open before stays in the open, but not with another host.
    #[error("the host is not listed under plainHttp")]
    PlainHttp,
    /// What was secret would be so no more.
    #[error("it leads from https to plain http")]
    Downgrade,
    /// Credentials are not taken from strangers, nor sent for them.
    #[error("the URL carries credentials")]
    Userinfo,
    /// What answers there depends on who asks, and may hand out this machine's identity.
    #[error("the address is link-local or a metadata service")]
    LinkLocal,
    /// It lies nearer than the one who leads there.
    #[error("the address is private")]
    Private,
    /// A loop, in all likelihood.
    #[error("there are too many redirects")]
    TooMany,
    /// Whoever lists the signatures of an image decides which there are.
    #[error("the next page of a list has to be the registry's own")]
    Elsewhere,
    /// A list in a circle.
    #[error("that page of the list was read before")]
    ReadBefore,
}

impl Refusal {
    /// Why an address there may not be connected to.
    pub(crate) fn of(zone: Zone) -> Self {
        match zone {
            Zone::Never => Self::LinkLocal,
            Zone::Internet | Zone::Site | Zone::Machine => Self::Private,
        }
    }
}

impl Hop {
    /// To the registry itself, which may be anywhere but where nobody may go: its operator has named it.
    pub(crate) fn home(url: Url) -> Result<Self, Fault> {
        let nearest = Zone::Machine;
        match too_near(&url, nearest) {
            Some(why) => Err(refused(&url, why)),
            None => Ok(Self { url, nearest }),
        }
    }

    /// To where a redirect of `self` leads, sent from within `sender`.
    pub(crate) fn redirect(&self, headers: &HeaderMap, sender: Zone, settings: &Settings) -> Result<Self, Fault> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| self.url.join(location).ok());
        let Some(to) = to else {
            return Err(refused(&self.url, Refusal::NotUrl));
        };
        if self.url.scheme() == "https" && to.scheme() == "http" && !settings.is_plain(&authority(&to)) {
            return Err(refused(&to, Refusal::Downgrade));
        }
        // Back to where we are is not nearer.
        let sender = if same_origin(&self.url, &to) {
            self.nearest
        } else {
            sender
        };
        Self::led(to, sender, settings)
    }

    /// To where someone within `sender` leads. Credentials and everything else go over TLS or to a listed host, and
    /// never nearer to this machine than the one who leads there, unless the host is listed for that.
    pub(crate) fn led(to: Url, sender: Zone, settings: &Settings) -> Result<Self, Fault> {
        let host = authority(&to);
        let nearest = if settings.is_internal(&host) {
            Zone::Machine
        } else {
            sender
        };
        let why = || match to.scheme() {
            "http" if !settings.is_plain(&host) => Some(Refusal::PlainHttp),
            _ => too_near(&to, nearest),
        };
        match unusable(&to).or_else(why) {
            Some(why) => Err(refused(&to, why)),
            None => Ok(Self { url: to, nearest }),
        }
    }
}

/// Why nobody may lead to a URL, wherever it is.
pub(crate) fn unusable(to: &Url) -> Option<Refusal> {
    match to.scheme() {
        "https" | "http" => (!to.username().is_empty() || to.password().is_some()).then_some(Refusal::Userinfo),
        _ => Some(Refusal::Scheme),
    }
}

/// Credentials stay with the scheme, host and port they were meant for.
pub(crate) fn same_origin(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin()
}

/// The host, with its port if one is written.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("nowhere");
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

pub(crate) fn refused(to: &Url, why: Refusal) -> Fault {
    Fault::Redirect { to: authority(to), why }
}

fn too_near(to: &Url, nearest: Zone) -> Option<Refusal> {
    Zone::written(to).filter(|zone| *zone > nearest).map(Refusal::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(from: &str, sender: Zone, location: &str) -> Result<Zone, Refusal> {
        let settings = Settings {
            plain_http: vec!["mirror:5000".to_owned()],
            internal_hosts: vec!["10.0.0.7".to_owned(), "localhost:9000".to_owned()],
            ..Settings::default()
        };
        let hop = Hop::home(Url::parse(from).unwrap()).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().unwrap());
        match hop.redirect(&headers, sender, &settings) {
            Ok(hop) => Ok(hop.nearest),
            Err(Fault::Redirect { why, .. }) => Err(why),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn redirects_stay_on_trusted_ground() {
        use {Refusal as R, Zone as Z};
        let from = "https://quay.io/v2/a/blobs/x";
        for (location, want) in [
            ("https://cdn.quay.io/x?sig=1", Ok(Z::Internet)),
            ("https://s3.amazonaws.com/x?X-Amz-Signature=1", Ok(Z::Internet)),
            ("/other", Ok(Z::Machine)),
            ("http://mirror:5000/x", Ok(Z::Internet)),
            ("http://quay.io/x", Err(R::Downgrade)),
            ("https://user:pw@quay.io/x", Err(R::Userinfo)),
            ("https://user@cdn.quay.io/x", Err(R::Userinfo)),
            ("https://169.254.169.254/latest/meta-data", Err(R::LinkLocal)),
            ("https://0xa9.254.43518/x", Err(R::LinkLocal)),
            ("https://[fe80::1]/x", Err(R::LinkLocal)),
            ("https://[::ffff:169.254.169.254]/x", Err(R::LinkLocal)),
            ("https://[fd00:ec2::254]/x", Err(R::LinkLocal)),
            ("https://metadata.google.internal/x", Err(R::LinkLocal)),
            ("https://127.1/x", Err(R::Private)),
            ("https://localhost/x", Err(R::Private)),
            ("https://10.0.0.8/x", Err(R::Private)),
            ("https://10.0.0.7:8443/x", Ok(Z::Machine)),
            ("https://localhost:9000/x", Ok(Z::Machine)),
            ("file:///etc/passwd", Err(R::Scheme)),
            ("ftp://example.com/x", Err(R::Scheme)),
            ("data:text/plain,x", Err(R::Scheme)),
            ("https://:1/", Err(R::NotUrl)),
        ] {
            assert_eq!(led(from, Z::Internet, location), want, "{location}");
        }
    }

    #[test]
    fn a_sender_may_lead_as_near_as_it_is_itself() {
        use {Refusal as R, Zone as Z};
        let lab = "https://10.0.0.9/v2/a/blobs/x";
        assert_eq!(led(lab, Z::Site, "https://10.0.0.8/x"), Ok(Z::Site));
        assert_eq!(led(lab, Z::Site, "https://cdn.example.com/x"), Ok(Z::Site));
        assert_eq!(led(lab, Z::Site, "https://127.0.0.1/x"), Err(R::Private));
        let own = "https://127.0.0.1:5000/v2/a/blobs/x";
        assert_eq!(led(own, Z::Machine, "https://127.0.0.1:9000/x"), Ok(Z::Machine));
        assert_eq!(led(own, Z::Machine, "https://169.254.169.254/x"), Err(R::LinkLocal));
    }

    #[test]
    fn nobody_can_be_asked_at_a_metadata_service() {
        let home = |url: &str| Hop::home(Url::parse(url).unwrap()).is_ok();
        assert!(home("https://127.0.0.1:5000/v2/") && home("https://10.0.0.1/v2/") && home("https://localhost/v2/"));
        assert!(!home("https://169.254.169.254/v2/") && !home("http://[fe80::1]:5000/v2/"));
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
