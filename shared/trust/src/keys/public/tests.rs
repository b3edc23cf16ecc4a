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
        OpensslKey { name, pem, signature }
    });
    keys.filter(|key| key.name.starts_with("refused") == refused).collect()
}

fn key(pem: &str) -> PublicKey {
    PublicKey::from_pem(pem.as_bytes()).unwrap().remove(0)
}

fn signature(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[test]
fn each_kind_of_key_verifies_signatures_of_openssl() {
    for OpensslKey {
        name: kind,
        pem,
        signature: text,
    } in openssl_keys(false)
    {
        let key = key(pem);
        assert!(key.verifies(b"message", &signature(text)), "{kind}");
        assert_eq!(key.to_pem(), pem);
        assert!(format!("{key:?}").contains(&key.id().to_string()));
    }
}

#[test]
fn verifies_refuses_another_message_signature_or_key() {
    for OpensslKey {
        name: kind,
        pem,
        signature: text,
    } in openssl_keys(false)
    {
        let key = key(pem);
        assert!(!key.verifies(b"massage", &signature(text)), "{kind}");
        assert!(!key.verifies(b"message", b""), "{kind}");
        let mut altered = signature(text);
        *altered.last_mut().unwrap() ^= 1;
        assert!(!key.verifies(b"message", &altered), "{kind}");
        for other in openssl_keys(false).iter().filter(|other| other.pem != pem) {
            let verified = self::key(other.pem).verifies(b"message", &signature(text));
            assert!(!verified, "{kind} by {}", other.name);
        }
    }
}

#[test]
fn from_pem_reads_several_keys() {
    let text: String = openssl_keys(false).iter().map(|key| key.pem).collect();
    let keys = PublicKey::from_pem(text.as_bytes()).unwrap();
    let expected: Vec<_> = openssl_keys(false).iter().map(|made| key(made.pem)).collect();
    assert_eq!(keys, expected);
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
    for OpensslKey { name: why, pem, .. } in openssl_keys(true) {
        let error = PublicKey::from_pem(pem.as_bytes()).unwrap_err();
        let fits = match why {
            "refused: weak" => matches!(error, KeyError::Unusable("RSA")),
            "refused: kind" => matches!(error, KeyError::Kind(_)),
            _ => false,
        };
        assert!(fits, "{why}: {error:?}");
    }
    let cut = pem("PUBLIC KEY", &key(openssl_keys(false)[0].pem).der[..20]);
    assert!(matches!(
        PublicKey::from_pem(cut.as_bytes()),
        Err(KeyError::Malformed(_))
    ));
    let private = pem("PRIVATE KEY", b"x");
    assert!(matches!(
        PublicKey::from_pem(private.as_bytes()),
        Err(KeyError::Private)
    ));
    for text in ["", "ssh-ed25519 AAAA", "-----BEGIN PUBLIC KEY-----\n"] {
        assert!(PublicKey::from_pem(text.as_bytes()).is_err(), "{text}");
    }
}
