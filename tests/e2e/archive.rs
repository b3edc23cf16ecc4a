//! Catalogs from archives on a web server.

use tempfile::TempDir;
use testkit::{FileServer, Layer};
use tokio::task::block_in_place;

use crate::support::{
    binary::{Ran, poll_plain, run},
    catalogs,
};

const PATH: &str = "/catalog-1.0.tar.gz";

/// Packs a version of the example into a folder, as forges do.
fn archive(version: &str) -> Layer {
    let files = catalogs::files(&catalogs::folder(version));
    files
        .iter()
        .fold(Layer::new().dir("catalog-1.0"), |layer, (path, bytes)| {
            layer.file(&format!("catalog-1.0/{path}"), bytes)
        })
}

fn render(server: &FileServer, source: &str) -> Ran {
    block_in_place(|| run(["render", "--plain-http", server.host(), source]))
}

#[tokio::test(flavor = "multi_thread")]
async fn render_of_archive_equals_render_of_its_folder() {
    let server = FileServer::start().await;
    server.put(PATH, archive("v1").archive());
    server.put("/bad.tar", "x");
    let folder = catalogs::folder("v1").display().to_string();
    let want = block_in_place(|| run(["render", &folder])).exits(0).stdout;
    for folder in ["", "#catalog-1.0"] {
        let source = format!("{}{folder}", server.url(PATH));
        assert_eq!(render(&server, &source).exits(0).stdout, want);
    }
    let absent = format!("{}#none", server.url(PATH));
    let refused = render(&server, &absent).exits(1);
    assert!(refused.stderr.contains("has no folder none"), "{}", refused.stderr);
    let refused = render(&server, &server.url("/bad.tar")).exits(1);
    assert!(refused.stderr.contains("/bad.tar"), "{}", refused.stderr);
    let refused = render(&server, &server.url("/none.tar")).exits(1);
    assert!(refused.stderr.contains("404"), "{}", refused.stderr);
    let refused = block_in_place(|| run(["render", &server.url(PATH)])).exits(1);
    assert!(refused.stderr.contains("--plain-http"), "{}", refused.stderr);
}

/// A change of the folder in the URL has to be published although the archive is the same.
#[tokio::test(flavor = "multi_thread")]
async fn poll_publishes_changed_archive_and_changed_folder() {
    let server = FileServer::start().await;
    let store = TempDir::new().unwrap();
    let poll = |source: String, code| drop(poll_plain(&store, server.host(), &source).exits(code));
    server.put(PATH, archive("v1").archive());
    poll(server.url(PATH), 10);
    poll(server.url(PATH), 0);
    server.put(PATH, archive("v2").archive());
    poll(server.url(PATH), 10);
    let both = [("old", "v1"), ("new", "v2")]
        .iter()
        .fold(Layer::new(), |layer, (folder, version)| {
            let files = catalogs::files(&catalogs::folder(version));
            files.iter().fold(layer, |layer, (path, bytes)| {
                layer.file(&format!("{folder}/{path}"), bytes)
            })
        });
    server.put(PATH, both.archive());
    poll(format!("{}#old", server.url(PATH)), 10);
    poll(format!("{}#new", server.url(PATH)), 10);
    poll(format!("{}#new", server.url(PATH)), 0);
}
