//! Simulation: replicas whose watches are late by any time, and a client that reads a catalog once
//! for each image that the status names, as operator-controller does.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;

/// Number of replicas: those of the default manifests.
const REPLICAS: usize = 3;

/// Number of images that the status names in one run, one after the other.
const CHANGES: u32 = 40;

/// Longest time in ms that a pull, a write of a status, or the way of a request takes.
const WORK_MS: u64 = 50;

/// A cluster under simulation. Its times are those of a paused clock.
struct Cluster {
    server: ApiServer,
    replicas: Vec<Replica>,
    /// Maximum lag of each watch in ms.
    lag_ms: u64,
    /// True if the client reads through the gate.
    has_gate: bool,
    random: Mutex<StdRng>,
}

/// Content by the image that the status named when it was read.
type Kept = BTreeMap<u32, u32>;

impl Cluster {
    fn new(seed: u64, lag_ms: u64, has_gate: bool) -> Arc<Self> {
        let server = ApiServer::default();
        let replicas = (0..REPLICAS).map(|_| Replica::at(&server, true, Duration::ZERO));
        Arc::new(Self {
            replicas: replicas.collect(),
            server,
            lag_ms,
            has_gate,
            random: Mutex::new(StdRng::seed_from_u64(seed)),
        })
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.lock().random_range(0..=limit)
    }

    async fn pass(&self, at_most_ms: u64) {
        let time = self.below(at_most_ms);
        sleep(Duration::from_millis(time)).await;
    }

    /// Sees the changes of the status after a while, in their order.
    async fn watch(&self, mut changes: UnboundedReceiver<u32>, seen: watch::Sender<u32>) {
        while let Some(step) = changes.recv().await {
            self.pass(self.lag_ms).await;
            seen.send_replace(step);
        }
    }

    /// Does the work of a replica: its copy of the status, and what that names.
    async fn work(&self, at: usize, mut seen: watch::Receiver<u32>) {
        let replica = &self.replicas[at];
        while seen.changed().await.is_ok() {
            let step = *seen.borrow_and_update();
            replica.see(&digest(step));
            let is_follower = *replica.role.borrow() == Role::Follower;
            let object = replica.served.objects.state()[0].clone();
            if is_follower && replica.served.is_behind(&object).await {
                self.pass(WORK_MS).await;
                replica.publish(&digest(step)).await;
            }
        }
    }

    /// Publishes as the leader, and writes the status after that.
    async fn change(&self, leader: usize, step: u32, watches: &[UnboundedSender<u32>]) {
        let replica = &self.replicas[leader];
        replica.publish(&digest(step)).await;
        if !replica.served.objects.state().is_empty() {
            replica.note_poll(&digest(step));
        }
        self.pass(WORK_MS).await;
        name_at(&self.server, &digest(step));
        for changes in watches {
            changes.send(step).unwrap();
        }
    }

    /// Lets another replica lead. The one before may take itself for the leader for a while.
    async fn change_leader(self: &Arc<Self>, before: usize) -> usize {
        let next = usize::try_from(self.below(REPLICAS as u64 - 1)).unwrap();
        if next != before {
            let cluster = Arc::clone(self);
            let stops = async move {
                cluster.pass(4 * WORK_MS).await;
                let old = &cluster.replicas[before];
                old.role.send_replace(Role::Follower);
                old.served.polls.forget_all();
            };
            if self.below(1) == 0 {
                stops.await;
            } else {
                tokio::spawn(stops);
            }
            self.replicas[next].role.send_replace(Role::Leader);
        }
        next
    }

    /// Reads once for each image that the status names, and again only after an error.
    async fn follow(&self, mut seen: watch::Receiver<u32>, kept: Arc<Mutex<Kept>>) {
        while seen.changed().await.is_ok() {
            for wait in (0..).map(|tries| 5 << i32::min(tries, 8)) {
                let step = *seen.borrow_and_update();
                let at = usize::try_from(self.below(REPLICAS as u64 - 1)).unwrap();
                self.pass(WORK_MS / 10).await;
                let content = if self.has_gate {
                    self.replicas[at].content().await
                } else {
                    self.replicas[at].ungated().await
                };
                if let Some(content) = content {
                    kept.lock().insert(step, content[7..].parse().unwrap());
                    break;
                }
                sleep(Duration::from_millis(wait)).await;
            }
        }
    }

    /// Runs all changes, and returns what the client has in the end.
    async fn run(self: Arc<Self>) -> Kept {
        let mut watches = Vec::new();
        let watch_changes = |watches: &mut Vec<_>| {
            let (changes, received) = unbounded_channel();
            let (seen, follows) = watch::channel(0);
            let cluster = Arc::clone(&self);
            tokio::spawn(async move { cluster.watch(received, seen).await });
            watches.push(changes);
            follows
        };
        let mut leader = 0;
        self.replicas[leader].role.send_replace(Role::Leader);
        for at in 0..REPLICAS {
            let seen = watch_changes(&mut watches);
            let cluster = Arc::clone(&self);
            tokio::spawn(async move { cluster.work(at, seen).await });
        }
        let kept = Arc::new(Mutex::new(Kept::new()));
        let seen = watch_changes(&mut watches);
        let (cluster, client) = (Arc::clone(&self), Arc::clone(&kept));
        tokio::spawn(async move { cluster.follow(seen, client).await });
        for step in 1..=CHANGES {
            if self.below(9) == 0 {
                leader = self.change_leader(leader).await;
            }
            self.change(leader, step, &watches).await;
            self.pass(8 * WORK_MS).await;
        }
        sleep(Duration::from_secs(60)).await;
        let kept = kept.lock();
        kept.clone()
    }
}

impl Replica {
    /// Reads the catalog as the API without the gate answers.
    async fn ungated(&self) -> Option<String> {
        let key = Key::Current("a".parse().unwrap());
        let found = self.served.store.read_document::<Current>(&key).await;
        Some(found.unwrap()?.0.source.revision)
    }
}

fn digest(step: u32) -> String {
    format!("sha256:{step}")
}

/// Returns the number of images under which the client keeps earlier content.
async fn lost(seed: u64, lag_ms: u64, has_gate: bool) -> usize {
    let kept = Cluster::new(seed, lag_ms, has_gate).run().await;
    let (last, content) = kept.last_key_value().unwrap();
    assert_eq!(*last, CHANGES, "the client sees the last image");
    if has_gate {
        assert_eq!(*content, CHANGES, "and has its content in the end");
    }
    kept.iter()
        .filter(|(named, content)| content < named)
        .count()
}

#[tokio::test(start_paused = true)]
async fn simulated_client_loses_no_change_by_late_watches() {
    for lag_ms in [0, 5, 20, 100, 1000] {
        for seed in 0..5 {
            assert_eq!(
                lost(seed, lag_ms, true).await,
                0,
                "seed {seed}, lag {lag_ms} ms"
            );
        }
        // Without the check of each read changes are lost, so the simulation is able to fail.
        assert_ne!(lost(0, lag_ms, false).await, 0, "lag {lag_ms} ms");
    }
}
