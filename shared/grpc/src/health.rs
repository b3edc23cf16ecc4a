//! The service `grpc.health.v1.Health`.

use std::time::Duration;

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::{MissedTickBehavior, interval};
use tonic::{Code, Status};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};

use crate::{
    PublishedError,
    call::{ApiCall, Replies},
    routes::REGISTRY,
};

/// Time between two checks of a catalog that is watched. A catalog goes when its administrator removes it.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

/// Service that operator-registry's own client asks for (`pkg/client`).
const OPM_REGISTRY: &str = "Registry";

/// Answers `Check`.
pub(crate) fn check(
    call: &mut ApiCall,
    request: HealthCheckRequest,
    replies: Replies,
) -> BoxFuture<'_, Result<(), Status>> {
    async move {
        let status = serving(call, &request.service).await;
        let status = status.ok_or_else(|| Status::not_found("unknown service"))?;
        replies.send(&response(status)).await
    }
    .boxed()
}

/// Answers `Watch`: the status now, and each change of it. When the server stops, the last one is `NOT_SERVING`.
pub(crate) fn watch(
    call: &mut ApiCall,
    request: HealthCheckRequest,
    replies: Replies,
) -> BoxFuture<'_, Result<(), Status>> {
    async move {
        let mut ticks = interval(WATCH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = None;
        let stopping = call.shared.api.stopping.clone();
        while stopping.run_until_cancelled(ticks.tick()).await.is_some() {
            let status = serving(call, &request.service).await;
            let status = status.unwrap_or(match last {
                // A service may appear later, so its watch goes on.
                None | Some(ServingStatus::ServiceUnknown) => ServingStatus::ServiceUnknown,
                Some(_) => ServingStatus::NotServing,
            });
            if last.replace(status) != Some(status) {
                replies.send(&response(status)).await?;
            }
        }
        replies.send(&response(ServingStatus::NotServing)).await?;
        Err(Status::unavailable("the server stops"))
    }
    .boxed()
}

/// Returns the status of the server, of the registry API or of a catalog; `None` if there is no such service.
async fn serving(call: &ApiCall, service: &str) -> Option<ServingStatus> {
    let is_serving = match service {
        _ if call.shared.api.stopping.is_cancelled() => false,
        "" | REGISTRY | OPM_REGISTRY => match call.find().await {
            Ok(found) => found.state.is_ok(),
            // The client must name one of several catalogs, but the server serves them.
            Err(status) if status.code() == Code::NotFound => {
                let names = call.shared.api.published.names().await;
                names.is_ok_and(|names| !names.is_empty())
            }
            Err(_) => false,
        },
        catalog => match call.shared.api.published.state(catalog).await {
            Err(PublishedError::NotFound | PublishedError::NotServed) => return None,
            state => state.is_ok(),
        },
    };
    Some(match is_serving {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    })
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
