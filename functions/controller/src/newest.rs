//! The newest image of a catalog, asked for anew by each answer that a client keeps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use model::{CatalogName, Current, Key};
use parking_lot::Mutex;
use store::{Store, StoreExt};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::catalog::ClusterCatalog;

/// Maximum time for which an answer waits for the API server. After that the API server counts as
/// unreachable. A busy one takes a second now and then, and OLM v1 waits 10 s for an answer.
const ASK_TIME: Duration = Duration::from_secs(2);

/// Wait after a question that failed, within [`ASK_TIME`]: a connection that an API server closes
/// because it restarts is no outage.
const AGAIN: Duration = Duration::from_millis(100);

/// Time from the beginning of one question for a catalog to that of the next: however many readers
/// there are, a catalog costs the API server twenty small requests a second.
const PAUSE: Duration = Duration::from_millis(50);

/// Place in which the newest image of a catalog is written first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewestBy {
    /// The status of the ClusterCatalog: what it names comes to this replica's store later.
    Status,
    /// The pointer in a store that all replicas share: it is replaced before the status names the
    /// image.
    Pointer,
}

/// Questions for the newest images.
///
/// At most one for each catalog is on its way. It answers all callers that came before it began, so
/// a flood of readers asks no more than one reader does. A question that began before a caller came
/// is no answer for that caller: what it will say may be older than what the caller knows.
pub(crate) struct Newest {
    objects: Api<ClusterCatalog>,
    store: Arc<dyn Store>,
    /// Last question for each catalog. Callers wait in the order in which they came.
    asked: Mutex<HashMap<String, Arc<AsyncMutex<Option<Asked>>>>>,
}

struct Asked {
    began: Instant,
    newest: Option<String>,
}

impl Newest {
    pub(crate) fn new(objects: Api<ClusterCatalog>, store: Arc<dyn Store>) -> Self {
        Self {
            objects,
            store,
            asked: Mutex::default(),
        }
    }

    /// Returns the revision of the newest content of a catalog at some time after this call: the
    /// digest of the image. `None` if there is none, or if what has to be asked does not answer.
    pub(crate) async fn ask(&self, name: &CatalogName, by: NewestBy) -> Option<String> {
        let came = Instant::now();
        let asked = Arc::clone(self.asked.lock().entry(name.to_string()).or_default());
        let mut asked = asked.lock().await;
        if let Some(last) = &*asked {
            if last.began >= came {
                return last.newest.clone();
            }
            sleep_until(last.began + PAUSE).await;
        }
        let began = Instant::now();
        let newest = match by {
            NewestBy::Status => self.status(name).await,
            NewestBy::Pointer => self.pointer(name).await,
        };
        *asked = Some(Asked {
            began,
            newest: newest.clone(),
        });
        newest
    }

    async fn status(&self, name: &CatalogName) -> Option<String> {
        let end = Instant::now() + ASK_TIME;
        loop {
            // Without a resource version this is what etcd's majority has now, and not what an API
            // server remembers.
            let problem = match timeout_at(end, self.objects.get_opt(name.as_str())).await {
                Ok(Ok(object)) => return object?.status.served_digest().map(str::to_owned),
                Ok(Err(error)) => model::text::chain(&error),
                Err(late) => late.to_string(),
            };
            if Instant::now() + AGAIN >= end {
                let after_s = ASK_TIME.as_secs();
                tracing::warn!(
                    catalog = %name,
                    error = problem,
                    after_s,
                    "cannot ask the API server what a status names, serving what the store has"
                );
                return None;
            }
            sleep(AGAIN).await;
        }
    }

    async fn pointer(&self, name: &CatalogName) -> Option<String> {
        let key = Key::Current(name.clone());
        let found = self.store.read_document::<Current>(&key).await;
        // Without its store this replica has nothing to answer with.
        let (current, _) = found.ok().flatten()?;
        Some(current.source.revision)
    }
}
