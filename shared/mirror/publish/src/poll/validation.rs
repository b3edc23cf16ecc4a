//! Reasons not to publish new content: violated rules of OLM, and lost packages.

use std::collections::BTreeSet;

use model::{Snapshot, ValidationCounts};
use olm::{FINDINGS, ValidationSummary};
use render::Rendering;

use super::facts::Described;
use crate::{PollError, ValidationMode};

/// Reports the findings and returns their numbers; `None` if the content was not validated. Fails if
/// the catalog refuses content with errors, unless the poll is forced.
pub(super) fn judge(
    described: &Described,
    validation: ValidationMode,
    is_forced: bool,
) -> Result<Option<ValidationCounts>, PollError> {
    let Some(findings) = described.facts.documents.get(FINDINGS.name) else {
        return Ok(None);
    };
    let summary =
        ValidationSummary::of(findings).expect("known parts are used only if they can be read");
    let ValidationCounts {
        errors,
        warnings,
        unknown_schemas,
    } = summary.counts;
    if errors > 0 && validation == ValidationMode::Refuse && !is_forced {
        return Err(PollError::Refused(errors_text(&summary)));
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
        tracing::info!(
            warnings,
            unknown_schemas,
            first,
            "the new content has weaknesses"
        );
    }
    Ok(Some(summary.counts))
}

/// Names the first errors of a catalog, and what can be done.
fn errors_text(summary: &ValidationSummary) -> String {
    let errors = summary.counts.errors;
    format!(
        "it has {errors} error{}, as `catalog-mirror validate` lists them: {}; correct the catalog, publish it as it is with \
         `--force`, or set validate: warn",
        if errors == 1 { "" } else { "s" },
        summary.errors.join("; ")
    )
}

/// Maximum share of packages that may disappear at once, in percent. Real catalogs lose a few
/// packages a year.
const GONE_MAX_PERCENT: usize = 30;

/// Compares a rendering with what is published. Fails if it looks like an accident rather than an
/// update.
pub(crate) fn check_packages(
    rendering: &Rendering,
    previous: Option<&Snapshot>,
) -> Result<(), PollError> {
    let now = rendering.packages().collect();
    let before = previous.map(|snapshot| {
        snapshot
            .packages
            .iter()
            .map(|shard| shard.name.as_str())
            .collect()
    });
    check_names(&now, &before.unwrap_or_default()).map_err(PollError::Refused)
}

fn check_names(now: &BTreeSet<&str>, before: &BTreeSet<&str>) -> Result<(), String> {
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
        let check = |now, before| check_names(&first(now), &first(before)).unwrap_err();
        for (now, before) in [(70, 100), (7, 10), (1, 0), (500, 10)] {
            assert_eq!(check_names(&first(now), &first(before)), Ok(()));
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
