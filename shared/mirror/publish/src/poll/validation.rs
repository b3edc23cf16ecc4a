//! Reasons not to publish new content: violated rules of OLM, and lost packages.

use hold::check_gone;
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
    let before = before.unwrap_or_default();
    check_gone(&now, &before).map_err(PollError::Refused)
}
