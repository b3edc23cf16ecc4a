//! The work on one ClusterCatalog: content, status, finalizer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Api, Resource, ResourceExt};
use model::CatalogName;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::Instrument;

use crate::catalog::{ClusterCatalog, FINALIZER, NAME_LABEL};
use crate::conditions::{Fact, failure_reason, next_status};
use crate::metrics::ControllerMetrics;
use crate::poll::{Puller, next_poll, poll, until_changed, whole_seconds};
use crate::schedule;
use crate::served::{Served, has_content};

/// Wait after an error of the API server or of the store.
const API_RETRY: Duration = Duration::from_secs(10);

/// Maximum time to write an object. A request over a broken connection would wait for ever.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Maximum number of bytes of an event's note: the API allows 1 kB.
const NOTE_MAX: usize = 1000;

/// All that the work on ClusterCatalogs needs.
pub(crate) struct Context {
    pub(crate) catalogs: Api<ClusterCatalog>,
    pub(crate) served: Arc<Served>,
    pub(crate) puller: Arc<Puller>,
    pub(crate) events: Recorder,
    pub(crate) metrics: ControllerMetrics,
    /// URL below which catalogs are served, without a slash at its end.
    pub(crate) base: String,
}

/// Failure to work on an object. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The object cannot be read or written.
    #[error("cannot write the ClusterCatalog")]
    Api(#[from] kube::Error),
    /// The content cannot be removed.
    #[error("cannot remove the content")]
    Remove(#[from] store::ReadError),
    /// The API server does not answer.
    #[error("the API server did not answer within {} s", WRITE_TIME.as_secs())]
    OutOfTime,
    /// Another writer has changed the object since it was seen. The event of that change brings the
    /// next work on it.
    #[error("another writer has changed the ClusterCatalog")]
    Changed,
}

/// Does what an object needs now.
pub(crate) async fn reconcile(
    object: Arc<ClusterCatalog>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError> {
    let span = tracing::info_span!("reconcile", catalog = object.name());
    let work = context.metrics.begin();
    let done = work_on(&object, &context).instrument(span).await;
    work.end(&done);
    done
}

/// Returns the wait after a failure.
pub(crate) fn after_error(object: &ClusterCatalog, error: &ReconcileError) -> Action {
    let error = model::text::chain(error);
    tracing::warn!(catalog = object.name(), error, "trying again");
    Action::requeue(publish::Env::default().jittered(API_RETRY))
}

// The order of the cases is catalogd's.
async fn work_on(object: &ClusterCatalog, context: &Context) -> Result<Action, ReconcileError> {
    if object.is_unavailable() {
        return withdraw(object, &Fact::Unavailable, context).await;
    }
    if object.is_deleted() {
        if object.has_finalizer() {
            return withdraw(object, &Fact::Deleted, context).await;
        }
        // Another finalizer keeps the object.
        return Ok(Action::await_change());
    }
    if !object.has_finalizer() || !object.has_label() {
        // Before anything is published, so that content never outlives its object. The change
        // brings the next event.
        mark(object, &context.catalogs).await?;
        return Ok(Action::await_change());
    }
    serve(object, context).await
}

/// Polls the catalog if it is due, and writes its status.
async fn serve(object: &ClusterCatalog, context: &Context) -> Result<Action, ReconcileError> {
    let served = &context.served;
    let has_content = has_content(&*served.store, object.name()).await;
    let last = match served.polls.get(object.name()) {
        Some(last) if !schedule::is_due(&last, &object.version(), has_content, Instant::now()) => {
            last
        }
        // After a start there is no record, so that a change of the tag meanwhile is seen at once.
        before => {
            let polled = tokio::select! {
                (fact, interval) = poll(object, &context.puller) => next_poll(object, before.as_ref(), fact, interval),
                // Its content is then decided anew.
                () = until_changed(object, &served.objects) => return Ok(Action::requeue(Duration::ZERO)),
            };
            served.polls.set(object.name(), polled.clone());
            polled
        }
    };
    let is_written = write_status(object, &last.fact, context).await?;
    if let Fact::Failed {
        message,
        is_terminal,
    } = &last.fact
        && is_written
    {
        // The status has the same text, so a lost event does not matter.
        let reason = failure_reason(*is_terminal);
        warn(object, reason, message, &context.events).await;
    }
    Ok(match last.next {
        Some(next) => Action::requeue(next.saturating_duration_since(Instant::now())),
        None => Action::await_change(),
    })
}

/// Removes the content, and the finalizer after that.
async fn withdraw(
    object: &ClusterCatalog,
    fact: &Fact,
    context: &Context,
) -> Result<Action, ReconcileError> {
    if let Ok(name) = object.name().parse::<CatalogName>()
        && let Err(error) = publish::remove(&*context.served.store, &name).await
    {
        let failed = Fact::Failed {
            message: model::text::chain(&error),
            is_terminal: false,
        };
        write_status(object, &failed, context).await?;
        return Err(error.into());
    }
    context.served.polls.forget(object.name());
    // The event of a written status brings the rest.
    if !write_status(object, fact, context).await? && object.has_finalizer() {
        let mut others = object.finalizers().to_vec();
        others.retain(|finalizer| finalizer != FINALIZER);
        let patch = json!({"metadata": {"finalizers": others}});
        write(&context.catalogs, object, Target::Object, patch).await?;
    }
    Ok(Action::await_change())
}

/// Sets the finalizer, and the label by which operator-controller selects catalogs.
async fn mark(
    object: &ClusterCatalog,
    catalogs: &Api<ClusterCatalog>,
) -> Result<bool, ReconcileError> {
    let mut finalizers = object.finalizers().to_vec();
    if !object.has_finalizer() {
        finalizers.push(FINALIZER.to_owned());
    }
    // Both at once: catalogd's webhook, which may not answer, is only asked about objects without
    // the label.
    let patch =
        json!({"metadata": {"finalizers": finalizers, "labels": {NAME_LABEL: object.name()}}});
    write(catalogs, object, Target::Object, patch).await
}

/// Writes the status that follows from a fact, if it differs. Returns true if something was
/// written.
async fn write_status(
    object: &ClusterCatalog,
    fact: &Fact,
    context: &Context,
) -> Result<bool, ReconcileError> {
    let base = format!("{}/{}", context.base, object.name());
    let next = next_status(
        &object.status,
        object.generation(),
        fact,
        &base,
        &whole_seconds(),
    );
    if next == object.status {
        return Ok(false);
    }
    write(
        &context.catalogs,
        object,
        Target::Status,
        json!({"status": next}),
    )
    .await
}

/// Part of an object that is written.
#[derive(Debug, Clone, Copy)]
enum Target {
    Object,
    Status,
}

/// Writes a part of an object. Returns false if the object is gone.
async fn write(
    catalogs: &Api<ClusterCatalog>,
    object: &ClusterCatalog,
    target: Target,
    mut patch: Value,
) -> Result<bool, ReconcileError> {
    patch["metadata"]["resourceVersion"] = json!(object.metadata.resource_version);
    let name = object.name();
    let parameters = PatchParams::default();
    let patch = Patch::Merge(patch);
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
async fn warn(object: &ClusterCatalog, reason: &str, note: &str, events: &Recorder) {
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        note: Some(note[..note.floor_char_boundary(NOTE_MAX)].to_owned()),
        action: "Poll".to_owned(),
        secondary: None,
    };
    if let Ok(Err(error)) =
        timeout(WRITE_TIME, events.publish(&event, &object.object_ref(&()))).await
    {
        tracing::debug!(error = model::text::chain(&error), "cannot send an event");
    }
}

#[cfg(test)]
mod tests;
