use std::collections::BTreeSet;

/// Maximum share of packages that may disappear at once, in percent.
const GONE_MAX_PERCENT: usize = 30;

/// Compares the names of the packages. Real catalogs lose a few packages a year.
///
/// # Errors
/// No packages at all, or too many of them gone, with what can be done.
pub fn check_gone(now: &BTreeSet<&str>, before: &BTreeSet<&str>) -> Result<(), String> {
    const ADVICE: &str = "check the source, or publish it as it is with `--force`";
    if now.is_empty() {
        return Err(format!("it holds no packages at all; {ADVICE}"));
    }
    let gone = before.difference(now).count();
    // In integers: a rounded share of exactly 30 % could be taken for more.
    if gone * 100 > before.len() * GONE_MAX_PERCENT {
        let examples: Vec<&str> = before.difference(now).take(5).copied().collect();
        let count = before.len();
        let examples = examples.join(", ");
        return Err(format!(
            "{gone} of {count} packages are gone, which is more than {GONE_MAX_PERCENT} % ({examples}); {ADVICE}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_percent_of_the_packages_may_go_but_not_more() {
        let names: Vec<String> = (0..500).map(|at| format!("p{at:03}")).collect();
        let first = |count: usize| names[..count].iter().map(String::as_str).collect();
        let check = |now, before| check_gone(&first(now), &first(before)).unwrap_err();
        for (now, before) in [(70, 100), (7, 10), (1, 0), (500, 10)] {
            assert_eq!(check_gone(&first(now), &first(before)), Ok(()));
        }
        assert_eq!(
            check(69, 100),
            "31 of 100 packages are gone, which is more than 30 % (p069, p070, p071, p072, p073); \
             check the source, or publish it as it is with `--force`"
        );
        assert!(check(6, 10).starts_with("4 of 10 packages"));
        for before in [0, 5] {
            assert_eq!(
                check(0, before),
                "it holds no packages at all; check the source, or publish it as it is with `--force`"
            );
        }
    }
}
