use std::{str::FromStr, time::Duration};

use image::Source;
use layout::{Availability, CatalogName};
use poll::Catalog;

/// `NAME=SOURCE` on the command line.
#[derive(Debug, Clone)]
pub struct Pair {
    name: CatalogName,
    source: Source,
}

impl Pair {
    pub(crate) fn catalog(&self, interval: Duration) -> Catalog {
        Catalog {
            name: self.name.clone(),
            source: self.source.clone(),
            availability: Availability::Available,
            interval: Some(interval),
            policy: None,
            lookaside: None,
        }
    }
}

impl FromStr for Pair {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, source) = text
            .split_once('=')
            .ok_or_else(|| anyhow::anyhow!("write NAME=SOURCE"))?;
        Ok(Self {
            name: name.parse()?,
            source: source.parse()?,
        })
    }
}
