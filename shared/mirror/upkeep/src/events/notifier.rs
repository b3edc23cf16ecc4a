//! The sender of events: one queue for each catalog, several receivers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fetch::{RetrySchedule, RetryWaits};
use futures_util::future::{join, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use model::text::Chain;
use model::{CatalogName, Current, Key, Outcome, PublicationId};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use publish::Report;
use store::{ReadError, Store, StoreExt};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::outbox::{AFTER_ALL, Outbox, advance};
use crate::{Event, HeldContent, Receiver, SendError};

/// Maximum number of concurrent events to one receiver.
const SIDE_BY_SIDE: usize = 4;

/// Number of catalogs whose cursors are read at a time.
const CONCURRENT_READS: usize = 16;

/// Maximum time for one attempt: the minimum that Standard Webhooks recommends.
const ATTEMPT_MAX: Duration = Duration::from_secs(15);

/// Source of events, the time for sending them, and their counters.
#[derive(Debug, Clone)]
pub struct NotifierSettings {
    /// The `source` of every event, a URI reference of this mirror. Default: `/catalogs`.
    pub source: String,
    /// Maximum time for all attempts before the next poll. Default: 30 s, because the command waits
    /// for it.
    pub total: Duration,
    /// Counters of the events. Default: some that are on no page.
    pub metrics: NotifyMetrics,
}

impl Default for NotifierSettings {
    fn default() -> Self {
        Self {
            source: "/catalogs".to_owned(),
            total: Duration::from_secs(30),
            metrics: NotifyMetrics::default(),
        }
    }
}

/// Sends events of publications to receivers until they acknowledge them.
#[derive(Debug)]
pub struct Notifier {
    store: Arc<dyn Store>,
    receivers: Vec<LimitedReceiver>,
    settings: NotifierSettings,
    queues: Mutex<HashMap<CatalogName, Arc<CatalogQueue>>>,
}

/// A receiver with a limit on concurrent events, so that one that hangs does not hold all tasks.
#[derive(Debug)]
struct LimitedReceiver {
    receiver: Box<dyn Receiver>,
    permits: Semaphore,
}

/// State of the deliveries of one catalog.
#[derive(Debug, Default)]
struct CatalogQueue {
    /// Publication that all receivers have acknowledged. While it is the current one, nothing is
    /// left to send.
    last_delivered: Mutex<Option<PublicationId>>,
    /// Number of requests to send the outstanding events.
    requests: AtomicU64,
    /// Held by the task that sends the outstanding events.
    busy: tokio::sync::Mutex<()>,
}

impl Notifier {
    /// Creates a notifier for the catalogs in `store`.
    pub fn new(
        store: Arc<dyn Store>,
        receivers: Vec<Box<dyn Receiver>>,
        settings: NotifierSettings,
    ) -> Self {
        let limited = receivers.into_iter().map(|receiver| LimitedReceiver {
            receiver,
            permits: Semaphore::new(SIDE_BY_SIDE),
        });
        Self {
            store,
            receivers: limited.collect(),
            settings,
            queues: Mutex::default(),
        }
    }

    /// Stores the first cursors of new receivers. Call it before the first polls: from then on no
    /// publication is missed, even if the program dies right after its commit. Failures are logged.
    pub async fn register_receivers(&self, catalogs: &[CatalogName]) {
        // Boxed, because the compiler cannot tell that a stream of borrowing futures is `Send`.
        stream::iter(catalogs)
            .for_each_concurrent(CONCURRENT_READS, |catalog| {
                self.add_receivers(catalog).boxed()
            })
            .await;
    }

    /// Sends the outstanding events of the catalog in `report`, whatever its outcome. Returns when
    /// every receiver has acknowledged them or the time is over. Reads nothing from the store if
    /// all receivers are known to be up to date. Failures are logged and counted; the events are
    /// sent again after the next poll.
    ///
    /// Returns at once if another call is working on the same catalog. That call then reads the two
    /// documents once more.
    pub async fn after(&self, report: &Report) {
        let catalog = &report.catalog;
        let telling = async {
            if let Some(held) = HeldContent::of(report) {
                self.tell_held(catalog, held).await;
            }
        };
        let delivering = async {
            if let Some(start) = self.start(report) {
                self.run(catalog, start).await;
            }
        };
        join(telling, delivering).await;
    }

    /// Does the work of [`Notifier::after`] in a task of its own. Must be called inside a runtime.
    pub fn spawn_after(self: &Arc<Self>, report: &Report) {
        if let Some(held) = HeldContent::of(report) {
            let this = self.clone();
            let catalog = report.catalog.clone();
            tokio::spawn(async move { this.tell_held(&catalog, held).await });
        }
        if let Some(start) = self.start(report) {
            let this = self.clone();
            let catalog = report.catalog.clone();
            tokio::spawn(async move { this.run(&catalog, start).await });
        }
    }

    /// Returns the serial before which new receivers start; `None` if all receivers are up to date.
    fn start(&self, report: &Report) -> Option<u64> {
        let serial = report.serial?;
        let published = PublicationId {
            serial,
            content_hash: report.content_hash?,
        };
        self.receivers_of(&report.catalog).next()?;
        // An unchanged poll, the usual one, then costs no read of the store.
        let queue = self.queue(&report.catalog);
        if *queue.last_delivered.lock() == Some(published) {
            return None;
        }
        if report.outcome == Outcome::Published {
            Some(serial)
        } else {
            Some(AFTER_ALL)
        }
    }

    /// Tells all receivers once that new content is held back. An event that does not arrive is not
    /// sent again after the next poll: `status.json` and the metrics say the same for as long as the
    /// content is held.
    #[tracing::instrument(name = "notify", skip_all, fields(%catalog))]
    async fn tell_held(&self, catalog: &CatalogName, held: HeldContent) {
        let key = Key::Current(catalog.clone());
        let read = self.store.read_document::<Current>(&key).await;
        // Content is held only over a published state.
        let Ok(Some((current, _))) = read else {
            tracing::warn!("cannot read the published state for an event about held content");
            return;
        };
        let event = Event::held(&self.settings.source, catalog, &current, held);
        let receivers: Vec<&LimitedReceiver> = self.receivers_of(catalog).collect();
        let sends = receivers.iter().map(|limited| self.tell(limited, &event));
        join_all(sends).await;
    }

    /// Sends an event that has no cursor to one receiver.
    async fn tell(&self, limited: &LimitedReceiver, event: &Event) {
        if let Err(error) = self.send_event(limited, event).await {
            let receiver = limited.receiver.name();
            let id = &event.id;
            tracing::error!(receiver, id, error = %Chain(&error), "dropped an event about held content");
        }
    }

    /// Sends the outstanding events of a catalog.
    #[tracing::instrument(name = "notify", skip_all, fields(%catalog))]
    async fn run(&self, catalog: &CatalogName, start: u64) {
        let queue = self.queue(catalog);
        queue.requests.fetch_add(1, Ordering::SeqCst);
        // A request that arrives while another task is busy is seen by that task, after it has let
        // go of the lock.
        while let Ok(busy) = queue.busy.try_lock() {
            let requests = queue.requests.load(Ordering::SeqCst);
            let delivered = match self.deliver(catalog, start).await {
                Ok(delivered) => delivered,
                Err(error) => {
                    let error = Chain(&error);
                    tracing::warn!(%error, "cannot read the cursors of the receivers");
                    None
                }
            };
            *queue.last_delivered.lock() = delivered;
            drop(busy);
            if queue.requests.load(Ordering::SeqCst) == requests {
                return;
            }
        }
    }

    /// Sends all outstanding events of a catalog. Returns the publication that all receivers have
    /// acknowledged, or `None` if some have not.
    async fn deliver(
        &self,
        catalog: &CatalogName,
        start: u64,
    ) -> Result<Option<PublicationId>, ReadError> {
        let mut outbox = Outbox::open(&*self.store, catalog).await?;
        let Some(current) = outbox.current.clone() else {
            return Ok(None);
        };
        let published = PublicationId::from(&current);
        // Before the first send: a receiver that is down now, and a process that dies, must find
        // the cursor later.
        outbox
            .add_receivers(&self.names_for(catalog), start)
            .await?;
        let mut due = Vec::new();
        for limited in self.receivers_of(catalog) {
            let cursor = outbox.cursors.get(limited.receiver.name());
            let cursor = cursor.copied().flatten();
            if cursor != Some(published) {
                let packages = outbox.changes(cursor, &current).await?;
                let event = Event::new(&self.settings.source, catalog, cursor, &current, packages);
                due.push((limited, event));
            }
        }
        let sends = due
            .iter()
            .map(|(limited, event)| self.bring_up_to_date(limited, event));
        if join_all(sends).await.contains(&false) {
            return Ok(None);
        }
        Ok(Some(published))
    }

    /// Sends an event to one receiver and moves its cursor past one that was delivered or is
    /// dropped. Returns true if the cursor was moved.
    async fn bring_up_to_date(&self, limited: &LimitedReceiver, event: &Event) -> bool {
        let receiver = limited.receiver.name();
        let id = &event.id;
        match self.send_event(limited, event).await {
            Ok(()) => {}
            Err(error @ SendError::Permanent(_)) => {
                tracing::error!(receiver, id, error = %Chain(&error), "dropped an event");
            }
            Err(error @ (SendError::Temporary { .. } | SendError::Refused(_))) => {
                tracing::warn!(
                    receiver,
                    id,
                    error = %Chain(&error),
                    "cannot deliver an event; it is sent again after the next poll"
                );
                return false;
            }
        }
        if let Err(error) = advance(&*self.store, receiver, &event.data).await {
            tracing::warn!(
                receiver,
                error = %Chain(&error),
                "cannot store the cursor of a receiver; the event will be sent again"
            );
            return false;
        }
        true
    }

    /// Sends an event, and counts and logs a delivery.
    async fn send_event(&self, limited: &LimitedReceiver, event: &Event) -> Result<(), SendError> {
        let sent = self.attempts(limited, event).await;
        let receiver = limited.receiver.name();
        // Counted before it is logged: a test that waits for the log line then finds the count.
        self.settings.metrics.count(receiver, &sent);
        if sent.is_ok() {
            tracing::info!(receiver, id = &event.id, "delivered an event");
        }
        sent
    }

    /// Sends an event until it is acknowledged, refused, or the time is over.
    async fn attempts(&self, limited: &LimitedReceiver, event: &Event) -> Result<(), SendError> {
        let mut waits = RetryWaits::new(&RetrySchedule {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(120),
            attempts: None,
            total: self.settings.total,
        });
        loop {
            // An attempt that would outlive the total time is cut off, because a command waits for
            // its end.
            let end = waits.deadline.min(Instant::now() + ATTEMPT_MAX);
            let sending = async {
                let permit = limited.permits.acquire().await;
                let _permit = permit.expect("the semaphore is never closed");
                limited.receiver.send(event).await
            };
            let sent = match timeout_at(end, sending).await {
                Ok(sent) => sent,
                Err(late) => Err(SendError::temporary(late)),
            };
            match sent {
                Err(error @ SendError::Temporary { retry_after, .. }) => {
                    let wait = waits.next_wait(retry_after).ok_or(error)?;
                    tokio::time::sleep(wait).await;
                }
                ended => return ended,
            }
        }
    }

    async fn add_receivers(&self, catalog: &CatalogName) {
        let names = self.names_for(catalog);
        if names.is_empty() {
            return;
        }
        let added = async {
            let mut outbox = Outbox::open(&*self.store, catalog).await?;
            outbox.add_receivers(&names, AFTER_ALL).await
        };
        if let Err(error) = added.await {
            tracing::warn!(%catalog, error = %Chain(&error), "cannot store the first cursors of new receivers");
        }
    }

    fn names_for(&self, catalog: &CatalogName) -> Vec<&str> {
        let receivers = self.receivers_of(catalog);
        receivers.map(|limited| limited.receiver.name()).collect()
    }

    fn receivers_of(&self, catalog: &CatalogName) -> impl Iterator<Item = &LimitedReceiver> {
        self.receivers
            .iter()
            .filter(|limited| limited.receiver.wants(catalog))
    }

    fn queue(&self, catalog: &CatalogName) -> Arc<CatalogQueue> {
        let mut queues = self.queues.lock();
        queues.entry(catalog.clone()).or_default().clone()
    }
}

/// Counters of events by receiver and outcome.
#[derive(Debug, Clone, Default)]
pub struct NotifyMetrics {
    events: Family<[(&'static str, String); 2], Counter>,
}

impl NotifyMetrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let help =
            "Events by receiver and outcome; a postponed event is sent again after the next poll";
        let events = publish::metric(registry, "notifications", help);
        Self { events }
    }

    /// Counts an event by the result of all attempts to send it. Creates all outcomes of the
    /// receiver at once, so that rates need no special cases.
    fn count(&self, receiver: &str, sent: &Result<(), SendError>) {
        let counted = match sent {
            Ok(()) => "delivered",
            Err(SendError::Temporary { .. } | SendError::Refused(_)) => "postponed",
            Err(SendError::Permanent(_)) => "given_up",
        };
        for outcome in ["delivered", "postponed", "given_up"] {
            let labels = [
                ("receiver", receiver.to_owned()),
                ("outcome", outcome.to_owned()),
            ];
            let count = u64::from(outcome == counted);
            self.events.get_or_create(&labels).inc_by(count);
        }
    }
}
