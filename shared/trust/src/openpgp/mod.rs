#![doc = include_str!("README.md")]

mod certificate;
mod file;
mod message;

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use pgp::packet::{Packet, PacketParser};

use crate::policy::{Keyring, OpenPgpBackend, OpenPgpError, SignedMessage};

use certificate::Certificate;

/// Implementation of OpenPGP with the library rPGP.
#[derive(Debug, Clone, Copy)]
pub struct Rpgp;

/// Certificates of all trusted key files.
#[derive(Debug)]
struct CertificateRing(Vec<Certificate>);

impl OpenPgpBackend for Rpgp {
    fn read(&self, files: &[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError> {
        Ok(Arc::new(CertificateRing::read(files)?))
    }
}

impl CertificateRing {
    fn read(files: &[impl AsRef<[u8]>]) -> Result<Self, OpenPgpError> {
        let mut certificates = Vec::new();
        for file in files {
            certificates.extend(file::certificates(file.as_ref())?);
        }
        Ok(Self(certificates))
    }
}

impl Keyring for CertificateRing {
    fn open(&self, message: &[u8]) -> Result<SignedMessage, OpenPgpError> {
        message::open(message, &self.0, now())
    }

    fn fingerprints(&self) -> Vec<String> {
        let mut fingerprints: Vec<_> = self.0.iter().flat_map(Certificate::signing_fingerprints).collect();
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

fn error(what: impl std::fmt::Display) -> OpenPgpError {
    OpenPgpError(what.to_string())
}

/// Returns all packets (RFC 9580, section 4) of `bytes`, at most `most`. A packet may be an error. Fails if other bytes
/// follow the packets.
pub(crate) fn packets(mut bytes: &[u8], most: usize) -> Result<Vec<pgp::errors::Result<Packet>>, OpenPgpError> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        if packets.len() == most {
            return Err(error(format!("there are more than {most} packets")));
        }
        // The parser takes an incomplete header for the end of the input, so each packet has its own parser, and only the rest
        // of the bytes tells if the input ends.
        let packet = PacketParser::new(&mut bytes).next();
        packets.push(packet.ok_or_else(|| error("the last packet breaks off"))?);
    }
    Ok(packets)
}

/// Returns true if a packet has an unknown type or version, so that it may be skipped (RFC 9580, section 4.3).
pub(crate) fn is_unknown(why: &pgp::errors::Error) -> bool {
    match why {
        pgp::errors::Error::Unsupported { .. } => true,
        pgp::errors::Error::InvalidPacketContent { source } => is_unknown(source),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
