//! The work of a replica that does not lead: it holds what the statuses name, so that it serves the same and can take over without a
//! gap. It writes no object.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use store::{ReadError, Store};
use tokio::{task::JoinSet, time::sleep};

use crate::{catalog::ClusterCatalog, poll::Puller, served::Served, spec};

/// Time between two looks at the statuses.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Wait after an image that could not be pulled.
const RETRY: Duration = Duration::from_secs(30);

/// State of the pull of what a status names.
enum Named {
    /// It is being pulled.
    Running,
    /// The store has this reference.
    Held(String),
    /// It failed, and is tried again then.
    Failed(Instant),
}

/// Pulls what the statuses name while another replica with another store leads, or another program, until it is dropped.
pub(crate) async fn hold_named(served: Arc<Served>, puller: Arc<Puller>) {
    // A registry that hangs holds up its own catalog only.
    let mut pulls = JoinSet::new();
    let mut named: HashMap<String, Named> = HashMap::new();
    loop {
        sleep(LOOK_INTERVAL).await;
        while let Some(pulled) = pulls.try_join_next() {
            let Ok((name, state)) = pulled else { continue };
            named.insert(name, state);
        }
        if !served.follows_statuses() {
            named.retain(|_, state| matches!(state, Named::Running));
            continue;
        }
        for object in served.objects.state() {
            let Some(reference) = object.status.served() else {
                continue;
            };
            let is_settled = match named.get(object.name()) {
                Some(Named::Running) => true,
                Some(Named::Held(held)) => held == reference,
                Some(Named::Failed(next)) => Instant::now() < *next,
                None => false,
            };
            if !is_settled {
                named.insert(object.name().to_owned(), Named::Running);
                let (reference, served, puller) = (reference.to_owned(), Arc::clone(&served), Arc::clone(&puller));
                pulls.spawn(async move {
                    let is_held = !served.is_behind(&object).await || pull(&object, &reference, &puller).await;
                    let state = if is_held {
                        Named::Held(reference)
                    } else {
                        Named::Failed(Instant::now() + RETRY)
                    };
                    (object.name().to_owned(), state)
                });
            }
        }
        if served.has_own_store && *served.listed.borrow() {
            let kept = |object: &Arc<ClusterCatalog>| !object.is_unavailable() && !object.is_deleted();
            let kept = served.objects.state().into_iter().filter(kept);
            remove_others(&*served.store, &kept.map(|object| object.name().to_owned()).collect()).await;
        }
    }
}

/// Publishes an image to the own store. Returns false if that failed.
async fn pull(object: &ClusterCatalog, reference: &str, puller: &Puller) -> bool {
    let mut named = object.clone();
    named.spec = json!({"source": {"type": "Image", "image": {"ref": reference}}});
    let Ok(catalog) = spec::catalog(&named) else {
        return false;
    };
    match puller.poll(&catalog).await {
        Ok(report) => report.error.is_none(),
        Err(error) => {
            let error = model::text::chain(error.as_ref());
            tracing::warn!(error, "cannot pull what a status names");
            false
        }
    }
}

/// Removes catalogs of other names from a store. A failure is logged only: the next time they are removed.
pub(crate) async fn remove_others(store: &dyn Store, names: &BTreeSet<String>) {
    let remove = async || -> Result<(), ReadError> {
        for name in publish::catalog_names(store).await? {
            if !names.contains(name.as_str()) {
                publish::remove(store, &name).await?;
                tracing::info!(catalog = %name, "removed a catalog that has no ClusterCatalog");
            }
        }
        Ok(())
    };
    if let Err(error) = remove().await {
        let error = model::text::chain(&error);
        tracing::warn!(error, "cannot remove catalogs without a ClusterCatalog");
    }
}
