//! A function with the least memory that AWS offers.

use serde_json::json;

use crate::world::{World, outcomes};

#[tokio::test(flavor = "multi_thread")]
async fn function_of_128_mb_refuses_what_does_not_fit_and_publishes_the_rest() {
    let names = ["first", "large", "last"];
    let mut world = World::start(&names, &[("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")]).await;
    world.push("first", 1);
    world.push("last", 1);
    // Half of the memory is for documents, and a document may take eight times its size.
    let text = |bytes: usize| format!("schema: olm.package\nname: p\nv: {}\n", "x".repeat(bytes));
    world.push_text("large", &text(8 << 20));
    let answer = world.handle(json!({"catalogs": names})).await.unwrap();
    let expected = [("first", "published"), ("large", "failed"), ("last", "published")];
    assert_eq!(outcomes(&answer), expected);
    let error = world.status("large").await.error.unwrap();
    assert!(error.contains("exceeds the limit memoryBytes of 67108864"), "{error}");
    assert!(error.contains("larger limits.memoryBytes"), "{error}");
    world.push_text("large", &text(7 << 20));
    world.restart();
    let answer = world.handle(json!({"catalogs": ["large"]})).await.unwrap();
    assert_eq!(outcomes(&answer), [("large", "published")]);
}
