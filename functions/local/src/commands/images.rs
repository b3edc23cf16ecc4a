use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use model::{CatalogName, Current, Snapshot};
use olm::{BundleSelection, Package, Reference, RequiredImages};
use source::Source;
use store::Store;

use crate::{
    cli::{ImagesArgs, RegistryArgs},
    exit::Exit,
    output::{
        self,
        images::{ImageCheck, ImageChecks},
        imageset::{ChosenCatalog, ChosenPackage},
    },
    published,
    stores::Access,
    wiring,
};

/// Requests to registries at the same time: enough to hide the delay of a distant one, too few to look like an attack.
const CONCURRENT_CHECKS: usize = 8;

pub(crate) async fn run(args: ImagesArgs) -> anyhow::Result<Exit> {
    let store = args.store.open_alone(Access::Read).await?;
    let choice = BundleSelection {
        packages: args.packages.into_iter().collect(),
        channels: args.channels.into_iter().collect(),
        heads_only: args.heads_only,
    };
    let mut found = FoundImages::default();
    for name in published::some_names(&*store, &args.names).await? {
        let (current, snapshot) = published::state(&*store, &name).await?;
        found.add_catalog(&*store, &name, current, &snapshot, &choice).await?;
    }
    found.check_choice(&choice)?;
    let checks = match args.check {
        true => Some(check(&found.needs, &args.registries).await?),
        false => None,
    };
    output::images::print(args.format, &found.needs, &found.catalogs, checks.as_ref())?;
    let missing = checks.is_some_and(|checks| output::images::print_missing(&found.needs, &checks));
    Ok(if missing { Exit::Failed } else { Exit::Success })
}

/// Images of the catalogs that were read so far, and names that occur in them.
#[derive(Default)]
struct FoundImages {
    needs: RequiredImages,
    catalogs: Vec<ChosenCatalog>,
    packages: BTreeSet<String>,
    channels: BTreeSet<String>,
}

impl FoundImages {
    async fn add_catalog(
        &mut self,
        store: &dyn Store,
        name: &CatalogName,
        current: Current,
        snapshot: &Snapshot,
        choice: &BundleSelection,
    ) -> anyhow::Result<()> {
        let mut parts = Vec::new();
        let mut needs = RequiredImages::default();
        for shard in snapshot.packages.iter().filter(|shard| choice.takes(&shard.name)) {
            let package = published::package(store, shard).await?;
            needs.add(name.as_str(), &shard.name, &package, choice)?;
            parts.extend(self.add_package(&shard.name, &package, choice)?);
        }
        self.catalogs.push(ChosenCatalog {
            source: current.source,
            whole: *choice == BundleSelection::default(),
            heads_only: choice.heads_only,
            parts,
            images: needs.iter().map(|(image, _)| image.to_owned()).collect(),
        });
        self.needs.merge(needs);
        Ok(())
    }

    /// Returns the chosen part of a package, or `None` if no channel of it was chosen.
    fn add_package(
        &mut self,
        name: &str,
        package: &Package,
        choice: &BundleSelection,
    ) -> anyhow::Result<Option<ChosenPackage>> {
        self.packages.insert(name.to_owned());
        let channels = choice.channels(name, package)?;
        let channels: Vec<String> = channels.into_iter().map(|(channel, _)| channel.to_owned()).collect();
        self.channels.extend(channels.iter().cloned());
        let by_channel = choice.heads_only || !choice.channels.is_empty();
        Ok((!by_channel || !channels.is_empty()).then(|| ChosenPackage {
            name: name.to_owned(),
            default_channel: package.default_channel.clone(),
            channels,
        }))
    }

    /// Refuses names that occur nowhere. Most of them are misspelt.
    fn check_choice(&self, choice: &BundleSelection) -> anyhow::Result<()> {
        if let Some(package) = choice.packages.difference(&self.packages).next() {
            anyhow::bail!("none of the catalogs has a package {package:?}");
        }
        if let Some(channel) = choice.channels.difference(&self.channels).next() {
            anyhow::bail!("none of the packages has a channel {channel:?}");
        }
        Ok(())
    }
}

/// Asks the registries for every image, by the reference with which it is pulled.
async fn check(needs: &RequiredImages, registries: &RegistryArgs) -> anyhow::Result<ImageChecks> {
    let (images, _) = wiring::sources(registries)?;
    let checks = needs.iter().map(|(reference, _)| {
        let images = images.clone();
        let reference = reference.to_owned();
        async move {
            let check = check_one(&images, &reference).await;
            (reference, check)
        }
    });
    let checks: Vec<_> = checks.collect();
    Ok(stream::iter(checks).buffer_unordered(CONCURRENT_CHECKS).collect().await)
}

async fn check_one(images: &source::Sources, reference: &str) -> ImageCheck {
    let source: Source = match Reference::new(reference).to_string().parse() {
        Ok(source) => source,
        Err(error) => return ImageCheck::Unknown(model::text::chain(&error)),
    };
    match images.exists(&source).await {
        Ok(true) => ImageCheck::Exists,
        Ok(false) => ImageCheck::Missing,
        Err(error) => ImageCheck::Unknown(model::text::chain(&error)),
    }
}
