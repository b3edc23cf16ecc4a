//! What nothing costs.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Kind;

use crate::world::World;

const CATALOGS: usize = 200;
const LATENCY: Duration = Duration::from_millis(20);

/// The promise: at most 3 s for 200 unchanged catalogs of a registry that answers in 20 ms, with 64 requests in flight.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_unchanged_catalogs_take_no_three_seconds() {
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
    assert!(
        world.registry.most_at_once(Kind::Head) <= 64,
        "{}",
        world.registry.most_at_once(Kind::Head)
    );
    println!("{CATALOGS} unchanged catalogs: {took:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
}
