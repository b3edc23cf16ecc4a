use std::{io, time::Duration};

use http::StatusCode;
use model::{DocumentError, Sha256};
use strum::IntoStaticStr;

/// Violation of an expectation.
#[derive(Debug, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Violation {
    #[error("there is no connection")]
    Connect(#[source] hyper_util::client::legacy::Error),
    #[error("the connection broke")]
    #[strum(serialize = "broken")]
    Unsent(#[source] hyper_util::client::legacy::Error),
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    #[error("no complete answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the status is {found} instead of {expected}")]
    Status {
        found: StatusCode,
        expected: StatusCode,
    },
    #[error("{said} bytes are announced and {found} came")]
    Length { said: u64, found: u64 },
    #[error("the entity tag is {0:?}, which is not a strong one")]
    Tag(String),
    #[error("the entity tag is {found} where the bytes that came have {expected}")]
    Hash { found: String, expected: String },
    #[error("the entity tag {tag} stood for other bytes before: {before}, now {now}")]
    Reused {
        tag: String,
        before: Sha256,
        now: Sha256,
    },
    #[error("the body cannot be decoded")]
    Coding(#[source] io::Error),
    #[error("{what} is {found} instead of {expected}")]
    Differs {
        what: &'static str,
        found: String,
        expected: String,
    },
    #[error("serial {found} came after {known}")]
    Back { found: u64, known: u64 },
    #[error("{0} belongs to none of the states that were published while it was asked for")]
    Mixed(String),
    #[error("{0} is named by what is published, or was just before, and not there")]
    Missing(String),
    #[error("a stored document cannot be read")]
    Document(#[from] DocumentError),
    #[error("a JSON document cannot be read")]
    #[strum(serialize = "document")]
    Json(#[from] serde_json::Error),
}

impl Violation {
    /// Returns the label under which the violation is counted.
    pub(crate) fn label(&self) -> &'static str {
        self.into()
    }
}

/// Checks that two values are equal. `what` names them in the violation.
pub(crate) fn equal<T: PartialEq + ToString>(
    what: &'static str,
    found: &T,
    expected: &T,
) -> Result<(), Violation> {
    if found == expected {
        return Ok(());
    }
    Err(Violation::Differs {
        what,
        found: found.to_string(),
        expected: expected.to_string(),
    })
}
