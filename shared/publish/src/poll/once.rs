//! One poll of one catalog: resolve, compare, pull, publish.

use std::time::UNIX_EPOCH;

use model::{Current, EmptyLayers, Outcome, Publication, RENDER_VERSION, RolledBack, SourceRef, Status};
use render::StopFlag;
use source::Digest;
use tokio::time::timeout;

use super::{
    composing::{Composing, ResolvedInputs, refused_input},
    copies::ImageCopies,
    facts::{DescribedContent, NewContent},
    guard,
    objects::ObjectWriter,
    open_pull::OpenPull,
    pull::StopOnDrop,
    signatures::verify_source,
};
use crate::{
    Catalog, CatalogSource, ChangedPackages, Mirror, PollError, PublishError, RaceRetries, Report, RetryableError,
    Transaction, TransactionOptions, stats::find_unservable,
};

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
    /// Pulls although the digest is known.
    pub(crate) force: bool,
    /// Publishes although packages are gone.
    pub(crate) accept_gone: bool,
    /// Looks at the stored objects of an unchanged catalog, although it did so recently.
    pub(crate) check_stored: bool,
    /// Layers that need not be fetched; after a pull, those of the new image.
    pub(crate) empty_layers: Option<EmptyLayers>,
    /// `status.json` as it was before the poll.
    pub(crate) status: Option<&'a Status>,
    /// Pull that this poll has begun, as `status.json` records it.
    pub(crate) pull: Option<OpenPull>,
    /// Copies of images whose registries are slow.
    pub(crate) copies: ImageCopies,
    /// Inputs of a composition, as they were found last.
    pub(crate) inputs: Option<ResolvedInputs>,
    pub(crate) report: &'a mut Report,
}

impl<'a> Poll<'a> {
    /// Creates a poll that is not forced, and knows no layers.
    pub(crate) fn new(
        mirror: &'a Mirror,
        catalog: &'a Catalog,
        status: Option<&'a Status>,
        report: &'a mut Report,
    ) -> Self {
        Self {
            mirror,
            catalog,
            force: false,
            accept_gone: false,
            check_stored: false,
            empty_layers: None,
            status,
            pull: None,
            copies: ImageCopies::default(),
            inputs: None,
            report,
        }
    }
}

impl Poll<'_> {
    /// Polls, and starts again when another writer was faster or a published object turns out to be damaged.
    pub(crate) async fn run(&mut self) -> Result<Outcome, PollError> {
        let mirror = self.mirror;
        let mut retries = RaceRetries::new(&mirror.settings.env, mirror.settings.attempts, &self.catalog.name);
        // A forced poll looks at everything that is stored.
        let mut recheck = self.force;
        loop {
            match self.attempt(recheck).await {
                // Does not count as an attempt. With `recheck` set, damage counts as a lost race.
                Err(error) if !recheck && error.is_damage() => {
                    tracing::warn!(
                        error = model::text::chain(&error),
                        "rewriting what is damaged from the source"
                    );
                    recheck = true;
                }
                Err(error) if error.is_race() => self.retry(&mut retries, &error).await?,
                // Neither a transaction nor a permit is held now.
                Err(error) if recheck && error.is_damage() && self.catalog.source.composed().is_some() => {
                    // Its own objects are written again, so this one is of an input, which only the input's source can mend.
                    return Err(PollError::Waiting {
                        input: "an input whose objects are damaged".to_owned(),
                        reason: model::text::chain(&error),
                    });
                }
                Err(PollError::SlowRegistry(digest)) => {
                    self.withdraw_pull().await;
                    self.download(&digest).await?;
                }
                done => return done,
            }
        }
    }

    /// Does only the cheap part: no image is pulled.
    pub(crate) async fn check(&mut self) -> Result<SourceCheck, PollError> {
        let mirror = self.mirror;
        let mut retries = RaceRetries::new(&mirror.settings.env, mirror.settings.attempts, &self.catalog.name);
        loop {
            match self.check_source(false).await {
                Err(error) if error.is_damage() => {
                    tracing::warn!(error = model::text::chain(&error), "the published state is damaged");
                    let transaction = self.begin(true).await?;
                    let digest = self.resolve(&transaction).await?;
                    return Ok(SourceCheck::New(Box::new(transaction), digest));
                }
                Err(error) if error.is_race() => self.retry(&mut retries, &error).await?,
                done => return done,
            }
        }
    }

    async fn retry(&self, retries: &mut RaceRetries<'_>, error: &PollError) -> Result<(), PollError> {
        match retries.retry(error).await {
            true => Ok(()),
            false => Err(PollError::Contended {
                attempts: self.mirror.settings.attempts,
            }),
        }
    }

    async fn attempt(&mut self, recheck: bool) -> Result<Outcome, PollError> {
        match self.check_source(recheck).await? {
            SourceCheck::Known(outcome) => Ok(outcome),
            SourceCheck::New(transaction, digest) => {
                let ended = self.pull_and_publish(&transaction, &digest, recheck).await;
                self.report.add_written(transaction.written());
                ended
            }
        }
    }

    async fn begin(&self, recheck: bool) -> Result<Transaction, PublishError> {
        let options = TransactionOptions {
            signer: self.mirror.settings.signer.clone(),
            may_unsign: self.force,
            recheck_existing: recheck,
            env: self.mirror.settings.env.clone(),
        };
        Transaction::begin(self.mirror.store.clone(), &self.catalog.name, options).await
    }

    async fn check_source(&mut self, recheck: bool) -> Result<SourceCheck, PollError> {
        let transaction = self.begin(recheck).await?;
        let current = transaction.current()?;
        let digest = self.resolve(&transaction).await?;
        self.report.digest = Some(digest.to_string());
        self.report.describe(current);
        let known = transaction.base().filter(|base| {
            // A newer program may render the same image to other lines, so its first poll pulls although the digest is
            // known.
            base.render_version == RENDER_VERSION && base.source.revision == digest.as_str() && !recheck
        });
        let Some(base) = known else {
            self.refuse_known(&transaction, &digest)?;
            return Ok(SourceCheck::New(Box::new(transaction), digest));
        };
        // Verified also if the digest is known: the policy may have changed since the publication.
        let source = self.verified_source(&transaction, &digest).await?;
        self.check_stored_objects(&transaction).await?;
        let rolled_back = base.rolled_back.clone();
        let updated = self.update_source(&transaction, base, source, rolled_back).await?;
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
            CatalogSource::Pulled(source) => source,
            CatalogSource::Composed(composed) => {
                let found = ResolvedInputs::find(self.mirror, self.catalog, composed, transaction.base()).await?;
                return Ok(self.inputs.insert(found).revision.clone());
            }
        };
        match self.copies.last() {
            // What was copied is published. The next poll sees what has come since.
            Some(digest) => Ok(digest.clone()),
            None => self.mirror.resolve(self.catalog, source).await,
        }
    }

    /// Looks for missing and truncated objects of an unchanged catalog, once an hour: a damaged state is otherwise only
    /// noticed when the source changes.
    async fn check_stored_objects(&self, transaction: &Transaction) -> Result<(), PollError> {
        let name = &self.catalog.name;
        if !self.check_stored && !self.mirror.is_check_due(name) {
            return Ok(());
        }
        let Some(snapshot) = transaction.base_snapshot().await? else {
            let key = transaction.base().map(|base| base.snapshot.key().to_string());
            return Err(PublishError::Damaged(key.unwrap_or_default()).into());
        };
        match find_unservable(&*self.mirror.store, snapshot).await?.first() {
            Some(object) => Err(PublishError::Damaged(object.key.to_string()).into()),
            None => {
                self.mirror.note_check(name);
                Ok(())
            }
        }
    }

    /// Publishes the same content with another source: readers see no change. Nothing is written if the source is the same
    /// too.
    async fn update_source(
        &mut self,
        transaction: &Transaction,
        base: &Current,
        source: SourceRef,
        rolled_back: Option<RolledBack>,
    ) -> Result<Outcome, PollError> {
        let next = Current {
            source,
            rolled_back,
            render_version: RENDER_VERSION,
            availability: self.catalog.availability,
            ..base.clone()
        };
        self.report.describe(Some(&next));
        match transaction.commit(next).await? {
            (_, true) => Ok(Outcome::SourceDigestUpdated),
            (_, false) => Ok(Outcome::Unchanged),
        }
    }

    async fn pull_and_publish(
        &mut self,
        transaction: &Transaction,
        digest: &Digest,
        recheck: bool,
    ) -> Result<Outcome, PollError> {
        // Before the pull: an image that the policy refuses costs no download.
        let source = self.verified_source(transaction, digest).await?;
        if self.mirror.settings.registry_wait.is_some() {
            self.download_first(digest).await?;
        }
        // The permit bounds memory. It ends with this attempt: no wait for a retry holds it.
        let permit = self.mirror.rendering.acquire_many(self.permits(digest)).await;
        let _permit = permit.expect("the semaphore is never closed");
        let stop = StopOnDrop::default();
        let limit = self.mirror.pull_time(self.catalog);
        // Rendering, ignore rules and putting as well as the pull: a catalog that takes hours keeps others from their turn.
        let work = self.pull_with_permit(transaction, digest, source, recheck, &stop.0);
        timeout(limit, work).await.unwrap_or(Err(PollError::PullTime(limit)))
    }

    async fn pull_with_permit(
        &mut self,
        transaction: &Transaction,
        digest: &Digest,
        source: SourceRef,
        recheck: bool,
        stop: &StopFlag,
    ) -> Result<Outcome, PollError> {
        let previous = transaction.base_snapshot().await?;
        // After the wait for the permit: a catalog that only waited has not killed the process.
        self.open_pull(transaction, digest).await?;
        // A recheck renders without the stored shards, since one of them may be the damaged object.
        let usable = previous.filter(|_| !recheck);
        let content = match &self.catalog.source {
            CatalogSource::Pulled(source) => NewContent {
                rendering: self.pull(source, digest, usable, stop).await?,
                inputs: Vec::new(),
            },
            CatalogSource::Composed(composed) => {
                let composing = Composing {
                    mirror: self.mirror,
                    catalog: self.catalog,
                    composed,
                    inputs: self.inputs.as_ref().expect("the inputs were found for the revision"),
                    copies: &self.copies,
                    transaction,
                    previous: usable,
                    stop,
                    report: self.report,
                };
                composing.run().await?
            }
        };
        if let (Some(base), Some(previous)) = (transaction.base(), previous)
            && !recheck
            && content.rendering.equals(previous)
        {
            // If the catalog was rolled back, its content is now the source's again.
            return self.update_source(transaction, base, source, None).await;
        }
        if !self.accept_gone {
            // After the comparison above: content that is published already needs no permission.
            let before = previous.filter(|_| !self.is_edited(transaction));
            guard::check(&content.rendering, before)?;
        }
        let described = self.describe(transaction, content, recheck, stop).await?;
        self.publish(transaction, described, source).await
    }

    /// Returns true if the composition itself has changed since the publication: who edits it knows which packages go.
    fn is_edited(&self, transaction: &Transaction) -> bool {
        let published = transaction.base().map(|base| &base.source.reference);
        self.catalog.source.composed().is_some() && published != Some(&self.catalog.source.to_string())
    }

    /// Returns the number of permits that the pull needs. A revision whose process died is pulled alone: what else was pulled
    /// then may be the cause, and must not be taken for it twice.
    fn permits(&self, digest: &Digest) -> u32 {
        match self.is_suspect(digest) {
            true => self.mirror.pulls_at_once(),
            false => 1,
        }
    }

    async fn publish(
        &mut self,
        transaction: &Transaction,
        described: DescribedContent,
        source: SourceRef,
    ) -> Result<Outcome, PollError> {
        let writer = ObjectWriter {
            store: &self.mirror.store,
            transaction,
            identity: self.mirror.settings.identity,
        };
        let counts = described.findings.as_ref().map(|findings| findings.counts);
        let (snapshot, digest) = writer.write(described).await?;
        if let Some(base) = transaction.base()
            && base.snapshot.digest == digest
        {
            // Only damaged objects were written again.
            self.mirror.note_check(&self.catalog.name);
            return self.update_source(transaction, base, source, None).await;
        }
        self.report.changes = ChangedPackages::between(transaction.base_snapshot().await?, &snapshot);
        let publication = Publication {
            snapshot: digest,
            source,
            render_version: RENDER_VERSION,
            // The commit dates it.
            published_at: UNIX_EPOCH,
            rolled_back: None,
            availability: self.catalog.availability,
        };
        // Also on an unverified pointer: the serial must be above every serial that readers have seen.
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

    /// Returns the source at that digest, with its signatures verified if the catalog has a policy. A forced poll verifies
    /// again.
    async fn verified_source(&self, transaction: &Transaction, digest: &Digest) -> Result<SourceRef, PollError> {
        let known = transaction.base().filter(|_| !self.force).map(|base| &base.source);
        let inputs = self.inputs.as_ref();
        if let (Some(composed), Some(inputs)) = (self.catalog.source.composed(), inputs)
            // The revision covers the policies.
            && known.is_none_or(|known| known.revision != digest.as_str())
        {
            for input in inputs.pulled(composed) {
                verify_source(self.mirror, input.catalog, input.digest, None).await?;
            }
        }
        Ok(SourceRef {
            reference: self.catalog.source.to_string(),
            revision: digest.to_string(),
            verified: verify_source(self.mirror, self.catalog, digest, known).await?,
            inputs: inputs.map(ResolvedInputs::published).unwrap_or_default(),
        })
    }
}
