//! Images of the selected bundles, and their uses.

use olm::{BundleSelection, Package, PackageParser, RequiredImages, SelectionError};
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
        channels: channels
            .iter()
            .map(|channel| (*channel).to_owned())
            .collect(),
        heads_only,
    }
}

fn needed(package: &Package, choice: &BundleSelection) -> Result<Vec<String>, SelectionError> {
    let mut needs = RequiredImages::default();
    needs.add("demo", "db", package, choice)?;
    Ok(needs.images.into_keys().collect())
}

#[test]
fn selection_filters_by_channel_and_head() {
    let package = PackageParser::parse(LINES.as_bytes());
    for (channels, heads_only, expected) in [
        (
            &[][..],
            false,
            &["b:0", "b:1", "b:2", "b:3", "shared:1"][..],
        ),
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
    needs
        .add("demo", "db", &package, &BundleSelection::default())
        .unwrap();
    let bundles: Vec<_> = needs.images["shared:1"]
        .iter()
        .map(|need| (&*need.bundle, &*need.name))
        .collect();
    assert_eq!(bundles, [("db.v1", "proxy"), ("db.v2", "proxy")]);
    // A bundle's own image counts once, although its related images list it too.
    assert_eq!(needs.images["b:1"].len(), 1);
}

/// Each use has the name of the bundle, so a long one and many images would take the product of
/// both.
#[rstest]
#[case(7, true)]
#[case(8, false)]
fn names_of_uses_fit_into_their_limit(#[case] images: usize, #[case] fits: bool) {
    let related: Vec<String> = (0..images)
        .map(|at| format!(r#"{{"image":"{at}"}}"#))
        .collect();
    let (name, related) = ("b".repeat(8 << 20), related.join(","));
    let line = format!(
        r#"{{"name":"{name}","package":"db","relatedImages":[{related}],"schema":"olm.bundle"}}"#
    );
    let package = PackageParser::parse(line.as_bytes());
    let needed = needed(&package, &BundleSelection::default()).map_err(|error| error.to_string());
    let problem = "the names of the bundles with their images exceed the limit of 67108864 bytes";
    let expected = if fits {
        Ok(images)
    } else {
        Err(problem.to_owned())
    };
    assert_eq!(needed.map(|needed| needed.len()), expected);
}

#[rstest]
#[case::no_channel(LINES, &["none"], false, r#"package db has none of the channels asked for; it has ["old", "stable"]"#)]
#[case::no_head(
    r#"{"entries":[{"name":"a","replaces":"b"},{"name":"b","replaces":"a"}],"name":"loop","schema":"olm.channel"}"#,
    &[],
    true,
    "channel loop of package db has no head"
)]
#[case::unreadable(
    r#"{"image":7,"name":"db.v1","package":"db","schema":"olm.bundle"}"#,
    &[],
    false,
    "the olm.bundle \"db.v1\" of package db cannot be read: invalid type: integer `7`"
)]
fn selection_that_would_miss_images_fails(
    #[case] lines: &str,
    #[case] channels: &[&str],
    #[case] heads_only: bool,
    #[case] problem: &str,
) {
    let error = needed(
        &PackageParser::parse(lines.as_bytes()),
        &choice(channels, heads_only),
    )
    .unwrap_err();
    assert!(error.to_string().starts_with(problem), "{error}");
}
