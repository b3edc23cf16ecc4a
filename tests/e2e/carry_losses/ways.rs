//! Ways to lose an image. Each is a row of one table, or a row with a change of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testkit::{Fault, Kind};

use super::transfer::{Transfer, change};
use crate::support::bundles;

type Change = Box<dyn Fn(&Transfer) + Send + Sync>;

/// One way to lose an image.
pub(super) struct Loss {
    pub(super) name: String,
    /// Change before `carry out`.
    pub(super) before: Change,
    /// Change between `carry out` and `carry in`.
    pub(super) between: Change,
    /// Exit codes of `carry out` and of `carry in`.
    pub(super) codes: [i32; 2],
    /// Bundles that are offered; empty if no catalog is there.
    pub(super) offered: String,
    /// Part of what one of the steps says.
    pub(super) says: String,
}

const ALL: &str = "a.v1 a.v2 b.v1";
/// Offered without the image of the second bundle of package `a`.
const WITHOUT_A2: &str = "a.v1 b.v1";
/// Offered without the index that the first bundle of package `a` needs.
const WITHOUT_LIST: &str = "a.v2 b.v1";

/// Loses an image before `carry out`.
fn source(
    name: &str,
    before: impl Fn(&Transfer) + Send + Sync + 'static,
    offered: &str,
    says: &str,
) -> Loss {
    Loss {
        name: name.to_owned(),
        before: Box::new(before),
        between: Box::new(|_| {}),
        codes: [1, 1],
        offered: offered.to_owned(),
        says: says.to_owned(),
    }
}

/// Loses an image between `carry out` and `carry in`.
fn site(
    name: &str,
    between: impl Fn(&Transfer) + Send + Sync + 'static,
    offered: &str,
    says: &str,
) -> Loss {
    Loss {
        name: name.to_owned(),
        before: Box::new(|_| {}),
        between: Box::new(between),
        codes: [0, 1],
        offered: offered.to_owned(),
        says: says.to_owned(),
    }
}

/// Loses nothing in the end.
fn harmless(loss: Loss) -> Loss {
    Loss {
        codes: [0, 0],
        ..loss
    }
}

/// Returns all ways.
pub(super) fn all() -> Vec<Loss> {
    let mut losses = refused_by_source();
    losses.extend(gone_at_source());
    losses.extend(changed_at_source());
    losses.extend(not_wanted());
    losses.extend(on_disk());
    losses.extend(refused_by_target());
    losses
}

/// Returns the parts of the rows of a table.
fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().filter(|line| !line.is_empty()).map(|line| {
        let parts = Vec::from_iter(line.split('|').map(str::trim));
        parts.try_into().expect(line)
    })
}

/// Answers of the source to all reads of one image: name, status, `Retry-After`, and what is said.
const REFUSED_BY_SOURCE: &str = "
forbidden | 403 | | 403
login is needed | 401 | | failed:
unavailable | 503 | | 503
unavailable for long | 503 | 3600 | 3600
too many requests | 429 | | 429
too many requests for long | 429 | 3600 | 3600
internal error | 500 | | 500
gone for good | 410 | | failed:
";

fn refused_by_source() -> Vec<Loss> {
    let mut losses = Vec::new();
    for [name, status, retry_after, says] in rows(REFUSED_BY_SOURCE) {
        let status = status.parse().expect("it is a number");
        let retry_after = (!retry_after.is_empty()).then(|| retry_after.to_owned());
        let fault = Fault::Status(status, retry_after);
        let before = move |t: &Transfer| t.refuse_at_source("a2/", &fault);
        losses.push(source(name, before, WITHOUT_A2, says));
    }
    losses
}

/// Versions that are gone in repositories of the source: name, repository, its version or `digest`
/// for that of the image, then what is offered and said.
const GONE_AT_SOURCE: &str = "
image gone | a2 | digest | a.v1 b.v1 | its registry does not have it
own image of the lowest bundle gone | a1 | digest | a.v2 b.v1 | its registry does not have it
only image of a package gone | b1 | digest | a.v1 a.v2 | the package is left out
index gone | list | digest | a.v2 b.v1 | its registry does not have it
tag gone | tool | v1 | a.v1 b.v1 | 404
";

fn gone_at_source() -> Vec<Loss> {
    let mut losses = Vec::new();
    for [name, repository, version, offered, says] in rows(GONE_AT_SOURCE) {
        let before = move |t: &Transfer| {
            let version = match version {
                "digest" => &t.image(repository).digest,
                tag => tag,
            };
            t.source.remove(&format!("app/{repository}"), version);
        };
        losses.push(source(name, before, offered, says));
    }
    losses
}

/// Returns ways in which the source serves something else than the image, or less.
fn changed_at_source() -> Vec<Loss> {
    let page = Fault::Answer(
        200,
        vec![("content-type", "text/html".to_owned())],
        "<html>".to_owned(),
    );
    let missing = || Fault::Status(404, None);
    vec![
        source(
            "web page",
            move |t| t.refuse_at_source("a2/manifests/", &page),
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "another manifest",
            |t| {
                let other = Fault::Body("{}".to_owned());
                t.source.rule("GET", "/app/a2/manifests/", other);
            },
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "wrong digest",
            |t| {
                let digest = Fault::Digest(t.image("a1").digest.clone());
                t.source.rule("HEAD", "/app/tool/manifests/v1", digest);
            },
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "redirect to nowhere",
            |t| {
                let away = Fault::Redirect("https://nowhere.invalid/".to_owned());
                t.source.rule("HEAD", "/app/a2/manifests/", away);
            },
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "configuration gone",
            move |t| t.refuse_blob("a2", &t.configuration("a2"), missing()),
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "layer gone",
            move |t| t.refuse_blob("a2", &t.image("a2").layers[0], missing()),
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "layer forbidden",
            |t| t.refuse_blob("a2", &t.image("a2").layers[0], Fault::Status(403, None)),
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "layer damaged",
            |t| {
                let layer = &t.image("a2").layers[0];
                t.source.replace_blob(layer, "other bytes");
            },
            WITHOUT_A2,
            "failed: ",
        ),
        source(
            "layer cut",
            |t| t.refuse_blob("a2", &t.image("a2").layers[0], Fault::Cut(10)),
            WITHOUT_A2,
            "failed: ",
        ),
        harmless(source(
            "one platform of an index gone",
            |t| t.source.remove("app/list", &t.platforms()[1]),
            ALL,
            "lacks some of the images of the index",
        )),
        source(
            "all platforms of an index gone",
            |t| {
                for digest in t.platforms() {
                    t.source.remove("app/list", &digest);
                }
            },
            WITHOUT_LIST,
            "failed: ",
        ),
        source(
            "signature that cannot be read",
            |t| {
                let signature = bundles::image("signature");
                let tag = format!("{}.sig", t.image("a2").digest.replace(':', "-"));
                t.source.push("app/a2", &tag, &signature);
                t.refuse_blob("a2", &signature.layers[0], Fault::Status(404, None));
            },
            ALL,
            "failed: what is attached to ",
        ),
        source(
            "attachments that cannot be listed",
            |t| {
                let refused = Fault::Status(403, None);
                t.source.rule("GET", "/app/a2/referrers/", refused);
            },
            ALL,
            "failed: what is attached to ",
        ),
        harmless(source(
            "too many requests once",
            |t| {
                for _ in 0..2 {
                    let busy = Fault::Status(429, Some("1".to_owned()));
                    t.source.script(Kind::Head, busy);
                }
            },
            ALL,
            "",
        )),
        harmless(source(
            "broken connections once",
            |t| {
                t.source.script(Kind::Head, Fault::Status(503, None));
                t.source.script(Kind::Blob, Fault::Cut(10));
            },
            ALL,
            "",
        )),
    ]
}

/// Returns ways in which an image cannot be named, or must not be copied.
fn not_wanted() -> Vec<Loss> {
    vec![
        source(
            "no port answers",
            |t| t.publish("127.0.0.1:1/app/x:v1"),
            WITHOUT_A2,
            "cannot connect",
        ),
        source(
            "no such host",
            |t| t.publish("nowhere.invalid/app/x:v1"),
            WITHOUT_A2,
            "nowhere.invalid",
        ),
        source(
            "no reference",
            |t| t.publish("oci://somewhere"),
            WITHOUT_A2,
            "oci://somewhere",
        ),
        source(
            "empty repository",
            |t| t.publish(&format!("{}/app/never:v1", t.source.host())),
            WITHOUT_A2,
            "404",
        ),
        source(
            "blocked by registries.conf",
            |t| {
                let host = t.source.host();
                let text = format!("[[registry]]\nlocation = '{host}/app/a2'\nblocked = true\n");
                t.work.write("registries.conf", text);
            },
            WITHOUT_A2,
            "registries.conf blocks it",
        ),
        source(
            "blocked by the configuration",
            |t| t.configure("blockedImages: [{name: '/app/to.l'}]"),
            WITHOUT_A2,
            "blockedImages",
        ),
        source(
            "platforms that are no list of platforms",
            |t| t.configure("entry:platforms: [s390x]"),
            "",
            "isc.yaml",
        ),
        source(
            "no such platform in a list",
            |t| t.configure("entry:platforms: [{os: linux, architecture: s390x}]"),
            WITHOUT_LIST,
            "platforms",
        ),
    ]
}

/// Returns ways to lose something on the disk.
fn on_disk() -> Vec<Loss> {
    vec![
        site(
            "folder of an image gone",
            |t| fs::remove_dir_all(t.on_disk("a2")).expect("it is there"),
            WITHOUT_A2,
            "it is not in the folder",
        ),
        site(
            "manifest gone on the disk",
            |t| fs::remove_file(t.on_disk("a2").join("manifest.json")).expect("it is there"),
            WITHOUT_A2,
            "it is not whole in the folder",
        ),
        site(
            "manifest damaged on the disk",
            |t| {
                let manifest = t.on_disk("a2").join("manifest.json");
                change(&manifest, |bytes| bytes[3] ^= 1);
            },
            WITHOUT_A2,
            "manifest.json is damaged",
        ),
        site(
            "manifest of another image on the disk",
            |t| {
                let other = t.on_disk("a1").join("manifest.json");
                fs::copy(other, t.on_disk("a2").join("manifest.json")).expect("it is there");
            },
            WITHOUT_A2,
            "manifest.json is damaged",
        ),
        site(
            "layer gone on the disk",
            |t| fs::remove_file(t.layer_on_disk("a2")).expect("it is there"),
            WITHOUT_A2,
            "it is not whole in the folder",
        ),
        site(
            "layer cut on the disk",
            |t| change(&t.layer_on_disk("a2"), |bytes| bytes.truncate(5)),
            WITHOUT_A2,
            "has 5 bytes instead of",
        ),
        site(
            "layer damaged on the disk",
            |t| change(&t.layer_on_disk("a2"), |bytes| bytes[20] ^= 1),
            WITHOUT_A2,
            "failed: ",
        ),
        site(
            "folder in place of a layer",
            |t| {
                fs::remove_file(t.layer_on_disk("a2")).expect("it is there");
                fs::create_dir(t.layer_on_disk("a2")).expect("its name is free");
            },
            WITHOUT_A2,
            "it is not a regular file",
        ),
        site(
            "FIFO in the folder of an image",
            |t| {
                let fifo = t.on_disk("a2").join("fifo");
                let made = Command::new("mkfifo").arg(fifo).status();
                assert!(made.expect("mkfifo runs").success());
            },
            WITHOUT_A2,
            "it is not a regular file",
        ),
        site(
            "image of one platform gone on the disk",
            |t| {
                let part = t.platforms()[0].replace("sha256:", "");
                let file = t.on_disk("list").join(format!("{part}.manifest.json"));
                fs::remove_file(file).expect("it is there");
            },
            WITHOUT_LIST,
            "it is not whole in the folder",
        ),
        site(
            "image not in carry.json",
            |t| {
                let mut carried = t.work.json("disk/carry.json");
                let images = carried["images"].as_array_mut().expect("it has images");
                images.retain(|image| !is_of(image, "/app/a2@"));
                t.work.write("disk/carry.json", carried.to_string());
            },
            WITHOUT_A2,
            "it was not carried",
        ),
        site(
            "another digest in carry.json",
            |t| {
                let text = t.work.read("disk/carry.json");
                let other = text.replace(&t.image("a2").digest, &t.image("a1").digest);
                t.work.write("disk/carry.json", other);
            },
            WITHOUT_A2,
            "failed: ",
        ),
        site(
            "carry.json gone",
            |t| fs::remove_file(t.work.path("disk/carry.json")).expect("it is there"),
            "",
            "has no carry.json",
        ),
        site(
            "archive gone",
            |t| fs::remove_file(archive(t)).expect("it is there"),
            "",
            "cannot open",
        ),
        site(
            "archive cut",
            |t| change(&archive(t), |bytes| bytes.truncate(1500)),
            "",
            "error: ",
        ),
    ]
}

fn is_of(image: &Value, part: &str) -> bool {
    let reference = image["image"].as_str().unwrap_or_default();
    reference.contains(part)
}

fn archive(transfer: &Transfer) -> PathBuf {
    let carried = transfer.work.json("disk/carry.json");
    let archive = carried["archive"].as_str().expect("it names its archive");
    transfer.work.path(&format!("disk/{archive}"))
}

/// Answers of the target: name, method, part of the path, status, `Retry-After`, then what is offered
/// and said.
const REFUSED_BY_TARGET: &str = "
target takes no push | POST | / | 405 | | | takes no push
target wants a login | POST | / | 401 | | | takes no push
target forbids | POST | / | 403 | | | takes no push
target is down for long | POST | / | 503 | 3600 | | takes no push
target refuses one repository | POST | /app/a2/ | 403 | | a.v1 b.v1 | failed:
target is full at a layer | PATCH | /app/a2/ | 507 | | a.v1 b.v1 | failed:
target is full at the end of a layer | PUT | /app/a2/blobs/ | 413 | | a.v1 b.v1 | failed:
target refuses a manifest | PUT | /app/a2/manifests/ | 400 | | a.v1 b.v1 | failed:
target has too many requests | PUT | /app/a2/manifests/ | 429 | | a.v1 b.v1 | failed:
target does not say what it has | HEAD | /app/a2/manifests/ | 403 | | a.v1 b.v1 | failed:
target refuses an index | PUT | /app/list/manifests/carried | 400 | | a.v2 b.v1 | failed:
target refuses the catalog | PUT | /ns/index/manifests/ | 403 | | | failed: catalog
target is full at the catalog | PUT | /ns/index/blobs/ | 507 | | | failed: catalog
";

fn refused_by_target() -> Vec<Loss> {
    let mut losses = Vec::new();
    for [name, method, path, status, retry_after, offered, says] in rows(REFUSED_BY_TARGET) {
        let status = status.parse().expect("it is a number");
        let retry_after = (!retry_after.is_empty()).then(|| retry_after.to_owned());
        let fault = Fault::Status(status, retry_after);
        let between = move |t: &Transfer| t.target.rule(method, path, fault.clone());
        losses.push(site(name, between, offered, says));
    }
    losses
}
