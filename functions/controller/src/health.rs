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
use tokio::sync::watch;

use crate::{
    catalog::ClusterCatalog,
    named::serves,
    replicas::{Follower, Standing},
};

/// Time after the start from which this replica is ready although a catalog is missing. A registry that does not answer must not
/// keep the other catalogs from being served, and a rolling update ends the old replica, whose Lease this one waits for, only when
/// this one is ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state from which readiness follows.
pub(crate) struct Health {
    /// ClusterCatalogs as they are now.
    pub(crate) objects: reflector::Store<ClusterCatalog>,
    /// True once the ClusterCatalogs were listed.
    pub(crate) listed: watch::Receiver<bool>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) follower: Arc<Follower>,
    pub(crate) started: Instant,
    /// True once this replica had what it should serve. That does not disappear.
    pub(crate) was_ready: AtomicBool,
}

impl Health {
    /// Returns the routes of the probes.
    pub(crate) fn routes(self: Arc<Self>) -> Router {
        let ready = move |RawQuery(query): RawQuery| async move {
            let is_verbose = query.as_deref().is_some_and(|query| query.split('&').any(is_verbose));
            // Asked every ten seconds: the store is not asked for all catalogs each time.
            if !is_verbose && self.was_ready.load(Ordering::Relaxed) && self.relation().0 {
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
        let is_listed = *self.listed.borrow();
        let (is_in_step, relation) = self.relation();
        let is_complete = is_listed && missing.is_empty();
        if is_in_step && (is_complete || self.started.elapsed() >= PATIENCE) {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        let is_ready = is_in_step && self.was_ready.load(Ordering::Relaxed);
        let mut text = String::new();
        let mut line = |is_good: bool, what: &str| {
            let _ = writeln!(text, "[{}] {what}", if is_good { '+' } else { '-' });
        };
        match is_listed {
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
        line(is_in_step, &relation);
        line(is_ready, if is_ready { "ready" } else { "not ready" });
        (is_ready, text)
    }

    /// Returns true if this replica may serve as far as the leader is concerned, and why.
    fn relation(&self) -> (bool, String) {
        let Some((standing, had_contact)) = self.follower.standing() else {
            return (true, "this replica leads and polls".to_owned());
        };
        if let Some(other) = self.follower.other_program() {
            let text = format!(
                "another program, {other}, has the Lease; this one serves what the statuses name, and writes nothing"
            );
            return (true, text);
        }
        let (is_good, text) = match standing {
            Standing::InStep if had_contact => (
                true,
                "another replica leads; this one copies from it and writes nothing",
            ),
            Standing::InStep => (false, "no replica leads yet, or the leader has not answered yet"),
            Standing::Leaderless => (true, "no replica leads; this one serves what it has and writes nothing"),
            Standing::CutOff => (false, "a replica leads and does not answer this one"),
            Standing::Blind => (false, "neither the leader nor the API server answers"),
        };
        (is_good, text.to_owned())
    }

    /// Returns the catalogs that should be served by their status and are not in the store.
    async fn missing(&self) -> Vec<String> {
        // The leader says what is to be served. Without one only the status does.
        let standing = self.follower.standing();
        let by_status =
            self.follower.other_program().is_some() || matches!(standing, Some((Standing::Leaderless, false)));
        let mut missing = Vec::new();
        for object in self.objects.state().iter().filter(|object| object.status.is_serving()) {
            let is_there = match object.status.resolved() {
                Some(reference) if by_status => serves(&*self.store, object.name(), reference).await,
                _ => has_content(&*self.store, object.name()).await,
            };
            if !is_there {
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
    use crate::{
        replicas::{FollowSettings, LinkSettings},
        token::OwnToken,
    };

    fn health(names: &[(&str, &str)], age: u64) -> (Health, MemoryStore) {
        let (objects, mut writer) = reflector::store();
        for (name, serving) in names {
            let condition = json!({"type": "Serving", "status": serving, "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let object = json!({"metadata": {"name": name}, "status": {"conditions": [condition]}});
            writer.apply_watcher_event(&Event::Apply(serde_json::from_value(object).unwrap()));
        }
        let store = MemoryStore::default();
        let follower = Follower::new(FollowSettings {
            me: "me".to_owned(),
            store: Arc::new(store.clone()),
            owns_store: true,
            link: LinkSettings {
                scheme: "http",
                host: "localhost".to_owned(),
                authorities: Default::default(),
                token: OwnToken::Absent,
            },
        });
        follower.set_leading(true);
        let health = Health {
            objects,
            listed: watch::channel(true).1,
            store: Arc::new(store.clone()),
            follower: Arc::new(follower),
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
        let (mut health, _) = health(&[], 0);
        let (is_listed, listed) = watch::channel(false);
        health.listed = listed;
        assert!(!health.readiness().await.0);
        is_listed.send_replace(true);
        assert!(health.readiness().await.0);
    }

    #[tokio::test]
    async fn missing_catalog_keeps_the_others_from_being_served_for_a_minute_only() {
        assert!(!health(&[("a", "True")], 59).0.readiness().await.0);
        assert!(health(&[("a", "True")], 60).0.readiness().await.0);
    }

    #[tokio::test]
    async fn replica_that_does_not_lead_is_ready_only_after_contact() {
        let (health, _) = health(&[], 0);
        assert!(health.readiness().await.1.contains("this replica leads"));
        assert!(health.relation().0);
        health.follower.set_leading(false);
        let (is_ready, text) = health.readiness().await;
        assert!(!is_ready && text.contains("has not answered yet"), "{text}");
    }
}
