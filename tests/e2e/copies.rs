//! Copies of a mirror: over HTTP, and by archive.

use std::fs;

use serde_json::Value;

use crate::support::{
    binary::Server,
    catalogs::{self, Files},
    http,
    work::Work,
};

/// Returns all files of a store except those that each store writes for itself.
fn tree(work: &Work, store: &str) -> Files {
    let mut files = catalogs::files(&work.path(store));
    files
        .retain(|(path, _)| !path.ends_with("status.json") && !path.ends_with("layers.json") && !path.starts_with('.'));
    files
}

fn serve(work: &Work, store: &str) -> Server {
    Server::of(work.command(&format!("serve --no-poll --store {store}")))
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
            let url = server.url(&format!("/catalogs/demo/{path}"));
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
    let work = Work::published();
    let first = serve(&work, "store");
    let sync = |from: &str, to: &str| -> Value {
        let reports = work.run(&format!("sync {from} {to} --json")).exits(0).json();
        reports[0].clone()
    };
    assert_eq!(sync(&first.url, "copy")["outcome"], "published");
    let again = sync(&first.url, "copy");
    assert_eq!(again["moved"]["objects"], 0, "a 304 and nothing else");

    work.poll("v2").exits(0);
    let update = sync(&first.url, "copy");
    assert_eq!(
        update["moved"]["objects"], 4,
        "the pointer, the snapshot and two shards: {update}"
    );
    assert_eq!(update["notRebuilt"].as_array().unwrap().len(), 0);
    let second = serve(&work, "copy");
    assert_eq!(answers(&second).await, answers(&first).await);

    sync(&second.url, "onward");
    let (onward, original) = (tree(&work, "onward"), tree(&work, "store"));
    assert_eq!(
        onward.len() + 17,
        tree(&work, "copy").len(),
        "the copy also has what v1 had alone: two shards, five objects of its own, and an image of ten"
    );
    assert!(onward.iter().all(|file| original.contains(file)));
    work.run("verify --store onward").exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn import_makes_copy_that_answers_like_origin() {
    let work = Work::published();
    let export = |more: &str| {
        let report = work.run(&format!("export --store store --to a.tar --json {more}"));
        report.exits(0).json()["objects"].as_u64().unwrap()
    };
    let import = || work.run("import --store high --receipt receipt.json --json a.tar");
    assert_eq!(export(""), 6, "four shards, the snapshot and the pointer");
    import().exits(0);
    import().exits(0);
    work.poll("v2").exits(0);
    assert_eq!(
        export("--receipt receipt.json"),
        4,
        "two shards, the snapshot and the pointer"
    );
    import().exits(0);
    assert_eq!(
        answers(&serve(&work, "high")).await,
        answers(&serve(&work, "store")).await
    );
    work.run("verify --store high").exits(0);

    // The same archive again, and an older one, are named with what they hold.
    let again = work.run("import --store high a.tar").exits(0);
    again.complains("the archive a.tar (demo ");
    again.complains(" at serial 2, exported at 20");
    again.complains("brings nothing new");
    fs::create_dir(work.path("disk")).unwrap();
    let named = work.run("export --store store --to disk --since 0").exits(1);
    named.complains("starts with \"0\"; see `history NAME`");
    let hash = work.run("ls --store store --json").exits(0).json()[0]["current"]["contentHash"].clone();
    let hash = hash.as_str().unwrap();
    let exported = work
        .run(&format!("export --store store --to disk --since {}", &hash[..8]))
        .exits(0);
    exported.prints(&format!("export --since {hash}"));
    let files: Vec<String> = tree(&work, "disk").into_iter().map(|(path, _)| path).collect();
    assert!(
        files.len() == 1 && files[0].contains(&format!("-{}.tar", &hash[..12])),
        "{files:?}"
    );
    work.run("rollback --store store demo --previous").exits(0);
    work.run("export --store store --to b.tar").exits(0);
    work.run("import --store high b.tar").exits(0);
    let older = work.run("import --store high a.tar").exits(1);
    older.complains("the archive a.tar (demo ");

    let archive = work.path("a.tar");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let before = tree(&work, "high");
    import().exits(1);
    assert_eq!(tree(&work, "high"), before);
}
