//! Keys and messages in `fixtures`, made by GnuPG; `skopeo.sig` by skopeo. `fixtures/make` makes
//! them again.

use super::*;

mod hostile;

const RSA: &[u8] = include_bytes!("fixtures/rsa.pub");
const RSA_ARMOURED: &[u8] = include_bytes!("fixtures/rsa.asc");
/// Message without compression.
const PLAIN: &[u8] = include_bytes!("fixtures/plain.sig");
/// Ed25519 key from early 2024.
const EARLY: &[u8] = include_bytes!("fixtures/early.pub");
const BY_EARLY: &[u8] = include_bytes!("fixtures/early.sig");
/// ECDSA key over P-256.
const ECDSA: &[u8] = include_bytes!("fixtures/ecdsa.pub");
/// Primary key that only certifies, with a subkey that signs.
const SUBKEY: &[u8] = include_bytes!("fixtures/sub.pub");
const BY_SUBKEY: &[u8] = include_bytes!("fixtures/sub.sig");
/// Key that expires in 2030.
const EXPIRING: &[u8] = include_bytes!("fixtures/expiring.pub");
const BY_EXPIRING: &[u8] = include_bytes!("fixtures/expiring.sig");

const RSA_FINGERPRINT: &str = "1ac5307c5b7052c424aa44392451b54974c6998a";
const EARLY_FINGERPRINT: &str = "4699c9215fa664249970a5b456bba06c8f66eb99";
const ECDSA_FINGERPRINT: &str = "d19a386e1872b22324689a0020b141334701e519";
const SUBKEY_FINGERPRINT: &str = "f1c76ab935f6953b5fd87de7c4ee6fdee1067799";
const SIGNING_SUBKEY_FINGERPRINT: &str = "27d1694465a29d02bcf8eed68d4dfbfb24481551";

/// Time of all signatures, unless their name says otherwise: the first second of 2024.
const SIGNED: u64 = 1_704_067_200;
const A_YEAR_LATER: u64 = SIGNED + 366 * 86400;
/// Expiry of the key that expires: noon of 2030-01-01.
const EXPIRY: u64 = 1_893_499_200;

fn keyring(files: &[&[u8]]) -> Vec<CertificateKey> {
    files
        .iter()
        .flat_map(|file| signing_keys_of(file).unwrap())
        .collect()
}

fn open_at(keys: &[&[u8]], message: &[u8], now: u64) -> Result<SignedMessage, OpenPgpError> {
    message::open(message, &keyring(keys), now)
}

fn refusal_at(keys: &[u8], message: &[u8], now: u64) -> String {
    open_at(&[keys], message, now).unwrap_err().to_string()
}

fn refusal(keys: &[u8], message: &[u8]) -> String {
    refusal_at(keys, message, A_YEAR_LATER)
}

#[test]
fn open_accepts_messages_of_gnupg() {
    let all = [EARLY, SUBKEY, RSA_ARMOURED];
    for (keys, message, fingerprint) in [
        (&[RSA][..], PLAIN, RSA_FINGERPRINT),
        (&[RSA_ARMOURED], PLAIN, RSA_FINGERPRINT),
        (&[SUBKEY], BY_SUBKEY, SUBKEY_FINGERPRINT),
        (&[EARLY], BY_EARLY, EARLY_FINGERPRINT),
        (
            &[ECDSA],
            include_bytes!("fixtures/ecdsa.sig"),
            ECDSA_FINGERPRINT,
        ),
        (&all, PLAIN, RSA_FINGERPRINT),
        (&all, BY_SUBKEY, SUBKEY_FINGERPRINT),
    ] {
        let expected = SignedMessage {
            payload: b"payload".to_vec(),
            key: fingerprint.to_owned(),
        };
        assert_eq!(open_at(keys, message, A_YEAR_LATER), Ok(expected));
    }
    let long = open_at(&[RSA], include_bytes!("fixtures/partial.sig"), A_YEAR_LATER).unwrap();
    assert_eq!(long.payload, b"payload".repeat(500));
}

#[test]
fn open_accepts_messages_of_skopeo() {
    let signed = open_at(&[RSA], include_bytes!("fixtures/skopeo.sig"), A_YEAR_LATER).unwrap();
    assert_eq!(signed.key, RSA_FINGERPRINT);
    let payload = String::from_utf8(signed.payload).unwrap();
    let name = r#""docker-reference":"quay.io/ns/cat:v1""#;
    assert!(payload.contains(name), "{payload}");
}

/// Vendors once certified their keys with SHA-1, and put all of them into one file with text
/// between.
#[test]
fn read_accepts_old_keys_and_files_with_several() {
    let (old, by_old) = (
        include_bytes!("fixtures/sha1-certified.pub"),
        include_bytes!("fixtures/sha1-certified.sig"),
    );
    open_at(&[old], by_old, A_YEAR_LATER).unwrap();
    let armoured = String::from_utf8(RSA_ARMOURED.to_vec()).unwrap();
    let file = format!(
        "pub rsa2048 2020-01-01 (release key)\n\n{armoured}\nthe other one:\n\n{armoured}\n"
    );
    let ring = read_keyring(&[file.clone().into_bytes(), [EARLY, SUBKEY].concat()]).unwrap();
    let mut expected = [
        RSA_FINGERPRINT,
        RSA_FINGERPRINT,
        EARLY_FINGERPRINT,
        SIGNING_SUBKEY_FINGERPRINT,
    ];
    expected.sort_unstable();
    assert_eq!(ring.fingerprints(), expected);
    let signed = open_at(&[file.as_bytes()], PLAIN, A_YEAR_LATER).unwrap();
    assert_eq!(signed.key, RSA_FINGERPRINT);
}

#[test]
fn open_refuses_keys_and_signatures_outside_their_time() {
    open_at(&[EXPIRING], BY_EXPIRING, EXPIRY - 1).unwrap();
    assert!(refusal_at(EXPIRING, BY_EXPIRING, EXPIRY).contains("the key that made it has expired"));
    let late = include_bytes!("fixtures/late.sig");
    open_at(&[EARLY], late, SIGNED + 10 * 86400 - 1).unwrap();
    assert!(refusal_at(EARLY, late, SIGNED + 10 * 86400).contains("it has expired"));
    open_at(&[EARLY], BY_EARLY, SIGNED - 300).unwrap();
    assert!(refusal_at(EARLY, BY_EARLY, SIGNED - 301).contains("in the future"));
    assert!(refusal(EARLY, include_bytes!("fixtures/before.sig")).contains("before its key"));
}

#[test]
fn open_refuses_another_key_or_payload() {
    let by_no_key = "not made by one of the policy's keys";
    assert!(refusal(SUBKEY, PLAIN).contains(by_no_key));
    assert!(refusal(RSA, BY_SUBKEY).contains(by_no_key));
    let at = PLAIN
        .windows(7)
        .position(|part| part == b"payload")
        .unwrap();
    let name = at
        + 7
        + PLAIN[at + 7..]
            .windows(7)
            .position(|part| part == b"payload")
            .unwrap();
    let mut altered = PLAIN.to_vec();
    altered[name] ^= 1;
    assert!(refusal(RSA, &altered).contains(by_no_key));
}

#[test]
fn open_refuses_weak_signatures_and_other_content() {
    assert!(refusal(RSA, include_bytes!("fixtures/sha1.sig")).contains("hash algorithm"));
    assert!(refusal(RSA, include_bytes!("fixtures/sha224.sig")).contains("hash algorithm"));
    assert!(refusal(RSA, include_bytes!("fixtures/text.sig")).contains("binary"));
    assert!(refusal(RSA, include_bytes!("fixtures/notation.sig")).contains("not understood"));
    assert!(refusal(RSA, include_bytes!("fixtures/unsigned.sig")).contains("not signed"));
    for other in [
        &include_bytes!("fixtures/both.sig")[..],
        include_bytes!("fixtures/detached.sig"),
        include_bytes!("fixtures/clear.sig"),
        include_bytes!("fixtures/armoured.sig"),
        RSA,
        b"payload",
        b"",
    ] {
        assert!(refusal(RSA, other).contains("no OpenPGP message"));
    }
}

#[test]
fn read_refuses_a_file_without_a_usable_key() {
    let refusal = |file: &[u8]| {
        read_keyring(&[RSA.to_vec(), file.to_vec()])
            .unwrap_err()
            .to_string()
    };
    assert!(refusal(include_bytes!("fixtures/revoked.pub")).contains("has been revoked"));
    assert!(refusal(include_bytes!("fixtures/short.pub")).contains("too weak"));
    assert!(refusal(include_bytes!("fixtures/sub-revoked.pub")).contains("cannot sign"));
    assert!(refusal(b"").contains("no OpenPGP public key"));
    assert!(refusal(b"-----BEGIN PUBLIC KEY-----\n").contains("something else"));
    assert!(refusal(&RSA_ARMOURED[..RSA_ARMOURED.len() / 2]).contains("something else"));
    assert!(refusal(PLAIN).contains("no part of an OpenPGP public key"));
    for length in 1..EARLY.len() {
        let cut = read_keyring(&[EARLY[..length].to_vec()]);
        assert!(cut.is_err(), "cut after {length}");
    }
    assert!(!refusal(&[RSA, &[0xc2]].concat()).is_empty());
}

/// Key files of vendors hold retired keys too.
#[test]
fn read_skips_unusable_keys_beside_usable_ones() {
    let gone: &[u8] = include_bytes!("fixtures/gone.pub");
    let revoked: &[u8] = include_bytes!("fixtures/revoked.pub");
    let by_gone = include_bytes!("fixtures/gone.sig");
    open_at(&[gone], by_gone, A_YEAR_LATER).unwrap();
    let file = [RSA, revoked].concat();
    assert!(refusal(&file, by_gone).contains("not made by one of"));
    open_at(&[&file], PLAIN, A_YEAR_LATER).unwrap();
    let with_short = [RSA, include_bytes!("fixtures/short.pub")].concat();
    assert!(
        refusal(&with_short, include_bytes!("fixtures/short.sig")).contains("not made by one of")
    );
}
