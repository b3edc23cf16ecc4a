//! `validate`: exit codes, the table and the JSON document.

use serde_json::{Value, json};

use crate::support::{binary::Ran, catalogs, work::Work};

/// A folder with the first example catalog in `catalog`.
fn example() -> Work {
    let work = Work::new();
    work.write_all("catalog", &catalogs::example("v1"));
    work
}

/// Replaces a text in a file of the catalog, which must have it.
fn edit(work: &Work, file: &str, from: &str, to: &str) {
    let file = format!("catalog/{file}");
    let text = work.read(&file);
    assert!(text.contains(from), "{file} has no {from}");
    work.write(&file, text.replace(from, to));
}

/// Gives a channel a second head, and an entry a bad range.
fn break_channel(work: &Work) {
    let file = "demo-queue/catalog.yaml";
    edit(work, file, "replaces: demo-queue.v2.0.0", "skipRange: x");
}

/// Validates the folder `catalog`, and returns the JSON document.
fn report(work: &Work, code: i32) -> Value {
    work.run("validate dir:catalog --json").exits(code).json()
}

/// Publishes the folder `catalog` as `demo`, and validates that.
fn report_of_published(work: &Work, code: i32) -> Value {
    work.run("poll --store store --catalog demo=dir:catalog")
        .exits(0);
    work.run("validate --json --store store demo")
        .exits(code)
        .json()
}

#[test]
fn valid_source_and_published_catalog_exit_with_0() {
    let work = example();
    work.write("catalog/other.yaml", "schema: olm.bundle.v2\n");
    work.plays("0 validate dir:catalog\n> valid: 0 errors");
    let published = report_of_published(&work, 0);
    assert_eq!(published, report(&work, 0));
    assert_eq!(
        [&published["valid"], &published["documents"]["other"]],
        [&json!(true), &json!({"olm.bundle.v2": 1})]
    );
}

#[test]
fn catalog_that_refuses_errors_keeps_its_old_state_until_a_poll_is_forced() {
    let work = example();
    work.write(
        "catalogs.yaml",
        "store: store\ncatalogs: [{name: demo, source: 'dir:catalog', validate: refuse}]\n",
    );
    work.run("poll --config catalogs.yaml").exits(0);
    break_channel(&work);
    work.plays(
        "1 poll --config catalogs.yaml
         ! package demo-queue, channel fast, bundle demo-queue.v2.1.0: the skipRange of the entry is not a version range
         ! validate: warn
         0 validate --store store demo
         0 poll --force --config catalogs.yaml
         1 validate --store store demo",
    );
}

#[test]
fn finding_names_file_document_and_line() {
    let work = example();
    break_channel(&work);
    let found = report(&work, 1);
    let text = work.read("catalog/demo-queue/catalog.yaml");
    let line = text
        .lines()
        .position(|line| line == "schema: olm.channel")
        .unwrap()
        + 1;
    let finding = json!({
        "rule": "entry-skip-range-invalid",
        "severity": "error",
        "package": "demo-queue",
        "channel": "fast",
        "bundle": "demo-queue.v2.1.0",
        "file": "demo-queue/catalog.yaml",
        "document": 2,
        "line": line,
        "message": "the skipRange of the entry is not a version range",
        "detail": "\"x\"",
    });
    assert_eq!(found["findings"][0], finding);
    let rules = json!({"channel-several-heads": 1, "entry-skip-range-invalid": 1});
    assert_eq!(found["rules"], rules);
    work.plays(&format!(
        "1 validate dir:catalog\n> demo-queue/catalog.yaml:{line} (document 2)"
    ));
}

#[test]
fn finding_in_json_file_and_in_store_names_line() {
    let work = example();
    let (from, to) = (r#""replaces": "demo-cache.v1.0.1""#, r#""replaces": """#);
    edit(&work, "demo-cache/catalog.json", from, to);
    let place = |report: Value| ["file", "line"].map(|field| report["findings"][0][field].clone());
    assert_eq!(
        place(report(&work, 1)),
        [json!("demo-cache/catalog.json"), json!(7)]
    );
    assert_eq!(
        place(report_of_published(&work, 1)),
        [Value::Null, json!(2)]
    );
}

#[test]
fn findings_of_serving_exit_with_1_and_are_counted_beyond_1000() {
    let work = example();
    let no_channel = "schema: olm.package\nname: x\ndefaultChannel: c\nicon: {}\n---\nschema: olm.channel\nname: c\npackage: x\n";
    let many = "name: x\n---\n".repeat(1500);
    // The content of a file, and valid, servable, the numbers of errors and warnings, and the
    // findings shown.
    for (content, expected) in [
        ("schema: a/b\n", json!([true, false, 0, 0, 1])),
        (no_channel, json!([false, false, 1, 1, 2])),
        ("a: [\n", json!([false, false, 1, 0, 1])),
        (&many, json!([false, false, 1500, 0, 1000])),
    ] {
        work.write("catalog/other.yaml", content);
        let found = report(&work, 1);
        let counts = ["valid", "servable", "errors", "warnings"].map(|field| &found[field]);
        let shown = found["findings"].as_array().unwrap().len();
        let [valid, servable, errors, warnings] = counts;
        assert_eq!(
            json!([valid, servable, errors, warnings, shown]),
            expected,
            "{found}"
        );
    }
    work.plays("1 validate dir:catalog\n> and 500 more findings");
}

#[test]
fn wrong_argument_exits_with_2_and_missing_source_with_1() {
    let work = Work::new();
    work.plays(
        "2 validate
         2 validate https://q.io/a
         1 validate dir:/nowhere",
    );
    Ran::of(work.command("validate").arg("Not a name")).exits(2);
}
