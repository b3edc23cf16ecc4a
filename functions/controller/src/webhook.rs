//! catalogd's mutating webhook, which sets the label with the name of each ClusterCatalog.
//!
//! While its MutatingWebhookConfiguration exists, the API server refuses ClusterCatalogs without
//! that label unless it gets an answer.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use server::receive;
use tokio::{sync::Semaphore, time::timeout};

use crate::review;

/// Path of the webhook, as controller-runtime makes it from group, version and kind.
const PATH: &str = "/mutate-olm-operatorframework-io-v1-clustercatalog";

/// Maximum size of a review, in bytes: that of controller-runtime. A review holds the old and the
/// new object, of at most 1.5 MiB each.
const BODY_MAX: usize = 7 << 20;

/// Maximum time to receive a review. The API server waits as long for the answer.
const READ_TIME: Duration = Duration::from_secs(10);

/// Places for reviews at a time, because any client in the cluster can send the largest ones. A
/// review takes up to four times the bytes of its body, and the pod has 512 MiB.
static REVIEWS: Semaphore = Semaphore::const_new(4);

/// Returns the routes of the webhook, for a server that passes the content of requests.
pub(crate) fn routes() -> Router {
    Router::new().route(PATH, post(answer))
}

async fn answer(request: Request) -> Response {
    let reading = async {
        let permit = REVIEWS.acquire().await;
        (receive(request.into_body(), BODY_MAX).await, permit)
    };
    let (status, problem) = match timeout(READ_TIME, reading).await {
        Ok((Ok(body), _permit)) => match review::answer(&body) {
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

#[cfg(test)]
mod tests;
