//! The page and what it reads. A browser drives it in `scripts/checks/page.sh`.

use api::HttpSettings;
use http::StatusCode;
use model::Sha256;

use crate::world::World;

#[tokio::test]
async fn page_names_its_files_by_their_content_and_allows_nothing_else() {
    let world = World::new().await;
    let page = world.get("/", &[]).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert!(
        page.header("cache-control")
            .starts_with("public, max-age=60")
    );
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.split("; ").any(|found| found == part), "{policy}");
    }
    let html = page.text();
    let files = html.split('"').filter(|part| part.starts_with("page/"));
    let files: Vec<&str> = files.collect();
    assert_eq!(files.len(), 3, "{html}");
    let compressed = world.get("/", &[("accept-encoding", "gzip")]).await;
    let mut view = compressed.bytes().len();
    let media =
        ["css", "javascript", "javascript"].map(|kind| format!("text/{kind}; charset=utf-8"));
    for (file, media) in files.iter().zip(&media) {
        for coding in ["identity", "gzip", "zstd"] {
            let answer = world
                .get(&format!("/{file}"), &[("accept-encoding", coding)])
                .await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (StatusCode::OK, media.as_str())
            );
            assert!(answer.header("cache-control").ends_with("immutable"));
            let hash = Sha256::of(&answer.decoded()).to_string();
            assert!(file.contains(&hash[..16]), "{file} is not {hash}");
            view += if coding == "gzip" {
                answer.bytes().len()
            } else {
                0
            };
        }
    }
    assert_eq!(
        world.status("/page/0000000000000000.js").await,
        StatusCode::NOT_FOUND
    );
    assert!(view <= 32 << 10, "a new browser takes {view} bytes");
}

#[tokio::test]
async fn page_has_the_title_of_the_site_as_text() {
    let settings = HttpSettings {
        title: Some("R&D <script>\"".to_owned()),
        ..HttpSettings::default()
    };
    let world = World::new().await.serving(settings);
    let html = world.get("/", &[]).await.text().to_owned();
    let title = "R&amp;D &lt;script>&quot;";
    for part in [
        format!("<title>{title}</title>"),
        format!("<meta name=\"application-name\" content=\"{title}\">"),
    ] {
        assert!(html.contains(&part), "{html}");
    }
}
