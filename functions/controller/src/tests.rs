//! An API server in this process, and ClusterCatalogs as it has them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use futures_util::stream;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::catalog::ClusterCatalog;

/// Path of the Lease that replicas of the namespace olmv1-system want.
pub(crate) const LEASE_PATH: &str =
    "/apis/coordination.k8s.io/v1/namespaces/olmv1-system/leases/catalogd-operator-lock";

/// API server with any objects. A write must name the version of its object.
#[derive(Clone, Default)]
pub(crate) struct ApiServer(Arc<Mutex<ApiState>>);

#[derive(Default)]
pub(crate) struct ApiState {
    /// Objects by path.
    pub(crate) objects: BTreeMap<String, Value>,
    version: u64,
    /// Last part of the path of each request that has written.
    pub(crate) writes: Vec<String>,
    /// Number of objects that were read.
    pub(crate) reads: usize,
    /// True if each request fails.
    pub(crate) is_down: bool,
    /// Time that each answer is on its way.
    pub(crate) delay: Duration,
}

impl ApiServer {
    pub(crate) fn client(&self) -> Client {
        Client::new(
            Router::new().fallback(answer).with_state(self.clone()),
            "default",
        )
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ApiState> {
        self.0.lock().unwrap()
    }
}

async fn answer(
    State(server): State<ApiServer>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> (StatusCode, Body) {
    if uri
        .query()
        .is_some_and(|query| query.contains("watch=true"))
    {
        let silent = stream::pending::<io::Result<Bytes>>();
        return (StatusCode::OK, Body::from_stream(silent));
    }
    let (answered, delay) = {
        let mut state = server.lock();
        let answered = match method {
            _ if state.is_down => Err(StatusCode::SERVICE_UNAVAILABLE),
            Method::GET => state.read(uri.path()),
            _ => state.write(&method, uri.path(), serde_json::from_slice(&body).unwrap()),
        };
        (answered, state.delay)
    };
    if !delay.is_zero() {
        sleep(delay).await;
    }
    let (status, answer) = answered.map_or_else(failure, |object| (StatusCode::OK, object));
    (status, answer.to_string().into())
}

fn failure(status: StatusCode) -> (StatusCode, Value) {
    let reason = status.canonical_reason().unwrap().replace(' ', "");
    let body = json!({"kind": "Status", "code": status.as_u16(), "reason": reason, "message": ""});
    (status, body)
}

impl ApiState {
    /// Returns an object, or the list of those whose path begins with this one.
    fn read(&mut self, path: &str) -> Result<Value, StatusCode> {
        self.reads += 1;
        let below = |(found, _): &(&String, &Value)| found.starts_with(&format!("{path}/"));
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(below)
            .map(|(_, object)| object)
            .collect();
        match self.objects.get(path) {
            Some(object) => Ok(object.clone()),
            None if items.is_empty() => Err(StatusCode::NOT_FOUND),
            None => Ok(json!({"metadata": {"resourceVersion": "1"}, "items": items})),
        }
    }

    fn write(&mut self, method: &Method, path: &str, body: Value) -> Result<Value, StatusCode> {
        let target = match body["metadata"]["name"].as_str() {
            _ if method != Method::POST => path.trim_end_matches("/status").to_owned(),
            Some(name) => format!("{path}/{name}"),
            // A review is answered, and not kept.
            None => return Ok(body),
        };
        let known = self.objects.get(&target).unwrap_or(&Value::Null);
        if body["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"] {
            return Err(StatusCode::CONFLICT);
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        self.writes.push(last.to_owned());
        Ok(match (method, last) {
            (&Method::PATCH, "status") => self.change(&target, &json!({"status": body["status"]})),
            (&Method::PATCH, _) => self.change(&target, &json!({"metadata": body["metadata"]})),
            _ => self.change(&target, &body),
        })
    }

    /// Applies a merge patch (RFC 7386), which gives the object another version. A replacement is
    /// one too: none lacks a field.
    pub(crate) fn change(&mut self, path: &str, patch: &Value) -> Value {
        self.version += 1;
        let object = self.objects.entry(path.to_owned()).or_default();
        json_patch::merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object.clone()
    }
}

/// Returns a condition of a status.
pub(crate) fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Returns a ClusterCatalog whose status has this condition `Serving`, and names the image of this
/// digest.
pub(crate) fn catalog(name: &str, serving: &str, digest: &str) -> ClusterCatalog {
    let source = json!({"type": "Image", "image": {"ref": format!("quay.io/a/b@{digest}")}});
    let status = json!({"conditions": [condition("Serving", serving)], "resolvedSource": source});
    serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
}
