//! One invocation.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_lambda_events::sqs::SqsBatchResponse;
use futures_util::{FutureExt, StreamExt, stream};
use keep::{GcReport, GcSettings};
use layout::{CatalogName, Outcome};
use poll::{Catalog, Report, Target, Terms};
use serde_json::{Value, json};
use store::Store;
use tokio::time::timeout;

use crate::{
    Action, Answer, Check, Deadline, Environment, Event, Manual, Outside, Record,
    collect::collect,
    configuration::{Configuration, Ground, Site},
    metrics::{self, Measured},
    queue,
    round::Round,
    secrets::Secrets,
    waiting::Waiting,
};

/// Reading what a catalog names takes at least this long, wherever it is.
const CHECK: Duration = Duration::from_secs(1);

/// The function, between its events.
pub struct Poller {
    environment: Arc<Environment>,
    store: Arc<dyn Store>,
    outside: Arc<dyn Outside>,
    configuration: Configuration,
    secrets: Secrets,
}

impl Poller {
    /// A poller that publishes to `store`. Nothing is asked of anybody before the first event.
    pub fn new(environment: Arc<Environment>, store: Arc<dyn Store>, outside: Arc<dyn Outside>) -> Self {
        Self {
            secrets: Secrets::new(environment.pull_secrets.clone()),
            configuration: Configuration::default(),
            environment,
            store,
            outside,
        }
    }

    /// Does what an event asks for, and returns the answer to it.
    ///
    /// # Errors
    /// If the event, the configuration or the pull secrets cannot be used, or if a schedule event found nothing that
    /// could be polled. A catalog that fails is no error of the event but is told in the answer.
    pub async fn handle(&self, event: Value, deadline: Deadline) -> anyhow::Result<Value> {
        let event = Event::from_value(event)?;
        let ground = Ground {
            environment: &self.environment,
            store: &self.store,
            outside: &*self.outside,
            logins: self.secrets.logins(),
        };
        let (site, secrets) = tokio::join!(self.configuration.site(ground), self.secrets.refresh(&*self.outside));
        let site = site?;
        secrets?;
        let invocation = Invocation {
            poller: self,
            site: &site,
            deadline,
        };
        match event {
            Event::Schedule => invocation.schedule().boxed().await.map(|answer| json!(answer)),
            Event::Queue(records) => Ok(json!(invocation.queue(&records).boxed().await)),
            Event::Manual(manual) => invocation.manual(manual).boxed().await,
        }
    }
}

#[derive(Clone, Copy)]
struct Invocation<'a> {
    poller: &'a Poller,
    site: &'a Site,
    deadline: Deadline,
}

impl<'a> Invocation<'a> {
    async fn schedule(self) -> anyhow::Result<Answer> {
        let all = self.read(self.site.catalogs.clone()).await;
        let now = SystemTime::now();
        let (due, not_due) = all.iter().partition(|waiting| waiting.is_due(now));
        let answer = self
            .poll(due, Some(&not_due), self.poller.environment.queue.is_some())
            .await;
        self.measure(&all, &answer.reports);
        match answer
            .reports
            .iter()
            .find_map(|report| Some((&report.catalog, report.error_text()?)))
        {
            Some((catalog, error)) if answer.is_hopeless() => {
                anyhow::bail!(
                    "none of {} catalogs could be polled, such as {catalog}: {error}",
                    answer.reports.len()
                )
            }
            _ => Ok(answer),
        }
    }

    async fn manual(self, manual: Manual) -> anyhow::Result<Value> {
        match manual.action {
            Action::Poll => Ok(json!(self.poll_now(manual).await?)),
            Action::Rollback => Ok(json!(self.rollback(manual).await)),
            Action::Check => Ok(json!(self.check(self.chosen(&manual.catalogs)?).await?)),
            Action::Gc => Ok(json!(self.collect(manual.dry_run).await?)),
        }
    }

    async fn poll_now(self, manual: Manual) -> anyhow::Result<Answer> {
        let chosen = self.read(self.chosen(&manual.catalogs)?).await;
        let answer = if manual.force {
            self.force(chosen.iter().collect()).await
        } else {
            self.poll(chosen.iter().collect(), None, false).await
        };
        self.measure(&chosen, &answer.reports);
        Ok(answer)
    }

    /// What failed, and what there was no time for, is handed out again by the queue. What was refused is not: pulled
    /// again it would be refused again, and `status.json` says why.
    async fn queue(self, records: &[Record]) -> SqsBatchResponse {
        let named: BTreeSet<&CatalogName> = records
            .iter()
            .filter_map(|record| record.catalog.as_ref().ok())
            .collect();
        let known = self
            .site
            .catalogs
            .iter()
            .filter(|catalog| named.contains(&catalog.name));
        let waiting = self.read(known.cloned().collect()).await;
        let round = self.round();
        let done = round.pull(waiting.iter().collect(), false).await;
        let failed = done.reports.iter().filter(|report| report.outcome == Outcome::Failed);
        let left = done.left.iter().map(|waiting| waiting.name());
        let unfinished: BTreeSet<&CatalogName> = failed.map(|report| &report.catalog).chain(left).collect();
        self.finish(&done.reports).await;
        self.measure(&waiting, &done.reports);
        let mut answer = SqsBatchResponse::default();
        for record in records.iter().filter(|record| self.is_unfinished(record, &unfinished)) {
            answer.add_failure(record.id.clone());
        }
        answer
    }

    fn is_unfinished(self, record: &Record, unfinished: &BTreeSet<&CatalogName>) -> bool {
        match &record.catalog {
            Ok(catalog) => {
                if !self.site.catalogs.iter().any(|known| known.name == *catalog) {
                    tracing::warn!(%catalog, message = record.id, "a catalog that is not configured any more is dropped");
                }
                unfinished.contains(catalog)
            }
            Err(error) => {
                tracing::error!(message = record.id, error, "a message names no catalog");
                true
            }
        }
    }

    async fn poll(self, due: Vec<&Waiting>, not_due: Option<&Vec<&Waiting>>, to_queue: bool) -> Answer {
        let round = self.round();
        let looked = round.look(due).await;
        let mut reports = Vec::new();
        let mut left = names(&looked.left);
        let mut queued = Vec::new();
        if to_queue {
            let sent = queue::send(&*self.poller.outside, looked.messages()).await;
            queued = sent.queued;
            left.extend(sent.left);
        } else {
            let changed = looked.changed.iter().map(|(waiting, _)| *waiting).collect();
            let pulled = round.pull(changed, false).await;
            reports.extend(pulled.reports);
            left.extend(names(&pulled.left));
        }
        reports.extend(looked.reports);
        self.answer(reports, left, queued, not_due).await
    }

    async fn force(self, chosen: Vec<&Waiting>) -> Answer {
        let pulled = self.round().pull(chosen, true).await;
        let left = names(&pulled.left);
        self.answer(pulled.reports, left, Vec::new(), None).await
    }

    async fn answer(
        self,
        mut reports: Vec<Report>,
        left: Vec<CatalogName>,
        queued: Vec<CatalogName>,
        not_due: Option<&Vec<&Waiting>>,
    ) -> Answer {
        self.finish(&reports).await;
        reports.sort_by(|a, b| a.catalog.cmp(&b.catalog));
        if !left.is_empty() {
            tracing::warn!(catalogs = left.len(), "there was no time for all catalogs");
        }
        Answer {
            left,
            queued,
            not_due: not_due.map(|waiting| names(waiting)).unwrap_or_default(),
            ..Answer::of(reports)
        }
    }

    async fn finish(self, reports: &[Report]) {
        self.round().notify(reports).await;
        let is_refused = |report: &Report| report.error.as_ref().is_some_and(poll::PollError::is_refused_login);
        if reports.iter().any(is_refused) {
            self.poller.secrets.expire();
        }
    }

    async fn rollback(self, manual: Manual) -> Answer {
        let target = Target::Hash(manual.content_hash.unwrap_or_default());
        let (store, signer) = (&*self.poller.store, self.site.signer.as_ref());
        let terms = Terms {
            unverified: manual.unverified,
            ..Terms::default()
        };
        let mut reports = Vec::new();
        for catalog in &manual.catalogs {
            reports.push(poll::rollback_on(store, catalog, &target, signer, &terms).await);
        }
        self.round().notify(&reports).await;
        Answer::of(reports)
    }

    async fn check(self, catalogs: Vec<Catalog>) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        for Catalog { name: catalog, .. } in catalogs {
            let Some(time) = self.deadline.time_for(CHECK) else {
                answer.left.push(catalog);
                continue;
            };
            match timeout(time, keep::verify(&*self.poller.store, &catalog)).await {
                Ok(found) => answer.checks.push(Check { found: found?, catalog }),
                Err(_) => answer.left.push(catalog),
            }
        }
        for check in answer.checks.iter().filter(|check| !check.found.findings.is_empty()) {
            tracing::error!(catalog = %check.catalog, findings = check.found.findings.len(), "the store is damaged");
        }
        Ok(answer)
    }

    async fn collect(self, dry_run: bool) -> anyhow::Result<GcReport> {
        let settings = GcSettings {
            dry_run,
            ..self.site.retention.clone()
        };
        let collected = collect(&*self.poller.store, &settings, self.deadline).await;
        // What a person asks for is answered, and is nobody's alarm.
        if !dry_run {
            metrics::write_collection(self.poller.environment.metrics, collected.as_ref().ok());
        }
        collected
    }

    fn chosen(self, names: &[CatalogName]) -> anyhow::Result<Vec<Catalog>> {
        let known: BTreeSet<&CatalogName> = self.site.catalogs.iter().map(|catalog| &catalog.name).collect();
        let unknown: Vec<&str> = names
            .iter()
            .filter(|name| !known.contains(name))
            .map(CatalogName::as_str)
            .collect();
        anyhow::ensure!(unknown.is_empty(), "not configured: {}", unknown.join(", "));
        let wanted = |catalog: &&Catalog| names.is_empty() || names.contains(&catalog.name);
        Ok(self.site.catalogs.iter().filter(wanted).cloned().collect())
    }

    /// With everything that is known of them.
    async fn read(self, catalogs: Vec<Catalog>) -> Vec<Waiting> {
        let store = &*self.poller.store;
        let reads: Vec<_> = catalogs
            .into_iter()
            .map(|catalog| Waiting::read(store, catalog))
            .collect();
        stream::iter(reads)
            .buffered(self.poller.environment.resolves)
            .collect()
            .await
    }

    fn round(self) -> Round<'a> {
        let environment = &self.poller.environment;
        Round {
            site: self.site,
            deadline: self.deadline,
            looks: environment.resolves,
            pulls: environment.side_by_side,
        }
    }

    fn measure(self, waiting: &[Waiting], reports: &[Report]) {
        let now = SystemTime::now();
        let measured = waiting.iter().map(|waiting| {
            let report = reports.iter().find(|report| report.catalog == *waiting.name());
            let outcome = report.map(|report| report.outcome);
            let is_success = outcome.is_some_and(Outcome::is_success);
            Measured {
                catalog: waiting.name(),
                outcome,
                success_age: if is_success {
                    Some(Duration::ZERO)
                } else {
                    waiting.success_age(now)
                },
            }
        });
        metrics::write(self.poller.environment.metrics, &measured.collect::<Vec<_>>());
    }
}

fn names(waiting: &[&Waiting]) -> Vec<CatalogName> {
    waiting.iter().map(|waiting| waiting.name().clone()).collect()
}
