//! The promise of the content hash, in every coding.

use http::StatusCode;
use layout::Sha256;
use serve::Settings;

use crate::{
    fixture::{LINES, Publication},
    world::World,
};

/// Small caches make every body a stream.
fn worlds() -> [(Settings, bool); 4] {
    let streaming = || Settings {
        cache_bytes: 0,
        ..Settings::default()
    };
    [
        (Settings::default(), false),
        (Settings::default(), true),
        (streaming(), false),
        (streaming(), true),
    ]
}

#[tokio::test]
async fn every_coding_of_the_whole_decodes_to_the_content_hash() {
    for (settings, identity) in worlds() {
        let publication = Publication {
            identity,
            ..Publication::default()
        };
        let world = World::with(settings, publication, LINES).await;
        for path in [
            "/catalogs/demo/all.json",
            "/catalogs/demo/api/v1/all",
            "/catalogs/demo/api/v1/metas",
        ] {
            for coding in ["zstd", "gzip", "identity"] {
                let answer = world.get(path, &[("accept-encoding", coding)]).await;
                assert_eq!(answer.status, StatusCode::OK);
                assert_eq!(
                    Sha256::of(&answer.decoded()),
                    world.demo.current.content_hash,
                    "{path} {coding}"
                );
                assert_eq!(answer.header("content-length"), answer.bytes().len().to_string());
                assert!(
                    answer
                        .header("etag")
                        .contains(&world.demo.current.content_hash.to_base64url())
                );
            }
        }
    }
}
