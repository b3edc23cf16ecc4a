use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    args::Args,
    client::{Ask, Line},
    report::Report,
    rude::Manner,
    visitor::{Shared, Visitor},
    watch::Watched,
    wrong::Wrong,
};

const SECOND: Duration = Duration::from_secs(1);
/// As little as the kernel lets a reader take at a time, so that a server has to wait for slow ones.
const SMALL_BUFFER: u32 = 16 << 10;
/// How many clients are slow, and how many leave.
const RUDE: u32 = 3;
/// How long a server may take to see that connections are closed.
const CLOSING: Duration = Duration::from_secs(10);
/// Descriptors that may come to be open meanwhile without being leaked: connections that the mirror keeps to its registry.
const MORE_DESCRIPTORS: u64 = 8;

/// Why nothing can be said at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("the mirror does not even tell what it has")]
    Begin(#[source] Wrong),
    #[error("the process that serves, or its store, cannot be watched")]
    Watch(#[source] io::Error),
}

#[derive(Deserialize)]
struct Listing {
    catalogs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
}

#[derive(Deserialize)]
struct Contract {
    paths: BTreeMap<String, serde_json::Value>,
}

/// Lets visitors come for as long as it is wanted, and tells what they saw.
pub(crate) async fn run(args: &Args) -> Result<Report, RunError> {
    let shared = Arc::new(Shared::default());
    let paths = arrive(line(args.server, 0), &shared).await.map_err(RunError::Begin)?;
    let watched = Watched {
        process: args.process,
        store: args.store.clone(),
    };
    let descriptors = watched.descriptors().map_err(RunError::Watch)?;
    let (begin, end) = (Instant::now(), Instant::now() + Duration::from_secs(args.seconds));
    let visitors = visit(args, &shared, end);
    let seen = watched.watch(end).await.map_err(RunError::Watch)?;
    visitors.join_all().await;
    let took = begin.elapsed();
    let leaked = leaked(&watched, descriptors).await.map_err(RunError::Watch)?;
    Ok(Report::new(&shared, seen, leaked, &paths, took))
}

/// What catalogs there are, and which paths the contract has.
pub(crate) async fn arrive(line: Line, shared: &Arc<Shared>) -> Result<BTreeSet<String>, Wrong> {
    let mut first = Visitor::new(line, Duration::from_millis(1), Arc::clone(shared));
    let listing = first.ask("/catalogs", &Ask::get("/catalogs")).await?;
    let listing: Listing = serde_json::from_slice(&listing.body)?;
    for entry in listing.catalogs {
        first.current(&entry.name).await?;
    }
    if shared.world.names().is_empty() {
        return Err(Wrong::Missing("any catalog".to_owned()));
    }
    let contract = first.ask("/openapi.json", &Ask::get("/openapi.json")).await?;
    let contract: Contract = serde_json::from_slice(&contract.body)?;
    Ok(contract.paths.into_keys().collect())
}

fn visit(args: &Args, shared: &Arc<Shared>, end: Instant) -> JoinSet<()> {
    let mut visitors = JoinSet::new();
    let every = SECOND * args.workers.max(1) / args.rate.max(1);
    for number in 0..args.workers {
        let mut visitor = Visitor::new(line(args.server, number), every, Arc::clone(shared));
        visitors.spawn(async move {
            while Instant::now() < end {
                if let Err(wrong) = visitor.journey().await {
                    visitor.complain(&wrong);
                }
            }
        });
    }
    for (manner, number) in [Manner::Slow, Manner::HangsUp]
        .into_iter()
        .flat_map(|manner| (0..RUDE).map(move |n| (manner, n)))
    {
        let slow = Line {
            buffer: Some(SMALL_BUFFER),
            ..line(args.server, number)
        };
        let mut visitor = Visitor::new(slow, SECOND, Arc::clone(shared));
        visitors.spawn(async move {
            while Instant::now() < end {
                if let Err(wrong) = visitor.rudely(manner).await {
                    visitor.complain(&wrong);
                }
            }
        });
    }
    visitors
}

/// Of the visitor with that number.
pub(crate) const fn line(server: SocketAddr, number: u32) -> Line {
    Line {
        server,
        http2: number % 3 == 2,
        buffer: None,
    }
}

/// How many descriptors stay open once everybody has gone.
async fn leaked(watched: &Watched, before: u64) -> io::Result<u64> {
    let end = Instant::now() + CLOSING;
    loop {
        let left = watched.descriptors()?.saturating_sub(before + MORE_DESCRIPTORS);
        if left == 0 || Instant::now() >= end {
            return Ok(left);
        }
        sleep(SECOND / 4).await;
    }
}
