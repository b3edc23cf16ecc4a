//! One poll of one catalog: resolve, compare, pull, publish.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use model::{Current, EmptyLayers, Outcome, Publication, RENDER_VERSION, SourceRef};
use render::{RenderSettings, Renderer};
use source::{Digest, Download};
use store::Store;
use tokio::time::timeout;
use work::{Budget, stop_on_drop};

use super::composing::{ResolvedInputs, refused_input};
use super::facts::NewContent;
use super::open_pull::OpenPull;
use super::pull::{PublishedShards, copy_first, copy_image, read_content};
use super::signatures::verified_source;
use super::validation::check_packages;
use crate::{
    Catalog, CatalogSource, ChangedPackages, Mirror, PollError, PollOptions, PublishError,
    RaceRetries, Report, Transaction, TransactionOptions, find_unservable,
};

/// Maximum number of attempts of one poll after lost races, the first included.
const ATTEMPTS: u32 = 6;

/// Result of the cheap part of a poll.
pub(crate) enum SourceCheck {
    /// The digest is known: the poll has ended.
    Known(Outcome),
    /// The image has to be pulled.
    New(Box<Transaction>, Digest),
}

/// One poll, with what its caller knows and learns.
pub(crate) struct Poll<'a> {
    pub(crate) mirror: &'a Mirror,
    pub(crate) catalog: &'a Catalog,
    /// Options with `status.json` as it was before the poll.
    pub(crate) options: PollOptions,
    /// Relies on nothing that is stored: each object is hashed, and written again if it is damaged.
    pub(crate) recheck: bool,
    retries: RaceRetries<'a>,
    /// Layers that need not be fetched; after a pull, those of the new image.
    pub(crate) empty_layers: Option<EmptyLayers>,
    /// Pull that this poll has begun, as `status.json` counts it.
    pub(crate) pull: Option<OpenPull>,
    /// Copies of images on disk: that of the catalog, or those of the inputs of a composition.
    pub(crate) copies: BTreeMap<Digest, Download>,
    /// Inputs of a composition, as they were found last.
    pub(crate) inputs: Option<Arc<ResolvedInputs<'a>>>,
    pub(crate) report: Report,
    pub(crate) started: Instant,
}

impl<'a> Poll<'a> {
    /// Creates a poll that knows the layers of the last one. A forced poll looks at everything that
    /// is stored.
    pub(crate) fn new(mirror: &'a Mirror, catalog: &'a Catalog, options: PollOptions) -> Self {
        Self {
            mirror,
            catalog,
            recheck: options.force,
            retries: RaceRetries::new(&mirror.settings.env, ATTEMPTS),
            empty_layers: options
                .before
                .as_ref()
                .and_then(|before| before.empty_layers.clone()),
            options,
            pull: None,
            copies: BTreeMap::new(),
            inputs: None,
            report: Report::new(catalog.name.clone()),
            started: Instant::now(),
        }
    }

    /// Starts a Renderer with the limits of the catalog.
    pub(crate) fn renderer(&self, published: PublishedShards, budget: &Budget) -> Renderer {
        let settings = RenderSettings {
            budget: budget.clone(),
            limits: self.mirror.limits(self.catalog).catalog,
            ..self.mirror.settings.render.clone()
        };
        Renderer::start(settings, Arc::new(published))
    }

    /// Polls.
    pub(crate) async fn run(&mut self) -> Result<Outcome, PollError> {
        loop {
            match self.attempt().await {
                Err(error) => self.again(error).await?,
                done => return done,
            }
        }
    }

    /// Does only the cheap part: no image is pulled.
    pub(crate) async fn check(&mut self) -> Result<SourceCheck, PollError> {
        loop {
            match self.check_source().await {
                Err(error) => self.again(error).await?,
                done => return done,
            }
        }
    }

    /// Starts again while another writer is faster, and once if a published object turns out to be
    /// damaged: that is written again from the source. From then on damage counts as a lost race.
    async fn again(&mut self, error: PollError) -> Result<(), PollError> {
        if error.is_damage() && !self.recheck {
            let error = model::text::chain(&error);
            tracing::warn!(
                error,
                "the published state is damaged: it is written again from the source"
            );
            self.recheck = true;
            self.retries = RaceRetries::new(&self.mirror.settings.env, ATTEMPTS);
            return Ok(());
        }
        match self.retries.again(error).await {
            // Its own objects are written again, so this one is of an input, which only the input's
            // source can mend.
            Err(error) if error.is_damage() && self.catalog.source.composed().is_some() => {
                Err(PollError::Waiting {
                    input: "an input whose objects are damaged".to_owned(),
                    reason: model::text::chain(&error),
                })
            }
            retried => retried,
        }
    }

    async fn attempt(&mut self) -> Result<Outcome, PollError> {
        // At most twice: a copy on disk is never too slow.
        loop {
            let (transaction, digest) = match self.check_source().await? {
                SourceCheck::Known(outcome) => return Ok(outcome),
                SourceCheck::New(transaction, digest) => (transaction, digest),
            };
            let ended = self.pull_and_publish(&transaction, &digest).await;
            let written = transaction.written();
            self.report.objects_published += written.objects;
            self.report.bytes_published += written.bytes;
            match ended {
                Err(PollError::Image(error)) if error.is_slow_registry() => {}
                ended => return ended,
            }
            // Neither a transaction nor a permit is held while the image is copied, and no pull
            // counts as begun.
            drop(transaction);
            if let Some(pull) = self.pull.take() {
                self.mirror
                    .withdraw_pull(&self.catalog.name, &pull.inputs)
                    .await;
            }
            copy_image(self, &digest).await?;
        }
    }

    async fn check_source(&mut self) -> Result<SourceCheck, PollError> {
        let options = TransactionOptions {
            signer: self.mirror.settings.signer.clone(),
            may_unsign: self.options.force,
            recheck_existing: self.recheck,
            env: self.mirror.settings.env.clone(),
        };
        let transaction =
            Transaction::begin(self.mirror.store.clone(), &self.catalog.name, options).await?;
        let current = transaction.current()?;
        let digest = self.resolve(&transaction).await?;
        self.report.digest = Some(digest.to_string());
        self.report.describe(current);
        let known = transaction.base().filter(|base| {
            // A newer program may render the same image to other lines, so its first poll pulls
            // although the digest is known.
            base.render_version == RENDER_VERSION
                && base.source.revision == digest.as_str()
                && !self.recheck
        });
        let Some(base) = known else {
            self.refuse_known(&transaction, &digest)?;
            return Ok(SourceCheck::New(Box::new(transaction), digest));
        };
        // Verified also if the digest is known: the policy may have changed since the publication.
        let source = verified_source(self, &transaction, &digest).await?;
        if self.options.check_stored || self.mirror.is_check_due(&self.catalog.name) {
            check_stored(&*self.mirror.store, &transaction).await?;
            self.mirror.note_check(&self.catalog.name);
        }
        let next = Current {
            source,
            ..base.clone()
        };
        let updated = self.update_source(&transaction, next).await?;
        let composed = self.catalog.source.composed();
        if let (Some(composed), Outcome::Unchanged) = (composed, updated)
            && let Some(waiting) = refused_input(&*self.mirror.store, composed).await
        {
            return Err(waiting);
        }
        Ok(SourceCheck::Known(updated))
    }

    /// Returns the digest of the source, or the revision of the composition.
    async fn resolve(&mut self, transaction: &Transaction) -> Result<Digest, PollError> {
        let source = match &self.catalog.source {
            CatalogSource::Pulled(pulled) => &pulled.source,
            CatalogSource::Composed(composed) => {
                let found =
                    ResolvedInputs::find(self.mirror, self.catalog, composed, transaction.base())
                        .await?;
                return Ok(self.inputs.insert(Arc::new(found)).revision.clone());
            }
        };
        match self.copies.keys().next() {
            // What was copied, once, is published. The next poll sees what has come since.
            Some(digest) => Ok(digest.clone()),
            None => self.mirror.resolve(self.catalog, source).await,
        }
    }

    /// Publishes `next`, the same content with its source: readers see no change. Nothing is
    /// written if the source is the same too.
    async fn update_source(
        &mut self,
        transaction: &Transaction,
        mut next: Current,
    ) -> Result<Outcome, PollError> {
        next.render_version = RENDER_VERSION;
        next.availability = self.catalog.availability;
        self.report.describe(Some(&next));
        match transaction.commit(next).await? {
            (_, true) => Ok(Outcome::SourceDigestUpdated),
            (_, false) => Ok(Outcome::Unchanged),
        }
    }

    /// Pulls and publishes. Fails if the registry is too slow to wait for while other catalogs wait
    /// for the permit.
    async fn pull_and_publish(
        &mut self,
        transaction: &Transaction,
        digest: &Digest,
    ) -> Result<Outcome, PollError> {
        // Before the pull: an image that the policy refuses costs no download.
        let source = verified_source(self, transaction, digest).await?;
        if self.mirror.settings.registry_wait.is_some() {
            copy_first(self, digest).await?;
        }
        // A revision whose process died is pulled alone: what else was pulled then may be the
        // cause, and must not be taken for it twice.
        let is_alone = self.is_suspect(digest);
        let permits = if is_alone {
            self.mirror.settings.side_by_side
        } else {
            1
        };
        let permits = permits.max(1).try_into().unwrap_or(u32::MAX);
        // The permit bounds memory. It ends with this attempt: no wait for a retry holds it.
        let permit = self
            .mirror
            .rendering
            .clone()
            .acquire_many_owned(permits)
            .await;
        let budget = self.mirror.budget(self.catalog);
        // Threads that go on after a time-out keep it until they have ended.
        budget.hold(permit.expect("the semaphore is never closed"));
        let _stop = stop_on_drop(budget.clone());
        let limit = self.mirror.limits(self.catalog).pull_time;
        // Rendering, ignore rules and putting as well as the pull: a catalog that takes hours keeps
        // others from their turn.
        let work = self.pull_with_permit(transaction, digest, source, &budget);
        timeout(limit, work)
            .await
            .unwrap_or(Err(PollError::PullTime(limit)))
    }

    async fn pull_with_permit(
        &mut self,
        transaction: &Transaction,
        digest: &Digest,
        source: SourceRef,
        budget: &Budget,
    ) -> Result<Outcome, PollError> {
        let previous = transaction.base_snapshot().await?;
        // After the wait for the permit: a catalog that only waited has not killed the process.
        self.begin_pull(transaction, digest).await?;
        // A recheck renders without the stored shards, since one of them may be the damaged object.
        let usable = previous.filter(|_| !self.recheck);
        let content = read_content(self, transaction, digest, usable, budget).await?;
        if let (Some(base), Some(previous)) = (transaction.base(), previous)
            && !self.recheck
            && content.rendering.equals(previous)
        {
            // If the catalog was rolled back, its content is now the source's again.
            let mut next = base.clone();
            (next.source, next.rolled_back) = (source, None);
            return self.update_source(transaction, next).await;
        }
        if !self.options.force && !self.options.accept_gone {
            // After the comparison above: content that is published already needs no permission.
            let before = previous.filter(|_| !self.is_edited(transaction));
            check_packages(&content.rendering, before)?;
        }
        self.publish(transaction, content, source).await
    }

    /// Returns true if a pull of this revision has begun before and not ended.
    pub(crate) fn is_suspect(&self, digest: &Digest) -> bool {
        let inputs = self.mirror.pull_inputs(self.catalog, digest);
        let deaths = |status| self.mirror.deaths(status, &inputs);
        self.options
            .before
            .as_ref()
            .is_some_and(|status| deaths(status) > 0)
    }

    /// Returns true if the composition itself has changed since the publication: who edits it knows
    /// which packages go.
    fn is_edited(&self, transaction: &Transaction) -> bool {
        let published = transaction.base().map(|base| &base.source.reference);
        self.catalog.source.composed().is_some()
            && published != Some(&self.catalog.source.to_string())
    }

    async fn publish(
        &mut self,
        transaction: &Transaction,
        content: NewContent,
        source: SourceRef,
    ) -> Result<Outcome, PollError> {
        let (snapshot, digest, counts) = self.put_objects(transaction, content).await?;
        if let Some(base) = transaction.base()
            && base.snapshot.digest == digest
        {
            // Only damaged objects were written again.
            self.mirror.note_check(&self.catalog.name);
            let mut next = base.clone();
            (next.source, next.rolled_back) = (source, None);
            return self.update_source(transaction, next).await;
        }
        self.report.changes =
            ChangedPackages::between(transaction.base_snapshot().await?, &snapshot);
        let publication = Publication {
            snapshot: digest,
            source,
            render_version: RENDER_VERSION,
            rolled_back: None,
            availability: self.catalog.availability,
        };
        // Also on an unverified pointer: the serial must be above every serial that readers have
        // seen.
        let mut next = Current::publish(transaction.current()?, &snapshot, publication);
        if transaction.base().is_none() {
            // A history whose signature is not verified must not be signed anew.
            next.previous.clear();
        }
        let (published, _) = transaction.commit(next).await?;
        // All objects were just put or found.
        self.mirror.note_check(&self.catalog.name);
        self.report.describe(Some(&published));
        self.report.validation = counts;
        Ok(Outcome::Published)
    }
}

/// Fails if an object of the published state is missing or has another size than recorded.
async fn check_stored(store: &dyn Store, transaction: &Transaction) -> Result<(), PollError> {
    let damaged = match transaction.base_snapshot().await? {
        Some(snapshot) => find_unservable(store, snapshot).await?.into_keys().next(),
        // The snapshot itself.
        None => transaction.base().map(|base| base.snapshot.key()),
    };
    damaged.map_or(Ok(()), |key| {
        Err(PublishError::Damaged(key.to_string()).into())
    })
}
