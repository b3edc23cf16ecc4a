//! Arguments that several commands share.

mod grpc;
mod keys;
mod registries;
mod report;
mod store;
mod target;

pub(crate) use self::grpc::GrpcArgs;
pub(crate) use self::keys::{KeyArgs, TrustArgs, files_and_keys, loader};
pub(crate) use self::registries::{CatalogAccess, CatalogArgs, RegistryArgs, is_source};
pub(crate) use self::report::{AllowArgs, ReportArgs};
#[cfg(not(feature = "s3"))]
pub(crate) use self::store::without_s3;
pub(crate) use self::store::{Access, DEFAULT_STORE, S3Args, StoreArgs};
pub(crate) use self::target::TargetArgs;
