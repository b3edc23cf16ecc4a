//! Candidates for the Lease of an API server in the process.

use serde_json::{Value, json};

use super::*;
use crate::tests::{ApiServer, LEASE_PATH};

impl ApiServer {
    fn candidate(&self) -> Election {
        let role = Arc::new(watch::Sender::new(Role::Follower));
        Election::new(self.client(), "olmv1-system", role)
    }

    fn annotate(&self, annotations: &Value) {
        let change = json!({"metadata": {"annotations": annotations}});
        self.lock().change(LEASE_PATH, &change);
    }

    fn holder(&self) -> String {
        let lease = &self.lock().objects[LEASE_PATH];
        lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }
}

/// Returns a cluster whose leader is the candidate, and a token to stop it.
async fn led() -> (ApiServer, CancellationToken, Election) {
    let (cluster, stop) = (ApiServer::default(), CancellationToken::new());
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
    cluster.lock().is_down = true;
    let (held, ()) = seconds(first.hold(&stop)).await;
    assert!((107..=120).contains(&held), "{held}");
    cluster.lock().is_down = false;
    // It has seen the Lease for the first time now, whatever its times say.
    let (waited, acquired) = seconds(cluster.candidate().acquire(&stop)).await;
    assert!(acquired && waited >= 137, "{waited}");
}

#[tokio::test(start_paused = true)]
async fn leader_gives_up_the_lease_while_its_annotation_says_so() {
    let (cluster, stop, mut first) = led().await;
    cluster.annotate(&json!({YIELD_ANNOTATION: "true"}));
    let (held, ()) = seconds(first.hold(&stop)).await;
    assert!(held <= 26 && cluster.holder().is_empty(), "{held}");
    let waiting = timeout(Duration::from_secs(600), first.acquire(&stop)).await;
    assert!(waiting.is_err() && cluster.holder().is_empty());
    cluster.annotate(&Value::Null);
    assert!(first.acquire(&stop).await);
}

#[tokio::test(start_paused = true)]
async fn short_failure_of_the_api_server_changes_no_leader() {
    let (cluster, stop, mut first) = led().await;
    let failure = async {
        cluster.lock().is_down = true;
        sleep(Duration::from_secs(90)).await;
        cluster.lock().is_down = false;
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
    let catalogd = json!({"spec": {"holderIdentity": "catalogd"}});
    cluster.lock().change(LEASE_PATH, &catalogd);
    let waiting = timeout(Duration::from_secs(60), second.acquire(&stop)).await;
    assert!(waiting.is_err());
    assert_eq!(
        *second.role.borrow(),
        Role::BesideOther("catalogd".to_owned())
    );
}
