//! catalogd's mutating webhook, which sets the label with the name of each ClusterCatalog.
//!
//! While its MutatingWebhookConfiguration exists, the API server refuses ClusterCatalogs without
//! that label unless it gets an answer.

use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};

use crate::catalog::NAME_LABEL;

/// Path of the webhook, as controller-runtime makes it from group, version and kind.
const PATH: &str = "/mutate-olm-operatorframework-io-v1-clustercatalog";

/// Maximum size of a review, in bytes: that of controller-runtime. A review holds the old and the
/// new object, of at most 1.5 MiB each.
const BODY_MAX: usize = 7 << 20;

/// Maximum time to receive a review. The API server waits as long for the answer.
const READ_TIME: Duration = Duration::from_secs(10);

/// Places for reviews at a time, because any client in the cluster can send the largest ones.
static REVIEWS: Semaphore = Semaphore::const_new(8);

/// Returns the routes of the webhook, for a server that passes the content of requests.
pub(crate) fn routes() -> Router {
    Router::new().route(PATH, post(answer))
}

async fn answer(request: Request) -> Response {
    let reading = async {
        let permit = REVIEWS.acquire().await;
        (to_bytes(request.into_body(), BODY_MAX).await, permit)
    };
    let (status, problem) = match timeout(READ_TIME, reading).await {
        Ok((Ok(body), _permit)) => match review(&body) {
            Ok(answer) => {
                return ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response();
            }
            Err(problem) => (StatusCode::BAD_REQUEST, problem),
        },
        Ok((Err(_), _)) => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too large or broken off",
        ),
        Err(_) => (
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        ),
    };
    (status, format!("{problem}\n")).into_response()
}

/// Returns the answer to a review (Kubernetes, `admission.k8s.io/v1`).
fn review(body: &[u8]) -> Result<Value, &'static str> {
    let review: Value = serde_json::from_slice(body).map_err(|_| "the body is not JSON")?;
    if (&review["apiVersion"], &review["kind"])
        != (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    {
        return Err("the body is not an AdmissionReview of admission.k8s.io/v1");
    }
    let request = &review["request"];
    let uid = request["uid"].as_str().filter(|uid| !uid.is_empty());
    let mut response = json!({"uid": uid.ok_or("the request has no uid")?, "allowed": true});
    let kind = &request["kind"];
    if (kind["group"].as_str(), kind["kind"].as_str())
        == (Some("olm.operatorframework.io"), Some("ClusterCatalog"))
        && let Some(patch) = patch(request)?
    {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(ByteString(json!([patch]).to_string().into_bytes()));
    }
    Ok(
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}),
    )
}

/// Returns the operation that sets the label; `None` if it is right, or if there is no object, as
/// in a deletion.
fn patch(request: &Value) -> Result<Option<Value>, &'static str> {
    let metadata = match &request["object"] {
        Value::Null => return Ok(None),
        object => object["metadata"]
            .as_object()
            .ok_or("the object has no metadata")?,
    };
    // Not in the object yet if the API server makes it.
    let name = metadata
        .get("name")
        .or(request.get("name"))
        .and_then(Value::as_str);
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    Ok(match metadata.get("labels") {
        None | Some(Value::Null) => {
            Some(json!({"op": "add", "path": "/metadata/labels", "value": {NAME_LABEL: name}}))
        }
        Some(labels) if labels[NAME_LABEL] == name => None,
        Some(_) => {
            // RFC 6901, section 3.
            let path = format!(
                "/metadata/labels/{}",
                NAME_LABEL.replace('~', "~0").replace('/', "~1")
            );
            Some(json!({"op": "add", "path": path, "value": name}))
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{flags::Flags, wiring};

    fn request(kind: &str, object: &Value) -> Value {
        let kind = json!({"group": "olm.operatorframework.io", "version": "v1", "kind": kind});
        let request = json!({"uid": "u", "kind": kind, "name": "a", "object": object});
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    }

    #[test]
    fn review_adds_the_label_and_keeps_others() {
        let response = |kind, object: &Value| {
            let mut answer = review(request(kind, object).to_string().as_bytes()).unwrap();
            answer["response"].take()
        };
        let unchanged = json!({"uid": "u", "allowed": true});
        let patched = |path, value: Value| {
            let patch = json!([{"op": "add", "path": path, "value": value}]).to_string();
            json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": ByteString(patch.into_bytes())})
        };
        let all = patched("/metadata/labels", json!({NAME_LABEL: "a"}));
        let set = patched(
            "/metadata/labels/olm.operatorframework.io~1metadata.name",
            json!("a"),
        );
        for (metadata, expected) in [
            (json!({"name": "a"}), &all),
            (json!({"generateName": "a"}), &all),
            (json!({"name": "a", "labels": null}), &all),
            (json!({"name": "a", "labels": {}}), &set),
            (json!({"name": "a", "labels": {"b": "c"}}), &set),
            (json!({"name": "a", "labels": {NAME_LABEL: "b"}}), &set),
            (
                json!({"name": "a", "labels": {NAME_LABEL: "a"}}),
                &unchanged,
            ),
        ] {
            let object = json!({"metadata": metadata});
            assert_eq!(response("ClusterCatalog", &object), *expected, "{object}");
        }
        assert_eq!(
            response("ClusterCatalog", &Value::Null),
            unchanged,
            "a deletion"
        );
        let object = json!({"metadata": {"name": "a"}});
        assert_eq!(response("ClusterExtension", &object), unchanged);
    }

    async fn post_body(body: &str) -> Response {
        answer(Request::new(body.to_owned().into())).await
    }

    #[tokio::test]
    async fn bad_requests_are_refused() {
        let without = |field: &str| {
            let mut request = request("ClusterCatalog", &json!({"metadata": {"name": "a"}}));
            request["request"][field].take();
            request.to_string()
        };
        for body in [
            String::new(),
            "{".to_owned(),
            "{}".to_owned(),
            json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"})
                .to_string(),
            without("uid"),
            request("ClusterCatalog", &json!({})).to_string(),
            request("ClusterCatalog", &json!("a")).to_string(),
        ] {
            assert_eq!(
                post_body(&body).await.status(),
                StatusCode::BAD_REQUEST,
                "{body}"
            );
        }
        let good = post_body(&without("name")).await;
        assert_eq!(good.status(), StatusCode::OK);
        assert_eq!(good.headers()[CONTENT_TYPE], "application/json");
    }

    #[tokio::test]
    async fn server_passes_reviews_up_to_the_limit() {
        let listener = wiring::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let flags = Flags::try_parse_from(["catalogd"]).unwrap();
        let server = wiring::server(&flags, Default::default(), false).unwrap();
        tokio::spawn(
            server
                .with_content()
                .run(listener, routes(), CancellationToken::new()),
        );
        let post = async |path: &str, body: &[u8]| {
            let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
            let length = body.len();
            let head =
                format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            socket.write_all(head.as_bytes()).await.unwrap();
            socket.write_all(body).await.unwrap();
            let mut status = [0; 12];
            socket.read_exact(&mut status).await.unwrap();
            String::from_utf8(status.to_vec()).unwrap()
        };
        let good = request("ClusterCatalog", &json!({"metadata": {"name": "a"}}));
        let mut good = good.to_string().into_bytes();
        assert_eq!(post(PATH, &good).await, "HTTP/1.1 200");
        assert_eq!(post("/mutate", &good).await, "HTTP/1.1 404");
        good.resize(BODY_MAX, b' ');
        assert_eq!(post(PATH, &good).await, "HTTP/1.1 200");
        good.push(b' ');
        assert_eq!(post(PATH, &good).await, "HTTP/1.1 413");
    }

    #[tokio::test(start_paused = true)]
    async fn review_that_does_not_arrive_is_given_up() {
        let endless = axum::body::Body::from_stream(futures_util::stream::pending::<
            std::io::Result<Vec<u8>>,
        >());
        let answered = answer(Request::new(endless)).await;
        assert_eq!(answered.status(), StatusCode::REQUEST_TIMEOUT);
    }
}
