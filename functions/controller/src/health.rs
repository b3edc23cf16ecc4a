//! `/healthz` and `/readyz`.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, extract::RawQuery, http::StatusCode, routing::get};
use kube::runtime::reflector;
use model::{CatalogName, Key};
use store::Store;

use crate::{catalog::ClusterCatalog, election::Leading};

/// Time after the start from which this replica is ready although a catalog is missing. A registry that does not answer must not
/// keep the other catalogs from being served, and a rolling update ends the old replica, whose Lease this one waits for, only when
/// this one is ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state from which readiness follows.
pub(crate) struct Health {
    /// ClusterCatalogs as they are now.
    pub(crate) objects: reflector::Store<ClusterCatalog>,
    /// True once the ClusterCatalogs were listed.
    pub(crate) is_listed: AtomicBool,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) leading: Leading,
    pub(crate) started: Instant,
    /// True once this replica was ready. It stays ready then: what is served does not disappear.
    pub(crate) was_ready: AtomicBool,
}

impl Health {
    /// Returns the routes of the probes.
    pub(crate) fn routes(self: Arc<Self>) -> Router {
        let ready = move |RawQuery(query): RawQuery| async move {
            let is_verbose = query.as_deref().is_some_and(|query| query.split('&').any(is_verbose));
            // Asked every ten seconds: the store is not asked for all catalogs each time.
            if !is_verbose && self.was_ready.load(Ordering::Relaxed) {
                return (StatusCode::OK, "ok\n".to_owned());
            }
            let (is_ready, text) = self.readiness().await;
            match is_ready {
                true if is_verbose => (StatusCode::OK, text),
                true => (StatusCode::OK, "ok\n".to_owned()),
                false => (StatusCode::SERVICE_UNAVAILABLE, text),
            }
        };
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
    }

    async fn readiness(&self) -> (bool, String) {
        let missing = self.missing().await;
        let is_complete = self.is_listed.load(Ordering::Relaxed) && missing.is_empty();
        if is_complete || self.started.elapsed() >= PATIENCE {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        let is_ready = self.was_ready.load(Ordering::Relaxed);
        let mut text = String::new();
        let mut line = |is_good: bool, what: &str| {
            let _ = writeln!(text, "[{}] {what}", if is_good { '+' } else { '-' });
        };
        match self.is_listed.load(Ordering::Relaxed) {
            true => line(true, "the ClusterCatalogs are known"),
            false => line(
                false,
                "the ClusterCatalogs are not known: the API server has not answered yet",
            ),
        }
        for name in &missing {
            line(
                false,
                &format!("the catalog {name} should be served and is not in the store"),
            );
        }
        match self.leading.get() {
            true => line(true, "this replica leads and polls"),
            // Not a failure: one replica of several leads.
            false => line(
                true,
                "another replica leads; this one serves its store and writes nothing",
            ),
        }
        line(is_ready, if is_ready { "ready" } else { "not ready" });
        (is_ready, text)
    }

    /// Returns the catalogs that should be served by their status and are not in the store.
    async fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for object in self.objects.state() {
            if object.status.is_serving() && !has_content(&*self.store, object.name()).await {
                missing.push(object.name().to_owned());
            }
        }
        missing
    }
}

/// Returns true if the store has content of a catalog, or if it cannot tell.
pub(crate) async fn has_content(store: &dyn Store, name: &str) -> bool {
    let Ok(name) = name.parse::<CatalogName>() else {
        return false;
    };
    match store.head(&Key::Current(name)).await {
        Ok(_) => true,
        // A poll would not help a store that does not answer.
        Err(error) => !error.is_not_found(),
    }
}

fn is_verbose(parameter: &str) -> bool {
    parameter.split('=').next() == Some("verbose")
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;
    use store::{Condition, MemoryStore};

    use super::*;

    fn health(names: &[(&str, &str)], age: u64) -> (Health, MemoryStore) {
        let (objects, mut writer) = reflector::store();
        for (name, serving) in names {
            let condition = json!({"type": "Serving", "status": serving, "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let object = json!({"metadata": {"name": name}, "status": {"conditions": [condition]}});
            writer.apply_watcher_event(&Event::Apply(serde_json::from_value(object).unwrap()));
        }
        let store = MemoryStore::default();
        let health = Health {
            objects,
            is_listed: true.into(),
            store: Arc::new(store.clone()),
            leading: Leading::default(),
            started: Instant::now().checked_sub(Duration::from_secs(age)).unwrap(),
            was_ready: false.into(),
        };
        (health, store)
    }

    async fn publish(store: &MemoryStore, name: &str) {
        let key = Key::Current(name.parse().unwrap());
        store.put(&key, "{}".into(), Condition::Always).await.unwrap();
    }

    #[tokio::test]
    async fn ready_when_each_serving_catalog_is_in_the_store() {
        let (health, store) = health(&[("a", "True"), ("b", "True"), ("c", "False")], 0);
        publish(&store, "a").await;
        let (is_ready, text) = health.readiness().await;
        assert!(!is_ready && text.contains("the catalog b should be served"), "{text}");
        assert!(!text.contains("catalog a ") && !text.contains("catalog c "), "{text}");
        publish(&store, "b").await;
        assert!(health.readiness().await.0);
        store.delete(&Key::Current("b".parse().unwrap())).await.unwrap();
        let (is_ready, text) = health.readiness().await;
        assert!(is_ready && text.contains("the catalog b should be served"), "{text}");
    }

    #[tokio::test]
    async fn ready_only_after_the_objects_are_known() {
        let (health, _) = health(&[], 0);
        health.is_listed.store(false, Ordering::Relaxed);
        assert!(!health.readiness().await.0);
        health.is_listed.store(true, Ordering::Relaxed);
        assert!(health.readiness().await.0);
    }

    #[tokio::test]
    async fn missing_catalog_keeps_the_others_from_being_served_for_a_minute_only() {
        assert!(!health(&[("a", "True")], 59).0.readiness().await.0);
        assert!(health(&[("a", "True")], 60).0.readiness().await.0);
    }

    #[tokio::test]
    async fn readiness_tells_who_leads() {
        let (health, _) = health(&[], 0);
        assert!(health.readiness().await.1.contains("writes nothing"));
        health.leading.set(true);
        assert!(health.readiness().await.1.contains("this replica leads"));
    }
}
