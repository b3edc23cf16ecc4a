//! Failing stores and damaged objects.

use std::sync::atomic::Ordering;

use api::HttpSettings;
use http::StatusCode;
use model::{Catalogs, Document, Key};
use storekit::{Action, Answer, Moment, conformance::put};

use crate::fixture::{LINES, Publication, publish};
use crate::world::{World, problem};

fn fail(world: &World, action: Action) {
    world.store.set_hook(move |call, moment| match moment {
        Moment::Before if call.action == action => Answer::Fail,
        _ => Answer::GoOn,
    });
}

#[tokio::test]
async fn failing_store_is_answered_with_503() {
    let world = World::new().await;
    fail(&world, Action::Get);
    let detail = "the catalog cannot be read at the moment; try again later";
    let unavailable = problem(503, "store-unavailable", detail, "retry-after: 5");
    assert_eq!(
        world.show("/catalogs/demo/api/v1/all", &[]).await,
        unavailable
    );
    fail(&world, Action::Head);
    assert_eq!(
        world.status("/readyz").await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(world.status("/healthz").await, StatusCode::OK);
    world.store.clear_hook();
    assert_eq!(world.status("/readyz").await, StatusCode::OK);
}

#[tokio::test]
async fn server_before_its_first_polls_is_not_ready() {
    let settings = HttpSettings::default();
    let ready = settings.ready.clone();
    ready.store(false, Ordering::Relaxed);
    let world = World::new().await.serving(settings);
    let detail = "the first polls of the catalogs have not ended yet; try again later";
    let not_ready = problem(503, "not-ready", detail, "retry-after: 5");
    assert_eq!(world.show("/readyz", &[]).await, not_ready);
    assert_eq!(world.status("/healthz").await, StatusCode::OK);
    assert_eq!(
        world.status("/catalogs/demo/content-hash").await,
        StatusCode::OK
    );
    ready.store(true, Ordering::Relaxed);
    assert_eq!(world.status("/readyz").await, StatusCode::OK);
}

#[tokio::test]
async fn failures_are_not_remembered() {
    let world = World::new().await;
    fail(&world, Action::Read);
    let failed = world.get("/catalogs/demo/packages/alpha", &[]).await;
    assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
    world.store.clear_hook();
    assert_eq!(
        world.status("/catalogs/demo/packages/alpha").await,
        StatusCode::OK
    );
}

#[tokio::test]
async fn broken_catalog_does_not_hide_the_others() {
    let world = World::new().await;
    let other = Publication::of("other");
    publish(&world.store, other, LINES).await;
    let names = ["demo", "other"].map(|name| name.parse().unwrap());
    put(
        &world.store,
        &Key::Catalogs,
        Catalogs::from_iter(names).to_bytes(),
    )
    .await;
    world
        .store
        .corrupt(&Key::Current("demo".parse().unwrap()), "{}");
    let broken = world.status("/catalogs/demo/all.json").await;
    assert_eq!(broken, StatusCode::SERVICE_UNAVAILABLE);
    let list = world.get("/catalogs", &[]).await.text();
    assert!(
        list.contains("\"other\"") && !list.contains("\"demo\""),
        "{list}"
    );
}
