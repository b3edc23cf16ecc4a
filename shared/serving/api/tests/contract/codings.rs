//! Each resource in every coding.

use http::StatusCode;
use model::{Document, Encoding, Sha256, decode_zstd};
use olm::SEARCH;

use crate::fixture::{LINES, Publication, publish};
use crate::world::{SITUATIONS, World};

/// Returns the paths of resources that have several codings, with the hash of the content and the
/// tag of each coding. Bytes that are stored have the tag of the object, others that of the content
/// and the coding.
fn resources(world: &World) -> Vec<(&'static str, Sha256, [String; 3])> {
    let (snapshot, current) = (&world.demo.snapshot, &world.demo.current);
    let stored = |sha256: Sha256| sha256.to_entity_tag(Encoding::Identity);
    let content = current.content_hash;
    let [zstd, gzip] =
        [current.all.zstd, current.all.gzip].map(|object| stored(object.digest.sha256));
    let all = [zstd, gzip, stored(content)];
    let alpha = &snapshot.packages[0];
    let [_, gzip, identity] =
        Encoding::ALL.map(|encoding| alpha.lines.sha256.to_entity_tag(encoding));
    let package = [stored(alpha.stored.sha256), gzip, identity];
    let pointer = Sha256::of(&current.to_bytes());
    let search = snapshot.facts(SEARCH.name).unwrap();
    let facts = decode_zstd(&world.store.objects()[&search.key()], 1 << 20).unwrap();
    let facts_tags = ["", "-gzip", "-identity"]
        .map(|end| format!("\"{}{end}\"", search.digest.sha256.to_base64url()));
    vec![
        ("/catalogs/demo/all.json", content, all.clone()),
        ("/catalogs/demo/api/v1/all", content, all.clone()),
        ("/catalogs/demo/api/v1/metas", content, all),
        ("/catalogs/demo/packages/alpha", alpha.lines.sha256, package),
        (
            "/catalogs/demo/current.json",
            pointer,
            Encoding::ALL.map(|encoding| pointer.to_entity_tag(encoding)),
        ),
        ("/catalogs/demo/search.json", Sha256::of(&facts), facts_tags),
    ]
}

#[tokio::test]
async fn each_coding_decodes_to_the_content_under_a_tag_of_its_own() {
    for situation in SITUATIONS {
        let mut world = World::situated(situation).await;
        // Each publication that the pointer remembers makes it longer. One below 1 KiB is sent
        // plain.
        for _ in 0..3 {
            let publication = Publication {
                identity: situation.1,
                ..Publication::default()
            };
            world.demo = publish(&world.store, publication, LINES).await;
        }
        for (path, content, tags) in resources(&world) {
            for (encoding, tag) in Encoding::ALL.into_iter().zip(&tags) {
                let stated = encoding.content_encoding();
                let coding = stated.unwrap_or("identity");
                let answer = world.get(path, &[("accept-encoding", coding)]).await;
                assert_eq!(Sha256::of(&answer.decoded()), content, "{path} {coding}");
                assert_eq!(
                    answer.header("content-encoding"),
                    stated.unwrap_or_default()
                );
                assert_eq!(answer.header("etag"), tag, "{path} {coding}");
                // Nothing stored is a gzip of one package.
                let is_streamed =
                    situation.0 == 0 && path.contains("packages") && encoding == Encoding::Gzip;
                let length = if is_streamed {
                    String::new()
                } else {
                    answer.bytes().len().to_string()
                };
                assert_eq!(answer.header("content-length"), length, "{path} {coding}");
                for other in &tags {
                    let known = [("accept-encoding", coding), ("if-none-match", other)];
                    let is_known = world.get(path, &known).await.status == StatusCode::NOT_MODIFIED;
                    assert_eq!(is_known, other == tag, "{path} {coding} {other}");
                }
            }
            let refused = world
                .get(path, &[("accept-encoding", "br;q=1, *;q=0")])
                .await;
            assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE, "{path}");
        }
    }
}
