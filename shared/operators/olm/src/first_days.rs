//! Days on which the mirror first saw the bundles of a catalog. A new document takes them from those
//! of the states that had the bundles before.

use model::{Facts, SeenPackage};

use crate::Day;

/// Maximum size of all names in the document, in bytes: twenty times those of the largest real
/// catalog. A bundle beyond it has no day.
const NAMES_MAX: usize = 4 << 20;

/// Maximum length of the name of a bundle that is recorded, in bytes: that of an object in a
/// cluster.
const NAME_MAX: usize = 253;

/// Names of the bundles of a package.
#[derive(Debug)]
pub struct PackageBundles<'a> {
    /// Name of the package.
    pub package: &'a str,
    /// Names of its bundles.
    pub bundles: Vec<&'a str>,
}

/// Returns the days of the bundles of new content. Those of bundles that are gone stay, because
/// they may come back.
pub fn first_days<'a>(
    known: Vec<Facts<SeenPackage>>,
    today: Day,
    content: impl Iterator<Item = PackageBundles<'a>>,
) -> Facts<SeenPackage> {
    let mut days = Facts::new(SeenPackage::VERSION);
    let starts = known.iter().filter_map(|known| known.packages.get(""));
    let starts = starts.filter_map(|all| all.since.parse().ok());
    let since: Day = starts.min().unwrap_or(today).min(today);
    let start = SeenPackage {
        since: since.to_string(),
        ..SeenPackage::default()
    };
    days.packages.insert(String::new(), start);
    let mut left = NAMES_MAX;
    for PackageBundles { package, bundles } in content {
        for bundle in bundles {
            let days_before = known.iter();
            let days_before = days_before.filter_map(|known| known.packages.get(package));
            let days_before = days_before.filter_map(|package| package.bundles.get(bundle));
            let days_before = days_before.filter_map(|day| day.parse().ok());
            let day: Day = days_before.min().unwrap_or(today).min(today);
            add(&mut days, &mut left, package, bundle, day);
        }
    }
    for known in known {
        for (package, seen) in known.packages {
            for (bundle, day) in seen.bundles {
                if let Ok(day) = day.parse() {
                    add(&mut days, &mut left, &package, &bundle, day);
                }
            }
        }
    }
    days
}

/// Adds a bundle that the document lacks, if it has room. Of two days of a bundle that is gone the
/// first one stays.
fn add(days: &mut Facts<SeenPackage>, left: &mut usize, package: &str, bundle: &str, day: Day) {
    let found = days.packages.get(package);
    if bundle.len() > NAME_MAX || found.is_some_and(|seen| seen.bundles.contains_key(bundle)) {
        return;
    }
    let names = bundle.len() + found.map_or(package.len(), |_| 0);
    let Some(rest) = left.checked_sub(names) else {
        return;
    };
    *left = rest;
    let seen = days.packages.entry(package.to_owned()).or_default();
    seen.bundles.insert(bundle.to_owned(), day.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(
        known: Vec<Facts<SeenPackage>>,
        bundles: &[&str],
        today: &str,
    ) -> Facts<SeenPackage> {
        let content = PackageBundles {
            package: "a",
            bundles: bundles.to_vec(),
        };
        let today = today.parse().unwrap();
        first_days(known, today, [content].into_iter())
    }

    fn day_of<'d>(days: &'d Facts<SeenPackage>, bundle: &str) -> Option<&'d str> {
        days.packages
            .get("a")?
            .bundles
            .get(bundle)
            .map(String::as_str)
    }

    #[test]
    fn bundle_keeps_its_first_day_also_if_it_was_gone() {
        let first = published(Vec::new(), &["v1"], "2026-11-01");
        let second = published(vec![first], &["v1", "v2"], "2026-11-02");
        assert_eq!(day_of(&second, "v1"), Some("2026-11-01"));
        assert_eq!(day_of(&second, "v2"), Some("2026-11-02"));
        assert_eq!(second.packages[""].since, "2026-11-01");
        let without = published(vec![second], &["v1"], "2026-11-03");
        let again = published(vec![without], &["v2"], "2026-11-04");
        assert_eq!(day_of(&again, "v2"), Some("2026-11-02"));
    }

    #[test]
    fn of_several_states_the_earliest_day_counts_and_no_later_one_than_today() {
        let late = published(Vec::new(), &["v1"], "2026-11-09");
        let early = published(Vec::new(), &["v1"], "2026-11-05");
        for known in [vec![late.clone(), early.clone()], vec![early, late]] {
            let merged = published(known, &["v1"], "2026-11-20");
            assert_eq!(day_of(&merged, "v1"), Some("2026-11-05"));
            assert_eq!(merged.packages[""].since, "2026-11-05");
        }
        let ahead = published(Vec::new(), &["v1"], "2030-01-01");
        let now = published(vec![ahead], &["v1"], "2026-11-20");
        assert_eq!(day_of(&now, "v1"), Some("2026-11-20"));
        assert_eq!(now.packages[""].since, "2026-11-20");
    }

    #[test]
    fn days_of_another_program_that_are_none_do_not_count() {
        let mut known = published(Vec::new(), &["v1"], "2026-11-01");
        let bundles = &mut known.packages.get_mut("a").unwrap().bundles;
        bundles.insert("v1".to_owned(), "<script>".to_owned());
        bundles.insert("gone".to_owned(), "0".to_owned());
        let days = published(vec![known], &["v1"], "2026-11-02");
        assert_eq!(day_of(&days, "v1"), Some("2026-11-02"));
        assert_eq!(day_of(&days, "gone"), None);
    }

    #[test]
    fn names_beyond_the_limit_have_no_day() {
        let (fits, long) = ("b".repeat(NAME_MAX), "b".repeat(NAME_MAX + 1));
        let days = published(Vec::new(), &[&fits, &long], "2026-11-01");
        assert!(day_of(&days, &fits).is_some() && day_of(&days, &long).is_none());
        let names: Vec<String> = (0..=NAMES_MAX / NAME_MAX)
            .map(|number| format!("{number:0>NAME_MAX$}"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let days = published(Vec::new(), &names, "2026-11-01");
        // The name of the package counts too.
        assert_eq!(days.packages["a"].bundles.len(), (NAMES_MAX - 1) / NAME_MAX);
    }
}
