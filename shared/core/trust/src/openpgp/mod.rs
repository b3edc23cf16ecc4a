#![doc = include_str!("README.md")]

mod certificate;
mod message;
mod packets;

use std::io::Read;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pgp::armor::Dearmor;
use pgp::composed::{Deserializable, SignedPublicKey};
use pgp::packet::{Packet, PacketTrait as _};

use crate::openpgp::certificate::{CertificateKey, signing_keys};
use crate::openpgp::packets::{error, is_unknown, packets};
use crate::policy::{Keyring, OpenPgpError, SignedMessage};

/// Keys of all trusted key files that may sign.
#[derive(Debug)]
struct CertificateRing(Vec<CertificateKey>);

/// Reads the keys of these files, binary or armoured, as one keyring.
///
/// # Errors
/// Fails if one of the files holds no usable public key.
pub fn read_keyring(files: &[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError> {
    let mut keys = Vec::new();
    for file in files {
        keys.extend(signing_keys_of(file)?);
    }
    Ok(Arc::new(CertificateRing(keys)))
}

impl Keyring for CertificateRing {
    fn open(&self, message: &[u8]) -> Result<SignedMessage, OpenPgpError> {
        message::open(message, &self.0, now())
    }

    fn fingerprints(&self) -> Vec<String> {
        let mut fingerprints: Vec<_> = self.0.iter().map(|key| key.fingerprint.clone()).collect();
        fingerprints.sort();
        fingerprints
    }
}

/// Returns the time in seconds since 1970, the unit of OpenPGP.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests;

/// Start of any armour (RFC 9580, section 6.2).
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";
const KEY_BLOCK: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// Maximum number of packets in a key file. A key with many names, subkeys and foreign signatures
/// has some hundred.
const MOST_PACKETS: usize = 10_000;

/// Returns the keys of a file that may sign. Certificates without any are skipped as long as one
/// has some, because files of vendors hold keys of many kinds and ages.
fn signing_keys_of(file: &[u8]) -> Result<Vec<CertificateKey>, OpenPgpError> {
    let mut found = Vec::new();
    let mut unfit = error("the file holds no OpenPGP public key");
    for block in blocks(file)? {
        for key in keys(&block)? {
            match signing_keys(&key) {
                Ok(signing) => found.extend(signing),
                Err(why) => unfit = why,
            }
        }
    }
    if found.is_empty() {
        return Err(unfit);
    }
    Ok(found)
}

/// Returns the blocks of a file: one if it is binary, several if it is armoured. Armoured blocks
/// may have text around them, as key files for rpm have.
fn blocks(file: &[u8]) -> Result<Vec<Vec<u8>>, OpenPgpError> {
    // RFC 9580, section 4.2: every packet starts with a set bit, which no text does.
    if file.first().is_some_and(|first| first & 0x80 != 0) {
        return Ok(vec![file.to_vec()]);
    }
    let text = String::from_utf8_lossy(file);
    let sections = text.match_indices(BEGIN).map(|(at, _)| &text[at..]);
    sections.map(block).collect()
}

fn block(section: &str) -> Result<Vec<u8>, OpenPgpError> {
    let end = match section.find(END) {
        Some(end) if section.starts_with(KEY_BLOCK) => end + END.len(),
        _ => {
            let what = "the file holds something else than whole OpenPGP public keys";
            return Err(error(what));
        }
    };
    let mut bytes = Vec::new();
    Dearmor::new(&section.as_bytes()[..end])
        .read_to_end(&mut bytes)
        .map_err(|why| error(format!("the armour of an OpenPGP key is broken: {why}")))?;
    Ok(bytes)
}

fn keys(block: &[u8]) -> Result<Vec<SignedPublicKey>, OpenPgpError> {
    let broken = |why: pgp::errors::Error| error(format!("an OpenPGP key cannot be read: {why}"));
    let mut known = Vec::new();
    for packet in packets(block, MOST_PACKETS)? {
        if packet.as_ref().is_err_and(is_unknown) {
            continue;
        }
        known.push(packet.map_err(broken)?);
    }
    for packet in &known {
        if !belongs_to_a_key(packet) {
            let tag = packet.packet_header().tag();
            return Err(error(format!(
                "{tag:?} is no part of an OpenPGP public key"
            )));
        }
    }
    let known: Vec<_> = known.into_iter().map(Ok).collect();
    let keys: Result<_, _> = SignedPublicKey::from_packets(known.into_iter().peekable()).collect();
    keys.map_err(broken)
}

/// Returns true if the packet may be part of a public key (RFC 9580, section 10.1). The library
/// skips all others, which would hide a mistake in the file.
const fn belongs_to_a_key(packet: &Packet) -> bool {
    matches!(
        packet,
        Packet::PublicKey(_)
            | Packet::PublicSubkey(_)
            | Packet::UserId(_)
            | Packet::UserAttribute(_)
            | Packet::Signature(_)
            | Packet::Trust(_)
            | Packet::Marker(_)
            | Packet::Padding(_)
    )
}
