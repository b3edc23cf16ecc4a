//! Mistakes of people and texts of strangers, as they meet the commands.

use std::{collections::BTreeSet, fs};

use crate::support::{binary::Ran, cargo, work::Work};

/// Command lines with a mistake, and below each the text that it gets.
const MISTAKES: &str = r#"
# Sources.
poll --store s --catalog demo
    write NAME=SOURCE
poll --store s --catalog demo=
    the source is empty: write registry/repo:tag, https://HOST/PATH.tar.gz, git:https://HOST/PATH#REF:PATH, oci:DIR[:TAG] or dir:PATH
poll --store s --catalog demo=./none
    `./none` is a path: write dir:./none for a folder of catalog files, oci:./none for an image layout
poll --store s --catalog demo=none
    `none` names no registry: write it out, such as quay.io/none or docker.io/none, or dir:none for a folder
poll --store s --catalog demo=quay.io/a/b
    `quay.io/a/b` has neither tag nor digest: add one, such as quay.io/a/b:latest
poll --store s --catalog demo=quay.io/a/b@sha256:1
    has a malformed digest: write sha256:<64 hex digits in lower case>
poll --store s --catalog demo=quay.io/A/b:v1
    its repository may hold only lower case letters, digits and single separators
poll --store s --catalog demo=ftp://user:password@a/b
    `ftp://***@a/b` has an unknown scheme: write docker://, https://, git:, oci: or dir:, or no scheme at all
poll --store s --catalog demo=git@github.com:owner/repo
    git:https://HOST/PATH#REF:PATH
poll --store s --catalog demo=dir:none
    demo: cannot pull the catalog: cannot read none: No such file or directory
poll --store s --catalog demo=oci:folder
    cannot read folder/index.json: No such file or directory
poll --store s --catalog demo=oci:example:v9
    the image layout has no image tagged v9; it has v1, v2
poll --store s --catalog demo=dir:empty
    it holds no packages at all; check the source, or publish it as it is with `--force`
poll --store s --catalog demo=127.0.0.1:1/a/b:v1
    registry 127.0.0.1:1, repository a/b: cannot connect: Connection refused (5 attempts)
poll --store s --catalog demo=http://127.0.0.1:1/a.tar
    plain http is refused; use https, or list 127.0.0.1:1 under plainHttp (--plain-http)
poll --store s --catalog Demo=dir:folder
    lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit), not "Demo"
render dir:map.yaml
    cannot read map.yaml: not a directory
render ./none
    `./none` is a path: write dir:./none for a folder of catalog files, oci:./none for an image layout
validate folder
    the store has no catalog folder; write ./folder for the folder
diff ./folder
    name two sources to compare
# Options.
poll --store s
    there is nothing to poll: name catalogs with --config or --catalog
serve --store s
    name catalogs with --config or --catalog, or serve with --no-poll
serve --no-poll --listen 80800
    "80800" is not ADDRESS:PORT or PORT, such as 127.0.0.1:8080, or 0.0.0.0:8080 for all addresses
serve --no-poll --listen 192.0.2.1:80
    cannot listen on 192.0.2.1:80 (choose another address with --listen): Cannot assign requested address
poll --store s --catalog demo=dir:folder --interval ten
    "ten" is not a duration: write a number and a unit, such as 30s, 10m or 24h
poll --store s --catalog demo=dir:folder --limit documents=x
    --limit documents=x: "x" is not a whole number
poll --store s --catalog demo=dir:folder --limit documents=0
    0 is out of range: it must be at least 1
poll --store s --catalog demo=dir:folder --limit document=1
    there is no such limit (did you mean documents?); there are
poll --store s --catalog demo=dir:folder --platform arm
    "arm" is not OS/ARCH, such as linux/amd64
poll --store s --catalog demo=dir:folder --auth-file none
    authFiles (--auth-file), none: cannot be read: No such file or directory
poll --store s --catalog demo=dir:folder --ca-file none
    caFiles (--ca-file), none: cannot be read: No such file or directory
poll --store s --catalog demo=dir:folder --signing-key none
    --signing-key: none cannot be read: No such file or directory
poll --store s --catalog demo=dir:folder --s3-region x
    the options for S3 need a store such as s3://BUCKET/PREFIX
poll --store s3://B --catalog demo=dir:folder
    "B" is no bucket name: 3 to 63 of a-z, 0-9, dot and hyphen
poll --store /proc/s --catalog demo=dir:folder
    error: cannot open /proc/s: No such file or directory
# Files.
poll --store s --config none.yaml
    none.yaml: cannot be read: No such file or directory
poll --store s --config folder
    folder: cannot be read: Is a directory
poll --store s --config map.yaml
    map.yaml, catalogs: write a list, not a mapping
poll --store s --config number.yaml
    number.yaml, registries, authFiles, [0]: write a path, not 7
poll --store s --config field.yaml
    catalog a: unknown field sorce (did you mean source?); known are
poll --store s --config syntax.yaml
    syntax.yaml: is not valid YAML: unclosed bracket '[' at line 1, column 11
poll --store s --config kind.yaml
    write a ClusterCatalog of olm.operatorframework.io/v1, or a file with `catalogs` and without a kind
compose none.yaml
    cannot read none.yaml: No such file or directory
compose image-set.yaml
    image-set.yaml: line 6: packages: write a list
compose --store store package.yaml
    input demo has no package demo-databas (did you mean demo-database?)
import --store s none.tar
    cannot open none.tar: No such file or directory
import --store s map.yaml
    map.yaml is not a volume of an archive: it is not a tar file of `catalog-mirror export`, or it was cut off
keygen /none/key
    cannot write /none/key: No such file or directory
# Stores and mirrors.
ls --store store dem
    the store has no catalog dem (did you mean demo?)
images --store store other
    the store has no catalog other
images --store store --package demo-databas
    none of the catalogs has a package "demo-databas" (did you mean demo-database?)
images --store store --channel stabel
    none of the packages has a channel "stabel"
search --store store --catalog dem etcd
    error: the store has no catalog dem (did you mean demo?)
search --store store a b c d e f g h i j k
    at most 10 words
rm --store store dem
    the store has no catalog dem (did you mean demo?)
verify --store store dem
    the store has no catalog dem (did you mean demo?)
export --store store --to a.tar dem
    the store has no catalog dem (did you mean demo?)
receipt --store store dem
    the store has no catalog dem (did you mean demo?)
rollback --store store dem --previous
    the store has no catalog dem (did you mean demo?)
rollback --store store demo --previous
    cannot roll back: there is no earlier publication
manifests --store store --url mirror.example
    "mirror.example" is not a URL: write https://HOST[:PORT]
sync mirror.example copy
    there is no folder mirror.example; write http://mirror.example or https://mirror.example for a mirror on a server
sync http://127.0.0.1:1 copy
    cannot read the origin: cannot read catalogs.json: the request failed (5 attempts): 127.0.0.1:1: cannot connect: Connection refused
sync none copy
    there is no folder none; write http://none or https://none for a mirror on a server
sync ./none copy
    ./none is not a store: it has no catalogs.json
sync broken copy
    of the origin is damaged: does not decode to the content that is recorded for it
lss
    some similar subcommands exist: 'list', 'ls'
# A fault of the program, which only tests can ask for.
CATALOG_MIRROR_TEST_DAMAGE=all.json.gz poll --store s --catalog demo=dir:folder
    all.json.gz was made, but does not decode to the lines of the catalog: nothing was published
"#;

/// Runs a line, which may begin with a variable of the environment.
fn run(work: &Work, line: &str) -> Ran {
    if let Some((variable, command)) = line.split_once(' ')
        && let Some((name, value)) = variable.split_once('=')
    {
        return Ran::of(work.command(command).env(name, value));
    }
    work.run(line)
}

fn mistakes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = MISTAKES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let texts = lines.clone().skip(1).step_by(2);
    lines.step_by(2).zip(texts.map(str::trim))
}

/// Words of libraries, which tell a user nothing.
const FOREIGN_WORDS: &[&str] = &[
    "os error",
    "client error",
    "error sending",
    "invalid type",
    "expected",
    "entire block",
    "panicked",
];

#[test]
fn mistakes_get_one_cause_in_plain_words() {
    let work = Work::published();
    work.write("folder/catalog.yaml", "{schema: olm.package, name: p}");
    fs::create_dir(work.path("empty")).unwrap();
    for (file, text) in [
        ("map.yaml", "catalogs: {name: a}"),
        ("number.yaml", "registries: {authFiles: [7]}"),
        (
            "field.yaml",
            "catalogs: [{name: a, sorce: 'quay.io/a/b:v1'}]",
        ),
        ("syntax.yaml", "catalogs: ["),
        ("kind.yaml", "kind: Catalog"),
        (
            "package.yaml",
            "inputs: [{catalog: demo, select: {packages: [{name: demo-databas}]}}]",
        ),
        (
            "image-set.yaml",
            "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: a.io/b:v1\n    packages: c\n",
        ),
    ] {
        work.write(file, text);
    }
    work.run("sync store broken").exits(0);
    work.publish_broken_gzip("broken", "demo");
    let mut wrong = Vec::new();
    for (line, text) in mistakes() {
        let ran = run(&work, line);
        // A failed poll or rollback is a row of a table too.
        let is_quiet = ran.stdout.is_empty() || ran.stdout.contains(" OUTCOME ");
        let is_refused = matches!(ran.code, Some(1 | 2)) && is_quiet && ran.stderr.contains(text);
        let is_foreign = FOREIGN_WORDS.iter().any(|word| ran.stderr.contains(word));
        if !is_refused || is_foreign || ran.stderr.lines().any(repeats_a_cause) {
            wrong.push((line, text, ran));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn troubleshooting_page_has_messages_that_mistakes_get() {
    let page = fs::read_to_string(cargo::root().join("infra/TROUBLESHOOTING.md")).unwrap();
    let messages = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut messages: Vec<&str> = messages.collect();
    assert!(messages.len() >= 20, "{messages:?}");
    messages.retain(|message| !mistakes().any(|(_, text)| text.contains(message)));
    assert_eq!(messages, [""; 0], "no mistake gets these");
}

#[test]
fn errors_and_failed_rows_are_red_where_colours_are_wanted() {
    let work = Work::published();
    let poll = "poll --store store --catalog bad=dir:none --catalog demo=oci:example:v1";
    for (line, red) in [
        ("ls --store store other", "error:"),
        (poll, "bad:"),
        (poll, " bad  "),
    ] {
        let wanted = Ran::of(work.command(line).env("CLICOLOR_FORCE", "1"));
        let unwanted = Ran::of(work.command(line).env("NO_COLOR", "1"));
        let coloured = format!("\u{1b}[31m{red}");
        let is_red = [&wanted.stdout, &wanted.stderr]
            .iter()
            .any(|text| text.contains(&coloured));
        assert!(is_red, "{wanted:?}");
        assert!(!wanted.stdout.contains("\u{1b}[31m demo"), "{wanted:?}");
        assert!(!format!("{unwanted:?}").contains("u{1b}"), "{unwanted:?}");
    }
}

fn repeats_a_cause(line: &str) -> bool {
    let causes: Vec<&str> = line.split(": ").collect();
    causes.iter().collect::<BTreeSet<_>>().len() < causes.len()
}

/// A folder that is no store is most likely a misspelt name or a volume that is not mounted.
#[test]
fn folder_that_is_not_a_store_is_refused_and_left_alone() {
    let work = Work::new();
    work.write("other/file", "");
    let commands = "ls; ls demo; search etcd; validate demo; verify; verify --repair-from other; gc; gc --dry-run; \
        rollback demo --previous; diff demo; images; manifests --url https://mirror.example; rm demo; \
        export --to archive.tar; receipt";
    for line in commands.split("; ") {
        for store in ["other", "some/missing"] {
            let refused = work.run(&format!("{line} --store {store}")).exits(1);
            refused.complains(&format!(
                "error: {store} is not a store: it has no catalogs.json\n"
            ));
        }
        let default = work.run(line).exits(1);
        default.complains("error: ./store is not a store: ");
        default.complains(
            "this is the default, and --store or `store` of the configuration names another",
        );
    }
    work.run("sync other copy")
        .exits(1)
        .complains("other is not a store");
    assert_eq!(fs::read_dir(work.path("other")).unwrap().count(), 1);
    assert!(
        !["store", "some", "archive.tar"]
            .iter()
            .any(|path| work.exists(path))
    );
}

/// Names, versions and images of a catalog may hold anything. On a terminal, control characters
/// move the cursor or more.
#[test]
fn control_characters_of_a_catalog_reach_no_table_and_no_list() {
    let work = Work::new();
    let evil = r"\u001b[2J\u0007\nevil\u009b";
    for (folder, bundle) in [("old", "a"), ("new", "b")] {
        let text = format!(
            r#"{{"schema":"olm.package","name":"p{evil}","defaultChannel":"c{evil}"}}
{{"schema":"olm.channel","package":"p{evil}","name":"c{evil}","entries":[{{"name":"{bundle}{evil}"}}]}}
{{"schema":"olm.bundle","package":"p{evil}","name":"{bundle}{evil}","image":"r.example/i{evil}","properties":[{{"type":"olm.package","value":{{"packageName":"p{evil}","version":"1.0.0{evil}"}}}}]}}
"#
        );
        work.write(&format!("{folder}/catalog.json"), text);
        work.run(&format!("poll --store store --catalog c=dir:{folder}"))
            .exits(0);
    }
    work.write("compose.yaml", "inputs: [{catalog: c}]");
    for (line, code) in [
        ("ls --store store c", 0),
        ("images --store store", 0),
        ("images --store store --format skopeo-sync", 0),
        ("validate dir:new", 1),
        ("diff dir:old dir:new", 10),
        ("compose --store store --explain compose.yaml", 0),
    ] {
        let output: Ran = work.run(line).exits(code);
        for text in [&output.stdout, &output.stderr] {
            let control = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(control, None, "{output:?}");
            // A line feed of the catalog would begin a line of its own.
            assert!(
                !text.lines().any(|line| line.starts_with("evil")),
                "{output:?}"
            );
        }
    }
}

/// The decision for glibc: with its defaults a server grows to three times its memory.
#[cfg(target_os = "linux")]
#[test]
fn serve_runs_with_two_arenas_and_gives_large_buffers_back() {
    let server = Work::published().serve("");
    let environment = fs::read_to_string(format!("/proc/{}/environ", server.id())).unwrap();
    let mut settings: Vec<&str> = environment
        .split('\0')
        .filter(|text| text.starts_with("MALLOC_"))
        .collect();
    settings.sort_unstable();
    assert_eq!(
        settings,
        ["MALLOC_ARENA_MAX=2", "MALLOC_MMAP_THRESHOLD_=262144"]
    );
}
