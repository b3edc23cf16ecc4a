//! Changes between two states of one package.

use model::Sha256;
use olm::{Changes, Package, PackageParser};
use serde_json::json;

fn changes(old: &str, new: &str) -> Changes {
    let read = |lines: &str| (!lines.is_empty()).then(|| PackageParser::parse(lines.as_bytes()));
    let (old, new): (Option<Package>, Option<Package>) = (read(old), read(new));
    let mut changes = Changes::new(Sha256::of(b"old"), Sha256::of(b"new"));
    changes.add("db", old.as_ref(), new.as_ref());
    changes
}

fn package_changes(old: &str, new: &str) -> serde_json::Value {
    serde_json::to_value(changes(old, new).packages).unwrap()
}

const BEFORE: &str = r#"{"defaultChannel":"stable","name":"db","schema":"olm.package"}
{"entries":[{"name":"db.v1"}],"name":"stable","package":"db","schema":"olm.channel"}
{"image":"r.example/db-bundle@sha256:01","name":"db.v1","package":"db","properties":[{"type":"olm.gvk","value":{"version":"v9"}},{"type":"olm.package","value":{"packageName":"db","version":"1.0.0"}}],"relatedImages":[{"image":"r.example/db@sha256:11","name":"manager"}],"schema":"olm.bundle"}
"#;

const AFTER: &str = r#"{"defaultChannel":"fast","name":"db","schema":"olm.package"}
{"entries":[{"name":"db.v1"},{"name":"db.v2","replaces":"db.v1"}],"name":"stable","package":"db","schema":"olm.channel"}
{"entries":[{"name":"db.v2"}],"name":"fast","package":"db","schema":"olm.channel"}
{"image":"r.example/db-bundle@sha256:01","name":"db.v1","package":"db","properties":[{"type":"olm.package","value":{"packageName":"db","version":"1.0.0"}}],"relatedImages":[{"image":"r.example/db@sha256:12","name":"manager"}],"schema":"olm.bundle"}
{"image":"r.example/db-bundle@sha256:02","name":"db.v2","package":"db","properties":[{"type":"olm.package","value":{"packageName":"db","version":"2.0.0"}}],"schema":"olm.bundle"}
{"entries":[{"message":"Use db.v2.","reference":{"name":"db.v1","schema":"olm.bundle"}}],"package":"db","schema":"olm.deprecations"}
{"package":"db","schema":"example.note","text":"new"}
"#;

#[test]
fn changes_cover_channels_heads_bundles_deprecations_and_others() {
    let expected = json!({
        "name": "db",
        "package": true,
        "defaultChannel": {"from": "stable", "to": "fast"},
        "channels": {
            "added": [{"name": "fast", "heads": ["db.v2"]}],
            "changed": [{
                "name": "stable",
                "entries": {"added": ["db.v2"], "changed": [], "removed": []},
                "heads": {"from": ["db.v1"], "to": ["db.v2"]},
            }],
            "removed": [],
        },
        "bundles": {
            "added": [{"name": "db.v2", "version": "2.0.0", "image": "r.example/db-bundle@sha256:02"}],
            "changed": [
                {"name": "db.v1", "imagesAdded": ["r.example/db@sha256:12"], "imagesRemoved": ["r.example/db@sha256:11"]},
            ],
            "removed": [],
        },
        "deprecations": {
            "added": [{"schema": "olm.bundle", "name": "db.v1", "message": "Use db.v2."}],
            "changed": [],
            "removed": [],
        },
        "others": [{"schema": "example.note", "added": 1, "removed": 0}],
    });
    assert_eq!(package_changes(BEFORE, AFTER)["changed"], json!([expected]));
}

#[test]
fn added_or_removed_package_is_described_in_full() {
    let added = package_changes("", BEFORE);
    let expected = json!({
        "name": "db",
        "defaultChannel": "stable",
        "channels": [{"name": "stable", "heads": ["db.v1"]}],
        "bundles": [{"name": "db.v1", "version": "1.0.0", "image": "r.example/db-bundle@sha256:01"}],
        "deprecations": [],
    });
    assert_eq!(added["added"], json!([expected]));
    assert_eq!(package_changes(BEFORE, "")["removed"], added["added"]);
}

/// Order has no meaning to OLM, but the bytes of the Shard differ, so the document says so.
#[test]
fn reordered_metas_are_reported() {
    let backwards: String = BEFORE.lines().rev().flat_map(|line| [line, "\n"]).collect();
    let changes = package_changes(BEFORE, &backwards);
    assert_eq!(changes["changed"][0]["reordered"], true, "{changes}");
}

#[test]
fn unreadable_metas_are_compared_by_their_bytes() {
    let broken = r#"{"entries":"none","name":"stable","package":"db","schema":"olm.channel"}
"#;
    let other = broken.replace("none", "some");
    let changes = package_changes(broken, &other);
    let others = json!([{"schema": "olm.channel", "added": 1, "removed": 1}]);
    assert_eq!(changes["changed"][0]["others"], others);
    let reader = PackageParser::parse(broken.as_bytes());
    assert_eq!(
        (reader.unreadable.len(), reader.unreadable[0].name.as_str()),
        (1, "stable")
    );
}

#[test]
fn metas_of_one_name_are_merged() {
    let once = r#"{"image":"a:1","name":"x","package":"db","schema":"olm.bundle"}
"#;
    let changes = package_changes(once, &format!("{once}{once}"));
    assert_eq!(changes["changed"][0]["bundles"]["changed"][0]["name"], "x");
}

#[test]
fn changes_document_reads_back() {
    let changes = changes(BEFORE, AFTER);
    assert_eq!(
        serde_json::from_slice::<Changes>(&changes.to_bytes()).unwrap(),
        changes
    );
    assert!(!changes.is_empty());
    assert!(Changes::new(Sha256::of(b""), Sha256::of(b"")).is_empty());
}
