//! Ranges of versions in selections, as the Go library Masterminds/semver v3 reads them: oc-mirror
//! v2 uses it. What bundles require of each other is read by other rules, those of
//! [`olm::VersionRange`].

use std::{fmt, str::FromStr};

use semver::Version;

/// Range of versions to select: `>=1.2 <2.0.0 || 3.x`.
///
/// A pre-release is only in an alternative that names a pre-release. Build metadata is not
/// compared.
///
/// ```
/// use compose::VersionConstraint;
///
/// let range: VersionConstraint = ">=2.11 <=2.12".parse().unwrap();
/// let contains = |version: &str| range.contains(&version.parse().unwrap());
/// assert!(contains("2.12.7") && !contains("2.13.0") && !contains("2.12.0-rc.1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionConstraint {
    text: String,
    /// Alternatives, of which one must hold as a whole.
    any_of: Vec<Vec<VersionCondition>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct VersionCondition {
    operator: ConstraintOperator,
    bound: PartialVersion,
}

/// Version whose last numbers may be missing or `x`; these are 0 in [`Self::version`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct PartialVersion {
    version: Version,
    /// Count of the numbers in front of the first `x`, at most 3.
    numbers: usize,
    has_wildcard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConstraintOperator {
    Equal,
    NotEqual,
    Greater,
    AtLeast,
    Less,
    AtMost,
    Tilde,
    Caret,
}

impl VersionConstraint {
    /// Reads the range between two versions, both included; `None` without a bound. Two equal
    /// bounds take only that version, while `<=2.11` alone takes all of 2.11. An error continues
    /// the name of the place that has the bounds.
    pub(crate) fn between(min: Option<&str>, max: Option<&str>) -> Result<Option<Self>, String> {
        let mut texts = Vec::new();
        let mut conditions = Vec::new();
        if let Some(text) = min {
            texts.push(format!(">={text}"));
            conditions.push(VersionCondition {
                operator: ConstraintOperator::AtLeast,
                bound: PartialVersion::of_field("minVersion", text)?,
            });
        }
        if let Some(text) = max {
            texts.push(format!("<={text}"));
            conditions.push(VersionCondition {
                operator: ConstraintOperator::AtMost,
                bound: PartialVersion::of_field("maxVersion", text)?,
            });
        }
        if conditions.is_empty() {
            return Ok(None);
        }
        if let [low, high] = &mut conditions[..] {
            let order = low.bound.version.cmp_precedence(&high.bound.version);
            if order.is_gt() && low.bound.numbers == 3 && high.bound.numbers == 3 {
                return Err(": minVersion is higher than maxVersion".to_owned());
            }
            if min == max && !low.bound.has_wildcard {
                low.operator = ConstraintOperator::Equal;
                low.bound.numbers = 3;
                conditions.truncate(1);
            }
        }
        Ok(Some(Self {
            text: texts.join(" "),
            any_of: vec![conditions],
        }))
    }

    /// Returns true if the version lies in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.any_of.iter().any(|all| {
            let takes_prereleases = all.iter().any(|one| !one.bound.version.pre.is_empty());
            (takes_prereleases || version.pre.is_empty())
                && all.iter().all(|one| one.holds(version))
        })
    }
}

impl FromStr for VersionConstraint {
    /// Part of the text that is not a version.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let any_of: Result<_, _> = text.split("||").map(read_conditions).collect();
        Ok(Self {
            text: text.to_owned(),
            any_of: any_of?,
        })
    }
}

impl fmt::Display for VersionConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads the conditions of an alternative, which spaces or single commas separate. `1.2 - 1.4`
/// stands for two of them, but only at the start or behind a comma.
fn read_conditions(text: &str) -> Result<Vec<VersionCondition>, String> {
    let spaced = text.replace(',', " , ");
    let mut words = spaced.split_ascii_whitespace().peekable();
    let mut conditions = Vec::new();
    let mut add = |operator, text: &str| {
        let bound = PartialVersion::new(text).ok_or_else(|| text.to_owned())?;
        conditions.push(VersionCondition { operator, bound });
        Ok::<_, String>(())
    };
    let mut may_be_hyphen_range = true;
    while let Some(word) = words.next() {
        let end = word.find(|sign| !"=!<>~^".contains(sign));
        let (operator, mut version) = word.split_at(end.unwrap_or(word.len()));
        if version.is_empty() {
            version = words.next().unwrap_or_default();
        }
        if may_be_hyphen_range && operator.is_empty() && words.next_if_eq(&"-").is_some() {
            add(ConstraintOperator::AtLeast, version)?;
            add(ConstraintOperator::AtMost, words.next().unwrap_or_default())?;
        } else {
            add(ConstraintOperator::new(operator).ok_or(word)?, version)?;
        }
        may_be_hyphen_range = words.next_if_eq(&",").is_some();
    }
    // Nothing is written, or nothing behind the last comma.
    if may_be_hyphen_range {
        return Err(text.to_owned());
    }
    Ok(conditions)
}

impl ConstraintOperator {
    fn new(text: &str) -> Option<Self> {
        Some(match text {
            "" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            ">=" | "=>" => Self::AtLeast,
            "<" => Self::Less,
            "<=" | "=<" => Self::AtMost,
            "~" | "~>" => Self::Tilde,
            "^" => Self::Caret,
            _ => return None,
        })
    }
}

impl PartialVersion {
    /// Reads a field that holds one version. An error continues the name of the place.
    fn of_field(field: &str, text: &str) -> Result<Self, String> {
        Self::new(text).ok_or_else(|| {
            format!(", {field} {text:?}: this is not a version such as 2.11.0 or 2.11")
        })
    }

    fn new(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (core, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
        let parts: Vec<&str> = core.split('.').collect();
        if parts.len() > 3 {
            return None;
        }
        for part in &parts {
            if part.is_empty() || !part.bytes().all(|byte| b"0123456789xX*".contains(&byte)) {
                return None;
            }
        }
        // What stands behind the first wildcard does not count.
        let mut wildcards = parts.iter();
        let wildcard = wildcards.position(|part| matches!(*part, "x" | "X" | "*"));
        let numbers = wildcard.unwrap_or(parts.len());
        let mut values = [0; 3];
        for (value, part) in values.iter_mut().zip(&parts[..numbers]) {
            *value = part.parse().ok()?;
        }
        let [major, minor, patch] = values;
        Some(Self {
            // Its pre-release and build metadata are written as those of any version.
            version: Version::parse(&format!("{major}.{minor}.{patch}{rest}")).ok()?,
            numbers,
            has_wildcard: wildcard.is_some(),
        })
    }
}

impl VersionCondition {
    fn holds(&self, version: &Version) -> bool {
        let bound = &self.bound.version;
        let numbers = self.bound.numbers;
        let order = version.cmp_precedence(bound);
        let major = version.major.cmp(&bound.major);
        let minor = major.then(version.minor.cmp(&bound.minor));
        let is_zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0);
        match (self.operator, numbers) {
            (ConstraintOperator::Equal, 3) => order.is_eq(),
            (ConstraintOperator::NotEqual, 1) => major.is_ne(),
            (ConstraintOperator::NotEqual, 2) => minor.is_ne() || version.pre != bound.pre,
            (ConstraintOperator::NotEqual, _) => order.is_ne(),
            (ConstraintOperator::Greater, 1) => major.is_gt(),
            (ConstraintOperator::Greater, 2) => minor.is_gt(),
            (ConstraintOperator::Greater, _) => order.is_gt(),
            (ConstraintOperator::AtLeast, _) => order.is_ge(),
            (ConstraintOperator::Less, _) => order.is_lt(),
            (ConstraintOperator::AtMost, 1) => major.is_le(),
            (ConstraintOperator::AtMost, 3) => order.is_le(),
            // `<=*` takes 0.0 only, against the library's own description.
            (ConstraintOperator::AtMost, _) => minor.is_le(),
            (ConstraintOperator::Equal | ConstraintOperator::Tilde, 1) => {
                order.is_ge() && major.is_eq()
            }
            (ConstraintOperator::Equal | ConstraintOperator::Tilde, numbers) => {
                order.is_ge() && (minor.is_eq() || (is_zero && numbers != 2))
            }
            (ConstraintOperator::Caret, numbers) if numbers == 1 || bound.major > 0 => {
                order.is_ge() && major.is_eq()
            }
            (ConstraintOperator::Caret, numbers) if numbers == 2 || bound.minor > 0 => {
                order.is_ge() && minor.is_eq()
            }
            // `^*` takes 0.0.0 only, against the library's own description.
            (ConstraintOperator::Caret, _) => {
                order.is_ge() && minor.is_eq() && version.patch == bound.patch
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const VERSIONS: &str = "0.0.0 0.0.3 0.2.3 1.2.0-rc.1 1.2.0 1.2.3 1.3.0 2.0.0-rc.1 2.0.0 3.1.0";

    /// Digits as Masterminds/semver v3.4.0 gives them: 1 for each of [`VERSIONS`] that is in the
    /// range.
    #[rstest]
    #[case("1.2.0", "0000100000")]
    #[case("=1.2", "0000110000")]
    #[case("1", "0000111000")]
    #[case("*", "1110111011")]
    #[case("v1.2.x", "0000110000")]
    #[case("1.X.3", "0000111000")]
    #[case("01.2.0+a", "0000100000")]
    #[case("!=1.2.0", "1110011011")]
    #[case("!=1.2", "1110001011")]
    #[case("!=1", "1110000011")]
    #[case("!=*", "0110111011")]
    #[case("!=1.2, >=1.2.0-0", "0001001111")]
    #[case(">1.2.0", "0000011011")]
    #[case(">1.2", "0000001011")]
    #[case(">1", "0000000011")]
    #[case(">= 1.2", "0000111011")]
    #[case("=>1.2.0-0", "0001111111")]
    #[case("<1.2", "1110000000")]
    #[case("<=1.2", "1110110000")]
    #[case("=<1", "1110111000")]
    #[case("<=1.2.0", "1110100000")]
    #[case::zero_only("<=*", "1100000000")]
    #[case("~1.2.3", "0000010000")]
    #[case("~>1", "0000111000")]
    #[case::any("~0.0.0", "1110111011")]
    #[case("^1.2", "0000111000")]
    #[case("^0", "1110000000")]
    #[case("^0.2.1", "0010000000")]
    #[case("^0.0.3", "0100000000")]
    #[case::zero_only("^*", "1000000000")]
    #[case("1.2 - 1.3.0", "0000111000")]
    #[case(">=1.2 <2 || 3.x", "0000111001")]
    #[case(">=1.2.0-0,<2.0.0", "0001111100")]
    fn constraint_contains_what_masterminds_takes(
        #[case] range: VersionConstraint,
        #[case] expected: &str,
    ) {
        let versions = VERSIONS.split(' ').map(|text| text.parse().unwrap());
        let digits = versions.map(|version| u8::from(range.contains(&version)).to_string());
        assert_eq!(digits.collect::<String>(), expected);
    }

    #[test]
    fn constraint_malformed_is_refused() {
        let malformed = "/1.2 ||/1.2,/1.2,,1.3/1.2.3.4/1./1x/1.2-/1.2.3-01/1.2.3+/>>1/==1/>=1.0<2.0/~1 - 2/0.1 1 - 2/\
                         18446744073709551616";
        for text in malformed.split('/') {
            assert!(text.parse::<VersionConstraint>().is_err(), "{text}");
        }
    }
}
