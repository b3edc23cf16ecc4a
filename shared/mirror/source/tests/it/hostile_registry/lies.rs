//! Registries whose headers, manifests and bodies contradict each other.

use serde_json::{Value, json};
use testkit::{Fault, Kind, index};

use super::{Lab, PASSWORD};
use crate::kit::{failed, push};

/// Right in form, and of something else.
const OTHER: &str = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
const PATH: &str = "sha256:../../../v2/_catalog";
const SCHEMA1: &str =
    r#"{"schemaVersion": 1, "fsLayers": [{"blobSum": "sha256:x"}], "history": []}"#;

fn lie(digest: &str) -> Fault {
    Fault::Digest(digest.to_owned())
}

fn typed(media_type: &str, body: &str) -> Fault {
    Fault::Answer(
        200,
        vec![("content-type", media_type.to_owned())],
        body.to_owned(),
    )
}

fn header(name: &'static str, value: &str) -> Fault {
    Fault::Header(name, value.to_owned())
}

#[tokio::test]
async fn wrong_bytes_are_refused_by_digest() {
    let head = |fault| (Kind::Head, fault);
    let get = |fault| (Kind::Manifest, fault);
    let blob = |fault| (Kind::Blob, fault);
    let sha512 = format!("sha512:{}", "a".repeat(128));
    let colour = format!("sha256:\t{}", "[31m".repeat(500));
    let body = |text: &str| Fault::Body(text.to_owned());
    let other = || get(body("{}"));
    let (json, html) = ("application/json", "text/html; charset=utf-8");
    let malformed = "malformed digest";
    let part = |range: &str| {
        let range = vec![("content-range", range.to_owned())];
        blob(Fault::Answer(206, range, "x".to_owned()))
    };
    let status = |code| Fault::Status(code, None);
    let no_head = || head(status(405));
    let gzip = || header("content-encoding", "gzip");
    let br = || header("content-encoding", "br");
    let cookie = || header("set-cookie", "session=1; Path=/");
    let v1 = "application/vnd.docker.distribution.manifest.v1+prettyjws";
    let old = || get(body(SCHEMA1));
    // Of blobs the config comes first, then the layer.
    let (pass, cut) = (|| blob(Fault::Pass), || blob(Fault::Cut(10)));
    let no_range = || blob(Fault::Answer(206, vec![], "x".to_owned()));
    let rows = vec![
        ("HEAD promises another", vec![head(lie(OTHER))], "not found"),
        (
            "HEAD promises SHA-512",
            vec![head(lie(&sha512))],
            "not found",
        ),
        ("GET has it not", vec![get(status(404))], "not found"),
        ("HEAD promises a path", vec![head(lie(PATH))], malformed),
        ("HEAD promises colours", vec![head(lie(&colour))], malformed),
        (
            "GET of the tag",
            vec![no_head(), get(lie("sha256:ABC"))],
            malformed,
        ),
        (
            "GET promises another",
            vec![no_head(), get(lie(OTHER))],
            "digest",
        ),
        ("the digest's GET sends another", vec![other()], "digest"),
        (
            "the digest's GET sends nothing",
            vec![get(body(""))],
            "digest",
        ),
        (
            "second GET",
            vec![no_head(), get(Fault::Pass), other()],
            "digest",
        ),
        ("a page of JSON", vec![get(typed(json, "<html>"))], "digest"),
        ("HEAD is a page", vec![head(typed(html, ""))], "web page"),
        (
            "GET is a page",
            vec![no_head(), get(typed(html, ""))],
            "web page",
        ),
        (
            "the digest's GET",
            vec![get(typed("Text/HTML", "<html>"))],
            "web page",
        ),
        ("HEAD promises nothing", vec![head(lie(""))], "read"),
        (
            "the tag's GET promises nothing",
            vec![no_head(), get(lie(""))],
            "read",
        ),
        (
            "the digest's GET promises another",
            vec![get(lie(OTHER))],
            "read",
        ),
        (
            "the digest's GET promises nothing",
            vec![get(lie(""))],
            "read",
        ),
        (
            "schema 1, it says",
            vec![get(header("content-type", v1))],
            "read",
        ),
        ("a coded manifest, it says", vec![get(gzip())], "read"),
        ("a coded config, it says", vec![blob(gzip())], "read"),
        ("a coded layer, it says", vec![pass(), blob(br())], "read"),
        ("cookies", vec![head(cookie()), get(cookie())], "read"),
        ("schema 1", vec![no_head(), old(), old()], "image: manifest"),
        ("a config that is another", vec![blob(body("{}"))], "size"),
        ("a part of nothing", vec![pass(), no_range()], "range"),
        (
            "a part for the whole",
            vec![pass(), part("bytes 5-9/10")],
            "range",
        ),
        (
            "another part",
            vec![pass(), cut(), part("bytes 0-9/10")],
            "range",
        ),
        (
            "no such part",
            vec![pass(), cut(), blob(status(416))],
            "status",
        ),
        ("nothing is modified", vec![head(status(304))], "status"),
        ("a teapot", vec![get(status(418))], "status"),
    ];
    for (name, faults, want) in rows {
        let lab = Lab::new().await;
        lab.script(faults);
        let text = lab.expect(name, want).await;
        assert!(
            text.len() < 1000 && !text.contains(char::is_control),
            "{name}: {text}"
        );
    }
}

#[tokio::test]
async fn error_that_repeats_password_withholds_it() {
    let lab = Lab::new().await;
    let changed = |change: fn(&mut Value)| lab.image.clone().with_changed_manifest(change);
    let platform = format!("{PASSWORD}/x");
    for image in [
        changed(|manifest| {
            manifest["artifactType"] = PASSWORD.into();
            manifest["config"]["mediaType"] = "application/x".into();
        }),
        changed(|manifest| manifest["layers"][0]["mediaType"] = PASSWORD.into()),
        changed(|manifest| manifest["layers"][0]["size"] = PASSWORD.into()),
        index(&[(&platform, &lab.image), (&platform, &lab.image)]),
    ] {
        push(&lab.registry, &image);
        // `expect` also checks that the error does not hold the password.
        lab.expect("the password in a manifest", "withheld").await;
    }
    let digest = lab.image.digest.parse().unwrap();
    let entry = json!({ "mediaType": "m", "digest": PASSWORD, "size": 1 });
    let referrers = json!({ "schemaVersion": 2, "manifests": [entry] }).to_string();
    lab.script([(); 2].map(|()| (Kind::Other, Fault::Body(referrers.clone()))));
    let (client, source) = (&lab.images, lab.source());
    failed(client.signatures(&source, &digest).await, "withheld");
    failed(client.attachments(&source, &digest).await, "withheld");
}

#[tokio::test]
async fn urls_in_manifest_are_not_requested() {
    let lab = Lab::new().await;
    let url = format!(
        "http://{}/v2/ns/cat/blobs/{}",
        lab.other.host(),
        lab.image.layers[0]
    );
    for media_type in [
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    ] {
        let image = lab.image.clone().with_changed_manifest(|manifest| {
            manifest["layers"][0]["mediaType"] = media_type.into();
            manifest["layers"][0]["urls"] = json!([url]);
        });
        push(&lab.registry, &image);
        lab.script([
            (Kind::Blob, Fault::Pass),
            (Kind::Blob, Fault::Status(404, None)),
        ]);
        lab.expect(media_type, "not found").await;
        assert_eq!(lab.other.requests().len(), 0);
    }
}
