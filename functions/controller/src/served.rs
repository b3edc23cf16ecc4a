//! The content that this replica may serve: no catalog whose status names an image that the store
//! does not have yet.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kube::runtime::reflector::{self, ObjectRef};
use model::{CatalogName, Current, Key};
use reader::{PublishedCatalogs, PublishedState, ReaderError};
use store::{Store, StoreExt};
use tokio::sync::watch;

use crate::catalog::ClusterCatalog;
use crate::election::Role;
use crate::newest::{Newest, NewestBy};
use crate::schedule::LastPolls;

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

    /// Returns true if the status, as this replica has seen it last, names an image that the store
    /// does not have yet.
    pub(crate) async fn is_behind(&self, object: &ClusterCatalog) -> bool {
        // A leader has published it before the status names it, also where that is written a moment
        // later.
        if !self.follows_statuses() || self.polls.has_published(object.name()) {
            return false;
        }
        match object.status.served_digest() {
            Some(digest) => !holds(&*self.store, object.name(), digest).await,
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

/// Layer in front of the HTTP API: no answer that is behind the status of its ClusterCatalog.
pub(crate) struct Gate {
    pub(crate) served: Arc<Served>,
    pub(crate) newest: Newest,
    /// Catalogs that the API behind it reads.
    pub(crate) catalogs: PublishedCatalogs,
}

impl Gate {
    /// Returns the state that answers a client which keeps the answer for as long as the status
    /// names the same image. `None` if a later state may be named already: one such answer, and the
    /// cluster keeps an old catalog until the next change, with every condition green.
    ///
    /// # Errors
    /// Those of reading the state.
    async fn newest_state(&self, name: &str) -> Result<Option<PublishedState>, ReaderError> {
        // No question about a catalog that has no content: any client can make names up.
        let found = self.catalogs.find(name).await?;
        let by = if self.served.follows_statuses() {
            NewestBy::Status
        } else {
            NewestBy::Pointer
        };
        let newest = self.newest.ask(found.name(), by).await;
        // Found after the question, and handed on: it may be later than what was asked for, and
        // never earlier. The reader could find an earlier one again, from a read that overlapped.
        let state = self.catalogs.find(name).await?;
        let Some(newest) = newest else {
            // Without an API server callers must go on, as they do without this check.
            return Ok(Some(state));
        };
        // A leader replaces its pointer first and writes the status after that. So the status never
        // names an image that the leader's store lacks, and for a moment, or for as long as the API
        // server takes no writes, it names the image before. A process that stood still while
        // another replica led may take itself for the leader: then the status names neither.
        let is_leader = *self.served.role.borrow() == Role::Leader;
        let is_newest = state.current().source.revision == newest
            || is_leader && self.served.polls.is_later_than(name, &newest);
        Ok(is_newest.then_some(state))
    }
}

/// Answers 503 for a catalog that is behind its status, or may be. A retry may reach another
/// replica.
pub(crate) async fn refuse_behind(
    State(gate): State<Arc<Gate>>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let Some(name) = api::catalog_of(path).map(Cow::into_owned) else {
        return next.run(request).await;
    };
    let is_kept = api::is_kept(path);
    let object = gate.served.objects.get(&ObjectRef::new(&name));
    if let Some(object) = object
        && gate.served.is_behind(&object).await
    {
        return behind();
    }
    if is_kept {
        match gate.newest_state(&name).await {
            Ok(Some(state)) => drop(request.extensions_mut().insert(state)),
            Ok(None) => return behind(),
            Err(_) => {
                // The API behind reads the state again, and answers with the reason. If it finds
                // one now, that was not checked.
                let response = next.run(request).await;
                let is_error = response.status().is_client_error();
                return if is_error || response.status().is_server_error() {
                    response
                } else {
                    behind()
                };
            }
        }
    }
    next.run(request).await
}

fn behind() -> Response {
    let headers = [(RETRY_AFTER, HeaderValue::from_static("1"))];
    let text = "this replica does not have the current state of the catalog yet\n";
    (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
}

/// Returns true if the store has content of a catalog, or if it cannot tell.
pub(crate) async fn has_content(store: &dyn Store, name: &str) -> bool {
    let Ok(name) = name.parse::<CatalogName>() else {
        return false;
    };
    // A poll would not help a store that does not answer.
    !matches!(store.head(&Key::Current(name)).await, Ok(None))
}

/// Returns true if the store has the content of the image of this digest.
pub(crate) async fn holds(store: &dyn Store, name: &str, digest: &str) -> bool {
    let Ok(name) = name.parse::<CatalogName>() else {
        return false;
    };
    let found = store.read_document::<Current>(&Key::Current(name)).await;
    matches!(found, Ok(Some((current, _))) if current.source.revision == digest)
}

#[cfg(test)]
mod tests;
