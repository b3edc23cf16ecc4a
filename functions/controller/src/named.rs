//! The work beside another program that has the Lease, such as catalogd: this one holds what the statuses name, so that it can take
//! over without a gap. It writes no object.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use model::{CatalogName, Current, Key};
use publish::PollOptions;
use serde_json::json;
use store::{Store, StoreExt};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::{catalog::ClusterCatalog, election::LEASE, reconcile::Reconciler, replicas::Follower, spec};

/// Time between two looks at the statuses.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Wait after an image that could not be pulled.
const RETRY: Duration = Duration::from_secs(30);

impl Reconciler {
    /// Pulls what the statuses name whenever another program has the Lease, until it is dropped.
    pub(crate) async fn hold_named(self: &Arc<Self>, follower: &Follower) {
        let mut known_other = None;
        // A registry that hangs holds up its own catalog only.
        let mut pulls = JoinSet::new();
        // Time before which a catalog is not pulled again; `None` while it is pulled.
        let mut waiting: HashMap<String, Option<Instant>> = HashMap::new();
        loop {
            sleep(LOOK_INTERVAL).await;
            let other = follower.other_program();
            self.metrics.other_program.set(other.is_some().into());
            while let Some(pulled) = pulls.try_join_next() {
                let Ok((name, is_held)) = pulled else { continue };
                match is_held {
                    true => waiting.remove(&name),
                    false => waiting.insert(name, Some(Instant::now() + RETRY)),
                };
            }
            if let Some(other) = &other {
                if known_other.as_ref() != Some(other) {
                    self.tell_other(other).await;
                }
                waiting.retain(|_, next| next.is_none_or(|next| Instant::now() < next));
                for object in self.objects.state() {
                    let name = object.name().to_owned();
                    if !waiting.contains_key(&name) {
                        waiting.insert(name.clone(), None);
                        let this = Arc::clone(self);
                        // A task of its own: a catalog whose pull panics is tried again.
                        let holding = tokio::spawn(async move { this.hold(&object).await });
                        let holding = AbortOnDropHandle::new(holding);
                        pulls.spawn(async move { (name, holding.await.unwrap_or(false)) });
                    }
                }
            }
            known_other = other;
        }
    }

    /// Publishes to the own store what a status names. Returns false if that failed.
    async fn hold(&self, object: &ClusterCatalog) -> bool {
        let Some(reference) = object.status.resolved().filter(|_| object.status.is_serving()) else {
            return true;
        };
        if serves(&*self.store, object.name(), reference).await {
            return true;
        }
        let mut named = object.clone();
        named.metadata.annotations = None;
        named.spec = json!({"source": {"type": "Image", "image": {"ref": reference}}});
        let Ok(catalog) = spec::catalog(&named) else {
            return false;
        };
        if let Err(error) = self.prepare_pull().await {
            tracing::warn!(error = model::text::chain(&error), "cannot pull what a status names");
            return false;
        }
        let options = PollOptions {
            accept_gone: true,
            ..PollOptions::default()
        };
        self.mirror.poll(&catalog, options).await.error.is_none()
    }

    async fn tell_other(&self, other: &str) {
        let note = format!(
            "{other} has the Lease; catalog-mirror-controller serves what the statuses name, and writes nothing"
        );
        tracing::warn!(holder = other, "another program has the Lease");
        let event = Event {
            type_: EventType::Warning,
            reason: "OtherProgramLeads".to_owned(),
            note: Some(note),
            action: "Wait".to_owned(),
            secondary: None,
        };
        let lease = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            name: Some(LEASE.to_owned()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        };
        self.send(&event, &lease).await;
    }
}

/// Returns true if the store has the content of the image `REPOSITORY@DIGEST`.
pub(crate) async fn serves(store: &dyn Store, name: &str, reference: &str) -> bool {
    let (Ok(name), Some((_, digest))) = (name.parse::<CatalogName>(), reference.rsplit_once('@')) else {
        return false;
    };
    let found = store.read_document::<Current>(&Key::Current(name)).await;
    matches!(found, Ok(Some((current, _))) if current.source.revision == digest)
}
