//! Messages of the package `api`, as in `proto/registry.proto`, except `Bundle`, which is put
//! together from encoded parts ([`BundleMessage`](super::BundleMessage)).
//!
//! They are written by hand: a generator and its compiler would take longer to build than all other
//! code here. The recorded answers of opm, which the tests decode, show that the numbers are right.
//!
//! A message whose only field is a text with the number 1 is a [`String`], which prost encodes so:
//! `PackageName` and `Deprecation`, and the requests of `GetPackage` and
//! `GetChannelEntriesThatReplace`.

use prost::Message;

/// Package, as `GetPackage` sends it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ApiPackage {
    /// Name of the package.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Channels in the order of their names.
    #[prost(message, repeated, tag = "2")]
    pub channels: Vec<ApiChannel>,
    /// Name of the channel that is used if none is named.
    #[prost(string, tag = "3")]
    pub default_channel_name: String,
    /// Message of the deprecation of the whole package; `None` if it is not deprecated.
    #[prost(message, optional, tag = "4")]
    pub deprecation: Option<String>,
}

/// Channel of a package.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ApiChannel {
    /// Name of the channel.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Name of the bundle at its head.
    #[prost(string, tag = "2")]
    pub csv_name: String,
    /// Message of the deprecation of the channel; `None` if it is not deprecated.
    #[prost(message, optional, tag = "3")]
    pub deprecation: Option<String>,
}

/// Name of a Kubernetes API: in a bundle, and as the request of the three methods that look for its
/// providers. The field `plural` is never set in an answer, and ignored in a request, as opm does.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GroupVersionKind {
    /// Group of the API; empty for the core of Kubernetes.
    #[prost(string, tag = "1")]
    pub group: String,
    /// Version of the API, such as `v1beta1`.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Kind of the objects, such as `EtcdCluster`.
    #[prost(string, tag = "3")]
    pub kind: String,
}

/// Dependency or property of a bundle.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct TypedValue {
    /// Type, such as `olm.gvk`.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// Value as JSON.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Entry of a channel and one bundle that it updates. An entry that updates several is sent as
/// often.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ApiChannelEntry {
    /// Name of the package.
    #[prost(string, tag = "1")]
    pub package_name: String,
    /// Name of the channel.
    #[prost(string, tag = "2")]
    pub channel_name: String,
    /// Name of the bundle.
    #[prost(string, tag = "3")]
    pub bundle_name: String,
    /// Name of the bundle that it updates.
    #[prost(string, tag = "4")]
    pub replaces: String,
}

/// Request of `GetBundle`, and without the name of a bundle of `GetBundleForChannel`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetBundleRequest {
    /// Name of the package.
    #[prost(string, tag = "1")]
    pub pkg_name: String,
    /// Name of the channel.
    #[prost(string, tag = "2")]
    pub channel_name: String,
    /// Name of the bundle.
    #[prost(string, tag = "3")]
    pub csv_name: String,
}

/// Request of `GetBundleThatReplaces`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct GetReplacementRequest {
    /// Name of the bundle that is replaced.
    #[prost(string, tag = "1")]
    pub csv_name: String,
    /// Name of the package.
    #[prost(string, tag = "2")]
    pub pkg_name: String,
    /// Name of the channel.
    #[prost(string, tag = "3")]
    pub channel_name: String,
}

/// Request of `ExperimentalListPackageCustomSchemas`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct CustomSchemasRequest {
    /// Schema of the Metas.
    #[prost(string, tag = "1")]
    pub schema: String,
    /// Name of the package; empty for Metas without one.
    #[prost(string, tag = "2")]
    pub package_name: String,
}
