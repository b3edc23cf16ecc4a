//! Leader election over the Lease of catalogd.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::coordination::v1::Lease,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::lease::{Decision, LEASE_TIME, RENEW_TIME, RETRY_TIME, SeenLease, released};

/// Name of the Lease. It is catalogd's own, so that one of both works on the ClusterCatalogs of a cluster.
const LEASE: &str = "catalogd-operator-lock";

/// Maximum time of one request. Three of them fit into [`RENEW_TIME`] with the waits between them.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// State of the election in this replica, for readiness and metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leading {
    flag: Arc<AtomicBool>,
    /// Value 1 for the leader, else 0.
    pub(crate) metric: Gauge,
}

impl Leading {
    /// Returns true if this replica works on the ClusterCatalogs.
    pub(crate) fn get(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Records the change.
    pub(crate) fn set(&self, leads: bool) {
        self.flag.store(leads, Ordering::Relaxed);
        self.metric.set(leads.into());
    }
}

/// One replica's part in the election.
pub(crate) struct Election {
    leases: Api<Lease>,
    me: String,
    seen: SeenLease,
    /// Holder that was logged last.
    logged: Option<String>,
}

impl Election {
    /// Takes part in the election of a namespace.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "catalog-mirror-controller".to_owned());
        Self {
            leases: Api::namespaced(client, namespace),
            // A restarted container has the same host name, and must not take its former life for itself.
            me: format!("{host}_{:016x}", rand::random::<u64>()),
            seen: SeenLease::default(),
            logged: None,
        }
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
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return false;
            }
        }
    }

    /// Renews the Lease until `stop` is cancelled or the Lease is lost.
    pub(crate) async fn hold(&mut self, stop: &CancellationToken) {
        let mut renewed = Instant::now();
        while stop.run_until_cancelled(sleep(RETRY_TIME)).await.is_some() {
            loop {
                match self.attempt().await {
                    Ok(true) => break renewed = Instant::now(),
                    Ok(false) => return tracing::error!("another replica has taken the Lease {LEASE}"),
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
        match timeout(REQUEST_TIME, self.request()).await {
            Ok(ended) => ended,
            Err(_) => {
                let timed_out = std::io::Error::from(std::io::ErrorKind::TimedOut);
                Err(kube::Error::Service(timed_out.into()))
            }
        }
    }

    async fn request(&mut self) -> Result<bool, kube::Error> {
        let mut found = self.leases.get_opt(LEASE).await?;
        let spec = found.as_mut().map(|lease| lease.spec.take().unwrap_or_default());
        let time = MicroTime(Timestamp::now());
        let spec = match self.seen.decide(spec, &self.me, Instant::now().into_std(), &time) {
            Decision::Write(spec) => Some(*spec),
            Decision::Wait(holder) => {
                if self.logged.as_ref() != Some(&holder) {
                    tracing::info!(
                        holder,
                        "another replica leads; this one serves its store and writes nothing"
                    );
                    self.logged = Some(holder);
                }
                return Ok(false);
            }
        };
        let written = match found {
            Some(lease) => {
                let lease = Lease { spec, ..lease };
                self.leases.replace(LEASE, &PostParams::default(), &lease).await
            }
            None => {
                let metadata = ObjectMeta {
                    name: Some(LEASE.to_owned()),
                    ..ObjectMeta::default()
                };
                let lease = Lease { metadata, spec };
                self.leases.create(&PostParams::default(), &lease).await
            }
        };
        // After a conflict another replica was faster. Whether it leads now shows at the next try.
        written.map(|_| true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::{
        Router,
        body::Bytes,
        extract::State,
        http::{Method, StatusCode},
    };
    use serde_json::{Value, json};

    use super::*;

    /// The Lease as the API server has it, and whether that answers.
    #[derive(Clone, Default)]
    struct Cluster(Arc<Mutex<(Value, bool)>>);

    async fn answer(State(cluster): State<Cluster>, method: Method, body: Bytes) -> (StatusCode, String) {
        let mut state = cluster.0.lock().unwrap();
        let (lease, is_down) = &mut *state;
        let status = match (method, serde_json::from_slice::<Value>(&body)) {
            _ if *is_down => StatusCode::SERVICE_UNAVAILABLE,
            (Method::GET, _) if lease.is_null() => StatusCode::NOT_FOUND,
            (Method::GET, _) => return (StatusCode::OK, lease.to_string()),
            (_, Ok(written)) if written["metadata"]["resourceVersion"] == lease["metadata"]["resourceVersion"] => {
                *lease = written;
                let version = format!("{:x}", rand::random::<u64>());
                lease["metadata"]["resourceVersion"] = json!(version);
                return (StatusCode::OK, lease.to_string());
            }
            _ => StatusCode::CONFLICT,
        };
        let reason = if status == StatusCode::NOT_FOUND {
            "NotFound"
        } else {
            ""
        };
        let body = json!({"kind": "Status", "code": status.as_u16(), "reason": reason, "message": ""});
        (status, body.to_string())
    }

    impl Cluster {
        fn candidate(&self) -> Election {
            let service = Router::new().fallback(answer).with_state(self.clone());
            Election::new(Client::new(service, "default"), "olmv1-system")
        }

        fn holder(&self) -> String {
            let state = self.0.lock().unwrap();
            state.0["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        }

        fn set_down(&self, is_down: bool) {
            self.0.lock().unwrap().1 = is_down;
        }
    }

    /// Returns the seconds for which something takes.
    async fn seconds<T>(work: impl Future<Output = T>) -> (u64, T) {
        let begin = Instant::now();
        let ended = work.await;
        (begin.elapsed().as_secs(), ended)
    }

    #[tokio::test(start_paused = true)]
    async fn released_lease_is_acquired_at_the_next_try() {
        let (cluster, stop) = (Cluster::default(), CancellationToken::new());
        let (mut first, mut second) = (cluster.candidate(), cluster.candidate());
        assert_eq!(seconds(first.acquire(&stop)).await, (0, true));
        assert_eq!(cluster.holder(), first.me);
        let me = first.me.clone();
        let waiting = async {
            sleep(Duration::from_secs(300)).await;
            assert_eq!(cluster.holder(), me, "it is renewed");
        };
        let holding = first.hold(&stop);
        tokio::select! {
            () = waiting => {}
            () = holding => panic!("the Lease was lost"),
            _ = second.acquire(&stop) => panic!("there are two leaders"),
        }
        first.release().await;
        assert_eq!(cluster.holder(), "");
        let (waited, acquired) = seconds(second.acquire(&stop)).await;
        assert!(acquired && waited <= 32, "{waited}");
        assert_eq!(cluster.holder(), second.me);
    }

    #[tokio::test(start_paused = true)]
    async fn leader_that_cannot_renew_ends_before_another_one_leads() {
        let (cluster, stop) = (Cluster::default(), CancellationToken::new());
        let mut first = cluster.candidate();
        assert!(first.acquire(&stop).await);
        cluster.set_down(true);
        let (held, ()) = seconds(first.hold(&stop)).await;
        assert!((107..=120).contains(&held), "{held}");
        cluster.set_down(false);
        // It has seen the Lease for the first time now, whatever its times say.
        let (waited, acquired) = seconds(cluster.candidate().acquire(&stop)).await;
        assert!(acquired && waited >= 137, "{waited}");
    }

    #[tokio::test(start_paused = true)]
    async fn short_failure_of_the_api_server_changes_no_leader() {
        let (cluster, stop) = (Cluster::default(), CancellationToken::new());
        let mut first = cluster.candidate();
        assert!(first.acquire(&stop).await);
        let failure = async {
            cluster.set_down(true);
            sleep(Duration::from_secs(90)).await;
            cluster.set_down(false);
            sleep(Duration::from_secs(200)).await;
        };
        tokio::select! {
            () = failure => {}
            () = first.hold(&stop) => panic!("the Lease was lost"),
        }
        assert_eq!(cluster.holder(), first.me);
    }

    #[tokio::test(start_paused = true)]
    async fn stopped_replica_waits_no_longer_and_releases_only_its_own_lease() {
        let (cluster, stop) = (Cluster::default(), CancellationToken::new());
        let (mut first, mut second) = (cluster.candidate(), cluster.candidate());
        assert!(first.acquire(&stop).await);
        stop.cancel();
        assert_eq!(seconds(second.acquire(&stop)).await, (0, false));
        second.release().await;
        assert_eq!(cluster.holder(), first.me);
        assert_eq!(seconds(first.hold(&stop)).await, (0, ()));
    }
}
