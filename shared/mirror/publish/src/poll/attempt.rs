//! Steps of a poll that belong to one attempt. Each returns what it found; `once.rs` knows their
//! order.

use model::{
    Availability, Current, EmptyLayers, Encoding, Kind, Publication, PullInputs, RENDER_VERSION,
    Sha256, Snapshot, SourceRef, ValidationCounts,
};
use olm::Day;
use source::Digest;
use store::find_unservable;
use work::Budget;

use super::catalog_poll::Poll;
use super::content::NewContent;
use super::facts::{Described, WantedFacts};
use super::fetched::Fetched;
use super::found::Found;
use super::hold::{HoldJudge, HoldReasons};
use super::objects::{PutContent, put_content};
use super::open_pull::{self, OpenPull};
use super::pulled::ContentReader;
use super::resolved::refuse_stale_input;
use super::seen::SeenBefore;
use crate::{PollError, PublishError, Transaction, TransactionOptions, ValidationMode};

/// One attempt of a poll: what it has read of the store, and what it has found at the source.
pub(super) struct Attempt<'a> {
    pub(super) poll: &'a Poll<'a>,
    pub(super) transaction: Transaction,
    pub(super) found: Found<'a>,
    /// Relies on nothing that is stored: each object is hashed, and written again if it is damaged.
    pub(super) recheck: bool,
}

impl<'a> Attempt<'a> {
    /// Reads what is published, and finds the revision of the source. `copied` is its digest if it
    /// was copied to disk.
    pub(super) async fn begin(
        poll: &'a Poll<'a>,
        recheck: bool,
        copied: Option<&Digest>,
    ) -> Result<Self, PollError> {
        let mirror = poll.mirror;
        let catalog = poll.catalog;
        let options = TransactionOptions {
            signer: mirror.settings.signer.clone(),
            may_unsign: poll.options.force,
            recheck_existing: recheck,
            env: mirror.settings.env.clone(),
        };
        let transaction = Transaction::begin(mirror.store.clone(), &catalog.name, options).await?;
        // A pointer that cannot be read costs no request to the source.
        transaction.current()?;
        let found = Found::find(poll, &transaction, copied).await?;
        Ok(Self {
            poll,
            transaction,
            found,
            recheck,
        })
    }

    /// Returns what is published, if it has the revision that was found.
    pub(super) fn known(&self) -> Option<&Current> {
        self.transaction.base().filter(|base| {
            // A newer program may render the same image to other lines, so its first poll pulls
            // although the digest is known.
            // A ring that served nothing publishes its first state, which its revision named before.
            let ring = self.found.ring().map(|found| &found.ring);
            base.render_version == RENDER_VERSION
                && base.source.revision == self.found.revision().as_str()
                && base.source.is_placeholder() == ring.is_some_and(|ring| ring.is_placeholder)
                && !self.recheck
        })
    }

    /// Fails if the revision cannot be published over what is published, or if the process died
    /// under it, unless the poll is forced.
    pub(super) fn refuse_known(&self) -> Result<(), PollError> {
        match &self.poll.options.before {
            Some(status) if !self.poll.options.force => {
                let inputs = self.pull_inputs();
                open_pull::refuse_known(
                    self.poll.mirror,
                    self.poll.catalog,
                    status,
                    &inputs,
                    self.base_hash(),
                )
            }
            _ => Ok(()),
        }
    }

    /// Returns the source at the revision that was found, with its signatures verified. A forced
    /// poll verifies again what is published.
    pub(super) async fn verify(&self) -> Result<SourceRef, PollError> {
        let base = self.transaction.base();
        let known = base.filter(|_| !self.poll.options.force);
        let reference = self.poll.catalog.source.shown();
        self.found
            .verify(&self.poll.images, reference, known.map(|base| &base.source))
            .await
    }

    /// Fails if an object of the published state is missing or has another size than recorded.
    pub(super) async fn check_stored(&self) -> Result<(), PollError> {
        let damaged = match self.transaction.base_snapshot().await? {
            Some(snapshot) => {
                let found = find_unservable(&*self.poll.mirror.store, snapshot).await?;
                found.into_keys().next()
            }
            // The snapshot itself.
            None => self.transaction.base().map(|base| base.snapshot.key()),
        };
        match damaged {
            Some(key) => Err(PublishError::Damaged(key.to_string()).into()),
            None => Ok(()),
        }
    }

    /// Fails if the source of an input of a composition is refused. The input is used all the same,
    /// but the composition is not as new as its sources are.
    pub(super) async fn check_inputs(&self) -> Result<(), PollError> {
        match self.poll.catalog.source.composed() {
            Some(composed) => refuse_stale_input(&*self.poll.mirror.store, composed).await,
            None => Ok(()),
        }
    }

    /// Returns true if a pull of this revision has begun before and not ended.
    pub(super) fn is_suspect(&self) -> bool {
        let Some(status) = &self.poll.options.before else {
            return false;
        };
        let inputs = self.pull_inputs();
        open_pull::others(self.poll.mirror, &self.poll.catalog.name, status, &inputs) > 0
    }

    /// Counts in `status.json` that a pull of the revision begins.
    ///
    /// # Errors
    /// [`PollError::Killer`] if the process died under this revision, unless the poll is forced.
    pub(super) async fn begin_pull(&self, inputs: PullInputs) -> Result<OpenPull, PollError> {
        let is_forced = self.poll.options.force;
        open_pull::begin(self.poll.mirror, self.poll.catalog, &inputs, is_forced).await?;
        Ok(OpenPull {
            inputs,
            base: self.base_hash(),
        })
    }

    /// Pulls or composes the content, and renders it. Shards of `reusable` are used again, and
    /// layers in `empty` are not fetched.
    pub(super) async fn read(
        &self,
        reusable: Option<&Snapshot>,
        empty: &EmptyLayers,
        budget: &Budget,
        fetched: &mut Fetched,
    ) -> Result<NewContent, PollError> {
        let mirror = self.poll.mirror;
        let catalog = self.poll.catalog;
        let limits = mirror.limits(catalog);
        let images = self.poll.images.clone();
        let mut reader = ContentReader::new(mirror, limits, images, budget.clone());
        if !self.poll.options.is_last {
            reader.chunks = Some(mirror.known.chunks(&catalog.name, &limits.catalog));
        }
        let read = self
            .found
            .read(&reader, &self.transaction, reusable, empty, fetched);
        let content = read.await?;
        let chunks = content.rendering.chunks();
        mirror
            .known
            .set_chunks(&catalog.name, limits.catalog, chunks);
        Ok(content)
    }

    /// Compares the new content with the published state. Returns the reasons to hold it back; none
    /// for a forced poll, and for a composition that was edited.
    pub(super) async fn compare(
        &self,
        content: &NewContent,
        budget: &Budget,
    ) -> Result<HoldReasons, PollError> {
        let Poll {
            mirror,
            catalog,
            options,
            ..
        } = self.poll;
        let is_accepted = options.accept_gone && catalog.hold.rules.is_none();
        let Some(base) = self.transaction.base_snapshot().await? else {
            return Ok(HoldReasons::default());
        };
        if options.force || is_accepted || self.is_edited() {
            return Ok(HoldReasons::default());
        }
        let judge = HoldJudge {
            mirror,
            catalog,
            base,
            base_hash: self.base_hash(),
            status: options.before.as_ref(),
            revision: self.found.revision().as_str(),
            budget,
        };
        judge.compare(&content.rendering).await
    }

    /// Describes the new content, and puts what the published Snapshot does not name, once `judge`
    /// has let it pass. That returns the numbers of findings.
    pub(super) async fn put(
        &self,
        content: NewContent,
        judge: impl FnOnce(&Described) -> Result<Option<ValidationCounts>, PollError>,
    ) -> Result<PutContent, PollError> {
        let mirror = self.poll.mirror;
        let base = self.transaction.base_snapshot().await?.into_iter();
        let inputs = content.inputs.iter().map(|input| &**input);
        // Days do not follow from the lines, so a recheck keeps them too.
        let today = Day::from((mirror.settings.env.clock)());
        let days = SeenBefore::read(&*mirror.store, &self.transaction, inputs.clone(), today);
        let seen = days.await?;
        let wanted = WantedFacts {
            store: &*mirror.store,
            // A recheck relies on nothing that is stored.
            trusted: base.chain(inputs).filter(|_| !self.recheck).collect(),
            is_validated: self.poll.catalog.validation != ValidationMode::Off,
            workers: mirror.settings.render.workers.max(1),
        };
        let mut kinds = vec![
            Kind::All(Encoding::Zstd),
            Kind::All(Encoding::Gzip),
            Kind::Blob,
        ];
        if mirror.settings.identity {
            kinds.push(Kind::All(Encoding::Identity));
        }
        put_content(
            &self.transaction,
            content.rendering,
            kinds,
            wanted,
            seen,
            &mirror.progress,
            judge,
        )
        .await
    }

    /// Returns the availability to readers: as it is configured, but a ring without a state has none.
    pub(super) fn availability(&self, source: &SourceRef) -> Availability {
        if source.is_placeholder() {
            return Availability::Unavailable;
        }
        self.poll.catalog.availability
    }

    /// Returns the pointer that publishes new content.
    pub(super) fn next(&self, put: &PutContent, source: SourceRef) -> Result<Current, PollError> {
        let publication = Publication {
            snapshot: put.digest,
            availability: self.availability(&source),
            source,
            render_version: RENDER_VERSION,
            rolled_back: None,
        };
        // Also on an unverified pointer: the serial must be above every serial that readers have
        // seen.
        let current = self.transaction.current()?;
        let mut next = Current::publish(current, &put.snapshot, publication);
        if self.transaction.base().is_none() {
            // A history whose signature is not verified must not be signed anew.
            next.previous.clear();
        }
        Ok(next)
    }

    /// Returns true if the composition itself has changed since the publication: who edits it knows
    /// which packages go. The content of a ring was judged in the catalog that it follows.
    pub(super) fn is_edited(&self) -> bool {
        let source = &self.poll.catalog.source;
        if source.ring().is_some() {
            return true;
        }
        let published = self.transaction.base().map(|base| &base.source.reference);
        source.composed().is_some() && published != Some(&source.shown())
    }

    /// Returns everything that decides the result of pulling the revision, the published state
    /// excepted.
    pub(super) fn pull_inputs(&self) -> PullInputs {
        let Poll {
            mirror,
            catalog,
            images,
            ..
        } = self.poll;
        open_pull::inputs(mirror, catalog, images, self.found.revision())
    }

    /// Returns the hash of the Snapshot that is published.
    fn base_hash(&self) -> Option<Sha256> {
        let base = self.transaction.base()?;
        Some(base.snapshot.digest.sha256)
    }
}
