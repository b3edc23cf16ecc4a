use std::{error::Error, fmt::Display};

use crate::{Operation, StoreError, error::BoxedError};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::RequestId;

/// Meaning of an answer that is not a success, by its status and error code (Amazon S3 API
/// Reference, "Error responses" and "Conditional requests").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// 304: the object has the version that the caller has.
    Unchanged,
    /// 404: there is no such object.
    Missing,
    /// 409: another write was under way at the same time. Maybe neither of them has won.
    Raced,
    /// 412: the condition does not hold.
    Refused,
    /// 416: the object does not have the range.
    OutOfRange,
    /// 501: the server does not implement the request.
    NotImplemented,
    /// Any other answer, or none.
    Failed,
}

/// Error of S3 or of its settings, in words.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct S3Error {
    pub(crate) what: String,
    pub(crate) source: Option<BoxedError>,
}

pub(crate) fn meaning<E: ProvideErrorMetadata>(error: &SdkError<E>) -> Meaning {
    match (status(error), error.code()) {
        (Some(304), _) => Meaning::Unchanged,
        (Some(404), Some("NoSuchBucket")) => Meaning::Failed,
        (Some(404), _) => Meaning::Missing,
        (Some(409), Some("ConditionalRequestConflict" | "OperationAborted")) => Meaning::Raced,
        (Some(412), _) => Meaning::Refused,
        (Some(416), _) => Meaning::OutOfRange,
        (Some(501), _) => Meaning::NotImplemented,
        _ => Meaning::Failed,
    }
}

/// Returns the error for a failure that callers do not tell apart.
pub(crate) fn failed<E>(operation: Operation, key: &dyn Display, error: SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    if let SdkError::ServiceError(_) = &error
        && let Some(status) = status(&error)
    {
        let mut what = format!("S3 answered with status {status}, {}", answer(&error));
        if !matches!(status, 401 | 403) {
            return StoreError::failed(operation, key, S3Error { what, source: None });
        }
        what +=
            "; S3 also denies what is missing to those who may not list the bucket (s3:ListBucket)";
        return StoreError::denied(operation, key, S3Error { what, source: None });
    }
    let what = match error {
        SdkError::TimeoutError(_) => "S3 did not answer in time",
        _ => "S3 could not be asked",
    };
    let error = S3Error {
        what: what.to_owned(),
        source: Some(error.into()),
    };
    StoreError::failed(operation, key, error)
}

fn answer<E: ProvideErrorMetadata>(error: &SdkError<E>) -> String {
    let mut text = error.code().unwrap_or("no error code").to_owned();
    if let Some(message) = error.message() {
        text += &format!(": {message}");
    }
    if let Some(id) = error.meta().request_id() {
        text += &format!(" (request {id})");
    }
    text
}

fn status<E>(error: &SdkError<E>) -> Option<u16> {
    Some(error.raw_response()?.status().as_u16())
}
