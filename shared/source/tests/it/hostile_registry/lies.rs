//! Registries whose headers, manifests and bodies contradict each other.

use testkit::{Fault, Kind};

use super::{Lab, PASSWORD};

/// The trick, what goes wrong, and what comes of it.
type Row<'a> = (&'a str, Vec<(Kind, Fault)>, &'a str);

/// Right in form, and of something else.
const OTHER: &str = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
const SCHEMA1: &str = r#"{"schemaVersion": 1, "fsLayers": [{"blobSum": "sha256:x"}], "history": []}"#;

fn lie(digest: &str) -> Fault {
    Fault::Digest(digest.to_owned())
}

fn typed(media_type: &str, body: &str) -> Fault {
    Fault::Answer(200, vec![("content-type", media_type.to_owned())], body.to_owned())
}

fn header(name: &'static str, value: &str) -> Fault {
    Fault::Header(name, value.to_owned())
}

#[tokio::test]
async fn wrong_bytes_are_refused_by_digest() {
    use Kind::{Blob, Head, Manifest};
    let sha512 = format!("sha512:{}", "a".repeat(128));
    let colour = format!("sha256:\t{}", "[31m".repeat(500));
    let no_head = || (Head, Fault::Status(405, None));
    let body = |text: &str| Fault::Body(text.to_owned());
    let html = "text/html; charset=utf-8";
    let rows: Vec<Row<'_>> = vec![
        ("HEAD promises another digest", vec![(Head, lie(OTHER))], "not found"),
        (
            "HEAD promises another algorithm",
            vec![(Head, lie(&sha512))],
            "not found",
        ),
        (
            "HEAD promises an unknown algorithm",
            vec![(Head, lie("md5:d41d8cd98f00b204e9800998ecf8427e"))],
            "malformed digest",
        ),
        (
            "HEAD promises no digest at all",
            vec![(Head, lie("latest"))],
            "malformed digest",
        ),
        (
            "HEAD promises a path",
            vec![(Head, lie("sha256:../../../v2/_catalog"))],
            "malformed digest",
        ),
        ("HEAD promises colours", vec![(Head, lie(&colour))], "malformed digest"),
        ("HEAD promises nothing", vec![(Head, lie(""))], "read"),
        (
            "the tag's GET promises another digest",
            vec![no_head(), (Manifest, lie(OTHER))],
            "digest",
        ),
        (
            "the tag's GET promises a malformed one",
            vec![no_head(), (Manifest, lie("sha256:ABC"))],
            "malformed digest",
        ),
        (
            "the tag's GET promises nothing",
            vec![no_head(), (Manifest, lie(""))],
            "read",
        ),
        (
            "the digest's GET promises another, and sends the right",
            vec![(Manifest, lie(OTHER))],
            "read",
        ),
        ("the digest's GET promises nothing", vec![(Manifest, lie(""))], "read"),
        (
            "the digest's GET sends another manifest",
            vec![(Manifest, body("{}"))],
            "digest",
        ),
        ("the digest's GET sends nothing", vec![(Manifest, body(""))], "digest"),
        (
            "the second GET sends another manifest",
            vec![no_head(), (Manifest, Fault::Pass), (Manifest, body("{}"))],
            "digest",
        ),
        (
            "HEAD has it and GET does not",
            vec![(Manifest, Fault::Status(404, None))],
            "not found",
        ),
        ("HEAD is a page", vec![(Head, typed(html, ""))], "page"),
        (
            "the tag's GET is a page",
            vec![no_head(), (Manifest, typed(html, "<html>log in</html>"))],
            "page",
        ),
        (
            "the digest's GET is a page",
            vec![(Manifest, typed("Text/HTML", "<html>log in</html>"))],
            "page",
        ),
        (
            "a page that says it is a manifest",
            vec![(Manifest, typed("application/json", "<html>log in</html>"))],
            "digest",
        ),
        (
            "a manifest that says it is schema 1",
            vec![(
                Manifest,
                header(
                    "content-type",
                    "application/vnd.docker.distribution.manifest.v1+prettyjws",
                ),
            )],
            "read",
        ),
        (
            "a schema 1 manifest",
            vec![no_head(), (Manifest, body(SCHEMA1)), (Manifest, body(SCHEMA1))],
            "image",
        ),
        (
            "a manifest that says it is compressed",
            vec![(Manifest, header("content-encoding", "gzip"))],
            "read",
        ),
        (
            "a config that says it is compressed",
            vec![(Blob, header("content-encoding", "gzip"))],
            "read",
        ),
        (
            "a layer that says it is compressed",
            vec![(Blob, Fault::Pass), (Blob, header("content-encoding", "br"))],
            "read",
        ),
        ("a config that is another", vec![(Blob, body("{}"))], "size"),
        (
            "a part where the whole was asked for",
            vec![(Blob, Fault::Pass), (Blob, Fault::Answer(206, vec![], "x".to_owned()))],
            "range",
        ),
        (
            "a part that is not said to be which",
            vec![
                (Blob, Fault::Pass),
                (
                    Blob,
                    Fault::Answer(206, vec![("content-range", "bytes 5-9/10".to_owned())], "x".to_owned()),
                ),
            ],
            "range",
        ),
        (
            "another part than the one asked for",
            vec![
                (Blob, Fault::Pass),
                (Blob, Fault::Cut(10)),
                (
                    Blob,
                    Fault::Answer(206, vec![("content-range", "bytes 0-9/10".to_owned())], "x".to_owned()),
                ),
            ],
            "range",
        ),
        (
            "no such part",
            vec![
                (Blob, Fault::Pass),
                (Blob, Fault::Cut(10)),
                (Blob, Fault::Status(416, None)),
            ],
            "status",
        ),
        (
            "cookies",
            vec![
                (Head, header("set-cookie", "session=1; Path=/")),
                (Manifest, header("set-cookie", "session=2")),
            ],
            "read",
        ),
        ("nothing is modified", vec![(Head, Fault::Status(304, None))], "status"),
        ("a teapot", vec![(Manifest, Fault::Status(418, None))], "status"),
    ];
    for (name, faults, want) in rows {
        let lab = Lab::new().await;
        lab.script(faults);
        let text = lab.expect(name, want).await;
        assert!(text.len() < 1000 && !text.contains(char::is_control), "{name}: {text}");
    }
}

#[tokio::test]
async fn error_about_manifest_that_repeats_password_withholds_it() {
    let lab = Lab::new().await;
    let (_, manifest) = &lab.image.manifests[&lab.image.digest];
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    let mut as_type = manifest.clone();
    as_type["artifactType"] = PASSWORD.into();
    as_type["config"]["mediaType"] = "application/x".into();
    let mut as_layer = manifest.clone();
    as_layer["layers"][0]["mediaType"] = PASSWORD.into();
    let mut as_number = manifest;
    as_number["layers"][0]["size"] = PASSWORD.into();
    let platform = serde_json::json!({ "os": PASSWORD, "architecture": "x" });
    let entry = serde_json::json!({ "mediaType": "m", "digest": lab.image.digest, "size": 1, "platform": platform });
    let as_platform = serde_json::json!({ "schemaVersion": 2, "manifests": [entry, entry] });
    for manifest in [as_type, as_layer, as_number, as_platform] {
        let text = manifest.to_string();
        lab.script([
            (Kind::Head, lie(&testkit::digest(text.as_bytes()))),
            (Kind::Manifest, Fault::Body(text)),
        ]);
        // `expect` also checks that the error does not hold the password.
        lab.expect("the password in a manifest", "withheld").await;
    }
}

#[tokio::test]
async fn urls_in_manifest_are_not_requested() {
    let lab = Lab::new().await;
    let layer = &lab.image.layers[0];
    let (_, manifest) = &lab.image.manifests[&lab.image.digest];
    let mut manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    let url = format!("http://{}/v2/ns/cat/blobs/{layer}", lab.other.host());
    for media_type in [
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    ] {
        manifest["layers"][0]["mediaType"] = media_type.into();
        manifest["layers"][0]["urls"] = [url.clone()].as_slice().into();
        let text = manifest.to_string();
        let gone = (Kind::Blob, Fault::Status(404, None));
        let body = Fault::Body(text.clone());
        lab.script([
            (Kind::Head, lie(&testkit::digest(text.as_bytes()))),
            (Kind::Manifest, body),
        ]);
        lab.script([(Kind::Blob, Fault::Pass), gone]);
        lab.expect(media_type, "not found").await;
        assert_eq!(lab.other.requests().len(), 0);
    }
}
