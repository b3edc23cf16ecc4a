use std::collections::BTreeSet;

use model::Snapshot;
use render::Rendering;

/// Maximum share of packages that may disappear at once, in percent. Real catalogs lose a few packages a year.
const GONE_MAX_PERCENT: usize = 30;

/// New content that looks like an accident rather than an update.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Suspicion {
    /// The FBC has no packages at all.
    #[error("the image holds no packages at all; check the image, or force the poll to publish it as it is")]
    NoPackages,
    /// More than 30 % of the published packages are gone.
    #[error(
        "{gone} of {before} packages are gone, which is more than {GONE_MAX_PERCENT} % ({}); \
         check the image, or force the poll to publish it as it is",
        examples.join(", ")
    )]
    PackagesGone {
        /// Number of packages that are gone.
        gone: usize,
        /// Number of packages of the published state.
        before: usize,
        /// Names of at most five packages that are gone, in byte order.
        examples: Vec<String>,
    },
}

/// Compares a rendering with what is published.
pub(crate) fn check(rendering: &Rendering, previous: Option<&Snapshot>) -> Result<(), Suspicion> {
    let now = rendering.packages().collect();
    let before = previous.map(|snapshot| snapshot.packages.iter().map(|shard| shard.name.as_str()).collect());
    check_names(&now, &before.unwrap_or_default())
}

fn check_names(now: &BTreeSet<&str>, before: &BTreeSet<&str>) -> Result<(), Suspicion> {
    if now.is_empty() {
        return Err(Suspicion::NoPackages);
    }
    let gone = before.difference(now).count();
    // In integers: a rounded share of exactly 30 % could be taken for more.
    if gone * 100 > before.len() * GONE_MAX_PERCENT {
        let examples = before.difference(now).take(5).map(ToString::to_string).collect();
        return Err(Suspicion::PackagesGone {
            gone,
            before: before.len(),
            examples,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("p{at:03}")).collect()
    }

    fn check(now: usize, before: usize) -> Result<(), Suspicion> {
        let (now, before) = (names(now), names(before));
        check_names(
            &now.iter().map(String::as_str).collect(),
            &before.iter().map(String::as_str).collect(),
        )
    }

    #[test]
    fn check_allows_thirty_percent_and_refuses_more() {
        assert_eq!(check(70, 100), Ok(()));
        assert!(matches!(
            check(69, 100),
            Err(Suspicion::PackagesGone {
                gone: 31,
                before: 100,
                ..
            })
        ));
        assert_eq!(check(7, 10), Ok(()));
        assert!(check(6, 10).is_err());
    }

    #[test]
    fn check_allows_growth() {
        assert_eq!(check(1, 0), Ok(()));
        assert_eq!(check(500, 10), Ok(()));
    }

    #[test]
    fn check_refuses_a_catalog_without_packages() {
        assert_eq!(check(0, 0), Err(Suspicion::NoPackages));
        assert_eq!(check(0, 5), Err(Suspicion::NoPackages));
    }
}
