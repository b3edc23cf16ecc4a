//! Carries out one event: schedule, queue or manual.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use aws_lambda_events::sqs::SqsBatchResponse;
use futures_util::FutureExt;
use model::{CatalogName, Outcome};
use publish::{Catalog, PollOrder, Report};
use serde_json::{Value, json};
use store::Store;
use tokio::{sync::Mutex, time::timeout};
use tracing::Instrument;
use upkeep::{GcOptions, GcReport, RollbackOptions};

use crate::deadline::working_time;
use crate::round::{Candidate, PullMode, Round, side_by_side, take_followers};
use crate::secrets::PullSecrets;
use crate::site::Site;
use crate::{
    CatalogMessage, Deadline, Environment, ManualAction, ManualEvent, PollerAnswer, PollerEvent,
    QueueRecord, Services, metrics, queue,
};

/// Time that must be left to start the check of one catalog. Reading the objects of a catalog
/// rarely takes less.
const CHECK_MIN: Duration = Duration::from_secs(1);

/// Function with its caches, which last from one event to the next.
pub struct Poller {
    pub(crate) environment: Arc<Environment>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) services: Arc<dyn Services>,
    /// Mirror of the last configuration.
    pub(crate) site: Mutex<Option<Arc<Site>>>,
    pub(crate) secrets: PullSecrets,
}

impl Poller {
    /// Creates a poller that publishes to `store`. Sends no request before the first event.
    pub fn new(
        environment: Arc<Environment>,
        store: Arc<dyn Store>,
        services: Arc<dyn Services>,
    ) -> Self {
        Self {
            secrets: PullSecrets::default(),
            site: Mutex::default(),
            environment,
            store,
            services,
        }
    }

    /// Carries out an event, and returns the answer to it. A catalog that fails is reported in the
    /// answer.
    ///
    /// # Errors
    /// If the event, the configuration or the pull secrets cannot be used, if every poll of a
    /// schedule event failed, or if a check or garbage collection cannot read the store.
    pub async fn handle(&self, event: Value, deadline: Deadline) -> anyhow::Result<Value> {
        let event = PollerEvent::from_value(event)?;
        let kind: &str = (&event).into();
        let span = tracing::error_span!("event", kind);
        self.run(event, deadline).instrument(span).await
    }

    async fn run(&self, event: PollerEvent, deadline: Deadline) -> anyhow::Result<Value> {
        let refresh = self
            .secrets
            .refresh(&self.environment.pull_secrets, &*self.services);
        let (site, secrets) = tokio::join!(self.site(), refresh);
        // The problems of the configuration first: they say more than a secret that it may not even
        // need.
        let site = site?;
        secrets?;
        let invocation = Invocation {
            poller: self,
            round: Round {
                environment: &self.environment,
                site: &site,
                deadline,
            },
        };
        // Boxed, because the state of each branch is large.
        match event {
            PollerEvent::Schedule => Ok(json!(invocation.schedule().boxed().await?)),
            PollerEvent::Queue(records) => Ok(json!(invocation.queue(&records).boxed().await)),
            PollerEvent::Manual(manual) => invocation.manual(manual).boxed().await,
        }
    }
}

/// One event with the configuration that applies to it.
#[derive(Clone, Copy)]
pub(crate) struct Invocation<'a> {
    poller: &'a Poller,
    round: Round<'a>,
}

impl<'a> Invocation<'a> {
    async fn schedule(self) -> anyhow::Result<PollerAnswer> {
        let all = self.read(self.round.site.catalogs.clone()).await;
        let now = SystemTime::now();
        let (due, not_due) = all.iter().partition(|candidate| candidate.is_due(now));
        let queue = self.round.environment.queue.as_deref();
        let answer = self.poll(due, not_due, queue).await;
        metrics::write(self.round.environment, &all, &answer.reports);
        if answer.is_hopeless() {
            // An error, so that the function's own alarms notice it. One failing source among many
            // is not: its status and metrics have it, and the others are fine.
            for report in &answer.reports {
                if let Some(error) = report.error_text() {
                    anyhow::bail!(
                        "none of {} catalogs could be polled, such as {}: {error}",
                        answer.reports.len(),
                        report.catalog
                    );
                }
            }
        }
        Ok(answer)
    }

    async fn manual(self, manual: ManualEvent) -> anyhow::Result<Value> {
        match manual.action {
            ManualAction::Poll => Ok(json!(self.poll_now(manual).await?)),
            ManualAction::Rollback => Ok(json!(self.rollback(manual).await)),
            ManualAction::Check => Ok(json!(self.check(self.chosen(&manual.catalogs)?).await?)),
            ManualAction::Gc => Ok(json!(self.collect(manual.dry_run).await?)),
        }
    }

    async fn poll_now(self, manual: ManualEvent) -> anyhow::Result<PollerAnswer> {
        let chosen = self.read(self.chosen(&manual.catalogs)?).await;
        let answer = if manual.force {
            let pulled = self
                .round
                .pull(chosen.iter().collect(), PullMode::Forced)
                .await;
            self.answer(pulled.reports, names(&pulled.left)).await
        } else {
            // Not through the queue: an operator waits for the result.
            self.poll(chosen.iter().collect(), Vec::new(), None).await
        };
        metrics::write(self.round.environment, &chosen, &answer.reports);
        Ok(answer)
    }

    /// Publishes the catalogs of a batch. Returns the messages that the queue has to deliver again.
    async fn queue(self, records: &[QueueRecord]) -> SqsBatchResponse {
        // A set: two messages of one batch may name the same catalog.
        let named: BTreeSet<&CatalogName> = records
            .iter()
            .filter_map(|record| record.catalog.as_ref().ok())
            .collect();
        let known = self
            .round
            .site
            .catalogs
            .iter()
            .filter(|catalog| named.contains(&catalog.name));
        let candidates = self.read(known.cloned().collect()).await;
        let result = self
            .round
            .pull(candidates.iter().collect(), PullMode::IfChanged)
            .await;
        let mut unfinished: BTreeSet<&CatalogName> = BTreeSet::new();
        unfinished.extend(result.left.iter().map(|candidate| candidate.name()));
        for report in &result.reports {
            // A catalog that is refused or failed for good is not delivered again: the same image
            // would end the same way, and `status.json` has the reason.
            if report.outcome == Outcome::Failed && !report.failed_for_good() {
                unfinished.insert(&report.catalog);
            }
        }
        self.finish(&result.reports).await;
        metrics::write(self.round.environment, &candidates, &result.reports);
        let mut answer = SqsBatchResponse::default();
        for record in records {
            if self.is_unfinished(record, &unfinished) {
                answer.add_failure(record.id.clone());
            }
        }
        answer
    }

    fn is_unfinished(self, record: &QueueRecord, unfinished: &BTreeSet<&CatalogName>) -> bool {
        match &record.catalog {
            Ok(catalog) => {
                let mut catalogs = self.round.site.catalogs.iter();
                if !catalogs.any(|known| known.name == *catalog) {
                    // Counts as done, since another delivery would not find it either.
                    tracing::warn!(%catalog, message = record.id, "dropped the message of a catalog that is not configured");
                }
                unfinished.contains(catalog)
            }
            // Fails until the queue moves it to its dead-letter queue, where an operator can see
            // it.
            Err(error) => {
                tracing::error!(
                    message = record.id,
                    error,
                    "cannot read the body of a queue message"
                );
                true
            }
        }
    }

    /// Checks the catalogs, and then either pulls the changed ones or sends them to the queue.
    /// Compositions come after their inputs; those that are not due are polled too if an input was
    /// published.
    async fn poll(
        self,
        due: Vec<&Candidate>,
        mut not_due: Vec<&Candidate>,
        queue: Option<&str>,
    ) -> PollerAnswer {
        let order = PollOrder::new(&self.round.site.catalogs);
        let mut levels: BTreeMap<usize, Vec<&Candidate>> = BTreeMap::new();
        for candidate in due {
            levels
                .entry(order.level(candidate.name()))
                .or_default()
                .push(candidate);
        }
        let mut reports = Vec::new();
        let mut left = Vec::new();
        let mut messages = Vec::new();
        while let Some((_, candidates)) = levels.pop_first() {
            let checked = self.round.check_for_updates(candidates).await;
            reports.extend(checked.reports);
            left.extend(names(&checked.left));
            if queue.is_some() {
                for (candidate, digest) in checked.changed {
                    messages.push(CatalogMessage {
                        catalog: candidate.name().clone(),
                        digest,
                    });
                }
                continue;
            }
            let changed = checked.changed.iter().map(|(candidate, _)| *candidate);
            let pulled = self
                .round
                .pull(changed.collect(), PullMode::IfChanged)
                .await;
            for follower in take_followers(&mut not_due, &order, &pulled.reports) {
                levels
                    .entry(order.level(follower.name()))
                    .or_default()
                    .push(follower);
            }
            reports.extend(pulled.reports);
            left.extend(names(&pulled.left));
        }
        let mut queued = Vec::new();
        if let Some(queue) = queue {
            let refused = queue::send(&*self.poller.services, queue, &messages).await;
            for CatalogMessage { catalog, .. } in messages {
                if !refused.contains(&catalog) {
                    queued.push(catalog);
                }
            }
            left.extend(refused);
        }
        PollerAnswer {
            queued,
            not_due: names(&not_due),
            ..self.answer(reports, left).await
        }
    }

    async fn answer(self, mut reports: Vec<Report>, left: Vec<CatalogName>) -> PollerAnswer {
        self.finish(&reports).await;
        // Polls end in any order; a sorted answer can be compared with an earlier one.
        reports.sort_by(|a, b| a.catalog.cmp(&b.catalog));
        if !left.is_empty() {
            tracing::warn!(catalogs = left.len(), "left catalogs for the next event");
        }
        let mut counts = BTreeMap::new();
        for report in &reports {
            *counts.entry(report.outcome.as_str()).or_default() += 1;
        }
        PollerAnswer {
            reports,
            counts,
            left,
            ..PollerAnswer::default()
        }
    }

    /// Sends notifications. Sends each composition of a published catalog to the queue, if there is
    /// one: without a queue, and if the queue refuses, the interval of the composition applies.
    /// Expires the pull secrets if a registry refused a login.
    async fn finish(self, reports: &[Report]) {
        self.round.notify(reports).await;
        if let Some(queue) = &self.round.environment.queue {
            let messages = queue::followers(&PollOrder::new(&self.round.site.catalogs), reports);
            queue::send(&*self.poller.services, queue, &messages).await;
        }
        let mut errors = reports.iter().filter_map(|report| report.error.as_ref());
        if errors.any(publish::PollError::is_refused_login) {
            self.poller.secrets.expire();
        }
    }

    async fn rollback(self, manual: ManualEvent) -> PollerAnswer {
        let options = RollbackOptions {
            target: manual.content_hash,
            unverified: manual.unverified,
            signer: self.round.site.signer.clone(),
            ..RollbackOptions::default()
        };
        let mut reports = Vec::new();
        // Also for a catalog that is not configured: what is stored can be published again without
        // its source.
        for catalog in &manual.catalogs {
            reports.push(upkeep::rollback(&self.poller.store, catalog, &options).await);
        }
        self.answer(reports, Vec::new()).await
    }

    async fn check(self, catalogs: Vec<Catalog>) -> anyhow::Result<PollerAnswer> {
        let mut answer = PollerAnswer::default();
        for Catalog { name: catalog, .. } in catalogs {
            let Some(time) = self.round.deadline.time_for(CHECK_MIN) else {
                answer.left.push(catalog);
                continue;
            };
            let span = tracing::error_span!("verify", %catalog);
            let verifying = upkeep::verify(&*self.poller.store, &catalog).instrument(span.clone());
            // A check that is cut off is no result: it may have missed the damaged objects.
            let Ok(found) = timeout(time, verifying).await else {
                answer.left.push(catalog);
                continue;
            };
            let found = found?;
            if !found.findings.is_empty() {
                let _entered = span.enter();
                tracing::error!(
                    findings = found.findings.len(),
                    "found damaged objects in the store"
                );
            }
            answer.checks.push(found);
        }
        Ok(answer)
    }

    /// Takes the step that is due. Stops deleting early enough to return its report.
    async fn collect(self, dry_run: bool) -> anyhow::Result<GcReport> {
        let left = self.round.deadline.left();
        let options = GcOptions {
            retention: self.round.site.retention.clone(),
            time: Some(working_time(left)),
            dry_run,
            ..GcOptions::default()
        };
        // The limit of the deletes does not bound a single request: a store that hangs would use up
        // the invocation.
        let collected = match timeout(left, upkeep::gc(&*self.poller.store, &options)).await {
            Ok(collected) => collected.map_err(anyhow::Error::from),
            Err(elapsed) => {
                Err(elapsed).context("the store did not answer until the time was over")
            }
        };
        // A dry run changes nothing, so its figures must not reach the alarms.
        if !dry_run {
            metrics::write_collection(self.round.environment, &collected);
        }
        collected
    }

    /// Returns the configured catalogs with these names, or all of them if there are no names.
    fn chosen(self, names: &[CatalogName]) -> anyhow::Result<Vec<Catalog>> {
        let catalogs = &self.round.site.catalogs;
        if names.is_empty() {
            return Ok(catalogs.clone());
        }
        let known: BTreeSet<&CatalogName> = catalogs.iter().map(|catalog| &catalog.name).collect();
        let mut unknown = Vec::new();
        for name in names {
            if !known.contains(name) {
                unknown.push(name.as_str());
            }
        }
        anyhow::ensure!(unknown.is_empty(), "not configured: {}", unknown.join(", "));
        let chosen = catalogs
            .iter()
            .filter(|catalog| names.contains(&catalog.name));
        Ok(chosen.cloned().collect())
    }

    /// Reads the status of each catalog. The result is in no order.
    async fn read(self, catalogs: Vec<Catalog>) -> Vec<Candidate> {
        let store = &*self.poller.store;
        let reads = catalogs
            .into_iter()
            .map(|catalog| Candidate::read(store, &self.round.site.mirror, catalog));
        // Each round sorts them.
        side_by_side(reads.collect(), self.round.environment.resolves).await
    }
}

fn names(candidates: &[&Candidate]) -> Vec<CatalogName> {
    candidates
        .iter()
        .map(|candidate| candidate.name().clone())
        .collect()
}
