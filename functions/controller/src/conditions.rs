//! From what happened to a catalog to its status, as catalogd v1.11.0 writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use serde_json::json;

use crate::catalog::CatalogStatus;

/// Type of the condition that tells whether the content is served.
const SERVING: &str = "Serving";
/// Type of the condition that tells whether the last poll succeeded.
const PROGRESSING: &str = "Progressing";
/// Reason of an error that only a change of the object can end.
const BLOCKED: &str = "Blocked";

/// Maximum number of bytes of a message. The CustomResourceDefinition allows 32,768 characters, and
/// refuses the status otherwise.
const MESSAGE_MAX: usize = 32_768;

const UNPACKED: &str = "Successfully unpacked and stored content from resolved source";
const SERVED: &str = "Serving desired content from resolved source";
const UNAVAILABLE: &str = "Catalog availability mode is set to Unavailable";

/// Result of the last work on a catalog.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact {
    /// The content of the source is served.
    Stored {
        /// `REPOSITORY@DIGEST` of the content.
        reference: String,
        /// Time at which this image was published here, in whole seconds.
        unpacked: Time,
    },
    /// The poll failed. What was served before stays served.
    Failed {
        /// Error with its causes.
        message: String,
        /// True if only a change of the object can help.
        is_terminal: bool,
    },
    /// The content was removed, because `availabilityMode` asks for it.
    Unavailable,
    /// The content was removed, because the object is being deleted.
    Deleted,
}

/// Returns the status after a fact. `base` is the URL of the catalog.
///
/// Conditions of other types stay: catalogd keeps them too.
pub(crate) fn next_status(
    before: &CatalogStatus,
    generation: i64,
    fact: &Fact,
    base: &str,
    now: &Time,
) -> CatalogStatus {
    let mut status = before.clone();
    let mut set = |kind: &str, is_true, reason: &str, message: &str| {
        let next = Condition {
            type_: kind.to_owned(),
            status: if is_true { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message[..message.floor_char_boundary(MESSAGE_MAX)].to_owned(),
            observed_generation: Some(generation),
            last_transition_time: now.clone(),
        };
        set_condition(&mut status.conditions, next);
    };
    match fact {
        Fact::Stored {
            reference,
            unpacked,
        } => {
            set(PROGRESSING, true, "Succeeded", UNPACKED);
            set(SERVING, true, "Available", SERVED);
            status.resolved_source = Some(json!({"type": "Image", "image": {"ref": reference}}));
            status.urls = Some(json!({"base": base}));
            status.last_unpacked = Some(unpacked.clone());
        }
        Fact::Failed {
            message,
            is_terminal,
        } => {
            set(
                PROGRESSING,
                !is_terminal,
                failure_reason(*is_terminal),
                message,
            );
        }
        Fact::Unavailable => {
            // catalogd first writes that nothing is served, so that `Serving` comes before
            // `Progressing` in a new status.
            set(SERVING, false, "UserSpecifiedUnavailable", UNAVAILABLE);
            set(PROGRESSING, true, "Succeeded", UNAVAILABLE);
            without_content(&mut status);
        }
        Fact::Deleted => {
            set(SERVING, false, "Unavailable", "");
            without_content(&mut status);
        }
    }
    status
}

/// Returns the reason that conditions and events give for a failure.
pub(crate) const fn failure_reason(is_terminal: bool) -> &'static str {
    if is_terminal { BLOCKED } else { "Retrying" }
}

fn without_content(status: &mut CatalogStatus) {
    status.resolved_source = None;
    status.urls = None;
    status.last_unpacked = None;
}

/// Sets a condition as `meta.SetStatusCondition` of apimachinery does: the time changes with
/// `status` only.
fn set_condition(conditions: &mut Vec<Condition>, mut next: Condition) {
    match conditions
        .iter_mut()
        .find(|known| known.type_ == next.type_)
    {
        Some(known) => {
            if known.status == next.status {
                next.last_transition_time = known.last_transition_time.clone();
            }
            *known = next;
        }
        None => conditions.push(next),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;

    const BASE: &str = "https://catalogd-service.olmv1-system.svc/catalogs/a";

    fn time(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn stored(digest: &str) -> Fact {
        Fact::Stored {
            reference: format!("quay.io/ns/cat@sha256:{digest}"),
            unpacked: time(7),
        }
    }

    fn failed(message: String, is_terminal: bool) -> Fact {
        Fact::Failed {
            message,
            is_terminal,
        }
    }

    /// Applies facts one after the other, each a second and a generation after the one before.
    fn status(facts: &[Fact]) -> CatalogStatus {
        let next = |before, (fact, at)| next_status(&before, at, fact, BASE, &time(at));
        facts.iter().zip(1..).fold(CatalogStatus::default(), next)
    }

    /// Conditions as `type status reason observedGeneration transition`.
    fn conditions(status: &CatalogStatus) -> Vec<String> {
        let line = |condition: &Condition| {
            let transition = condition.last_transition_time.0.as_second();
            let generation = condition.observed_generation.unwrap_or_default();
            let (kind, status, reason) = (&condition.type_, &condition.status, &condition.reason);
            format!("{kind} {status} {reason} {generation} {transition}")
        };
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn status_of_stored_content_is_that_of_catalogd() {
        let expected = json!({
            "conditions": [
                {"type": "Progressing", "status": "True", "reason": "Succeeded", "observedGeneration": 1,
                 "message": "Successfully unpacked and stored content from resolved source", "lastTransitionTime": "1970-01-01T00:00:01Z"},
                {"type": "Serving", "status": "True", "reason": "Available", "observedGeneration": 1,
                 "message": "Serving desired content from resolved source", "lastTransitionTime": "1970-01-01T00:00:01Z"},
            ],
            "resolvedSource": {"type": "Image", "image": {"ref": "quay.io/ns/cat@sha256:1"}},
            "urls": {"base": BASE},
            "lastUnpacked": "1970-01-01T00:00:07Z",
        });
        let status = status(&[stored("1")]);
        assert_eq!(serde_json::to_value(&status).unwrap(), expected);
        assert_eq!(
            serde_json::from_value::<CatalogStatus>(expected).unwrap(),
            status
        );
    }

    /// Facts are 1 and 2 for content, R for a retry, B for blocked, U for unavailable, D for
    /// deleted.
    #[test]
    fn conditions_follow_from_facts() {
        for row in "\
12: Progressing True Succeeded 2 1, Serving True Available 2 1
R: Progressing True Retrying 1 1
RR: Progressing True Retrying 2 1
B: Progressing False Blocked 1 1
1R: Progressing True Retrying 2 1, Serving True Available 1 1
1B2: Progressing True Succeeded 3 3, Serving True Available 3 1
U: Serving False UserSpecifiedUnavailable 1 1, Progressing True Succeeded 1 1
1U: Progressing True Succeeded 2 1, Serving False UserSpecifiedUnavailable 2 2
1D: Progressing True Succeeded 1 1, Serving False Unavailable 2 2"
            .lines()
        {
            let (letters, expected) = row.split_once(": ").unwrap();
            let fact = |letter| match letter {
                '1' | '2' => stored(&String::from(letter)),
                'R' | 'B' => failed("a".to_owned(), letter == 'B'),
                'U' => Fact::Unavailable,
                _ => Fact::Deleted,
            };
            let status = status(&letters.chars().map(fact).collect::<Vec<_>>());
            assert_eq!(conditions(&status).join(", "), expected, "{letters}");
            let has_content = expected.contains("Serving True");
            assert_eq!(status.is_serving(), has_content, "{letters}");
            // A field without a value is written too, as `null`: a merge patch then removes it.
            let written = serde_json::to_value(status).unwrap();
            for field in ["resolvedSource", "urls", "lastUnpacked"] {
                let is_null = written.get(field).unwrap().is_null();
                assert_eq!(is_null, !has_content, "{letters} {field}");
            }
        }
    }

    #[test]
    fn message_is_as_long_as_the_definition_allows() {
        let message = |length: usize| {
            let status = status(&[failed("ä".repeat(length / 2), false)]);
            status.conditions[0].message.len()
        };
        assert_eq!(message(MESSAGE_MAX), MESSAGE_MAX);
        assert_eq!(message(MESSAGE_MAX + 2), MESSAGE_MAX);
    }
}
