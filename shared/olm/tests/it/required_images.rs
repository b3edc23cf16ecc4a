//! Images of the selected bundles, and their uses.

use catalog_mirror_olm::{BundleSelection, Package, PackageParser, RequiredImages, SelectionError};
use rstest::rstest;

const LINES: &str = r#"{"defaultChannel":"stable","name":"db","schema":"olm.package"}
{"entries":[{"name":"db.v1"},{"name":"db.v2","replaces":"db.v1"},{"name":"db.v9"},{"name":"db.v3","replaces":"db.v2","skips":["db.v9"]}],"name":"stable","package":"db","schema":"olm.channel"}
{"entries":[{"name":"db.v1"}],"name":"old","package":"db","schema":"olm.channel"}
{"image":"b:1","name":"db.v1","package":"db","relatedImages":[{"image":"b:1","name":""},{"image":"shared:1","name":"proxy"}],"schema":"olm.bundle"}
{"image":"b:2","name":"db.v2","package":"db","relatedImages":[{"image":"shared:1","name":"proxy"},{"image":"","name":"broken"}],"schema":"olm.bundle"}
{"image":"b:3","name":"db.v3","package":"db","relatedImages":null,"schema":"olm.bundle"}
{"image":"b:0","name":"db.v0","package":"db","schema":"olm.bundle"}
"#;

fn choice(channels: &[&str], heads_only: bool) -> BundleSelection {
    BundleSelection {
        packages: ["db".to_owned()].into(),
        channels: channels.iter().map(|channel| (*channel).to_owned()).collect(),
        heads_only,
    }
}

fn needed(package: &Package, choice: &BundleSelection) -> Result<Vec<String>, SelectionError> {
    let mut needs = RequiredImages::default();
    needs.add("demo", "db", package, choice)?;
    Ok(needs.iter().map(|(image, _)| image.to_owned()).collect())
}

#[test]
fn selection_filters_by_channel_and_head() {
    let package = PackageParser::parse(LINES.as_bytes());
    for (channels, heads_only, expected) in [
        (&[][..], false, &["b:0", "b:1", "b:2", "b:3", "shared:1"][..]),
        (&["stable"], false, &["b:1", "b:2", "b:3", "shared:1"]),
        (&["old"], false, &["b:1", "shared:1"]),
        (&[], true, &["b:1", "b:3", "shared:1"]),
        (&["stable"], true, &["b:3"]),
        (&["stable", "none"], true, &["b:3"]),
    ] {
        let choice = choice(channels, heads_only);
        assert_eq!(needed(&package, &choice).unwrap(), expected, "{choice:?}");
    }
}

#[test]
fn image_lists_all_its_uses() {
    let mut needs = RequiredImages::default();
    let package = PackageParser::parse(LINES.as_bytes());
    needs.add("demo", "db", &package, &BundleSelection::default()).unwrap();
    let (_, needed_by) = needs.iter().find(|(image, _)| *image == "shared:1").unwrap();
    let bundles: Vec<_> = needed_by.iter().map(|need| (&*need.bundle, &*need.name)).collect();
    assert_eq!(bundles, [("db.v1", "proxy"), ("db.v2", "proxy")]);
    // A bundle's own image counts once, although its related images list it too.
    let (_, needed_by) = needs.iter().find(|(image, _)| *image == "b:1").unwrap();
    assert_eq!(needed_by.len(), 1);
}

/// Each use has the name of the bundle, so a long one and many images would take the product of both.
#[rstest]
#[case(7, true)]
#[case(8, false)]
fn names_of_uses_fit_into_their_limit(#[case] images: usize, #[case] fits: bool) {
    let related: Vec<String> = (0..images).map(|at| format!(r#"{{"image":"{at}"}}"#)).collect();
    let (name, related) = ("b".repeat(8 << 20), related.join(","));
    let line = format!(r#"{{"name":"{name}","package":"db","relatedImages":[{related}],"schema":"olm.bundle"}}"#);
    let package = PackageParser::parse(line.as_bytes());
    let needed = needed(&package, &BundleSelection::default());
    let expected = if fits {
        Ok(images)
    } else {
        Err(SelectionError::TooManyUses)
    };
    assert_eq!(needed.map(|needed| needed.len()), expected);
}

#[test]
fn selection_that_would_miss_images_fails() {
    let package = PackageParser::parse(LINES.as_bytes());
    let error = needed(&package, &choice(&["none"], false)).unwrap_err();
    assert!(error.to_string().contains("stable"), "{error}");
    let looped =
        r#"{"entries":[{"name":"a","replaces":"b"},{"name":"b","replaces":"a"}],"name":"loop","schema":"olm.channel"}"#;
    let error = needed(&PackageParser::parse(looped.as_bytes()), &choice(&[], true)).unwrap_err();
    assert!(matches!(error, SelectionError::NoHead { .. }), "{error}");
    let broken = r#"{"image":7,"name":"db.v1","package":"db","schema":"olm.bundle"}"#;
    let error = needed(&PackageParser::parse(broken.as_bytes()), &choice(&[], false)).unwrap_err();
    assert!(matches!(error, SelectionError::Unreadable(..)), "{error}");
}
