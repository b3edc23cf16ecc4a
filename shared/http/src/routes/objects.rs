//! Immutable objects under their keys. They are public to all who may use the mirror: an unavailable catalog hides its
//! pointer, not the bytes that it shares with others.

use model::{Key, Kind, ObjectDigest, ObjectKey};

use super::RouteCall;
use crate::{error::ApiError, payload::Payload, respond::Representation, rfc9110::Tag};

/// Returns the key of a path; `None` if no object is served there. No client reads the lists of the garbage collector.
pub(super) fn served_key(path: &str) -> Option<ObjectKey> {
    match Key::parse(path.strip_prefix('/')?)? {
        Key::Object(kind, sha256) if kind != Kind::Garbage => Some(ObjectKey { kind, sha256 }),
        _ => None,
    }
}

pub(super) async fn object(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let ObjectKey { kind, sha256 } = served_key(call.path).ok_or(ApiError::UnknownPath)?;
    let size = call.app.catalogs.size(kind, sha256).await?;
    let size = size.ok_or(ApiError::UnknownObject)?;
    let key = Key::Object(kind, sha256);
    Ok(Representation {
        tag: Tag::of_stored(sha256),
        content_type: key.content_type(),
        encoding: kind.encoding(),
        payload: Payload::Object(ObjectDigest { sha256, size }.with_kind(kind)),
        ..Representation::empty_document(key.cache_policy())
    })
}
