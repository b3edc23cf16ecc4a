//! Seeds of the targets: real documents, and requests as clients send them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use model::{Key, Kind};
use testkit::{Layer, Random};

use crate::archive::{self, export};
#[cfg(any(test, feature = "openpgp"))]
use crate::messages;
use crate::site::{CATALOGS, Site, name};
use crate::yaml::{self, CHOICES};
use crate::{
    documents, ignore, json, manifest, oci, overlay, policies, publisher, references, registry, tar,
};

/// Name and function of a target.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, in the order of their names in the README.
pub const TARGETS: &[Target] = &[
    ("json", json::json),
    ("yaml", yaml::yaml),
    ("indexignore", ignore::indexignore),
    ("manifest", manifest::manifest),
    ("overlay", overlay::overlay),
    ("tar", tar::tar),
    ("references", references::references),
    ("current", documents::current),
    ("snapshot", documents::snapshot),
    ("index", documents::index),
    ("records", registry::records),
    ("archive", archive::archive),
    ("volume", archive::volume),
    ("oci", oci::oci),
    ("policy", policies::policy),
    #[cfg(any(test, feature = "openpgp"))]
    ("openpgp", messages::openpgp),
];

/// Maximum size of a seed file, in bytes: larger ones cover no more code and take more time.
const FILE_MAX: u64 = 16 << 10;

/// Maximum number of seed files: one short run processes as many.
const FILES: usize = 400;

/// Seeds of each target by its name.
#[derive(Debug, Default)]
pub struct Seeds(pub BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Seeds {
    /// Collects seeds from the example catalogs and from all FBC files in `folders`.
    ///
    /// # Errors
    /// Fails if a folder cannot be read.
    pub fn new(folders: &[PathBuf]) -> io::Result<Self> {
        let mut seeds = Self::default();
        let mut files = Vec::new();
        walk(Path::new(CATALOGS), &mut files)?;
        for folder in folders {
            walk(folder, &mut files)?;
        }
        files.truncate(FILES);
        for file in files {
            seeds.file(fs::read(file)?);
        }
        seeds.add("json", "{\"schema\":\"a.b\"} null {\"ſchema\":1}\n");
        let site = Site::new(&["v1", "v2"]);
        seeds.published(&site);
        seeds.references(&site.current.content_hash.to_string());
        seeds.layers();
        seeds.hostile();
        for lines in registry::seeds() {
            seeds.add("records", lines);
        }
        seeds.signatures();
        #[cfg(any(test, feature = "openpgp"))]
        for real in messages::KEYS.iter().chain(&messages::MESSAGES) {
            seeds.add("openpgp", *real);
        }
        seeds.noise();
        Ok(seeds)
    }

    fn add(&mut self, target: &'static str, seed: impl Into<Vec<u8>>) {
        self.0.entry(target).or_default().push(seed.into());
    }

    /// Adds the seeds in a text with `|` between.
    fn add_all(&mut self, target: &'static str, seeds: &str) {
        seeds.split('|').for_each(|seed| self.add(target, seed));
    }

    fn file(&mut self, bytes: Vec<u8>) {
        let is_json = bytes.trim_ascii_start().starts_with(b"{");
        self.add(if is_json { "json" } else { "yaml" }, bytes);
    }

    fn published(&mut self, site: &Site) {
        let hash = site.current.content_hash;
        let current = site.object(&Key::Current(name()));
        let mut many: serde_json::Value =
            serde_json::from_slice(&current).expect("a pointer is JSON");
        // More than any version writes, as many as are read, and too many.
        for count in [60, 256, 257] {
            if let Some(previous) = many["previous"].as_array_mut()
                && let Some(first) = previous.first().cloned()
            {
                previous.resize(count, first);
            }
            self.add("current", many.to_string());
        }
        self.add("current", current);
        let json = |key: &Key| zstd::decode_all(&*site.object(key)).expect("a stored document");
        self.snapshots(json(&site.current.snapshot.key()));
        self.add(
            "index",
            json(&site.snapshot.index.with_kind(Kind::Index).key()),
        );
        self.add("volume", export(&site.store, false));
        self.add("volume", export(&site.store, true));
        let image = site
            .snapshot
            .image
            .as_ref()
            .expect("every new snapshot has an image");
        let digests = image.blobs().flat_map(|stored| {
            let digest = format!("sha256:{}", stored.sha256);
            ["blobs", "manifests", "referrers"]
                .map(|kind| format!("GET /v2/demo/{kind}/{digest}\nRange: bytes=1-9"))
        });
        digests.for_each(|request| self.add("oci", request));
        self.add(
            "oci",
            format!("GET /v2/demo/manifests/{hash}\nAccept-Encoding: gzip"),
        );
        self.add_all(
            "oci",
            "GET /v2/|HEAD /v2/demo/manifests/latest\nAccept: application/vnd.oci.image.index.v1+json|\
             GET /v2/_catalog?n=1&last=a|GET /v2/demo/tags/list?n=1|GET /v2/ns%2fdemo/tags/list|\
             POST /v2/demo/blobs/uploads/?mount=sha256:00&from=a|\
             PATCH /v2/demo/blobs/uploads/1-2\nContent-Range: 0-1|\
             PUT /v2/demo/manifests/latest\nIf-None-Match: *|DELETE /v2/demo/manifests/latest|\
             OPTIONS /v2/demo/referrers/sha256:00?artifactType=a/b",
        );
    }

    /// Adds a snapshot, and the same with counts, sizes and names that do not fit its lines.
    fn snapshots(&mut self, right: Vec<u8>) {
        let wrong: [fn(&mut serde_json::Value); 6] = [
            |snapshot| snapshot["size"] = 1.into(),
            |snapshot| snapshot["metas"] = u64::MAX.into(),
            |snapshot| snapshot["packages"][0]["metas"] = 1_000_000_000.into(),
            |snapshot| snapshot["packages"][0]["lines"]["size"] = 0.into(),
            |snapshot| snapshot["packages"][0]["name"] = snapshot["packages"][1]["name"].clone(),
            |snapshot| {
                if let Some(packages) = snapshot["packages"].as_array_mut() {
                    packages.reverse();
                }
            },
        ];
        for change in wrong {
            let mut snapshot: serde_json::Value =
                serde_json::from_slice(&right).expect("a snapshot is JSON");
            change(&mut snapshot);
            self.add("snapshot", snapshot.to_string());
        }
        self.add("snapshot", right);
    }

    fn references(&mut self, hex: &str) {
        self.add(
            "references",
            format!("docker://quay.io/ns/cat:v1@sha256:{hex}"),
        );
        self.add("references", format!("localhost/a__b.c---d@sha256:{hex}"));
        self.add("references", format!("quay.io/cat@sha512:{hex}{hex}"));
        self.add_all(
            "references",
            "quay.io/operatorhubio/catalog:latest|127.0.0.1:5000/a/b/c:v1|index.docker.io/library/a:1|\
             oci:some/dir:v1|oci:/some/dir|dir:/configs|docker://dir:5000/cat:v1|https://quay.io/a:v1|\
             https://a.io:8443/b/c.tar.gz#d/e f|http://a.io/c.tar#.|git:https://a.io/b#main:c|\
             git:https://a.io/b.git#refs/tags/v1|git:http://a.io:8080/b/c#:d e",
        );
    }

    fn layers(&mut self) {
        let long = "a".repeat(120);
        let layer = Layer::new()
            .file("configs/a/catalog.yaml", "schema: olm.package\nname: a\n")
            .file(&format!("./configs/{long}/b.json"), "{}")
            .symlink("configs/c", "a/catalog.yaml")
            .hardlink("configs/d", "configs/a/catalog.yaml")
            .whiteout("configs/below.yaml")
            .opaque("configs/e");
        let tar = layer.tar();
        self.add("tar", testkit::zstd(&tar));
        self.add("tar", testkit::gzip(&tar));
        self.add("tar", tar);
        tar::seeds().for_each(|archive| self.add("tar", archive));
    }

    /// Adds what once took too much memory or time, or showed the text of strangers.
    fn hostile(&mut self) {
        let many = |start: &str, part: &str, end: &str| [start, &part.repeat(2000), end].concat();
        self.add("yaml", many("<<: [", "{},", "]\n"));
        self.add("yaml", many("x: &a [", "1,", "]\ny: *a\n"));
        self.add("yaml", many("x: &a {b: 1}\ny: [", "*a,", "]\n"));
        self.add("json", many("{\"v\":[0", ",{}", "]}"));
        let broken = (0..50).fold(Layer::new(), |layer, at| {
            layer.symlink(&format!("configs/l{at}"), "missing")
        });
        self.add(
            "tar",
            broken
                .file("configs/.indexignore", "a*b\n".repeat(100))
                .tar(),
        );
        let mut packed = testkit::gzip(&Layer::new().file("configs/x.yaml", "a: 1\n").tar());
        if let Some(check) = packed.iter_mut().rev().nth(6) {
            *check ^= 1;
        }
        self.add("tar", packed);
        let (digest, index) = (
            testkit::digest(b""),
            "application/vnd.oci.image.index.v1+json",
        );
        for document in [
            format!(
                r#"{{"schemaVersion":2,"artifactType":"pass\u001b[0mword","config":{{"mediaType":"a/b","digest":"{digest}","size":0}},"layers":[]}}"#
            ),
            format!(
                r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"","digest":"{digest}","size":-5,"platform":{{"os":"pass\nword","architecture":"a"}}}}]}}"#
            ),
            format!(
                r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"{digest}","size":5}}]}}"#
            ),
            format!(
                r#"{{"schemaVersion":2,"mediaType":"{index}","layers":[],"config":{{"mediaType":"","digest":"{digest}","size":0}}}}"#
            ),
            r#"{"schemaVersion":3,"manifests":[]}"#.to_owned(),
        ] {
            self.add("manifest", document);
        }
    }

    fn signatures(&mut self) {
        self.add("policy", publisher::signed());
        for real in [
            policies::PAYLOAD,
            policies::SIGNATURE.as_bytes(),
            policies::BUNDLE,
        ] {
            self.add("policy", real);
        }
        policies::WRITTEN
            .iter()
            .for_each(|written| self.add("policy", *written));
    }

    /// Adds noise for the targets that build their input from bytes rather than parse it.
    fn noise(&mut self) {
        for target in ["overlay", "archive", "indexignore", "yaml", "manifest"] {
            for seed in 0..100 {
                let noise = noise(seed).into_iter();
                // The first byte makes choices of the rest.
                let first = matches!(target, "yaml" | "manifest").then_some(CHOICES);
                let noise: Vec<u8> = first.into_iter().chain(noise).collect();
                self.add(target, noise);
            }
        }
    }
}

/// Returns the bytes that a number stands for.
pub(crate) fn noise(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..512).map(|_| random.below(256) as u8).collect()
}

/// Collects the small files of a folder, in the order of their names.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            walk(&path, files)?;
        } else if metadata.is_file() && metadata.len() <= FILE_MAX {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_passes() {
        let seeds = Seeds::new(&[]).unwrap();
        for (name, target) in TARGETS {
            assert!(!seeds.0[name].is_empty(), "{name} has no seeds");
            seeds.0[name].iter().for_each(|seed| target(seed));
        }
    }
}
