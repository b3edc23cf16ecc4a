//! Hostile images: one for each attack, polled over a catalog that is published already.

mod kinds;
mod outcomes;
mod row;
mod site;
mod slow;

use catalog_mirror_publish::SourceLimits;
use row::{Row, Then};
use site::Site;
use source::Sources;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_image_is_refused_or_read_safely_and_old_state_stays() {
    let default = site::images(&SourceLimits::default());
    let mut checks = JoinSet::new();
    for row in outcomes::rows() {
        // Shared where possible: setting up TLS for each row would take most of the time of the test.
        let images = match row.limits == SourceLimits::default() {
            true => default.clone(),
            false => site::images(&row.limits),
        };
        checks.spawn(async move { check(&row, images).await });
    }
    // A check that fails has panicked with its reason.
    let mut failed = 0;
    while let Some(checked) = checks.join_next().await {
        failed += usize::from(checked.is_err());
    }
    assert_eq!(failed, 0, "rows failed, see the panics above");
}

async fn check(row: &Row, images: Sources) {
    let site = Site::start(images, &row.limits).await;
    let trick = row.trick;
    let before = site.objects();
    site.push(&row.image);
    match row.then {
        Then::Refused(is_right) => {
            let report = site.poll(false).await;
            let error = report.error.as_ref().unwrap_or_else(|| panic!("{trick} was published"));
            let text = report.error_text().unwrap();
            assert!(is_right(error), "{trick}: {text}\n{error:?}");
            assert!(!text.contains(char::is_control) && text.len() < 5000, "{trick}: {text}");
            assert!(
                report.content_hash.is_some(),
                "{trick}: the report does not describe the old state"
            );
            assert_eq!(site.objects(), before, "{trick}: something was written");
            assert_eq!(site.served().await, "old", "{trick}");
        }
        Then::Reads(packages) => {
            let report = site.poll(true).await;
            assert_eq!(report.error_text(), None, "{trick}");
            assert_eq!(site.served().await, packages, "{trick}");
        }
    }
    site.is_sound(trick).await;
}
