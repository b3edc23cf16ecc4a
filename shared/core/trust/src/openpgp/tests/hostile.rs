//! Malformed messages that no OpenPGP program writes.

use std::io::{Read, Write};

use flate2::{Compression, write::ZlibEncoder};
use pgp::packet::Packet;
use testkit::Random;

use super::*;

/// Number of mutated inputs for each seed: a second of work.
const ROUNDS: usize = 500;

/// Builds a packet (RFC 9580, section 4.2) with a length of five octets.
fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[0xc0 | kind, 0xff][..], &length, body].concat()
}

/// Builds a compressed packet (RFC 9580, section 5.6) with ZLIB.
fn compressed(inner: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(vec![2], Compression::best());
    zlib.write_all(inner).unwrap();
    packet(8, &zlib.finish().unwrap())
}

/// Builds a literal packet (RFC 9580, section 5.9) of binary data without a name.
fn literal(data: &[u8]) -> Vec<u8> {
    packet(11, &[&b"b\0\0\0\0\0"[..], data].concat())
}

#[test]
fn open_refuses_content_around_the_message() {
    let open = |message: &[u8]| open_at(&[RSA], message, A_YEAR_LATER);
    assert_eq!(open(&compressed(PLAIN)).unwrap().payload, b"payload");
    for trailing in [
        &[0][..],
        &[0xc2],
        &[0xff; 8],
        PLAIN,
        &literal(b"more"),
        &packet(10, b"PGP"),
        &packet(21, b""),
    ] {
        assert!(open(&[PLAIN, trailing].concat()).is_err(), "{trailing:?}");
        assert!(open(&[trailing, PLAIN].concat()).is_err(), "{trailing:?}");
        assert!(
            open(&[&compressed(PLAIN), trailing].concat()).is_err(),
            "{trailing:?}"
        );
        assert!(
            open(&compressed(&[PLAIN, trailing].concat())).is_err(),
            "{trailing:?}"
        );
    }
    assert!(open(&compressed(&compressed(PLAIN))).is_err());
    assert!(open(&compressed(&literal(b"payload"))).is_err());
}

/// Combines the announcement, the text and the signature of one message with parts of another.
#[test]
fn open_refuses_parts_of_two_messages() {
    let announced = packets(PLAIN, 3).unwrap().len();
    assert_eq!(announced, 3);
    let text = PLAIN.iter().position(|byte| *byte == 0xcb).unwrap();
    let (head, rest) = PLAIN.split_at(text);
    let open = |message: &[u8]| open_at(&[RSA], message, A_YEAR_LATER);
    open(&[head, rest].concat()).unwrap();
    let end = text + 2 + usize::from(rest[1]);
    let signature = &PLAIN[end..];
    assert!(open(&[head, &literal(b"evil"), signature].concat()).is_err());
    assert!(open(&[head, rest, &literal(b"evil")].concat()).is_err());
    assert!(open(&[head, head, rest, signature].concat()).is_err());
    assert!(open(signature).is_err());
    // The old order is the same message.
    for text in [&PLAIN[text..end], &literal(b"payload")] {
        assert_eq!(
            open(&[signature, text].concat()).unwrap().payload,
            b"payload"
        );
    }
    assert!(open(&[signature, &literal(b"evil")].concat()).is_err());
}

#[test]
fn open_refuses_decompression_bombs() {
    let too_large = "more than 131072 bytes";
    assert!(refusal(RSA, &vec![0xc0; (128 << 10) + 1]).contains(too_large));
    assert!(refusal(RSA, &compressed(&literal(&vec![0; 64 << 20]))).contains(too_large));
    // A signature that claims a size of four gigabytes.
    assert!(!refusal(RSA, &[0xc2, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0]).is_empty());
    let announcements = PLAIN[..15].repeat(8000);
    assert!(refusal(RSA, &announcements).contains("more than 3 packets"));
}

/// Returns the packets inside a compressed message of GnuPG.
fn inside(message: &[u8]) -> Vec<u8> {
    let mut packets = packets(message, 1).unwrap();
    let Packet::CompressedData(data) = packets.remove(0).unwrap() else {
        panic!("it is not compressed");
    };
    let mut inside = Vec::new();
    data.decompress().unwrap().read_to_end(&mut inside).unwrap();
    inside
}

#[test]
fn open_never_returns_another_payload_for_altered_messages() {
    let known = keyring(&[EARLY]);
    let open = |message: &[u8]| message::open(message, &known, A_YEAR_LATER);
    for message in [BY_EARLY, &inside(BY_EARLY)] {
        assert_eq!(open(message).unwrap().payload, b"payload");
        for length in 0..message.len() {
            assert!(open(&message[..length]).is_err(), "cut after {length}");
        }
        for at in 0..message.len() {
            let mut altered = message.to_vec();
            altered[at] ^= 1 << (at % 8);
            // Some bytes are not signed, such as the name of the file.
            if let Ok(signed) = open(&altered) {
                assert_eq!(signed.payload, b"payload", "altered at {at}");
            }
        }
    }
}

/// A panic of the library would end a poll instead of refusing one image.
#[test]
fn open_and_read_never_panic() {
    let known = keyring(&[EARLY]);
    let mut dice = Random::new(2024);
    let others = [
        PLAIN,
        BY_SUBKEY,
        EARLY,
        include_bytes!("../fixtures/partial.sig"),
    ];
    for source in [&inside(BY_EARLY), BY_EARLY, EARLY] {
        for _ in 0..ROUNDS {
            let mut bytes = source.to_vec();
            for _ in 0..=dice.below(4) {
                if bytes.is_empty() {
                    break;
                }
                let at = dice.below(bytes.len());
                let other = others[dice.below(others.len())];
                let part = &other[dice.below(other.len())..];
                match dice.below(4) {
                    0 => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
                    1 => drop(bytes.remove(at)),
                    2 => bytes.truncate(at + 1),
                    _ => drop(bytes.splice(at..at, part[..part.len().min(16)].iter().copied())),
                }
            }
            if let Ok(signed) = message::open(&bytes, &known, A_YEAR_LATER) {
                assert_eq!(signed.payload, b"payload");
            }
            drop(signing_keys_of(&bytes));
        }
    }
}
