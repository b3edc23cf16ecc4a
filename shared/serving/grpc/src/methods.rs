//! The methods of the registry API.

use std::sync::Arc;

use futures_util::TryStreamExt;
use model::text::LineBuffer;
use prost::Message;
use reader::pick;
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
};
use work::Budget;

use crate::catalogs::IndexedState;
use crate::error::failed;
use crate::olm_v0::api::{
    CustomSchemasRequest, GetBundleRequest, GetReplacementRequest, GroupVersionKind,
};
use crate::olm_v0::{ApiIndex, BundlePlace, meta_struct};
use crate::{AnswerError, call::ApiCall};

/// Name of the service of the registry API.
pub(crate) const REGISTRY: &str = "api.Registry";

/// Length from which the message of a bundle is made outside of the threads that serve connections,
/// in bytes.
const LARGE_LINE: u64 = 64 << 10;

type Answer = Result<(), AnswerError>;

pub(crate) async fn list_packages(call: ApiCall, (): ()) -> Answer {
    let state = call.state().await?;
    send_all(&call, state.index.list_packages()).await
}

pub(crate) async fn get_package(call: ApiCall, name: String) -> Answer {
    let state = call.state().await?;
    call.send(&state.index.get_package(&name)?).await
}

pub(crate) async fn get_bundle(call: ApiCall, request: GetBundleRequest) -> Answer {
    send_bundle(call, |index| index.get_bundle(&request)).await
}

pub(crate) async fn get_bundle_for_channel(call: ApiCall, request: GetBundleRequest) -> Answer {
    send_bundle(call, |index| index.get_bundle_for_channel(&request)).await
}

pub(crate) async fn bundle_that_replaces(call: ApiCall, request: GetReplacementRequest) -> Answer {
    send_bundle(call, |index| index.get_bundle_that_replaces(&request)).await
}

pub(crate) async fn default_bundle_that_provides(
    call: ApiCall,
    request: GroupVersionKind,
) -> Answer {
    send_bundle(call, |index| {
        index.get_default_bundle_that_provides(&request)
    })
    .await
}

pub(crate) async fn entries_that_replace(call: ApiCall, name: String) -> Answer {
    let state = call.state().await?;
    send_all(&call, state.index.get_channel_entries_that_replace(&name)?).await
}

pub(crate) async fn entries_that_provide(call: ApiCall, request: GroupVersionKind) -> Answer {
    let state = call.state().await?;
    send_all(
        &call,
        state.index.get_channel_entries_that_provide(&request)?,
    )
    .await
}

pub(crate) async fn latest_entries_that_provide(
    call: ApiCall,
    request: GroupVersionKind,
) -> Answer {
    let state = call.state().await?;
    send_all(
        &call,
        state
            .index
            .get_latest_channel_entries_that_provide(&request)?,
    )
    .await
}

pub(crate) async fn list_bundles(call: ApiCall, (): ()) -> Answer {
    let state = call.state().await?;
    for entry in state.index.entries() {
        let bundle = entry.bundle();
        if bundle.image.is_empty() {
            // Without an image the manifests are sent.
            complete(&call, &state, entry, true).await?;
            continue;
        }
        let size = bundle.texts() as u64;
        let memory = match size {
            0..LARGE_LINE => None,
            _ => call.memory(size).await?,
        };
        let message = entry.message(true);
        let bytes = [message.names, message.facts].concat();
        call.send_bytes(bytes.into(), memory).await?;
    }
    Ok(())
}

pub(crate) async fn list_custom_schemas(call: ApiCall, request: CustomSchemasRequest) -> Answer {
    // Like opm: a client that does not know that the method is experimental gets nothing.
    if !call.head.acknowledged {
        return Ok(());
    }
    let state = call.state().await?;
    let ranges = state.index.list_custom_schemas(&request)?;
    if ranges.is_empty() {
        return Ok(());
    }
    let chunks = state.state.package(&request.package_name).await?;
    let mut picked = pick(chunks, ranges.iter().cloned());
    let mut lines = LineBuffer::default();
    while let Some(chunk) = picked.try_next().await? {
        let mut messages = Vec::new();
        lines.push(&chunk, |line| messages.push(meta_struct(line)));
        for message in messages {
            call.send(&message?).await?;
        }
    }
    Ok(())
}

async fn send_all<M: Message>(call: &ApiCall, messages: impl Iterator<Item = M>) -> Answer {
    for message in messages {
        call.send(&message).await?;
    }
    Ok(())
}

/// Answers with one bundle.
async fn send_bundle(
    call: ApiCall,
    find: impl for<'i> FnOnce(&'i ApiIndex) -> Result<BundlePlace<'i>, AnswerError>,
) -> Answer {
    let state = call.state().await?;
    let entry = find(&state.index)?;
    complete(&call, &state, entry, false).await
}

/// Sends a bundle with its manifests.
async fn complete(
    call: &ApiCall,
    state: &IndexedState,
    place: BundlePlace<'_>,
    is_listed: bool,
) -> Answer {
    let record = place.package;
    let line = &place.bundle().line;
    let length = line.end - line.start;
    // The manifests are sent twice, as `csvJson` and as `object`.
    let memory = call.memory(length.saturating_mul(2)).await?;
    let contents = call.shared.contents.get(&state.state, record).await?;
    let message = place.message(is_listed);
    let at = place.entry.bundle;
    let bytes = if length < LARGE_LINE {
        contents.complete(record, at, &message)?
    } else {
        let record = Arc::clone(record);
        work::run(Budget::default(), move || {
            contents.complete(&record, at, &message)
        })
        .await
        .map_err(|error| failed(&error))??
    };
    call.send_bytes(bytes, memory).await
}

/// Service that operator-registry's own client asks for (`pkg/client`).
const OPM_REGISTRY: &str = "Registry";

/// Answers `Check` of the service `grpc.health.v1.Health`. `Watch` is unimplemented, as in opm:
/// clients take that for a server that serves.
pub(crate) async fn check_health(
    call: ApiCall,
    request: HealthCheckRequest,
) -> Result<(), AnswerError> {
    let Some(status) = serving(&call, &request.service).await else {
        return Err(AnswerError::UnknownCatalog("unknown service".to_owned()));
    };
    call.send(&HealthCheckResponse {
        status: status.into(),
    })
    .await
}

/// Returns the status of the server, of the registry API or of a catalog; `None` if there is no
/// such service. Waits for the index of the catalog.
async fn serving(call: &ApiCall, service: &str) -> Option<ServingStatus> {
    let catalogs = &call.shared.catalogs;
    let is_serving = match service {
        "" | REGISTRY | OPM_REGISTRY => match catalogs.choose(call.head.label.as_deref()).await {
            Ok(name) => catalogs.state(&name, None).await.is_ok(),
            // The client must name one of several catalogs, but the server serves them.
            Err(AnswerError::UnknownCatalog(_)) => {
                catalogs.names().await.is_ok_and(|names| !names.is_empty())
            }
            Err(_) => false,
        },
        catalog => match catalogs.names().await {
            Ok(names) if !names.iter().any(|name| name == catalog) => return None,
            names => names.is_ok() && catalogs.state(catalog, None).await.is_ok(),
        },
    };
    Some(if is_serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    })
}
