use model::{Kind, ObjectDigest, Snapshot, StoredDocument};
use upkeep::{ObjectProblem, verify};

use super::kit::{World, built, name};

/// Publishes a Snapshot that says something else than its lines, and returns the problems that are
/// found in it.
async fn problems_of(change: fn(&mut Snapshot)) -> Vec<ObjectProblem> {
    let world = World::new();
    let mut built = built(&["a", "b"]);
    change(&mut built.snapshot);
    let stored = built.snapshot.to_stored().unwrap();
    let key = ObjectDigest::of(&stored).with_kind(Kind::Snapshot).key();
    built.objects.insert(key.clone(), stored.into());
    world.publish_built("c", &built).await.unwrap();
    let found = verify(&world.store, &name("c")).await.unwrap().findings;
    assert!(found.iter().all(|finding| finding.key == key), "{found:?}");
    found.into_iter().map(|finding| finding.problem).collect()
}

#[tokio::test]
async fn verify_finds_names_and_counts_that_lines_contradict() {
    assert_eq!(problems_of(|_| {}).await, []);
    let lines = [ObjectProblem::Disagrees("the lines of its shards")];
    let other_name = |snapshot: &mut Snapshot| snapshot.packages[0].name = "aa".into();
    assert_eq!(problems_of(other_name).await, lines);
    let other_counts = |snapshot: &mut Snapshot| {
        snapshot.packages[0].metas = 0;
        snapshot.packages[1].metas = 2;
    };
    assert_eq!(problems_of(other_counts).await, lines);
    let numbers = [ObjectProblem::Disagrees(
        "the numbers in it and in current.json",
    )];
    assert_eq!(problems_of(|snapshot| snapshot.metas = 3).await, numbers);
}
