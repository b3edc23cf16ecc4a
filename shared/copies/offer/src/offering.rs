use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use carry::{
    BundleGap, CatalogRepository, ClusterImages, ImageSupply, ManifestTarget, OfferedPart,
    PackageRest, TargetRegistry, check_names, cluster_files, mirror_set_name, replace_file,
    target_has,
};
use inspect::{Composer, published, shard_lines, write_image};
use model::text::chain;
use model::{CatalogName, Kind, Sha256, Snapshot};
use oci::Documents;
use olm::{BundleSelection, PackageParser, RequiredImages, Severity, ShardValidator};
use publish::ComposedSource;
use reader::PublishedState;
use source::{Pushed, Source};
use store::{Store, find_stored, read_object};
use sync::ReadCatalog;
use terminal::{print_done, remark, say};

use crate::{OfferOutcome, OfferReport, OfferedCatalog, RegistryAccess};

/// Offer of catalogs to the clusters of a registry.
pub struct Offering<'a> {
    /// Access to the registry.
    pub access: &'a RegistryAccess,
    /// Store of the catalogs.
    pub store: &'a Arc<dyn Store>,
    /// Images that the registry has.
    pub supply: ImageSupply,
    /// Pushes nothing if anything is missing.
    pub require_all: bool,
    /// Says what would be pushed, and pushes nothing.
    pub dry_run: bool,
    /// Place of the images, and of the manifests that tell clusters of it.
    pub place: &'a OfferPlace,
}

/// Registry that catalogs are offered at, and the manifests for its clusters.
pub struct OfferPlace {
    /// Registry for images and catalogs.
    pub registry: TargetRegistry,
    /// Folder for the manifests. Its files are replaced. `None`: none are written.
    pub manifests: Option<PathBuf>,
    /// Time between two polls of the catalogs by clusters.
    pub interval: Duration,
    /// Namespace of CatalogSources.
    pub namespace: String,
    /// End of the names of the mirror sets. Default: from the names of the catalogs.
    pub name: Option<String>,
}

/// State of a catalog in a store.
pub struct CatalogState {
    /// State that is published.
    pub published: PublishedState,
    /// Content of an earlier state. Default: the one that is published.
    pub content_hash: Option<Sha256>,
}

/// Part of one catalog that is complete at the registry.
struct CatalogOffer {
    snapshot: Arc<Snapshot>,
    /// Image at the registry, with the names of its manifests.
    target: ManifestTarget,
    part: OfferedPart,
    earlier: Option<EarlierCatalog>,
}

/// Package of a delivered state, and what gaps leave of it.
struct JudgedPackage {
    name: String,
    gaps: BTreeSet<BundleGap>,
    rest: PackageRest,
}

/// Catalog that the registry has now.
pub(crate) struct EarlierCatalog {
    /// Its reference by digest.
    reference: String,
    content: ReadCatalog,
}

impl Offering<'_> {
    /// Pushes what is complete of the catalogs, and writes the manifests for them. Pushes nothing if
    /// everything is required and anything is missing.
    ///
    /// # Errors
    /// Manifests that cannot be written. A catalog that fails is in the report.
    pub async fn run(
        &self,
        states: &[CatalogState],
        images: ClusterImages,
    ) -> anyhow::Result<OfferReport> {
        let mut report = self.offer_all(states, images).await?;
        let is_whole = report.catalogs.iter().all(OfferedCatalog::is_whole);
        report.complete = is_whole && report.error.is_none();
        Ok(report)
    }

    async fn offer_all(
        &self,
        states: &[CatalogState],
        mut images: ClusterImages,
    ) -> anyhow::Result<OfferReport> {
        let mut report = OfferReport::default();
        let mut offers = Vec::new();
        for state in states {
            match self.offer(state).await {
                Ok(offer) => offers.push(offer),
                Err(error) => {
                    let image = self.place.registry.catalog_image(&state.place());
                    let failed = OfferedCatalog::failed(state.name().clone(), image, &error);
                    report.catalogs.push(failed);
                }
            }
        }
        for offer in &offers {
            for gap in &offer.part.gaps {
                say(&format!(
                    "incomplete: catalog {}, {gap}",
                    offer.target.catalog
                ));
            }
        }
        let has_failed = !report.catalogs.is_empty();
        let has_gaps = offers.iter().any(|offer| !offer.part.is_whole());
        if self.require_all && (has_failed || has_gaps) {
            for CatalogOffer { target, part, .. } in offers {
                let refused = OfferedCatalog::new(&target, part.gaps, OfferOutcome::Refused);
                report.catalogs.push(refused);
            }
            let reason = "no catalog is pushed: not all is there, and --require-all is set";
            report.error = Some(reason.to_owned());
            return Ok(report);
        }

        let mut targets = Vec::new();
        for offer in offers {
            match self.push(&offer).await {
                Ok(outcome) => {
                    let gaps = offer.part.gaps.clone();
                    let offered = OfferedCatalog::new(&offer.target, gaps, outcome);
                    report.catalogs.push(offered);
                }
                Err(error) => {
                    let name = offer.target.catalog.clone();
                    let image = offer.target.image.clone();
                    report.catalogs.push(OfferedCatalog {
                        gaps: offer.part.gaps,
                        ..OfferedCatalog::failed(name, image, &error)
                    });
                    continue;
                }
            }
            if let Some(earlier) = &offer.earlier {
                for package in offer.part.earlier() {
                    images
                        .pulled
                        .extend(earlier.needs(package).await?.images.into_keys());
                }
            }
            targets.push(offer.target);
        }
        if targets.is_empty() {
            say("no catalog was pushed, so no manifests are written");
            return Ok(report);
        }
        report.manifests = self.write_manifests(&targets, &images)?;
        Ok(report)
    }

    /// Decides which part of a catalog may be offered.
    async fn offer(&self, state: &CatalogState) -> anyhow::Result<CatalogOffer> {
        let name = state.name();
        let published = &state.published;
        let snapshot = state.snapshot(self.store).await?;
        let place = state.place();
        let image = self.place.registry.catalog_image(&place);
        // A push is a change on purpose, so clusters poll it.
        let target = ManifestTarget::new(image, name, &place, Some(self.place.interval))?;

        let mut packages = Vec::new();
        for shard in &snapshot.packages {
            let lines = shard_lines(published, shard).await?;
            let gaps = self.gaps(&shard.name, &lines);
            let rest = PackageRest::of(&shard.name, &lines, &gaps);
            packages.push(JudgedPackage {
                name: shard.name.clone(),
                gaps,
                rest,
            });
        }
        if let Some(shard) = &snapshot.global {
            let lines = shard_lines(published, shard).await?;
            let faults = faults(&shard.name, &lines);
            if let Some((_, fault)) = faults.first_key_value() {
                anyhow::bail!("its documents without a package: {fault}");
            }
        }

        let mut earlier = None;
        let is_broken = |package: &JudgedPackage| matches!(package.rest, PackageRest::Broken(_));
        if packages.iter().any(is_broken) {
            earlier = self.earlier(&target.image).await;
        }
        let mut part = OfferedPart::default();
        for package in packages {
            let mut has_earlier = false;
            if let Some(earlier) = earlier.as_ref().filter(|_| is_broken(&package)) {
                has_earlier = self.has_whole(earlier, &package.name).await?;
            }
            part.add(&package.name, &package.gaps, package.rest, has_earlier);
        }
        Ok(CatalogOffer {
            snapshot,
            target,
            part,
            earlier,
        })
    }

    /// Returns the reasons for which bundles of a package cannot be offered.
    fn gaps(&self, name: &str, lines: &[u8]) -> BTreeSet<BundleGap> {
        let package = PackageParser::parse(lines);
        let mut needs = RequiredImages::default();
        let mut gaps = BTreeSet::new();
        if let Err(error) = needs.add("", name, &package, &BundleSelection::default()) {
            gaps.insert(BundleGap::of_package(chain(&error)));
            return gaps;
        }
        for (image, uses) in &needs.images {
            let Some(cause) = self.supply.lack(image) else {
                continue;
            };
            for need in uses {
                gaps.insert(BundleGap {
                    bundle: need.bundle.clone(),
                    image: image.clone(),
                    cause: cause.to_owned(),
                });
            }
        }
        for (bundle, fault) in faults(name, lines) {
            if !package.bundles.contains_key(&bundle) {
                gaps.insert(BundleGap::of_package(fault));
            } else if !gaps.iter().any(|gap| gap.bundle == bundle) {
                gaps.insert(BundleGap {
                    bundle,
                    image: String::new(),
                    cause: fault,
                });
            }
        }
        gaps
    }

    /// Reads the catalog that the registry has under a reference. One that cannot be read is said,
    /// and no package of it is kept.
    async fn earlier(&self, image: &str) -> Option<EarlierCatalog> {
        match EarlierCatalog::read(self.access, image).await {
            Ok(earlier) => earlier,
            Err(error) => {
                let error = chain(error.as_ref());
                remark(&format!("notice: cannot read the present {image}: {error}"));
                None
            }
        }
    }

    /// Returns true if the registry has the package in its catalog, with all images of it.
    async fn has_whole(&self, earlier: &EarlierCatalog, package: &str) -> anyhow::Result<bool> {
        if earlier.content.lines(package).await?.is_none() {
            return Ok(false);
        }
        let needs = earlier.needs(package).await?;
        for image in needs.images.keys() {
            let has = target_has(&self.access.target.sources, &self.place.registry, image).await;
            if !has.unwrap_or(false) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Pushes a catalog.
    async fn push(&self, offer: &CatalogOffer) -> anyhow::Result<OfferOutcome> {
        let image = &offer.target.image;
        let target: Source = image.parse()?;
        if self.dry_run && !offer.part.is_empty() {
            let name = &offer.target.catalog;
            print_done(&format!("would push {name} to {image}"))?;
            return Ok(OfferOutcome::Planned);
        }
        anyhow::ensure!(
            !offer.part.is_empty(),
            "no package of it is complete, so nothing is pushed and {image} stays as it is"
        );
        let pushed = if offer.part.is_whole() {
            self.push_stored(&offer.snapshot, &target).await?
        } else {
            let name = &offer.target.catalog;
            let delivered = format!("{name}@{}", offer.snapshot.content_hash);
            let earlier = offer.earlier.as_ref();
            let earlier = earlier.map(|earlier| earlier.reference.as_str());
            let composition = offer.part.composition(&delivered, earlier);
            let composed = ComposedSource::new(composition, Path::new(""))?;
            let store = Some(self.store.clone());
            let composer = Composer::new(composed, store, &self.access.target).await?;
            let rendering = composer.compose().await?.rendering;
            write_image(&self.access.target.sources, &target, rendering).await?
        };
        if pushed.was_there {
            print_done(&format!("catalog {image} is there already"))?;
            return Ok(OfferOutcome::Unchanged);
        }
        print_done(&format!("catalog {image} pushed"))?;
        Ok(OfferOutcome::Pushed)
    }

    /// Pushes the image that the store has of a state.
    async fn push_stored(&self, snapshot: &Snapshot, target: &Source) -> anyhow::Result<Pushed> {
        let Source::Registry { reference, .. } = target else {
            anyhow::bail!("{target} is no place for an image");
        };
        let image = snapshot.image.as_ref();
        let image = image.context("it was published without an image")?;
        let documents = Documents::new(image.layer, image.diff_id);
        let is_same = documents.image(image.layer, image.diff_id) == *image;
        anyhow::ensure!(
            is_same,
            "another version of this program has made its image"
        );
        let layer = read_object(&**self.store, &image.layer.with_kind(Kind::Blob)).await?;
        Ok(self
            .access
            .target
            .sources
            .push(reference, documents, layer)
            .await?)
    }

    /// Writes the manifests. Returns the names of their files.
    fn write_manifests(
        &self,
        targets: &[ManifestTarget],
        images: &ClusterImages,
    ) -> anyhow::Result<Vec<String>> {
        check_names(targets)?;
        let Some(folder) = &self.place.manifests else {
            return Ok(Vec::new());
        };
        let registry = &self.place.registry;
        if registry.is_plain {
            remark(&TargetRegistry::plain_warning(&registry.host));
        }
        let namespace = &self.place.namespace;
        let suffixes = targets.iter().map(|target| target.suffix.as_str());
        let set_name = match &self.place.name {
            Some(name) => name.clone(),
            None => mirror_set_name(suffixes),
        };
        let files = cluster_files(namespace, targets, images, registry, &set_name, &remark)?;
        let mut written = Vec::new();
        for (name, text) in files {
            let path = folder.join(name);
            replace_file(&path, text.as_bytes())?;
            let path = path.display().to_string();
            print_done(&format!("wrote {path}"))?;
            written.push(path);
        }
        Ok(written)
    }
}

impl CatalogState {
    /// Returns the state that is published.
    pub const fn of(published: PublishedState) -> Self {
        Self {
            published,
            content_hash: None,
        }
    }

    /// Returns the name of the catalog.
    pub fn name(&self) -> &CatalogName {
        self.published.name()
    }

    /// Returns the repository and the tag of the catalog in the registry of a site.
    pub fn place(&self) -> CatalogRepository {
        CatalogRepository::new(self.name(), &self.published.current().source)
    }

    /// Returns the repository of the catalog in the registry of a site.
    pub fn repository(&self) -> String {
        self.place().repository
    }

    /// Returns the images that all bundles of the state need.
    ///
    /// # Errors
    /// Fails if the state cannot be read, or is not kept any more.
    pub async fn images(&self, store: &Arc<dyn Store>) -> anyhow::Result<RequiredImages> {
        let snapshot = self.snapshot(store).await?;
        required_images(&self.published, &snapshot).await
    }

    async fn snapshot(&self, store: &Arc<dyn Store>) -> anyhow::Result<Arc<Snapshot>> {
        let Some(content_hash) = self.content_hash else {
            return Ok(published::snapshot(&self.published).await?);
        };
        for object in self.published.current().snapshots_of(content_hash) {
            if let Some(snapshot) = find_stored(&**store, &object.digest).await? {
                return Ok(Arc::new(snapshot));
            }
        }
        let name = self.name();
        anyhow::bail!(
            "the store has no state {content_hash} of {name} any more; see `history {name}`"
        )
    }
}

/// Returns the images that the bundles of a catalog need. A package that cannot be read needs none:
/// it is not offered either.
///
/// # Errors
/// Fails if a package cannot be read from the store.
pub(crate) async fn required_images(
    state: &PublishedState,
    snapshot: &Snapshot,
) -> anyhow::Result<RequiredImages> {
    let mut needs = RequiredImages::default();
    for shard in &snapshot.packages {
        let package = inspect::package(state, shard).await?;
        if package.unreadable.is_empty() {
            let name = state.name().as_str();
            needs.add(name, &shard.name, &package, &BundleSelection::default())?;
        }
    }
    Ok(needs)
}

impl EarlierCatalog {
    /// Reads the catalog that the registry of a site has under a reference; `None` if it has none.
    pub(crate) async fn read(access: &RegistryAccess, image: &str) -> anyhow::Result<Option<Self>> {
        let source: Source = image.parse()?;
        if !access.target.sources.exists(&source).await? {
            return Ok(None);
        }
        let digest = access.target.sources.resolve(&source).await?;
        let repository = model::ImageReference::new(image).name();
        let reference = format!("{repository}@{digest}");
        let rendering = access.target.render(&reference.parse()?).await?;
        let content = ReadCatalog::Rendered {
            rendering,
            source: reference.clone(),
        };
        Ok(Some(Self { reference, content }))
    }

    /// Returns the images that the bundles of a package need.
    async fn needs(&self, package: &str) -> anyhow::Result<RequiredImages> {
        let lines = self.content.lines(package).await?.unwrap_or_default();
        let parsed = PackageParser::parse(&lines);
        let mut needs = RequiredImages::default();
        needs.add("", package, &parsed, &BundleSelection::default())?;
        Ok(needs)
    }

    /// Returns the images that all bundles need.
    pub(crate) async fn all_needs(&self) -> anyhow::Result<RequiredImages> {
        let packages: Vec<String> = self.content.packages().map(str::to_owned).collect();
        let mut needs = RequiredImages::default();
        for package in packages {
            needs.merge(self.needs(&package).await?);
        }
        Ok(needs)
    }
}

/// Returns the first error of each bundle by the rules of OLM. One that is about no bundle has an
/// empty name.
fn faults(package: &str, lines: &[u8]) -> BTreeMap<String, String> {
    let mut faults = BTreeMap::new();
    let mut note = |violation: olm::RuleViolation| {
        if violation.rule.severity() != Severity::Warning {
            let text = violation.text();
            faults.entry(violation.bundle).or_insert(text);
        }
    };
    let mut validator = ShardValidator::new(package, fbc::is_yaml);
    validator.push(lines, &mut note);
    validator.finish(&mut note);
    faults
}
