use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{Fault, Image, Registry};

use crate::support::{binary::Ran, bundles, catalogs, work::Work};

/// A registry with a catalog, a disk, and the registry of a site.
pub(super) struct Transfer {
    pub(super) work: Work,
    pub(super) source: Registry,
    pub(super) target: Registry,
    /// Images `a1`, `a2`, `b1`, `tool` by tag, and `list` of two platforms.
    images: Vec<(&'static str, Image)>,
}

impl Transfer {
    pub(super) async fn start() -> Self {
        let source = Registry::start().await;
        let target = Registry::builder().taking_sparse().deleting().start().await;
        let platforms = ["x", "y"].map(bundles::image);
        let list = testkit::index(&[
            ("linux/amd64", &platforms[0]),
            ("linux/arm64", &platforms[1]),
        ]);
        let single = ["a1", "a2", "b1", "tool"].map(|name| (name, bundles::image(name)));
        let images = single.into_iter().chain([("list", list)]).collect();
        let transfer = Self {
            work: Work::new(),
            source,
            target,
            images,
        };
        for (name, image) in &transfer.images {
            transfer.source.push(&format!("app/{name}"), "v1", image);
        }
        transfer.publish("");
        transfer.configure("");
        transfer
    }

    pub(super) fn image(&self, name: &str) -> &Image {
        let found = self.images.iter().find(|(known, _)| *known == name);
        &found.expect("the image is one of these").1
    }

    /// Returns the reference of an image by digest.
    pub(super) fn pinned(&self, name: &str) -> String {
        let host = self.source.host();
        format!("{host}/app/{name}@{}", self.image(name).digest)
    }

    /// Publishes the catalog. The second bundle of package `a` needs one more image if it is named.
    pub(super) fn publish(&self, more: &str) {
        let host = self.source.host();
        let mut related = vec![format!("{host}/app/tool:v1")];
        if !more.is_empty() {
            related.push(more.to_owned());
        }
        let bundle = |package: &str, version: u32, image: &str, related: &[String]| {
            let related = related
                .iter()
                .map(|image| format!("{{name: x, image: '{image}'}}"));
            format!(
                "---\nschema: olm.bundle\npackage: {package}\nname: {package}.v{version}\nimage: {}\nrelatedImages: [{}]\nproperties: [{{type: olm.package, value: {{packageName: {package}, version: {version}.0.0}}}}]\n",
                self.pinned(image),
                related.collect::<Vec<_>>().join(", ")
            )
        };
        let mut text = "schema: olm.package\nname: a\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: a\nname: stable\nentries: [{name: a.v1}, {name: a.v2, replaces: a.v1}]\n---\nschema: olm.package\nname: b\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: b\nname: stable\nentries: [{name: b.v1}]\n".to_owned();
        text += &bundle("a", 1, "a1", &[self.pinned("list")]);
        text += &bundle("a", 2, "a2", &related);
        text += &bundle("b", 1, "b1", &[]);
        self.work.write("catalog/catalog.yaml", text);
        let catalog = catalogs::image(&catalogs::files(&self.work.path("catalog")));
        self.source.push("ns/index", "v1", &catalog);
    }

    /// Publishes a catalog of one package whose bundles are these months, each with an image of its own.
    pub(super) fn publish_months(&self, months: RangeInclusive<usize>) {
        let mut entries = Vec::new();
        let mut text = String::new();
        for month in months.clone() {
            let image = bundles::image(&format!("month-{month}"));
            self.source.push("app/month", &format!("v{month}"), &image);
            let pinned = format!("{}/app/month@{}", self.source.host(), image.digest);
            text += &format!(
                "---\nschema: olm.bundle\npackage: a\nname: a.v{month}\nimage: {pinned}\nproperties: [{{type: olm.package, value: {{packageName: a, version: {month}.0.0}}}}]\n"
            );
            let mut entry = format!("name: a.v{month}");
            if month > *months.start() {
                entry += &format!(", replaces: a.v{}", month - 1);
            }
            entries.push(format!("{{{entry}}}"));
        }
        let entries = entries.join(", ");
        let head = format!(
            "schema: olm.package\nname: a\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: a\nname: stable\nentries: [{entries}]\n"
        );
        self.work.write("catalog/catalog.yaml", head + &text);
        let catalog = catalogs::image(&catalogs::files(&self.work.path("catalog")));
        self.source.push("ns/index", "v1", &catalog);
    }

    /// Returns the months whose images the target has.
    pub(super) fn months_there(&self) -> Vec<usize> {
        let repository = format!("olm/{}/app/month", self.source.host().replace(':', "-"));
        let is_there = |month: &usize| {
            let image = bundles::image(&format!("month-{month}"));
            self.target.manifest(&repository, &image.digest).is_some()
        };
        (1..=10).filter(is_there).collect()
    }

    /// Writes the ImageSetConfiguration, with more fields of the file or of its entry.
    pub(super) fn configure(&self, more: &str) {
        let host = self.source.host();
        let (of_entry, of_file) = match more.strip_prefix("entry:") {
            Some(of_entry) => (of_entry, ""),
            None => ("", more),
        };
        self.work.write("isc.yaml", format!(
            "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: {host}/ns/index:v1\n    full: true\n    {of_entry}\n  {of_file}\n"
        ));
        self.work.write("registries.conf", "");
    }

    /// Returns the folder of an image on the disk.
    pub(super) fn on_disk(&self, name: &str) -> PathBuf {
        let host = self.source.host().replace(':', "=");
        let digest = self.image(name).digest.replace(':', "=");
        self.work
            .path(&format!("disk/images/{host}/app/{name}@{digest}"))
    }

    /// Returns the file of the first layer of an image on the disk.
    pub(super) fn layer_on_disk(&self, name: &str) -> PathBuf {
        let layer = self.image(name).layers[0].replace("sha256:", "");
        self.on_disk(name).join(layer)
    }

    pub(super) fn carry(&self, step: &str) -> Ran {
        let plain = [self.source.host(), self.target.host()];
        let plain = plain.map(|host| format!("--plain-http {host}")).join(" ");
        let conf = "--registries-conf registries.conf";
        self.work.run(&format!("carry {step} {plain} {conf}"))
    }

    pub(super) fn out(&self) -> Ran {
        self.carry("out isc.yaml disk")
    }

    pub(super) fn taken(&self) -> Ran {
        self.carry(&format!(
            "in disk http://{}/olm --store store",
            self.target.host()
        ))
    }

    /// Lets all reads at the source fail whose path has a text in it, below the images.
    pub(super) fn refuse_at_source(&self, path: &str, fault: &Fault) {
        for method in ["HEAD", "GET"] {
            let path = format!("/app/{path}");
            self.source.rule(method, &path, fault.clone());
        }
    }

    /// Lets reads of one blob at the source fail.
    pub(super) fn refuse_blob(&self, name: &str, digest: &str, fault: Fault) {
        let path = format!("/app/{name}/blobs/{digest}");
        self.source.rule("GET", &path, fault);
    }

    /// Returns the digest of the configuration of an image.
    pub(super) fn configuration(&self, name: &str) -> String {
        let manifest = self.image(name).manifest();
        let manifest: Value = serde_json::from_slice(manifest).expect("it is JSON");
        let digest = manifest["config"]["digest"].as_str();
        digest.expect("an image has a configuration").to_owned()
    }

    /// Returns the digests of the images of `list`.
    pub(super) fn platforms(&self) -> Vec<String> {
        let index = self.image("list").manifest();
        let index: Value = serde_json::from_slice(index).expect("it is JSON");
        let parts = index["manifests"].as_array().expect("it has some");
        let digests = parts.iter().map(|part| part["digest"].as_str());
        digests
            .map(|digest| digest.expect("it has one").to_owned())
            .collect()
    }

    /// Returns the bundles of the catalog at the target. Every image that one of them needs is there,
    /// with all of its parts.
    pub(super) fn walk(&self) -> BTreeSet<String> {
        let host = self.target.host();
        if self.target.manifest("olm/ns/index", "v1").is_none() {
            return BTreeSet::new();
        }
        self.target.clear_rules();
        let catalog = format!("render --plain-http {host} {host}/olm/ns/index:v1");
        let lines = self.work.run(&catalog).exits(0).stdout;
        let mut bundles = BTreeSet::new();
        for line in lines.lines() {
            let document: Value = serde_json::from_str(line).expect("it is JSON");
            if document["schema"] != "olm.bundle" {
                continue;
            }
            let name = document["name"].as_str().expect("a bundle has a name");
            bundles.insert(name.to_owned());
            let related = document["relatedImages"].as_array().into_iter().flatten();
            let images = related
                .map(|related| &related["image"])
                .chain([&document["image"]]);
            for image in images {
                let image = image.as_str().expect("an image is a text");
                assert!(self.has_whole(image), "{name} needs {image}");
            }
        }
        assert!(!bundles.is_empty(), "a catalog has bundles");
        bundles
    }

    /// Returns true if the target has an image below the name of its registry, with all parts.
    fn has_whole(&self, image: &str) -> bool {
        let path = image.replacen(':', "-", 1);
        let (name, version) = match path.split_once('@') {
            Some((name, digest)) => (name, digest),
            None => path.rsplit_once(':').expect("an image has a tag"),
        };
        self.has_manifest(&format!("olm/{name}"), version)
    }

    fn has_manifest(&self, repository: &str, version: &str) -> bool {
        let Some(manifest) = self.target.manifest(repository, version) else {
            return false;
        };
        let manifest: Value = serde_json::from_slice(&manifest).expect("it is JSON");
        let list = |field: &str| manifest[field].as_array().cloned().unwrap_or_default();
        let mut blobs = list("layers");
        blobs.extend(manifest.get("config").cloned());
        let digest = |part: &Value| part["digest"].as_str().unwrap_or_default().to_owned();
        let has_blob = |part: &Value| {
            let blob = self.target.blob(&digest(part));
            blob.is_some_and(|blob| testkit::digest(&blob) == digest(part))
        };
        let parts = list("manifests");
        let mut there = parts
            .iter()
            .filter(|part| self.has_manifest(repository, &digest(part)));
        // An index may be sparse, if its registry was.
        blobs.iter().all(has_blob) && (parts.is_empty() || there.next().is_some())
    }
}

/// Changes a file.
pub(super) fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("the file is there");
    change(&mut bytes);
    fs::write(path, bytes).expect("the file can be written");
}
