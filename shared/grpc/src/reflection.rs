//! Server reflection, both versions, with which `grpcurl` finds the methods.

use axum::Router;
use tonic_reflection::server::Builder;

/// Compiled `registry.proto` with its imports. A test compiles it again.
const REGISTRY_DESCRIPTORS: &[u8] = include_bytes!("registry.binpb");

fn builder() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(REGISTRY_DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// Adds the services of reflection. Descriptors that cannot be read, which a test excludes, leave a service out.
pub(crate) fn add(mut router: Router) -> Router {
    if let Ok(service) = builder().build_v1() {
        router = router.route_service("/grpc.reflection.v1.ServerReflection/{*method}", service);
    }
    if let Ok(service) = builder().build_v1alpha() {
        router = router.route_service("/grpc.reflection.v1alpha.ServerReflection/{*method}", service);
    }
    router
}
