//! The service `grpc.health.v1.Health`.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};

use crate::{AnswerError, call::ApiCall, routes::REGISTRY};

/// Time between two checks of a catalog that is watched. A catalog goes when its administrator removes it.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

/// Service that operator-registry's own client asks for (`pkg/client`).
const OPM_REGISTRY: &str = "Registry";

/// Answers `Check`.
pub(crate) async fn check(call: ApiCall, request: HealthCheckRequest) -> Result<(), AnswerError> {
    let status = serving(&call, &request.service).await;
    let status = status.ok_or_else(|| AnswerError::UnknownCatalog("unknown service".to_owned()))?;
    call.send(&response(status)).await
}

/// Answers `Watch`: the status now, and each change of it. When the server stops, the last one is `NOT_SERVING`.
pub(crate) async fn watch(call: ApiCall, request: HealthCheckRequest) -> Result<(), AnswerError> {
    let mut ticks = interval(WATCH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    let stopping = call.shared.api.stopping.clone();
    while stopping.run_until_cancelled(ticks.tick()).await.is_some() {
        let status = serving(&call, &request.service).await;
        let status = status.unwrap_or(match last {
            // A service may appear later, so its watch goes on.
            None | Some(ServingStatus::ServiceUnknown) => ServingStatus::ServiceUnknown,
            Some(_) => ServingStatus::NotServing,
        });
        if last.replace(status) != Some(status) {
            call.send(&response(status)).await?;
        }
    }
    call.send(&response(ServingStatus::NotServing)).await?;
    Err(AnswerError::Stopping)
}

/// Returns the status of the server, of the registry API or of a catalog; `None` if there is no such service. Waits for the index
/// of the catalog.
async fn serving(call: &ApiCall, service: &str) -> Option<ServingStatus> {
    let catalogs = &call.shared.api.catalogs;
    let is_serving = match service {
        _ if call.shared.api.stopping.is_cancelled() => false,
        "" | REGISTRY | OPM_REGISTRY => match catalogs.choose(call.head.label.as_deref()).await {
            Ok(name) => catalogs.state(&name).await.is_ok(),
            // The client must name one of several catalogs, but the server serves them.
            Err(AnswerError::UnknownCatalog(_)) => catalogs.names().await.is_ok_and(|names| !names.is_empty()),
            Err(_) => false,
        },
        catalog => match catalogs.names().await {
            Ok(names) if !names.iter().any(|name| name == catalog) => return None,
            names => names.is_ok() && catalogs.state(catalog).await.is_ok(),
        },
    };
    Some(if is_serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    })
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
