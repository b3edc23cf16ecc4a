//! The whole catalog decodes to the content hash in every coding.

use http::StatusCode;
use model::Sha256;

use crate::{
    fixture::{LINES, Publication},
    world::{World, cached},
};
use reader::ReaderSettings;

/// Small caches make every body a stream.
fn worlds() -> [(ReaderSettings, bool); 4] {
    let streaming = || cached(0);
    [
        (ReaderSettings::default(), false),
        (ReaderSettings::default(), true),
        (streaming(), false),
        (streaming(), true),
    ]
}

#[tokio::test]
async fn each_coding_of_all_decodes_to_the_content_hash() {
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
                // Bytes that are stored have the tag of the stored object.
                assert_eq!(answer.header("etag"), Sha256::of(answer.bytes()).to_entity_tag());
            }
        }
    }
}
