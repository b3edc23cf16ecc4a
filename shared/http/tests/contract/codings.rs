//! The whole catalog decodes to the content hash in every coding.

use http::StatusCode;
use model::{Encoding, Sha256};

use crate::world::{SITUATIONS, World};

#[tokio::test]
async fn each_coding_of_all_decodes_to_the_content_hash() {
    for situation in SITUATIONS {
        let world = World::situated(situation).await;
        for path in [
            "/catalogs/demo/all.json",
            "/catalogs/demo/api/v1/all",
            "/catalogs/demo/api/v1/metas",
        ] {
            for coding in ["zstd", "gzip", "identity"] {
                let answer = world.get(path, &[("accept-encoding", coding)]).await;
                assert_eq!(answer.status, StatusCode::OK);
                let hash = Sha256::of(&answer.decoded());
                assert_eq!(hash, world.demo.current.content_hash, "{path} {coding}");
                assert_eq!(answer.header("content-length"), answer.bytes().len().to_string());
                // Bytes that are stored have the tag of the stored object.
                let tag = Sha256::of(answer.bytes()).to_entity_tag(Encoding::Identity);
                assert_eq!(answer.header("etag"), tag);
            }
        }
    }
}
