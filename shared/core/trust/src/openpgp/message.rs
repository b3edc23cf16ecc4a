use std::fmt::Display;
use std::io::Read;

use crate::policy::{OpenPgpError, SignedMessage};
use pgp::packet::{CompressedData, LiteralData, Packet, Signature, SignatureType, SubpacketData};

use crate::openpgp::certificate::{CertificateKey, hashed, is_trusted, seconds};
use crate::openpgp::packets::{error, packets};

/// Maximum size of a message, also decompressed, in bytes. It holds a name, a digest and one
/// signature: 1 to 2 KiB.
const MOST_BYTES: u64 = 128 << 10;

/// Maximum number of packets: the signature, its announcement and the text.
const MOST_PACKETS: usize = 3;

/// Maximum number of seconds by which the clock of a signer may be ahead.
const CLOCKS_DIFFER: u64 = 300;

/// Verifies a message by the keys and returns its payload and signer. `now` is in seconds since
/// 1970.
pub(crate) fn open(
    message: &[u8],
    keys: &[CertificateKey],
    now: u64,
) -> Result<SignedMessage, OpenPgpError> {
    if message.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    let (text, signature) = parts(message)?;
    check(&signature, now)?;
    let mut refusal =
        error("it is not made by one of the policy's keys, or what it signs was altered");
    for key in keys {
        if !key.has_made(&signature, text.data()) {
            continue;
        }
        match in_time(key, &signature, now) {
            Ok(()) => {
                return Ok(SignedMessage {
                    payload: text.data().to_vec(),
                    key: key.primary.clone(),
                });
            }
            // Another certificate may hold the same key with a later expiry, so the search goes on.
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// Returns the text and its only signature (RFC 9580, section 10.3), in either order, compressed
/// once or not at all.
fn parts(message: &[u8]) -> Result<(LiteralData, Signature), OpenPgpError> {
    let mut packets = read(message)?;
    if let [Packet::CompressedData(data)] = &packets[..] {
        packets = read(&decompressed(data)?)?;
    }
    let mut packets = packets.into_iter();
    match (packets.next(), packets.next(), packets.next()) {
        (Some(Packet::LiteralData(_)), None, None) => {
            Err(error("it is an OpenPGP message that is not signed"))
        }
        (
            Some(Packet::OnePassSignature(announced)),
            Some(Packet::LiteralData(text)),
            Some(Packet::Signature(signature)),
        ) if announced.matches(&signature) => Ok((text, signature)),
        (Some(Packet::Signature(signature)), Some(Packet::LiteralData(text)), None) => {
            Ok((text, signature))
        }
        _ => Err(error(
            "it is no OpenPGP message with one signature of one text",
        )),
    }
}

fn read(bytes: &[u8]) -> Result<Vec<Packet>, OpenPgpError> {
    let packets = packets(bytes, MOST_PACKETS).map_err(unreadable)?;
    let packets: Result<_, pgp::errors::Error> = packets.into_iter().collect();
    packets.map_err(unreadable)
}

fn unreadable(why: impl Display) -> OpenPgpError {
    error(format!("it is no OpenPGP message: {why}"))
}

fn undecompressed(why: impl Display) -> OpenPgpError {
    error(format!("it cannot be decompressed: {why}"))
}

fn decompressed(data: &CompressedData) -> Result<Vec<u8>, OpenPgpError> {
    let reader = data.decompress().map_err(undecompressed)?;
    let mut bytes = Vec::new();
    let read = reader.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(undecompressed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large() -> OpenPgpError {
    error(format!("it has more than {MOST_BYTES} bytes"))
}

/// Checks the properties of a signature other than its value.
fn check(signature: &Signature, now: u64) -> Result<(), OpenPgpError> {
    if signature.typ() != Some(SignatureType::Binary) {
        return Err(error("it is not a signature of binary data"));
    }
    if !signature.hash_alg().is_some_and(is_trusted) {
        return Err(error("its hash algorithm is not trusted any more"));
    }
    if asks_for_more(signature) {
        return Err(error("it has a critical part that is not understood"));
    }
    let created = created(signature)?;
    if let Some(lifetime) = signature.signature_expiration_time() {
        let seconds = u64::from(lifetime.as_secs());
        // A signature with a lifetime of zero does not expire (RFC 9580, section 5.2.3.18).
        if seconds > 0 && created + seconds <= now {
            return Err(error("it has expired"));
        }
    }
    if created > now + CLOCKS_DIFFER {
        return Err(error(
            "it was made in the future: one of the clocks is wrong",
        ));
    }
    Ok(())
}

/// Returns true if a critical subpacket is not understood, which makes a signature invalid (RFC
/// 9580, section 5.2.3.7).
fn asks_for_more(signature: &Signature) -> bool {
    hashed(signature).any(|subpacket| {
        let is_understood = matches!(
            subpacket.data,
            SubpacketData::SignatureCreationTime(_)
                | SubpacketData::SignatureExpirationTime(_)
                | SubpacketData::IssuerKeyId(_)
                | SubpacketData::IssuerFingerprint(_)
                | SubpacketData::SignersUserID(_)
        );
        subpacket.is_critical && !is_understood
    })
}

/// Checks that the key was valid when it signed and is valid now.
fn in_time(key: &CertificateKey, signature: &Signature, now: u64) -> Result<(), OpenPgpError> {
    if created(signature)? < key.created {
        return Err(error("it was made before its key"));
    }
    if key.expiry.is_some_and(|expiry| expiry <= now) {
        return Err(error("the key that made it has expired"));
    }
    Ok(())
}

fn created(signature: &Signature) -> Result<u64, OpenPgpError> {
    let created = signature.created().map(seconds);
    created.ok_or_else(|| error("it does not say when it was made"))
}
