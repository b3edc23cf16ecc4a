use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, future::BoxFuture};
use model::{CatalogName, Outcome, Sha256, text::chain};
use publish::{
    Catalog, Env, Mirror, MirrorSettings, PollError, PollMetrics, PollOptions, Promotion, Report,
};
use store::Store;
use sync::{Archive, Copier, Importer, Origin, Pack, PackOptions, Repair, SyncOptions, SyncReport};
use upkeep::{GcOptions, Retention, RollbackOptions};

use crate::catalogs::{self, RING};
use crate::corruption::{self, DamageKind, Part};
use crate::fault::Side;
use crate::handle::StoreHandle;
use crate::holds::{Right, ToldHold};
use crate::scenario::Job;
use crate::world::World;

/// Publication that a job reports. It must be in the history of the store.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) side: Side,
    pub(crate) name: CatalogName,
    pub(crate) serial: u64,
    pub(crate) content: Sha256,
}

/// End of a job that was not killed.
pub(crate) struct Done {
    /// Publication that it made or found.
    pub(crate) claim: Option<Claim>,
    /// Outcome, or the reason of a failure, in words.
    pub(crate) outcome: Result<String, String>,
    /// Hold that it told for the first time.
    pub(crate) told: Option<ToldHold>,
}

impl Done {
    /// Returns the end of a job that publishes nothing.
    const fn without_claim(outcome: Result<String, String>) -> Self {
        Self {
            claim: None,
            outcome,
            told: None,
        }
    }

    /// Returns the end of a job by its report, whose claim counts if the outcome is a success.
    fn reported(outcome: Outcome, error: Option<String>, claim: Option<Claim>) -> Self {
        Self {
            claim: claim.filter(|_| outcome.is_success()),
            outcome: error.map_or(Ok(outcome.as_str().to_owned()), Err),
            told: None,
        }
    }
}

impl Claim {
    fn new(
        side: Side,
        name: &CatalogName,
        serial: Option<u64>,
        content: Option<Sha256>,
    ) -> Option<Self> {
        Some(Self {
            side,
            name: name.clone(),
            serial: serial?,
            content: content?,
        })
    }
}

impl Job {
    /// Returns what the process may do that a person decides.
    pub(crate) fn rights(&self) -> BTreeSet<Right> {
        let right = match self {
            Self::Force { catalog, .. } | Self::Rollback { catalog } => {
                Right::Publish(catalogs::name(*catalog))
            }
            Self::Follow { promote: true } => Right::Publish(catalogs::name(RING)),
            Self::Release { catalog } => Right::Release(catalogs::name(*catalog)),
            _ => return BTreeSet::new(),
        };
        [right].into()
    }

    /// Does the job once, as a process of its own. `wrong` is the error of its clock in seconds.
    pub(crate) fn run(self, handles: [StoreHandle; 2], wrong: i64) -> BoxFuture<'static, Done> {
        let [origin, copy] = handles.clone();
        let ours = |side: Side| {
            let [ours, _] = side.first(handles.clone());
            ours
        };
        match self {
            Self::Poll { catalog, version } => poll(origin, wrong, catalog, version, false).boxed(),
            Self::Force { catalog, version } => poll(origin, wrong, catalog, version, true).boxed(),
            Self::Release { catalog } => release(origin, catalog).boxed(),
            Self::Follow { promote } => follow(origin, wrong, promote).boxed(),
            Self::Rollback { catalog } => roll_back(origin, wrong, catalog).boxed(),
            Self::Sync { catalog, rebuild } => sync(origin, copy, wrong, catalog, rebuild).boxed(),
            Self::Import { catalog, all } => import(origin, copy, wrong, catalog, all).boxed(),
            Self::Collect { side, retention } => collect(ours(side), wrong, retention).boxed(),
            Self::Repair { side, catalog } => repair(side.first(handles), wrong, catalog).boxed(),
            Self::Remove { side, catalog } => remove(ours(side), catalog).boxed(),
            Self::Corrupt { side, part, damage } => corrupt(ours(side), part, damage).boxed(),
        }
    }
}

async fn poll(
    handle: StoreHandle,
    wrong: i64,
    catalog: usize,
    version: usize,
    force: bool,
) -> Done {
    let catalog = catalogs::catalog(catalog, version);
    let options = PollOptions {
        force,
        ..PollOptions::default()
    };
    poll_catalog(handle, wrong, &catalog, options).await
}

/// Lets through what is held back of a catalog.
async fn release(handle: StoreHandle, catalog: usize) -> Done {
    let released = publish::release(&handle, &catalogs::name(catalog)).await;
    Done::without_claim(match released {
        Ok(Some(released)) => Ok(format!("released {}", released.inputs.revision)),
        Ok(None) => Err("nothing is held back".to_owned()),
        Err(error) => Err(chain(&error)),
    })
}

/// Polls the ring, and moves it to the newest state if `promote` is true.
async fn follow(handle: StoreHandle, wrong: i64, promote: bool) -> Done {
    let options = PollOptions {
        promotion: promote.then_some(Promotion::Newest),
        ..PollOptions::default()
    };
    poll_catalog(handle, wrong, &catalogs::ring(), options).await
}

async fn poll_catalog(
    handle: StoreHandle,
    wrong: i64,
    catalog: &Catalog,
    options: PollOptions,
) -> Done {
    let settings = MirrorSettings {
        // Few threads, and all encodings.
        render: render::RenderSettings {
            workers: 1,
            ..render::RenderSettings::default()
        },
        identity: true,
        env: env(&handle, wrong),
        ..MirrorSettings::default()
    };
    let mirror = Mirror::new(
        catalogs::images(),
        Arc::new(handle.clone()),
        settings,
        PollMetrics::default(),
    );
    let report = mirror.poll(catalog, options).await;
    if !matches!(report.error, Some(PollError::Killer { .. })) {
        return said(&report);
    }
    // Kills are not the fault of the revision here. The error names what an operator does then.
    let forced = PollOptions {
        force: true,
        ..PollOptions::default()
    };
    handle.begin_process(wrong, [Right::Publish(catalog.name.clone())].into());
    said(&mirror.poll(catalog, forced).await)
}

async fn roll_back(handle: StoreHandle, wrong: i64, catalog: usize) -> Done {
    let options = RollbackOptions {
        env: env(&handle, wrong),
        ..RollbackOptions::default()
    };
    let store: Arc<dyn Store> = Arc::new(handle);
    said(&upkeep::rollback(&store, &catalogs::name(catalog), &options).await)
}

fn said(report: &Report) -> Done {
    let claim = Claim::new(
        Side::Origin,
        &report.catalog,
        report.serial,
        report.content_hash,
    );
    let is_told = matches!(
        report.error,
        Some(PollError::Held {
            is_known: false,
            ..
        })
    );
    let revision = report.digest.clone().filter(|_| is_told);
    Done {
        told: revision.map(|revision| ToldHold {
            name: report.catalog.clone(),
            revision,
        }),
        ..Done::reported(report.outcome, report.error_text(), claim)
    }
}

async fn sync(
    origin: StoreHandle,
    copy: StoreHandle,
    wrong: i64,
    catalog: usize,
    rebuild: bool,
) -> Done {
    let options = SyncOptions {
        fetch_all: !rebuild,
        ..sync_options(&copy, wrong)
    };
    let origin: Arc<dyn Store> = Arc::new(origin);
    let copier = Copier::new(Origin::Store(origin), Arc::new(copy), options);
    copied(&copier.copy_all(&[catalogs::name(catalog)]).await[0])
}

fn copied(report: &SyncReport) -> Done {
    let claim = Claim::new(
        Side::Copy,
        &report.catalog,
        report.serial,
        report.content_hash,
    );
    Done::reported(report.outcome, report.error.clone(), claim)
}

async fn import(
    origin: StoreHandle,
    copy: StoreHandle,
    wrong: i64,
    catalog: usize,
    all: bool,
) -> Done {
    let archive = match export(Arc::new(origin), catalog, all).await {
        Ok(archive) => archive,
        Err(why) => return Done::without_claim(Err(why)),
    };
    let options = sync_options(&copy, wrong);
    let importer = Importer::new(archive, Arc::new(copy), options);
    match importer.run().await {
        Ok(reports) => copied(&reports[0]),
        Err(error) => Done::without_claim(Err(chain(&error))),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the store is one of the simulation"
)]
async fn export(origin: Arc<dyn Store>, catalog: usize, all: bool) -> Result<Arc<Archive>, String> {
    let options = PackOptions {
        whole: all,
        ..PackOptions::default()
    };
    let names = [catalogs::name(catalog)];
    let pack = Pack::plan(origin, &names, &options)
        .await
        .map_err(|error| chain(&error))?;
    let packing = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::tempfile().map_err(|error| error.to_string())?;
        pack.write(1, &mut file).map_err(|error| chain(&error))?;
        std::io::Seek::rewind(&mut file).map_err(|error| error.to_string())?;
        Ok::<_, String>(file)
    });
    let file = packing.await.map_err(|error| error.to_string())??;
    let archive = Archive::open(vec![("the archive".to_owned(), file)]).await;
    archive.map_err(|error| chain(&error))
}

/// Takes one step of collection: condemns, starts to delete, deletes, or ends a round.
async fn collect(handle: StoreHandle, wrong: i64, retention: Retention) -> Done {
    let options = GcOptions {
        retention,
        env: env(&handle, wrong),
        ..GcOptions::default()
    };
    let collected = upkeep::gc(&handle, &options).await;
    let report = collected.map(|report| format!("collected: {report:?}"));
    Done::without_claim(report.map_err(|error| chain(&error)))
}

/// Fetches missing and damaged objects from the other store.
async fn repair([ours, theirs]: [StoreHandle; 2], wrong: i64, catalog: usize) -> Done {
    let options = sync_options(&ours, wrong);
    let theirs: Arc<dyn Store> = Arc::new(theirs);
    let copier = Copier::new(Origin::Store(theirs), Arc::new(ours), options);
    let repaired = copier.repair(&catalogs::name(catalog)).await;
    let report = repaired.map(
        |Repair {
             repaired, failed, ..
         }| format!("repaired {repaired:?}, not {failed:?}"),
    );
    Done::without_claim(report.map_err(|error| chain(&error)))
}

async fn remove(handle: StoreHandle, catalog: usize) -> Done {
    let name = catalogs::name(catalog);
    handle.observed.checker().allow_removal(handle.actor, &name);
    let removed = publish::remove(&handle, &name).await;
    let removed = removed.map(|removed| format!("removed: {removed:?}"));
    Done::without_claim(removed.map_err(|error| chain(&error)))
}

/// Damages an object. This is not a process, so no request is sent.
async fn corrupt(handle: StoreHandle, part: Part, damage: DamageKind) -> Done {
    let chance = handle
        .world
        .chance
        .of(("corruption", handle.actor, handle.world.now()));
    let event = corruption::corrupt(&handle.world, &handle.observed, part, damage, chance);
    Done::without_claim(Ok(event))
}

fn sync_options(handle: &StoreHandle, wrong: i64) -> SyncOptions {
    SyncOptions {
        env: env(handle, wrong),
        ..SyncOptions::default()
    }
}

/// Returns the surroundings of a process: a clock that is wrong, a time since boot that is right,
/// chance from the seed.
fn env(handle: &StoreHandle, wrong: i64) -> Env {
    let world: &Arc<World> = &handle.world;
    let (clock, boot, dice, actor) = (world.clone(), world.clone(), world.clone(), handle.actor);
    let throws = AtomicU64::new(0);
    Env {
        clock: Arc::new(move || clock.clock(wrong)),
        since_boot: Arc::new(move || Duration::from_millis(boot.now())),
        rng: Arc::new(move || {
            let throw = throws.fetch_add(1, Ordering::Relaxed);
            dice.chance.of(("jitter", actor, throw)).fraction()
        }),
    }
}
