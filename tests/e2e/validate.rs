//! `validate`: exit codes, the table and the JSON document.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Ran, run},
    catalogs,
};

/// A folder with the first example catalog.
fn example() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, bytes) in catalogs::files(&catalogs::folder("v1")) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// Replaces a text in a file of the catalog, which must have it.
fn edit(folder: &TempDir, file: &str, from: &str, to: &str) {
    let path = folder.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    fs::write(path, text.replace(from, to)).unwrap();
}

fn validate(folder: &TempDir, more: &[&str]) -> Ran {
    let source = format!("dir:{}", folder.path().display());
    run(["validate", &source].into_iter().chain(more.iter().copied()))
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn valid_source_and_published_catalog_exit_with_0() {
    let folder = example();
    let table = validate(&folder, &[]).exits(0).stdout;
    assert!(table.starts_with("valid: 0 errors"), "{table}");
    let store = TempDir::new().unwrap();
    let store = store.path().display().to_string();
    let source = format!("demo=dir:{}", folder.path().display());
    run(["poll", "--store", &store, "--catalog", &source]).exits(0);
    let published = run(["validate", "--json", "--store", &store, "demo"]).exits(0);
    let of_source = validate(&folder, &["--json"]).exits(0);
    assert_eq!(report(&published), report(&of_source));
    assert_eq!(report(&published)["valid"], true);
}

#[test]
fn catalog_that_refuses_errors_keeps_its_old_state_until_a_poll_is_forced() {
    let folder = example();
    let work = TempDir::new().unwrap();
    let [store, config] = ["store", "catalogs.yaml"].map(|name| work.path().join(name).display().to_string());
    let source = folder.path().display();
    fs::write(
        &config,
        format!("store: {store}\ncatalogs: [{{name: demo, source: 'dir:{source}', validate: refuse}}]\n"),
    )
    .unwrap();
    run(["poll", "--config", &config]).exits(0);
    edit(
        &folder,
        "demo-queue/catalog.yaml",
        "replaces: demo-queue.v2.0.0",
        "skipRange: x",
    );
    let refused = run(["poll", "--config", &config]).exits(1);
    let said =
        "package demo-queue, channel fast, bundle demo-queue.v2.1.0: the skipRange of the entry is not a version range";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    assert!(refused.stderr.contains("validate: warn"), "{}", refused.stderr);
    run(["validate", "--store", &store, "demo"]).exits(0);
    run(["poll", "--force", "--config", &config]).exits(0);
    run(["validate", "--store", &store, "demo"]).exits(1);
    let status = fs::read_to_string(work.path().join("store/catalogs/demo/status.json")).unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["validation"]["errors"], 2, "{status}");
}

#[test]
fn finding_names_file_document_and_line() {
    let folder = example();
    edit(
        &folder,
        "demo-queue/catalog.yaml",
        "replaces: demo-queue.v2.0.0",
        "skipRange: x",
    );
    let found = report(&validate(&folder, &["--json"]).exits(1));
    assert_eq!(found["rules"]["channel-several-heads"], 1, "{found}");
    assert_eq!((&found["valid"], &found["servable"]), (&false.into(), &false.into()));
    let text = fs::read_to_string(folder.path().join("demo-queue/catalog.yaml")).unwrap();
    let line = text.lines().position(|line| line == "schema: olm.channel").unwrap() + 1;
    let finding = &found["findings"][0];
    assert_eq!(finding["rule"], "entry-skip-range-invalid");
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["channel"], "fast");
    assert_eq!(finding["bundle"], "demo-queue.v2.1.0");
    assert_eq!(finding["file"], "demo-queue/catalog.yaml");
    assert_eq!((&finding["document"], &finding["line"]), (&2.into(), &line.into()));
    let table = validate(&folder, &[]).exits(1).stdout;
    assert!(
        table.contains(&format!("demo-queue/catalog.yaml:{line} (document 2)")),
        "{table}"
    );
}

#[test]
fn finding_in_json_file_and_in_store_names_line() {
    let folder = example();
    edit(
        &folder,
        "demo-cache/catalog.json",
        r#""replaces": "demo-cache.v1.0.1""#,
        r#""replaces": """#,
    );
    let found = report(&validate(&folder, &["--json"]).exits(1));
    let finding = &found["findings"][0];
    assert_eq!(
        (&finding["document"], &finding["line"]),
        (&2.into(), &7.into()),
        "{found}"
    );
    let store = TempDir::new().unwrap();
    let store = store.path().display().to_string();
    let source = format!("demo=dir:{}", folder.path().display());
    run(["poll", "--store", &store, "--catalog", &source]).exits(0);
    let found = report(&run(["validate", "--json", "--store", &store, "demo"]).exits(1));
    let finding = &found["findings"][0];
    assert_eq!(
        (&finding["file"], &finding["line"]),
        (&Value::Null, &2.into()),
        "{found}"
    );
}

#[test]
fn serve_error_exits_with_1_and_warning_with_0() {
    let folder = example();
    fs::write(folder.path().join("other.yaml"), "schema: a/b\n").unwrap();
    let found = report(&validate(&folder, &["--json"]).exits(1));
    assert_eq!((&found["valid"], &found["servable"]), (&true.into(), &false.into()));
    fs::write(
        folder.path().join("other.yaml"),
        "schema: olm.package\nname: x\ndefaultChannel: c\nicon: {}\n---\nschema: olm.channel\nname: c\npackage: x\n",
    )
    .unwrap();
    let found = report(&validate(&folder, &["--json"]).exits(1));
    assert_eq!(
        (&found["warnings"], &found["errors"]),
        (&1.into(), &1.into()),
        "{found}"
    );
    fs::write(folder.path().join("other.yaml"), "schema: olm.bundle.v2\n").unwrap();
    let found = report(&validate(&folder, &["--json"]).exits(0));
    assert_eq!(found["documents"]["other"]["olm.bundle.v2"], 1);
}

#[test]
fn file_without_fbc_is_a_finding() {
    let folder = example();
    fs::write(folder.path().join("bad.yaml"), "a: [\n").unwrap();
    let found = report(&validate(&folder, &["--json"]).exits(1));
    assert_eq!(found["rules"]["not-fbc"], 1);
    assert_eq!(found["findings"][0]["file"], "bad.yaml");
}

#[test]
fn findings_beyond_1000_are_only_counted() {
    let folder = example();
    fs::write(folder.path().join("many.yaml"), "name: x\n---\n".repeat(1500)).unwrap();
    let ran = validate(&folder, &["--json"]).exits(1);
    let found = report(&ran);
    assert_eq!(found["errors"], 1500);
    assert_eq!(found["findings"].as_array().unwrap().len(), 1000);
    let table = validate(&folder, &[]).exits(1).stdout;
    assert!(table.contains("and 500 more findings"), "{table}");
}

#[test]
fn wrong_argument_exits_with_2_and_missing_catalog_with_1() {
    let store = TempDir::new().unwrap();
    let store = store.path().display().to_string();
    run(["validate"]).exits(2);
    run(["validate", "https://q.io/a"]).exits(2);
    run(["validate", "Not a name"]).exits(2);
    run(["validate", "--store", &store, "missing"]).exits(1);
    run(["validate", "dir:/nowhere"]).exits(1);
}
