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

/// Number of attempts to write beside other writers of the same object.
const WRITE_ATTEMPTS: usize = 5;

/// Maximum time to write an object, with all attempts. A request over a broken connection would wait for ever.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(30);

/// Maximum number of bytes of an event's note: the API allows 1 kB.
const NOTE_MAX: usize = 1000;

/// Part of an object that is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Object,
    Status,
}

/// Writes what `change` returns for the object, if that is something. The write fails if another writer was faster; then the
/// object is read again. Returns true if something was written.
pub(crate) async fn write(
    catalogs: &Api<ClusterCatalog>,
    object: &ClusterCatalog,
    target: Target,
    change: impl Fn(&ClusterCatalog) -> Option<Value>,
) -> Result<bool, ReconcileError> {
    let write = async {
        let mut read = None;
        for _ in 0..WRITE_ATTEMPTS {
            let found = read.as_ref().unwrap_or(object);
            let Some(mut patch) = change(found) else {
                return Ok(false);
            };
            patch["metadata"]["resourceVersion"] = json!(found.metadata.resource_version);
            let (name, parameters, patch) = (object.name(), PatchParams::default(), Patch::Merge(patch));
            let written = match target {
                Target::Object => catalogs.patch(name, &parameters, &patch).await,
                Target::Status => catalogs.patch_status(name, &parameters, &patch).await,
            };
            match written {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error.into()),
            }
            match catalogs.get_opt(object.name()).await? {
                Some(found) if found.uid() == object.uid() => read = Some(found),
                // Gone, or another object of the same name, which has its own event.
                _ => return Ok(false),
            }
        }
        Err(ReconcileError::Contended)
    };
    timeout(WRITE_TIME, write)
        .await
        .unwrap_or(Err(ReconcileError::OutOfTime))
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
