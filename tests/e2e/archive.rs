//! Catalogs from archives on a web server.

use testkit::{FileServer, Layer};

use crate::support::{catalogs, work::Work};

const PATH: &str = "/catalog-1.0.tar.gz";

/// Packs a version of the example into a folder, as forges do.
fn archive(version: &str) -> Layer {
    catalogs::add(Layer::new(), "catalog-1.0", &catalogs::example(version))
}

#[tokio::test(flavor = "multi_thread")]
async fn render_of_archive_equals_render_of_its_folder() {
    let (server, work) = (FileServer::start().await, Work::new());
    server.put(PATH, archive("v1").archive());
    let render = |source: &str| work.run(&format!("render --plain-http {} {source}", server.host()));
    let folder = catalogs::folder("v1");
    let want = work.run(&format!("render {}", folder.display())).exits(0).stdout;
    for folder in ["", "#catalog-1.0"] {
        let source = format!("{}{folder}", server.url(PATH));
        assert_eq!(render(&source).exits(0).stdout, want);
    }
    let refused = work.run(&format!("render {}", server.url(PATH)));
    refused.exits(1).complains("--plain-http");
}

/// A change of the folder in the URL has to be published although the archive is the same.
#[tokio::test(flavor = "multi_thread")]
async fn poll_publishes_changed_archive_and_changed_folder() {
    let (server, work) = (FileServer::start().await, Work::new());
    let poll = |folder: &str, code| {
        let source = format!("{}{folder}", server.url(PATH));
        work.poll_plain(server.host(), &source).exits(code);
    };
    server.put(PATH, archive("v1").archive());
    poll("", 10);
    poll("", 0);
    server.put(PATH, archive("v2").archive());
    poll("", 10);
    let old = catalogs::add(Layer::new(), "old", &catalogs::example("v1"));
    let both = catalogs::add(old, "new", &catalogs::example("v2"));
    server.put(PATH, both.archive());
    poll("#old", 10);
    poll("#new", 10);
    poll("#new", 0);
}
