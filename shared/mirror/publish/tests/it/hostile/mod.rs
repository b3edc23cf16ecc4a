//! Hostile images: one for each attack, polled over a catalog that is published already.

mod kinds;
mod outcomes;

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Key;
use outcomes::Row;
use publish::{PollError, SourceLimits};
use source::{Error, Sources, UnpackError};
use testkit::{Registry, variant};
use tokio::task::JoinSet;

use crate::site::{self, Site, image, layer};

#[tokio::test(flavor = "multi_thread")]
async fn hostile_image_is_refused_or_read_safely_and_old_state_stays() {
    // Shared: setting up TLS for each row would take most of the time of the test.
    let images = site::images(&SourceLimits::default());
    let rows = outcomes::refused().into_iter().map(|row| (row, false));
    let rows = rows.chain(outcomes::read().into_iter().map(|row| (row, true)));
    let mut checks = JoinSet::new();
    for (row, is_read) in rows {
        checks.spawn(check(row, is_read, images.clone()));
    }
    // A check that fails has panicked with its reason.
    let mut failed = 0;
    while let Some(checked) = checks.join_next().await {
        failed += usize::from(checked.is_err());
    }
    assert_eq!(failed, 0, "rows failed, see the panics above");
}

async fn check((trick, attack, want): Row, is_read: bool, images: Sources) {
    let site = Site::registry(images, site::settings(&SourceLimits::default())).await;
    site.push(&image([layer("configs/old.yaml", "old")]));
    assert_eq!(site.poll().await.error_text(), None);
    let before = objects(&site);
    site.push(&attack);
    if is_read {
        let report = site.poll_forced().await;
        assert_eq!(report.error_text(), None, "{trick}");
        assert_eq!(served(&site).await, want, "{trick}");
    } else {
        let report = site.poll().await;
        let error = report
            .error
            .as_ref()
            .unwrap_or_else(|| panic!("{trick} was published"));
        let text = report.error_text().unwrap();
        assert_eq!(error_name(error), want, "{trick}: {text}\n{error:?}");
        assert!(
            !text.contains(char::is_control) && text.len() < 5000,
            "{trick}: {text}"
        );
        assert!(
            report.content_hash.is_some(),
            "{trick}: the old state is not reported"
        );
        assert_eq!(objects(&site), before, "{trick}: something was written");
    }
    site.is_sound(trick).await;
}

/// Returns everything in the store but the one document that tells of failures.
fn objects(site: &Site<Registry>) -> BTreeMap<Key, Bytes> {
    let mut objects = site.store.objects();
    objects.remove(&Key::Status(site.catalog.name.clone()));
    objects
}

/// Returns the packages that are published, in order.
async fn served(site: &Site<Registry>) -> String {
    let snapshot = site.snapshot().await;
    let names: Vec<_> = snapshot
        .packages
        .iter()
        .map(|shard| shard.name.as_str())
        .collect();
    names.join(" ")
}

/// Returns the name of an error, after that of the part of the image that it is about.
fn error_name(error: &PollError) -> String {
    let error = match error {
        PollError::Image(error) => error,
        PollError::Render(error) => return format!("render {}", variant(error)),
        other => return variant(other),
    };
    match error {
        Error::Unpack(UnpackError::Layer { source, .. }) => format!("layer {}", variant(source)),
        Error::Unpack(UnpackError::Link { source, .. }) => format!("link {}", variant(source)),
        Error::Image(error) => format!("image {}", variant(error)),
        other => variant(other),
    }
}
