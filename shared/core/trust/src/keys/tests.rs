use super::*;

/// A key of `openssl.txt`.
struct OpensslKey {
    /// Its kind, or `refused: ` and the reason.
    name: &'static str,
    pem: &'static str,
    /// Signature of `message` in base64.
    signature: &'static str,
}

fn openssl_keys(refused: bool) -> Vec<OpensslKey> {
    let parts = include_str!("openssl.txt").split("\n\n").skip(1);
    let keys = parts.map(|part| {
        let (name, rest) = part.split_once('\n').unwrap();
        let (pem, signature) = rest.split_at(rest.find("-----END PUBLIC KEY-----\n").unwrap() + 25);
        let signature = signature.trim_end();
        OpensslKey {
            name,
            pem,
            signature,
        }
    });
    keys.filter(|key| key.name.starts_with("refused") == refused)
        .collect()
}

fn key(pem: &str) -> PublicKey {
    PublicKey::from_pem(pem.as_bytes()).unwrap().remove(0)
}

fn signature(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[test]
fn each_kind_of_key_verifies_signatures_of_openssl_and_no_other() {
    let all = openssl_keys(false);
    for made in &all {
        let (kind, key, right) = (made.name, key(made.pem), signature(made.signature));
        assert!(key.verifies(b"message", &right), "{kind}");
        assert_eq!(key.to_pem(), made.pem);
        assert!(format!("{key:?}").contains(&key.id().to_string()));
        assert!(!key.verifies(b"massage", &right), "{kind}");
        assert!(!key.verifies(b"message", b""), "{kind}");
        let mut altered = right.clone();
        *altered.last_mut().unwrap() ^= 1;
        assert!(!key.verifies(b"message", &altered), "{kind}");
        for other in all.iter().filter(|other| other.pem != made.pem) {
            let verified = self::key(other.pem).verifies(b"message", &right);
            assert!(!verified, "{kind} by {}", other.name);
        }
    }
    let text: String = all.iter().map(|made| made.pem).collect();
    let keys: Vec<_> = all.iter().map(|made| key(made.pem)).collect();
    assert_eq!(PublicKey::from_pem(text.as_bytes()).unwrap(), keys);
}

#[test]
fn from_text_reads_keys_without_line_breaks() {
    let made = openssl_keys(false);
    let keys: Vec<_> = made[..2].iter().map(|made| key(made.pem)).collect();
    let words: Vec<_> = keys.iter().map(|key| STANDARD.encode(&key.der)).collect();
    assert_eq!(PublicKey::from_text(&words.join(", ")).unwrap(), keys);
    assert_eq!(PublicKey::from_text(made[1].pem).unwrap(), keys[1..]);
    for text in ["", ",", "x", "MCowBQ=="] {
        assert!(PublicKey::from_text(text).is_err(), "{text}");
    }
}

#[test]
fn unusable_keys_are_refused_when_read() {
    let refusal = |text: &str| PublicKey::from_pem(text.as_bytes()).unwrap_err();
    for OpensslKey { name: why, pem, .. } in openssl_keys(true) {
        let error = refusal(pem);
        let fits = match why {
            "refused: weak" => matches!(error, KeyError::Unusable("RSA")),
            "refused: kind" => matches!(error, KeyError::Kind(_)),
            _ => false,
        };
        assert!(fits, "{why}: {error:?}");
    }
    let cut = pem::section("PUBLIC KEY", &key(openssl_keys(false)[0].pem).der[..20]);
    assert!(matches!(refusal(&cut), KeyError::Malformed(_)));
    assert!(matches!(
        refusal(&pem::section("PRIVATE KEY", b"x")),
        KeyError::Private
    ));
    for text in ["", "ssh-ed25519 AAAA", "-----BEGIN PUBLIC KEY-----\n"] {
        assert!(
            matches!(refusal(text), KeyError::None { .. } | KeyError::Pem),
            "{text}"
        );
    }
}

#[test]
fn signing_key_from_pem_refuses_other_keys() {
    let ecdsa = model::crypto::signature::EcdsaKeyPair::generate_pkcs8(
        &model::crypto::signature::ECDSA_P256_SHA256_ASN1_SIGNING,
        &SystemRandom::new(),
    )
    .unwrap();
    let ecdsa = pem::section("PRIVATE KEY", ecdsa.as_ref());
    let one = SigningKey::generate_pem().unwrap();
    let public = SigningKey::from_pem(one.as_bytes())
        .unwrap()
        .public()
        .to_pem();
    let encrypted = pem::section("ENCRYPTED SIGSTORE PRIVATE KEY", b"{}");
    let refused = |text: &str| SigningKey::from_pem(text.as_bytes()).unwrap_err();
    assert!(matches!(refused(&ecdsa), KeyError::NotEd25519));
    assert!(matches!(
        refused(&format!("{one}{one}")),
        KeyError::NotEd25519
    ));
    assert!(matches!(
        refused(&public),
        KeyError::None {
            wanted: "PRIVATE KEY"
        }
    ));
    assert!(matches!(refused(&encrypted), KeyError::Encrypted));
    assert!(matches!(
        refused(&one.replace("MC4C", "!!!!")),
        KeyError::Pem
    ));
    assert!(matches!(refused(""), KeyError::None { .. }));
}
