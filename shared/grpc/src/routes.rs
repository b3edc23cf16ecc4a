//! The methods, one row each.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{Router, body::Body, routing::post_service};
use futures_util::{FutureExt, future::BoxFuture};
use http::Request;
use prost::Message;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::Instrument;

use crate::{
    GrpcMetrics, Published,
    call::{ApiCall, CallStream, Replies},
    contents::ContentCache,
    framing, health,
    memory::MessageMemory,
    methods, reflection,
};

/// Name of the service of the registry API.
pub(crate) const REGISTRY: &str = "api.Registry";

const EXPERIMENTAL: &str = "api.ExperimentalRegistry";
const HEALTH: &str = "grpc.health.v1.Health";

/// Maximum time from the head of a request to its end. A client could else hold as many calls as it likes.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// Time between two attempts to learn the names of the catalogs.
const PREPARE_INTERVAL: Duration = Duration::from_secs(1);

/// The registry API over published catalogs, with health and reflection.
#[derive(Clone)]
pub struct RegistryApi {
    /// Catalogs that are served.
    pub published: Arc<dyn Published>,
    /// Name of the catalog for clients that name none. Without it such clients get the only catalog, if there is only one.
    pub default: Option<Arc<str>>,
    /// Metrics of calls.
    pub metrics: GrpcMetrics,
    /// Cancelled when the server stops. Health says so then.
    pub stopping: CancellationToken,
}

impl RegistryApi {
    /// Returns when each catalog has answered once, or said why it cannot. Until then clients would wait.
    pub async fn prepare(&self) {
        let names = loop {
            match self.published.names().await {
                Ok(names) => break names,
                Err(_) => sleep(PREPARE_INTERVAL).await,
            }
        };
        for name in names {
            drop(self.published.state(&name).await);
        }
    }

    /// Returns the routes of all services, for a server that speaks HTTP/2.
    pub fn router(self) -> Router {
        let routes = Routes {
            shared: SharedParts {
                api: self,
                memory: MessageMemory::default(),
                contents: ContentCache::default(),
            },
            router: Router::new().fallback(unimplemented),
        };
        let routes = routes
            .add(REGISTRY, "ListPackages", methods::list_packages)
            .add(REGISTRY, "GetPackage", methods::get_package)
            .add(REGISTRY, "GetBundle", methods::get_bundle)
            .add(REGISTRY, "GetBundleForChannel", methods::get_bundle_for_channel)
            .add(REGISTRY, "GetChannelEntriesThatReplace", methods::entries_that_replace)
            .add(REGISTRY, "GetBundleThatReplaces", methods::bundle_that_replaces)
            .add(REGISTRY, "GetChannelEntriesThatProvide", methods::entries_that_provide)
            .add(
                REGISTRY,
                "GetLatestChannelEntriesThatProvide",
                methods::latest_entries_that_provide,
            )
            .add(
                REGISTRY,
                "GetDefaultBundleThatProvides",
                methods::default_bundle_that_provides,
            )
            .add(REGISTRY, "ListBundles", methods::list_bundles)
            .add(
                EXPERIMENTAL,
                "ExperimentalListPackageCustomSchemas",
                methods::list_custom_schemas,
            )
            .add(HEALTH, "Check", health::check)
            .add(HEALTH, "Watch", health::watch);
        reflection::add(routes.router)
    }
}

/// Answers a request with messages, and ends with its status.
type Method<Req> = for<'c> fn(&'c mut ApiCall, Req, Replies) -> BoxFuture<'c, Result<(), Status>>;

struct Routes {
    shared: SharedParts,
    router: Router,
}

/// Parts of the API that all calls share.
#[derive(Clone)]
pub(crate) struct SharedParts {
    pub(crate) api: RegistryApi,
    pub(crate) memory: MessageMemory,
    pub(crate) contents: ContentCache,
}

impl Routes {
    /// Adds a method. On the wire, an answer with one message is a stream of one message, so all methods are streams.
    fn add<Req: Message + Default + 'static>(
        mut self,
        service: &str,
        method: &'static str,
        answer: Method<Req>,
    ) -> Self {
        let shared = self.shared.clone();
        let serve = tower::service_fn(move |request: Request<Body>| {
            let shared = shared.clone();
            async move {
                let timer = shared.api.metrics.begin(method);
                let memory = shared.memory.call();
                let call = ApiCall::new(shared, timer, memory.clone(), &request);
                // It ends with the request: messages are made while the answer is sent.
                let message = timeout(REQUEST_TIME, framing::read(request)).await;
                let message =
                    message.unwrap_or_else(|_| Err(Status::deadline_exceeded("the request did not come in time")));
                Ok::<_, Infallible>(match message {
                    Ok(message) => framing::answer(run(method, call, message, answer), memory),
                    Err(status) => status.into_http(),
                })
            }
        });
        self.router = self
            .router
            .route_service(&format!("/{service}/{method}"), post_service(serve));
        self
    }
}

/// Starts a call in a span of its own.
fn run<Req: Send + 'static>(name: &'static str, mut call: ApiCall, request: Req, answer: Method<Req>) -> CallStream {
    let span = tracing::info_span!("grpc_call", method = name, catalog = tracing::field::Empty);
    let running = move |replies| async move {
        let result = answer(&mut call, request, replies).await;
        call.timer.ended(&result);
        result
    };
    CallStream::new(|replies| running(replies).instrument(span).boxed())
}

async fn unimplemented() -> http::Response<tonic::body::Body> {
    Status::unimplemented("unknown service or method").into_http()
}
