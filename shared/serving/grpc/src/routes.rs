//! The methods, one row each.

use std::{convert::Infallible, future::ready, sync::Arc, time::Duration};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{self, Next};
use axum::routing::{any_service, post_service};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Request};
use http_body_util::{BodyExt, Full};
use prost::Message;
use server::{ReceiveError, receive};
use tokio::{sync::Semaphore, time::timeout};
use tonic::{Response, Status, server::Grpc};
use tonic_reflection::server::Builder;
use tower::service_fn;

use crate::call::{self, ApiCall, ApiParts, CallHead};
use crate::codec::FinishedCodec;
use crate::methods::{self, REGISTRY};
use crate::{AnswerError, GrpcMetrics, RegistryCatalogs, contents::ContentCache};

const EXPERIMENTAL: &str = "api.ExperimentalRegistry";
const HEALTH: &str = "grpc.health.v1.Health";

/// Compiled `registry.proto` with its imports. A test compiles it again.
const REGISTRY_DESCRIPTORS: &[u8] = include_bytes!("registry.binpb");

/// Maximum size of a request in bytes. It holds at most four names, and those of Kubernetes have
/// 253 bytes.
const REQUEST_BYTES: usize = 8 << 10;

/// Length of what comes before a message: its compression and its length.
const PREFIX_BYTES: usize = 5;

/// Field with the compression of the request's messages.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Maximum number of calls of reflection at a time. A client may hold one for as long as it likes.
const REFLECTIONS: usize = 64;

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
                let (request, body) = request.into_parts();
                let head = CallHead::new(method, &request);
                let run = service_fn(|message: tonic::Request<Req>| {
                    let messages = call::run(shared.clone(), head.clone(), |call| {
                        answer(call, message.into_inner())
                    });
                    ready(Ok::<_, Status>(Response::new(messages)))
                });
                let codec = FinishedCodec::default();
                let buffered = codec.buffered.clone();
                let mut server = Grpc::new(codec).max_decoding_message_size(REQUEST_BYTES);
                let response = match receive_message(request, body).await {
                    // It ends at once: messages are made while the answer is sent.
                    Ok(message) => server.server_streaming(run, message).await,
                    Err(status) => status.into_http(),
                };
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

/// Receives the message of a request whole, before tonic looks at it: tonic takes the memory that
/// the first bytes of a message announce.
async fn receive_message(mut head: Parts, body: Body) -> Result<Request<Full<Bytes>>, Status> {
    // Other fields would take memory for as long as the message is on its way.
    let encoding = head.headers.remove(ENCODING);
    drop(head);
    let received = timeout(REQUEST_TIME, receive(body, PREFIX_BYTES + REQUEST_BYTES)).await;
    let message = match received {
        Ok(Ok(message)) => message,
        Ok(Err(ReceiveError::TooLarge)) => {
            return Err(Status::out_of_range(format!(
                "a request may have {REQUEST_BYTES} bytes"
            )));
        }
        Ok(Err(ReceiveError::BrokenOff)) => {
            return Err(Status::cancelled("the request is broken off"));
        }
        Err(_) => {
            return Err(Status::deadline_exceeded(
                "the request did not come in time",
            ));
        }
    };
    let mut request = Request::new(Full::from(message));
    request
        .headers_mut()
        .extend(encoding.map(|encoding| (ENCODING, encoding)));
    Ok(request)
}

/// Adds server reflection in both versions, with which `grpcurl` finds the methods. Descriptors
/// that cannot be read, which a test excludes, leave a service out.
fn add_reflection(mut router: Router) -> Router {
    let places = Arc::new(Semaphore::new(REFLECTIONS));
    let limit = middleware::from_fn_with_state(places, limit_reflections);
    if let Ok(service) = reflection().build_v1() {
        let service = service.max_decoding_message_size(REQUEST_BYTES);
        let route = any_service(service).layer(limit.clone());
        router = router.route("/grpc.reflection.v1.ServerReflection/{*method}", route);
    }
    if let Ok(service) = reflection().build_v1alpha() {
        let service = service.max_decoding_message_size(REQUEST_BYTES);
        let route = any_service(service).layer(limit);
        router = router.route("/grpc.reflection.v1alpha.ServerReflection/{*method}", route);
    }
    router
}

/// Returns what describes both services to clients that ask for it.
fn reflection() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(REGISTRY_DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// Refuses one more call of reflection than there are places. A call has its place until its answer
/// ends.
async fn limit_reflections(
    State(places): State<Arc<Semaphore>>,
    request: axum::extract::Request,
    next: Next,
) -> http::Response<Body> {
    let Ok(place) = places.try_acquire_owned() else {
        return Status::resource_exhausted("too many clients ask for reflection").into_http();
    };
    let response = next.run(request).await;
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // Moved here, so that it lives as long as the answer.
            let _ = &place;
            frame
        }))
    })
}
