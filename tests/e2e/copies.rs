//! Copies of a mirror: over HTTP, and by archive.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Ran, Server, run},
    catalogs, http,
};

fn poll(store: &Path, version: &str) {
    let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
    run(["poll", "--store", text(store), "--catalog", &source]).exits(0);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn serve(store: &Path) -> Server {
    Server::start(["serve", "--no-poll", "--store", text(store)])
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str::<Value>(&ran.stdout).unwrap()[0].clone()
}

/// Returns all files of a store except those that each store writes for itself.
fn tree(folder: &Path) -> catalogs::Files {
    let mut files = catalogs::files(folder);
    files
        .retain(|(path, _)| !path.ends_with("status.json") && !path.ends_with("layers.json") && !path.starts_with('.'));
    files
}

async fn answers(server: &Server) -> Vec<(String, Vec<u8>)> {
    let mut answers = Vec::new();
    for path in [
        "current.json",
        "api/v1/all",
        "packages/demo-database",
        "api/v1/metas?schema=olm.channel",
    ] {
        for coding in ["identity", "gzip", "zstd"] {
            let url = format!("{}/catalogs/demo/{path}", server.url);
            let response = http::get(&url, &[("accept-encoding", coding)]).await;
            assert_eq!(response.status(), 200);
            let tag = http::field(&response, "etag");
            answers.push((tag, response.bytes().await.unwrap().to_vec()));
        }
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_makes_copy_that_answers_like_origin() {
    let folder = TempDir::new().unwrap();
    let [original, copy, onward] = ["original", "copy", "onward"].map(|name| folder.path().join(name));
    poll(&original, "v1");
    let first = serve(&original);
    let sync = |from: &str, to: &Path| run(["sync", from, text(to), "--json"]);
    assert_eq!(report(&sync(&first.url, &copy).exits(0))["outcome"], "published");
    assert_eq!(
        report(&sync(&first.url, &copy).exits(0))["moved"]["objects"],
        0,
        "a 304 and nothing else"
    );

    poll(&original, "v2");
    let update = report(&sync(&first.url, &copy).exits(0));
    assert_eq!(
        update["moved"]["objects"], 4,
        "the pointer, the snapshot and two shards: {update}"
    );
    assert_eq!(update["notRebuilt"].as_array().unwrap().len(), 0);
    let second = serve(&copy);
    assert_eq!(answers(&second).await, answers(&first).await);

    sync(&second.url, &onward).exits(0);
    let names = |files: &catalogs::Files| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(
        names(&tree(&onward)).len() + 17,
        names(&tree(&copy)).len(),
        "the copy also has what v1 had alone: two shards, five objects of its own, and an image of ten"
    );
    assert!(tree(&onward).iter().all(|file| tree(&original).contains(file)));
    run(["verify", "--store", text(&onward)]).exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn import_makes_copy_that_answers_like_origin() {
    let folder = TempDir::new().unwrap();
    let [low, high, archive, receipt] = ["low", "high", "a.tar", "receipt.json"].map(|name| folder.path().join(name));
    let export = |more: &[&str]| {
        let mut arguments = vec!["export", "--store", text(&low), "--to", text(&archive), "--json"];
        arguments.extend(more);
        let report: Value = serde_json::from_str(&run(arguments).exits(0).stdout).unwrap();
        report["objects"].as_u64().unwrap()
    };
    let import = || {
        run([
            "import",
            "--store",
            text(&high),
            "--receipt",
            text(&receipt),
            "--json",
            text(&archive),
        ])
    };
    poll(&low, "v1");
    assert_eq!(export(&[]), 6, "four shards, the snapshot and the pointer");
    import().exits(0);
    import().exits(0);
    poll(&low, "v2");
    assert_eq!(
        export(&["--receipt", text(&receipt)]),
        4,
        "two shards, the snapshot and the pointer"
    );
    import().exits(0);
    assert_eq!(answers(&serve(&high)).await, answers(&serve(&low)).await);
    run(["verify", "--store", text(&high)]).exits(0);

    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let before = tree(&high);
    import().exits(1);
    assert_eq!(tree(&high), before);
}
