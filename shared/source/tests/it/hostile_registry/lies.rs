//! Registries whose headers, manifests and bodies contradict each other.

use testkit::{Fault, Kind};

use super::{Lab, PASSWORD, verdict};

/// A trick: its name, and what the registry does.
type Trick<'a> = (&'a str, Vec<(Kind, Fault)>);

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
    let head = |fault| (Kind::Head, fault);
    let get = |fault| (Kind::Manifest, fault);
    let blob = |fault| (Kind::Blob, fault);
    let sha512 = format!("sha512:{}", "a".repeat(128));
    let colour = format!("sha256:\t{}", "[31m".repeat(500));
    let no_head = || head(Fault::Status(405, None));
    let body = |text: &str| Fault::Body(text.to_owned());
    let html = "text/html; charset=utf-8";
    let part = |range: &str| {
        let range = vec![("content-range", range.to_owned())];
        blob(Fault::Answer(206, range, "x".to_owned()))
    };
    let status = |code| Fault::Status(code, None);
    let gzip = || header("content-encoding", "gzip");
    let v1 = "application/vnd.docker.distribution.manifest.v1+prettyjws";
    // Of blobs the config comes first, then the layer.
    let pass = || blob(Fault::Pass);
    let rows: Vec<(&str, Vec<Trick<'_>>)> = vec![
        (
            "not found",
            vec![
                ("HEAD promises another digest", vec![head(lie(OTHER))]),
                ("HEAD promises another algorithm", vec![head(lie(&sha512))]),
                ("HEAD has it and GET does not", vec![get(status(404))]),
            ],
        ),
        (
            "malformed digest",
            vec![
                ("HEAD promises an unknown algorithm", vec![head(lie("md5:d41d"))]),
                ("HEAD promises no digest at all", vec![head(lie("latest"))]),
                ("HEAD promises a path", vec![head(lie("sha256:../../../v2/_catalog"))]),
                ("HEAD promises colours", vec![head(lie(&colour))]),
                ("the tag's GET does", vec![no_head(), get(lie("sha256:ABC"))]),
            ],
        ),
        (
            "digest",
            vec![
                ("the tag's GET promises another", vec![no_head(), get(lie(OTHER))]),
                ("the digest's GET sends another", vec![get(body("{}"))]),
                ("the digest's GET sends nothing", vec![get(body(""))]),
                (
                    "the second GET sends another",
                    vec![no_head(), get(Fault::Pass), get(body("{}"))],
                ),
                ("a page of JSON", vec![get(typed("application/json", "<html>"))]),
            ],
        ),
        (
            "web page",
            vec![
                ("HEAD is a page", vec![head(typed(html, ""))]),
                ("the tag's GET is a page", vec![no_head(), get(typed(html, "<html>"))]),
                ("the digest's GET is a page", vec![get(typed("Text/HTML", "<html>"))]),
            ],
        ),
        (
            "read",
            vec![
                ("HEAD promises nothing", vec![head(lie(""))]),
                ("the tag's GET promises nothing", vec![no_head(), get(lie(""))]),
                ("the digest's GET promises another", vec![get(lie(OTHER))]),
                ("the digest's GET promises nothing", vec![get(lie(""))]),
                ("a manifest of schema 1, it says", vec![get(header("content-type", v1))]),
                ("a coded manifest, it says", vec![get(gzip())]),
                ("a coded config, it says", vec![blob(gzip())]),
                (
                    "a coded layer, it says",
                    vec![pass(), blob(header("content-encoding", "br"))],
                ),
                (
                    "cookies",
                    vec![
                        head(header("set-cookie", "session=1; Path=/")),
                        get(header("set-cookie", "session=2")),
                    ],
                ),
            ],
        ),
        (
            "image",
            vec![(
                "a schema 1 manifest",
                vec![no_head(), get(body(SCHEMA1)), get(body(SCHEMA1))],
            )],
        ),
        ("size", vec![("a config that is another", vec![blob(body("{}"))])]),
        (
            "range",
            vec![
                (
                    "a part of nothing",
                    vec![pass(), blob(Fault::Answer(206, vec![], "x".to_owned()))],
                ),
                ("a part for the whole", vec![pass(), part("bytes 5-9/10")]),
                ("another part", vec![pass(), blob(Fault::Cut(10)), part("bytes 0-9/10")]),
            ],
        ),
        (
            "status",
            vec![
                ("no such part", vec![pass(), blob(Fault::Cut(10)), blob(status(416))]),
                ("nothing is modified", vec![head(status(304))]),
                ("a teapot", vec![get(status(418))]),
            ],
        ),
    ];
    for (want, tricks) in rows {
        for (name, faults) in tricks {
            let lab = Lab::new().await;
            lab.script(faults);
            let text = lab.expect(name, want).await;
            assert!(text.len() < 1000 && !text.contains(char::is_control), "{name}: {text}");
        }
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
async fn error_about_attached_documents_that_repeats_password_withholds_it() {
    let lab = Lab::new().await;
    let digest = lab.image.digest.parse().unwrap();
    let entry = serde_json::json!({ "mediaType": "m", "digest": PASSWORD, "size": 1 });
    let referrers = serde_json::json!({ "schemaVersion": 2, "manifests": [entry] }).to_string();
    for _ in 0..2 {
        lab.script([(Kind::Other, Fault::Body(referrers.clone()))]);
    }
    let signatures = lab.client().signatures(&lab.source(), &digest).await.map(drop);
    let attachments = lab.client().attachments(&lab.source(), &digest).await.map(drop);
    assert_eq!([signatures, attachments].map(|found| verdict(&found)), ["withheld"; 2]);
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
