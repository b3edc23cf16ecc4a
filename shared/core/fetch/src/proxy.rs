//! The proxy of a request, by the rules of Go's `golang.org/x/net/http/httpproxy`, for which most
//! environments are written.

use std::{fmt, net::IpAddr, sync::LazyLock};

use ipnet::IpNet;
use reqwest::Url;

use crate::error::FetchError;

/// Reasons for which a proxy cannot be used.
const CGI: &str = "HTTP_PROXY is not trusted beside REQUEST_METHOD, as in a CGI program, whose clients choose it: unset one of them";
const SCHEME: &str = "its scheme is not http, https, socks5 or socks5h";

/// Proxies that the environment names: `HTTPS_PROXY` and `HTTP_PROXY`, else `ALL_PROXY`, except for
/// `NO_PROXY`.
static ENVIRONMENT: LazyLock<Proxy> = LazyLock::new(|| Proxy::of(|name| std::env::var(name).ok()));

/// Returns the URL of the proxy that the environment names for a URL, for clients other than
/// [`Fetcher`](crate::Fetcher). `None` if the server is asked directly.
///
/// # Errors
/// The reason for which the proxy cannot be used, for people.
pub fn proxy_of_environment(url: &str) -> Result<Option<String>, String> {
    let url = url
        .parse()
        .map_err(|error| format!("{url} is no URL: {error}"))?;
    let proxy = ENVIRONMENT
        .for_url(&url)
        .map_err(|error| error.to_string())?;
    Ok(proxy.map(|proxy| proxy.as_str().to_owned()))
}

/// Proxies, and the hosts that are reached without them. Default: none, all servers are asked
/// directly.
#[derive(Clone, Default)]
pub struct Proxy {
    https: Option<Url>,
    http: Option<Url>,
    direct: Vec<DirectHosts>,
    /// True in a program that a web server runs: there `HTTP_PROXY` is the `Proxy` header of a
    /// client.
    is_cgi: bool,
}

/// Entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DirectHosts {
    All,
    /// A network, or one address.
    Network {
        network: IpNet,
        port: Option<u16>,
    },
    Names {
        /// Domain and what is below it; with a dot in front only the latter.
        domain: String,
        port: Option<u16>,
    },
}

impl Proxy {
    /// Returns the proxies that the environment names.
    pub fn of_environment() -> Self {
        ENVIRONMENT.clone()
    }

    /// Reads these variables. Proxies that are not URLs are logged and ignored, as Go ignores them.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let names = [name, &name.to_ascii_lowercase()];
            let mut values = names.into_iter().filter_map(&variable);
            values.find(|value| !value.is_empty())
        };
        let proxy = |name: &str| {
            let url = proxy_url(&either(name)?);
            if url.is_none() {
                // The value may hold a password.
                tracing::warn!(name, "ignored a proxy that is not a URL");
            }
            url
        };
        let no_proxy = either("NO_PROXY").unwrap_or_default();
        Self {
            https: proxy("HTTPS_PROXY").or_else(|| proxy("ALL_PROXY")),
            http: proxy("HTTP_PROXY").or_else(|| proxy("ALL_PROXY")),
            direct: no_proxy.split(',').filter_map(DirectHosts::read).collect(),
            is_cgi: either("REQUEST_METHOD").is_some(),
        }
    }

    /// Returns the proxy of a request; `None` if it goes to the server itself.
    ///
    /// # Errors
    /// [`FetchError::Proxy`].
    pub(crate) fn for_url(&self, url: &Url) -> Result<Option<&Url>, FetchError> {
        let proxy = match url.scheme() {
            "https" => self.https.as_ref(),
            "http" if self.http.is_some() && self.is_cgi => return Err(FetchError::Proxy(CGI)),
            "http" => self.http.as_ref(),
            _ => None,
        };
        let Some(proxy) = proxy else {
            return Ok(None);
        };
        if self.is_direct(url) {
            return Ok(None);
        }
        match proxy.scheme() {
            "http" | "https" | "socks5" | "socks5h" => Ok(Some(proxy)),
            // The HTTP client would go to the server itself.
            _ => Err(FetchError::Proxy(SCHEME)),
        }
    }

    fn is_direct(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return true;
        };
        let address = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => Some(address.to_canonical()),
            Err(_) => None,
        };
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let mut direct = self.direct.iter();
        direct.any(|hosts| hosts.hold(host, address, port))
    }
}

/// Prints no URL, because it may hold a password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("direct", &self.direct)
            .finish_non_exhaustive()
    }
}

impl DirectHosts {
    /// Reads one entry. Others than Go's are ignored.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        if text == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = text.parse() {
            return Some(Self::Network {
                network,
                port: None,
            });
        }
        let (host, port) = split_port(&text)?;
        if let Ok(address) = host.parse::<IpAddr>() {
            let network = address.to_canonical().into();
            return Some(Self::Network { network, port });
        }
        if host.is_empty() {
            return None;
        }
        let domain = match host.strip_prefix("*.").or_else(|| host.strip_prefix('.')) {
            Some(below) => format!(".{}", ascii(below)),
            None => ascii(host),
        };
        Some(Self::Names { domain, port })
    }

    fn hold(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let (Self::Network { port: wanted, .. } | Self::Names { port: wanted, .. }) = self else {
            return true;
        };
        if wanted.is_some_and(|wanted| wanted != port) {
            return false;
        }
        match (self, address) {
            (Self::Network { network, .. }, Some(address)) => network.contains(&address),
            (Self::Names { domain, .. }, None) => {
                let Some(rest) = host.strip_suffix(domain.as_str()) else {
                    return false;
                };
                rest.is_empty() || rest.ends_with('.') || domain.starts_with('.')
            }
            _ => false,
        }
    }
}

/// Returns the host and the port of `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`; `None` for a port that
/// is none.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, port),
            _ => (text, ""),
        },
    };
    if port.is_empty() {
        return Some((host, None));
    }
    port.parse().ok().map(|port| (host, Some(port)))
}

/// Returns a name as it is in URLs, where it has no other letters than those of ASCII.
fn ascii(name: &str) -> String {
    if name.is_ascii() {
        return name.to_owned();
    }
    let url = Url::parse(&format!("http://{name}")).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.unwrap_or(name).to_owned()
}

/// Returns the URL of a proxy, which may lack its scheme.
fn proxy_url(text: &str) -> Option<Url> {
    let url = match Url::parse(text) {
        Ok(url) if url.has_host() => url,
        _ => Url::parse(&format!("http://{text}")).ok()?,
    };
    // The HTTP client ignores a proxy that it cannot parse.
    url.as_str().parse::<http::Uri>().ok()?;
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the proxy of a URL, or the error. The environment is `NAME=VALUE` with spaces
    /// between.
    fn proxy_of(environment: &str, url: &str) -> Result<Option<String>, String> {
        let variables = environment
            .split(' ')
            .filter_map(|variable| variable.split_once('='));
        let rules = Proxy::of(|wanted| {
            let found = variables.clone().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.to_owned())
        });
        let url = Url::parse(url).unwrap();
        let found = rules.for_url(&url).map_err(|error| error.to_string())?;
        Ok(found.map(|url| url.as_str().trim_end_matches('/').to_owned()))
    }

    /// Most rows are facts about Go's `httpproxy`. The result is a proxy, `none`, or a part of the
    /// error.
    #[test]
    fn proxy_is_that_of_the_scheme() {
        const BOTH: &str = "HTTP_PROXY=http.proxy.tld HTTPS_PROXY=secure.proxy.tld";
        const CGI: &str = "HTTP_PROXY=a HTTPS_PROXY=b REQUEST_METHOD=GET";
        for (environment, url, proxy) in [
            (
                "HTTP_PROXY=127.0.0.1:8080",
                "http://a.io/",
                "http://127.0.0.1:8080",
            ),
            (
                "HTTP_PROXY=cache.io:1234",
                "http://a.io/",
                "http://cache.io:1234",
            ),
            ("HTTP_PROXY=localhost", "http://a.io/", "http://localhost"),
            (
                "HTTP_PROXY=https://cache.io",
                "http://a.io/",
                "https://cache.io",
            ),
            (
                "HTTP_PROXY=socks5://127.0.0.1",
                "http://a.io/",
                "socks5://127.0.0.1",
            ),
            ("HTTP_PROXY=http.proxy.tld", "https://a.io/", "none"),
            ("HTTP_PROXY=http.proxy.tld", "ftp://a.io/", "none"),
            (BOTH, "http://a.io/", "http://http.proxy.tld"),
            (BOTH, "https://a.io/", "http://secure.proxy.tld"),
            (
                "HTTPS_PROXY=https://secure.tld",
                "https://a.io/",
                "https://secure.tld",
            ),
            ("https_proxy=a", "https://a.io/", "http://a"),
            ("HTTPS_PROXY= https_proxy=a", "https://a.io/", "http://a"),
            ("HTTPS_PROXY=b https_proxy=a", "https://a.io/", "http://b"),
            ("", "http://a.io/", "none"),
            // Not read by Go, but by curl.
            ("ALL_PROXY=a HTTPS_PROXY=b", "https://a.io/", "http://b"),
            ("all_proxy=a HTTPS_PROXY=b", "http://a.io/", "http://a"),
            // An error, and not passed by.
            ("HTTP_PROXY=foo://host", "http://a.io/", "scheme"),
            (CGI, "http://a.io/", "REQUEST_METHOD"),
            (CGI, "https://a.io/", "http://b"),
            ("HTTPS_PROXY=b REQUEST_METHOD=GET", "http://a.io/", "none"),
        ] {
            match proxy_of(environment, url) {
                Ok(found) => assert_eq!(
                    found.as_deref().unwrap_or("none"),
                    proxy,
                    "{environment} {url}"
                ),
                Err(error) => assert!(error.contains(proxy), "{environment} {url}: {error}"),
            }
        }
        let proxy =
            Proxy::of(|name| (name == "ALL_PROXY").then(|| "http://user:hunter2@proxy".to_owned()));
        assert!(!format!("{proxy:?}").contains("hunter2"));
    }

    /// The rows are facts about Go's `httpproxy`.
    #[test]
    fn no_proxy_lists_names_addresses_and_networks() {
        let list = "foobar.com,.barbaz.net,*.wildcard.io,192.168.1.1,192.168.1.2:81,192.168.1.3:80,10.0.0.0/30,\
            2001:db8::52:0:1,[2001:db8::52:0:2]:443,[2001:db8::52:0:3]:80,2002:db8:a::45/64";
        let direct = "localhost 127.0.0.1 127.0.0.2 [::1] [::ffff:127.0.0.1] 192.168.1.1 192.168.1.3 10.0.0.2 \
            [2001:db8::52:0:1] [2001:db8::52:0:3] [2002:db8:a::123] www.barbaz.net foobar.com www.foobar.com FOOBAR.com \
            nested.wildcard.io";
        let proxied = "[::2] 192.168.1.2 192.168.1.4 [2001:db8::52:0:2] [fe80::424b:c8be:1643:a1b6] barbaz.net \
            foofoobar.com baz.com localhost.net local.localhost barbarbaz.net wildcard.io awildcard.io";
        for (list, hosts, is_direct) in [
            (list, direct, true),
            (list, proxied, false),
            (
                "*",
                "localhost 127.0.0.1 [::2] 192.168.1.4 awildcard.io",
                true,
            ),
            (":1", "example.com", false),
            ("ample.com", "example.com", false),
            ("a.io:80,b.io:81,c.io:", "a.io c.io", true),
            ("a.io:80,b.io:81,c.io:x", "b.io c.io", false),
            (".示例.com", "www.示例.com www.xn--fsq092h.com", true),
            ("xn--fsq092h.com", "www.示例.com", true),
            ("示例.com", "www.xn--fsq092h.com xn--fsq092h.com", true),
        ] {
            for host in hosts.split(' ') {
                let found = proxy_of(
                    &format!("HTTP_PROXY=proxy NO_PROXY={list}"),
                    &format!("http://{host}/"),
                );
                assert_eq!(found.unwrap().is_none(), is_direct, "{list}: {host}");
            }
        }
        let spaced = Proxy::of(|name| (name == "NO_PROXY").then(|| " a.io , b.io".to_owned()));
        let names = ["a.io", "b.io"].map(|name| (name.to_owned(), None));
        let names = names.map(|(domain, port)| DirectHosts::Names { domain, port });
        assert_eq!(spaced.direct, names);
    }
}
