//! Targets of redirects, of token realms and of links to next pages, and the rules that they must
//! meet.

use reqwest::Url;
use reqwest::header::{HeaderMap, LINK, LOCATION};

use crate::error::{FetchError, RedirectRefusal, authority};
use crate::network::AddressScope;
use crate::settings::{FetchSettings, is_listed};

/// A URL to request, with the nearest address scope that it may resolve to.
#[derive(Debug, Clone)]
pub struct RedirectTarget {
    /// URL to request, with its scheme and host checked.
    pub url: Url,
    /// The nearest scope that may be connected to.
    pub nearest: AddressScope,
}

impl RedirectTarget {
    /// Starts at a URL from the configuration. It may be anywhere except in
    /// [`AddressScope::Forbidden`].
    ///
    /// # Errors
    /// [`FetchError::Redirect`] for a link-local address or a metadata service.
    pub fn configured(url: Url) -> Result<Self, FetchError> {
        let nearest = AddressScope::Machine;
        match too_near(&url, nearest) {
            Some(reason) => Err(reason.error(&url)),
            None => Ok(Self { url, nearest }),
        }
    }

    /// Follows the `Location` of an answer that came from within `sender`.
    ///
    /// # Errors
    /// [`FetchError::Redirect`] if the location breaks a rule.
    pub fn follow(
        &self,
        headers: &HeaderMap,
        sender: AddressScope,
        settings: &FetchSettings,
    ) -> Result<Self, FetchError> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| self.url.join(location).ok());
        let Some(to) = to else {
            return Err(RedirectRefusal::NotUrl.error(&self.url));
        };
        // The listed hosts only: the permission for every host is about the configured URL, and its
        // HTTPS redirects must not be downgraded.
        if self.url.scheme() == "https"
            && to.scheme() == "http"
            && !is_listed(&settings.plain_http, &authority(&to))
        {
            return Err(RedirectRefusal::Downgrade.error(&to));
        }
        // A redirect to the same server may stay as near as that server was allowed to be.
        let sender = if self.url.origin() == to.origin() {
            self.nearest
        } else {
            sender
        };
        Self::named_by(to, sender, settings)
    }

    /// Checks a URL that a server within `sender` named, such as a token realm. It must use TLS or
    /// a host that is listed for plain HTTP, and must not be nearer than `sender` unless the host
    /// is listed as internal.
    ///
    /// # Errors
    /// [`FetchError::Redirect`] if the URL breaks a rule.
    pub fn named_by(
        to: Url,
        sender: AddressScope,
        settings: &FetchSettings,
    ) -> Result<Self, FetchError> {
        let host = authority(&to);
        let nearest = if is_listed(&settings.internal_hosts, &host) {
            AddressScope::Machine
        } else {
            sender
        };
        if let Some(reason) = unusable(&to) {
            return Err(reason.error(&to));
        }
        if to.scheme() == "http" && !settings.allows_plain_http(&host) {
            return Err(RedirectRefusal::PlainHttp.error(&to));
        }
        if let Some(reason) = too_near(&to, nearest) {
            return Err(reason.error(&to));
        }
        Ok(Self { url: to, nearest })
    }
}

/// Returns the reason to refuse a URL wherever it leads: a scheme other than HTTP, or credentials
/// in it.
pub fn unusable(to: &Url) -> Option<RedirectRefusal> {
    if !matches!(to.scheme(), "https" | "http") {
        return Some(RedirectRefusal::Scheme);
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Some(RedirectRefusal::Userinfo);
    }
    None
}

fn too_near(to: &Url, nearest: AddressScope) -> Option<RedirectRefusal> {
    match AddressScope::written_in(to) {
        Some(scope) if scope > nearest => Some(scope.refusal()),
        _ => None,
    }
}

/// Returns the target of the first link to a next page in the `Link` header (RFC 8288, "Web
/// Linking"), as written.
pub fn next_link(headers: &HeaderMap) -> Option<String> {
    for field in headers.get_all(LINK) {
        let Ok(field) = field.to_str() else {
            continue;
        };
        // No URL holds angle brackets, so that each link begins at one.
        for link in field.split('<').skip(1) {
            if let Some(target) = next_in(link) {
                return Some(target.to_owned());
            }
        }
    }
    None
}

/// Returns the target of `TARGET>; PARAMETERS` if it is the next page.
fn next_in(link: &str) -> Option<&str> {
    let (target, parameters) = link.split_once('>')?;
    let parameters = parameters.trim_end_matches([',', ' ', '\t']);
    for parameter in parameters.split(';') {
        let Some((name, value)) = parameter.split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("rel") && value.eq_ignore_ascii_case("next") {
            return Some(target);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use AddressScope::{Internet, Machine, Site};
    use RedirectRefusal as R;

    use super::*;

    /// Follows a redirect from a server in a scope. Plain HTTP is allowed for one host, or for all.
    fn follow(
        from: &str,
        sender: AddressScope,
        location: &str,
        is_plain: bool,
    ) -> Result<AddressScope, R> {
        let settings = FetchSettings {
            plain_http: vec!["mirror:5000".to_owned()],
            plain_http_everywhere: is_plain,
            internal_hosts: vec!["10.0.0.7".to_owned(), "localhost:9000".to_owned()],
            ..FetchSettings::default()
        };
        let target = RedirectTarget::configured(Url::parse(from).unwrap()).unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
        match target.follow(&headers, sender, &settings) {
            Ok(target) => Ok(target.nearest),
            Err(FetchError::Redirect { reason, .. }) => Err(reason),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn redirect_meets_all_rules_of_its_sender() {
        let (far, site, own) = (
            "https://quay.io/a",
            "https://10.0.0.9/a",
            "https://127.0.0.1:5000/a",
        );
        for (from, sender, location, expected) in [
            (far, Internet, "https://cdn.quay.io/x?sig=1", Ok(Internet)),
            (
                far,
                Internet,
                "https://s3.io/x?X-Amz-Signature=1",
                Ok(Internet),
            ),
            (far, Internet, "/other", Ok(Machine)),
            (far, Internet, "http://mirror:5000/x", Ok(Internet)),
            (far, Internet, "http://quay.io/x", Err(R::Downgrade)),
            (far, Internet, "https://user:pw@quay.io/x", Err(R::Userinfo)),
            (
                far,
                Internet,
                "https://user@cdn.quay.io/x",
                Err(R::Userinfo),
            ),
            (
                far,
                Internet,
                "https://169.254.169.254/latest",
                Err(R::LinkLocal),
            ),
            (far, Internet, "https://[fe80::1]/x", Err(R::LinkLocal)),
            (far, Internet, "https://127.1/x", Err(R::Private)),
            (far, Internet, "https://localhost/x", Err(R::Private)),
            (far, Internet, "https://10.0.0.8/x", Err(R::Private)),
            (far, Internet, "https://10.0.0.7:8443/x", Ok(Machine)),
            (far, Internet, "https://localhost:9000/x", Ok(Machine)),
            (far, Internet, "file:///etc/passwd", Err(R::Scheme)),
            (far, Internet, "data:text/plain,x", Err(R::Scheme)),
            (far, Internet, "https://:1/", Err(R::NotUrl)),
            (site, Site, "https://10.0.0.8/x", Ok(Site)),
            (site, Site, "https://cdn.example.com/x", Ok(Site)),
            (site, Site, "https://127.0.0.1/x", Err(R::Private)),
            (own, Machine, "https://127.0.0.1:9000/x", Ok(Machine)),
            (own, Machine, "https://169.254.169.254/x", Err(R::LinkLocal)),
        ] {
            let found = follow(from, sender, location, false);
            assert_eq!(found, expected, "{from} -> {location}");
        }
    }

    #[test]
    fn plain_http_everywhere_follows_http_but_never_downgrades() {
        let (secure, plain) = ("https://cdn/x", "http://cdn/x");
        for (from, location, expected) in [
            (secure, "https://s3.io/x?X-Amz-Signature=1", Ok(Internet)),
            (secure, "/other", Ok(Machine)),
            (secure, plain, Err(R::Downgrade)),
            (plain, "http://other/x", Ok(Internet)),
            (plain, "http://other:99999/x", Err(R::NotUrl)),
            (plain, "http://10.0.0.1/x", Err(R::Private)),
            (
                plain,
                "http://metadata.google.internal/x",
                Err(R::LinkLocal),
            ),
        ] {
            let found = follow(from, Internet, location, true);
            assert_eq!(found, expected, "{from} -> {location}");
        }
    }

    #[test]
    fn configured_metadata_service_is_refused() {
        for url in ["https://169.254.169.254/v2/", "http://[fe80::1]:5000/v2/"] {
            let configured = RedirectTarget::configured(Url::parse(url).unwrap());
            assert!(configured.is_err(), "{url}");
        }
    }

    #[test]
    fn next_link_is_the_first_link_to_a_next_page() {
        let no_links = [
            r#"<a>; rel="nextish""#,
            "<a>; next",
            "<a>",
            "<a; rel=next",
            "a; rel=next",
            "",
        ];
        let list = r#"</v2/a/referrers/b?last=c,d>; rel="next""#;
        for (fields, expected) in [
            (&[list][..], Some("/v2/a/referrers/b?last=c,d")),
            (&["<https://a/b>;rel=next"], Some("https://a/b")),
            (&["  <b>  ; x=y ;  REL  =  NEXT  "], Some("b")),
            (
                &["<a>; rel=prev", "<b>; rel=next", "<c>; rel=next"],
                Some("b"),
            ),
            (
                &[r#"<a>; rel="prev", <b>; rel="next" , <c>; rel=last"#],
                Some("b"),
            ),
            (&["<>; rel=next"], Some("")),
            (&no_links, None),
            (&[], None),
        ] {
            let headers = fields.iter().map(|field| (LINK, field.parse().unwrap()));
            let found = next_link(&HeaderMap::from_iter(headers));
            assert_eq!(found.as_deref(), expected, "{fields:?}");
        }
    }
}
