//! Prints random ranges of versions and what the mirror takes of them, one JSON object a line: of
//! 5,000 by the rules of blang/semver, which bundles require, and of 2,000 by those of
//! Masterminds/semver, which selections have.
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use compose::VersionConstraint;
use olm::VersionRange;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Reason, TestRunner};
use semver::{BuildMetadata, Version};
use serde_json::json;

/// Version that bundles have.
const VERSION: &str = r"[0-3]\.[0-3]\.[0-3](-(0|1|9|alpha|alpha\.1|rc\.2)|)(\+b|)";

/// Conditions and separators of one library: those of valid ranges, and those that miss a rule more
/// often than not.
struct RangeTexts {
    library: &'static str,
    count: usize,
    valid: [&'static str; 2],
    odd: [&'static str; 2],
}

const TEXTS: [RangeTexts; 2] = [
    RangeTexts {
        library: "blang",
        count: 5_000,
        valid: [
            r"(|=|==|!|!=|<|<=|< |>|>=|>= )[0-3]\.([0-3]\.([0-3](-(0|1|alpha|rc\.2)|)|x)|x)",
            r" |  | \|\| ",
        ],
        odd: [
            r"(|=|!=|<|>=|\^|~|=>)( |)(v|)[0-3](\.([0-3]|x)){1,3}(-(0|alpha|x|01)|)(\+b|)",
            r" |, |\|\|| \|\| \|\| | 1 ",
        ],
    },
    RangeTexts {
        library: "masterminds",
        count: 2_000,
        valid: [
            r"(|=|!=|<|<=|=<|>|>=|=>|~|~>|\^)( |)(v|)([0-3]|01|x|X|\*)(\.([0-3]|x|\*)){0,2}(-(0|1|alpha|rc\.2)|)(\+b|)",
            r" |, | ,|,| \|\| |\|\| ",
        ],
        odd: [
            r"(|=|<|>=|==|>>)( |)(v|)([0-3]|1x|x)(\.([0-3]|x)){0,3}(-(0|alpha|01)|)",
            r" |,,|,| \|\| | - ",
        ],
    },
];

fn main() -> Result<(), Reason> {
    let mut runner = TestRunner::deterministic();
    for RangeTexts {
        library,
        count,
        valid,
        odd,
    } in TEXTS
    {
        for at in 0..count {
            let mut random =
                |strategy: &str| strategy.new_tree(&mut runner).map(|tree| tree.current());
            let [condition, separator] = if at % 3 == 0 { odd } else { valid };
            let mut range = random(condition)?;
            for _ in 0..at % 4 {
                range = range + &random(separator)? + &random(condition)?;
            }
            let versions = (0..12)
                .map(|_| random(VERSION))
                .collect::<Result<Vec<String>, _>>()?;
            let takes = match library {
                "blang" => VersionRange::parse(&range)
                    .map(|range| takes(&versions, |version| contains(&range, version))),
                _ => range.parse().ok().map(|range: VersionConstraint| {
                    takes(&versions, |version| range.contains(version))
                }),
            };
            println!(
                "{}",
                json!({"library": library, "range": range, "versions": versions, "takes": takes})
            );
        }
    }
    Ok(())
}

/// Looks the version up as `dependencies` does.
fn contains(range: &VersionRange, version: &Version) -> bool {
    let plain = Version {
        build: BuildMetadata::EMPTY,
        ..version.clone()
    };
    range.contains(&plain)
}

fn takes(versions: &[String], contains: impl Fn(&Version) -> bool) -> String {
    let digit = |text: &String| {
        if text.parse().is_ok_and(|version| contains(&version)) {
            '1'
        } else {
            '0'
        }
    };
    versions.iter().map(digit).collect()
}
