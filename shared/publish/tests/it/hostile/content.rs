//! FBC that is too much, too deep, or made for the logs.

use catalog_mirror_publish::{PollError, SourceLimits};
use render::RenderError;
use testkit::Layer;

use super::row::{Row, fbc, good, reads, refused};

pub(crate) fn rows() -> Vec<Row> {
    [documents(), catalogs(), ignored()].into_iter().flatten().collect()
}

fn is_invalid(error: &PollError) -> bool {
    matches!(error, PollError::Render(RenderError::Invalid { .. }))
}

fn is_over(error: &PollError, name: &str) -> bool {
    matches!(error, PollError::Render(RenderError::Limit(limit)) if limit.name == name)
}

fn with(content: impl AsRef<[u8]>) -> Layer {
    good().file("configs/x", content)
}

fn documents() -> Vec<Row> {
    let bomb = (1..10).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |bomb, level| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("{bomb}a{level}: &a{level} [{aliases}]\n")
    });
    let text = |length: usize| format!("{{\"schema\":\"x\",\"v\":\"{}\"}}", "x".repeat(length));
    vec![
        refused("aliases of aliases", with(bomb), is_invalid),
        refused("an alias of itself", with("a: &a [*a]\n"), is_invalid),
        refused("deep JSON", with("{\"a\":".repeat(20_000)), is_invalid),
        refused("deep YAML", with(format!("a: {}", "[".repeat(20_000))), is_invalid),
        refused("a large document", with(text(100_000)), is_invalid)
            .with(|limits| limits.catalog.document.document_bytes = 50_000),
        refused(
            "an error of megabytes",
            with(format!("{{\"v\": 1e{}}}", "9".repeat(1 << 20))),
            is_invalid,
        ),
        refused(
            "an error with control characters",
            with("a: !!int \"\\e[2J\\n\"\n"),
            is_invalid,
        ),
        refused("a text", with("no catalog"), is_invalid),
        refused("bytes", with([0u8, 159, 146, 150]), is_invalid),
    ]
}

fn catalogs() -> Vec<Row> {
    let many = || with("{}\n".repeat(100) + &"{\"schema\":\"x\"}\n".repeat(100));
    let packages = (0..50).fold(good(), |layer, at| {
        layer.file(&format!("configs/p{at}"), fbc(&format!("p{at}")))
    });
    let name = format!("{{\"schema\":\"x\",\"name\":\"{}\"}}", "n".repeat(10_000));
    vec![
        refused("documents", many(), |error| is_over(error, "documents")).with(|limits| limits.catalog.documents = 50),
        refused("packages", packages, |error| is_over(error, "packages")).with(|limits| limits.catalog.packages = 50),
        refused("bytes", many(), |error| is_over(error, "contentBytes"))
            .with(|limits| limits.catalog.content_bytes = 500),
        refused("names", with(name), |error| is_over(error, "nameBytes"))
            .with(|limits| limits.catalog.name_bytes = 9000),
        refused(
            "files that are no FBC",
            (0..100).fold(good(), |layer, at| layer.file(&format!("configs/bad{at}"), "[")),
            |error| is_over(error, "documents"),
        )
        .with(|limits| limits.catalog.documents = 50),
    ]
}

fn ignored() -> Vec<Row> {
    let patterns = || {
        good()
            .file("configs/.indexignore", "*.md\n".repeat(1000))
            .file("configs/x.md", "[")
    };
    let small = |limits: &mut SourceLimits| limits.catalog.ignore_bytes = 4999;
    vec![
        reads("as many patterns as may be", patterns(), "good").with(|limits| limits.catalog.ignore_bytes = 5000),
        refused("too many patterns", patterns(), |error| is_over(error, "ignoreBytes")).with(small),
        refused(
            "a line that is too long",
            good().file("configs/.indexignore", "x".repeat(65_536)),
            |error| is_invalid(error) || is_over(error, "ignoreBytes"),
        )
        .with(|limits| limits.catalog.ignore_bytes = 1 << 20),
    ]
}
