//! `validate`: exit codes, the table and the JSON document.

use serde_json::Value;

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

fn validate(work: &Work, options: &str) -> Ran {
    work.run(&format!("validate dir:catalog {options}"))
}

/// Validates the folder `catalog`, and returns the JSON document.
fn report(work: &Work, code: i32) -> Value {
    validate(work, "--json").exits(code).json()
}

/// Publishes the folder `catalog` as `demo`, and validates that.
fn report_of_published(work: &Work, code: i32) -> Value {
    work.run("poll --store store --catalog demo=dir:catalog").exits(0);
    work.run("validate --json --store store demo").exits(code).json()
}

#[test]
fn valid_source_and_published_catalog_exit_with_0() {
    let work = example();
    let table = validate(&work, "").exits(0).stdout;
    assert!(table.starts_with("valid: 0 errors"), "{table}");
    let published = report_of_published(&work, 0);
    assert_eq!(published, report(&work, 0));
    assert_eq!(published["valid"], true);
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
    let status = work.json("store/catalogs/demo/status.json");
    assert_eq!(status["validation"]["errors"], 2, "{status}");
}

/// Gives a channel a second head, and an entry a bad range.
fn break_channel(work: &Work) {
    let file = "demo-queue/catalog.yaml";
    edit(work, file, "replaces: demo-queue.v2.0.0", "skipRange: x");
}

#[test]
fn finding_names_file_document_and_line() {
    let work = example();
    break_channel(&work);
    let found = report(&work, 1);
    assert_eq!(found["rules"]["channel-several-heads"], 1, "{found}");
    assert_eq!((&found["valid"], &found["servable"]), (&false.into(), &false.into()));
    let text = work.read("catalog/demo-queue/catalog.yaml");
    let line = text.lines().position(|line| line == "schema: olm.channel").unwrap() + 1;
    let finding = &found["findings"][0];
    let fields = ["rule", "severity", "channel", "bundle", "file"].map(|field| &finding[field]);
    let expected = [
        "entry-skip-range-invalid",
        "error",
        "fast",
        "demo-queue.v2.1.0",
        "demo-queue/catalog.yaml",
    ];
    assert_eq!(fields, expected);
    assert_eq!((&finding["document"], &finding["line"]), (&2.into(), &line.into()));
    let table = validate(&work, "").exits(1);
    table.prints(&format!("demo-queue/catalog.yaml:{line} (document 2)"));
}

#[test]
fn finding_in_json_file_and_in_store_names_line() {
    let work = example();
    let (from, to) = (r#""replaces": "demo-cache.v1.0.1""#, r#""replaces": """#);
    edit(&work, "demo-cache/catalog.json", from, to);
    let finding = &report(&work, 1)["findings"][0];
    assert_eq!((&finding["document"], &finding["line"]), (&2.into(), &7.into()));
    let finding = &report_of_published(&work, 1)["findings"][0];
    assert_eq!((&finding["file"], &finding["line"]), (&Value::Null, &2.into()));
}

#[test]
fn serve_error_exits_with_1_and_warning_with_0() {
    let work = example();
    work.write("catalog/other.yaml", "schema: a/b\n");
    let found = report(&work, 1);
    assert_eq!((&found["valid"], &found["servable"]), (&true.into(), &false.into()));
    work.write(
        "catalog/other.yaml",
        "schema: olm.package\nname: x\ndefaultChannel: c\nicon: {}\n---\nschema: olm.channel\nname: c\npackage: x\n",
    );
    let found = report(&work, 1);
    assert_eq!([&found["warnings"], &found["errors"]], [1, 1], "{found}");
    work.write("catalog/other.yaml", "schema: olm.bundle.v2\n");
    assert_eq!(report(&work, 0)["documents"]["other"]["olm.bundle.v2"], 1);
}

#[test]
fn file_without_fbc_is_a_finding() {
    let work = example();
    work.write("catalog/bad.yaml", "a: [\n");
    let found = report(&work, 1);
    assert_eq!(found["rules"]["not-fbc"], 1);
    assert_eq!(found["findings"][0]["file"], "bad.yaml");
}

#[test]
fn findings_beyond_1000_are_only_counted() {
    let work = example();
    work.write("catalog/many.yaml", "name: x\n---\n".repeat(1500));
    let found = report(&work, 1);
    assert_eq!(found["errors"], 1500);
    assert_eq!(found["findings"].as_array().unwrap().len(), 1000);
    validate(&work, "").exits(1).prints("and 500 more findings");
}

#[test]
fn wrong_argument_exits_with_2_and_missing_catalog_with_1() {
    let work = Work::new();
    std::fs::create_dir(work.path("store")).unwrap();
    work.plays(
        "2 validate
         2 validate https://q.io/a
         1 validate --store store missing
         1 validate dir:/nowhere",
    );
    Ran::of(work.command("validate").arg("Not a name")).exits(2);
}
