//! Duration of a schedule event without changes.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Kind;

use crate::world::World;

const CATALOGS: usize = 200;
const LATENCY: Duration = Duration::from_millis(20);

/// The poller asks 64 registries at once by default. The test prints the time for a registry that answers in 20 ms.
#[tokio::test(flavor = "multi_thread")]
async fn schedule_event_checks_200_unchanged_catalogs_up_to_64_at_once() {
    let names: Vec<String> = (0..CATALOGS).map(|at| format!("c{at:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::start(&names, &[]).await;
    names.iter().for_each(|name| world.push(name, 1));
    let first = world.handle_within(json!({}), Duration::from_secs(300)).await.unwrap();
    assert_eq!(first["counts"], json!({"published": CATALOGS}));
    world.registry.delay(Kind::Head, LATENCY);
    world.registry.reset();
    let begin = Instant::now();
    let second = world.handle(json!({})).await.unwrap();
    let took = begin.elapsed();
    assert_eq!(second["counts"], json!({"unchanged": CATALOGS}));
    assert_eq!(world.registry.requests().len(), CATALOGS);
    // One after the other would take 200 latencies. The clock is not asserted: it depends on the machine.
    let at_once = world.registry.most_at_once(Kind::Head);
    assert!((16..=64).contains(&at_once), "{at_once}");
    println!("{CATALOGS} unchanged catalogs: {took:?}");
}
