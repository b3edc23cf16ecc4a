use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{FutureExt, StreamExt, future::join_all, stream};
use layout::{CatalogName, Mark, Outcome};
use poll::Report;
use store::{ReadError, Store};
use telemetry::chain;
use tokio::sync::Semaphore;

use crate::{
    Event, Metrics, Receiver, SendError, Settings, marks,
    metrics::Sent,
    outbox::{Adopt, Outbox},
    waits::Waits,
};

/// Catalogs whose marks are read at a time.
const ADOPTIONS: usize = 16;

/// Tells receivers what was published, each until it has acknowledged it.
#[derive(Debug)]
pub struct Notifier {
    store: Arc<dyn Store>,
    lines: Vec<Line>,
    settings: Settings,
    metrics: Metrics,
    lanes: Mutex<HashMap<CatalogName, Arc<Lane>>>,
}

/// A receiver, and how many events may be on their way to it: one that hangs must not keep others waiting.
#[derive(Debug)]
struct Line {
    receiver: Box<dyn Receiver>,
    permits: Semaphore,
}

/// What is known of one catalog.
#[derive(Debug, Default)]
struct Lane {
    /// What all receivers have been told: while nothing else is published there is nothing to do.
    told: Mutex<Option<Mark>>,
    /// How often somebody wanted the outbox to be looked at.
    asked: AtomicU64,
    /// Held by the one that looks.
    busy: tokio::sync::Mutex<()>,
}

/// What a report says that matters here.
#[derive(Debug)]
struct Turned {
    catalog: CatalogName,
    adopt: Adopt,
}

impl Notifier {
    /// A notifier for a store and those who want to be told.
    pub fn new(store: Arc<dyn Store>, receivers: Vec<Box<dyn Receiver>>, settings: Settings) -> Self {
        let line = |receiver| Line {
            receiver,
            permits: Semaphore::new(settings.side_by_side.max(1)),
        };
        Self {
            store,
            lines: receivers.into_iter().map(line).collect(),
            settings,
            metrics: Metrics::default(),
            lanes: Mutex::default(),
        }
    }

    /// The same, counting with these metrics.
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Notes where receivers start that have never been told anything. To be called before the first turns: from then
    /// on no publication is missed, even if the program dies right after its commit.
    pub async fn adopt(&self, catalogs: &[CatalogName]) {
        // Boxed, as the compiler cannot tell that a stream of borrowing futures may be sent to another thread.
        let adoptions: Vec<_> = catalogs.iter().map(|catalog| self.adopt_one(catalog).boxed()).collect();
        stream::iter(adoptions)
            .buffer_unordered(ADOPTIONS)
            .collect::<()>()
            .await;
    }

    /// Sends what is still to be told of the catalog that a turn was about, whatever came of the turn, and returns when
    /// every receiver has acknowledged it or the time is over. Nothing is asked of the store if this notifier knows
    /// that all have been told. Failures are logged and counted; what was not acknowledged is sent again the next time.
    ///
    /// Returns at once if another call is at work on the same catalog; that one then looks once more.
    pub async fn after(&self, report: &Report) {
        if let Some(turned) = self.wanted(report) {
            self.run(turned).await;
        }
    }

    /// As [`Notifier::after`] without waiting. Must be called inside a runtime.
    pub fn spawn_after(self: &Arc<Self>, report: &Report) {
        if let Some(turned) = self.wanted(report) {
            let this = self.clone();
            tokio::spawn(async move { this.run(turned).await });
        }
    }

    /// Whether there may be something to do.
    fn wanted(&self, report: &Report) -> Option<Turned> {
        let published = Mark {
            serial: report.serial?,
            content_hash: report.content_hash?,
        };
        let listened = self.lines_for(&report.catalog).next().is_some();
        (listened && self.lane(&report.catalog).told() != Some(published)).then(|| Turned {
            catalog: report.catalog.clone(),
            adopt: match report.outcome {
                Outcome::Published => Adopt::Before(published.serial),
                Outcome::Unchanged | Outcome::Retagged | Outcome::Refused | Outcome::Failed => Adopt::Now,
            },
        })
    }

    async fn run(&self, Turned { catalog, adopt }: Turned) {
        let lane = self.lane(&catalog);
        lane.asked.fetch_add(1, Ordering::SeqCst);
        // Who asks while another one is at work is seen by it, here, after it has let go.
        while let Ok(busy) = lane.busy.try_lock() {
            let asked = lane.asked.load(Ordering::SeqCst);
            let told = self.deliver(&catalog, adopt).await.unwrap_or_else(|error| {
                tracing::warn!(%catalog, error = chain(&error), "cannot tell who has been notified");
                None
            });
            lane.tell(told);
            drop(busy);
            if lane.asked.load(Ordering::SeqCst) == asked {
                return;
            }
        }
    }

    /// Returns what all receivers have been told now; none if some have not.
    async fn deliver(&self, catalog: &CatalogName, adopt: Adopt) -> Result<Option<Mark>, ReadError> {
        let mut outbox = Outbox::open(&*self.store, catalog).await?;
        let Some(published) = outbox.published() else {
            return Ok(None);
        };
        outbox.adopt(&self.names_for(catalog), adopt).await?;
        let due = self
            .lines_for(catalog)
            .map(|line| (line, outbox.mark(line.receiver.name())));
        let due: Vec<_> = due.filter(|(_, mark)| *mark != Some(published)).collect();
        let from: Vec<_> = due.iter().map(|(_, mark)| *mark).collect();
        let events = outbox.events(&self.settings.source, &from).await?;
        let sent: Vec<_> = due.iter().map(|(line, mark)| self.tell(line, &events[mark])).collect();
        let all_told = join_all(sent).await.into_iter().all(|told| told);
        Ok(all_told.then_some(published))
    }

    /// Brings one receiver up to date; whether it is so now and that is remembered.
    async fn tell(&self, line: &Line, event: &Event) -> bool {
        let sent = self.send(line, event).await;
        if !sent.is_settled() {
            return false;
        }
        let data = &event.data;
        let name = line.receiver.name();
        let marked = marks::advance(&*self.store, &data.catalog, name, data.previous, data.published).await;
        if let Err(error) = &marked {
            tracing::warn!(
                catalog = %data.catalog,
                receiver = name,
                error = chain(error),
                "cannot remember who has been notified; the event will be sent again"
            );
        }
        marked.is_ok()
    }

    /// Counted before it is logged: who waits for the line finds the count.
    async fn send(&self, line: &Line, event: &Event) -> Sent {
        let result = self.attempts(line, event).await;
        let sent = Sent::of(&result);
        let receiver = line.receiver.name();
        self.metrics.count(receiver, sent);
        let (catalog, id) = (&event.data.catalog, &event.id);
        match result {
            Ok(()) => tracing::info!(%catalog, receiver, id, "notified"),
            Err(error @ SendError::Permanent(_)) => {
                tracing::error!(%catalog, receiver, id, error = chain(&error), "the event is given up");
            }
            Err(error @ (SendError::Temporary { .. } | SendError::Refused(_))) => {
                let error = chain(&error);
                tracing::warn!(%catalog, receiver, id, error, "not notified; the event is sent again after the next poll");
            }
        }
        sent
    }

    async fn attempts(&self, line: &Line, event: &Event) -> Result<(), SendError> {
        let mut waits = Waits::new(&self.settings);
        loop {
            let attempt = tokio::time::timeout_at(waits.limit(), line.send(event));
            let sent = attempt.await.unwrap_or_else(|late| Err(SendError::temporary(late)));
            match sent {
                Ok(()) => return Ok(()),
                Err(error) => tokio::time::sleep(waits.after(error)?).await,
            }
        }
    }

    async fn adopt_one(&self, catalog: &CatalogName) {
        let names = self.names_for(catalog);
        if names.is_empty() {
            return;
        }
        let adopted = async {
            let mut outbox = Outbox::open(&*self.store, catalog).await?;
            outbox.adopt(&names, Adopt::Now).await
        };
        let adopted: Result<(), ReadError> = adopted.await;
        if let Err(error) = adopted {
            tracing::warn!(%catalog, error = chain(&error), "cannot remember where receivers start");
        }
    }

    fn names_for(&self, catalog: &CatalogName) -> Vec<&str> {
        self.lines_for(catalog).map(|line| line.receiver.name()).collect()
    }

    fn lines_for(&self, catalog: &CatalogName) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.receiver.wants(catalog))
    }

    fn lane(&self, catalog: &CatalogName) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.entry(catalog.clone()).or_default().clone()
    }
}

impl Line {
    async fn send(&self, event: &Event) -> Result<(), SendError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        self.receiver.send(event).await
    }
}

impl Lane {
    fn told(&self) -> Option<Mark> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, told: Option<Mark>) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }
}
