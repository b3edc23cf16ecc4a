//! The sixteen combinations of oc-mirror v2's acceptance table, and what breaks a channel.

use std::time::{Duration, Instant};

use crate::support::{bundle, package, select, summary};

const STABLE: &str = "packages: [{name: db, channels: [{name: stable}]}]";

fn db() -> String {
    package(
        "db",
        "stable: 1.0.0 1.1.0<1.0.0 1.2.0<1.1.0; fast: 1.1.0 1.2.0<1.1.0 2.0.0<1.2.0; old: 0.9.0",
    )
}

fn web() -> String {
    package("web", "alpha: 3.0.0 3.1.0<3.0.0")
}

#[test]
fn selection_takes_the_promised_bundles_or_says_what_to_change() {
    let rows: Vec<&str> = include_str!("rows.txt").split("\n\n").skip(1).collect();
    assert_eq!(rows.len(), 42);
    for row in rows {
        let mut parts = row.trim_end().splitn(3, '\n');
        let [name, yaml, expected] = [(); 3].map(|()| parts.next().unwrap());
        let taken = select(yaml, &[("db", &db()), ("web", &web())]);
        let taken = taken.map_or_else(|error| error, |composed| composed.text(&[]));
        assert_eq!(taken, expected.replace('\n', " | "), "{name}");
    }
}

/// Case, the entries of channel `c` of package `p`, the rule, and what the channel has then with
/// the notice, or the error.
///
/// - Versions are written as people do for oc-mirror v2: parts may be missing, and a pre-release is
///   only in a range that names one.
/// - Entries outside of the range that connect those inside are taken along.
/// - What breaks a channel is refused.
const VERSIONS: &str = "\
two numbers / OP / minVersion: '2.11' => 2.11.0 2.11.1
leading v / OP / minVersion: v2.11.0 => 2.11.0 2.11.1
two numbers above / OP / minVersion: 2.10.0, maxVersion: '2.11' => 2.10.0 2.11.0 2.11.1
head is a prerelease / OP / minVersion: 2.11.0, maxVersion: 2.12.0 => 2.11.0 2.11.1
prerelease named / OP / minVersion: 2.11.0-0, maxVersion: 2.12.0 => 2.11.0 2.11.1 2.12.0-rc.1
one version / OP / minVersion: '2.11', maxVersion: '2.11' => 2.11.0
one prerelease / OP / minVersion: 2.12.0-rc.1, maxVersion: 2.12.0-rc.1 => 2.12.0-rc.1
range / OP / versionRange: ~2.11 => 2.11.0 2.11.1
prerelease between / 1.0.0 1.1.0-rc.1<1.0.0 1.1.0<1.1.0-rc.1 / minVersion: 1.0.0 => 1.0.0 1.1.0 1.1.0-rc.1; p.v1.1.0-rc.1 taken \
    too, because they connect the selected versions >=1.0.0
backport between / 1.0.0 0.9.9<1.0.0 1.1.0<0.9.9 / minVersion: 1.0.0 => 0.9.9 1.0.0 1.1.0; p.v0.9.9 taken too, because they \
    connect the selected versions >=1.0.0
outside stays out / 0.8.0 1.0.0<0.8.0 1.1.0-rc.1<1.0.0 1.1.0<1.1.0-rc.1 1.2.0-rc.1<1.1.0 / minVersion: 1.0.0, maxVersion: 1.9.0 \
    => 1.0.0 1.1.0 1.1.0-rc.1; p.v1.1.0-rc.1 taken too, because they connect the selected versions >=1.0.0 <=1.9.0
skipped above / 1.0.0 1.0.1 1.1.0-rc.1<1.0.0 1.1.0<1.1.0-rc.1,-1.0.1 2.0.0<1.1.0 / maxVersion: 1.1.0 => 1.0.0 1.0.1 1.1.0 \
    1.1.0-rc.1; p.v1.1.0-rc.1 taken too, because they connect the selected versions <=1.1.0
max leaves two heads / 1.0.0 1.1.0<1.0.0 1.1.1<1.0.0 1.2.0<1.1.0,-1.1.1 1.3.0<1.2.0 / maxVersion: 1.1.9 => 1.0.0 1.1.0 1.1.1 \
    1.2.0; p.v1.2.0 taken too, because they connect the selected versions <=1.1.9
two heads far above / 1.0.0 1.0.1 1.1.0<1.0.0 1.2.0<1.1.0 1.3.0<1.2.0,-1.0.1 1.4.0<1.3.0,-1.0.1 / maxVersion: 1.0.9 => 1.0.0 1.0.1 \
    1.1.0 1.2.0 1.3.0; p.v1.1.0, p.v1.2.0, p.v1.3.0 taken too, because they connect the selected versions <=1.0.9
only skipped ones / 1.0.0 1.0.1 1.0.2 1.1.0<1.0.0,-1.0.1,-1.0.2 / minVersion: 1.0.1, maxVersion: 1.0.9 => 1.0.1 1.0.2 1.1.0; \
    p.v1.1.0 taken too, because they connect the selected versions >=1.0.1 <=1.0.9
cycle has no head / 1.0.0<1.1.0 1.1.0<1.0.0 / full: false => with heads only the channel has no head: its entries replace or skip \
    each other in a cycle; the catalog has the channel so: select other channels, or bundles by name
cycle below the head / 1.0.0<1.1.0 1.1.0<1.0.0 1.2.0<1.1.0 2.0.0 / maxVersion: 1.9.0 => with versions <=1.9.0 the channel has a \
    cycle of replaces through p.v1.1.0; the catalog has the channel so: select other channels, or bundles by name
skips in a circle / 1.0.0<-1.1.0 1.1.0<-1.0.0 1.2.0 2.0.0<1.2.0,-1.0.0 / maxVersion: 1.9.0 => 1.0.0 1.1.0 1.2.0 2.0.0; p.v2.0.0 \
    taken too, because they connect the selected versions <=1.9.0
skips in a circle far below / 1.0.0<-1.1.0 1.1.0<-1.0.0 1.2.0 2.0.0<1.2.0 / maxVersion: 1.9.0 => with versions <=1.9.0 the channel \
    has entries that its head does not reach: p.v1.0.0, p.v1.1.0; the catalog has the channel so: select other channels, or bundles by name
several heads in the catalog / 1.0.0 2.0.0 / full: false => with heads only the channel has several heads: p.v1.0.0, p.v2.0.0; \
    the catalog has the channel so: select other channels, or bundles by name";

#[test]
fn selection_of_versions_takes_what_oc_mirror_takes_or_says_what_breaks() {
    for row in VERSIONS.lines() {
        let (case, expected) = row.split_once(" => ").unwrap();
        let [_, entries, rule] = case.split(" / ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let entries = entries.replace(
            "OP",
            "2.10.0 2.11.0<2.10.0 2.11.1<2.11.0 2.12.0-rc.1<2.11.1",
        );
        let lines = package("p", &format!("c: {entries}"));
        let taken = select(
            &format!("packages: [{{name: p, {rule}}}]"),
            &[("p", &lines)],
        );
        let taken = taken.map(|composed| {
            let channels = summary("p", &composed.packages["p"]);
            [&[channels], &composed.explanation.notices[..]]
                .concat()
                .join("; ")
        });
        let taken = taken
            .unwrap_or_else(|error| error)
            .replace("package p, channel c: ", "");
        assert_eq!(taken.trim_start_matches("*c: "), expected, "{row}");
    }
}

#[test]
fn apply_keeps_a_list_of_deprecations_that_is_null() {
    let deprecations = "{\"entries\":null,\"package\":\"db\",\"schema\":\"olm.deprecations\"}\n";
    let composed = select(STABLE, &[("db", &(db() + deprecations))]).unwrap();
    assert!(composed.packages["db"].ends_with(deprecations));
}

#[test]
fn apply_keeps_unchanged_lines_and_drops_what_names_gone_bundles() {
    let other = |name: &str, field: &str| {
        format!(
            "{{\"name\":\"{name}\",\"n\":12345678901234567890,\"package\":\"db\",{field}\"schema\":\"x.y\"}}\n"
        )
    };
    let deprecations = r#"{"entries":[{"message":"m1","reference":{"name":"db.v1.0.0","schema":"olm.bundle"}},{"message":"m2","reference":{"name":"db.v1.2.0","schema":"olm.bundle"}},{"message":"m3","reference":{"name":"old","schema":"olm.channel"}},{"message":"m4","reference":{"schema":"olm.package"}}],"package":"db","schema":"olm.deprecations"}"#;
    let lines = [
        db(),
        format!("{deprecations}\n"),
        other("a", ""),
        other("db.v1.0.0", ""),
        other("b", "\"channel\":\"old\","),
        other("old", "").replace("x.y", "io.openshift.operators.lifecycles.v1alpha1"),
    ]
    .concat();
    let composed = select(STABLE, &[("db", &lines)]).unwrap();
    let deprecations = r#"{"entries":[{"message":"m2","reference":{"name":"db.v1.2.0","schema":"olm.bundle"}},{"message":"m4","reference":{"schema":"olm.package"}}],"package":"db","schema":"olm.deprecations"}"#;
    let expected = [
        r#"{"defaultChannel":"stable","name":"db","schema":"olm.package"}"#,
        "\n",
        r#"{"entries":[{"name":"db.v1.2.0","replaces":"db.v1.1.0"}],"name":"stable","package":"db","schema":"olm.channel"}"#,
        "\n",
        &bundle("db", "1.2.0"),
        deprecations,
        "\n",
        &other("a", ""),
        &other("old", "").replace("x.y", "io.openshift.operators.lifecycles.v1alpha1"),
    ];
    assert_eq!(composed.packages["db"], expected.concat());
    assert_eq!(
        composed.explanation.notices,
        [
            "package db: a document of schema \"x.y\" was dropped, because it names db.v1.0.0, which is not selected",
            "package db: a document of schema \"x.y\" was dropped, because it names old, which is not selected",
        ]
    );
    assert_eq!(
        composed.decisions(),
        [
            "false db.v0.9.0 channel old is not selected",
            "false db.v1.0.0 not the head of stable",
            "false db.v1.1.0 channel fast is not selected, not the head of stable",
            "true db.v1.2.0 head of stable",
            "false db.v2.0.0 channel fast is not selected",
        ]
    );
}

#[test]
fn apply_unreadable_document_is_refused_unless_whole() {
    let lines = "{\"entries\":7,\"name\":\"c\",\"package\":\"p\",\"schema\":\"olm.channel\"}\n";
    let error = select("{}", &[("p", lines)]).err().unwrap();
    assert!(
        error.starts_with("package p: the olm.channel \"c\" cannot be read: "),
        "{error}"
    );
    assert_eq!(
        select("full: true", &[("p", lines)]).unwrap().shards["p"],
        0
    );
}

/// A chain of 20,000 entries, one where each skips 20 others, and a cycle of 20,000. Twice the
/// entries may take twice the time; quadratic work would take minutes.
#[test]
fn apply_hostile_channel_takes_linear_time() {
    const ENTRIES: usize = 20_000;
    let begin = Instant::now();
    let chain = |at| format!("0.0.{at}<0.0.{}", at - 1);
    let skips = |at: usize| {
        let skipped = (at.saturating_sub(20)..at).map(|skipped| format!("-0.0.{skipped}"));
        format!("0.0.{at}<{}", skipped.collect::<Vec<_>>().join(","))
    };
    let cycle = |at| format!("0.0.{at}<0.0.{}", at % ENTRIES + 1);
    let entries: [fn(usize) -> String; 3] = [chain, skips, cycle];
    for (entry, valid) in entries.into_iter().zip([true, true, false]) {
        let entries: Vec<String> = (1..=ENTRIES).map(entry).collect();
        let lines = package("p", &format!("c: {}", entries.join(" ")));
        assert!(
            select(
                "packages: [{name: p, minVersion: 0.0.10000}]",
                &[("p", &lines)]
            )
            .is_ok()
        );
        assert_eq!(select("{}", &[("p", &lines)]).is_ok(), valid);
    }
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
}
