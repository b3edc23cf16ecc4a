use std::{fmt, str::FromStr};

use serde::Serialize;
use serde_with::DeserializeFromStr;

/// The name of a Catalog: a DNS-1123 subdomain, as Kubernetes names a `ClusterCatalog`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, DeserializeFromStr)]
pub struct CatalogName(String);

/// A text that is not a DNS-1123 subdomain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a catalog's name is a DNS-1123 subdomain (at most 253 characters: lower-case letters, digits, '-' and '.', \
     each part starting and ending with a letter or digit), not {0:?}"
)]
pub struct CatalogNameError(String);

impl CatalogName {
    /// The longest name that DNS-1123 allows.
    pub const MAX_LEN: usize = 253;

    /// Returns the name as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CatalogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for CatalogName {
    type Err = CatalogNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() <= Self::MAX_LEN && text.split('.').all(is_label) {
            return Ok(Self(text.to_owned()));
        }
        // Cut: the text may come from a request, and errors are logged.
        let start = text.chars().take(Self::MAX_LEN + 1);
        Err(CatalogNameError(start.collect()))
    }
}

/// Kubernetes checks the whole name against 253 characters but no part against DNS's 63.
fn is_label(part: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends = part.starts_with(is_alphanumeric) && part.ends_with(is_alphanumeric);
    ends && part.chars().all(|c| is_alphanumeric(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_accepted_only_if_it_is_a_dns_subdomain() {
        for good in [
            "a",
            "operatorhubio",
            "v4.20",
            "a-b.c-d",
            "0",
            &"a".repeat(253),
        ] {
            assert!(good.parse::<CatalogName>().is_ok(), "{good}");
        }
        let long = "a".repeat(254);
        for bad in "A,a_b,-a,a-,a..b,.,..,a/b,a.,.a,ä,a b,"
            .split(',')
            .chain([&*long])
        {
            assert!(bad.parse::<CatalogName>().is_err(), "{bad}");
        }
    }
}
