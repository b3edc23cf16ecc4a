//! The arrows between the rooms go one way. A new one is a decision, so it has to be made here too.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::cargo;

/// What each room may know of the others.
const ROOMS: &[(&str, &[&str])] = &[
    ("fbc", &[]),
    ("layout", &[]),
    ("text", &[]),
    ("retry", &[]),
    ("seal", &["layout"]),
    ("image", &["retry", "text"]),
    ("telemetry", &["text"]),
    ("policy", &["layout", "seal"]),
    ("openpgp", &["policy"]),
    ("oci", &["layout"]),
    ("render", &["fbc", "layout", "oci", "text"]),
    ("store", &["layout"]),
    ("store-s3", &["layout", "store"]),
    ("keep", &["layout", "store", "telemetry"]),
    (
        "poll",
        &[
            "image",
            "keep",
            "layout",
            "oci",
            "policy",
            "render",
            "seal",
            "store",
            "telemetry",
        ],
    ),
    (
        "sync",
        &["keep", "layout", "oci", "render", "retry", "seal", "store", "telemetry"],
    ),
    ("notify", &["keep", "layout", "poll", "retry", "store", "telemetry"]),
    (
        "config",
        &["image", "keep", "layout", "policy", "poll", "seal", "telemetry"],
    ),
    ("operators", &["layout"]),
    ("serve", &["layout", "oci", "operators", "seal", "store", "telemetry"]),
    ("listen", &["layout", "serve"]),
    ("testkit", &[]),
    (
        "simulation",
        &["image", "keep", "layout", "poll", "render", "serve", "store", "sync"],
    ),
    // What judges all others must share no code with them.
    ("soak", &["layout"]),
];

/// What a room must never reach, however indirectly: no network, no runtime in the pure ones, no parser in the reader.
const ABSENT: &[(&str, &[&str])] = &[
    ("fbc", &["tokio", "reqwest", "hyper", "futures-util"]),
    ("layout", &["tokio", "reqwest", "hyper", "futures-util"]),
    ("policy", &["tokio", "reqwest", "hyper", "futures-util"]),
    ("seal", &["tokio", "reqwest", "hyper", "futures-util"]),
    ("openpgp", &["tokio", "reqwest", "hyper", "futures-util"]),
    ("oci", &["tokio", "reqwest", "hyper", "futures-util", "flate2", "zstd"]),
    ("render", &["tokio", "reqwest", "hyper", "futures-util"]),
    ("operators", &["tokio", "reqwest", "hyper", "futures-util", "fbc"]),
    ("store", &["reqwest", "hyper", "fbc", "image", "granit-parser"]),
    ("sync", &["oci-client", "image", "poll", "aws-lc-rs"]),
    ("keep", &["reqwest", "hyper", "fbc", "image", "granit-parser"]),
    ("store-s3", &["reqwest", "fbc", "image", "granit-parser", "aws-lc-rs"]),
    (
        "reader",
        &[
            "reqwest",
            "oci-client",
            "fbc",
            "image",
            "render",
            "policy",
            "openpgp",
            "poll",
            "granit-parser",
            "listen",
            "bcrypt",
            "aws-lc-rs",
        ],
    ),
    ("poller", &["serve", "listen", "axum", "aws-lc-rs", "openpgp", "pgp"]),
    (
        "listen",
        &["reqwest", "fbc", "image", "render", "granit-parser", "aws-lc-rs"],
    ),
    (
        "serve",
        &[
            "bcrypt",
            "rustls",
            "reqwest",
            "oci-client",
            "fbc",
            "image",
            "render",
            "granit-parser",
        ],
    ),
    (
        "catalog-mirror",
        &[
            "aws-lc-rs",
            "aws-lc-sys",
            "openssl-sys",
            "native-tls",
            "serde_yaml",
            "serde_yml",
        ],
    ),
];

type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn rooms_know_only_what_they_may() {
    let graph = graph();
    let rooms: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for (room, allowed) in ROOMS {
        let known = graph.get(*room).unwrap_or_else(|| panic!("there is no room {room}"));
        let others: Vec<&str> = known
            .iter()
            .map(String::as_str)
            .filter(|name| rooms.contains(name))
            .collect();
        for other in others {
            assert!(allowed.contains(&other), "{room} must not know {other}");
        }
    }
}

#[test]
fn every_room_is_listed() {
    let metadata = cargo::metadata();
    let members = metadata["workspace_members"].as_array().unwrap();
    let shared = members
        .iter()
        .filter_map(|id| id.as_str())
        .filter(|id| id.contains("/shared/"));
    let listed: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for id in shared {
        let name = id.rsplit(['/', '#']).find(|part| listed.contains(part));
        assert!(name.is_some(), "{id} is a room without rules");
    }
}

#[test]
fn what_must_be_absent_is() {
    let graph = graph();
    for (room, absent) in ABSENT {
        let reached = reach(&graph, room);
        for name in *absent {
            assert!(!reached.contains(*name), "{room} reaches {name}");
        }
    }
}

fn reach(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        for next in graph.get(&name).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    reached
}

/// Normal dependencies by name, with the features of the whole workspace.
fn graph() -> Graph {
    let metadata = cargo::metadata();
    let names: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let mut graph = Graph::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let normal = node["deps"].as_array().unwrap().iter().filter(|dep| {
            let kinds = dep["dep_kinds"].as_array().unwrap();
            kinds.iter().any(|kind| kind["kind"].is_null())
        });
        let targets = normal.map(|dep| names[dep["pkg"].as_str().unwrap()].to_owned());
        graph
            .entry(names[node["id"].as_str().unwrap()].to_owned())
            .or_default()
            .extend(targets);
    }
    graph
}
