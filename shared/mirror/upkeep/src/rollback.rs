//! Publishes earlier content again.

use std::{collections::BTreeSet, fmt::Display, sync::Arc, time::Instant};

use model::{
    CatalogName, ChangedPackages, Current, ObjectRef, Outcome, Publication, RolledBack, Sha256,
    Snapshot, Verified,
};
use publish::{Env, PollError, PublishError, RaceRetries, Report, Transaction, TransactionOptions};
use store::{Store, find_stored, find_unservable};
use tracing::Instrument;
use trust::Signer;

/// Maximum number of attempts of one rollback, as of a poll.
const ATTEMPTS: u32 = 6;

/// Target, signer and checks of a rollback.
#[derive(Debug, Clone, Default)]
pub struct RollbackOptions {
    /// First digits of the hash of the content, which is looked up in the history of
    /// `current.json`. Default: the newest content that is not the current one.
    pub target: Option<String>,
    /// Publishes the content also if its signatures were not verified under the policy of the
    /// source. Default: no.
    pub unverified: bool,
    /// Keys that sign the new pointer. Required if the old one is signed.
    pub signer: Option<Signer>,
    /// Clocks and randomness. Default: the system's.
    pub env: Env,
}

/// Publishes an earlier content of a catalog again, under a new serial, after a look at every
/// object that it names.
///
/// The source stays the one that was last seen, so the next poll finds it known and leaves the
/// rollback in place until the source changes or a poll is forced. `status.json` stays too, because
/// nothing was polled.
pub async fn rollback(
    store: &Arc<dyn Store>,
    catalog: &CatalogName,
    options: &RollbackOptions,
) -> Report {
    let started = Instant::now();
    let mut report = Report::new(catalog.clone());
    let span = tracing::info_span!("rollback", %catalog);
    let mut retries = RaceRetries::new(&options.env, ATTEMPTS);
    let work = async {
        loop {
            match attempt(store, options, &mut report).await {
                Err(error) => retries.again(error).await?,
                done => return done,
            }
        }
    };
    let ended = work.instrument(span).await;
    report.end(ended, started.elapsed());
    log(&report);
    report
}

async fn attempt(
    store: &Arc<dyn Store>,
    options: &RollbackOptions,
    report: &mut Report,
) -> Result<Outcome, PollError> {
    let publishing = TransactionOptions {
        signer: options.signer.clone(),
        env: options.env.clone(),
        ..TransactionOptions::default()
    };
    let transaction = Transaction::begin(store.clone(), &report.catalog, publishing).await?;
    let found = transaction.current()?;
    let current =
        found.ok_or_else(|| refused(format!("the store has no catalog {}", report.catalog)))?;
    if transaction.base().is_none() {
        // Its history must not be signed anew.
        let untrusted =
            "what is published is not signed by one of the keys; poll the catalog with them first";
        return Err(refused(untrusted));
    }
    report.digest = Some(current.source.revision.clone());
    report.describe(Some(current));
    let content_hash = find(options.target.as_deref(), current)?;
    if content_hash == current.content_hash {
        return Ok(Outcome::Unchanged);
    }
    let (snapshot, object) = stored_snapshot(&**store, &transaction, current, content_hash).await?;
    let verified = verification(current, content_hash, options.unverified)?;
    report.changes = ChangedPackages::between(transaction.base_snapshot().await?, &snapshot);
    let publication = Publication {
        snapshot: object.digest,
        // The source keeps its last revision. With the revision of the old content the next poll
        // would see a change, and undo the rollback.
        source: current.source.clone(),
        render_version: current.render_version,
        rolled_back: Some(RolledBack { verified }),
        availability: current.availability,
    };
    let next = Current::publish(Some(current), &snapshot, publication);
    let (published, _) = transaction.commit(next).await?;
    report.describe(Some(&published));
    Ok(Outcome::Published)
}

/// Reads the newest stored Snapshot of the content, and looks at all objects that it names. They
/// are claimed before: only a history names them, so collection may have condemned them.
async fn stored_snapshot(
    store: &dyn Store,
    transaction: &Transaction,
    current: &Current,
    content_hash: Sha256,
) -> Result<(Snapshot, ObjectRef), PollError> {
    for object in current.snapshots_of(content_hash) {
        transaction.claim([object]).await?;
        let snapshot = match find_stored::<Snapshot>(store, &object.digest).await {
            Ok(Some(snapshot)) => snapshot,
            // The content may have been published several times. Another Snapshot of it, by another
            // compressor, may still be stored.
            Ok(None) => continue,
            // Damaged objects cannot be written again, so it is not worth another attempt.
            Err(error) if error.is_damage() => {
                return Err(incomplete(content_hash, 1, model::text::chain(&error)));
            }
            Err(error) => return Err(PublishError::from(error).into()),
        };
        let objects = snapshot.objects().into_iter().map(|entry| entry.object);
        transaction.claim(objects).await?;
        // Sizes only: hashing every object would read the whole catalog. `verify` does that.
        let found = find_unservable(store, &snapshot).await?;
        return match found.first_key_value() {
            Some((key, problem)) => Err(incomplete(
                content_hash,
                found.len(),
                format_args!("{key}, {problem}"),
            )),
            None => Ok((snapshot, object)),
        };
    }
    Err(refused(format!(
        "the content {content_hash} is not stored any more"
    )))
}

fn incomplete(content_hash: Sha256, count: usize, first: impl Display) -> PollError {
    let reason = format!("{count} objects of {content_hash} cannot be served, such as {first}");
    refused(reason)
}

fn refused(reason: impl Into<String>) -> PollError {
    PollError::Rollback(reason.into())
}

/// Returns the verification of the content, which must be under the policy that is now asked of the
/// source, unless `unverified`. Of several publications of the content, one that fits counts, else
/// the newest.
fn verification(
    current: &Current,
    content_hash: Sha256,
    unverified: bool,
) -> Result<Option<Verified>, PollError> {
    let asked = current
        .source
        .verified
        .as_ref()
        .map(|verified| verified.policy);
    let earlier = current.previous.iter();
    let same = earlier.filter(|previous| previous.content_hash == content_hash);
    let known: Vec<_> = same
        .filter_map(|previous| previous.verified.as_ref())
        .collect();
    let fitting = known.iter().find(|verified| Some(verified.policy) == asked);
    let found = fitting
        .or(known.first())
        .map(|verified| (*verified).clone());
    if asked.is_none() || fitting.is_some() || unverified {
        return Ok(found);
    }
    let how = match found {
        Some(_) => "was verified under another policy",
        None => "was not verified when it was published, as far as is known",
    };
    Err(refused(format!(
        "{content_hash} {how}, unlike what is published now: to publish it all the same ask for it as `unverified`"
    )))
}

/// Returns the hash of the content that is published again.
fn find(target: Option<&str>, current: &Current) -> Result<Sha256, PollError> {
    let mut earlier = current
        .previous
        .iter()
        .map(|previous| previous.content_hash);
    let Some(prefix) = target else {
        let other = earlier.find(|hash| *hash != current.content_hash);
        return other.ok_or_else(|| refused("there is no earlier publication"));
    };
    let all = earlier.chain([current.content_hash]);
    let fitting: BTreeSet<Sha256> = all
        .filter(|hash| hash.to_string().starts_with(prefix))
        .collect();
    Err(refused(match (fitting.first(), fitting.len()) {
        (Some(hash), 1) => return Ok(*hash),
        (None, _) => {
            format!("no remembered publication has a content hash that starts with {prefix:?}")
        }
        (Some(_), count) => {
            format!("{count} publications have content hashes that start with {prefix:?}")
        }
    }))
}

fn log(report: &Report) {
    let catalog = &report.catalog;
    let outcome = report.outcome.as_str();
    match report.error_text() {
        Some(error) => {
            tracing::error!(target: "report", %catalog, outcome, error, "rollback failed");
        }
        None => tracing::info!(
            %catalog,
            outcome,
            content_hash = report.content_hash.map(tracing::field::display),
            serial = report.serial,
            "rolled back"
        ),
    }
}
