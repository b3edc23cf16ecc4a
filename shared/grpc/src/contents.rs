use std::sync::Arc;

use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use registry::{BundleQuery, ContentsKey, PackageContents, RegistryError};
use tokio::{sync::Semaphore, task::spawn_blocking};
use tonic::Status;

use crate::{PublishedState, lines::LineReader, status::of_registry};

/// Memory for contents, in bytes: those of a large catalog.
const CONTENTS_BYTES: usize = 24 << 20;

/// Estimated number of packages.
const PACKAGES: usize = 512;

/// Maximum number of packages whose contents are made at the same time: each takes several times its longest line.
const BUILDS: usize = 2;

/// Contents of packages, or the reason for which they have none, by the hash of their lines.
#[derive(Clone)]
pub(crate) struct ContentCache(Arc<Shared>);

struct Shared {
    known: Cache<ContentsKey, Known, ContentWeight>,
    builds: Semaphore,
}

type Known = Result<Arc<PackageContents>, RegistryError>;

#[derive(Clone)]
struct ContentWeight;

impl Weighter<ContentsKey, Known> for ContentWeight {
    fn weight(&self, _: &ContentsKey, contents: &Known) -> u64 {
        let memory = contents.as_ref().map_or(1 << 10, |contents| contents.memory());
        memory as u64 + 128
    }
}

impl Default for ContentCache {
    fn default() -> Self {
        // In one part, because a large package takes a third of it.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(PACKAGES)
            .weight_capacity(CONTENTS_BYTES as u64)
            .build()
            .expect("both capacities are given");
        let hasher = DefaultHashBuilder::default();
        Self(Arc::new(Shared {
            known: Cache::with_options(options, ContentWeight, hasher, DefaultLifecycle::default()),
            builds: Semaphore::new(BUILDS),
        }))
    }
}

impl ContentCache {
    /// Returns the contents of all bundles in the package of a query. The first call makes them.
    pub(crate) async fn get(
        &self,
        state: &dyn PublishedState,
        query: &BundleQuery,
    ) -> Result<Arc<PackageContents>, Status> {
        let Shared { known, builds } = &*self.0;
        let key = query.contents_key();
        if let Some(contents) = known.get(&key) {
            return contents.map_err(of_registry);
        }
        let build = async {
            let _turn = builds.acquire().await;
            match build(state, query).await? {
                // They would be too large again.
                Err(error) if !matches!(error, RegistryError::ContentsTooLarge { .. }) => Err(of_registry(error)),
                made => Ok(made.map(Arc::new)),
            }
        };
        let contents = Box::pin(known.get_or_insert_async(&key, build)).await?;
        contents.map_err(of_registry)
    }
}

/// Reads the Shard of the package once, or twice as far as the line of the package.
async fn build(
    state: &dyn PublishedState,
    query: &BundleQuery,
) -> Result<Result<PackageContents, RegistryError>, Status> {
    let mut lines = LineReader::open(state, &query.package).await?;
    let package_line = lines.next(&query.package_line).await?.unwrap_or_default();
    let mut builder = match state.graph().contents_of(query, &package_line, CONTENTS_BYTES / 2) {
        Ok(builder) => builder,
        Err(error) => return Ok(Err(error)),
    };
    let mut lines = LineReader::open(state, &query.package).await?;
    while let Some(chunk) = lines.chunk().await? {
        let push = spawn_blocking(move || builder.push(&chunk).map(|()| builder)).await;
        builder = match push.map_err(|error| Status::internal(error.to_string()))? {
            Ok(builder) => builder,
            Err(error) => return Ok(Err(error)),
        };
    }
    Ok(builder.finish())
}
