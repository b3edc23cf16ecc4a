//! Compositions as catalogs: they follow their inputs, and stay served when they cannot.

use std::{path::Path, sync::Arc, time::Duration};

use model::{Availability, CatalogName, Key, Outcome, Snapshot, Status};
use publish::{
    Catalog, CatalogSource, ComposedSource, MirrorSettings, PollOptions, Report, Schedule,
};
use store::{StoreExt, read_stored};
use storekit::Action;
use tokio_util::sync::CancellationToken;
use upkeep::RollbackOptions;

use crate::support::catalogs::package;
use crate::support::site::{Site, ten, ten_but};

fn composed(name: &str, text: &str) -> Catalog {
    let name: CatalogName = name.parse().unwrap();
    let composition = serde_saphyr::from_str(text).unwrap();
    let source = ComposedSource::new(composition, Path::new("")).unwrap();
    Catalog::new(name, CatalogSource::Composed(Box::new(source)))
}

/// The whole package p5 and the head of p4, from the catalog `site`.
fn selection() -> Catalog {
    composed(
        "team",
        "inputs: [{catalog: site, select: {packages: [{name: p4}, {name: p5, channels: [{name: stable, minVersion: 0.0.0}]}]}}]",
    )
}

async fn poll(site: &Site, catalog: &Catalog) -> Report {
    site.mirror.poll(catalog, PollOptions::default()).await
}

async fn snapshot(site: &Site, name: &str) -> Snapshot {
    let object = site.current_of(name).await.snapshot;
    read_stored(&site.store, &object.digest).await.unwrap()
}

/// Publishes ten packages as `site`, and the composition of two of them.
async fn published() -> Site {
    let site = Site::start().await;
    site.push(&ten());
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let report = poll(&site, &selection()).await;
    assert_eq!(
        report.outcome,
        Outcome::Published,
        "{:?}",
        report.error_text()
    );
    site
}

/// Checks that nothing was published, and that the status says so.
async fn waits(site: &Site, catalog: &Catalog, reason: &str) {
    let name = catalog.name.as_str();
    let before = site.current_of(name).await;
    let report = poll(site, catalog).await;
    let error = report.error_text().unwrap_or_default();
    assert!(error.contains(reason), "{error}");
    assert_eq!(site.current_of(name).await, before);
    let key = Key::Status(catalog.name.clone());
    let (status, _) = site
        .store
        .read_document::<Status>(&key)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.error, Some(error));
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_follows_its_input_and_moves_only_what_it_selects() {
    let site = published().await;
    let (whole, team) = (snapshot(&site, "site").await, snapshot(&site, "team").await);
    let names: Vec<&str> = team
        .packages
        .iter()
        .map(|shard| shard.name.as_str())
        .collect();
    assert_eq!(names, ["p4", "p5"]);
    assert_eq!(team.package("p5"), whole.package("p5"));
    assert!(team.package("p4").unwrap().metas < whole.package("p4").unwrap().metas);

    assert_eq!(poll(&site, &selection()).await.outcome, Outcome::Unchanged);
    site.store.take_log();
    assert_eq!(poll(&site, &selection()).await.outcome, Outcome::Unchanged);
    assert_eq!(site.store.written(), []);

    // p6 is not selected: the composition only learns of the input's new state.
    let mut files = ten();
    files[6] = package("p6", 4);
    site.push(&files);
    site.poll().await;
    site.store.take_log();
    let report = poll(&site, &selection()).await;
    assert_eq!(report.outcome, Outcome::SourceDigestUpdated);
    assert_eq!(report.objects_published, 0);
    assert_eq!(snapshot(&site, "team").await, team);

    files[5] = package("p5", 4);
    site.push(&files);
    assert_eq!(site.poll().await.packages_validated, 1);
    let report = poll(&site, &selection()).await;
    // The findings of p5 are the input's, those of p4 its own.
    assert_eq!(report.packages_validated, 0);
    assert_eq!(report.outcome, Outcome::Published);
    assert_eq!(report.changes.changed, ["p5"]);
    let is_shard = |key: &&Key| key.to_string().starts_with("packages/");
    // By the poll of the input. The composition takes the same object.
    assert_eq!(site.store.written().iter().filter(is_shard).count(), 1);
    site.is_sound_as("team").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_composition_is_refused_and_its_input_is_not() {
    let site = published().await;
    let mut files = ten();
    // A channel without entries, which no selection of the whole package leaves out.
    let text = String::from_utf8(files[5].1.clone()).unwrap();
    let channel = r#"{"schema":"olm.channel","package":"p5","name":"empty","entries":[]}"#;
    files[5].1 = format!("{text}{channel}\n").into_bytes();
    site.push(&files);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    let team = composed("team", "inputs: [{catalog: site}]");
    waits(&site, &team, "package p5, channel empty").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_composition_is_published_although_packages_are_gone() {
    let site = published().await;
    let less = composed(
        "team",
        "inputs: [{catalog: site, select: {packages: [{name: p4}]}}]",
    );
    assert_eq!(poll(&site, &less).await.changes.removed, ["p5"]);
    let whole = composed("whole", "inputs: [{catalog: site}]");
    assert_eq!(poll(&site, &whole).await.outcome, Outcome::Published);
    let (input, copy) = (site.current().await, site.current_of("whole").await);
    assert_eq!(
        (copy.content_hash, copy.all),
        (input.content_hash, input.all)
    );
    assert_eq!(copy.image, input.image);
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_waits_for_an_input_that_is_not_there() {
    let site = published().await;
    let unavailable = Catalog {
        availability: Availability::Unavailable,
        ..site.catalog.clone()
    };
    poll(&site, &unavailable).await;
    let team = selection();
    waits(&site, &team, "waiting for site: it is Unavailable").await;
    site.poll().await;
    assert_eq!(poll(&site, &selection()).await.outcome, Outcome::Unchanged);

    // Its own image has no packages any more, so the old ones stay served.
    site.push(&vec![("README.md".to_owned(), Vec::new())]);
    site.poll().await;
    waits(
        &site,
        &team,
        "waiting for site: the new content was not published",
    )
    .await;

    publish::remove(&site.store, &site.catalog.name)
        .await
        .unwrap();
    waits(
        &site,
        &team,
        "waiting for site: the store has no such catalog",
    )
    .await;
    let chain = composed("chain", "inputs: [{catalog: other}]");
    let other = composed("other", "inputs: [{catalog: nowhere}]");
    poll(&site, &other).await;
    let error = poll(&site, &chain).await.error_text().unwrap();
    let expected = "waiting for other: it was never published: waiting for nowhere: the store has no such catalog";
    assert!(error.starts_with(expected), "{error}");
    let lacking = composed("lacking", "add: [{source: 'dir:/nowhere'}]");
    let error = poll(&site, &lacking).await.error_text().unwrap();
    let expected = "add dir:/nowhere: cannot pull the catalog: ";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_waits_for_an_input_that_another_key_signed() {
    let mut site = published().await;
    let pem = trust::SigningKey::generate_pem().unwrap();
    let key = trust::SigningKey::from_pem(pem.as_bytes()).unwrap();
    site.restart_with(MirrorSettings {
        signer: Some(trust::Signer::new(vec![key], Vec::new())),
        ..MirrorSettings::default()
    });
    let reason = "waiting for site: its current.json is not signed by a trusted key";
    waits(&site, &selection(), reason).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_of_the_input_moves_the_composition_and_its_own_stays() {
    let site = published().await;
    let first = site.current_of("team").await.content_hash;
    site.push(&ten_but(4, 5));
    site.poll().await;
    let second = poll(&site, &selection()).await.content_hash.unwrap();
    assert_ne!(second, first);

    let rollback = async |name: &str| site.rollback_of(name, RollbackOptions::default()).await;
    assert_eq!(rollback("team").await.content_hash, Some(first));
    assert_eq!(poll(&site, &selection()).await.outcome, Outcome::Unchanged);
    rollback("site").await;
    // The input is where the rollback of the composition was made of.
    assert_eq!(poll(&site, &selection()).await.content_hash, Some(first));
    site.push(&ten_but(5, 9));
    site.poll().await;
    assert_eq!(poll(&site, &selection()).await.outcome, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn pinned_input_outlives_forty_updates_and_collection() {
    let site = Site::published().await;
    let first = site.current().await.content_hash;
    let pinned = |packages: &str| {
        let text =
            format!("inputs: [{{catalog: 'site@{first}', select: {{packages: [{packages}]}}}}]");
        composed("team", &text)
    };
    assert_eq!(
        poll(&site, &pinned("{name: p4}")).await.outcome,
        Outcome::Published
    );
    for at in 0..40 {
        site.push(&ten_but(3, 4 + at));
        assert_eq!(site.poll().await.outcome, Outcome::Published);
    }
    let collected = site.collect().await;
    assert!(collected > 40, "{collected}");
    // The selection is edited after its input has moved on and the collection.
    let report = poll(&site, &pinned("{name: p3}")).await;
    assert_eq!(
        report.outcome,
        Outcome::Published,
        "{:?}",
        report.error_text()
    );
    let lines = snapshot(&site, "team").await;
    assert_eq!(lines.package("p3").unwrap().metas, 3);
    let expired = site.current().await.previous[3].content_hash;
    let text = format!("inputs: [{{catalog: 'site@{expired}'}}]");
    let kept = site.current().await.content_hash;
    let expected =
        format!("waiting for site: the store does not keep {expired} of it; it keeps {kept}");
    waits(&site, &composed("team", &text), &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composition_that_does_not_fit_is_tried_once() {
    let site = published().await;
    let text = "inputs: [{catalog: site, select: {packages: [{name: absent}]}}]";
    let broken = composed("team", text);
    waits(&site, &broken, "input site has no package absent").await;
    let report = poll(&site, &broken).await;
    assert!(report.failed_for_good(), "{report:?}");
    site.store.take_log();
    poll(&site, &broken).await;
    let reads = site.store.count(|action| matches!(action, Action::Get));
    // The two pointers and the two status documents.
    assert!(reads <= 5, "{:?}", site.store.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_polls_a_composition_when_its_input_was_published() {
    let site = published().await;
    let hourly = |catalog: &Catalog| Catalog {
        interval: Some(Duration::from_secs(3600)),
        ..catalog.clone()
    };
    let often = Catalog {
        interval: Some(Duration::from_millis(50)),
        ..site.catalog.clone()
    };
    let mirror = Arc::new(site.second_mirror());
    let stop = CancellationToken::new();
    let (to, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let schedule = Schedule::new(mirror, vec![hourly(&selection()), often], move |report| {
        let published = report.outcome == Outcome::Published;
        to.send((report.catalog.to_string(), published)).unwrap();
    });
    let running = tokio::spawn(schedule.run(stop.clone()));
    site.push(&ten_but(4, 7));
    let next = async {
        while let Some(report) = reports.recv().await {
            if report == ("team".to_owned(), true) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), next)
        .await
        .unwrap();
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_shard_of_an_input_is_mended_by_the_input() {
    let site = published().await;
    let shard = snapshot(&site, "site").await.package("p5").unwrap().stored;
    site.store.corrupt(
        &shard.with_kind(model::Kind::Package).key(),
        &b"damaged"[..],
    );
    let team = selection();
    let options = PollOptions {
        force: true,
        ..PollOptions::default()
    };
    let report = site.mirror.poll(&team, options.clone()).await;
    let error = report.error_text().unwrap_or_default();
    assert!(error.contains("p5"), "{error}");
    site.poll_forced().await;
    assert_eq!(site.mirror.poll(&team, options).await.error_text(), None);
    site.is_sound_as("team").await;
}
