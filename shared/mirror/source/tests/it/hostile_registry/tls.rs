//! Certificates that are not good enough, and servers that would rather do without.

use std::time::Duration;

use testkit::{CertificateFault, Fault, Kind, Registry, Wire};

use super::{Lab, wanting};

#[tokio::test]
async fn certificate_with_any_fault_is_refused() {
    use CertificateFault::{Expired, ExpiredAuthority, OwnAuthority, SelfSigned};
    let with = |fault| wanting().tls_with_fault(fault);
    let (right, other) = (wanting().tls(), wanting().tls_for(&["example.com"]));
    let own_for_other = with(OwnAuthority).tls_for(&["example.com"]);
    // The last column is a part of the error. Without one, the image is read.
    let rows = [
        ("right", right, true, ""),
        ("another name", other, true, "for another name"),
        ("expired", with(Expired), true, "has expired"),
        ("signed by itself", with(SelfSigned), true, "--ca-file"),
        ("an unknown authority", wanting().tls(), false, "--ca-file"),
        ("its own authority", with(OwnAuthority), true, ""),
        ("and not trusted", with(OwnAuthority), false, "--ca-file"),
        ("and another name", own_for_other, true, "for another name"),
        ("and expired", with(ExpiredAuthority), true, "has expired"),
    ];
    for (name, builder, trusts, says) in rows {
        let want = if says.is_empty() { "read" } else { "tls" };
        let lab = Lab::tls(builder, Registry::start().await, |_| {}).await;
        if !trusts {
            lab.images.trust_ca_files(&[]).unwrap();
        }
        let text = lab.expect(name, want).await;
        assert!(text.contains(says), "{name}: {text}");
        if want == "tls" {
            let place = format!("registry {}, ", lab.registry.host());
            assert!(text.starts_with(&place), "{text}");
            assert_eq!(
                lab.registry.requests().len(),
                0,
                "{name}: nothing was asked"
            );
        }
    }
}

#[tokio::test]
async fn error_names_cdn_with_bad_certificate() {
    let cdn = Registry::builder().tls().start().await;
    let lab = Lab::tls(wanting().tls(), cdn, |_| {}).await;
    lab.warm().await;
    let to = format!("https://{}/v2/ns/cat/manifests/v1", lab.other.host());
    lab.script([(Kind::Head, Fault::Redirect(to))]);
    let text = lab.expect("a CDN of another CA", "tls").await;
    let place = format!(", at {}: no TLS connection", lab.other.host());
    assert!(text.contains(&place), "{text}");
    assert_eq!(lab.other.requests().len(), 0);
}

#[tokio::test]
async fn tls_downgrade_is_refused() {
    // RFC 8446, section 6: fatal alerts `protocol_version` and `handshake_failure`.
    let alerts = [[21, 3, 1, 0, 2, 2, 70], [21, 3, 3, 0, 2, 2, 40]];
    let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    let rows = [
        ("too old", alerts[0].to_vec(), "tls"),
        ("no common cipher", alerts[1].to_vec(), "tls"),
        ("plain http", plain, "not tls"),
        ("nothing", Vec::new(), "connect"),
        ("noise", vec![22, 3, 3, 255, 255, 0, 0], "tls"),
    ];
    for (name, says, want) in rows {
        let wire = Wire::answering(says).await;
        let (registry, other) = (Registry::start().await, Registry::start().await);
        let lab = Lab::of(registry, other, wire.host(), |settings| {
            settings.http.plain_http = Vec::new();
            settings.http.connect_timeout = Duration::from_secs(2);
        });
        let text = lab.expect(name, want).await;
        assert_eq!(
            text.contains("under plainHttp"),
            want == "not tls",
            "{text}"
        );
        for said in wire.requests() {
            assert!(
                said.starts_with('\u{16}'),
                "{name}: only handshakes are sent"
            );
        }
    }
}
