//! The page and what it reads. A browser drives it in `scripts/checks/page.sh`.

use http::StatusCode;
use model::Sha256;
use olm::SEARCH;

use crate::world::World;

const SEARCH_PATH: &str = "/catalogs/demo/search.json";

#[tokio::test]
async fn page_names_its_files_by_their_content_and_allows_nothing_else() {
    let world = World::new().await;
    let page = world.get("/", &[]).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert!(page.header("cache-control").starts_with("public, max-age=60"));
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.split("; ").any(|found| found == part), "{policy}");
    }
    let html = page.text();
    let files = html
        .split('"')
        .filter(|part| part.starts_with("page/"))
        .collect::<Vec<_>>();
    assert_eq!(files.len(), 2, "{html}");
    for (file, media) in files
        .iter()
        .zip(["text/css; charset=utf-8", "text/javascript; charset=utf-8"])
    {
        for coding in ["identity", "gzip", "zstd"] {
            let answer = world.get(&format!("/{file}"), &[("accept-encoding", coding)]).await;
            assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, media));
            assert!(answer.header("cache-control").ends_with("immutable"));
            let hash = Sha256::of(&answer.decoded()).to_string();
            assert!(file.contains(&hash[..16]), "{file} is not {hash}");
        }
    }
    assert_eq!(world.status("/page/0000000000000000.js").await, StatusCode::NOT_FOUND);
    // All of it in one view of a new browser.
    let sizes = ["/".to_owned(), format!("/{}", files[0]), format!("/{}", files[1])];
    let mut sum = 0;
    for path in sizes {
        sum += world.get(&path, &[("accept-encoding", "gzip")]).await.bytes().len();
    }
    assert!(sum <= 20 << 10, "{sum} bytes");
}

#[tokio::test]
async fn search_document_is_the_stored_one_in_each_coding() {
    let world = World::new().await;
    let object = world.demo.snapshot.facts(SEARCH.name).unwrap();
    let stored = world.get(&format!("/{}", object.key()), &[]).await.decoded();
    let mut tags = std::collections::BTreeSet::new();
    for coding in ["identity", "gzip", "zstd"] {
        let answer = world.get(SEARCH_PATH, &[("accept-encoding", coding)]).await;
        assert_eq!(answer.decoded(), stored, "{coding}");
        let tag = answer.header("etag").to_owned();
        assert!(tags.insert(tag.clone()), "{coding} has the tag of other bytes");
        let again = [("accept-encoding", coding), ("if-none-match", &tag)];
        assert_eq!(world.get(SEARCH_PATH, &again).await.status, StatusCode::NOT_MODIFIED);
    }
    let refused = world.get(SEARCH_PATH, &[("accept-encoding", "br;q=1, *;q=0")]).await;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
}
