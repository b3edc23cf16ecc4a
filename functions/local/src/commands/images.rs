use std::collections::{BTreeMap, BTreeSet};

use ::operators::{Choice, Needs, Package, Reference};
use config::Config;
use futures_util::{StreamExt, stream};
use image::Source;
use layout::{CatalogName, Current, Snapshot};
use store::Store;

use crate::{
    cli::{self, RegistryArgs},
    exit::Exit,
    output::{
        self,
        images::{Answer, Answers},
        imageset::{Chosen, Part},
    },
    published, wiring,
};

/// Registries are asked for this many images at a time: enough to hide a distant one, too few to be taken for an attack.
const SIDE_BY_SIDE: usize = 8;

pub(crate) async fn run(args: cli::Images) -> anyhow::Result<Exit> {
    let store = args.store.open_to_read(&Config::default()).await?;
    let choice = Choice {
        packages: args.packages.into_iter().collect(),
        channels: args.channels.into_iter().collect(),
        heads_only: args.heads_only,
    };
    let mut found = Found::default();
    for name in published::chosen(&*store, &args.names).await? {
        let (current, snapshot) = published::state(&*store, &name).await?;
        found.catalog(&*store, (&name, current, &snapshot), &choice).await?;
    }
    found.check(&choice)?;
    let answers = match args.check {
        true => Some(check(&found.needs, args.registries).await?),
        false => None,
    };
    output::images::print(args.format, &found.needs, &found.catalogs, answers.as_ref())?;
    let missing = answers.is_some_and(|answers| output::images::tell_missing(&found.needs, &answers));
    Ok(if missing { Exit::Failed } else { Exit::Fine })
}

/// What was found in the catalogs so far.
#[derive(Default)]
struct Found {
    needs: Needs,
    catalogs: Vec<Chosen>,
    packages: BTreeSet<String>,
    channels: BTreeSet<String>,
}

impl Found {
    async fn catalog(
        &mut self,
        store: &dyn Store,
        (name, current, snapshot): (&CatalogName, Current, &Snapshot),
        choice: &Choice,
    ) -> anyhow::Result<()> {
        let mut parts = Vec::new();
        let mut needs = Needs::default();
        for shard in snapshot.packages.iter().filter(|shard| choice.takes(&shard.name)) {
            let package = published::package(store, shard).await?;
            needs.add(name.as_str(), &shard.name, &package, choice)?;
            parts.extend(self.part(&shard.name, &package, choice)?);
        }
        self.catalogs.push(Chosen {
            source: current.source,
            whole: *choice == Choice::default(),
            heads_only: choice.heads_only,
            parts,
            images: needs.iter().map(|(image, _)| image.to_owned()).collect(),
        });
        self.needs.merge(needs);
        Ok(())
    }

    /// What of a package was chosen.
    fn part(&mut self, name: &str, package: &Package, choice: &Choice) -> anyhow::Result<Option<Part>> {
        self.packages.insert(name.to_owned());
        let channels = choice.channels(name, package)?;
        let channels: Vec<String> = channels.into_iter().map(|(channel, _)| channel.to_owned()).collect();
        self.channels.extend(channels.iter().cloned());
        let by_channel = choice.heads_only || !choice.channels.is_empty();
        Ok((!by_channel || !channels.is_empty()).then(|| Part {
            name: name.to_owned(),
            default_channel: package.default_channel.clone(),
            channels,
        }))
    }

    /// A name that nothing has is most likely misspelt.
    fn check(&self, choice: &Choice) -> anyhow::Result<()> {
        if let Some(package) = choice.packages.difference(&self.packages).next() {
            anyhow::bail!("none of the catalogs has a package {package:?}");
        }
        if let Some(channel) = choice.channels.difference(&self.channels).next() {
            anyhow::bail!("none of the packages has a channel {channel:?}");
        }
        Ok(())
    }
}

/// Asks the registries for every image, each by what it is pulled by.
async fn check(needs: &Needs, registries: RegistryArgs) -> anyhow::Result<Answers> {
    let images = image::Images::new(wiring::images(registries)?)?;
    let asked = needs.iter().map(|(reference, _)| {
        let images = images.clone();
        let reference = reference.to_owned();
        async move {
            let answer = ask(&images, &reference).await;
            (reference, answer)
        }
    });
    let asked: Vec<_> = asked.collect();
    let answers: BTreeMap<String, Answer> = stream::iter(asked).buffer_unordered(SIDE_BY_SIDE).collect().await;
    Ok(answers)
}

async fn ask(images: &image::Images, reference: &str) -> Answer {
    let source: Source = match Reference::new(reference).to_string().parse() {
        Ok(source) => source,
        Err(error) => return Answer::Unknown(telemetry::chain(&error)),
    };
    match images.exists(&source).await {
        Ok(true) => Answer::There,
        Ok(false) => Answer::Missing,
        Err(error) => Answer::Unknown(telemetry::chain(&error)),
    }
}
