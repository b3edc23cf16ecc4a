use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::args::Args;
use crate::client::{Client, Shared};
use crate::connection::{ConnectionOptions, RequestSpec};
use crate::monitor::ProcessMonitor;
use crate::report::Report;
use crate::slow_client::SlowBehaviour;
use crate::violation::Violation;

const SECOND: Duration = Duration::from_secs(1);
/// Smallest receive buffer that the kernel grants, in bytes: the server has to wait for a slow
/// client.
const SMALL_BUFFER: usize = 16 << 10;
/// Number of clients of each slow behaviour.
const SLOW_CLIENTS: u32 = 3;
/// Time in which a server must notice that connections are closed.
const CLOSING: Duration = Duration::from_secs(10);
/// Number of descriptors that may stay open without being leaked: connections that the mirror keeps
/// to its registry.
const MORE_DESCRIPTORS: u64 = 8;

#[derive(Deserialize)]
struct Contract {
    paths: BTreeMap<String, serde_json::Value>,
}

/// Runs the clients for the configured time and returns the report.
pub(crate) async fn run(args: &Args) -> Result<Report, Box<dyn Error>> {
    let shared = Arc::new(Shared::default());
    let paths = discover(line(args.server, 0), &shared).await?;
    let monitor = ProcessMonitor {
        process: args.process,
        store: args.store.clone(),
    };
    let descriptors = monitor.descriptors()?;
    let (begin, end) = (
        Instant::now(),
        Instant::now() + Duration::from_secs(args.seconds),
    );
    let clients = visit(args, &shared, end);
    let seen = monitor.watch(end).await?;
    clients.join_all().await;
    let took = begin.elapsed();
    let leaked = leaked(&monitor, descriptors).await?;
    Ok(Report::new(&shared, seen, leaked, &paths, took))
}

/// Reads the catalogs and returns the paths of the OpenAPI document.
pub(crate) async fn discover(
    line: ConnectionOptions,
    shared: &Arc<Shared>,
) -> Result<BTreeSet<String>, Violation> {
    let mut first = Client::new(line, Duration::from_millis(1), Arc::clone(shared));
    let listing = first
        .ask("/catalogs", &RequestSpec::get("/catalogs"))
        .await?;
    let listing: serde_json::Value = serde_json::from_slice(&listing.body)?;
    for entry in listing["catalogs"].as_array().into_iter().flatten() {
        first
            .current(entry["name"].as_str().unwrap_or_default())
            .await?;
    }
    if shared.history.names().is_empty() {
        return Err(Violation::Missing("any catalog".to_owned()));
    }
    let contract = first
        .ask("/openapi.json", &RequestSpec::get("/openapi.json"))
        .await?;
    let contract: Contract = serde_json::from_slice(&contract.body)?;
    Ok(contract.paths.into_keys().collect())
}

fn visit(args: &Args, shared: &Arc<Shared>, end: Instant) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    let every = SECOND * args.workers.max(1) / args.rate.max(1);
    let fast = (0..args.workers).map(|number| (line(args.server, number), every, None));
    let slow = [SlowBehaviour::Slow, SlowBehaviour::HangUp]
        .into_iter()
        .flat_map(|behaviour| {
            (0..SLOW_CLIENTS).map(move |number| {
                let slow = ConnectionOptions {
                    buffer: Some(SMALL_BUFFER),
                    ..line(args.server, number)
                };
                (slow, SECOND, Some(behaviour))
            })
        });
    for (line, every, behaviour) in fast.chain(slow) {
        let mut client = Client::new(line, every, Arc::clone(shared));
        clients.spawn(async move {
            while Instant::now() < end {
                client.work(behaviour).await;
            }
        });
    }
    clients
}

/// Returns the connection options of the client with this number. Every third one speaks HTTP/2.
pub(crate) const fn line(server: SocketAddr, number: u32) -> ConnectionOptions {
    ConnectionOptions {
        server,
        http2: number % 3 == 2,
        buffer: None,
    }
}

/// Returns the number of descriptors that stay open after all clients have left.
async fn leaked(monitor: &ProcessMonitor, before: u64) -> io::Result<u64> {
    let end = Instant::now() + CLOSING;
    loop {
        let left = monitor
            .descriptors()?
            .saturating_sub(before + MORE_DESCRIPTORS);
        if left == 0 || Instant::now() >= end {
            return Ok(left);
        }
        sleep(SECOND / 4).await;
    }
}
