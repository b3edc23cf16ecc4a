use axum::body::Body;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{error::Error, problem, settings::Settings};

/// What only a registry refuses.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the catalog has no manifest {0:?}")]
    UnknownManifest(String),
    #[error("the catalog has no such blob")]
    UnknownBlob,
    #[error("nothing can be uploaded here")]
    UnknownUpload,
    #[error("{0:?} is no digest")]
    Digest(String),
    #[error("{0:?} is no number of results")]
    Page(String),
}

/// What went wrong, as registries say it (OCI distribution specification, "Error Codes").
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RegistryErrors {
    errors: [RegistryError; 1],
}

/// One error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RegistryError {
    /// The kind of the error.
    #[schema(example = "NAME_UNKNOWN")]
    code: &'static str,
    /// What is wrong with this request.
    message: String,
}

impl Refusal {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownManifest(_) | Self::UnknownBlob | Self::UnknownUpload => StatusCode::NOT_FOUND,
            Self::Digest(_) | Self::Page(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// `PAGINATION_NUMBER_INVALID` is no code of the specification but of the registry that it was written after.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::UnknownManifest(_) => "MANIFEST_UNKNOWN",
            Self::UnknownBlob => "BLOB_UNKNOWN",
            Self::UnknownUpload => "BLOB_UPLOAD_UNKNOWN",
            Self::Digest(_) => "DIGEST_INVALID",
            Self::Page(_) => "PAGINATION_NUMBER_INVALID",
        }
    }
}

/// The code of any error; `UNAVAILABLE` and `UNKNOWN` are that registry's, too.
const fn code(error: &Error) -> &'static str {
    match error {
        Error::Registry(refusal) => refusal.code(),
        Error::Denied(denial) => denial.code(),
        Error::CatalogName(_) => "NAME_INVALID",
        Error::UnknownCatalog(_) => "NAME_UNKNOWN",
        Error::Method | Error::UnknownPath => "UNSUPPORTED",
        Error::UnknownObject => "BLOB_UNKNOWN",
        Error::Range(_) => "RANGE_INVALID",
        Error::Store(_) | Error::Locate { .. } | Error::Corrupt { .. } | Error::Untrusted { .. } => "UNAVAILABLE",
        Error::Parameter(_)
        | Error::SinceParameter(_)
        | Error::Since
        | Error::UnknownSince(_)
        | Error::UnknownPackage(_)
        | Error::NotAcceptable
        | Error::TooLarge
        | Error::PreconditionFailed => "UNKNOWN",
    }
}

/// The same answer as to anybody, but for its body.
pub(crate) fn respond(error: &Error, settings: &Settings) -> Response<Body> {
    let entry = RegistryError {
        code: code(error),
        message: error.detail(),
    };
    let body = serde_json::to_vec(&RegistryErrors { errors: [entry] }).expect("an error is two plain fields");
    let mut response = problem::respond(error, settings);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    *response.body_mut() = Body::from(body);
    response
}
