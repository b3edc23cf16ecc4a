//! An API server in this process, and ClusterCatalogs as it has them.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Method, StatusCode, Uri},
};
use futures_util::stream;
use kube::Client;
use serde_json::{Value, json};

use crate::catalog::ClusterCatalog;

/// Path of the Lease that replicas of the namespace olmv1-system want.
pub(crate) const LEASE_PATH: &str =
    "/apis/coordination.k8s.io/v1/namespaces/olmv1-system/leases/catalogd-operator-lock";

/// API server with any objects. A write must name the version of its object.
#[derive(Clone, Default)]
pub(crate) struct ApiServer(Arc<Mutex<ApiState>>);

#[derive(Default)]
struct ApiState {
    /// Objects by path.
    objects: BTreeMap<String, Value>,
    version: u64,
    /// Last part of the path of each request that has written.
    writes: Vec<String>,
    /// Change by another writer, right before the next patch.
    meddling: Option<Value>,
    is_down: bool,
}

impl ApiServer {
    pub(crate) fn client(&self) -> Client {
        Client::new(Router::new().fallback(answer).with_state(self.clone()), "default")
    }

    fn lock(&self) -> MutexGuard<'_, ApiState> {
        self.0.lock().unwrap()
    }

    /// Returns an object; null if there is none.
    pub(crate) fn get(&self, path: &str) -> Value {
        self.lock().objects.get(path).cloned().unwrap_or_default()
    }

    /// Changes or creates an object, but not its version.
    pub(crate) fn edit(&self, path: &str, patch: &Value) {
        merge(self.lock().objects.entry(path.to_owned()).or_default(), patch);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    /// Lets another writer change the next object that is patched, right before that.
    pub(crate) fn meddle(&self, patch: Value) {
        self.lock().meddling = Some(patch);
    }

    /// Lets each request fail, or not any more.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.lock().is_down = is_down;
    }

    /// Returns what was written since the last call: the last part of the path of each request.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().writes)
    }
}

async fn answer(State(server): State<ApiServer>, method: Method, uri: Uri, body: Bytes) -> (StatusCode, Body) {
    if uri.query().is_some_and(|query| query.contains("watch=true")) {
        return (
            StatusCode::OK,
            Body::from_stream(stream::pending::<io::Result<Bytes>>()),
        );
    }
    let mut state = server.lock();
    let answered = match method {
        _ if state.is_down => Err(StatusCode::SERVICE_UNAVAILABLE),
        Method::GET => state.read(uri.path()),
        _ => state.write(&method, uri.path(), serde_json::from_slice(&body).unwrap()),
    };
    let (status, answer) = match answered {
        Ok(object) => (StatusCode::OK, object),
        Err(status) => {
            let reason = status.canonical_reason().unwrap().replace(' ', "");
            let code = status.as_u16();
            (
                status,
                json!({"kind": "Status", "code": code, "reason": reason, "message": ""}),
            )
        }
    };
    (status, answer.to_string().into())
}

impl ApiState {
    /// Returns an object, or the list of those whose path begins with this one.
    fn read(&self, path: &str) -> Result<Value, StatusCode> {
        if let Some(object) = self.objects.get(path) {
            return Ok(object.clone());
        }
        let below = |(found, _): &(&String, &Value)| found.starts_with(&format!("{path}/"));
        let items: Vec<&Value> = self.objects.iter().filter(below).map(|(_, object)| object).collect();
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": items});
        if items.is_empty() {
            Err(StatusCode::NOT_FOUND)
        } else {
            Ok(list)
        }
    }

    fn write(&mut self, method: &Method, path: &str, body: Value) -> Result<Value, StatusCode> {
        let name = body["metadata"]["name"].as_str();
        let target = match (method, name) {
            // A review is answered, and not kept.
            (&Method::POST, None) => return Ok(body),
            (&Method::POST, Some(name)) => format!("{path}/{name}"),
            _ => path.trim_end_matches("/status").to_owned(),
        };
        let object = self.objects.entry(target).or_default();
        self.version += 1;
        let is_patch = method == Method::PATCH;
        if let Some(meddling) = self.meddling.take_if(|_| is_patch) {
            merge(object, &meddling);
            object["metadata"]["resourceVersion"] = json!("meddled");
        }
        if body["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(StatusCode::CONFLICT);
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        match (is_patch, last) {
            (true, "status") => merge(object, &json!({"status": body["status"]})),
            (true, _) => merge(object, &json!({"metadata": body["metadata"]})),
            (false, _) => *object = body,
        }
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.writes.push(last.to_owned());
        Ok(object.clone())
    }
}

/// Applies a merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(target.as_object_mut().unwrap().remove(name)),
            value => merge(&mut target[name], value),
        }
    }
}

/// Returns a condition of a status.
pub(crate) fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Returns a ClusterCatalog whose status has this condition `Serving`, and names the image of this digest.
pub(crate) fn catalog(name: &str, serving: &str, digest: &str) -> ClusterCatalog {
    let source = json!({"type": "Image", "image": {"ref": format!("quay.io/a/b@{digest}")}});
    let status = json!({"conditions": [condition("Serving", serving)], "resolvedSource": source});
    serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
}
