use std::collections::BTreeSet;

use layout::Snapshot;
use render::Rendering;

/// The share of packages that may disappear at once, in percent.
const GONE_MAX_PERCENT: usize = 30;

/// Why new content looks like an accident rather than an update.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Suspicion {
    /// An FBC without a single package.
    #[error("the image holds no packages at all; check the image, or force the poll to publish it as it is")]
    NoPackages,
    /// Too many packages are gone.
    #[error(
        "{gone} of {before} packages are gone, which is more than {GONE_MAX_PERCENT} % ({}); \
         check the image, or force the poll to publish it as it is",
        examples.join(", ")
    )]
    PackagesGone {
        /// How many.
        gone: usize,
        /// Of how many.
        before: usize,
        /// The first few of them.
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
    fn thirty_percent_may_go_but_no_more() {
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
    fn growth_is_never_suspicious() {
        assert_eq!(check(1, 0), Ok(()));
        assert_eq!(check(500, 10), Ok(()));
    }

    #[test]
    fn a_catalog_without_packages_is() {
        assert_eq!(check(0, 0), Err(Suspicion::NoPackages));
        assert_eq!(check(0, 5), Err(Suspicion::NoPackages));
    }
}
