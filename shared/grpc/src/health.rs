//! The service `grpc.health.v1.Health`. `Watch` is unimplemented, as in opm: clients take that for a server that serves.

use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};

use crate::{AnswerError, call::ApiCall, routes::REGISTRY};

/// Service that operator-registry's own client asks for (`pkg/client`).
const OPM_REGISTRY: &str = "Registry";

/// Answers `Check`.
pub(crate) async fn check(call: ApiCall, request: HealthCheckRequest) -> Result<(), AnswerError> {
    let status = serving(&call, &request.service).await;
    let status = status.ok_or_else(|| AnswerError::UnknownCatalog("unknown service".to_owned()))?;
    call.send(&HealthCheckResponse { status: status.into() }).await
}

/// Returns the status of the server, of the registry API or of a catalog; `None` if there is no such service. Waits for the index
/// of the catalog.
async fn serving(call: &ApiCall, service: &str) -> Option<ServingStatus> {
    let catalogs = &call.shared.api.catalogs;
    let is_serving = match service {
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
