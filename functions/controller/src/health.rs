//! `/healthz` and `/readyz`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;

use crate::{election::Role, served::Served};

/// Time after the start from which this replica is ready although a catalog is missing. A registry
/// that does not answer must not keep the other catalogs from being served, and a rolling update
/// ends the old replica, whose Lease this one waits for, only when this one is ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state from which readiness follows.
pub(crate) struct Health {
    pub(crate) served: Arc<Served>,
    pub(crate) started: Instant,
    /// True once this replica had what it should serve. That does not disappear.
    pub(crate) was_ready: AtomicBool,
}

impl Health {
    /// Returns the routes of the probes.
    pub(crate) fn routes(self: Arc<Self>) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready).with_state(self))
    }

    async fn readiness(&self) -> (bool, String) {
        let missing = self.served.missing().await;
        let is_listed = *self.served.listed.borrow();
        if (is_listed && missing.is_empty()) || self.started.elapsed() >= PATIENCE {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        let is_ready = self.was_ready.load(Ordering::Relaxed);
        let listed = match is_listed {
            true => "[+] the ClusterCatalogs are known",
            false => "[-] the ClusterCatalogs are not known: the API server has not answered yet",
        };
        let mut missing_lines = String::new();
        for name in &missing {
            missing_lines +=
                &format!("[-] the catalog {name} should be served and is not in the store\n");
        }
        let relation = relation(&self.served.role.borrow());
        let verdict = if is_ready {
            "[+] ready"
        } else {
            "[-] not ready"
        };
        (
            is_ready,
            format!("{listed}\n{missing_lines}[+] {relation}\n{verdict}\n"),
        )
    }
}

/// Answers `/readyz`. With `?verbose` it lists what is ready.
async fn ready(
    State(health): State<Arc<Health>>,
    RawQuery(query): RawQuery,
) -> (StatusCode, String) {
    let mut parameters = query.as_deref().unwrap_or_default().split('&');
    let is_verbose = parameters.any(|parameter| parameter.split('=').next() == Some("verbose"));
    // Asked every ten seconds: the store is not asked for all catalogs each time.
    if !is_verbose && health.was_ready.load(Ordering::Relaxed) {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    match health.readiness().await {
        (false, text) => (StatusCode::SERVICE_UNAVAILABLE, text),
        (true, text) if is_verbose => (StatusCode::OK, text),
        (true, _) => (StatusCode::OK, "ok\n".to_owned()),
    }
}

fn relation(role: &Role) -> String {
    match role {
        Role::Leader => "this replica leads and polls".to_owned(),
        Role::Follower => "this replica does not lead; it serves and writes nothing".to_owned(),
        Role::BesideOther(other) => format!(
            "another program, {other}, has the Lease; this one serves what the statuses name, and writes nothing"
        ),
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::{reflector, watcher::Event};
    use model::Key;
    use store::{Condition, Store};
    use storekit::MemoryStore;
    use tokio::sync::watch;

    use super::*;
    use crate::tests::catalog;

    fn health(names: &[(&str, &str)], age: u64, is_listed: bool) -> (Health, MemoryStore) {
        let (objects, mut writer) = reflector::store();
        for (name, serving) in names {
            writer.apply_watcher_event(&Event::Apply(catalog(name, serving, "sha256:1")));
        }
        let store = MemoryStore::default();
        let served = Served {
            listed: watch::channel(is_listed).1,
            ..Served::led(objects, Arc::new(store.clone()))
        };
        let health = Health {
            served: Arc::new(served),
            started: Instant::now()
                .checked_sub(Duration::from_secs(age))
                .unwrap(),
            was_ready: false.into(),
        };
        (health, store)
    }

    async fn publish(store: &MemoryStore, name: &str) {
        let key = Key::Current(name.parse().unwrap());
        store
            .put(&key, "{}".into(), Condition::Always)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn ready_when_each_serving_catalog_is_in_the_store() {
        let (health, store) = health(&[("a", "True"), ("b", "True"), ("c", "False")], 0, true);
        publish(&store, "a").await;
        let (is_ready, text) = health.readiness().await;
        assert!(
            !is_ready && text.contains("the catalog b should be served"),
            "{text}"
        );
        assert!(
            !text.contains("catalog a ") && !text.contains("catalog c "),
            "{text}"
        );
        publish(&store, "b").await;
        assert!(health.readiness().await.0);
        store
            .delete(&Key::Current("b".parse().unwrap()))
            .await
            .unwrap();
        let (is_ready, text) = health.readiness().await;
        assert!(
            is_ready && text.contains("the catalog b should be served"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn ready_once_the_objects_are_known_or_a_minute_has_passed() {
        let missing: &[(&str, &str)] = &[("a", "True")];
        for (names, age, is_listed, is_ready) in [
            (&[][..], 0, false, false),
            (&[], 0, true, true),
            (missing, 59, true, false),
            (missing, 60, true, true),
        ] {
            let (health, _) = health(names, age, is_listed);
            assert_eq!(health.readiness().await.0, is_ready, "{age} {is_listed}");
        }
    }
}
