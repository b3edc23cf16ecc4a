//! The content that this replica may serve: no catalog whose status names an image that the store
//! does not have yet.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kube::runtime::reflector::{self, ObjectRef};
use model::{CatalogName, Current, Key};
use store::{Store, StoreExt};
use tokio::sync::watch;

use crate::{catalog::ClusterCatalog, election::Role, schedule::LastPolls};

/// States that this replica has, and digests that the statuses name.
pub(crate) struct Served {
    /// ClusterCatalogs as they are now.
    pub(crate) objects: reflector::Store<ClusterCatalog>,
    /// True once they were listed.
    pub(crate) listed: watch::Receiver<bool>,
    pub(crate) store: Arc<dyn Store>,
    /// True if other replicas have stores of their own too. In one store that all share, a state is
    /// published before a status names it.
    pub(crate) has_own_store: bool,
    pub(crate) role: watch::Receiver<Role>,
    /// Polls of this replica while it leads.
    pub(crate) polls: Arc<LastPolls>,
}

impl Served {
    /// Returns true if what the statuses name is published to another store, so that this replica
    /// has to pull it.
    pub(crate) fn follows_statuses(&self) -> bool {
        self.has_own_store || matches!(*self.role.borrow(), Role::BesideOther(_))
    }

    /// Returns true if the status names an image that the store does not have yet.
    pub(crate) async fn is_behind(&self, object: &ClusterCatalog) -> bool {
        // A leader has published it before the status names it, also where that is written a moment
        // later.
        if !self.follows_statuses() || self.polls.has_published(object.name()) {
            return false;
        }
        match object.status.served() {
            Some(reference) => !holds(&*self.store, object.name(), reference).await,
            None => false,
        }
    }

    /// Returns the catalogs that should be served by their status and are not.
    pub(crate) async fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for object in self
            .objects
            .state()
            .iter()
            .filter(|object| object.status.is_serving())
        {
            if self.is_behind(object).await || !has_content(&*self.store, object.name()).await {
                missing.push(object.name().to_owned());
            }
        }
        missing
    }
}

/// Answers 503 for a catalog that is behind its status. A retry may reach another replica.
pub(crate) async fn refuse_behind(
    State(served): State<Arc<Served>>,
    request: Request,
    next: Next,
) -> Response {
    let object =
        catalog_of(request.uri().path()).and_then(|name| served.objects.get(&ObjectRef::new(name)));
    match object {
        Some(object) if served.is_behind(&object).await => {
            let headers = [(RETRY_AFTER, HeaderValue::from_static("1"))];
            let text = "this replica does not have the current state of the catalog yet\n";
            (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
        }
        _ => next.run(request).await,
    }
}

/// Returns the catalog of a path: `/catalogs/NAME/...` or `/v2/NAME/...`.
fn catalog_of(path: &str) -> Option<&str> {
    let rest = path
        .strip_prefix("/catalogs/")
        .or_else(|| path.strip_prefix("/v2/"))?;
    rest.split('/').next().filter(|name| !name.is_empty())
}

/// Returns true if the store has content of a catalog, or if it cannot tell.
pub(crate) async fn has_content(store: &dyn Store, name: &str) -> bool {
    let Ok(name) = name.parse::<CatalogName>() else {
        return false;
    };
    // A poll would not help a store that does not answer.
    !matches!(store.head(&Key::Current(name)).await, Ok(None))
}

/// Returns true if the store has the content of the image `REPOSITORY@DIGEST`.
pub(crate) async fn holds(store: &dyn Store, name: &str, reference: &str) -> bool {
    let (Ok(name), Some((_, digest))) = (name.parse::<CatalogName>(), reference.rsplit_once('@'))
    else {
        return false;
    };
    let found = store.read_document::<Current>(&Key::Current(name)).await;
    matches!(found, Ok(Some((current, _))) if current.source.revision == digest)
}

#[cfg(test)]
mod tests;
