//! Manifests at the registry of a site that no state of the store needs any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context;
use carry::{CatalogRepository, PrunableManifest, RepositoryContent, TargetRegistry};
use futures_util::{StreamExt, TryStreamExt, stream};
use model::text::chain;
use model::{ImageReference, Snapshot};
use olm::RequiredImages;
use reader::PublishedState;
use serde::Serialize;
use source::{Deletion, Digest, Reference, Sources};
use store::{Store, find_stored};
use terminal::{remark, say};

use crate::offering::{EarlierCatalog, required_images};
use crate::{RegistryAccess, reference};

/// Requests to the registry at the same time.
const REQUESTS: usize = 8;

/// Look at a registry for what `carry` made there and no state of a store needs.
pub struct Pruning<'a> {
    /// Access to the registry.
    pub access: &'a RegistryAccess,
    /// Store of the catalogs.
    pub store: &'a Arc<dyn Store>,
    /// Registry with the images.
    pub registry: &'a TargetRegistry,
}

/// Manifests that may be removed.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunePlan {
    /// Number of states of the store that are kept.
    pub states: usize,
    /// Number of images that they need.
    pub needed: usize,
    /// Number of repositories that were looked at.
    pub repositories: usize,
    /// Manifests of each repository, without the host, in the order of removal.
    pub manifests: BTreeMap<String, Vec<PrunableManifest>>,
}

/// Images that are needed, by repository: their tags and digests.
type Needed = BTreeMap<String, BTreeSet<String>>;

impl Pruning<'_> {
    /// Looks for what can be removed. Changes nothing.
    ///
    /// # Errors
    /// A state or a catalog that cannot be read: images that it needs would seem not to be needed.
    pub async fn plan(&self, states: Vec<PublishedState>) -> anyhow::Result<PrunePlan> {
        let mut plan = PrunePlan::default();
        let mut needs = RequiredImages::default();
        for state in &states {
            for publication in state.current().publications() {
                let digest = &publication.snapshot.digest;
                let found = find_stored::<Snapshot>(&**self.store, digest).await?;
                if let Some(snapshot) = found {
                    plan.states += 1;
                    needs.merge(required_images(state, &snapshot).await?);
                }
            }
            needs.merge(self.offered(state).await?);
        }
        let needed = self.by_repository(&needs);
        plan.needed = needed.values().map(BTreeSet::len).sum();
        let repositories = self.repositories(&needed).await?;
        plan.repositories = repositories.len();
        let none = BTreeSet::new();
        let looks = repositories.iter().map(|repository| {
            let needed = needed.get(repository).unwrap_or(&none);
            async move {
                let looked = self.prunable(repository, needed).await;
                let looked = looked.with_context(|| format!("repository {repository}"))?;
                anyhow::Ok((repository.clone(), looked))
            }
        });
        let looked = stream::iter(looks).buffer_unordered(REQUESTS);
        let found: Vec<(String, Vec<PrunableManifest>)> = looked.try_collect().await?;
        let found = found.into_iter().filter(|(_, gone)| !gone.is_empty());
        plan.manifests.extend(found);
        Ok(plan)
    }

    /// Removes what a plan names. Returns the number of manifests that are still there.
    ///
    /// # Errors
    /// A registry that does not answer.
    pub async fn remove(&self, plan: &PrunePlan) -> anyhow::Result<usize> {
        let mut refused = 0;
        let mut removed = 0;
        for (repository, manifests) in &plan.manifests {
            let place = self.reference(repository)?;
            for manifest in manifests {
                let digest = &manifest.digest;
                let deletion = self.sources().delete_manifest(&place, digest).await;
                let name = format!("{repository}@{digest}");
                match deletion.with_context(|| format!("cannot remove {name}"))? {
                    Deletion::Done | Deletion::Absent => removed += 1,
                    Deletion::Refused => {
                        refused += 1;
                        say(&format!("failed: the registry does not remove {name}"));
                    }
                }
                let host = &self.registry.host;
                anyhow::ensure!(
                    removed > 0,
                    "{host} removes no manifests: allow it there (distribution: storage.delete.enabled: true), or remove \
                     them with the tools of the registry"
                );
            }
        }
        Ok(refused)
    }

    fn sources(&self) -> &Sources {
        &self.access.target.sources
    }

    fn reference(&self, repository: &str) -> anyhow::Result<Reference> {
        reference(&format!("{}/{repository}:latest", self.registry.host))
    }

    /// Returns the images of the catalog that the registry has now in place of a state. It may have
    /// packages of a delivery that the store has forgotten.
    async fn offered(&self, state: &PublishedState) -> anyhow::Result<RequiredImages> {
        let place = CatalogRepository::new(state.name(), &state.current().source);
        let image = self.registry.catalog_image(&place);
        let reading = async {
            match EarlierCatalog::read(self.access, &image).await? {
                Some(catalog) => catalog.all_needs().await,
                None => Ok(RequiredImages::default()),
            }
        };
        let needs = reading.await;
        needs.with_context(|| {
            format!("nothing can be removed, because the catalog {image} cannot be read")
        })
    }

    /// Returns what is needed in each repository of the registry.
    fn by_repository(&self, needs: &RequiredImages) -> Needed {
        let mut needed = Needed::new();
        for image in needs.images.keys() {
            let image = ImageReference::new(image);
            if reference(&image.to_string()).is_err() {
                // Of no registry, so it is at none.
                continue;
            }
            let version = image.digest.clone().or_else(|| image.tag.clone());
            let versions = needed.entry(self.repository_of(&image.name())).or_default();
            versions.extend(version);
        }
        needed
    }

    /// Returns the repository of an image in the registry, without the host.
    fn repository_of(&self, name: &str) -> String {
        let place = self.registry.place_of(name);
        match place.split_once('/') {
            Some((_, repository)) => repository.to_owned(),
            None => place,
        }
    }

    /// Returns the repositories to look at: those of the states, and all that the registry lists
    /// below its path.
    async fn repositories(&self, needed: &Needed) -> anyhow::Result<BTreeSet<String>> {
        let mut repositories: BTreeSet<String> = needed.keys().cloned().collect();
        let base = &self.registry.base;
        let path = base.strip_prefix(&self.registry.host).unwrap_or_default();
        let path = path.trim_start_matches('/');
        let any = match path {
            "" => "catalog",
            path => path,
        };
        match self.sources().repositories(&self.reference(any)?).await {
            Ok(Some(all)) => {
                // A name that no reference can have is none of `carry`.
                let named = all.into_iter().filter(|name| self.reference(name).is_ok());
                let below = named.filter(|repository| {
                    let rest = repository.strip_prefix(path);
                    let is_cut = self.registry.max_nested_paths.is_some();
                    rest.is_some_and(|rest| {
                        path.is_empty()
                            || rest.starts_with('/')
                            || (is_cut && rest.starts_with('-'))
                    })
                });
                repositories.extend(below);
            }
            unlisted => {
                let cause = match unlisted {
                    Err(error) => format!(": {}", chain(&error)),
                    Ok(_) => String::new(),
                };
                remark(&format!(
                    "notice: the registry lists no repositories, so only those of the states in the store are looked at{cause}"
                ));
            }
        }
        Ok(repositories)
    }

    /// Returns the manifests of a repository that can be removed.
    async fn prunable(
        &self,
        repository: &str,
        needed: &BTreeSet<String>,
    ) -> anyhow::Result<Vec<PrunableManifest>> {
        let place = self.reference(repository)?;
        let tags = self.sources().tags(&place).await?;
        if !RepositoryContent::may_be_carried(&tags) {
            return Ok(Vec::new());
        }
        let host = &self.registry.host;
        let mut content = RepositoryContent::default();
        for tag in tags {
            let source = format!("{host}/{repository}:{tag}").parse()?;
            // One that is gone by now is of no interest.
            if self.sources().exists(&source).await? {
                let digest = self.sources().resolve(&source).await?;
                content.tags.insert(tag, digest);
            }
        }
        let mut open: BTreeSet<Digest> = content.tags.values().cloned().collect();
        while let Some(digest) = open.pop_first() {
            if content.links.contains_key(&digest) {
                continue;
            }
            let Some(links) = self.sources().manifest_links(&place, &digest).await? else {
                continue;
            };
            open.extend(links.subject.clone());
            // An image of an index may be an index.
            open.extend(links.parts.iter().cloned());
            content.links.insert(digest, links);
        }
        Ok(content.prunable(needed))
    }
}
