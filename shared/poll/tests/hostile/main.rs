//! Hostile images: one for each trick, polled over a catalog that is published already.

mod content;
mod links;
mod manifests;
mod packing;
mod paths;
mod row;
mod site;
mod tars;
mod whiteouts;

use image::Images;
use poll::Limits;
use row::{Row, Then};
use site::Site;
use tokio::task::JoinSet;

/// All classes, as the README of `image` lists them.
fn classes() -> [(&'static str, Vec<Row>); 7] {
    [
        ("paths", paths::rows()),
        ("links", links::rows()),
        ("whiteouts", whiteouts::rows()),
        ("tar", tars::rows()),
        ("packing", packing::rows()),
        ("manifests", manifests::rows()),
        ("content", content::rows()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_trick_is_refused_or_handled_and_the_old_state_stays() {
    let usual = site::images(&Limits::default());
    let mut checks = JoinSet::new();
    for (class, rows) in classes() {
        for row in rows {
            // Setting up TLS takes longer than all else.
            let images = match row.limits == Limits::default() {
                true => usual.clone(),
                false => site::images(&row.limits),
            };
            checks.spawn(async move { check(class, &row, images).await });
        }
    }
    // Each that fails has told why.
    let mut failed = 0;
    while let Some(checked) = checks.join_next().await {
        failed += usize::from(checked.is_err());
    }
    assert_eq!(failed, 0, "tricks were not met as they should be");
}

async fn check(class: &str, row: &Row, images: Images) {
    let site = Site::start(images, &row.limits).await;
    let trick = format!("{class}: {}", row.trick);
    let before = site.objects();
    site.push(&row.image);
    match row.then {
        Then::Refused(is_right) => {
            let report = site.turn(false).await;
            let error = report.error.as_ref().unwrap_or_else(|| panic!("{trick} was published"));
            let text = report.error_text().unwrap();
            assert!(is_right(error), "{trick}: {text}\n{error:?}");
            assert!(!text.contains(char::is_control) && text.len() < 5000, "{trick}: {text}");
            assert!(report.content_hash.is_some(), "{trick}: the old state is told");
            assert_eq!(site.objects(), before, "{trick}: something was written");
            assert_eq!(site.served().await, "old", "{trick}");
        }
        Then::Reads(packages) => {
            let report = site.turn(true).await;
            assert_eq!(report.error_text(), None, "{trick}");
            assert_eq!(site.served().await, packages, "{trick}");
        }
    }
    site.is_sound(&trick).await;
}
