//! The command line: output and exit codes.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, process::Command};

use model::Sha256;

use crate::support::binary::{self, Ran, path};
use crate::support::catalogs;
use crate::support::work::Work;

/// Polls a version of the example as `demo`. The caller checks the exit code, which tells a
/// publication.
fn poll(work: &Work, version: &str, more: &str) -> Ran {
    let line = format!(
        "poll --store store --json --detailed-exitcode --catalog demo=oci:example:{version} {more}"
    );
    work.run(&line)
}

#[test]
fn poll_exit_code_tells_published_only_if_asked() {
    let work = Work::new();
    let first = poll(&work, "v1", "").exits(10).json();
    assert_eq!(first[0]["outcome"], "published");
    assert_eq!(first[0]["changes"]["added"].as_array().unwrap().len(), 4);
    work.plays(
        "0 poll --store store --catalog demo=oci:example:v1 --detailed-exitcode
         > unchanged
         0 poll --store store --catalog demo=oci:example:v2
         > published
         1 poll --store store --catalog demo=oci:example:v9 --detailed-exitcode
         ! v9
         1 poll --store store --catalog a=oci:example:v1 --catalog b=oci:example:v9 --detailed-exitcode
         > published
         0 rollback --json --store store demo --previous
         > \"outcome\": \"published\"
         10 rollback --store store demo --previous --detailed-exitcode
         2 rollback --store store demo
         2 rollback --store store demo 0123 --previous
         10 sync store copy --detailed-exitcode
         0 sync store copy --detailed-exitcode",
    );
}

/// The log at `-v` tells the error, and the text does otherwise.
#[test]
fn poll_error_is_printed_once() {
    let work = Work::new();
    for command in [
        "poll --store store --catalog demo=oci:example:v9",
        "sync /nonexistent/store store demo",
    ] {
        for verbose in ["", "-v"] {
            let failed = work.run(&format!("{command} {verbose}")).exits(1);
            let lines = failed.stderr.lines();
            let lines = lines.filter(|line| line.contains("demo") || line.contains("nonexistent"));
            assert_eq!(lines.count(), 1, "{failed:#?}");
        }
    }
    let rolled_back = work.run("rollback --store store demo --previous").exits(1);
    assert_eq!(rolled_back.stderr.lines().count(), 1, "{rolled_back:#?}");
}

#[test]
fn render_prints_bytes_with_published_content_hash() {
    let work = Work::new();
    let layout = work.run("render oci:example:v1").exits(0).stdout;
    let folder = format!("render dir:{}", catalogs::folder("v1").display());
    assert_eq!(layout, work.run(&folder).exits(0).stdout);
    let polled = poll(&work, "v1", "").exits(10).json();
    assert_eq!(
        polled[0]["contentHash"],
        Sha256::of(layout.as_bytes()).to_string()
    );
    poll(&work, "v1", "--force").exits(0);
}

#[test]
fn render_error_names_file_document_and_problem() {
    let work = Work::new();
    work.write("bad/good.yaml", "schema: a\n");
    work.write("bad/bad.yaml", "schema: a\n---\nschema: b\nname: 1.10\n");
    work.plays("1 render bad\n! bad.yaml\n! document 2\n! name\n- schema");
}

#[test]
fn ls_describes_store() {
    let work = Work::published();
    let packages = work.run("ls --store store --json demo").exits(0).json();
    assert_eq!(packages.as_array().unwrap().len(), 4);
    work.plays(
        "0 ls --store store
         > demo
         > published
         0 rm --store store demo
         1 rm --store store demo",
    );
    assert!(!work.exists("store/catalogs/demo"));
    assert_eq!(work.run("ls --store store --json").exits(0).stdout, "[]\n");
}

/// A removal that was killed half way leaves the name in `catalogs.json`.
#[test]
fn commands_go_on_beside_a_name_without_a_catalog() {
    let work = Work::published();
    work.run("sync store other").exits(0);
    fs::remove_dir_all(work.path("store/catalogs/demo")).unwrap();
    work.plays(
        "0 ls --store store
         - oci:example
         0 verify --store store
         0 gc --store store --dry-run
         0 sync store copy
         1 export --store store --to a.tar
         ! the store has no catalogs
         0 sync other store --allow-diverged",
    );
    fs::remove_dir_all(work.path("store/catalogs/demo")).unwrap();
    work.plays("0 rm --store store demo\n1 rm --store store demo");
}

#[test]
fn help_and_version_are_printed() {
    let parts = "serve poll render ls verify rm demo codes".replace(' ', "\n> ");
    Work::new().plays(&format!(
        "0 --help
         > {parts}
         0 --version
         > commit
         > rustc
         2 no-such-command"
    ));
}

/// Names of strangers, as each shell asks for them. `scripts/checks/completions.sh` types them into the shells.
#[test]
fn completions_offer_only_names_that_no_shell_runs() {
    let work = Work::new();
    let names = [
        "etcd;touch made",
        "kafka$(touch made)",
        "mongo\ntouch made",
        "nats`touch made`",
        "--force",
        ".hidden",
        "a b",
        "a'b",
        "a\u{1b}[2J",
        "\u{202e}a",
        "redis_1.x-y",
    ];
    let line = |name| {
        serde_json::json!({"schema": "olm.package", "name": name, "defaultChannel": "c"})
            .to_string()
    };
    work.write("odd/catalog.json", names.map(line).join("\n"));
    work.run("poll --store store --catalog c=dir:odd").exits(0);
    for name in ["in;touch made", "in$(touch made)", "-in", "in.tar"] {
        work.write(name, "");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        for (words, offered) in [
            ("graph --store store c", "redis_1.x-y"),
            ("images --store store --package", "redis_1.x-y"),
            ("search --store store --package", "redis_1.x-y"),
            ("carry in", "example/ odd/ in.tar store/"),
            ("import --receipt", "example/ odd/ in.tar store/"),
        ] {
            let words: Vec<&str> = ["--", "catalog-mirror"]
                .into_iter()
                .chain(words.split(' '))
                .collect();
            let mut asked = binary::command(words.iter().chain([&""]));
            asked.current_dir(work.root());
            asked
                .env("CATALOG_MIRROR_COMPLETE", shell)
                .env("_CLAP_IFS", "\n");
            asked.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
            let said = Ran::of(&mut asked).exits(0).stdout;
            let values = said
                .lines()
                .filter_map(|line| line.split([':', '\t']).next());
            // No command that is asked for has this option.
            assert!(!said.contains("--force"), "{shell}: {words:?}: {said}");
            let values: BTreeSet<&str> = values.filter(|value| !value.starts_with("--")).collect();
            let values = values
                .difference(&BTreeSet::from(["-v", "-h"]))
                .copied()
                .collect();
            assert_eq!(
                BTreeSet::from_iter(offered.split(' ')),
                values,
                "{shell}: {words:?}"
            );
        }
    }
}

/// As bash asks: the words of the line, and the one under the cursor, which is the last.
#[test]
fn completions_know_commands_catalogs_and_packages() {
    let work = Work::published();
    symlink(path(), work.path("catalog-mirror")).unwrap();
    for (line, expected) in [
        ("catalog-mirror roll", "rollback"),
        ("catalog-mirror ls --store store dem", "demo"),
        (
            "catalog-mirror images --store store --package demo-q",
            "demo-queue",
        ),
        ("catalog-mirror gc --dry", "--dry-run"),
        ("catalog-mirror ls --store none dem", ""),
    ] {
        let script = format!(
            "PATH=$PWD:$PATH; source <(catalog-mirror completions bash); COMP_WORDS=({line}) COMP_TYPE=9; \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _clap_complete_catalog_mirror catalog-mirror \"${{COMP_WORDS[-1]}}\"; \
             echo \"${{COMPREPLY[*]}}\""
        );
        let completed = Ran::of(
            Command::new("bash")
                .args(["-c", &script])
                .current_dir(work.root()),
        );
        assert_eq!(completed.stdout.trim(), expected, "{line}: {completed:?}");
    }
}
