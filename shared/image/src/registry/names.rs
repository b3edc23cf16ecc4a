//! Names to addresses, judged for every new connection: a name that meant something else a moment ago, when its
//! redirect was judged, gains nothing (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::registry::zone::Zone;

type Addresses = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Where names lead and addresses lie. A value, so that tests can have an internet of their own.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) lookup: Arc<dyn Fn(String) -> Addresses + Send + Sync>,
    pub(crate) zone: fn(IpAddr) -> Zone,
}

/// Resolves to addresses that lie no nearer than `nearest`.
pub(crate) struct Resolver {
    pub(crate) world: World,
    pub(crate) nearest: Zone,
}

/// A name has addresses, and none of them may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{name} is at an address that must not be connected to")]
pub(crate) struct TooNear {
    name: String,
    /// The nearest of its addresses.
    pub(crate) zone: Zone,
}

impl Default for World {
    fn default() -> Self {
        Self {
            lookup: Arc::new(|name| Box::pin(lookup(name))),
            zone: Zone::of,
        }
    }
}

impl Resolver {
    fn judge(&self, name: &str, found: &[IpAddr]) -> Result<Vec<SocketAddr>, TooNear> {
        let zone = |address: &&IpAddr| (self.world.zone)(**address);
        let allowed = found.iter().filter(|address| zone(address) <= self.nearest);
        // The client puts the port of the URL in the place of 0.
        let allowed: Vec<_> = allowed.map(|address| SocketAddr::new(*address, 0)).collect();
        match found.iter().map(|address| zone(&address)).max() {
            Some(zone) if allowed.is_empty() => Err(TooNear {
                name: name.to_owned(),
                zone,
            }),
            _ => Ok(allowed),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let resolver = Self {
            world: self.world.clone(),
            nearest: self.nearest,
        };
        Box::pin(async move {
            let found = (resolver.world.lookup)(name.clone()).await?;
            let addresses: Addrs = Box::new(resolver.judge(&name, &found)?.into_iter());
            Ok(addresses)
        })
    }
}

async fn lookup(name: String) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((name, 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(nearest: Zone, found: &[&str]) -> Result<Vec<String>, Zone> {
        let world = World::default();
        let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let judged = Resolver { world, nearest }.judge("name", &found);
        judged
            .map(|kept| kept.iter().map(|address| address.ip().to_string()).collect())
            .map_err(|error| error.zone)
    }

    #[test]
    fn only_addresses_that_are_far_enough_are_connected_to() {
        let mixed = ["127.0.0.1", "10.0.0.1", "1.1.1.1", "169.254.169.254"];
        assert_eq!(judged(Zone::Internet, &mixed).unwrap(), ["1.1.1.1"]);
        assert_eq!(judged(Zone::Site, &mixed).unwrap(), ["10.0.0.1", "1.1.1.1"]);
        assert_eq!(judged(Zone::Machine, &mixed).unwrap().len(), 3);
        assert_eq!(judged(Zone::Internet, &["10.0.0.1", "::1"]), Err(Zone::Machine));
        assert_eq!(judged(Zone::Machine, &["169.254.169.254"]), Err(Zone::Never));
        assert_eq!(judged(Zone::Internet, &[]), Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_name_is_looked_up() {
        let found = (World::default().lookup)("localhost".to_owned()).await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
    }
}
