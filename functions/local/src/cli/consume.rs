//! The commands of those who consume a mirror.

use std::time::Duration;

use clap::{Args, ValueEnum};
use layout::CatalogName;

use super::{RegistryArgs, StoreArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
States: `previous` (the default for OLD), `current` (the default for NEW), a serial, or the first digits of a content \
hash (at least 7). Sources are written as for `render` and need no store.

Exit codes: 0 the same, 10 they differ, 1 failed.")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Print the document that `GET /catalogs/{c}/changes` answers instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// A catalog of the store, or the older of two sources, such as dir:before or quay.io/a/b:v1.
    #[arg(value_name = "NAME|SOURCE")]
    pub(crate) what: String,
    /// The older state of the catalog, or the newer source.
    #[arg(value_name = "OLD|SOURCE")]
    pub(crate) old: Option<String>,
    /// The newer state of the catalog.
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Chosen are all bundles of the packages and channels that are named, or of all. oc-mirror v2 takes only heads unless its \
configuration says `full: true`; --heads-only does so here.

Exit codes: 0 done, 1 failed, or --check found an image missing or could not tell.")]
pub(crate) struct Images {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Only this package. May be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    pub(crate) packages: Vec<String>,
    /// Only bundles of this channel. May be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Only the heads of the channels.
    #[arg(long)]
    pub(crate) heads_only: bool,
    /// How the images are printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ImagesFormat,
    /// Ask the registries by HEAD whether each image is still there.
    #[arg(long)]
    pub(crate) check: bool,
    /// Only these catalogs; all of the store, if none is named.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImagesFormat {
    /// One reference a line, sorted.
    #[default]
    List,
    /// Every image with the packages and bundles that need it.
    Json,
    /// A file for `skopeo sync --src yaml`.
    SkopeoSync,
    /// An ImageSetConfiguration for oc-mirror v2.
    Imageset,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Names are those that oc-mirror v2 gives: cc- or cs-, the repository, the tag, with dashes for dots. They stay the same \
with --pin, so that subscriptions and GitOps keep pointing at them.

Exit codes: 0 done, 1 failed.")]
pub(crate) struct Manifests {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Where clusters reach the mirror, such as `https://mirror.example:8443`.
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// Which manifests: OLM v1 reads ClusterCatalog, OLM v0 CatalogSource.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: ManifestKind,
    /// Name what is published now, by its digest, instead of what will be: nothing changes on clusters until the manifest does.
    #[arg(long)]
    pub(crate) pin: bool,
    /// How often clusters look for something new.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) interval: Duration,
    /// The namespace of CatalogSources; `olm` outside OpenShift.
    #[arg(long, default_value = "openshift-marketplace")]
    pub(crate) namespace: String,
    /// Only these catalogs; all of the store, if none is named.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    /// Both.
    #[default]
    All,
    /// ClusterCatalog of olm.operatorframework.io/v1.
    Clustercatalog,
    /// CatalogSource of operators.coreos.com/v1alpha1.
    Catalogsource,
}
