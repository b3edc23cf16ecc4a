//! Leader election over the Lease of catalogd.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{self, Duration},
};

use k8s_openapi::{
    api::coordination::v1::Lease,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    lease::{LEASE_TIME, LeaseDecision, RENEW_TIME, RETRY_TIME, SeenLease, released},
    replicas::FIRST_LOOK,
};

/// Name of the Lease. It is catalogd's own, so that one of both works on the ClusterCatalogs of a cluster.
pub(crate) const LEASE: &str = "catalogd-operator-lock";

/// Time from the start of a leadership to its first renewal.
const FIRST_RENEWAL: Duration = Duration::from_secs(FIRST_LOOK.as_secs() + 1);

/// Annotation of the Lease with name and address of the leader, so that the other replicas find it.
const LEADER_ANNOTATION: &str = "catalog-mirror/leader";

/// Annotation of the Lease with the value `true` if this program must not lead, so that another one takes over.
const YIELD_ANNOTATION: &str = "catalog-mirror/yield";

/// Maximum time of one request. Three of them fit into [`RENEW_TIME`] with the waits between them.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// The Lease, as this replica read it last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LeaseSight {
    /// Replica that holds it, or another program. Empty if it is free.
    pub(crate) holder: String,
    /// `HOST:PORT` of the holder's HTTP API; `None` if the holder is not this program.
    pub(crate) address: Option<String>,
    /// `None` if it was never read.
    pub(crate) times: Option<SightTimes>,
}

/// Times of a [`LeaseSight`], by the clock of this process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SightTimes {
    /// Time of the last read.
    pub(crate) read: time::Instant,
    /// Time of the first read that returned this Lease.
    pub(crate) changed: time::Instant,
    /// Time of the last attempt to read it.
    pub(crate) tried: time::Instant,
}

/// One replica's part in the election.
pub(crate) struct Election {
    leases: Api<Lease>,
    me: String,
    /// `HOST:PORT` of this replica, for the others; `None` if they cannot reach it.
    address: Option<String>,
    seen: SeenLease,
    sight: watch::Sender<LeaseSight>,
    /// Wakes a replica that waits, because the leader does not answer.
    pub(crate) hurry: Arc<Notify>,
    /// Holder that was logged last.
    logged: Option<String>,
}

impl Election {
    /// Takes part in the election of a namespace.
    pub(crate) fn new(client: Client, namespace: &str, address: Option<String>) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "catalog-mirror-controller".to_owned());
        Self {
            leases: Api::namespaced(client, namespace),
            // A restarted container has the same host name, and must not take its former life for itself.
            me: format!("{host}_{:016x}", rand::random::<u64>()),
            address,
            seen: SeenLease::default(),
            sight: watch::Sender::default(),
            hurry: Arc::default(),
            logged: None,
        }
    }

    /// Returns the name of this replica.
    pub(crate) fn me(&self) -> &str {
        &self.me
    }

    /// Returns the Lease as it is read.
    pub(crate) fn sight(&self) -> watch::Receiver<LeaseSight> {
        self.sight.subscribe()
    }

    /// Waits until this replica leads. Returns false if `stop` was cancelled before.
    pub(crate) async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        loop {
            match self.attempt().await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => tracing::warn!(error = model::text::chain(&error), "cannot ask for the Lease {LEASE}"),
            }
            // Jittered, so that replicas do not try in the same moment for ever.
            let wait = RETRY_TIME.mul_f64(1.0 + 0.2 * rand::random::<f64>());
            tokio::select! {
                () = stop.cancelled() => return false,
                () = sleep(wait) => {}
                () = self.hurry.notified() => {}
            }
        }
    }

    /// Renews the Lease until `stop` is cancelled or the Lease is lost. Reports the start of each renewal.
    pub(crate) async fn hold(&mut self, stop: &CancellationToken, report: impl Fn(time::Instant)) {
        let mut renewed = Instant::now();
        // The first renewal comes early: replicas that do not reach this one learn from it that a leader is alive.
        let mut wait = FIRST_RENEWAL;
        while stop.run_until_cancelled(sleep(wait)).await.is_some() {
            wait = RETRY_TIME;
            loop {
                let start = Instant::now();
                match self.attempt().await {
                    Ok(true) => {
                        report(start.into_std());
                        break renewed = Instant::now();
                    }
                    Ok(false) => return tracing::error!("this replica has not the Lease {LEASE} any more"),
                    Err(error) => {
                        tracing::warn!(error = model::text::chain(&error), "cannot renew the Lease {LEASE}");
                    }
                }
                if renewed.elapsed() >= RENEW_TIME {
                    return tracing::error!(
                        lease_s = LEASE_TIME.as_secs(),
                        "the Lease {LEASE} was not renewed in time, so another replica may lead soon"
                    );
                }
                if stop.run_until_cancelled(sleep(Duration::from_secs(2))).await.is_none() {
                    return;
                }
            }
        }
    }

    /// Gives the Lease to whichever replica asks next.
    pub(crate) async fn release(&self) {
        let released = timeout(REQUEST_TIME, self.try_release()).await;
        if !matches!(released, Ok(Ok(()))) {
            tracing::warn!(
                lease_s = LEASE_TIME.as_secs(),
                "cannot release the Lease {LEASE}, it ends by itself"
            );
        }
    }

    async fn try_release(&self) -> Result<(), kube::Error> {
        let mut lease = self.leases.get(LEASE).await?;
        let held = lease.spec.take().unwrap_or_default();
        if held.holder_identity.as_ref() == Some(&self.me) {
            lease.spec = Some(released(held, &MicroTime(Timestamp::now())));
            self.leases.replace(LEASE, &PostParams::default(), &lease).await?;
        }
        Ok(())
    }

    /// Tries once to acquire or renew. Returns true if the Lease is ours now.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let ended = timeout(REQUEST_TIME, self.request()).await;
        let ended = ended.unwrap_or_else(|_| {
            let timed_out = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(kube::Error::Service(timed_out.into()))
        });
        self.sight.send_modify(|sight| {
            if let Some(times) = &mut sight.times {
                times.tried = Instant::now().into_std();
            }
        });
        ended
    }

    async fn request(&mut self) -> Result<bool, kube::Error> {
        let mut found = self.leases.get_opt(LEASE).await?;
        let address = found.as_ref().and_then(address);
        let does_yield = found.as_ref().is_some_and(|lease| {
            let annotations = lease.metadata.annotations.iter().flatten();
            annotations
                .into_iter()
                .any(|(name, value)| name == YIELD_ANNOTATION && value == "true")
        });
        let spec = found.as_mut().map(|lease| lease.spec.take().unwrap_or_default());
        let time = MicroTime(Timestamp::now());
        let now = Instant::now().into_std();
        let decision = self.seen.decide(spec, &self.me, now, &time);
        self.sight.send_replace(LeaseSight {
            holder: self.seen.holder().to_owned(),
            address,
            times: Some(SightTimes {
                read: now,
                changed: self.seen.since().unwrap_or(now),
                tried: now,
            }),
        });
        let spec = match decision {
            LeaseDecision::Write(_) if does_yield => {
                if self.logged.as_deref() != Some(YIELD_ANNOTATION) {
                    tracing::warn!("the Lease has the annotation {YIELD_ANNOTATION}, so this program does not lead");
                    self.logged = Some(YIELD_ANNOTATION.to_owned());
                }
                // At once, and not when it ends.
                self.try_release().await?;
                return Ok(false);
            }
            LeaseDecision::Write(spec) => Some(*spec),
            LeaseDecision::Wait(holder) => {
                if self.logged.as_ref() != Some(&holder) {
                    let is_replica = self.sight.borrow().address.is_some();
                    tracing::info!(
                        holder,
                        is_replica,
                        "another replica or program leads; this one serves and writes nothing"
                    );
                    self.logged = Some(holder);
                }
                return Ok(false);
            }
        };
        let mut metadata = match &found {
            Some(lease) => lease.metadata.clone(),
            None => ObjectMeta {
                name: Some(LEASE.to_owned()),
                ..ObjectMeta::default()
            },
        };
        let annotation = self.address.as_ref().map(|address| format!("{} {address}", self.me));
        let annotations = metadata.annotations.get_or_insert_default();
        match annotation {
            Some(text) => drop(annotations.insert(LEADER_ANNOTATION.to_owned(), text)),
            None => drop(annotations.remove(LEADER_ANNOTATION)),
        }
        let lease = Lease { metadata, spec };
        let written = match found {
            Some(_) => self.leases.replace(LEASE, &PostParams::default(), &lease).await,
            None => self.leases.create(&PostParams::default(), &lease).await,
        };
        // After a conflict another replica was faster. Whether it leads now shows at the next try.
        written.map(|_| true)
    }
}

/// Returns the address that the holder of a Lease has written beside it. catalogd writes none, and keeps an earlier one.
fn address(lease: &Lease) -> Option<String> {
    let annotations: &BTreeMap<String, String> = lease.metadata.annotations.as_ref()?;
    let (leader, address) = annotations.get(LEADER_ANNOTATION)?.split_once(' ')?;
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (leader == holder).then(|| address.to_owned())
}

#[cfg(test)]
mod tests;
