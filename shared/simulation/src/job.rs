use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures_util::{FutureExt, future::BoxFuture};
use layout::{CatalogName, Sha256};
use poll::{Metrics, Mirror, Surroundings, Target, Terms, rollback_on};
use store::Store;
use sync::{Archive, Copier, Importer, Pack, Packing, StoreOrigin};

use crate::{
    catalogs,
    fault::Side,
    line::Line,
    scenario::Job,
    upkeep::{self, Lines},
    world::World,
};

/// What a job said that it did.
pub(crate) struct Claim {
    pub(crate) side: Side,
    pub(crate) name: CatalogName,
    pub(crate) serial: u64,
    pub(crate) content: Sha256,
}

/// How a job ended, if nobody killed it.
pub(crate) struct Done {
    /// What it published, or found published.
    pub(crate) claim: Option<Claim>,
    /// In words; why it failed if it did.
    pub(crate) outcome: Result<String, String>,
}

impl Done {
    /// Of a job that publishes nothing.
    pub(crate) const fn silent(outcome: Result<String, String>) -> Self {
        Self { claim: None, outcome }
    }

    /// What a report says, `published` being the serial and the content that it claims.
    fn of(side: Side, name: &CatalogName, published: Option<(u64, Sha256)>, outcome: Result<&str, String>) -> Self {
        let claim = published.map(|(serial, content)| Claim {
            side,
            name: name.clone(),
            serial,
            content,
        });
        Self {
            claim,
            outcome: outcome.map(str::to_owned),
        }
    }
}

impl Job {
    /// Does it once, as a process of its own that sees the stores through `origin` and `copy`.
    pub(crate) fn run(self, lines: [Line; 2], wrong: i64) -> BoxFuture<'static, Done> {
        let [origin, copy] = lines;
        match self {
            Self::Poll { catalog, version } => poll(origin, wrong, catalog, version).boxed(),
            Self::Rollback { catalog } => rollback(origin, wrong, catalog).boxed(),
            Self::Sync { catalog, rebuild } => sync(origin, copy, catalog, rebuild).boxed(),
            Self::Import { catalog, whole } => import(origin, copy, catalog, whole).boxed(),
            Self::Collect { side, settings } => upkeep::collect(Lines::of(side, [origin, copy]).ours, settings).boxed(),
            Self::Repair { side, catalog } => upkeep::repair(Lines::of(side, [origin, copy]), catalog).boxed(),
            Self::Remove { side, catalog } => upkeep::remove(Lines::of(side, [origin, copy]).ours, catalog).boxed(),
            Self::Rot { side, part, decay } => {
                let line = Lines::of(side, [origin, copy]).ours;
                upkeep::rot(line, (part, decay)).boxed()
            }
        }
    }
}

async fn poll(line: Line, wrong: i64, catalog: usize, version: usize) -> Done {
    let settings = poll::Settings {
        render: cheap(),
        identity: true,
        surroundings: surroundings(&line.world, line.actor, wrong),
        ..poll::Settings::default()
    };
    let catalog = catalogs::catalog(catalog, version);
    let mirror = Mirror::new(catalogs::images(), Arc::new(line), settings, Metrics::default());
    let report = mirror.turn(&catalog, false).await;
    said(&report)
}

async fn rollback(line: Line, wrong: i64, catalog: usize) -> Done {
    let terms = Terms {
        surroundings: surroundings(&line.world, line.actor, wrong),
        ..Terms::default()
    };
    let report = rollback_on(&line, &catalogs::name(catalog), &Target::Previous, None, &terms).await;
    said(&report)
}

fn said(report: &poll::Report) -> Done {
    let published = report.serial.zip(report.content_hash);
    let published = published.filter(|_| report.outcome.is_success());
    let outcome = report.error_text().map_or(Ok(report.outcome.as_str()), Err);
    Done::of(Side::Origin, &report.catalog, published, outcome)
}

async fn sync(origin: Line, copy: Line, catalog: usize, rebuild: bool) -> Done {
    let settings = sync::Settings {
        rebuild,
        ..sync::Settings::default()
    };
    let origin: Arc<dyn Store> = Arc::new(origin);
    let copier = Copier::new(Arc::new(StoreOrigin(origin)), Arc::new(copy), settings);
    copied(&copier.copy(&catalogs::name(catalog)).await)
}

fn copied(report: &sync::Report) -> Done {
    let published = report.serial.zip(report.content_hash);
    let published = published.filter(|_| report.outcome.is_success());
    let outcome = report.error_text().map_or(Ok(report.outcome.as_str()), Err);
    Done::of(Side::Copy, &report.catalog, published, outcome)
}

async fn import(origin: Line, copy: Line, catalog: usize, whole: bool) -> Done {
    let archive = match export(Arc::new(origin), catalog, whole).await {
        Ok(archive) => archive,
        Err(why) => return Done::silent(Err(why)),
    };
    let importer = Importer::new(archive, Arc::new(copy), sync::Settings::default());
    match importer.run().await {
        Ok(reports) => copied(&reports[0]),
        Err(error) => Done::silent(Err(words(&error))),
    }
}

async fn export(origin: Arc<dyn Store>, catalog: usize, whole: bool) -> Result<Archive, String> {
    let packing = Packing {
        whole,
        ..Packing::default()
    };
    let names = [catalogs::name(catalog)];
    let pack = Pack::plan(origin, &names, &packing)
        .await
        .map_err(|error| words(&error))?;
    let packing = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::tempfile().map_err(|error| error.to_string())?;
        pack.write(1, &mut file).map_err(|error| words(&error))?;
        std::io::Seek::rewind(&mut file).map_err(|error| error.to_string())?;
        Archive::open(vec![("the archive".to_owned(), file)]).map_err(|error| words(&error))
    });
    packing.await.map_err(|error| error.to_string())?
}

/// Few threads; the levels are those by which a copy makes the same again.
fn cheap() -> render::Settings {
    render::Settings {
        workers: 1,
        ..render::Settings::default()
    }
}

fn surroundings(world: &Arc<World>, actor: u8, wrong: i64) -> Surroundings {
    let (clock, dice) = (world.clone(), world.clone());
    let throws = AtomicU64::new(0);
    Surroundings {
        clock: Arc::new(move || clock.clock(wrong)),
        chance: Arc::new(move || {
            let throw = throws.fetch_add(1, Ordering::Relaxed);
            dice.chance.of(("jitter", actor, throw)).fraction()
        }),
    }
}

pub(crate) fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
