//! ImageSetConfigurations, FilterConfigurations and compositions as files.

use compose::{ComposeFile, Composition, DependencyRule};

const HEAD: &str = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n";

fn error(text: &str) -> String {
    let error = ComposeFile::parse(text).unwrap_err();
    model::text::chain(&error)
}

#[test]
fn image_set_gives_a_composition_for_each_entry() {
    let text = [
        HEAD,
        "archiveSize: 4
mirror:
  platform: {channels: [{name: stable-4.20}], graph: true}
  additionalImages: [{name: registry.example/a:1}]
  helm: {}
  blockedImages: [{name: x}]
  operators:
  - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.20
    packages:
    - name: db
      minVersion: 1.0.0
      channels: [{name: stable}]
  - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.20
    targetCatalog: mine/full
    full: true
    skipDependencies: true
  - catalog: quay.io/a/index@sha256:0000000000000000000000000000000000000000000000000000000000000000
    targetTag: v1.2
    platforms: [{os: linux, architecture: arm64}]
  - catalog: oci:///var/lib/catalogs/Certified_index
",
    ]
    .concat();
    let ComposeFile::ImageSet(image_set) = ComposeFile::parse(&text).unwrap() else {
        panic!("an image set")
    };
    let names: Vec<&str> = image_set
        .entries
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    let names = names.join(", ");
    assert_eq!(
        names,
        "redhat-operator-index-v4-20, mine-full, index-v1-2, certified-index"
    );
    assert_eq!(image_set.unused().join(" "), "platform archiveSize");
    assert_eq!(image_set.blocked.blocking("quay.io/a/x:1"), Some("x"));
    assert_eq!(image_set.additional[0].name, "registry.example/a:1");
    let [first, full, _, layout] = [0, 1, 2, 3].map(|at: usize| &image_set.entries[at].composition);
    let select = |composition: &Composition| composition.inputs[0].select.clone().unwrap();
    assert_eq!(select(first).packages[0].channels[0].name, "stable");
    assert!(select(full).full && full.dependencies == DependencyRule::Ignore);
    let source = layout.inputs[0].source.as_deref();
    assert_eq!(source, Some("oci:/var/lib/catalogs/Certified_index"));
    for (name, expected) in [
        (Some("mine-full"), "mine-full".to_owned()),
        (
            None,
            format!("the file has several entries: choose one of {names}"),
        ),
        (
            Some("x"),
            format!("the file has no entry x: choose one of {names}"),
        ),
    ] {
        let chosen = image_set.clone().entry(name);
        let chosen = chosen.map_or_else(|error| error.to_string(), |entry| entry.name.to_string());
        assert_eq!(chosen, expected);
    }
}

/// Fields of an entry beside its catalog, and the name and the target that it gets. Targets are those
/// of oc-mirror v2 (855b64a3, `destCtlgRef`), but for a digest alone: it has the digest of the
/// filtered catalog there.
const TARGETS: &str = "\
h.example/redhat/index:v4.20 | => index-v4-20 redhat/index:v4.20
h.example:5000/index:v4.20 | => index-v4-20 index:v4.20
h.example/redhat/index | => index-latest redhat/index:latest
h.example/redhat/index@sha256:0123 | => index redhat/index:sha256-0123
h.example/redhat/index:v4.20@sha256:0123 | => index redhat/index:v4.20
h.example/redhat/index@sha256:0123 | targetTag: v4.20 => index-v4-20 redhat/index:v4.20
h.example/redhat/index:v4.20 | targetTag: '7' => index-7 redhat/index:7
h.example/redhat/index:v4.20 | targetCatalog: mine => mine mine:v4.20
h.example/redhat/index:v4.20 | targetCatalog: mine, targetTag: '7' => mine-7 mine:7
h.example/redhat/index:v4.20 | targetCatalog: ns/mine, targetTag: '7' => ns-mine-7 ns/mine:7
h.example/redhat/index:v4.20 | targetCatalog: '', targetTag: '' => index-v4-20 redhat/index:v4.20
oci:///var/lib/My_index | => my_index my_index:latest";

#[test]
fn entry_has_name_and_target_as_in_oc_mirror() {
    for row in TARGETS.lines() {
        let (fields, expected) = row.split_once(" => ").unwrap();
        let (catalog, others) = fields.split_once(" |").unwrap();
        let others = match others.trim() {
            "" => String::new(),
            others => format!(", {others}"),
        };
        let text =
            format!("{HEAD}mirror: {{operators: [{{catalog: '{catalog}'{others}}}]}}\n---\n");
        let ComposeFile::ImageSet(set) = ComposeFile::parse(&text).unwrap() else {
            panic!("{row}")
        };
        let entry = &set.entries[0];
        let expected = expected.replace("my_index my", "my-index my");
        assert_eq!(
            format!("{} {}", entry.name, entry.target),
            expected,
            "{row}"
        );
    }
}

#[test]
fn entries_with_one_target_catalog_and_two_tags_are_two_catalogs() {
    for tags in ["targetTag: v1 / targetTag: v2", " / "] {
        let (one, other) = tags.split_once('/').unwrap();
        let text = format!(
            "kind: ImageSetConfiguration
mirror:
  operators:
  - {{catalog: h.example/a:v1, targetCatalog: team/own, {one}}}
  - {{catalog: h.example/a:v2, targetCatalog: team/own, {other}}}
"
        );
        let ComposeFile::ImageSet(set) = ComposeFile::parse(&text).unwrap() else {
            panic!("{text}")
        };
        let names: Vec<&str> = set
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        assert_eq!(names, ["team-own-v1", "team-own-v2"]);
    }
}

#[test]
fn filter_configuration_is_a_selection_of_its_packages() {
    let packages = "packages:
- name: foo
- {name: bar, defaultChannel: one, channels: [{name: one, versionRange: '>=1.0.0 <2.0.0'}]}
";
    let head =
        "apiVersion: olm.operatorframework.io/filter/mirror/v1alpha1\nkind: FilterConfiguration\n";
    let filter = ComposeFile::parse(&(head.to_owned() + packages)).unwrap();
    assert_eq!(
        filter,
        ComposeFile::Filter(serde_saphyr::from_str(packages).unwrap())
    );
}

#[test]
fn composition_is_read_with_defaults() {
    let text = "inputs:
- catalog: redhat@e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
- source: dir:mine
  select: {packages: [{name: db, minVersion: 1.0.0}]}
add:
- source: dir:more
  replace: true
remove:
- package: old
- {package: db, channels: [beta], bundles: [db.v1.0.1]}
conflicts: first
";
    let ComposeFile::Composition(composition) = ComposeFile::parse(text).unwrap() else {
        panic!("a composition")
    };
    assert_eq!(composition.inputs[0].select, None);
    assert!(composition.add[0].replace && composition.dependencies == DependencyRule::Warn);
    let written = serde_saphyr::to_string(&composition).unwrap();
    assert_eq!(
        ComposeFile::parse(&written).unwrap(),
        ComposeFile::Composition(composition)
    );
}

/// Texts with `|` between lines, and a part of the error.
const WRONG_IMAGE_SETS: &str = "\
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    pakages: [] => line 6: unknown field
mirror:|  operatos: [] => line 4: unknown field
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    packages:|    - name: a|      minVersion: 1.y => \
    line 5: input quay.io/a/b:v1: package a, minVersion \"1.y\": this is not a version such as 2.11.0 or 2.11
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    full: true|    packages: [{name: a, minVersion: 1.0.0}] => \
    line 5: input quay.io/a/b:v1: package a: full: true takes every version
mirror:|  operators:|  - catalog: quay.io/a/b:v1|  - catalog: quay.io/c/b:v1 => \
    line 6: two entries have the name b-v1: set another targetCatalog or targetTag at one of them
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    targetCatalog: -x => line 5: targetCatalog: \"-x\" is no path of a repository
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    targetCatalog: a/b:v1 => line 5: targetCatalog: \"a/b:v1\" is no path
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    targetTag: a b => line 5: targetTag: \"a b\" is no tag
mirror:|  blockedImages: [{name: '('}] => line 4: blockedImages: \"(\" is no regular expression
mirror:|  blockedImages: [{name: 'a{999}{999}{999}'}] => line 4: blockedImages: \"a{999}{999}{999}\" is no regular expression
mirror:|  blockedImages: [{name: ''}] => line 4: blockedImages: an empty name blocks every image
mirror:|  blockedImages: x => line 4: blockedImages: write a list
mirror: {operators: [{catalog: a.io/b:v1, full: 7}]} => line 3: full: write true or false
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    platforms: [{os: linux, architecture: ''}] => line 5: platforms: each has an os
mirror:|  additionalImages: [{name: a, targetRepo: 'a:b'}] => line 4: targetRepo: \"a:b\" is no path of a repository
archiveSize: 4 => missing field";

const WRONG_FILES: &str = "\
a: [ => line 1:
kind: Pod|apiVersion: v1 => Pod of \"v1\" is not known: use ImageSetConfiguration of
inputs: []|conflicts: last => line 2:";

#[test]
fn file_wrong_says_what_and_names_the_line() {
    for (head, table) in [(HEAD, WRONG_IMAGE_SETS), ("", WRONG_FILES)] {
        for row in table.lines() {
            let (text, expected) = row.split_once(" => ").unwrap();
            let error = error(&(head.to_owned() + &text.replace('|', "\n")));
            assert!(error.contains(expected), "{row}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

#[test]
fn image_set_of_v1_names_the_lines_to_change() {
    let text = "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v1alpha2
storageConfig:
  local: {path: ./x}
mirror:
  operators:
  - catalog: quay.io/a/b:v1
    targetName: mine
";
    assert_eq!(
        error(text),
        "mirror.openshift.io/v1alpha2 is the format of oc-mirror v1; change these lines: \
         line 2, apiVersion: write mirror.openshift.io/v2alpha1; \
         line 3, storageConfig: remove it: oc-mirror v2 keeps no metadata; \
         line 8, targetName: write targetCatalog"
    );
}
