//! The validation of new content by the rules of OLM, before it is published.

use std::str;

use model::{Facts, ValidationCounts};
use olm::ValidationSummary;

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
    "it has {errors}, as `catalog-mirror validate` lists them: {}; correct the catalog, force the poll to publish it as it is, \
     or set validate: warn",
    .examples.join("; "),
    errors = count(*.errors, "error")
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
            && !self.force
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

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
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
             correct the catalog, force the poll to publish it as it is, or set validate: warn"
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
}
