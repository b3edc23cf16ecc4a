use ::render::RenderError;
use anyhow::Context;
use model::CatalogName;
use olm::ShardValidator;
use publish::RenderSink;
use source::Source;
use store::Store;

use crate::{
    cli::{RegistryArgs, ValidateArgs, ValidatedCatalog},
    commands::render::SourceReader,
    exit::Exit,
    output::validation::Validation,
    published,
    stores::Access,
};

pub(crate) async fn run(args: ValidateArgs) -> anyhow::Result<Exit> {
    let validation = match args.what {
        ValidatedCatalog::Source(source) => validate_source(&source, &args.registries).await?,
        ValidatedCatalog::Published(name) => {
            let store = args.store.open_alone(Access::Read).await?;
            validate_published(&*store, &name).await?
        }
    };
    let exit = match validation.is_sound() {
        true => Exit::Success,
        false => Exit::Failed,
    };
    validation.print(args.json)?;
    Ok(exit)
}

async fn validate_source(source: &Source, registries: &RegistryArgs) -> anyhow::Result<Validation> {
    let sink = SourceReader::new(registries)?.read(source, true).await?;
    tokio::task::spawn_blocking(move || validate_rendered(sink)).await?
}

fn validate_rendered(sink: RenderSink) -> anyhow::Result<Validation> {
    let mut validation = Validation::default();
    let rendering = match sink.finish() {
        Ok(rendering) => rendering,
        // A document above a limit of this program may be valid, so that is an error of the command.
        Err(RenderError::Invalid { problems }) if problems.iter().all(|problem| problem.limit.is_none()) => {
            problems.iter().for_each(|problem| validation.add_file(problem));
            return Ok(validation);
        }
        Err(error) => return Err(error.into()),
    };
    for shard in rendering.shards() {
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        rendering.read_lines(shard, |lines| {
            validator.push(lines, &mut |violation| validation.add(violation, &shard.places));
        })?;
        let counts = validator.finish(&mut |violation| validation.add(violation, &shard.places));
        validation.count(counts);
    }
    Ok(validation)
}

async fn validate_published(store: &dyn Store, name: &CatalogName) -> anyhow::Result<Validation> {
    let (_, snapshot) = published::state(store, name).await?;
    let mut validation = Validation::default();
    for shard in snapshot.shards() {
        let lines = publish::load_verified(store, shard).await;
        let lines = lines.with_context(|| format!("cannot read package {:?}", shard.name))?;
        let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
        // On a blocking thread: a package may have many megabytes.
        let validated = tokio::task::spawn_blocking(move || {
            validator.push(&lines, &mut |violation| validation.add(violation, &[]));
            let counts = validator.finish(&mut |violation| validation.add(violation, &[]));
            validation.count(counts);
            validation
        });
        validation = validated.await?;
    }
    Ok(validation)
}
