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
    platforms: [{os: linux}]
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
        .map(|(name, _)| name.as_str())
        .collect();
    let names = names.join(", ");
    assert_eq!(
        names,
        "redhat-operator-index-v4-20, mine-full, index-v1-2, certified-index"
    );
    let ignored = "platform additionalImages helm blockedImages archiveSize platforms";
    assert_eq!(image_set.ignored.join(" "), ignored);
    let [first, full, _, layout] = [0, 1, 2, 3].map(|at: usize| &image_set.entries[at].1);
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
        let chosen = chosen.map_or_else(|error| error.to_string(), |(name, _)| name.to_string());
        assert_eq!(chosen, expected);
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
    line 6: two entries have the name b-v1: set targetCatalog or targetTag of one of them
mirror:|  operators:|  - catalog: quay.io/a/b:v1|    targetCatalog: -x => line 5: a catalog's name is a DNS-1123 subdomain
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
