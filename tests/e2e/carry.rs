//! `carry` with a registry of the tests, and a skopeo of the tests that copies images to folders.
//! scripts/checks/carry.sh has the real ones.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use testkit::{Fault, Image, Kind, Registry, until};

use crate::support::binary::{Ran, Server};
use crate::support::{bundles, catalogs, wait_for_next_second, work::Work};

/// A registry with a catalog of one package with two images, and an ImageSetConfiguration of it.
struct CarrySite {
    work: Work,
    registry: Registry,
    images: [Image; 2],
}

impl CarrySite {
    async fn start() -> Self {
        let (work, registry) = (Work::new(), Registry::start().await);
        let host = registry.host().to_owned();
        let images = ["1", "2"].map(bundles::image);
        let [bundle, operator] = [&images[0].digest, &images[1].digest];
        let text = format!(
            "schema: olm.package\nname: small\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: small\nname: stable\nentries: [{{name: small.v1}}]\n---\nschema: olm.bundle\npackage: small\nname: small.v1\nimage: {host}/team/app@{bundle}\nrelatedImages: [{{name: a, image: \"{host}/other/app@{operator}\"}}]\nproperties: [{{type: olm.package, value: {{packageName: small, version: 1.0.0}}}}]\n"
        );
        work.write("small/catalog.yaml", text);
        let catalog = catalogs::image(&catalogs::files(&work.path("small")));
        registry.push("ns/index", "v4.20", &catalog);
        registry.push("team/app", "v1", &images[0]);
        registry.push("other/app", "v1", &images[1]);
        let isc = "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {operators: [{catalog: 'HOST/ns/index:v4.20', packages: [{name: small}]}]}\n";
        work.write("isc.yaml", isc.replace("HOST", &host));
        let site = Self {
            work,
            registry,
            images,
        };
        site.write_skopeo("1.9.3", "");
        for image in &site.images {
            site.write_image(image);
        }
        site
    }

    /// Writes an image as skopeo does, for the skopeo of the tests.
    fn write_image(&self, image: &Image) {
        let folder = image.digest.replace("sha256:", "images-of/");
        let manifest = &image.manifests[&image.digest].1;
        self.work
            .write(&format!("{folder}/manifest.json"), manifest);
        for (digest, blob) in &image.blobs {
            let name = digest.replace("sha256:", "");
            self.work.write(&format!("{folder}/{name}"), blob);
        }
    }

    /// Publishes a catalog of one package. Each bundle replaces the one before it, has the first
    /// image as its own, and needs another one.
    fn publish(&self, bundles: &[(&str, &str)]) {
        self.publish_of(self.registry.host(), bundles);
    }

    /// Publishes a catalog whose references name another host.
    fn publish_of(&self, host: &str, bundles: &[(&str, &str)]) {
        let own = &self.images[0].digest;
        let mut text =
            String::from("schema: olm.package\nname: small\ndefaultChannel: stable\n---\n");
        text += "schema: olm.channel\npackage: small\nname: stable\nentries:\n";
        for (at, (name, _)) in bundles.iter().enumerate() {
            text += &format!("- name: {name}\n");
            if let Some((before, _)) = at.checked_sub(1).map(|before| bundles[before]) {
                text += &format!("  replaces: {before}\n");
            }
        }
        for (at, (name, image)) in bundles.iter().enumerate() {
            text += &format!(
                "---\nschema: olm.bundle\npackage: small\nname: {name}\nimage: {host}/team/app@{own}\nrelatedImages: [{{name: a, image: \"{image}\"}}]\nproperties: [{{type: olm.package, value: {{packageName: small, version: 1.0.{at}}}}}]\n"
            );
        }
        self.work.write("next/catalog.yaml", text);
        let catalog = catalogs::image(&catalogs::files(&self.work.path("next")));
        self.registry.push("ns/index", "v4.20", &catalog);
        let isc = format!(
            "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {{operators: [{{catalog: '{host}/ns/index:v4.20', full: true}}]}}\n"
        );
        self.work.write("isc.yaml", isc);
    }

    /// Publishes a catalog of these packages, each with one bundle of this image.
    fn publish_packages(&self, packages: &[&str], repository: &str, image: &Image) {
        let place = format!("{}/{repository}@{}", self.registry.host(), image.digest);
        for package in packages {
            let text = format!(
                "schema: olm.package\nname: {package}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {package}\nname: stable\nentries: [{{name: {package}.v1}}]\n---\nschema: olm.bundle\npackage: {package}\nname: {package}.v1\nimage: {place}\nproperties: [{{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}]\n"
            );
            self.work
                .write(&format!("packages/{package}/catalog.yaml"), text);
        }
        let catalog = catalogs::image(&catalogs::files(&self.work.path("packages")));
        self.registry.push("ns/index", "v4.20", &catalog);
    }

    /// Returns the folder of an image on the disk.
    fn folder_of(&self, repository: &str, image: &Image) -> String {
        let place = format!("{}/{repository}@{}", self.registry.host(), image.digest);
        format!("disk/images/{}", place.replace(':', "="))
    }

    /// Returns the lines of the catalog that a registry has.
    fn offered(&self, target: &Registry) -> String {
        let host = target.host();
        let line = format!("render --plain-http {host} {host}/olm/ns/index:v4.20");
        self.work.run(&line).exits(0).stdout
    }

    /// Writes a skopeo that notes its copies, fails for images with `failing` in their reference,
    /// and copies manifests to folders.
    fn write_skopeo(&self, version: &str, failing: &str) {
        let root = self.work.root().display();
        let script = format!(
            r#"#!/bin/sh
if [ "$1" = --version ]; then echo skopeo version {version}; exit; fi
for word in "$@"; do from=$to; to=$word; done
echo "$*" >>{root}/copies
case $from in *{failing}@*) [ -z "{failing}" ] || {{ echo 'time="now" level=fatal msg="it is broken"' >&2; exit 1; }} ;; esac
case $to in dir:*) mkdir -p "${{to#dir:}}" && cp "{root}/images-of/${{from##*sha256:}}"/* "${{to#dir:}}" ;; esac
"#
        );
        self.work.write("skopeo", script);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.work.path("skopeo"), mode).expect("the file is there");
    }

    fn carry(&self, step: &str) -> Ran {
        let host = self.registry.host();
        let options = "--skopeo ./skopeo --plain-http";
        self.work.run(&format!("carry {step} {options} {host}"))
    }

    /// Runs a step that would wait for ever on an earlier version.
    fn ends(&self, step: &str) -> Ran {
        let host = self.registry.host();
        let line = format!("carry {step} --skopeo ./skopeo --plain-http {host}");
        Ran::within(Duration::from_secs(60), &self.work.command(&line))
    }

    /// Returns the commands since the last call.
    fn copies(&self) -> Vec<String> {
        let text = fs::read_to_string(self.work.path("copies")).unwrap_or_default();
        self.work.write("copies", "");
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_out_names_what_fails_and_copies_the_rest_once() {
    let site = CarrySite::start().await;
    let plain = format!("--skopeo ./skopeo --plain-http {}", site.registry.host());
    site.work.plays(&format!(
        "0 carry out isc.yaml disk --dry-run {plain}
         ! ./skopeo --registries.d /var/empty/registries.d copy --all --preserve-digests --quiet --retry-times 3 --src-tls-verify=false docker://
         > 2 images: 2 to copy, 0 there already, 0 failed"
    ));
    assert!(!site.work.exists("disk") && site.copies().is_empty());
    site.write_skopeo("1.9.3", "team/app");
    let failed = site.carry("out isc.yaml disk").exits(1);
    failed.complains(&format!(
        "team/app@{}: skopeo: it is broken",
        site.images[0].digest
    ));
    assert_eq!(site.copies().len(), 2);
    site.write_skopeo("1.9.3", "");
    let again = site.carry("out isc.yaml disk").exits(0);
    again.prints("1 copied, 1 there already");
    assert_eq!(site.copies().len(), 1);
    site.carry("out isc.yaml disk").exits(0);
    assert!(site.copies().is_empty());
    // Neither the image nor the others wait for a lookup that fails.
    fs::remove_dir_all(site.work.path("disk")).expect("it is there");
    site.registry.script(Kind::Other, Fault::Status(403, None));
    let unknown = site.carry("out isc.yaml disk").exits(1);
    unknown.complains("failed: what is attached to ");
    unknown.prints("2 images: 2 copied");
    // An archive that is damaged on the medium is written again.
    let archive = site.work.json("disk/carry.json")["archive"].clone();
    let archive = format!("disk/{}", archive.as_str().expect("it is a name"));
    site.work.write(&archive, "damaged");
    site.carry("out isc.yaml disk").exits(0);
    let import = format!("import --store imported {archive}");
    site.work.run(&import).exits(0);
    // An image that is damaged on the medium is copied again.
    let folder = site.folder_of("other/app", &site.images[1]);
    for name in [
        "manifest.json",
        &site.images[1].layers[0].replace("sha256:", ""),
    ] {
        let path = site.work.path(&format!("{folder}/{name}"));
        fs::remove_file(&path).expect("it is there");
        site.carry("out isc.yaml disk").exits(0).prints("1 copied");
        let length = fs::metadata(&path).expect("it is there again").len();
        fs::write(&path, vec![b'x'; length as usize]).expect("it can be written");
        let rechecked = site.carry("out isc.yaml disk --recheck").exits(0);
        rechecked.prints("1 copied, 1 there already");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_in_pushes_catalogs_and_writes_manifests() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let tag = format!("{}.sig", site.images[0].digest.replace(':', "-"));
    site.registry.push("team/app", &tag, &site.images[1]);
    let to = format!("http://{}/olm", target.host());
    site.carry("out isc.yaml disk").exits(0);
    site.copies();
    let dry = site.carry(&format!("in disk {to} --dry-run")).exits(0);
    dry.prints("push index-v4-20");
    assert!(
        !site.work.exists("store") && !site.work.exists("manifests") && site.copies().is_empty()
    );
    let done = site.carry(&format!("in disk {to}")).exits(0);
    done.complains("speaks plain HTTP");
    let place = format!(
        "{}/olm/{}",
        target.host(),
        site.registry.host().replace(':', "-")
    );
    let copies = site.copies();
    for part in ["carried-", &tag] {
        let reference = format!(" docker://{place}/team/app:{part}");
        assert!(
            copies.iter().any(|copy| copy.contains(&reference)),
            "{copies:?}"
        );
    }
    let attachments = site.work.read("manifests/registries.d.yaml");
    let is_attached = |image| attachments.contains(image);
    assert!(
        is_attached("team/app") && !is_attached("other/app"),
        "{attachments}"
    );
    let catalogs = site.work.read("manifests/catalogs.yaml");
    for part in [
        "name: cs-index-v4-20\n",
        &format!("{}/olm/ns/index:v4.20\n", target.host()),
    ] {
        assert!(catalogs.contains(part), "{part}: {catalogs}");
    }
    let for_olm_v1 = site.work.read("manifests/cluster-catalogs.yaml");
    assert!(for_olm_v1.contains("name: cc-index-v4-20\n"));
    let sets = site.work.read("manifests/mirror-sets.yaml");
    assert!(sets.contains("name: idms-index-v4-20\n"), "{sets}");
    assert!(sets.contains(&format!("- {place}/team\n")), "{sets}");
    assert!(
        site.work
            .read("manifests/registries.conf")
            .contains("insecure = true")
    );
    // The catalog is at the target: the mirror reads it back.
    let poll = format!(
        "poll --store back --plain-http {0} --catalog back={0}/olm/ns/index:v4.20",
        target.host()
    );
    site.work.run(&poll).exits(0);
    let across = format!("across isc.yaml {to} --store across --manifests across-manifests");
    site.carry(&across).exits(0).prints("is there already");
    assert_eq!(site.work.read("across-manifests/catalogs.yaml"), catalogs);
}

/// A medium that a stranger filled: each of these would be read or written for ever.
#[tokio::test(flavor = "multi_thread")]
async fn carry_waits_for_nothing_that_others_left_in_the_folder() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let to = format!("http://{}/olm", target.host());
    site.carry("out isc.yaml disk").exits(0);
    let description = site.work.read("disk/carry.json");
    let archive = site.work.json("disk/carry.json")["archive"].clone();
    let image = site.folder_of("team/app", &site.images[0]);
    let image = image.replace("disk/", "");
    let fifo = |name: &str| {
        let path = site.work.path(&format!("disk/{name}"));
        fs::remove_file(&path).ok();
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo is there").success());
        path
    };
    let carry_in = |said: &str| {
        let ran = site.ends(&format!("in disk {to}")).exits(1);
        ran.complains(said);
    };
    // An image in which a layer is one.
    site.copies();
    let layer = fifo(&format!("{image}/e3b0c442"));
    carry_in("e3b0c442: it is not a regular file");
    let of_image = |copy: &String| copy.contains("team/app");
    assert!(!site.copies().iter().any(of_image), "skopeo would wait");
    fs::remove_file(layer).expect("it is there");
    // A manifest, which `carry out` replaces.
    fifo(&format!("{image}/manifest.json"));
    carry_in("manifest.json: it is not a regular file");
    site.ends("out isc.yaml disk").exits(0);
    for (name, said) in [
        ("carry.json", "it is not a regular file"),
        (
            archive.as_str().expect("it is a name"),
            "it is not a regular file",
        ),
    ] {
        let made = fifo(name);
        carry_in(said);
        fs::remove_file(made).expect("it is there");
        site.work.write("disk/carry.json", &description);
    }
    // A device behind a link.
    fs::remove_file(site.work.path("disk/carry.json")).expect("it is there");
    symlink("/dev/zero", site.work.path("disk/carry.json")).expect("the name is free");
    carry_in("it is not a regular file");
    // Files that `carry out` writes.
    for name in [
        "carry.json",
        &format!("{}.partial", archive.as_str().unwrap()),
    ] {
        fifo(name);
        site.ends("out isc.yaml disk").exits(0);
    }
    fifo(".lock");
    let refused = site.ends("out isc.yaml disk").exits(1);
    refused.complains(".lock: it is not a regular file");
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_in_copies_an_image_once_however_often_it_is_listed() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    site.carry("out isc.yaml disk").exits(0);
    site.copies();
    let mut description = site.work.json("disk/carry.json");
    let images = description["images"].as_array_mut().expect("it is a list");
    let first = images[0].clone();
    images.extend(std::iter::repeat_n(first, 200_000));
    site.work.write("disk/carry.json", description.to_string());
    let to = format!("http://{}/olm", target.host());
    site.carry(&format!("in disk {to}"))
        .exits(0)
        .prints("2 images: 2 copied");
    assert_eq!(site.copies().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_refuses_wrong_tools_and_folders() {
    let site = CarrySite::start().await;
    site.work.write("team.yaml", "inputs: [{catalog: a}]\n");
    site.work.write(
        "empty.yaml",
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror: {}\n",
    );
    for file in ["a", "b"] {
        site.work.write(file, "{}");
    }
    let plain = format!("--skopeo ./skopeo --plain-http {}", site.registry.host());
    site.work.plays(&format!(
        "1 carry out none.yaml disk --skopeo ./skopeo
         ! cannot read none.yaml
         1 carry out team.yaml disk --skopeo ./skopeo
         ! team.yaml is no ImageSetConfiguration
         1 carry out empty.yaml disk --skopeo ./skopeo
         ! mirror.operators has no entry
         1 carry out isc.yaml disk --auth-file a --auth-file b {plain}
         ! skopeo reads one credential file
         1 carry in disk registry.example --skopeo ./skopeo
         ! disk has no carry.json
         2 carry in disk registry --skopeo ./skopeo
         ! names no registry"
    ));
    assert!(!site.work.exists("disk"));
    let out = format!("1 carry out isc.yaml disk {plain}");
    site.write_skopeo("1.8.0", "");
    let old = "! ./skopeo is skopeo 1.8; 1.9 or newer is needed";
    site.work.plays(&format!("{out}\n{old}"));
    fs::remove_file(site.work.path("skopeo")).expect("it is there");
    let missing = "! ./skopeo is not there: install skopeo 1.9 or newer";
    site.work.plays(&format!("{out}\n{missing}"));
    for wrong in [
        r#"{"formatVersion":2,"archive":"a","images":[]}"#,
        r#"{"formatVersion":1,"archive":"../a","images":[]}"#,
        r#"{"formatVersion":1,"archive":"a","images":[{"image":"--all","digest":"sha256:00"}]}"#,
        r#"{"formatVersion":1,"archive":"a","images":[{"image":"q.io/../a:v1","digest":"sha256:00"}]}"#,
    ] {
        site.work.write("disk/carry.json", wrong);
        let refused = site.carry("in disk registry.example").exits(1);
        refused.complains("disk/carry.json");
    }
}

/// A bundle is offered to no cluster if the registry lacks its image, on neither way.
#[tokio::test(flavor = "multi_thread")]
async fn carry_leaves_out_bundles_without_their_images_and_says_so_on_both_sides() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let (host, to) = (
        site.registry.host(),
        format!("http://{}/olm", target.host()),
    );
    let [there, gone] = ["other/app:v1", "team/gone:v1"].map(|image| format!("{host}/{image}"));
    site.publish(&[("small.v1", &there), ("small.v2", &gone)]);
    let out = site.carry("out isc.yaml disk").exits(1);
    out.complains(&format!("failed: {gone}: "));
    let missing = &site.work.json("disk/carry.json")["missing"][0];
    assert_eq!(missing["image"], gone);
    assert_eq!(missing["neededBy"][0]["bundle"], "small.v2");
    let taken = site.carry(&format!("in disk {to}")).exits(1);
    taken.complains(&format!("missing in disk: {gone}: "));
    taken.complains(&format!(
        "incomplete: catalog index-v4-20, package small, bundle small.v2, image {gone}: "
    ));
    taken.complains("; the bundle is left out");
    let offered = site.offered(&target);
    assert!(offered.contains("small.v1") && !offered.contains("small.v2"));
    // An earlier version of the program must not take it for a whole one.
    let written = site.work.read("disk/carry.json");
    assert!(written.contains("\"missing\""), "{written}");
    // The image comes.
    site.registry.push("team/gone", "v1", &site.images[1]);
    let across = format!("across isc.yaml {to} --store across");
    site.carry(&across).exits(0);
    assert!(site.offered(&target).contains("small.v2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_keeps_a_package_as_the_target_has_it_or_leaves_it_out() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let (host, to) = (
        site.registry.host(),
        format!("http://{}/olm", target.host()),
    );
    let [there, gone] = ["other/app:v1", "team/gone:v1"].map(|image| format!("{host}/{image}"));
    let across = format!("across isc.yaml {to}");
    let broken = [
        ("small.v1", &*there),
        ("small.v2", &*gone),
        ("small.v3", &*there),
    ];
    // Nothing is at the target, and nothing is complete.
    site.publish(&broken);
    let nothing = site.carry(&across).exits(1);
    nothing.complains("the package is left out, because OLM does not accept what is left: ");
    nothing.complains("no package of it is complete, so nothing is pushed");
    nothing.complains("no catalog was pushed, so no manifests are written");
    assert!(!site.work.exists("manifests"));
    // The first version is there, with its images.
    site.publish(&broken[..1]);
    site.carry(&across).exits(0);
    site.publish(&broken);
    let without_images = site.carry(&across).exits(1);
    without_images.complains("the package is left out");
    assert!(!site.offered(&target).contains("small.v3"));
    let place = format!("olm/{}", host.replace(':', "-"));
    target.push(&format!("{place}/team/app"), "v1", &site.images[0]);
    target.push(&format!("{place}/other/app"), "v1", &site.images[1]);
    let kept = site.carry(&across).exits(1);
    kept.complains(
        "the package stays as the target has it, because OLM does not accept what is left: ",
    );
    let offered = site.offered(&target);
    assert!(offered.contains("small.v1") && !offered.contains("small.v2"));
    let sets = site.work.read("manifests/mirror-sets.yaml");
    assert!(sets.contains("other"), "{sets}");
    // All or nothing.
    let refused = site
        .carry(&format!("{across} --require-all --manifests m"))
        .exits(1);
    refused.complains("no catalog is pushed: not all is there, and --require-all is set");
    assert!(!site.work.exists("m"));
    let refused = site.carry("out isc.yaml disk --require-all").exits(1);
    refused.complains("carry.json is not written");
    assert!(!site.work.exists("disk/carry.json"));
}

/// Each transfer has a folder of its own, and the site goes back by one command.
#[tokio::test(flavor = "multi_thread")]
async fn carry_in_takes_new_disks_and_push_goes_back() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let (host, to) = (
        site.registry.host(),
        format!("http://{}/olm", target.host()),
    );
    let there = format!("{host}/other/app:v1");
    let bundles = [
        ("small.v1", &*there),
        ("small.v2", &*there),
        ("small.v3", &*there),
    ];
    let deliver = |disk: &str, count: usize| {
        site.publish(&bundles[..count]);
        site.carry(&format!("out isc.yaml {disk}")).exits(0);
        wait_for_next_second();
    };
    deliver("first", 1);
    site.carry(&format!("in first {to}")).exits(0);
    deliver("second", 1);
    site.carry(&format!("in second {to}")).exits(0);
    deliver("second", 2);
    let second = site.carry(&format!("in second {to}")).exits(0);
    second.prints("the store of the site is /");
    assert!(site.offered(&target).contains("small.v2"));
    // An earlier disk is no delivery.
    let earlier = site.carry(&format!("in first {to}")).exits(1);
    earlier.complains("--allow-rollback");
    let place = format!("olm/{}", host.replace(':', "-"));
    target.push(&format!("{place}/team/app"), "v1", &site.images[0]);
    target.push(&format!("{place}/other/app"), "v1", &site.images[1]);
    let history = site.work.run("history --json index-v4-20").exits(0).json();
    let text = history.to_string();
    let hashes = text
        .match_indices("contentHash")
        .map(|(at, _)| &text[at + 14..at + 26]);
    let hashes: Vec<&str> = hashes.collect();
    let back = hashes.last().expect("there are states");
    let pushed = format!("carry push index-v4-20@{back} {to} --plain-http {host}");
    site.work.run(&pushed).exits(0);
    assert!(!site.offered(&target).contains("small.v2"));
    // The store is rolled back too, and takes the next delivery.
    site.work.run("rollback index-v4-20 --previous").exits(0);
    deliver("third", 3);
    let third = site.carry(&format!("in third {to}")).exits(0);
    assert!(!third.stderr.contains(" is new"), "{third:#?}");
    assert!(site.offered(&target).contains("small.v3"));
    // Another store, such as the default of another folder, does not stay unseen.
    let other = site.carry(&format!("in third {to} --store other")).exits(0);
    other.complains("/olm/ns/index:v4.20 is there, and index-v4-20 is new in the store /");
    // One that has other catalogs knows this one no better.
    site.work
        .run("poll --store third --catalog demo=oci:example:v1")
        .exits(0);
    let third = site.carry(&format!("in third {to} --store third")).exits(0);
    third.complains("index-v4-20 is new in the store /");
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_does_what_the_file_says_and_leaves_the_rest() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let (host, to) = (
        site.registry.host(),
        format!("http://{}/olm", target.host()),
    );
    site.registry.push("team/blocked", "v1", &site.images[1]);
    let [there, blocked] =
        ["other/app:v1", "team/blocked:v1"].map(|image| format!("{host}/{image}"));
    site.publish(&[("small.v1", &there), ("small.v2", &blocked)]);
    let isc = site.work.read("isc.yaml").replace("]}\n", "]");
    let isc = format!(
        "{isc}, blockedImages: [{{name: 'team/blo.*:v'}}], additionalImages: [{{name: '{there}', targetRepo: own/tool, targetTag: v9}}], platform: {{channels: [{{name: stable-4.20}}]}}, helm: {{}}}}\n---\n"
    );
    site.work.write("isc.yaml", isc);
    let ran = site.carry(&format!("across isc.yaml {to}")).exits(1);
    ran.complains("blockedImages of the ImageSetConfiguration blocks it by \"team/blo.*:v\"");
    let last = ran.stderr.lines().last().expect("there are lines");
    assert!(
        last.starts_with("left to oc-mirror: platform; --rest FILE"),
        "{last}"
    );
    let copies = site.copies();
    assert!(
        !copies.iter().any(|copy| copy.contains("team/blocked")),
        "{copies:?}"
    );
    let own = format!(" docker://{}/olm/own/tool:v9", target.host());
    assert!(copies.iter().any(|copy| copy.ends_with(&own)), "{copies:?}");
    assert!(!site.offered(&target).contains("small.v2"));
    site.carry(&format!("across isc.yaml {to} --rest rest.yaml"))
        .exits(1);
    let rest = site.work.read("rest.yaml");
    assert!(
        rest.contains("stable-4.20") && !rest.contains("operators"),
        "{rest}"
    );
}

/// `registries.conf` counts for what the program reads itself as for what skopeo copies.
#[tokio::test(flavor = "multi_thread")]
async fn carry_and_poll_obey_registries_conf() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let (host, to) = (site.registry.host(), target.host());
    site.registry.push("team/blocked", "v1", &site.images[1]);
    site.publish_of(
        "vendor.example",
        &[
            ("small.v1", "vendor.example/other/app:v1"),
            ("small.v2", "vendor.example/team/blocked:v1"),
        ],
    );
    // A mirror of the registry of the site is no place to look for what the site has.
    let text = format!(
        "[[registry]]\nlocation = 'vendor.example'\n[[registry.mirror]]\nlocation = '{host}'\ninsecure = true\n\
         [[registry]]\nlocation = 'vendor.example/team/blocked'\nblocked = true\n\
         [[registry]]\nlocation = '{to}'\ninsecure = true\n[[registry.mirror]]\nlocation = '{host}'\ninsecure = true\n"
    );
    site.work.write("mirrors.conf", text);
    for image in &site.images {
        site.registry
            .push("olm/vendor.example/other/app", "v1", image);
    }
    let options = "--skopeo ./skopeo --registries-conf mirrors.conf";
    let out = site.work.run(&format!("carry out isc.yaml disk {options}"));
    let blocked = "vendor.example/team/blocked:v1: ";
    out.complains(&format!("failed: {blocked}"));
    out.exits(1).complains("registries.conf blocks it");
    let copies = site.copies();
    assert_eq!(copies.len(), 2, "{copies:?}");
    for copy in &copies {
        let begin = "--registries-conf mirrors.conf --registries.d ";
        assert!(
            copy.starts_with(begin) && !copy.contains("tls-verify"),
            "{copy}"
        );
    }
    let taken = site
        .work
        .run(&format!("carry in disk {to}/olm {options}"))
        .exits(1);
    taken.complains("; the bundle is left out");
    assert_eq!(site.copies().len(), 2);
    let offered = site.offered(&target);
    assert!(offered.contains("small.v1") && !offered.contains("small.v2"));

    let catalog = "--catalog a=vendor.example/ns/index:v4.20";
    let polled = |file: &str| {
        let mut command = site.work.command(&format!("poll --store polled {catalog}"));
        Ran::of(command.env("CONTAINERS_REGISTRIES_CONF", file))
    };
    polled("mirrors.conf").exits(0).prints("published");
    site.work
        .write("wrong.conf", "[[registry]]\nblocked = true\n");
    polled("wrong.conf")
        .exits(1)
        .complains("registries.conf: wrong.conf: registry \"\" has neither prefix nor location");
}

/// Prune removes what `carry` made, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn carry_prune_deletes_what_carry_made_and_no_state_needs() {
    let site = CarrySite::start().await;
    let target = Registry::builder().deleting().start().await;
    let host = site.registry.host();
    let to = format!("http://{}/olm", target.host());
    let place = format!("olm/{}", host.replace(':', "-"));
    let carried = |image: &Image| format!("carried-{}", &image.digest[7..39]);
    let [bundle, operator] = &site.images;
    site.publish(&[("small.v1", &format!("{host}/other/app@{}", operator.digest))]);
    site.carry(&format!("across isc.yaml {to}")).exits(0);
    let old = bundles::image("old");
    for (repository, tag, image) in [
        ("team/app", &*carried(bundle), bundle),
        ("other/app", &carried(operator), operator),
        // Of an earlier month, of someone else, and both.
        ("team/app", &carried(&old), &old),
        ("gone/app", &carried(&old), &old),
        ("gone/app", "latest", bundle),
        ("both/app", &carried(&old), &old),
        ("both/app", "keep", &old),
    ] {
        target.push(&format!("{place}/{repository}"), tag, image);
    }
    target.push("elsewhere/app", &carried(&old), &old);
    let before = target.versions();
    let prune = format!("carry prune {to}");
    let listed = site.work.run(&prune).exits(0);
    for repository in ["team/app", "gone/app"] {
        let digest = &old.digest;
        listed.prints(&format!(
            "{place}/{repository}@{digest} {}\n",
            carried(&old)
        ));
    }
    listed.prints("2 manifests in 5 repositories are not needed by the 1 states of the store, which need 2 images");
    listed.prints("nothing is deleted: repeat the command with --yes");
    assert_eq!(target.versions(), before);
    let deleted = site.work.run(&format!("{prune} --yes")).exits(0);
    deleted.prints("2 manifests are deleted");
    let mut expected = before;
    expected.retain(|(repository, version)| {
        let is_old = *version == old.digest || *version == carried(&old);
        let is_pruned = ["team/app", "gone/app"].map(|name| format!("{place}/{name}"));
        !(is_old && is_pruned.contains(repository))
    });
    assert_eq!(target.versions(), expected);
    let again = site.work.run(&format!("{prune} --yes")).exits(0);
    again.prints("0 manifests in ");

    // A catalog that cannot be read may need anything.
    target.push(&format!("{place}/team/app"), &carried(&old), &old);
    target.rule("HEAD", "/olm/ns/index/", Fault::Status(403, None));
    let unread = site.work.run(&format!("{prune} --yes")).exits(1);
    unread.complains("nothing can be removed, because the catalog ");
    target.clear_rules();
    target.rule("GET", "/_catalog", Fault::Status(401, None));
    let unlisted = site.work.run(&prune).exits(0);
    unlisted.complains("notice: the registry lists no repositories");
    unlisted.prints("1 manifests in 2 repositories");
    target.rule("DELETE", "/manifests/", Fault::Status(405, None));
    let refused = site.work.run(&format!("{prune} --yes")).exits(1);
    refused.complains("failed: the registry does not remove ");
    refused.complains("allow it there (distribution: storage.delete.enabled: true)");
}

/// A dry run tells what this run would do beside what is there, and writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn carry_dry_run_tells_what_this_run_would_do() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let host = site.registry.host();
    let to = format!("http://{}/olm", target.host());
    let there = format!("{host}/other/app@{}", site.images[1].digest);
    site.publish(&[("small.v1", &there)]);
    site.carry("out isc.yaml disk").exits(0);
    site.carry(&format!("in disk {to}")).exits(0);
    let next = bundles::image("next");
    site.registry.push("next/app", "v1", &next);
    let new = format!("{host}/next/app@{}", next.digest);
    site.publish(&[("small.v1", &there), ("small.v2", &new)]);
    wait_for_next_second();
    site.copies();
    let files = || {
        let mut files = Vec::new();
        for folder in ["disk", "store", "manifests"] {
            files.extend(catalogs::files(&site.work.path(folder)));
        }
        files
    };
    let before = files();
    let mut bytes = next.manifests[&next.digest].1.len();
    bytes += next.blobs.values().map(bytes::Bytes::len).sum::<usize>();
    let out = site.carry("out isc.yaml disk --dry-run").exits(0);
    let kibibytes = bytes as f64 / 1024.0;
    out.prints(&format!(
        "3 images: 1 to copy, 2 there already, 0 failed; {kibibytes:.2} KiB to move"
    ));
    assert!(files() == before && site.copies().is_empty());

    let across = format!("across isc.yaml {to} --dry-run --manifests printed");
    let dry = site.carry(&across).exits(0);
    dry.prints(&format!(
        "would push index-v4-20 to {}/olm/ns/index:v4.20",
        target.host()
    ));
    let sets = site.work.read("printed/mirror-sets.yaml");
    assert!(sets.contains("/next"), "{sets}");
    assert!(files() == before && site.copies().is_empty());
    assert!(!site.offered(&target).contains("small.v2"));

    site.write_image(&next);
    site.carry("out isc.yaml disk")
        .exits(0)
        .prints("1 copied, 2 there already");
    let before = files();
    site.copies();
    let dry = site.carry(&format!("in disk {to} --dry-run")).exits(0);
    dry.prints("3 images: 3 to copy, 0 there already, 0 failed; ");
    dry.prints("would push index-v4-20 to ");
    assert!(files() == before && site.copies().is_empty());
}

/// A registry with few parts of a path gets all images and catalogs, and nodes find them.
#[tokio::test(flavor = "multi_thread")]
async fn carry_cuts_paths_for_a_registry_that_limits_them() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let host = site.registry.host();
    let there = format!("{host}/other/app@{}", site.images[1].digest);
    site.publish(&[("small.v1", &there)]);
    let to = format!("http://{}/olm --max-nested-paths 2", target.host());
    site.carry(&format!("across isc.yaml {to}")).exits(0);
    let place = format!("{}/olm/{}", target.host(), host.replace(':', "-"));
    let copies = site.copies();
    let copied = format!(" docker://{place}-other-app:carried-");
    assert!(
        copies.iter().any(|copy| copy.contains(&copied)),
        "{copies:?}"
    );
    let catalog = format!("{0}/olm/ns-index:v4.20", target.host());
    let render = format!("render --plain-http {} {catalog}", target.host());
    site.work.run(&render).exits(0).prints("small.v1");
    assert!(site.work.read("manifests/catalogs.yaml").contains(&catalog));
    let sets = site.work.read("manifests/mirror-sets.yaml");
    let source = format!("source: {host}/other/app\n");
    assert!(
        sets.contains(&source) && sets.contains(&format!("- {place}-other-app\n")),
        "{sets}"
    );
    assert!(!site.work.exists("manifests/certs.d"));
}

/// The template of a CatalogSource is carried with the state, so a state that is pushed again has it.
#[tokio::test(flavor = "multi_thread")]
async fn carry_takes_the_template_of_a_catalog_source() {
    let site = CarrySite::start().await;
    let target = Registry::start().await;
    let to = format!("http://{}/olm", target.host());
    let plain = format!("--plain-http {}", site.registry.host());
    let isc = site.work.read("isc.yaml");
    let isc = isc.replace(
        "packages:",
        "targetCatalogSourceTemplate: cs.yaml, packages:",
    );
    site.work.write("isc.yaml", isc);
    let missing = site.carry("out isc.yaml disk").exits(1);
    missing.complains("isc.yaml: line 3: targetCatalogSourceTemplate: cs.yaml: cannot read it: ");
    assert!(!site.work.exists("disk"));
    let place = format!("olm/{}", site.registry.host().replace(':', "-"));
    for (repository, image) in ["team/app", "other/app"].iter().zip(&site.images) {
        target.push(&format!("{place}/{repository}"), "v1", image);
    }
    for priority in [-7, 8] {
        site.work.write("cs.yaml", format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {{name: other, labels: {{team: a}}}}\nspec: {{image: other, priority: {priority}}}\n"
        ));
        site.carry("out isc.yaml disk").exits(0);
        for step in ["in disk --skopeo ./skopeo", "push index-v4-20"] {
            site.work
                .run(&format!("carry {step} {to} {plain}"))
                .exits(0);
            let catalogs = site.work.read("manifests/catalogs.yaml");
            for part in [
                "name: cs-index-v4-20\n",
                "team: a\n",
                &format!("priority: {priority}\n"),
                &format!("{}/olm/ns/index:v4.20", target.host()),
            ] {
                assert!(catalogs.contains(part), "{step}: {part}: {catalogs}");
            }
        }
        wait_for_next_second();
    }
}

/// Programs get one document for each step, and those who want no reports get none.
#[tokio::test(flavor = "multi_thread")]
async fn carry_json_is_one_document_and_quiet_prints_failures_only() {
    let site = CarrySite::start().await;
    let target = Registry::builder().deleting().start().await;
    let host = site.registry.host();
    let to = format!("http://{}/olm", target.host());
    let offered = format!("{}/olm/ns/index:v4.20", target.host());
    let [there, gone] = ["other/app:v1", "team/gone:v1"].map(|image| format!("{host}/{image}"));
    site.publish(&[("small.v1", &there), ("small.v2", &gone)]);

    let dry = site.carry("out isc.yaml disk --dry-run --json").exits(1);
    let dry = dry.json();
    assert_eq!(dry["dryRun"], true);
    assert_eq!(dry["images"]["copied"], 2);
    assert!(dry["images"]["bytes"].as_u64() > Some(0), "{dry}");
    assert!(dry.get("archive").is_none(), "{dry}");
    let refused = site.carry("out isc.yaml disk --require-all --json");
    refused.complains("error: carry.json is not written");
    let refused = refused.exits(1).json();
    let reason = refused["error"].as_str().expect("it tells why");
    assert!(reason.starts_with("carry.json is not written"), "{reason}");
    let out = site.carry("out isc.yaml disk --json").exits(1).json();
    assert_eq!(out["complete"], false);
    assert_eq!(out["catalogs"][0]["outcome"], "unchanged");
    assert_eq!(out["images"]["kept"], 2);
    assert_eq!(out["images"]["missing"][0]["image"], gone);
    assert_eq!(
        out["images"]["missing"][0]["neededBy"][0]["bundle"],
        "small.v2"
    );
    assert_eq!(out["archive"], site.work.json("disk/carry.json")["archive"]);

    let taken = site.carry(&format!("in disk {to} --json")).exits(1).json();
    assert_eq!(taken["catalogs"][0]["outcome"], "published");
    let catalog = &taken["offer"]["catalogs"][0];
    assert_eq!(catalog["catalog"], "index-v4-20");
    assert_eq!(catalog["image"], offered);
    assert_eq!(catalog["outcome"], "pushed");
    assert_eq!(catalog["gaps"][0]["package"], "small");
    assert_eq!(catalog["gaps"][0]["bundle"], "small.v2");
    assert_eq!(catalog["gaps"][0]["effect"], "the bundle is left out");
    let manifests = taken["offer"]["manifests"].to_string();
    assert!(manifests.contains("manifests/catalogs.yaml"), "{manifests}");

    site.publish(&[("small.v1", &there)]);
    let across = format!("carry --json across isc.yaml {to} --skopeo ./skopeo --plain-http {host}");
    let across = site.work.run(&across).exits(0).json();
    assert_eq!(across["complete"], true);
    assert_eq!(across["offer"]["complete"], true);
    let store = across["store"].as_str().expect("it is named");
    assert!(store.ends_with("/store"), "{store}");

    let [bundle, operator] = &site.images;
    let place = format!("olm/{}", host.replace(':', "-"));
    target.push(&format!("{place}/team/app"), "v1", bundle);
    target.push(&format!("{place}/other/app"), "v1", operator);
    let push = format!("carry push index-v4-20 {to} --plain-http {host}");
    let pushed = site.work.run(&format!("{push} --json")).exits(0).json();
    assert_eq!(pushed["complete"], true);
    assert_eq!(pushed["catalogs"][0]["outcome"], "unchanged");

    let old = bundles::image("old");
    let carried = format!("carried-{}", &old.digest[7..39]);
    target.push(&format!("{place}/team/app"), &carried, &old);
    let prune = format!("carry prune {to}");
    for (options, deleted) in [("--json", 0), ("--json --yes", 1)] {
        let pruned = site.work.run(&format!("{prune} {options}")).exits(0).json();
        let repository = &pruned["manifests"][&format!("{place}/team/app")];
        assert_eq!(repository[0]["digest"], old.digest);
        assert_eq!(repository[0]["tags"][0], carried);
        assert_eq!(pruned["deleted"], deleted);
    }

    let quiet = |step: &str| {
        let ran = site.carry(&format!("--quiet {step}"));
        assert_eq!(ran.stdout, "", "{step}");
        ran
    };
    // A disk with a history of its own is taken if it was published in a later second.
    wait_for_next_second();
    fs::remove_dir_all(site.work.path("disk")).expect("it is there");
    for step in ["out isc.yaml disk".to_owned(), format!("in disk {to}")] {
        assert_eq!(quiet(&step).exits(0).stderr, "", "{step}");
    }
    site.publish(&[("small.v1", &gone)]);
    let failed = quiet("out isc.yaml disk").exits(1);
    let lines: Vec<&str> = failed.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    failed.complains(&format!("failed: {gone}: "));
}

/// A mirror whose ring `prod` follows `dev` by hand, and a site to which the ring is carried.
struct CarriedRing {
    site: CarrySite,
    target: Registry,
    server: Server,
}

impl CarriedRing {
    /// Publishes two packages, and takes them to the ring.
    async fn start() -> Self {
        let site = CarrySite::start().await;
        let work = &site.work;
        let index = format!("{}/ns/index:v4.20", site.registry.host());
        let rings = format!(
            "catalogs:\n- {{name: dev, source: '{index}'}}\n- {{name: prod, ring: {{of: dev, manual: true}}}}\n"
        );
        work.write("rings.yaml", rings);
        site.publish_packages(&["other", "small"], "team/app", &site.images[0]);
        site.work.write("store/.keep", "");
        let server = work.serve("");
        let ring = server.url.trim_start_matches("http://");
        let isc = format!(
            "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {{operators: [{{catalog: '{ring}/prod:latest', full: true}}]}}\n"
        );
        work.write("isc.yaml", isc);
        let ring = Self {
            target: Registry::start().await,
            site,
            server,
        };
        ring.mirror("poll").exits(0);
        ring.promote().await;
        ring
    }

    /// Runs a command on the mirror.
    fn mirror(&self, command: &str) -> Ran {
        let options = "--config rings.yaml --store store --plain-http";
        let host = self.site.registry.host();
        self.site.work.run(&format!("{command} {options} {host}"))
    }

    /// Moves the ring to the newest state, and waits until the mirror serves it.
    async fn promote(&self) {
        self.mirror("promote prod").exits(0);
        let current = self.site.work.json("store/catalogs/prod/current.json");
        let content = current["contentHash"].as_str().unwrap().to_owned();
        until("the state of the ring is served", async || {
            let served = self.server.text("/catalogs/prod/content-hash").await;
            served.trim() == content
        })
        .await;
    }

    fn carry_out(&self) -> Ran {
        let ring = self.server.url.trim_start_matches("http://");
        self.site
            .carry(&format!("out isc.yaml disk --plain-http {ring}"))
    }

    /// Carries the folder to the registry, and returns the lines of its catalog.
    fn carry_in(&self) -> String {
        let target = self.target.host();
        let into = format!("in disk http://{target}/olm --store site");
        self.site.carry(&into).exits(0);
        let render = format!("render --plain-http {target} {target}/olm/prod:latest");
        self.site.work.run(&render).exits(0).stdout
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ring_is_carried_with_its_own_state_and_never_with_one_that_is_held() {
    let ring = CarriedRing::start().await;
    let site = &ring.site;
    let [first, second] = &site.images;
    let all = ["other", "small", "third"];
    site.publish_packages(&all, "team/app", first);
    ring.mirror("poll").exits(0);
    ring.carry_out().exits(0);
    let carried = ring.carry_in();
    assert!(carried.contains("small.v1") && !carried.contains("third.v1"));
    // An accident of the source: `dev` holds it, and the newest state for the ring is the one before.
    site.publish_packages(&all, "other/app", second);
    ring.mirror("poll").exits(1).complains("many-bundles");
    let listed = site.work.run("ls --store store").exits(0);
    listed.prints("dev: new content is held back since ");
    listed.prints("prod: follows dev, at its state of ");
    listed.prints("; 1 state waits for promote");
    let listed = site.work.run("ls --store store --json").exits(0).json();
    assert!(listed[0]["held"]["until"].is_string(), "{listed}");
    assert_eq!(listed[1]["ring"]["waiting"], 1);
    assert!(listed[1]["ring"]["since"].is_string(), "{listed}");
    ring.promote().await;
    ring.carry_out().exits(0);
    let before = ring.carry_in();
    assert!(before.contains("third.v1") && !before.contains(&second.digest));
    // A person takes it, and the ring too. Then the folder holds it once more, by its own rules.
    ring.mirror("poll dev --force").exits(0);
    ring.promote().await;
    let held = ring.carry_out().exits(1);
    held.complains("many-bundles");
    held.complains("release prod-latest");
    assert_eq!(ring.carry_in(), before);
    site.work
        .run("release prod-latest --store disk/store")
        .exits(0);
    ring.carry_out().exits(0);
    assert!(ring.carry_in().contains(&second.digest));
}

#[tokio::test(flavor = "multi_thread")]
async fn carry_across_takes_the_state_of_a_ring() {
    let ring = CarriedRing::start().await;
    let site = &ring.site;
    site.publish_packages(&["third"], "team/app", &site.images[0]);
    ring.mirror("poll").exits(0);
    let target = ring.target.host();
    let from = ring.server.url.trim_start_matches("http://");
    let across = format!("across isc.yaml http://{target}/olm --store across --plain-http {from}");
    site.carry(&across).exits(0);
    let render = format!("render --plain-http {target} {target}/olm/prod:latest");
    let carried = site.work.run(&render).exits(0).stdout;
    assert!(carried.contains("small.v1") && !carried.contains("third.v1"));
}
