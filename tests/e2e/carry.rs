//! `carry` with a registry of the tests, and a skopeo of the tests that copies manifests alone.
//! scripts/checks/carry.sh has the real ones.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use testkit::{Fault, Image, Kind, Registry};

use crate::support::{binary::Ran, bundles, catalogs, work::Work};

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
            let path = image.digest.replace("sha256:", "manifests-of/");
            site.work.write(&path, &image.manifests[&image.digest].1);
        }
        site
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
case $to in dir:*) mkdir -p "${{to#dir:}}" && cp "{root}/manifests-of/${{from##*sha256:}}" "${{to#dir:}}/manifest.json" ;; esac
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
         ! ./skopeo copy --all --preserve-digests --quiet --retry-times 3 --src-tls-verify=false docker://
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
    // An image that is damaged on the medium is copied again.
    let (host, digest) = (site.registry.host(), &site.images[1].digest);
    let path = format!("disk/images/{host}/other/app@{digest}/manifest.json");
    site.work.write(&path, "damaged");
    site.carry("out isc.yaml disk").exits(0).prints("1 copied");
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
        "name: cc-index-v4-20\n",
        &format!("{}/olm/index:v4.20\n", target.host()),
    ] {
        assert!(catalogs.contains(part), "{part}: {catalogs}");
    }
    let sets = site.work.read("manifests/mirror-sets.yaml");
    assert!(sets.contains(&format!("- {place}/team\n")), "{sets}");
    assert!(
        site.work
            .read("manifests/registries.conf")
            .contains("insecure = true")
    );
    // The catalog is at the target: the mirror reads it back.
    let poll = format!(
        "poll --store back --plain-http {0} --catalog back={0}/olm/index:v4.20",
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
    let (host, digest) = (site.registry.host(), &site.images[0].digest);
    let image = format!("images/{host}/team/app@{digest}");
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
    carry_in("it is not in the folder: run `carry out` again");
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
