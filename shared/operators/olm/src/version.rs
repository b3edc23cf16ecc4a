//! Versions and ranges as the Go library blang/semver v4 reads them. The crate `semver` refuses
//! ranges that blang accepts and the reverse, so it cannot read them in its place.

use std::ops::{Bound, RangeBounds as _};

use semver::{BuildMetadata, Prerelease, Version};

/// Maximum length of a release, in bytes.
const RELEASE_MAX: usize = 20;

/// Range of versions, by the rules of blang/semver: `>=1.0.0 <2.0.0 || 3.x`.
///
/// Pre-releases are compared like other versions, and build metadata is not compared.
///
/// ```
/// use olm::VersionRange;
///
/// let range = VersionRange::parse(">=1.2.x !=1.3.0").unwrap();
/// let contains = |version: &str| range.contains(&version.parse().unwrap());
/// assert!(contains("1.2.7") && !contains("1.3.0"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange {
    intervals: Vec<VersionSpan>,
}

/// Interval of versions.
pub type VersionSpan = (Bound<Version>, Bound<Version>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum RangeCondition {
    Above(VersionPlace),
    Below(VersionPlace),
    Not(Version),
}

/// Reads a version: three numbers, then optionally a pre-release and build metadata, which is not
/// compared and left out.
pub fn parse_version(text: &str) -> Option<Version> {
    let mut version = Version::parse(text).ok()?;
    version.build = BuildMetadata::EMPTY;
    has_small_numbers(&version.pre).then_some(version)
}

/// Returns true for the release of a bundle: the identifiers of a pre-release.
pub(crate) fn is_release(text: &str) -> bool {
    let pre = Prerelease::new(text).ok().filter(|pre| !pre.is_empty());
    text.len() <= RELEASE_MAX && pre.is_some_and(|pre| has_small_numbers(&pre))
}

/// Returns true if all numbers of a pre-release have 64 bits, as blang demands.
fn has_small_numbers(pre: &str) -> bool {
    if pre.is_empty() {
        return true;
    }
    pre.split('.').all(|part| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        !is_number || part.parse::<u64>().is_ok()
    })
}

impl VersionRange {
    /// Reads a range; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut intervals = alternatives(&parts(text))?;
        intervals.sort_unstable();
        let mut joined: Vec<VersionInterval> = Vec::with_capacity(intervals.len());
        for (start, end) in intervals {
            match joined.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(last.clone()),
                _ => joined.push((start, end)),
            }
        }
        let intervals = joined
            .into_iter()
            .map(|(start, end)| (start.bound(false), end.bound(true)));
        Some(Self {
            intervals: intervals.collect(),
        })
    }

    /// Returns the range as intervals that neither overlap nor are empty, in ascending order, for
    /// versions without build metadata. A sorted set of versions answers each by one search.
    pub fn intervals(&self) -> &[VersionSpan] {
        &self.intervals
    }

    /// Returns true if a version without build metadata is in the range.
    pub fn contains(&self, version: &Version) -> bool {
        let at = self.intervals.partition_point(|(_, end)| match end {
            Bound::Included(end) => end < version,
            Bound::Excluded(end) => end <= version,
            Bound::Unbounded => false,
        });
        let interval = self.intervals.get(at);
        interval.is_some_and(|interval| interval.contains(version))
    }
}

/// Place between two versions. Places have the order of versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VersionPlace {
    Lowest,
    /// Before the version, or behind it if the second field is true.
    At(Version, bool),
    Highest,
}

/// Start and end of an interval.
type VersionInterval = (VersionPlace, VersionPlace);

impl VersionPlace {
    /// Returns the place at which an interval with this bound starts.
    pub(crate) fn of_start(start: &Bound<Version>) -> Self {
        match start {
            Bound::Included(version) => Self::At(version.clone(), false),
            Bound::Excluded(version) => Self::At(version.clone(), true),
            Bound::Unbounded => Self::Lowest,
        }
    }

    /// Returns the place at which an interval with this bound ends.
    pub(crate) fn of_end(end: &Bound<Version>) -> Self {
        match end {
            Bound::Included(version) => Self::At(version.clone(), true),
            Bound::Excluded(version) => Self::At(version.clone(), false),
            Bound::Unbounded => Self::Highest,
        }
    }

    /// Returns true if a version lies behind the place.
    pub(crate) fn is_before(&self, version: &Version) -> bool {
        match self {
            Self::Lowest => true,
            Self::At(place, false) => place <= version,
            Self::At(place, true) => place < version,
            Self::Highest => false,
        }
    }

    /// Returns the bound of an interval that starts or ends here.
    fn bound(self, is_end: bool) -> Bound<Version> {
        match self {
            Self::At(version, is_behind) if is_behind == is_end => Bound::Included(version),
            Self::At(version, _) => Bound::Excluded(version),
            Self::Lowest | Self::Highest => Bound::Unbounded,
        }
    }
}

/// Returns the intervals in which all conditions hold, in ascending order.
fn conjunction(all: Vec<RangeCondition>) -> Vec<VersionInterval> {
    let mut start = VersionPlace::Lowest;
    let mut end = VersionPlace::Highest;
    let mut holes = Vec::new();
    for one in all {
        match one {
            RangeCondition::Above(place) => start = start.max(place),
            RangeCondition::Below(place) => end = end.min(place),
            RangeCondition::Not(version) => holes.push(version),
        }
    }
    holes.sort_unstable();
    let mut intervals = Vec::new();
    for hole in holes {
        let before = VersionPlace::At(hole.clone(), false).min(end.clone());
        intervals.push((start.clone(), before));
        start = start.max(VersionPlace::At(hole, true));
    }
    intervals.push((start, end));
    intervals.retain(|(start, end)| start < end);
    intervals
}

/// Splits at spaces, but not at those after an operator. A part of one character is lost, as in
/// blang.
fn parts(text: &str) -> Vec<String> {
    let mut last = ' ';
    let parts = text.split(|c| match c {
        ' ' => !matches!(last, '>' | '<' | '='),
        c => {
            last = c;
            false
        }
    });
    parts
        .filter(|part| part.len() > 1)
        .map(|part| part.replace(' ', ""))
        .collect()
}

/// Returns the intervals of all alternatives; `None` if one is malformed.
fn alternatives(parts: &[String]) -> Option<Vec<VersionInterval>> {
    // Two `||` in a row are accepted: the alternative between them has no comparison.
    if parts.first()? == "||" || parts.last()? == "||" {
        return None;
    }
    let mut intervals = Vec::new();
    // blang crashes at an alternative without a comparison; no version is in it here.
    for parts in parts
        .split(|part| part == "||")
        .filter(|parts| !parts.is_empty())
    {
        let mut all = Vec::new();
        parts
            .iter()
            .try_for_each(|part| read_part(part, &mut all))?;
        intervals.extend(conjunction(all));
    }
    Some(intervals)
}

/// Adds the conditions of a comparison such as `>=1.0.0`; `None` if it is malformed.
fn read_part(part: &str, all: &mut Vec<RangeCondition>) -> Option<()> {
    use RangeCondition::{Above, Below, Not};

    let (operator, version) = part.split_at(part.find(char::is_numeric)?);
    let is_wildcard = part.contains('x');
    let (low, end) = if is_wildcard {
        wildcard(version)
    } else {
        (version.to_owned(), version.to_owned())
    };
    // The versions that the text stands for lie between these places. A place that the operator
    // does not need may be malformed.
    let start = || place(&low, false);
    let end = || place(&end, !is_wildcard);
    match operator.trim() {
        ">" => all.push(Above(end()?)),
        ">=" => all.push(Above(start()?)),
        "<" => all.push(Below(start()?)),
        "<=" => all.push(Below(end()?)),
        "" | "=" | "==" => all.extend([Above(start()?), Below(end()?)]),
        // Both at once, which no version fulfils: blang joins them so, against its own description.
        "!" | "!=" if is_wildcard => all.extend([Below(start()?), Above(end()?)]),
        "!" | "!=" => all.push(Not(parse_version(version)?)),
        // blang drops an unknown operator before an `x`.
        _ if is_wildcard => all.extend([Above(start()?), Below(place(&low, true)?)]),
        _ => return None,
    }
    Some(())
}

/// Returns the place of a version, or the one behind it.
fn place(text: &str, is_behind: bool) -> Option<VersionPlace> {
    Some(VersionPlace::At(parse_version(text)?, is_behind))
}

/// Returns the first version of a wildcard, and the first one after it. blang replaces an `x` by a
/// zero, and counts up the number before the last `x`; without one there is no end.
fn wildcard(version: &str) -> (String, String) {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    let low = match flat.split('.').count() {
        2 => flat + ".0",
        _ => flat,
    };
    let numbers = version.split('.').count();
    let end = match version.rsplit('.').next() {
        Some("x") if numbers == 3 => next(&low, 1),
        Some("x") if numbers == 2 => next(&low, 0),
        _ => None,
    };
    (low, end.unwrap_or_default())
}

/// Returns the version with one of its numbers counted up.
fn next(version: &str, number: usize) -> Option<String> {
    let mut parts: Vec<String> = version.split('.').map(str::to_owned).collect();
    let part = parts.get_mut(number)?;
    *part = part.parse::<i64>().ok()?.wrapping_add(1).to_string();
    Some(parts.join("."))
}

/// Reads a version as OLM compares it: without build metadata. A leading `v` is allowed, as people
/// write it.
pub fn comparable_version(text: &str) -> Option<Version> {
    parse_version(text.strip_prefix('v').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const VERSIONS: &str = "0.9.0 1.0.0-rc.1 1.0.0 1.2.0 1.3.0 2.0.0-rc.1 2.0.0 3.1.0";

    /// Digits as blang/semver v4.0.0 gives them: 1 for each of [`VERSIONS`] that is in the range.
    #[rstest]
    #[case(">=1.0.0 <2.0.0", "00111100")]
    #[case(">= 1.0.0 < 2.0.0", "00111100")]
    #[case("<1.0.0 || >2.0.0", "11000001")]
    #[case("1.2.0", "00010000")]
    #[case("!=1.2.0", "11101111")]
    #[case("!1.2.0", "11101111")]
    #[case("<=1.0.0+a", "11100000")]
    #[case("1.x", "00111100")]
    #[case("=1.2.0", "00010000")]
    #[case("==1.x", "00111100")]
    #[case("1.2.x || 3.1.0", "00010001")]
    #[case(">=1.x", "00111111")]
    #[case("<2.x", "11111100")]
    #[case("<=1.x", "11111100")]
    #[case(">1.x", "00000011")]
    #[case::both_sides_at_once("!=1.x", "00000000")]
    #[case::both_sides_at_once("!1.2.x", "00000000")]
    #[case(">=1.2.x", "00011111")]
    #[case(">1.2.x", "00001111")]
    #[case("<1.2.x", "11100000")]
    #[case("<=1.2.x", "11110000")]
    #[case::patch_of_zero("1.x.x", "00100000")]
    #[case::operator_lost("^1.x", "00100000")]
    #[case::part_of_one_character_lost("1.2.0 <2.0.0 1", "00010000")]
    // blang crashes for all other versions.
    #[case::empty_alternative("1.0.0 || || 2.0.0", "00100010")]
    fn range_contains_what_blang_takes(#[case] range: &str, #[case] expected: &str) {
        let range = VersionRange::parse(range).unwrap();
        let versions = VERSIONS
            .split(' ')
            .map(|text| text.parse::<Version>().unwrap());
        let digits = versions.map(|version| u8::from(range.contains(&version)).to_string());
        assert_eq!(digits.collect::<String>(), expected);
    }

    #[rstest]
    #[case::joined(">=1.0.0 <2.0.0 || 2.0.0 || >1.5.0 <3.0.0", 1)]
    #[case::touching("<1.0.0 || >=1.0.0", 1)]
    #[case::apart("<1.0.0 || >1.0.0", 2)]
    #[case::holes("!=1.0.0 !=2.0.0 !=1.0.0 <2.5.0", 3)]
    #[case::empty(">2.0.0 <1.0.0 || >1.0.0 <1.0.0", 0)]
    fn intervals_neither_overlap_nor_are_empty(#[case] range: &str, #[case] count: usize) {
        let range = VersionRange::parse(range).unwrap();
        assert_eq!(range.intervals().len(), count, "{:?}", range.intervals());
    }

    #[rstest]
    #[case::empty("")]
    #[case::empty_end("1.0.0 ||")]
    #[case::empty_start("|| 1.0.0")]
    #[case::no_version("x")]
    #[case::no_number(">=y")]
    #[case::comma(">= 1.0.0, < 2.0.0")]
    #[case::comma_alone("1.0.0,2.0.0")]
    #[case::caret("^1.0.0")]
    #[case::two_numbers(">=1.0")]
    #[case::leading_v("<v1.0.0")]
    #[case::letter_before_wildcard("1.y.x")]
    #[case::no_spaces(">1.0.0||<0.9.9")]
    #[case::large_number("1.0.0-99999999999999999999")]
    #[case::no_next_number("9223372036854775807.x")]
    fn range_malformed_is_refused(#[case] text: &str) {
        assert_eq!(VersionRange::parse(text), None);
    }
}
