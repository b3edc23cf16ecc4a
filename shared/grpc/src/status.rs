//! Errors as statuses of gRPC.

use registry::RegistryError;
use tonic::{Code, Status};

use crate::PublishedError;

/// Returns the status that opm sends, or that of an error that opm does not have.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
pub(crate) fn of_registry(error: RegistryError) -> Status {
    let code = match &error {
        // opm returns a plain error of Go, which has no code.
        RegistryError::NotFound(_) => Code::Unknown,
        RegistryError::InvalidArgument(_) => Code::InvalidArgument,
        RegistryError::Version { .. } => Code::Unavailable,
        RegistryError::Damaged(_) | RegistryError::TooLarge { .. } => Code::DataLoss,
        RegistryError::ContentsTooLarge { .. } | RegistryError::Memory => Code::ResourceExhausted,
        RegistryError::Line { .. } | RegistryError::Bundle { .. } => Code::Internal,
    };
    if !matches!(code, Code::Unknown | Code::InvalidArgument) {
        let error: &dyn std::error::Error = &error;
        tracing::error!(error, "cannot answer call");
    }
    Status::new(code, error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
pub(crate) fn of_published(error: PublishedError) -> Status {
    let code = match &error {
        PublishedError::NotFound | PublishedError::NotServed => Code::NotFound,
        PublishedError::Refused(_) => Code::FailedPrecondition,
        PublishedError::TooLarge => Code::ResourceExhausted,
        PublishedError::Unavailable(_) => Code::Unavailable,
    };
    Status::new(code, error.to_string())
}
