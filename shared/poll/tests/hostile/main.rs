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

use row::{Row, Then};
use site::Site;

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
    for (class, rows) in classes() {
        for row in &rows {
            check(class, row).await;
        }
    }
}

async fn check(class: &str, row: &Row) {
    let site = Site::start(&row.limits).await;
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
