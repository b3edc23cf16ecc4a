//! Leader election over the Lease of catalogd.

use std::{io, sync::Arc, time::Duration};

use k8s_openapi::{
    api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::lease::{LEASE_TIME, LeaseDecision, RENEW_TIME, RETRY_TIME, SeenLease, released};

/// Name of the Lease. It is catalogd's own, so that one of both works on the ClusterCatalogs of a
/// cluster.
const LEASE: &str = "catalogd-operator-lock";

/// Annotation of the Lease with its holder, by which a replica of this program is told from another
/// program.
const LEADER_ANNOTATION: &str = "catalog-mirror/leader";

/// Annotation of the Lease with the value `true` if this program must not lead, so that another one
/// takes over.
const YIELD_ANNOTATION: &str = "catalog-mirror/yield";

/// Maximum time of one request. Three of them fit into [`RENEW_TIME`] with the waits between them.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// Wait after a renewal that failed.
const FAILED_WAIT: Duration = Duration::from_secs(2);

/// Part of this replica in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// It works on the ClusterCatalogs.
    Leader,
    /// Another replica does, or none.
    Follower,
    /// The program of this name has the Lease, such as catalogd.
    BesideOther(String),
}

/// One replica's part in the election.
pub(crate) struct Election {
    leases: Api<Lease>,
    me: String,
    seen: SeenLease,
    role: Arc<watch::Sender<Role>>,
    /// Holder that was logged last.
    logged: Option<String>,
}

impl Election {
    /// Takes part in the election of a namespace. Sets the role of a replica that does not lead.
    pub(crate) fn new(client: Client, namespace: &str, role: Arc<watch::Sender<Role>>) -> Self {
        let host =
            std::env::var("HOSTNAME").unwrap_or_else(|_| "catalog-mirror-controller".to_owned());
        Self {
            leases: Api::namespaced(client, namespace),
            // A restarted container has the same host name, and must not take its former life for
            // itself.
            me: format!("{host}_{:016x}", rand::random::<u64>()),
            seen: SeenLease::default(),
            role,
            logged: None,
        }
    }

    /// Waits until this replica leads. Returns false if `stop` was cancelled before.
    pub(crate) async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        loop {
            match self.attempt().await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => tracing::warn!(
                    error = model::text::chain(&error),
                    "cannot ask for the Lease {LEASE}"
                ),
            }
            // Jittered, so that replicas do not try in the same moment for ever.
            let wait = RETRY_TIME.mul_f64(1.0 + 0.2 * rand::random::<f64>());
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return false;
            }
        }
    }

    /// Renews the Lease until `stop` is cancelled or the Lease is lost.
    pub(crate) async fn hold(&mut self, stop: &CancellationToken) {
        let mut renewed = Instant::now();
        let mut wait = RETRY_TIME;
        while stop.run_until_cancelled(sleep(wait)).await.is_some() {
            match self.attempt().await {
                Ok(true) => (renewed, wait) = (Instant::now(), RETRY_TIME),
                Ok(false) => {
                    return tracing::error!("this replica has not the Lease {LEASE} any more");
                }
                Err(error) => {
                    tracing::warn!(
                        error = model::text::chain(&error),
                        "cannot renew the Lease {LEASE}"
                    );
                    wait = FAILED_WAIT;
                }
            }
            if renewed.elapsed() >= RENEW_TIME {
                return tracing::error!(
                    lease_s = LEASE_TIME.as_secs(),
                    "the Lease {LEASE} was not renewed in time, so another replica may lead soon"
                );
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

    /// Returns true if something else was logged last about who leads.
    fn is_news(&mut self, leader: &str) -> bool {
        self.logged.replace(leader.to_owned()).as_deref() != Some(leader)
    }

    async fn try_release(&self) -> Result<(), kube::Error> {
        let mut lease = self.leases.get(LEASE).await?;
        let held = lease.spec.take().unwrap_or_default();
        if held.holder_identity.as_ref() == Some(&self.me) {
            lease.spec = Some(released(held, &MicroTime(Timestamp::now())));
            self.leases
                .replace(LEASE, &PostParams::default(), &lease)
                .await?;
        }
        Ok(())
    }

    /// Tries once to acquire or renew. Returns true if the Lease is ours now.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let ended = timeout(REQUEST_TIME, self.request()).await;
        ended.unwrap_or_else(|late| Err(kube::Error::Service(io::Error::from(late).into())))
    }

    async fn request(&mut self) -> Result<bool, kube::Error> {
        let mut found = self.leases.get_opt(LEASE).await?;
        let spec = found
            .as_mut()
            .map(|lease| lease.spec.take().unwrap_or_default());
        let mut metadata = found
            .as_ref()
            .map(|lease| lease.metadata.clone())
            .unwrap_or_default();
        let annotations = metadata.annotations.get_or_insert_default();
        let decision = self.seen.decide(
            spec,
            &self.me,
            Instant::now().into_std(),
            &MicroTime(Timestamp::now()),
        );
        let spec = match decision {
            LeaseDecision::Write(_)
                if annotations
                    .get(YIELD_ANNOTATION)
                    .is_some_and(|value| value == "true") =>
            {
                self.role.send_replace(Role::Follower);
                if self.is_news(YIELD_ANNOTATION) {
                    tracing::warn!(
                        "the Lease has the annotation {YIELD_ANNOTATION}, so this program does not lead"
                    );
                }
                // At once, and not when it ends.
                self.try_release().await?;
                return Ok(false);
            }
            LeaseDecision::Write(spec) => spec,
            LeaseDecision::Wait(holder) => {
                // catalogd keeps the annotation of an earlier holder.
                let is_replica = annotations.get(LEADER_ANNOTATION) == Some(&holder);
                if self.is_news(&holder) {
                    let text =
                        "another replica or program leads; this one serves and writes nothing";
                    tracing::info!(holder, is_replica, "{text}");
                }
                self.role.send_replace(if is_replica {
                    Role::Follower
                } else {
                    Role::BesideOther(holder)
                });
                return Ok(false);
            }
        };
        annotations.insert(LEADER_ANNOTATION.to_owned(), self.me.clone());
        metadata.name = Some(LEASE.to_owned());
        let lease = Lease {
            metadata,
            spec: Some(*spec),
        };
        // After a conflict another replica was faster. Whether it leads now shows at the next try.
        if found.is_some() {
            self.leases
                .replace(LEASE, &PostParams::default(), &lease)
                .await?;
        } else {
            self.leases.create(&PostParams::default(), &lease).await?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
