//! Search for packages.

use http::StatusCode;
use rstest::rstest;
use serde_json::Value;

use crate::fixture::{LINES, Publication, publish};
use crate::world::World;

const PATH: &str = "/catalogs/demo/search";

async fn search(world: &World, query: &str) -> Value {
    let answer = world.get(&format!("{PATH}{query}"), &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    serde_json::from_slice(answer.bytes()).unwrap()
}

#[rstest]
#[case("?q=Alph%C3%A1", 1, &["alpha"])]
#[case("?q=gama", 1, &["gamma"])]
#[case("?q=alpha+beta", 0, &[])]
#[case("", 3, &["alpha", "beta", "gamma"])]
#[case("?limit=1&offset=1", 3, &["beta"])]
#[case("?limit=0", 3, &[])]
#[case("?offset=7", 3, &[])]
#[case("?limit=100&arch=AMD64", 3, &["alpha", "beta", "gamma"])]
#[case("?q=g%61ma&q=beta&arch=&category=", 1, &["gamma"])]
#[case("?arch=arm64", 0, &[])]
#[tokio::test]
async fn search_answers_with_total_and_page(
    #[case] query: &str,
    #[case] total: u64,
    #[case] packages: &[&str],
) {
    for cache_bytes in [0, 64 << 20] {
        let world = World::new().await.caching(cache_bytes);
        let found = search(&world, query).await;
        assert_eq!(found["total"], total, "{found}");
        assert_eq!(
            found["contentHash"],
            world.demo.current.content_hash.to_string()
        );
        let names = found["results"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|hit| hit["package"].as_str().unwrap()).collect();
        assert_eq!(names, packages);
        let limit = query
            .split(['?', '&'])
            .find_map(|pair| pair.strip_prefix("limit="));
        let limit = limit.unwrap_or("20");
        assert_eq!(found["limit"].to_string(), limit);
    }
}

#[tokio::test]
async fn search_is_answered_304_until_its_answer_changes() {
    let world = World::new().await;
    let answer = world.get(&format!("{PATH}?q=alpha"), &[]).await;
    let known = [("if-none-match", answer.header("etag"))];
    let status = async |query: &str| world.get(&format!("{PATH}?q={query}"), &known).await.status;
    assert_eq!(status("alpha").await, StatusCode::NOT_MODIFIED);
    assert_eq!(status("beta").await, StatusCode::OK);
    let lines = LINES.replace("alpha", "alphabet");
    publish(&world.store, Publication::default(), &lines).await;
    assert_eq!(status("alpha").await, StatusCode::OK);
}

#[tokio::test]
async fn search_refuses_what_it_cannot_answer() {
    let world = World::new().await;
    for (query, problem) in [
        ("?query=a", "unknown-parameter"),
        ("?limit=ten", "bad-page"),
        ("?limit=101", "bad-page"),
        ("?offset=-1", "bad-page"),
        ("?q=1+2+3+4+5+6+7+8+9+10+11", "too-many-words"),
    ] {
        let answer = world.get(&format!("{PATH}{query}"), &[]).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(
            answer.text().contains(problem),
            "{query}: {}",
            answer.text()
        );
    }
    let unknown = world.get("/catalogs/other/search?q=a", &[]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn search_in_state_without_texts_says_what_to_do() {
    let publication = Publication {
        search: false,
        ..Publication::default()
    };
    let world = World::of(publication, LINES).await;
    for path in [format!("{PATH}?q=a"), format!("{PATH}.json")] {
        let answer = world.get(&path, &[]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert!(answer.text().contains("poll --force"), "{}", answer.text());
    }
}
