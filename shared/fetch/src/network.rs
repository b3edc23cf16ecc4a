//! Host names to addresses, checked again for every new connection.
//!
//! A redirect is checked when it arrives, but the name in it can resolve to another address a moment later (DNS
//! rebinding). So the address that is connected to is checked as well.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::redirect::RedirectRefusal;
use crate::scope::AddressScope;

/// The pending answer of a [`Network::lookup`].
pub type AddressLookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Name resolution and the classification of addresses.
///
/// The default asks the system's resolver and uses [`AddressScope::of`]. Tests pass their own, so that loopback
/// addresses can stand for the internet.
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
    /// Returns the addresses to connect to. Fails if all of them are nearer than the request may go.
    fn allowed(&self, found: &[IpAddr], nearest: AddressScope) -> Result<Vec<SocketAddr>, RedirectRefusal> {
        let scope = |address: &&IpAddr| (self.scope)(**address);
        // Dropped one by one: a name may have both a public and a private address, and the public one may be used.
        let allowed = found.iter().filter(|address| scope(address) <= nearest);
        // The client replaces port 0 by the port of the URL.
        let allowed: Vec<_> = allowed.map(|address| SocketAddr::new(*address, 0)).collect();
        match found.iter().map(|address| scope(&address)).max() {
            Some(scope) if allowed.is_empty() => Err(RedirectRefusal::of_scope(scope)),
            _ => Ok(allowed),
        }
    }
}

impl Resolve for ScopedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (network, nearest) = (self.network.clone(), self.nearest);
        let found = (network.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let addresses: Addrs = Box::new(network.allowed(&found.await?, nearest)?.into_iter());
            Ok(addresses)
        })
    }
}

async fn system_lookup(name: String) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(nearest: AddressScope, found: &[&str]) -> Result<Vec<String>, RedirectRefusal> {
        let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let allowed = Network::default().allowed(&found, nearest);
        allowed.map(|kept| kept.iter().map(|address| address.ip().to_string()).collect())
    }

    #[test]
    fn resolver_drops_addresses_nearer_than_allowed() {
        use AddressScope::{Internet, Machine, Site};
        let mixed = ["127.0.0.1", "10.0.0.1", "1.1.1.1", "169.254.169.254"];
        assert_eq!(allowed(Internet, &mixed).unwrap(), ["1.1.1.1"]);
        assert_eq!(allowed(Site, &mixed).unwrap(), ["10.0.0.1", "1.1.1.1"]);
        assert_eq!(allowed(Machine, &mixed).unwrap().len(), 3);
        assert_eq!(allowed(Internet, &["10.0.0.1", "::1"]), Err(RedirectRefusal::Private));
        assert_eq!(allowed(Machine, &["169.254.169.254"]), Err(RedirectRefusal::LinkLocal));
        assert_eq!(allowed(Internet, &[]), Ok(Vec::new()));
    }

    #[tokio::test]
    async fn default_lookup_resolves_localhost() {
        let found = (Network::default().lookup)("localhost".to_owned()).await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
    }
}
