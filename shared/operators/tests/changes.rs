//! What is told of two states of one package.

use layout::Sha256;
use operators::{Changes, Package, Reader};

fn changes(old: &str, new: &str) -> Changes {
    let read = |lines: &str| (!lines.is_empty()).then(|| Reader::read(lines.as_bytes()));
    let (old, new): (Option<Package>, Option<Package>) = (read(old), read(new));
    let mut changes = Changes::new(Sha256::of(b"old"), Sha256::of(b"new"));
    changes.add("db", old.as_ref(), new.as_ref());
    changes
}

fn told(old: &str, new: &str) -> serde_json::Value {
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
fn channels_heads_bundles_deprecations_and_the_rest() {
    insta::assert_json_snapshot!(told(BEFORE, AFTER)["changed"][0], @r#"
    {
      "bundles": {
        "added": [
          {
            "image": "r.example/db-bundle@sha256:02",
            "name": "db.v2",
            "version": "2.0.0"
          }
        ],
        "changed": [
          {
            "imagesAdded": [
              "r.example/db@sha256:12"
            ],
            "imagesRemoved": [
              "r.example/db@sha256:11"
            ],
            "name": "db.v1"
          }
        ],
        "removed": []
      },
      "channels": {
        "added": [
          {
            "heads": [
              "db.v2"
            ],
            "name": "fast"
          }
        ],
        "changed": [
          {
            "entries": {
              "added": [
                "db.v2"
              ],
              "changed": [],
              "removed": []
            },
            "heads": {
              "from": [
                "db.v1"
              ],
              "to": [
                "db.v2"
              ]
            },
            "name": "stable"
          }
        ],
        "removed": []
      },
      "defaultChannel": {
        "from": "stable",
        "to": "fast"
      },
      "deprecations": {
        "added": [
          {
            "message": "Use db.v2.",
            "name": "db.v1",
            "schema": "olm.bundle"
          }
        ],
        "changed": [],
        "removed": []
      },
      "name": "db",
      "others": [
        {
          "added": 1,
          "removed": 0,
          "schema": "example.note"
        }
      ],
      "package": true
    }
    "#);
}

#[test]
fn a_package_that_comes_or_goes_is_told_whole() {
    let added = told("", BEFORE);
    insta::assert_json_snapshot!(added["added"][0], @r#"
    {
      "bundles": [
        {
          "image": "r.example/db-bundle@sha256:01",
          "name": "db.v1",
          "version": "1.0.0"
        }
      ],
      "channels": [
        {
          "heads": [
            "db.v1"
          ],
          "name": "stable"
        }
      ],
      "defaultChannel": "stable",
      "deprecations": [],
      "name": "db"
    }
    "#);
    assert_eq!(told(BEFORE, "")["removed"], added["added"]);
}

/// Order has no meaning to OLM, but the bytes differ, so it is told.
#[test]
fn another_order_is_told_as_such() {
    let backwards: String = BEFORE.lines().rev().flat_map(|line| [line, "\n"]).collect();
    let told = told(BEFORE, &backwards);
    assert_eq!(told["changed"][0]["reordered"], true, "{told}");
}

#[test]
fn what_cannot_be_read_is_compared_by_its_bytes() {
    let broken = r#"{"entries":"none","name":"stable","package":"db","schema":"olm.channel"}
"#;
    let other = broken.replace("none", "some");
    let told = told(broken, &other);
    let others = serde_json::json!([{"schema": "olm.channel", "added": 1, "removed": 1}]);
    assert_eq!(told["changed"][0]["others"], others);
    let reader = Reader::read(broken.as_bytes());
    assert_eq!(
        (reader.unreadable.len(), reader.unreadable[0].name.as_str()),
        (1, "stable")
    );
}

#[test]
fn several_metas_of_one_name_count_together() {
    let once = r#"{"image":"a:1","name":"x","package":"db","schema":"olm.bundle"}
"#;
    let told = told(once, &format!("{once}{once}"));
    assert_eq!(told["changed"][0]["bundles"]["changed"][0]["name"], "x");
}

#[test]
fn the_document_reads_back() {
    let changes = changes(BEFORE, AFTER);
    assert_eq!(serde_json::from_slice::<Changes>(&changes.to_bytes()).unwrap(), changes);
    assert!(!changes.is_empty());
    assert!(Changes::new(Sha256::of(b""), Sha256::of(b"")).is_empty());
}
