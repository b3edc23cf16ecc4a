//! A reader with trusted keys.

use http::StatusCode;
use model::{CatalogName, Current, Document, Key};
use reader::ReaderSettings;
use store::Store;
use storekit::conformance::put;
use testkit::{CurrentBuilder, SnapshotBuilder};
use trust::{Signer, SigningKey, Trust};

use crate::fixture::LINES;
use crate::world::World;

/// A store that holds no caches between requests, and the key that its pointers are signed with.
struct SignedSite {
    world: World,
    signer: Signer,
}

impl SignedSite {
    /// Publishes LINES, signed.
    async fn new() -> Self {
        let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
        let settings = ReaderSettings {
            cache_bytes: 0,
            trust: Some(Trust::new(vec![key.public()])),
            ..ReaderSettings::default()
        };
        let site = Self {
            world: World::new().await.reading(settings),
            signer: Signer::new(vec![key], Vec::new()),
        };
        site.put_signed(site.world.demo.current.clone()).await;
        site
    }

    async fn put_signed(&self, current: Current) {
        let signed = self.signer.sign(&name(), current);
        put(&self.world.store, &Key::Current(name()), signed.to_bytes()).await;
    }

    async fn serial(&self) -> u64 {
        let answer = self.world.get("/catalogs/demo/current.json", &[]).await;
        assert_eq!(answer.status, StatusCode::OK);
        Current::from_bytes(answer.bytes()).unwrap().serial
    }
}

fn name() -> CatalogName {
    "demo".parse().unwrap()
}

fn next(site: &SignedSite, serial: u64) -> Current {
    CurrentBuilder::new(&site.world.demo.snapshot)
        .serial(serial)
        .build()
}

#[tokio::test]
async fn lower_signed_serial_is_refused_while_running_even_after_a_deletion() {
    let site = SignedSite::new().await;
    site.put_signed(next(&site, 2)).await;
    assert_eq!(site.serial().await, 2);
    site.put_signed(site.world.demo.current.clone()).await;
    assert_eq!(site.serial().await, 2);
    site.world
        .store
        .delete(&Key::Current(name()))
        .await
        .unwrap();
    let deleted = site.world.status("/catalogs/demo/current.json").await;
    assert_eq!(deleted, StatusCode::NOT_FOUND);
    site.put_signed(site.world.demo.current.clone()).await;
    assert_eq!(site.serial().await, 2);
    site.put_signed(next(&site, 3)).await;
    assert_eq!(site.serial().await, 3);
}

/// Other catalogs do not push it out of a cache.
#[tokio::test]
async fn last_verified_state_is_kept_whatever_else_is_read() {
    let site = SignedSite::new().await;
    assert_eq!(site.serial().await, 1);
    let built = SnapshotBuilder::new().build();
    for number in 0..200 {
        let name: CatalogName = format!("other-{number}").parse().unwrap();
        let signed = site
            .signer
            .sign(&name, CurrentBuilder::new(&built.snapshot).build());
        put(
            &site.world.store,
            &Key::Current(name.clone()),
            signed.to_bytes(),
        )
        .await;
        let status = site
            .world
            .status(&format!("/catalogs/{name}/content-hash"))
            .await;
        assert_eq!(status, StatusCode::OK);
    }
    // Unsigned, and with a higher serial.
    put(
        &site.world.store,
        &Key::Current(name()),
        next(&site, 9).to_bytes(),
    )
    .await;
    assert_eq!(site.serial().await, 1);
    assert_eq!(
        site.world.get("/catalogs/demo/all.json", &[]).await.text(),
        LINES
    );
}

#[tokio::test]
async fn unsigned_pointer_is_refused_without_an_earlier_state() {
    let site = SignedSite::new().await;
    put(
        &site.world.store,
        &Key::Current(name()),
        next(&site, 9).to_bytes(),
    )
    .await;
    let status = site.world.status("/catalogs/demo/all.json").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}
