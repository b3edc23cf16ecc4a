//! Reasons not to publish new content: violated rules of OLM, and lost packages.

use std::{collections::BTreeSet, str};

use model::{Facts, Snapshot, ValidationCounts};
use olm::ValidationSummary;
use render::Rendering;

use super::once::Poll;
use crate::PollError;

/// Treatment of content that violates the rules of OLM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ValidationMode {
    /// Publishes without a validation.
    Off,
    /// Publishes, and names the findings.
    #[default]
    Warn,
    /// Does not publish content with errors, unless a poll is forced. Warnings do not count.
    Refuse,
}

/// Text that is not a [`ValidationMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not off, warn or refuse")]
pub struct ValidationModeError(String);

/// Content that is not published, because the catalog refuses errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has {errors} error{}, as `catalog-mirror validate` lists them: {}; correct the catalog, publish it as it is with `poll --force`, \
     or set validate: warn",
    plural(*.errors), .examples.join("; ")
)]
pub struct InvalidCatalog {
    /// Number of errors.
    pub errors: u64,
    /// The first errors in words, at most five.
    pub examples: Vec<String>,
}

impl str::FromStr for ValidationMode {
    type Err = ValidationModeError;

    fn from_str(text: &str) -> Result<Self, ValidationModeError> {
        match text {
            "off" => Ok(Self::Off),
            "warn" => Ok(Self::Warn),
            "refuse" => Ok(Self::Refuse),
            other => Err(ValidationModeError(model::text::line(other, 100))),
        }
    }
}

impl InvalidCatalog {
    /// Returns the first errors of a catalog that has some.
    pub fn of(summary: &ValidationSummary) -> Option<Self> {
        (summary.counts.errors > 0).then(|| Self {
            errors: summary.counts.errors,
            examples: summary.errors.clone(),
        })
    }
}

impl Poll<'_> {
    /// Reports the findings and returns their numbers. Fails if the catalog refuses content with errors.
    pub(crate) fn judge(&self, findings: &Facts) -> Result<ValidationCounts, PollError> {
        let summary = ValidationSummary::of(findings).expect("known parts are used only if they can be read");
        let ValidationCounts {
            errors,
            warnings,
            unknown_schemas,
        } = summary.counts;
        if let Some(invalid) = InvalidCatalog::of(&summary)
            && self.catalog.validation == ValidationMode::Refuse
            && !self.options.force
        {
            return Err(invalid.into());
        }
        if let Some(first) = summary.errors.first() {
            tracing::warn!(
                errors,
                warnings,
                unknown_schemas,
                first,
                "the new content violates rules of OLM"
            );
        } else if let Some(first) = &summary.warning {
            tracing::info!(warnings, unknown_schemas, first, "the new content has weaknesses");
        }
        Ok(summary.counts)
    }
}

const fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// Maximum share of packages that may disappear at once, in percent. Real catalogs lose a few packages a year.
const GONE_MAX_PERCENT: usize = 30;

/// New content that looks like an accident rather than an update.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Suspicion {
    /// The FBC has no packages at all.
    #[error("it holds no packages at all; check the source, or publish it as it is with `poll --force`")]
    NoPackages,
    /// More than 30 % of the published packages are gone.
    #[error(
        "{gone} of {before} packages are gone, which is more than {GONE_MAX_PERCENT} % ({}); \
         check the source, or publish it as it is with `poll --force`",
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
pub(crate) fn check_packages(rendering: &Rendering, previous: Option<&Snapshot>) -> Result<(), Suspicion> {
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

    #[test]
    fn invalid_catalog_says_what_is_wrong_and_what_to_do() {
        let summary = |errors| ValidationSummary {
            counts: ValidationCounts {
                errors,
                ..ValidationCounts::default()
            },
            errors: vec!["package db, channel c0: the channel is a cycle".to_owned()],
            warning: None,
        };
        assert_eq!(
            InvalidCatalog::of(&summary(1)).unwrap().to_string(),
            "it has 1 error, as `catalog-mirror validate` lists them: package db, channel c0: the channel is a cycle; \
             correct the catalog, publish it as it is with `poll --force`, or set validate: warn"
        );
        assert_eq!(InvalidCatalog::of(&summary(0)), None);
    }

    #[test]
    fn validation_mode_reads_its_three_words() {
        let modes = ["off", "warn", "refuse"].map(|text| text.parse::<ValidationMode>().unwrap());
        assert_eq!(
            modes,
            [ValidationMode::Off, ValidationMode::Warn, ValidationMode::Refuse]
        );
        assert_eq!(
            "Warn".parse::<ValidationMode>().unwrap_err().to_string(),
            "\"Warn\" is not off, warn or refuse"
        );
    }

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
