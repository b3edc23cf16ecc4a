//! Writes to the API server, beside other writers of the same objects.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::events::{Event, EventType, Recorder},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{catalog::ClusterCatalog, reconcile::ReconcileError};

/// Maximum time to write an object. A request over a broken connection would wait for ever.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(30);

/// Maximum number of bytes of an event's note: the API allows 1 kB.
const NOTE_MAX: usize = 1000;

/// Part of an object that is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Object,
    Status,
}

/// Writes a part of an object. Returns false if the object is gone.
///
/// # Errors
/// [`ReconcileError::Changed`] if another writer was faster, and other failures of the API server.
pub(crate) async fn write(
    catalogs: &Api<ClusterCatalog>,
    object: &ClusterCatalog,
    target: Target,
    mut patch: Value,
) -> Result<bool, ReconcileError> {
    patch["metadata"]["resourceVersion"] = json!(object.metadata.resource_version);
    let (name, parameters, patch) = (object.name(), PatchParams::default(), Patch::Merge(patch));
    let writing = async {
        match target {
            Target::Object => catalogs.patch(name, &parameters, &patch).await,
            Target::Status => catalogs.patch_status(name, &parameters, &patch).await,
        }
    };
    match timeout(WRITE_TIME, writing).await {
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(ReconcileError::Changed),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(false),
        Ok(written) => Ok(written.map(|_| true)?),
        Err(_) => Err(ReconcileError::OutOfTime),
    }
}

/// Sends a warning of a poll as an event. A failure is logged only.
pub(crate) async fn warn(events: &Recorder, regarding: &ObjectReference, reason: &str, note: &str) {
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        note: Some(note[..note.floor_char_boundary(NOTE_MAX)].to_owned()),
        action: "Poll".to_owned(),
        secondary: None,
    };
    if let Ok(Err(error)) = timeout(WRITE_TIME, events.publish(&event, regarding)).await {
        tracing::debug!(error = model::text::chain(&error), "cannot send an event");
    }
}
