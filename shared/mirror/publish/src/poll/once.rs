//! One poll of one catalog. This file alone knows the order of the steps, and keeps what they find:
//!
//! 1. Begin: read `current.json`, keep its version for the commit, and find the revision of the
//!    source.
//! 2. A revision that is published ends the poll, after a look at its signatures and at the stored
//!    objects. So does one that is known to fail.
//! 3. Verify the signatures, and wait for a place.
//! 4. A ring publishes a state that is stored, unless it takes some packages at once. Everything
//!    else is read: pull or compose, and render. Content that is published already ends the poll.
//! 5. Judge the new content, and then put what the published Snapshot does not name.
//! 6. Commit. After a lost race, start again.

use model::{
    ChangedPackages, Current, EmptyLayers, ObjectStats, Outcome, PublicationId, RENDER_VERSION,
    Ring, SourceInput, SourceRef, ValidationCounts,
};
use source::Digest;
use store::find_unservable;
use tokio::time::timeout;
use work::{Budget, stop_on_drop};

use super::attempt::Attempt;
use super::catalog_poll::Poll;
use super::composed::read_snapshot;
use super::fetched::Fetched;
use super::found::Found;
use super::objects::PutContent;
use super::open_pull::{self, OpenPull};
use super::resolved::waiting;
use super::validation::{check_packages, judge};
use crate::{PollError, PollPhase};

/// Result of the cheap part of a poll.
pub(super) enum SourceCheck<'a> {
    /// The revision is known: the poll has ended.
    Known(Outcome),
    /// The content has to be read.
    New(Box<Attempt<'a>>),
}

/// Results of all attempts of a poll. They stay when the poll fails or runs out of its time.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// Revision of the source.
    pub(super) revision: Option<Digest>,
    /// State that is published now.
    pub(super) published: Option<PublicationId>,
    /// Packages that differ from the state before.
    pub(super) changes: ChangedPackages,
    /// Findings about the content that was published.
    pub(super) validation: Option<ValidationCounts>,
    /// Place of a ring.
    pub(super) ring: Option<Box<Ring>>,
    /// Remarks of the composition; `None` if nothing was composed.
    pub(super) notices: Option<Vec<String>>,
    /// Number of packages whose lines were validated.
    pub(super) packages_validated: usize,
    /// Objects that were written to the store.
    pub(super) written: ObjectStats,
    /// Images that were fetched.
    pub(super) fetched: Fetched,
    /// Digest of the catalog's own image, if that was copied to disk. This one is published.
    pub(super) copied: Option<Digest>,
    /// Layers of the image that was read that hold no FBC.
    pub(super) empty_layers: Option<EmptyLayers>,
    /// Pull that has begun, as `status.json` counts it.
    pub(super) pull: Option<OpenPull>,
}

/// Polls. What is learned stays if the poll is dropped before its end.
pub(super) async fn run(poll: &Poll<'_>, learned: &mut Learned) -> Result<Outcome, PollError> {
    let mut retries = poll.retries();
    loop {
        match attempt(poll, retries.recheck, learned).await {
            Err(error) => retries.again(error).await?,
            done => return done,
        }
    }
}

/// Does only the cheap part of a poll: nothing is pulled.
pub(super) async fn check<'a>(
    poll: &'a Poll<'a>,
    learned: &mut Learned,
) -> Result<SourceCheck<'a>, PollError> {
    let mut retries = poll.retries();
    loop {
        match begin(poll, retries.recheck, learned).await {
            Err(error) => retries.again(error).await?,
            done => return done,
        }
    }
}

async fn attempt(
    poll: &Poll<'_>,
    recheck: bool,
    learned: &mut Learned,
) -> Result<Outcome, PollError> {
    // At most twice: a copy on disk is never too slow.
    loop {
        let attempt = match begin(poll, recheck, learned).await? {
            SourceCheck::Known(outcome) => return Ok(outcome),
            SourceCheck::New(attempt) => attempt,
        };
        let ended = pull(&attempt, learned).await;
        learned.written += attempt.transaction.written();
        match ended {
            Err(PollError::Image(error)) if error.is_slow_registry() => {}
            ended => return ended,
        }
        // Neither a transaction nor a place is held while the image is copied, and no pull counts
        // as begun.
        let Attempt {
            transaction, found, ..
        } = *attempt;
        drop(transaction);
        if let Some(pull) = learned.pull.take() {
            open_pull::withdraw(poll.mirror, &poll.catalog.name, &pull.inputs).await;
        }
        copy(poll, &found, learned).await?;
    }
}

/// Reads what is published, and finds the revision. A known one ends the poll.
async fn begin<'a>(
    poll: &'a Poll<'a>,
    recheck: bool,
    learned: &mut Learned,
) -> Result<SourceCheck<'a>, PollError> {
    let _asking = poll.mirror.progress.enter(PollPhase::Asking);
    let attempt = Attempt::begin(poll, recheck, learned.copied.as_ref()).await?;
    learned.revision = Some(attempt.found.revision().clone());
    learned.published = attempt.transaction.current()?.map(PublicationId::from);
    if let Some(found) = attempt.found.ring() {
        learned.ring = Some(Box::new(found.ring.clone()));
        learned.notices = found.first_notice();
    }
    if let Some(base) = attempt.known() {
        let outcome = confirm(&attempt, base, learned).await?;
        return Ok(SourceCheck::Known(outcome));
    }
    attempt.refuse_known()?;
    Ok(SourceCheck::New(Box::new(attempt)))
}

/// Ends a poll whose revision is published as `base`.
async fn confirm(
    attempt: &Attempt<'_>,
    base: &Current,
    learned: &mut Learned,
) -> Result<Outcome, PollError> {
    // Verified also if the revision is known: the policy may have changed since the publication.
    let source = attempt.verify().await?;
    if attempt.poll.is_check_due() {
        attempt.check_stored().await?;
        attempt.poll.note_check();
    }
    let next = Current {
        source,
        ..base.clone()
    };
    let outcome = update(attempt, next, learned).await?;
    if outcome == Outcome::Unchanged {
        attempt.check_inputs().await?;
    }
    Ok(outcome)
}

/// Reads the content and publishes it. Fails if the registry is too slow to wait for while other
/// catalogs wait for a place.
async fn pull(attempt: &Attempt<'_>, learned: &mut Learned) -> Result<Outcome, PollError> {
    let poll = attempt.poll;
    let mirror = poll.mirror;
    // Before the pull: an image that the policy refuses costs no download.
    let source = attempt.verify().await?;
    if let Some(found) = attempt.found.ring() {
        let choice = found.choose(&*mirror.store).await?;
        if let Some(state) = choice.whole {
            learned.notices = found.first_notice().or(Some(choice.packages.notices));
            return step(attempt, state, source, learned).await;
        }
    }
    let is_suspect = attempt.is_suspect();
    if mirror.settings.registry_wait.is_some() && attempt.found.is_copied_first(is_suspect) {
        copy(poll, &attempt.found, learned).await?;
    }
    // The place bounds memory. It ends with this attempt: no wait for a retry holds it.
    let place = if is_suspect {
        // A revision whose process died is pulled alone: what else was pulled then may be the
        // cause, and must not be taken for it twice.
        mirror.all_places().await
    } else {
        mirror.place().await
    };
    let limits = mirror.limits(poll.catalog);
    let budget = mirror.budget(limits);
    // Threads that go on after a time-out keep it until they have ended.
    budget.hold(place);
    let _stop = stop_on_drop(budget.clone());
    // Rendering, ignore rules and putting as well as the pull: a catalog that takes hours keeps
    // others from their turn.
    let publishing = read_and_publish(attempt, source, &budget, learned);
    timeout(limits.pull_time, publishing)
        .await
        .unwrap_or(Err(PollError::PullTime(limits.pull_time)))
}

async fn read_and_publish(
    attempt: &Attempt<'_>,
    source: SourceRef,
    budget: &Budget,
    learned: &mut Learned,
) -> Result<Outcome, PollError> {
    let poll = attempt.poll;
    // A ring that serves nothing has published nothing.
    let base = attempt.transaction.base();
    let base = base.filter(|base| !base.source.is_placeholder());
    let previous = attempt.transaction.base_snapshot().await?;
    // After the wait for the place: a catalog that only waited has not killed the process.
    let inputs = attempt.pull_inputs();
    let begun = learned.pull.as_ref();
    if begun.is_none_or(|begun| begun.inputs != inputs) {
        learned.pull = Some(attempt.begin_pull(inputs).await?);
    }
    let empty = poll.empty_layers(learned.empty_layers.as_ref());
    let reading = poll.mirror.progress.enter(PollPhase::Reading);
    // A recheck renders without the stored shards, since one of them may be the damaged object.
    let reusable = previous.filter(|_| !attempt.recheck);
    let content = attempt
        .read(reusable, &empty, budget, &mut learned.fetched)
        .await?;
    drop(reading);
    let _storing = poll.mirror.progress.enter(PollPhase::Storing);
    if content.notices.is_some() {
        learned.notices.clone_from(&content.notices);
    }
    if let Some(empty_layers) = &content.empty_layers {
        learned.empty_layers = Some(empty_layers.clone());
    }
    if let (Some(base), Some(published)) = (base, reusable)
        && content.rendering.equals(published)
    {
        return update(attempt, with_source(base, source), learned).await;
    }
    if !poll.options.force && !poll.options.accept_gone {
        // After the comparison above: content that is published already needs no permission.
        let before = previous.filter(|_| !attempt.is_edited());
        check_packages(&content.rendering, before)?;
    }
    let held = attempt.compare(&content, budget).await?;
    let putting = attempt.put(content, |described| {
        learned.packages_validated += described.facts.validated;
        let counts = judge(described, poll.catalog.validation, poll.options.force)?;
        held.check(poll.catalog, counts)?;
        Ok(counts)
    });
    let put = putting.await?;
    if let Some(base) = base
        && base.snapshot.digest == put.digest
    {
        // Only damaged objects were written again.
        poll.note_check();
        return update(attempt, with_source(base, source), learned).await;
    }
    commit(attempt, put, source, learned).await
}

/// Publishes a state of another catalog as it is stored. Nothing is written but documents.
async fn step(
    attempt: &Attempt<'_>,
    state: SourceInput,
    source: SourceRef,
    learned: &mut Learned,
) -> Result<Outcome, PollError> {
    if let Some(base) = attempt.transaction.base()
        && base.snapshot == state.snapshot
        && base.source.is_placeholder() == source.is_placeholder()
    {
        return update(attempt, with_source(base, source), learned).await;
    }
    let store = &*attempt.poll.mirror.store;
    let snapshot = read_snapshot(store, &state, None).await?;
    if let Some(key) = find_unservable(store, &snapshot).await?.into_keys().next() {
        return Err(waiting(
            &state.catalog,
            format!("{key} is missing or damaged"),
        ));
    }
    let put = PutContent {
        snapshot,
        digest: state.snapshot.digest,
        counts: None,
    };
    commit(attempt, put, source, learned).await
}

/// Publishes new content.
async fn commit(
    attempt: &Attempt<'_>,
    put: PutContent,
    source: SourceRef,
    learned: &mut Learned,
) -> Result<Outcome, PollError> {
    let before = attempt.transaction.base_snapshot().await?;
    learned.changes = ChangedPackages::between(before, &put.snapshot);
    let next = attempt.next(&put, source)?;
    let (published, _) = attempt.transaction.commit(next).await?;
    // All objects were just put or found.
    attempt.poll.note_check();
    learned.published = Some(PublicationId::from(&published));
    learned.validation = put.counts;
    Ok(Outcome::Published)
}

/// Publishes `next`, the same content with its source: readers see no change. Nothing is written if
/// the source is the same too.
async fn update(
    attempt: &Attempt<'_>,
    mut next: Current,
    learned: &mut Learned,
) -> Result<Outcome, PollError> {
    next.render_version = RENDER_VERSION;
    next.availability = attempt.availability(&next.source);
    learned.published = Some(PublicationId::from(&next));
    let (_, is_written) = attempt.transaction.commit(next).await?;
    Ok(if is_written {
        Outcome::SourceDigestUpdated
    } else {
        Outcome::Unchanged
    })
}

/// Returns the pointer with a source whose content it has. If the catalog was rolled back, its
/// content is now the source's again.
fn with_source(base: &Current, source: SourceRef) -> Current {
    Current {
        source,
        rolled_back: None,
        ..base.clone()
    }
}

/// Copies images from their registries to disk.
async fn copy(poll: &Poll<'_>, found: &Found<'_>, learned: &mut Learned) -> Result<(), PollError> {
    let empty = poll.empty_layers(learned.empty_layers.as_ref());
    let copied = found
        .copy(&poll.images, &empty, &mut learned.fetched)
        .await?;
    if copied {
        learned.copied = Some(found.revision().clone());
    }
    Ok(())
}
