//! Candidates for the Lease of an API server in the process.

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
    let reason = status.canonical_reason().unwrap().replace(' ', "");
    let body = json!({"kind": "Status", "code": status.as_u16(), "reason": reason, "message": ""});
    (status, body.to_string())
}

impl Cluster {
    fn candidate(&self) -> Election {
        let service = Router::new().fallback(answer).with_state(self.clone());
        let role = Arc::new(watch::Sender::new(Role::Follower));
        Election::new(Client::new(service, "default"), "olmv1-system", role)
    }

    fn holder(&self) -> String {
        let holder = &self.0.lock().unwrap().0["spec"]["holderIdentity"];
        holder.as_str().unwrap_or_default().to_owned()
    }

    /// Changes the Lease as another program does, which leaves the rest alone.
    fn set(&self, path: &str, value: Value) {
        *self.0.lock().unwrap().0.pointer_mut(path).unwrap() = value;
    }

    fn set_down(&self, is_down: bool) {
        self.0.lock().unwrap().1 = is_down;
    }
}

/// Returns a cluster whose leader is the candidate, and a token to stop it.
async fn led() -> (Cluster, CancellationToken, Election) {
    let (cluster, stop) = (Cluster::default(), CancellationToken::new());
    let mut first = cluster.candidate();
    assert_eq!(seconds(first.acquire(&stop)).await, (0, true));
    assert_eq!(cluster.holder(), first.me);
    (cluster, stop, first)
}

/// Returns the seconds for which something takes.
async fn seconds<T>(work: impl Future<Output = T>) -> (u64, T) {
    let begin = Instant::now();
    let ended = work.await;
    (begin.elapsed().as_secs(), ended)
}

#[tokio::test(start_paused = true)]
async fn released_lease_is_acquired_at_the_next_try() {
    let (cluster, stop, mut first) = led().await;
    let mut second = cluster.candidate();
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
    assert_eq!(*second.role.borrow(), Role::Follower);
    first.release().await;
    assert_eq!(cluster.holder(), "");
    let (waited, acquired) = seconds(second.acquire(&stop)).await;
    assert!(acquired && waited <= 32, "{waited}");
    assert_eq!(cluster.holder(), second.me);
}

#[tokio::test(start_paused = true)]
async fn leader_that_cannot_renew_ends_before_another_one_leads() {
    let (cluster, stop, mut first) = led().await;
    cluster.set_down(true);
    let (held, ()) = seconds(first.hold(&stop)).await;
    assert!((107..=120).contains(&held), "{held}");
    cluster.set_down(false);
    // It has seen the Lease for the first time now, whatever its times say.
    let (waited, acquired) = seconds(cluster.candidate().acquire(&stop)).await;
    assert!(acquired && waited >= 137, "{waited}");
}

#[tokio::test(start_paused = true)]
async fn leader_gives_up_the_lease_while_its_annotation_says_so() {
    let (cluster, stop, mut first) = led().await;
    cluster.set("/metadata/annotations", json!({YIELD_ANNOTATION: "true"}));
    let (held, ()) = seconds(first.hold(&stop)).await;
    assert!(held <= 26 && cluster.holder().is_empty(), "{held}");
    let waiting = timeout(Duration::from_secs(600), first.acquire(&stop)).await;
    assert!(waiting.is_err() && cluster.holder().is_empty());
    cluster.set("/metadata/annotations", json!({}));
    assert!(first.acquire(&stop).await);
}

#[tokio::test(start_paused = true)]
async fn short_failure_of_the_api_server_changes_no_leader() {
    let (cluster, stop, mut first) = led().await;
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
    let (cluster, stop, mut first) = led().await;
    let mut second = cluster.candidate();
    stop.cancel();
    assert_eq!(seconds(second.acquire(&stop)).await, (0, false));
    second.release().await;
    assert_eq!(cluster.holder(), first.me);
    assert_eq!(seconds(first.hold(&stop)).await, (0, ()));
}

#[tokio::test(start_paused = true)]
async fn holder_without_annotation_is_another_program() {
    let (cluster, stop, _first) = led().await;
    let mut second = cluster.candidate();
    cluster.set("/spec/holderIdentity", json!("catalogd"));
    let waiting = timeout(Duration::from_secs(60), second.acquire(&stop)).await;
    assert!(waiting.is_err());
    assert_eq!(*second.role.borrow(), Role::BesideOther("catalogd".to_owned()));
}
