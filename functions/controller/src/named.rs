//! The work of a replica that does not lead: it holds what the statuses name, so that it serves the
//! same and can take over without a gap. It writes no object.

use std::{sync::Arc, time::Duration};

use kube::runtime::controller::Action;
use serde_json::json;
use store::ReadError;
use tokio_util::task::AbortOnDropHandle;

use crate::catalog::ClusterCatalog;
use crate::reconcile::{Context, ReconcileError};
use crate::served::Served;
use crate::spec;

/// Time between two looks at the role of this replica, and at the catalogs that it serves and
/// should not.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at what a status names: it could not be pulled, or the store may have
/// lost it.
pub(crate) const HOLD_INTERVAL: Duration = Duration::from_secs(30);

/// Pulls what the status of an object names while another replica with another store leads, or
/// another program.
pub(crate) async fn hold(
    object: Arc<ClusterCatalog>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError> {
    if !context.served.follows_statuses() {
        return Ok(Action::requeue(LOOK_INTERVAL));
    }
    let pulling = tokio::spawn(async move { pull(&object, &context).await });
    // A task of its own: a panic must not end the work on other catalogs.
    let pulled = AbortOnDropHandle::new(pulling).await;
    if let Err(error) = pulled.map_err(Into::into).flatten() {
        let error = model::text::chain(error.as_ref());
        tracing::warn!(error, "cannot pull what a status names");
    }
    Ok(Action::requeue(HOLD_INTERVAL))
}

/// Publishes the image that the status names to the own store, if that has another one. The log has
/// the error of a poll that failed.
async fn pull(object: &ClusterCatalog, context: &Context) -> anyhow::Result<()> {
    if context.served.is_behind(object).await {
        let mut named = object.clone();
        named.spec = json!({"source": {"type": "Image", "image": {"ref": object.status.served()}}});
        if let Ok(catalog) = spec::catalog(&named) {
            context.puller.poll(&catalog).await?;
        }
    }
    Ok(())
}

/// Removes the catalogs that no ClusterCatalog asks for from the store.
pub(crate) async fn remove_others(served: &Served) -> Result<(), ReadError> {
    let mut kept = served.objects.state();
    kept.retain(|object| !object.is_unavailable() && !object.is_deleted());
    for name in publish::catalog_names(&*served.store).await? {
        if kept.iter().all(|object| object.name() != name.as_str()) {
            publish::remove(&*served.store, &name).await?;
            tracing::info!(catalog = %name, "removed a catalog that has no ClusterCatalog");
        }
    }
    Ok(())
}
