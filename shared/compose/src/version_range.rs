use std::{cmp::Ordering, fmt, str::FromStr};

use semver::Version;
use serde::{Deserialize, Serialize};

/// Range of versions, by the rules of blang/semver: `>=1.0.0 <2.0.0 || 3.x`. A comma means the same as a space.
///
/// Pre-releases are compared like other versions, and build metadata is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VersionRange {
    text: String,
    /// Lists of which one must hold as a whole.
    any_of: Vec<Vec<Comparator>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparator {
    /// Results of the comparison of a version with this one that lie in the range.
    accepted: &'static [Ordering],
    version: Version,
}

/// Text that is not a range of versions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{range:?} is not a range of versions such as \">=1.0.0 <2.0.0\": {problem}")]
pub struct VersionRangeError {
    range: String,
    problem: String,
}

const EQUAL: &[Ordering] = &[Ordering::Equal];
const LESS: &[Ordering] = &[Ordering::Less];
const AT_MOST: &[Ordering] = &[Ordering::Less, Ordering::Equal];
const AT_LEAST: &[Ordering] = &[Ordering::Greater, Ordering::Equal];
const OTHER: &[Ordering] = &[Ordering::Less, Ordering::Greater];

const OPERATORS: &[(&str, &[Ordering])] = &[
    ("", EQUAL),
    ("=", EQUAL),
    ("==", EQUAL),
    ("!", OTHER),
    ("!=", OTHER),
    ("<", LESS),
    ("<=", AT_MOST),
    (">", &[Ordering::Greater]),
    (">=", AT_LEAST),
];

impl VersionRange {
    /// Returns the range between two versions, both included, or `None` without a bound.
    pub fn between(min: Option<&Version>, max: Option<&Version>) -> Option<Self> {
        let bounds = [(">=", AT_LEAST, min), ("<=", AT_MOST, max)].into_iter();
        let (mut texts, mut all) = (Vec::new(), Vec::new());
        for (operator, accepted, version) in bounds {
            let Some(version) = version.cloned() else { continue };
            texts.push(format!("{operator}{version}"));
            all.push(Comparator { accepted, version });
        }
        let text = texts.join(" ");
        let any_of = vec![all];
        (!text.is_empty()).then_some(Self { text, any_of })
    }

    /// Returns true if the version lies in the range.
    pub fn contains(&self, version: &Version) -> bool {
        let holds = |one: &Comparator| one.accepted.contains(&version.cmp_precedence(&one.version));
        self.any_of.iter().any(|all| all.iter().all(holds))
    }
}

impl FromStr for VersionRange {
    type Err = VersionRangeError;

    fn from_str(text: &str) -> Result<Self, VersionRangeError> {
        let any_of = text.split("||").map(comparators).collect::<Result<_, _>>();
        let any_of = any_of.map_err(|problem| VersionRangeError {
            range: text.to_owned(),
            problem,
        })?;
        let text = text.to_owned();
        Ok(Self { text, any_of })
    }
}

fn comparators(mut rest: &str) -> Result<Vec<Comparator>, String> {
    let separator = |c: char| c.is_whitespace() || c == ',';
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(separator);
        if rest.is_empty() {
            break;
        }
        let (operator, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(rest.len()));
        let (version, next) = behind.split_at(behind.find(separator).unwrap_or(behind.len()));
        rest = next;
        let operator = operator.trim();
        let known = OPERATORS.iter().find(|(known, _)| *known == operator);
        let (_, accepted) = known.ok_or_else(|| format!("the operator {operator:?} is not known"))?;
        match wildcard(version).filter(|_| *accepted == EQUAL) {
            Some(bounds) => found.extend(bounds),
            None => found.push(Comparator {
                accepted,
                version: version.parse().map_err(|error| format!("{version:?}: {error}"))?,
            }),
        }
    }
    match found.is_empty() {
        true => Err("a version is missing".to_owned()),
        false => Ok(found),
    }
}

/// Returns the bounds of `1.x` or `1.2.x`.
fn wildcard(text: &str) -> Option<[Comparator; 2]> {
    let numbers = text.strip_suffix(".x")?;
    let (major, minor) = numbers.split_once('.').map_or((numbers, None), |(a, b)| (a, Some(b)));
    let major: u64 = major.parse().ok()?;
    let (low, high) = match minor {
        None => (Version::new(major, 0, 0), Version::new(major.checked_add(1)?, 0, 0)),
        Some(minor) => {
            let minor: u64 = minor.parse().ok()?;
            (
                Version::new(major, minor, 0),
                Version::new(major, minor.checked_add(1)?, 0),
            )
        }
    };
    let bound = |accepted, version| Comparator { accepted, version };
    Some([bound(AT_LEAST, low), bound(LESS, high)])
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for VersionRange {
    type Error = VersionRangeError;

    fn try_from(text: String) -> Result<Self, VersionRangeError> {
        text.parse()
    }
}

impl From<VersionRange> for String {
    fn from(range: VersionRange) -> Self {
        range.text
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(">=1.0.0 <2.0.0", &["1.0.0", "1.9.9", "2.0.0-rc.1"], &["0.9.0", "1.0.0-rc.1", "2.0.0"])]
    #[case(">= 1.0.0, < 2.0.0", &["1.0.0"], &["2.0.0"])]
    #[case("<1.0.0 || >2.0.0", &["0.1.0", "2.0.1"], &["1.0.0", "2.0.0"])]
    #[case("1.2.3", &["1.2.3", "1.2.3+build"], &["1.2.4"])]
    #[case("!=1.2.3", &["1.2.4"], &["1.2.3", "1.2.3+build"])]
    #[case("<=1.2.3+a", &["1.2.3+b"], &["1.2.4-a"])]
    #[case("1.x", &["1.0.0", "1.9.0"], &["2.0.0", "0.9.0"])]
    #[case("1.2.x || 3.0.0", &["1.2.9", "3.0.0"], &["1.3.0"])]
    fn range_contains_as_blang_does(#[case] range: VersionRange, #[case] inside: &[&str], #[case] outside: &[&str]) {
        let contains = |text: &&str| range.contains(&text.parse().unwrap());
        assert!(inside.iter().all(contains), "{range}");
        assert!(!outside.iter().any(contains), "{range}");
    }

    #[rstest]
    #[case::empty("", "a version is missing")]
    #[case::empty_part("1.0.0 ||", "a version is missing")]
    #[case::caret("^1.0.0", "the operator \"^\" is not known")]
    #[case::two_numbers(">=1.0", "\"1.0\": unexpected end of input while parsing minor version number")]
    #[case::leading_v("<v1.0.0", "\"v1.0.0\": unexpected character 'v' while parsing major version number")]
    #[case::wildcard_with_operator(">1.x", "\"1.x\": unexpected character 'x' while parsing minor version number")]
    fn range_malformed_is_refused(#[case] text: &str, #[case] problem: &str) {
        assert_eq!(text.parse::<VersionRange>().unwrap_err().problem, problem);
    }

    #[test]
    fn between_includes_both_bounds() {
        let [one, two] = ["1.0.0", "2.0.0"].map(|text| text.parse::<Version>().unwrap());
        let range = VersionRange::between(Some(&one), Some(&two)).unwrap();
        assert_eq!(range.to_string(), ">=1.0.0 <=2.0.0");
        assert!(range.contains(&one) && range.contains(&two));
        assert_eq!(VersionRange::between(None, None), None);
    }
}
