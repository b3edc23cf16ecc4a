//! The methods, one row each.

use std::{convert::Infallible, future::ready, sync::Arc, time::Duration};

use axum::{Router, body::Body, routing::post_service};
use http::Request;
use http_body_util::BodyExt;
use prost::Message;
use tokio::time::timeout;
use tonic::{Response, Status, server::Grpc};
use tonic_reflection::server::Builder;
use tower::service_fn;

use crate::call::{self, ApiCall, CallHead};
use crate::codec::{FinishedCodec, MessageMemory};
use crate::{AnswerError, GrpcMetrics, RegistryCatalogs, contents::ContentCache, methods};

/// Name of the service of the registry API.
pub(crate) const REGISTRY: &str = "api.Registry";

const EXPERIMENTAL: &str = "api.ExperimentalRegistry";
const HEALTH: &str = "grpc.health.v1.Health";

/// Compiled `registry.proto` with its imports. A test compiles it again.
const REGISTRY_DESCRIPTORS: &[u8] = include_bytes!("registry.binpb");

/// Maximum size of a request in bytes. Names have at most some hundred.
const REQUEST_BYTES: usize = 64 << 10;

/// Maximum time from the head of a request to its end. A client could else hold as many calls as it
/// likes.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// Returns the routes of the registry API over published catalogs, with health and reflection, for
/// a server that speaks HTTP/2.
pub fn router(catalogs: Arc<RegistryCatalogs>, metrics: GrpcMetrics) -> Router {
    let routes = Routes {
        shared: Arc::new(ApiParts {
            catalogs,
            metrics,
            memory: MessageMemory::default(),
            contents: ContentCache::default(),
        }),
        router: Router::new().fallback(|| {
            ready(Status::unimplemented("unknown service or method").into_http::<Body>())
        }),
    };
    let routes = routes
        .add(REGISTRY, "ListPackages", methods::list_packages)
        .add(REGISTRY, "GetPackage", methods::get_package)
        .add(REGISTRY, "GetBundle", methods::get_bundle)
        .add(
            REGISTRY,
            "GetBundleForChannel",
            methods::get_bundle_for_channel,
        )
        .add(
            REGISTRY,
            "GetChannelEntriesThatReplace",
            methods::entries_that_replace,
        )
        .add(
            REGISTRY,
            "GetBundleThatReplaces",
            methods::bundle_that_replaces,
        )
        .add(
            REGISTRY,
            "GetChannelEntriesThatProvide",
            methods::entries_that_provide,
        )
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
        .add(HEALTH, "Check", methods::check_health);
    add_reflection(routes.router)
}

/// Parts of the API that all calls share.
pub(crate) struct ApiParts {
    pub(crate) catalogs: Arc<RegistryCatalogs>,
    pub(crate) metrics: GrpcMetrics,
    pub(crate) memory: MessageMemory,
    pub(crate) contents: ContentCache,
}

struct Routes {
    shared: Arc<ApiParts>,
    router: Router,
}

impl Routes {
    /// Adds a method. On the wire, an answer with one message is a stream of one message, so all
    /// methods are streams.
    fn add<Req, Fut>(
        mut self,
        service: &str,
        method: &'static str,
        answer: fn(ApiCall, Req) -> Fut,
    ) -> Self
    where
        Req: Message + Default + 'static,
        Fut: Future<Output = Result<(), AnswerError>> + Send + 'static,
    {
        let shared = self.shared.clone();
        let serve = service_fn(move |request: Request<Body>| {
            let shared = shared.clone();
            async move {
                let head = CallHead::new(method, request.uri(), request.headers());
                let run = |message: tonic::Request<Req>| {
                    let answer = |call| answer(call, message.into_inner());
                    let messages = call::run(shared.clone(), head.clone(), answer);
                    ready(Ok::<_, Status>(Response::new(messages)))
                };
                let codec = FinishedCodec::default();
                let buffered = codec.buffered.clone();
                let mut server = Grpc::new(codec).max_decoding_message_size(REQUEST_BYTES);
                // It ends with the request: messages are made while the answer is sent.
                let response = timeout(
                    REQUEST_TIME,
                    server.server_streaming(service_fn(run), request),
                )
                .await;
                let late =
                    |_| Status::deadline_exceeded("the request did not come in time").into_http();
                let response = response.unwrap_or_else(late);
                Ok::<_, Infallible>(response.map(|body| {
                    Body::new(
                        body.map_frame(move |frame| frame.map_data(|bytes| buffered.hold(bytes))),
                    )
                }))
            }
        });
        let path = format!("/{service}/{method}");
        self.router = self.router.route_service(&path, post_service(serve));
        self
    }
}

/// Adds server reflection in both versions, with which `grpcurl` finds the methods. Descriptors
/// that cannot be read, which a test excludes, leave a service out.
fn add_reflection(mut router: Router) -> Router {
    let reflection = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(REGISTRY_DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    if let Ok(service) = reflection().build_v1() {
        router = router.route_service("/grpc.reflection.v1.ServerReflection/{*method}", service);
    }
    if let Ok(service) = reflection().build_v1alpha() {
        router = router.route_service(
            "/grpc.reflection.v1alpha.ServerReflection/{*method}",
            service,
        );
    }
    router
}
