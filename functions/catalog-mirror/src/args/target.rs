//! The registry of a site.

use std::num::NonZeroUsize;

use carry::TargetRegistry;
use clap::Args;

/// Registry that images are copied to.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Maximum number of parts of a repository's path, for a registry that limits them. The last ones
    /// are joined by dashes, as oc-mirror does.
    #[arg(long, value_name = "NUMBER")]
    max_nested_paths: Option<NonZeroUsize>,
    /// Registry for images and catalogs. An image lies below the name of its registry:
    /// REGISTRY/quay.io/team/app.
    #[arg(value_name = "REGISTRY")]
    registry: TargetRegistry,
}

impl TargetArgs {
    /// Returns the registry with the limit of its paths.
    pub(crate) fn registry(&self) -> TargetRegistry {
        TargetRegistry {
            max_nested_paths: self.max_nested_paths,
            ..self.registry.clone()
        }
    }
}
