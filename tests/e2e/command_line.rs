//! The command line as a person types it: aliases, tips, quiet runs, reports in JSON, and progress.

use std::process::Command;

use crate::support::binary::{Ran, path};
use crate::support::work::Work;

#[test]
fn words_of_other_programs_work_or_lead_to_the_command() {
    let work = Work::published();
    work.plays(
        "0 list --store store
         > oci:example
         0 log --store store demo
         > SERIAL
         2 status
         ! `ls` lists the catalogs
         - validate
         2 pull
         ! `poll` publishes
         2 mirror
         ! `carry` brings
         2 serv
         ! 'serve'
         0 remove --store store demo
         > removed 2 documents",
    );
}

#[test]
fn help_of_each_command_ends_with_the_manual() {
    let work = Work::new();
    for line in [
        "--help",
        "plan --help",
        "carry out --help",
        "bundle diff -h",
    ] {
        let help = work.run(line).exits(0).stdout;
        let end = "Manual: https://catalog-mirror.github.io/catalog-mirror/\n";
        assert!(help.ends_with(end), "{line}: {help}");
    }
}

#[test]
fn quiet_prints_results_and_errors_only() {
    let work = Work::published();
    work.run("sync store copy --quiet").exits(0);
    let lines = [
        "poll -q --store store --catalog demo=oci:example:v2",
        "rollback -q --store store demo --previous",
        "sync -q store copy",
        "export -q --store store --to a.tar",
        "export -q --store store --static tree",
        "import -q --store imported a.tar",
        "import -q --store imported a.tar",
        "gc -q --store store",
        "rm -q --store copy demo",
    ];
    for line in lines {
        let ran = work.run(line).exits(0);
        assert!(
            ran.stdout.is_empty() && ran.stderr.is_empty(),
            "{line}: {ran:#?}"
        );
    }
    work.plays(
        "0 ls -q --store store
         > demo
         1 poll -q --store store --catalog demo=oci:example:none
         ! demo: 
         1 rm -q --store store none
         ! the store has no catalog none
         2 poll -q -v --store store
         ! cannot be used with",
    );
    let report = work.run("sync -q --json store other").exits(0).json();
    assert_eq!(report[0]["outcome"], "published");
}

#[test]
fn rm_and_keygen_report_in_json() {
    let work = Work::published();
    let made = work.run("keygen --json key").exits(0).json();
    assert_eq!(made["privateKey"], "key");
    assert_eq!(made["publicKey"], "key.pub");
    let line = work.run("keygen other").exits(0).stdout;
    assert_eq!(
        made["keyId"].as_str().unwrap().len(),
        line.find(' ').unwrap()
    );

    let removed = work
        .run("rm --json --store store demo none")
        .exits(1)
        .json();
    assert_eq!(removed[0]["catalog"], "demo");
    assert_eq!(removed[0]["documents"], 2);
    let error = removed[1]["error"].as_str().unwrap();
    assert!(error.contains("has no catalog none"), "{error}");
}

/// With `--images-at` alone there are manifests of images only, and never an empty answer.
#[test]
fn manifests_without_the_url_of_the_mirror_are_those_of_images() {
    let work = Work::published();
    work.plays(
        "0 manifests --store store --images-at r.example/x
         > kind: ImageDigestMirrorSet
         - ClusterCatalog
         0 manifests --store store --images-at r.example/x --kind registries-conf
         > r.example/x
         1 manifests --store store --images-at r.example/x --kind clustercatalog
         ! name the mirror with --url
         1 manifests --store store --images-at r.example/x --kind catalogsource-address
         ! name the mirror with --url",
    );
}

/// Returns the output of a line at a terminal.
fn at_terminal(work: &Work, line: &str) -> Ran {
    let script = format!("stty cols 120 rows 50; exec {} {line}", path().display());
    let mut command = Command::new("script");
    command.args(["-qec", &script, "/dev/null"]);
    Ran::of(command.current_dir(work.root()))
}

#[test]
fn poll_at_a_terminal_moves_through_its_phases() {
    let work = Work::new();
    for at in 0..1500 {
        let name = format!("package-{at}");
        let text = "long description of a bundle ".repeat(200);
        let lines = format!(
            "{{\"schema\":\"olm.package\",\"name\":\"{name}\",\"defaultChannel\":\"c\"}}\n\
             {{\"schema\":\"olm.channel\",\"package\":\"{name}\",\"name\":\"c\",\"entries\":[{{\"name\":\"{name}.v1\"}}]}}\n\
             {{\"schema\":\"olm.bundle\",\"package\":\"{name}\",\"name\":\"{name}.v1\",\"image\":\"r.example/{name}:1\",\
             \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"{name}\",\"version\":\"1.0.0\"}}}},\
             {{\"type\":\"text\",\"value\":\"{text}\"}}]}}\n"
        );
        work.write(&format!("catalog/{name}.json"), lines);
    }
    let line = "poll --store store --catalog c=dir:catalog";
    let shown = at_terminal(&work, line).exits(0).stdout;
    assert!(
        shown.contains("0 of 1 catalogs done, 1 reading ("),
        "{shown}"
    );
    assert!(shown.contains("1 storing ("), "{shown}");
    assert!(shown.contains("of 1500 packages)"), "{shown}");
    assert!(shown.contains("published"), "{shown}");
}
