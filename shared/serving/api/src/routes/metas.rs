//! Lines of a catalog: all of them, those of a query, those of one package.

use model::{CachePolicy, Encoding, Kind};
use reader::{MetaFilter, PublishedLines, PublishedState, ReaderError};

use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::metas_filter;

pub(super) async fn all(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    whole(call, &state).await
}

pub(super) async fn metas(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let filter = metas_filter(call.query())?;
    let state = call.state().await?;
    if filter == MetaFilter::default() {
        return whole(call, &state).await;
    }
    let lines = state.select(&filter).await?;
    let encoding = call.encoding_for(lines.length)?;
    let lines = Representation::of(Payload::Lines { lines, encoding }, CachePolicy::Pointer);
    Ok(lines.negotiated(encoding).dated(&call.app.head(&state)))
}

pub(super) async fn package(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let package = call.param("package");
    let shard = snapshot.package(&package);
    let shard = shard.ok_or_else(|| ReaderError::UnknownPackage(package.clone().into_owned()))?;
    let encoding = call.encoding()?;
    let stored = (encoding == Encoding::Zstd).then(|| shard.stored.with_kind(Kind::Package));
    let lines = PublishedLines::of_shard(shard);
    let payload = stored.map_or(Payload::Lines { lines, encoding }, Payload::Object);
    // The tag of an object is its own, so that the route and the immutable URL share it.
    let lines = Representation::of(payload, CachePolicy::Pointer);
    Ok(lines.negotiated(encoding).dated(&call.app.head(&state)))
}

async fn whole(call: RouteCall<'_>, state: &PublishedState) -> Result<Representation, ApiError> {
    let encoding = call.encoding()?;
    let stored = state.current().all.get(encoding);
    if stored.is_none() {
        // They are made on the fly, under the content hash of the pointer. Only the Snapshot tells
        // if that is their hash.
        state.snapshot().await?;
    }
    let lines = state.whole();
    let payload = stored.map_or(Payload::Lines { lines, encoding }, Payload::Object);
    let head = call.app.head(state);
    let tag = head.all_tags[encoding as usize].clone();
    let lines = Representation::new(tag, payload, CachePolicy::Pointer);
    Ok(lines.negotiated(encoding).dated(&head))
}
