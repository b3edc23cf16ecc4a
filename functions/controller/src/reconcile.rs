//! The work on one ClusterCatalog: content, status, finalizer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
    runtime::{
        controller::Action,
        events::{Event, EventType, Recorder},
        reflector,
    },
};
use model::CatalogName;
use publish::Mirror;
use serde_json::{Value, json};
use source::RegistryRules;
use store::Store;
use tokio::{sync::Notify, time::timeout};
use tracing::Instrument;

use crate::{
    catalog::{ClusterCatalog, FINALIZER, NAME_LABEL},
    conditions::{BLOCKED, Fact, next_status},
    health::has_content,
    metrics::ControllerMetrics,
    poll::{next_poll, whole_seconds},
    replicas::{Leadership, pointer_hash},
    schedule::{self, LastPoll, Seen},
    secrets::ClusterSecrets,
};

/// Wait after an error of the API server or of the store.
const API_RETRY: Duration = Duration::from_secs(10);

/// Number of attempts to write beside other writers of the same object.
const WRITE_ATTEMPTS: usize = 5;

/// Maximum time to write an object, with all attempts. A request over a broken connection would wait for ever.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Maximum number of bytes of an event's note: the API allows 1 kB.
const NOTE_MAX: usize = 1000;

/// All that the work on ClusterCatalogs needs.
pub(crate) struct Reconciler {
    pub(crate) catalogs: Api<ClusterCatalog>,
    /// ClusterCatalogs as they are now.
    pub(crate) objects: reflector::Store<ClusterCatalog>,
    pub(crate) mirror: Arc<Mirror>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) secrets: ClusterSecrets,
    /// Rules for registries, read again before each poll.
    pub(crate) rules: RegistryRules,
    pub(crate) events: Recorder,
    pub(crate) metrics: ControllerMetrics,
    /// URL below which catalogs are served, without a slash at its end.
    pub(crate) base: String,
    pub(crate) leadership: Arc<Leadership>,
    /// Namespace of the Lease.
    pub(crate) namespace: String,
    /// Last work on each catalog by this process.
    pub(crate) last: Mutex<HashMap<String, LastPoll>>,
    /// Told when all catalogs should be looked at.
    pub(crate) all_due: Arc<Notify>,
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
    /// Other writers change the object all the time.
    #[error("other writers keep changing the ClusterCatalog")]
    Contended,
}

impl Reconciler {
    /// Does what an object needs now.
    pub(crate) async fn reconcile(self: Arc<Self>, object: Arc<ClusterCatalog>) -> Result<Action, ReconcileError> {
        let span = tracing::info_span!("reconcile", catalog = object.name());
        let work = self.metrics.begin();
        let done = self.run(&object).instrument(span).await;
        work.end(&done);
        done
    }

    /// Returns the wait after a failure.
    pub(crate) fn after_error(object: &ClusterCatalog, error: &ReconcileError) -> Action {
        let error: &dyn std::error::Error = error;
        tracing::warn!(
            catalog = object.name(),
            error = model::text::chain(error),
            "trying again"
        );
        Action::requeue(publish::jittered(API_RETRY))
    }

    /// Forgets all work, so that each catalog is polled when its object is seen again.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    /// Lets each catalog be polled now.
    pub(crate) fn poll_all(&self) {
        self.forget();
        self.all_due.notify_one();
    }

    // The order of the cases is catalogd's.
    async fn run(&self, object: &ClusterCatalog) -> Result<Action, ReconcileError> {
        if object.is_unavailable() {
            return self.withdraw(object, &Fact::Unavailable).await;
        }
        if object.is_deleted() {
            return match object.has_finalizer() {
                true => self.withdraw(object, &Fact::Deleted).await,
                // Another finalizer keeps the object.
                false => Ok(Action::await_change()),
            };
        }
        if !object.has_finalizer() || !object.has_label() {
            // Before anything is published, so that content never outlives its object. The change brings the next event.
            self.mark(object).await?;
            return Ok(Action::await_change());
        }
        self.serve(object).await
    }

    /// Polls the catalog if it is due, and writes its status.
    async fn serve(&self, object: &ClusterCatalog) -> Result<Action, ReconcileError> {
        let seen = Seen {
            version: &object.version(),
            has_content: has_content(&*self.store, object.name()).await,
        };
        let mut last = self.last(object.name());
        if schedule::is_due(last.as_ref(), seen, Instant::now()) {
            let Some(polled) = self.poll(object).await else {
                // The object has changed meanwhile.
                return Ok(Action::requeue(Duration::ZERO));
            };
            let polled = next_poll(object, last.as_ref(), polled);
            self.lock().insert(object.name().to_owned(), polled.clone());
            last = Some(polled);
        }
        let Some(last) = last else {
            return Ok(Action::await_change());
        };
        if let Fact::Stored { reference, .. } = &last.fact {
            let before = object.status.resolved();
            tokio::select! {
                () = self.list(object, before.is_some_and(|before| before != reference), before != Some(reference)) => {}
                () = self.until_changed(object) => return Ok(Action::requeue(Duration::ZERO)),
            }
        }
        let is_written = self.write_status(object, &last.fact).await?;
        if let Fact::Failed { message, is_terminal } = &last.fact
            && is_written
        {
            self.tell(object, message, *is_terminal).await;
        }
        Ok(match last.next {
            Some(next) => Action::requeue(next.saturating_duration_since(Instant::now())),
            None => Action::await_change(),
        })
    }

    /// Tells the other replicas what is published, and waits for them if the status is about to name it.
    async fn list(&self, object: &ClusterCatalog, is_replacement: bool, is_new: bool) {
        match pointer_hash(&*self.store, object.name()).await {
            Ok(pointer) => self.leadership.list(object.name(), pointer),
            Err(error) => tracing::warn!(error = model::text::chain(&error), "cannot read the pointer"),
        }
        if is_new {
            self.leadership.until_served(object.name(), is_replacement).await;
        }
    }

    /// Removes the content, and the finalizer after that.
    async fn withdraw(&self, object: &ClusterCatalog, fact: &Fact) -> Result<Action, ReconcileError> {
        if let Ok(name) = object.name().parse::<CatalogName>()
            && let Err(error) = publish::remove(&*self.store, &name).await
        {
            let failed = Fact::Failed {
                message: model::text::chain(&error),
                is_terminal: false,
            };
            self.write_status(object, &failed).await?;
            return Err(error.into());
        }
        self.lock().remove(object.name());
        self.leadership.list(object.name(), None);
        self.leadership.until_served(object.name(), false).await;
        self.write_status(object, fact).await?;
        if object.has_finalizer() {
            let change = |found: &ClusterCatalog| {
                found.has_finalizer().then(|| {
                    let others = found.metadata.finalizers.iter().flatten();
                    let others: Vec<_> = others.filter(|finalizer| *finalizer != FINALIZER).collect();
                    json!({"metadata": {"finalizers": others}})
                })
            };
            self.write(object, change, Target::Object).await?;
        }
        Ok(Action::await_change())
    }

    /// Sets the finalizer, and the label by which operator-controller selects catalogs.
    async fn mark(&self, object: &ClusterCatalog) -> Result<(), ReconcileError> {
        let change = |found: &ClusterCatalog| {
            let is_marked = found.has_finalizer() && found.has_label();
            // The API server refuses a new finalizer on an object that is being deleted.
            (!is_marked && !found.is_deleted()).then(|| {
                let mut finalizers = found.metadata.finalizers.clone().unwrap_or_default();
                if !found.has_finalizer() {
                    finalizers.push(FINALIZER.to_owned());
                }
                // Both at once: catalogd's webhook, which may not answer, is only asked about objects without the label.
                json!({"metadata": {"finalizers": finalizers, "labels": {NAME_LABEL: found.name()}}})
            })
        };
        self.write(object, change, Target::Object).await.map(drop)
    }

    /// Writes the status that follows from a fact, if it differs. Returns true if something was written.
    async fn write_status(&self, object: &ClusterCatalog, fact: &Fact) -> Result<bool, ReconcileError> {
        let base = format!("{}/{}", self.base, object.name());
        let now = whole_seconds();
        let change = |found: &ClusterCatalog| -> Option<Value> {
            let next = next_status(&found.status, object.generation(), fact, &base, &now);
            (next != found.status).then(|| json!({"status": next}))
        };
        self.write(object, change, Target::Status).await
    }

    /// Writes what `change` returns for the object, if that is something. The write fails if another writer was faster; then the
    /// object is read again. Returns true if something was written.
    async fn write(
        &self,
        object: &ClusterCatalog,
        change: impl Fn(&ClusterCatalog) -> Option<Value>,
        target: Target,
    ) -> Result<bool, ReconcileError> {
        let written = timeout(WRITE_TIME, self.try_write(object, change, target)).await;
        written.unwrap_or(Err(ReconcileError::OutOfTime))
    }

    async fn try_write(
        &self,
        object: &ClusterCatalog,
        change: impl Fn(&ClusterCatalog) -> Option<Value>,
        target: Target,
    ) -> Result<bool, ReconcileError> {
        let mut read = None;
        for _ in 0..WRITE_ATTEMPTS {
            let found = read.as_ref().unwrap_or(object);
            let Some(mut patch) = change(found) else {
                return Ok(false);
            };
            patch["metadata"]["resourceVersion"] = json!(found.metadata.resource_version);
            let (name, parameters, patch) = (object.name(), PatchParams::default(), Patch::Merge(patch));
            let written = match target {
                Target::Object => self.catalogs.patch(name, &parameters, &patch).await,
                Target::Status => self.catalogs.patch_status(name, &parameters, &patch).await,
            };
            match written {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error.into()),
            }
            match self.catalogs.get_opt(object.name()).await? {
                Some(found) if found.uid() == object.uid() => read = Some(found),
                // Gone, or another object of the same name, which has its own event.
                _ => return Ok(false),
            }
        }
        Err(ReconcileError::Contended)
    }

    /// Sends an event about a failure. The status has the same text, so a lost event does not matter.
    async fn tell(&self, object: &ClusterCatalog, message: &str, is_terminal: bool) {
        let event = Event {
            type_: EventType::Warning,
            reason: if is_terminal { BLOCKED } else { "Retrying" }.to_owned(),
            note: Some(message[..message.floor_char_boundary(NOTE_MAX)].to_owned()),
            action: "Poll".to_owned(),
            secondary: None,
        };
        self.send(&event, &object.object_ref(&())).await;
    }

    /// Sends an event. A failure is logged only.
    pub(crate) async fn send(&self, event: &Event, regarding: &ObjectReference) {
        let sending = self.events.publish(event, regarding);
        if let Ok(Err(error)) = timeout(WRITE_TIME, sending).await {
            tracing::debug!(error = model::text::chain(&error), "cannot send an event");
        }
    }

    fn last(&self, name: &str) -> Option<LastPoll> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, LastPoll>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Part of an object that is written.
#[derive(Debug, Clone, Copy)]
enum Target {
    Object,
    Status,
}

#[cfg(test)]
mod tests;
