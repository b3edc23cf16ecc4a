//! Compositions of several catalogs.

use crate::support::{
    MemoryCatalog, api, bundle, compose, package, requirement, summary, with_property,
};

fn db() -> String {
    package(
        "db",
        "stable: 1.0.0 1.1.0<1.0.0 1.2.0<1.1.0; beta: 1.2.0 2.0.0<1.2.0",
    )
}

fn web(version: &str) -> String {
    package("web", &format!("alpha: {version}"))
}

/// Composes `one` (db, web 1.0.0), `two` (web 2.0.0, zoo), of these as many as there are inputs,
/// and additions. Returns each package with its input or its channels, or the error.
fn composed(yaml: &str, additions: &[(&str, &str)]) -> String {
    let one = MemoryCatalog::new(&[("db", &db()), ("web", &web("1.0.0"))]);
    let two = MemoryCatalog::new(&[("web", &web("2.0.0")), ("zoo", &package("zoo", "c: 1.0.0"))]);
    let mut catalogs = vec![one, two];
    catalogs.truncate(yaml.matches("catalog: ").count());
    catalogs.extend(
        additions
            .iter()
            .map(|addition| MemoryCatalog::new(&[*addition])),
    );
    let composed = match compose(yaml, &mut catalogs) {
        Ok(composed) => composed,
        Err(error) => return model::text::chain(&error),
    };
    let packages = composed.packages.iter();
    let packages = packages.map(|(name, lines)| match composed.shards.get(name) {
        Some(input) => format!("{name}={input}"),
        None => format!("{name} {}", summary(name, lines)),
    });
    packages.collect::<Vec<_>>().join(" | ")
}

const ONE: &str = "inputs: [{catalog: one}]\n";

/// Case, the composition with its lines, and the packages of the result or the error.
const COMPOSITIONS: &str = "\
whole / inputs: [{catalog: one}] => db=0 | web=0
heads / inputs: [{catalog: one, select: {}}] => db beta: 2.0.0; *stable: 1.2.0 | web=0
first wins / inputs: [{catalog: one}, {catalog: two}] // conflicts: first => db=0 | web=0 | zoo=1
selected apart / inputs: [{catalog: one, select: {full: true, packages: [{name: db}]}}, {catalog: two}] => db=0 | web=1 | zoo=1
package removed / inputs: [{catalog: one}] // remove: [{package: web}] => db=0
channel removed / inputs: [{catalog: one}] // remove: [{package: db, channels: [beta]}] => db *stable: 1.0.0 1.1.0 1.2.0 | web=0
head removed / inputs: [{catalog: one}] // remove: [{package: db, bundles: [db.v1.2.0, db.v2.0.0]}] => db *stable: 1.0.0 1.1.0 | web=0
nothing / {} => a composition needs `inputs` or `add`
both origins / inputs: [{catalog: a, source: b}] => an input has either `catalog` (published by this mirror) or `source` (pulled)
no origin / inputs: [{select: {}}] => an input has either `catalog` (published by this mirror) or `source` (pulled)
conflict / inputs: [{catalog: one}, {catalog: two}] => package web is in one and in two; select it from one of them, or set \
    conflicts: first
unknown package / inputs: [{catalog: one, select: {packages: [{name: nope}]}}] => input one has no package nope
selection / inputs: [{catalog: one, select: {packages: [{name: db, minVersion: 7.0.0}]}}] => input one: package db: versions \
    >=7.0.0 takes no bundle; remove it from the selection, or choose other versions
remove package / inputs: [{catalog: one}] // remove: [{package: nope}] => remove: the composition has no document of package nope
remove channel / inputs: [{catalog: one}] // remove: [{package: db, channels: [nope]}] => remove: the composition has no channel \
    nope of package db
remove bundle / inputs: [{catalog: one}] // remove: [{package: db, bundles: [nope]}] => remove: the composition has no bundle \
    nope of package db
remove what connects / inputs: [{catalog: one}] // remove: [{package: db, bundles: [db.v1.1.0]}] => add and remove leave an \
    invalid package: package db, channel stable: with what is added and removed the channel has several heads: db.v1.0.0, \
    db.v1.2.0; keep what connects them: db.v1.1.0
remove default channel / inputs: [{catalog: one}] // remove: [{package: db, channels: [stable]}] => add and remove leave an \
    invalid package: package db: the default channel stable is not selected; set defaultChannel to one of beta";

#[test]
fn compose_takes_shards_or_lines_or_says_what_to_change() {
    for row in COMPOSITIONS.lines() {
        let (case, expected) = row.split_once(" => ").unwrap();
        let (_, yaml) = case.split_once(" / ").unwrap();
        assert_eq!(
            composed(&yaml.replace(" // ", "\n"), &[]),
            expected,
            "{row}"
        );
    }
}

/// Requirements of a bundle, and the one that a notice says is missing.
const REQUIREMENTS: &str = r#"
API v1 =>
API v2 => API g.io/v2 K
need >=1.0.0 =>
need >=2.0.0 => package need >=2.0.0; the result has other versions of need: select one that fits
nope 1.x => package nope 1.x
any nope 1.x | need 1.x =>
all API v1 | not need 1.x => all of (API g.io/v1 K, none of (package need 1.x))
{"cel":{"rule":"false"},"failureMessage":"m"} =>
7 =>
"#;

#[test]
fn compose_missing_requirement_is_a_notice() {
    let need = with_property(&package("need", "c: 1.0.0"), "1.0.0", "olm.gvk", &api("v1"));
    for row in REQUIREMENTS.trim().lines() {
        let (required, missing) = row.split_once(" =>").unwrap();
        let ((kind, value), missing) = (requirement(required), missing.trim());
        let user = with_property(&package("user", "c: 1.0.0"), "1.0.0", kind, &value);
        let notices = |rule: &str| {
            let mut catalogs = [MemoryCatalog::new(&[("need", &need), ("user", &user)])];
            let composed = compose(&format!("{ONE}dependencies: {rule}"), &mut catalogs).unwrap();
            assert_eq!(catalogs[0].reads.len(), if rule == "warn" { 2 } else { 0 });
            composed.explanation.notices
        };
        let end = if missing.contains(';') {
            ""
        } else {
            ", which no package of the result provides"
        };
        let expected = (!missing.is_empty())
            .then(|| format!("package user: user.v1.0.0 requires {missing}{end}"));
        assert_eq!(notices("warn"), Vec::from_iter(expected), "{row}");
        assert!(notices("ignore").is_empty());
    }
}

#[test]
fn compose_requirement_of_several_bundles_is_one_notice() {
    let required = r#""properties":[{"type":"olm.package.required","value":{"packageName":"need","versionRange":"1.x"}},"#;
    let versions = ["1.0.0", "1.1.0", "1.2.0"];
    for (count, bundles) in [
        (2, "another bundle require"),
        (3, "2 other bundles require"),
    ] {
        let user = package("user", &format!("c: {}", versions[..count].join(" ")))
            .replace(r#""properties":["#, required);
        let composed = compose(ONE, &mut [MemoryCatalog::new(&[("user", &user)])]).unwrap();
        let expected = format!(
            "package user: user.v1.0.0 and {bundles} package need 1.x, which no package of the result provides"
        );
        assert_eq!(composed.explanation.notices, [expected]);
    }
}

/// Selection, what is removed of package `db`, and the decisions. Each bundle is explained once,
/// and as it is written.
const REMOVED: [(&str, &str, &[&str]); 3] = [
    (
        "{full: true}",
        "channels: [beta]",
        &[
            "true  the whole package of one",
            "false db.v2.0.0 in no channel that remove leaves",
        ],
    ),
    (
        "{}",
        "channels: [beta]",
        &[
            "false db.v1.0.0 not the head of stable",
            "false db.v1.1.0 not the head of stable",
            "true db.v1.2.0 head of stable",
            "false db.v2.0.0 in no channel that remove leaves",
        ],
    ),
    (
        "{full: true}",
        "bundles: [db.v1.2.0]",
        &[
            "true  the whole package of one",
            "false db.v1.2.0 in remove",
        ],
    ),
];

#[test]
fn remove_is_explained_as_it_is_written() {
    for (select, remove, expected) in REMOVED {
        let yaml = format!(
            "inputs: [{{catalog: one, select: {select}}}]\nremove: [{{package: db, {remove}}}]"
        );
        let composed = compose(&yaml, &mut [MemoryCatalog::new(&[("db", &db())])]).unwrap();
        assert_eq!(composed.decisions(), expected, "{yaml}");
    }
}

/// Additions to packages of `one`, and the packages of the result or the error. A folder that
/// extends a package has no `olm.package`.
const ADDITIONS: &str = "\
db entries 1.3.0<1.2.0 => db beta: 1.2.0 2.0.0; *stable: 1.0.0 1.1.0 1.2.0 1.3.0 | web=0
new package 1.0.0 => db=0 | new *stable: 1.0.0 | web=0
db bundle 1.1.0 => db beta: 1.2.0 2.0.0; *stable: 1.0.0 1.1.0 1.2.0 | web=0
db entries 1.1.0<-1.0.0 => add: package db has the entry db.v1.1.0 of olm.channel stable already, with other content; \
    set replace: true to replace it
db other-bundle 1.1.0 => add: package db has olm.bundle db.v1.1.0 already, with other content; set replace: true to replace it
db replaced-entries 1.1.0<-1.0.0 => db beta: 1.2.0 2.0.0; *stable: 1.0.0 1.1.0 1.2.0 | web=0
db replaced-other-bundle 1.1.0 => db beta: 1.2.0 2.0.0; *stable: 1.0.0 1.1.0 1.2.0 | web=0
db entries 1.3.0<1.1.0 => add and remove leave an invalid package: package db, channel stable: with what is added and removed \
    the channel has several heads: db.v1.2.0, db.v1.3.0; let added entries replace or skip the others
db bundle 3.0.0 => add and remove leave an invalid package: package db has no bundle db.v3.0.0 in a channel";

#[test]
fn add_merges_bundles_and_entries_and_replaces_only_if_allowed() {
    for row in ADDITIONS.lines() {
        let (addition, expected) = row.split_once(" => ").unwrap();
        let [name, what, versions] = addition.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let added = what.trim_start_matches("replaced-");
        let whole = package(name, &format!("stable: {versions}"));
        let lines = match added {
            "package" => whole,
            "entries" => whole.split_inclusive('\n').skip(1).collect(),
            "bundle" => bundle(name, versions),
            _ => bundle(name, versions).replace("r.example", "other.example"),
        };
        let yaml = format!(
            "{ONE}add: [{{source: 'dir:more', replace: {}}}]",
            added != what
        );
        assert_eq!(composed(&yaml, &[(name, &lines)]), expected, "{row}");
    }
}

#[test]
fn global_documents_are_kept_once() {
    for (globals, expected, shards) in [
        (["x\ny\n", "x\ny\n"], "x\ny\n", 3),
        (["b\na\n", "a\nc\n"], "a\nb\nc\n", 2),
    ] {
        let mut catalogs = [
            MemoryCatalog::new(&[("", globals[0]), ("db", &db())]),
            MemoryCatalog::new(&[("", globals[1]), ("web", &web("1.0.0"))]),
        ];
        let composed = compose("inputs: [{catalog: a}, {catalog: b}]", &mut catalogs).unwrap();
        assert_eq!(
            (&*composed.packages[""], composed.shards.len()),
            (expected, shards)
        );
    }
}
