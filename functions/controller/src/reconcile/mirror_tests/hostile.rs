//! The ways in which an annotation, a Secret or a mirror can be wrong, and the conditions that say so.

use testkit::{FileAnswer, FileServer};
use trust::SigningKey;

use super::{Upstream, copied, message, signer};
use crate::reconcile::cluster::Cluster;

#[tokio::test]
async fn wrong_annotation_is_blocked_and_no_server_is_asked() {
    let (cluster, upstream) = copied(&["p"]).await;
    let before = upstream.server.requests().len();
    let host = upstream.server.host();
    let https = |rest: &str| format!("https://{rest}");
    for (annotation, hint) in [
        (String::new(), "write https://HOST/catalogs/NAME"),
        ("mirror".to_owned(), "write https://HOST/catalogs/NAME"),
        ("file:///m/catalogs/up".to_owned(), "write https://HOST/catalogs/NAME"),
        (
            https(&format!("user:hunter2@{host}/m/catalogs/up")),
            "credentials belong in the Secret",
        ),
        (
            https(&format!("{host}/m/catalogs/up?token=hunter2")),
            "credentials belong in the Secret",
        ),
        (
            https(&format!("{host}/m/catalogs/up#a")),
            "credentials belong in the Secret",
        ),
        (https(&format!("{host}/m/up")), "does not end in /catalogs/NAME"),
        (
            https(&format!("{host}/m/catalogs/Up")),
            "does not end in /catalogs/NAME",
        ),
        (
            https(&format!("{host}/m/..%2fother/catalogs/up")),
            "has a % or an empty part",
        ),
        (
            https(&format!("{host}/m//other/catalogs/up")),
            "has a % or an empty part",
        ),
        (
            https(&format!("{host}/m/../other/catalogs/up")),
            "/other/ is not allowed as a mirror",
        ),
        (
            https(&format!("{host}/mm/catalogs/up")),
            "/mm/ is not allowed as a mirror",
        ),
        (https(&format!("{host}/catalogs/up")), "is not allowed as a mirror"),
        (
            https(&format!("{}/m/catalogs/up", host.replace(".1:", ".2:"))),
            "is not allowed as a mirror",
        ),
        (https("169.254.169.254/catalogs/up"), "is not allowed as a mirror"),
        (format!("http://{host}/m/catalogs/up"), "is not allowed as a mirror"),
    ] {
        cluster.annotate(Some(&annotation));
        cluster.reconcile().await.unwrap();
        assert_eq!(cluster.condition("Progressing"), "False Blocked 1", "{annotation}");
        let text = message(&cluster);
        assert!(text.contains(hint) && !text.contains("hunter2"), "{annotation}: {text}");
        assert!(
            cluster.reconciler.last.lock().unwrap()["a"].next.is_none(),
            "{annotation}"
        );
        assert_eq!(cluster.packages().await, Some(1), "{annotation}");
    }
    assert_eq!(upstream.server.requests().len(), before);
}

#[tokio::test]
async fn wrong_secret_and_wrong_mirror_are_named_in_the_condition() {
    let mut cluster = Cluster::start(":v1").await;
    cluster.push("v1", &["p"]);
    let mut upstream = Upstream::start().await;
    let (public, signer) = signer();
    upstream.signer = Some(signer);
    upstream.publish(&cluster, "v1").await;
    upstream.server.require("user", "hunter2");
    cluster.allow(&upstream.origin());
    cluster.annotate(Some(&upstream.url()));
    let ca = upstream.server.ca_pem();
    let other = Upstream::start().await;
    let other_key = SigningKey::generate_pem().unwrap();
    let other_public = SigningKey::from_pem(other_key.as_bytes()).unwrap().public().to_pem();
    let header = ("header", "Authorization: Basic dXNlcjpodW50ZXIy");
    let ca = ("ca.crt", ca);
    cluster.reconcile().await.unwrap();
    let rows: [(&[(&str, &str)], &str); 13] = [
        (&[header], "cannot fetch catalogs/up/current.json"),
        (
            &[header, ("ca.crt", "hunter2")],
            "certificates of authorities are not PEM",
        ),
        (
            &[header, ("ca.crt", other.server.ca_pem())],
            "cannot fetch catalogs/up/current.json",
        ),
        (&[ca], "401 Unauthorized, it wants credentials"),
        (
            &[ca, ("header", "Authorization: Basic aHVudGVyMg==")],
            "401 Unauthorized, it wants credentials",
        ),
        (
            &[ca, ("header", "hunter2")],
            "line 1 of header in the Secret olmv1-system/mirror is not a header field",
        ),
        (&[ca, header, ("tls.crt", "a")], "has only one of tls.crt and tls.key"),
        (
            &[ca, header, ("tls.crt", "a"), ("tls.key", "hunter2")],
            "client certificate or its private key is not PEM",
        ),
        (
            &[ca, header, ("tls.crt", ca.1), ("tls.key", &other_key)],
            "client certificate and its private key cannot be used",
        ),
        (
            &[ca, header, ("public.key", "hunter2")],
            "public.key in the Secret olmv1-system/mirror cannot be used as a public key",
        ),
        (
            &[ca, header, ("key.pub", &other_key)],
            "a private key where a public key is wanted",
        ),
        (
            &[ca, header, ("public.key", &other_public)],
            "none of these keys is trusted",
        ),
        (&[ca, header, ("public.key", &public)], ""),
    ];
    for (data, hint) in rows {
        cluster.set_mirror_secret(Some(data));
        cluster.reconciler.forget();
        cluster.reconcile().await.unwrap();
        let text = message(&cluster);
        let expected = if hint.is_empty() {
            "True Succeeded 1"
        } else {
            "True Retrying 1"
        };
        assert_eq!(cluster.condition("Progressing"), expected, "{hint}: {text}");
        assert!(
            text.contains(hint) && !text.contains("hunter2") && !text.contains("aHVudGVy"),
            "{hint}: {text}"
        );
        assert_eq!(cluster.packages().await, hint.is_empty().then_some(1), "{hint}");
    }
    cluster.set_mirror_secret(None);
    cluster.reconciler.forget();
    cluster.reconcile().await.unwrap();
    assert!(message(&cluster).contains("the Secret olmv1-system/mirror of --mirror-origin does not exist"));
    assert_eq!(cluster.packages().await, Some(1), "the old state is served");
}

#[tokio::test]
async fn redirect_to_another_server_gets_no_secret() {
    let (mut cluster, upstream) = copied(&["p"]).await;
    let other = FileServer::start().await;
    let path = "/m/catalogs/up/current.json";
    let rows = [
        (other.url("/x"), "it leads from https to plain http"),
        ("https://169.254.169.254/x".to_owned(), "link-local"),
    ];
    for (to, hint) in rows {
        cluster.restart();
        upstream.server.script(path, FileAnswer::Redirect(to));
        cluster.reconcile().await.unwrap();
        assert!(message(&cluster).contains(hint), "{}", message(&cluster));
    }
    let other = FileServer::tls().await;
    let both = format!("{}{}", upstream.server.ca_pem(), other.ca_pem());
    cluster.set_mirror_secret(Some(&[("ca.crt", &both), ("header", "Authorization: Bearer hunter2")]));
    cluster.restart();
    upstream.server.script(path, FileAnswer::Redirect(other.url("/x")));
    cluster.reconcile().await.unwrap();
    let asked = other.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].authorization, None);
    let sent = upstream.server.requests().pop().unwrap();
    assert_eq!(sent.authorization.as_deref(), Some("Bearer hunter2"));
}
