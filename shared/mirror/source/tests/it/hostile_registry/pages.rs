//! Lists of signatures that come in pages: where the next one may be, and how many there may be.

use serde_json::{Value, json};
use source::{Error, ImageSignatures};
use testkit::{Fault, Image, Kind};

use super::{Lab, wanting};
use crate::kit::failed;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const SBOM: &str = "application/spdx+json";

impl Lab {
    async fn signatures(&self) -> Result<ImageSignatures, Error> {
        let digest = self.image.digest.parse().unwrap();
        self.images.signatures(&self.source(), &digest).await
    }

    /// Looks for signatures, compares what came of it, and looks for secrets where there must be
    /// none.
    async fn expect_of_list(&self, name: &str, want: &str) {
        let text = failed(self.signatures().await, want);
        self.assert_no_secret(name, &text);
    }

    /// A bundle, and how a list names it.
    fn bundle(&self, content: &str) -> Value {
        let blob = testkit::digest(content.as_bytes());
        self.registry.replace_blob(&blob, content.to_owned());
        let layer = json!({"mediaType": BUNDLE, "digest": blob, "size": content.len()});
        let body = json!({"schemaVersion": 2, "layers": [layer]}).to_string();
        let manifest = Image::of_manifest(MANIFEST, body.clone().into());
        self.registry.push("ns/cat", content, &manifest);
        entry(BUNDLE, &manifest.digest, body.len())
    }

    fn lists(&self, pages: impl IntoIterator<Item = Fault>) {
        self.script(pages.into_iter().map(|page| (Kind::Other, page)));
    }

    /// The lists that were asked for.
    fn asked(&self) -> Vec<String> {
        let requests = self.registry.requests().into_iter();
        let lists = requests.filter(|request| request.kind == Kind::Other);
        let asked = lists.map(|request| format!("{}?{}", request.path, request.query));
        asked.collect()
    }

    fn list(&self) -> String {
        format!("/v2/ns/cat/referrers/{}", self.image.digest)
    }
}

fn entry(kind: &str, digest: &str, size: usize) -> Value {
    json!({"mediaType": MANIFEST, "artifactType": kind, "digest": digest, "size": size})
}

fn sbom() -> Value {
    entry(SBOM, &testkit::digest(b"SBOM"), 1)
}

fn page<'a>(entries: &[Value], next: impl Into<Option<&'a str>>) -> Fault {
    let body = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string();
    let mut headers = vec![
        ("content-type", INDEX.to_owned()),
        // No page is, and none is believed to be.
        ("oci-filters-applied", "artifactType".to_owned()),
    ];
    let next = next.into();
    headers.extend(next.map(|next| ("link", format!("<{next}>; rel=\"next\""))));
    Fault::Answer(200, headers, body)
}

#[tokio::test]
async fn all_pages_of_referrers_are_read() {
    let lab = Lab::new().await;
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|content| lab.bundle(content));
    let absolute = format!("http://{}{}?last=2&n=1", lab.registry.host(), lab.list());
    lab.lists([
        page(&[a], "?last=1"),
        page(&[b, sbom()], absolute.as_str()),
        page(&[c], "/v2/_pages/3"),
        // Empty, and not the last.
        page(&[], "4?a=%2F#part"),
        page(&[d], None),
    ]);
    let found = lab.signatures().await.unwrap();
    assert_eq!(found.bundles, [b"a", b"b", b"c", b"d"]);
    let list = lab.list();
    let expected = [
        format!("{list}?"),
        format!("{list}?last=1"),
        format!("{list}?last=2&n=1"),
        "/v2/_pages/3?".to_owned(),
        "/v2/_pages/4?a=%2F".to_owned(),
    ];
    assert_eq!(lab.asked(), expected);
}

#[tokio::test]
async fn next_page_on_other_server_is_refused() {
    for (next, want) in [
        ("http://OTHER/LIST?n=1", "refused: other server"),
        ("//OTHER/LIST?n=1", "refused: other server"),
        ("https://OWN/LIST?n=1", "refused: other server"),
        ("http://localhost/LIST?n=1", "refused: other server"),
        (
            "https://169.254.169.254/latest/meta-data/",
            "refused: other server",
        ),
        ("http://a:b@OWN/LIST?n=1", "refused: userinfo"),
        ("http://OWN:1/LIST?n=1", "refused: not url"),
        ("http://[::1", "refused: not url"),
        ("file:///etc/passwd", "refused: scheme"),
        ("data:application/json,{}", "refused: scheme"),
    ] {
        let lab = Lab::new().await;
        let next = next.replace("OWN", lab.registry.host());
        let next = next
            .replace("OTHER", lab.other.host())
            .replace("/LIST", &lab.list());
        lab.lists([page(&[], next.as_str())]);
        lab.expect_of_list(&next, want).await;
        assert_eq!(lab.asked().len(), 1, "{next}");
        assert!(lab.other.requests().is_empty(), "{next}");
    }
}

/// A redirect is followed as ever, but what another host lists is not gone on with.
#[tokio::test]
async fn list_started_on_other_host_is_not_continued() {
    for (next, want) in [(None, "read"), (Some("?n=1"), "refused: other server")] {
        let lab = Lab::new().await;
        let there = format!("http://{}{}", lab.other.host(), lab.list());
        lab.lists([Fault::Redirect(there)]);
        lab.other.script(Kind::Other, page(&[], next));
        lab.expect_of_list("a list elsewhere", want).await;
        assert_eq!(lab.other.requests().len(), 1);
    }
}

#[tokio::test]
async fn pages_count_towards_signature_limit() {
    for (pages, want) in [
        (4, "read"),
        (5, "limit signatures"),
        (1000, "limit signatures"),
    ] {
        let lab = Lab::with(wanting(), |settings| {
            // A manifest, a bundle and three further pages.
            settings.limits.signatures = 5;
        })
        .await;
        lab.warm().await;
        lab.lists([page(&[lab.bundle("a")], "?n=1")]);
        lab.lists((2..pages).map(|number| page(&[], format!("?n={number}").as_str())));
        lab.lists([page(&[], None)]);
        lab.expect_of_list("many pages", want).await;
        assert_eq!(lab.asked().len(), pages.min(4));
    }
}

/// Only where there is no list at all may there be one under a tag.
#[tokio::test]
async fn missing_page_of_referrers_is_an_error() {
    for (fault, first, later) in [
        (Fault::Status(404, None), "read", "not found"),
        (Fault::Status(405, None), "read", "status"),
        (Fault::Status(501, None), "read", "status"),
        (Fault::Status(403, None), "forbidden", "forbidden"),
        (Fault::Body("{}".to_owned()), "read", "read"),
        (
            Fault::Body("<html>".to_owned()),
            "image: json",
            "image: json",
        ),
    ] {
        for (is_first, want) in [(true, first), (false, later)] {
            let lab = Lab::new().await;
            if !is_first {
                lab.lists([page(&[], "?n=1")]);
            }
            lab.lists([fault.clone()]);
            lab.expect_of_list(&format!("{fault:?}"), want).await;
        }
    }
    let lab = Lab::new().await;
    let index = json!({"schemaVersion": 2, "manifests": [lab.bundle("tagged")]}).to_string();
    let index = Image::of_manifest(INDEX, index.into());
    lab.registry
        .push("ns/cat", &lab.image.digest.replace(':', "-"), &index);
    assert_eq!(lab.signatures().await.unwrap().bundles, [b"tagged"]);
}

#[tokio::test]
async fn attachments_are_listed_up_to_the_limit_of_signatures() {
    let lab = Lab::new().await;
    let digest = lab.image.digest.parse().unwrap();
    let client = lab.images.clone();
    let client = client.with_settings(|settings| settings.limits.signatures = 3);
    for (count, fits) in [(3, true), (4, false)] {
        lab.lists([page(&vec![sbom(); count], None)]);
        let attached = client.attachments(&lab.source(), &digest).await;
        assert_eq!(
            attached.ok().map(|found| found.len()),
            fits.then_some(count)
        );
    }
}
