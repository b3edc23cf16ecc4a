//! Tables at a terminal of 80 and of 120 columns: nothing that a person asked for is cut off.

use std::fmt::Write;
use std::process::Command;

use crate::support::binary::{Ran, path};
use crate::support::work::Work;

const CATALOG: &str = "redhat-operator-index-v4-20";
const PACKAGE: &str = "advanced-cluster-management";
const SUMMARY: &str =
    "Advanced provisioning and management of OpenShift and Kubernetes clusters, with policies";

/// Returns the lines of a package with as many versions in one channel, as real ones have them.
fn package(package: &str, count: usize) -> String {
    let mut lines = format!(
        "{{\"schema\":\"olm.package\",\"name\":\"{package}\",\"defaultChannel\":\"release-2.15\"}}\n"
    );
    let entries: Vec<String> = (0..count)
        .map(|at| {
            let replaces = match at.checked_sub(1) {
                Some(before) => format!(",\"replaces\":\"{package}.v2.15.{before}\""),
                None => String::new(),
            };
            format!("{{\"name\":\"{package}.v2.15.{at}\"{replaces}}}")
        })
        .collect();
    let entries = entries.join(",");
    writeln!(
        lines,
        "{{\"schema\":\"olm.channel\",\"package\":\"{package}\",\"name\":\"release-2.15\",\"entries\":[{entries}]}}"
    )
    .unwrap();
    for at in 0..count {
        let version = format!("2.15.{at}");
        let csv = format!(
            "{{\"displayName\":\"Advanced Cluster Management for Kubernetes\",\"annotations\":{{\"description\":\"{SUMMARY}\"}},\
             \"provider\":{{\"name\":\"Red Hat\"}}}}"
        );
        writeln!(
            lines,
            "{{\"schema\":\"olm.bundle\",\"package\":\"{package}\",\"name\":\"{package}.v{version}\",\"image\":\"registry.redhat.io/rhacm2/acm-operator-bundle@sha256:{at:064}\",\
             \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"{package}\",\"version\":\"{version}\"}}}},\
             {{\"type\":\"olm.csv.metadata\",\"value\":{csv}}}]}}"
        )
        .unwrap();
    }
    lines
}

/// Runs a line at a terminal with so many columns.
fn at_terminal(work: &Work, line: &str, columns: usize) -> Ran {
    let program = path();
    let script = format!(
        "stty cols {columns} rows 50; exec {} {line}",
        program.display()
    );
    let mut command = Command::new("script");
    command.args(["-qec", &script, "/dev/null"]);
    command.current_dir(work.root()).env("NO_COLOR", "1");
    Ran::of(&mut command)
}

/// A store with two states of a catalog, each of real sizes.
fn site() -> Work {
    let work = Work::new();
    work.write(&format!("catalog/{PACKAGE}.json"), package(PACKAGE, 20));
    for other in [
        "openshift-gitops-operator",
        "cluster-logging",
        "web-terminal",
    ] {
        work.write(&format!("catalog/{other}.json"), package(other, 2));
    }
    let poll = format!("poll --store store --catalog {CATALOG}=dir:catalog");
    work.run(&poll).exits(0);
    for other in [
        "openshift-gitops-operator",
        "cluster-logging",
        "web-terminal",
        PACKAGE,
    ] {
        let count = if other == PACKAGE { 21 } else { 3 };
        work.write(&format!("catalog/{other}.json"), package(other, count));
    }
    // Without this, so many changes at once are held back.
    work.run(&format!("{poll} --force")).exits(0);
    work.write(
        "installed.txt",
        format!("{PACKAGE} 2.15.0 release-2.15\nopenshift-gitops-operator 2.15.2\ncluster-logging 9.0.0\n"),
    );
    work.write("compose.yaml", format!("inputs: [{{catalog: {CATALOG}}}]"));
    work
}

#[test]
fn no_table_cuts_off_what_was_asked() {
    let work = site();
    let way: Vec<String> = (1..=20).map(|at| format!("2.15.{at}")).collect();
    let way = way.join(" -> ");
    let plan = format!("plan installed.txt --store store --from {CATALOG} --to {CATALOG}");
    let lines: [(String, &[&str]); 17] = [
        (
            "ls --store store".to_owned(),
            &[CATALOG, "dir:catalog", "published"],
        ),
        (
            format!("ls --store store {CATALOG}"),
            &[
                PACKAGE,
                "2.15.20",
                "release-2.15",
                "openshift-gitops-operator",
                "STORED",
            ],
        ),
        (
            format!("history --store store {CATALOG}"),
            &[
                "ago",
                "~4: advanced-cluster-management, cluster-logging, openshift-gitops-operator, ...",
                "published",
            ],
        ),
        (
            "search --store store advanced".to_owned(),
            &[PACKAGE, "2.15.20", "release-2.15", SUMMARY],
        ),
        (
            format!("upgrade --store store {CATALOG} {PACKAGE} 2.15.0"),
            &["release-2.15", "20", &way],
        ),
        (
            plan,
            &[
                PACKAGE,
                "2.15.0",
                "either",
                "stays",
                "no way",
                &way,
                "cluster-logging: package cluster-logging has no version and no bundle \"9.0.0\"",
                "3 operators: 1 stays",
            ],
        ),
        (
            format!("diff --store store {CATALOG}"),
            &["advanced-cluster-management.v2.15.20", "4 changed"],
        ),
        (
            "compose --store store --explain compose.yaml".to_owned(),
            &[PACKAGE, "REASON"],
        ),
        ("verify --store store".to_owned(), &[CATALOG, "FINDINGS"]),
        (
            format!("poll --store store --catalog {CATALOG}=dir:catalog"),
            &[CATALOG, "unchanged", "TIME"],
        ),
        (
            "sync store copy".to_owned(),
            &[CATALOG, "ALL.JSON.GZ", "TIME"],
        ),
        (format!("validate --store store {CATALOG}"), &["0 errors"]),
        (
            format!("diff --store store {CATALOG} 1 2"),
            &[
                "openshift-gitops-operator.v2.15.2",
                "advanced-cluster-management.v2.15.20",
                "release-2.15",
            ],
        ),
        (
            "export --store store --to a.tar".to_owned(),
            &["a.001.tar", "SHA256", "catalog-mirror export --since"],
        ),
        (
            "import --store imported a.tar".to_owned(),
            &[CATALOG, "ALL.JSON.GZ", "TIME"],
        ),
        (
            "gc --store store --dry-run".to_owned(),
            &["would be condemned", "SNAPSHOTS"],
        ),
        (
            format!("rollback --store store {CATALOG} --previous"),
            &[CATALOG, "PUBLISHED", "TIME"],
        ),
    ];
    let mut wrong = Vec::new();
    for (line, values) in &lines {
        for columns in [80, 120] {
            let ran = at_terminal(&work, line, columns);
            // What was wrapped is whole again without the line ends and the padding of the columns.
            let dense = |text: &str| text.split_whitespace().collect::<String>();
            let shown = dense(&ran.stdout);
            for value in *values {
                if !shown.contains(&dense(value)) {
                    wrong.push(format!("{line} at {columns} lacks {value}: {ran:#?}"));
                }
            }
            if ran.stdout.contains('…') {
                wrong.push(format!("{line} at {columns} is cut: {ran:#?}"));
            }
            let is_wide = |row: &str| last_drawn(row).chars().count() > columns;
            if ran.stdout.lines().any(is_wide) {
                wrong.push(format!("{line} at {columns} is too wide: {ran:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns what stays on a line after progress was drawn and cleared on it.
fn last_drawn(row: &str) -> &str {
    let row = row.trim_end();
    let row = row.rsplit('\r').next().unwrap_or_default();
    row.rsplit("\u{1b}[2K").next().unwrap_or_default()
}

#[test]
fn pipe_gets_each_row_on_one_line() {
    let work = site();
    let way: Vec<String> = (1..=20).map(|at| format!("2.15.{at}")).collect();
    let way = way.join(" -> ");
    work.run(&format!("upgrade --store store {CATALOG} {PACKAGE} 2.15.0"))
        .exits(0)
        .prints(&way);
    let plan = format!("plan installed.txt --store store --from {CATALOG} --to {CATALOG}");
    work.run(&plan).exits(1).prints(&way);
}
